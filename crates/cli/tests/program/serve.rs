//! `tack serve` with a configuration file: rules for each peer, reload, folders, sockets of a
//! service manager.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::meeting::Side;
use crate::support::{finish, tack};
use crate::tunnel::{Service, connect, echo, noise, target};

/// A machine that serves what a file says, and those who know it.
struct Served {
    server: Side,
    service: Service,
}

impl Served {
    fn new(clients: &[(&str, &Side)], config: &str) -> Self {
        let server = Side::new();
        for (name, client) in clients {
            server.run(&["peers", "add", name, &client.key()]);
        }
        fs::write(server.path("serve.toml"), config).unwrap();
        let arguments = [
            "serve",
            "--config",
            "serve.toml",
            "--listen",
            "127.0.0.1:0",
            "--verbose",
        ];
        let mut service = Service::start(&server, &arguments);
        let line = service.line("serving tunnels at ");
        let address = line.split_whitespace().last().unwrap().to_owned();
        for (_, client) in clients {
            knows(client, &server, &address);
        }
        Self { server, service }
    }

    /// Writes the file anew and has it read; what the program says of it.
    fn reload(&mut self, config: &str) -> String {
        fs::write(self.server.path("serve.toml"), config).unwrap();
        let pid = Pid::from_raw(self.service.child.id() as i32).unwrap();
        kill_process(pid, Signal::HUP).unwrap();
        self.service.line("serve.toml")
    }
}

fn knows(client: &Side, server: &Side, address: &str) {
    client.run(&[
        "peers",
        "add",
        "server",
        &server.key(),
        "--address",
        address,
    ]);
}

/// The exit code of a connection, and what was said.
fn reach(client: &Side, target: &str) -> (Option<i32>, String) {
    let ended = finish(&mut client.command(&["connect", "server:", target]));
    (ended.code, ended.stderr)
}

fn talk(stream: &mut TcpStream) {
    stream.write_all(b"word").unwrap();
    let mut heard = [0; 4];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"word");
}

#[test]
fn each_peer_has_its_rules_and_a_reload_changes_them_without_dropping_connections() {
    let (first, second) = (target(echo).to_string(), target(echo).to_string());
    let (phone, desk) = (Side::new(), Side::new());
    let config = format!("targets = [\"{first}\"]\n[peers.phone]\ntargets = [\"{second}\"]\n");
    let mut served = Served::new(&[("phone", &phone), ("desk", &desk)], &config);
    for (side, permitted, refused) in [(&phone, &second, &first), (&desk, &first, &second)] {
        assert_eq!(reach(side, permitted).0, Some(0));
        let (code, words) = reach(side, refused);
        assert_eq!(code, Some(3), "{words}");
        assert!(words.contains("does not permit"), "{words}");
    }
    // A connection that is open while the rules change.
    let arguments = ["forward", "-L", &format!("0:{first}"), "server:"];
    let mut forward = Service::start(&desk, &arguments);
    let line = forward.line(" leads to ");
    let address = line.split_whitespace().find_map(|word| word.parse().ok());
    let mut open = connect(address.unwrap());
    talk(&mut open);
    let words = served.reload(&format!("targets = [\"{second}\"]\n"));
    assert!(words.contains("was read again"), "{words}");
    assert_eq!(reach(&desk, &second).0, Some(0));
    assert_eq!(reach(&desk, &first).0, Some(3));
    talk(&mut open);
    // A file that is wrong changes nothing, and is named with line and what was probably meant.
    let words = served.reload("\ntargts = []\n");
    assert!(words.contains("stay as they are"), "{words}");
    assert!(words.contains("serve.toml:2:"), "{words}");
    assert!(words.contains("did you mean \"targets\"?"), "{words}");
    assert_eq!(reach(&desk, &second).0, Some(0));
    let words = served.reload("targets = [\"nas:1\"]\n[peers.nobody]\n");
    assert!(words.contains("stay as they are"), "{words}");
    // An empty list is nobody, and not everybody.
    let words = served.reload(&format!("targets = [\"{first}\"]\nallow = []\n"));
    assert!(words.contains("stay as they are"), "{words}");
    assert!(words.contains("`allow` is an empty list"), "{words}");
    assert_eq!(reach(&desk, &first).0, Some(3));
    let other = format!("targets = [\"{second}\"]\nlisten = \"127.0.0.1:1\"\n");
    let words = served.reload(&other);
    assert!(words.contains("`listen` needs a restart"), "{words}");
    talk(&mut open);
}

/// Whether a connection to `address` is carried to an echo.
fn is_carried(address: SocketAddr) -> bool {
    let mut stream = connect(address);
    let mut heard = [0; 4];
    stream.write_all(b"word").is_ok() && stream.read_exact(&mut heard).is_ok()
}

#[test]
fn a_peer_that_was_invited_has_the_rules_of_its_name_and_none_without_it() {
    let (first, second) = (target(echo).to_string(), target(echo).to_string());
    let (server, phone, desk) = (Side::new(), Side::new(), Side::new());
    server.run(&["peers", "add", "desk", &desk.key()]);
    let both = format!("targets = [\"{first}\", \"{second}\"]\n");
    fs::write(server.path("serve.toml"), &both).unwrap();
    let arguments = ["serve", "--config", "serve.toml", "--listen", "127.0.0.1:0"];
    let invite = ["--invite", "--no-code", "--remember", "phone"];
    let mut service = Service::start(&server, &[&arguments[..], &invite].concat());
    let line = service.line("tack1");
    let ticket = line
        .split_whitespace()
        .find(|word| word.starts_with("tack1"));
    let specs = [format!("0:{first}"), format!("0:{second}")];
    let forwarding = ["forward", "-L", &specs[0], "-L", &specs[1], ticket.unwrap()];
    let mut forward = Service::start(&phone, &forwarding);
    let ports = specs.map(|_| {
        let line = forward.line(" leads to ");
        let found = line.split_whitespace().find_map(|word| word.parse().ok());
        found.unwrap()
    });
    let carried = || ports.map(is_carried);
    assert_eq!(carried(), [true, true]);
    let mut served = Served { server, service };
    let own = format!("{both}[peers.phone]\ntargets = [\"{first}\"]\n");
    let mut reload = |config: &str| {
        let words = served.reload(config);
        assert!(words.contains("was read again"), "{words}");
    };
    reload(&own);
    assert_eq!(carried(), [true, false], "rules of its own");
    reload(&format!("allow = [\"desk\"]\n{both}"));
    assert_eq!(carried(), [false, false], "not among the allowed");
    reload(&own);
    assert_eq!(carried(), [true, false]);
    let book = served.server.path("state/peers.json");
    let content = fs::read(&book).unwrap();
    fs::write(&book, b"{").unwrap();
    assert_eq!(carried(), [false, false], "nobody knows who it is");
    fs::write(&book, content).unwrap();
    assert_eq!(carried(), [true, false]);
    served.server.run(&["peers", "remove", "phone"]);
    assert_eq!(carried(), [false, false], "removed");
    // Whom the rules keep out is not invited under that name.
    fs::write(served.server.path("serve.toml"), &both).unwrap();
    let kept_out = [&arguments[..], &invite, &["--allow", "desk"]].concat();
    let ended = served.server.run(&kept_out);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--allow phone"), "{ended:?}");
}

#[test]
fn a_port_for_a_peer_is_closed_when_the_rules_or_the_peer_go() {
    let target = target(echo).to_string();
    let phone = Side::new();
    let permitted = "targets = [\"nas:1\"]\nremote-listen = [\"127.0.0.1:*\"]\n";
    let mut served = Served::new(&[("phone", &phone)], permitted);
    for is_removed in [false, true] {
        let spec = format!("0:{target}");
        let mut forward = Service::start(&phone, &["forward", "-R", &spec, "server:"]);
        let line = forward.line(" leads to ");
        let address = line.split_whitespace().find_map(|word| word.parse().ok());
        let address: SocketAddr = address.unwrap();
        assert!(is_carried(address));
        match is_removed {
            true => {
                served.server.run(&["peers", "remove", "phone"]);
                assert!(!is_carried(address), "the next connection is not carried");
            }
            false => _ = served.reload("targets = [\"nas:1\"]\n"),
        }
        // Nobody connects to it, and it is closed: it can be had.
        let mut attempts = 0;
        while TcpListener::bind(address).is_err() {
            attempts += 1;
            assert!(attempts < 500, "{address} stays open");
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(forward);
        served.reload(permitted);
    }
}

#[test]
fn a_peer_has_so_many_connections_and_no_more() {
    let target = target(echo).to_string();
    let (phone, desk) = (Side::new(), Side::new());
    let config = format!("targets = [\"{target}\"]\n[peers.phone]\nmax-connections = 1\n");
    let _served = Served::new(&[("phone", &phone), ("desk", &desk)], &config);
    let arguments = ["forward", "-L", &format!("0:{target}"), "server:"];
    let mut forward = Service::start(&phone, &arguments);
    let line = forward.line(" leads to ");
    let address = line.split_whitespace().find_map(|word| word.parse().ok());
    let mut open = connect(address.unwrap());
    talk(&mut open);
    let (code, words) = reach(&phone, &target);
    assert_eq!(code, Some(3), "{words}");
    assert!(words.contains("maximum of connections"), "{words}");
    assert_eq!(reach(&desk, &target).0, Some(0), "others are not concerned");
}

/// A connection from `side` to a target over a port of its own.
fn forwarded(side: &Side, target: &str) -> (Service, TcpStream) {
    let arguments = ["forward", "-L", &format!("0:{target}"), "server:"];
    let mut forward = Service::start(side, &arguments);
    let line = forward.line(" leads to ");
    let address = line.split_whitespace().find_map(|word| word.parse().ok());
    let stream = connect(address.unwrap());
    (forward, stream)
}

#[test]
fn a_peer_is_carried_at_its_rate_and_others_are_not_concerned() {
    /// Bytes a second.
    const RATE: f64 = 100_000.0;
    /// What comes at once: the credit of 200 ms, and a piece of 50 ms.
    const BURST: f64 = RATE / 4.0;
    let content = noise(4_000_000);
    let source = content.clone();
    let target = target(move |mut stream| {
        let source = source.clone();
        // A peer that goes away early ends it.
        std::thread::spawn(move || stream.write_all(&source));
    })
    .to_string();
    let (phone, desk) = (Side::new(), Side::new());
    let common = format!("targets = [\"{target}\"]\n");
    let limited = format!("{common}[peers.phone]\nrate = \"800kbps\"\n");
    let mut served = Served::new(&[("phone", &phone), ("desk", &desk)], &limited);
    #[allow(clippy::disallowed_methods, reason = "a rate is bytes in a time")]
    let began = std::time::Instant::now();
    let (_phone, mut slow) = forwarded(&phone, &target);
    let mut got = vec![0; (2.0 * BURST) as usize];
    slow.read_exact(&mut got).unwrap();
    // A slow machine only takes longer.
    let permitted = RATE * began.elapsed().as_secs_f64() + BURST;
    assert!(
        got.len() as f64 <= permitted,
        "{} bytes of {permitted}",
        got.len()
    );
    // Meanwhile another peer gets all.
    let (_desk, mut fast) = forwarded(&desk, &target);
    let mut all = Vec::new();
    fast.read_to_end(&mut all).unwrap();
    assert!(all == content, "{} bytes", all.len());
    // Without the limit the connection that had it gets the rest.
    let words = served.reload(&common);
    assert!(words.contains("was read again"), "{words}");
    slow.read_to_end(&mut got).unwrap();
    assert!(got == content, "{} bytes", got.len());
}

#[test]
fn folders_are_sent_into_and_fetched_from_by_peers_known_by_name() {
    let (phone, desk) = (Side::new(), Side::new());
    let server = Side::new();
    fs::create_dir(server.path("music")).unwrap();
    let song = noise(700_000);
    fs::write(server.path("music/song"), &song).unwrap();
    server.run(&["peers", "add", "phone", &phone.key()]);
    server.run(&["peers", "add", "desk", &desk.key()]);
    let config = "[peers.phone]\noffer = [\"music\"]\nreceive = { dir = \"from-phone\" }\n\
                  [peers.desk]\nreceive = { dir = \"from-desk\", max-bytes = \"1KiB\" }\n";
    fs::write(server.path("serve.toml"), config).unwrap();
    let arguments = [
        "serve",
        "--config",
        "serve.toml",
        "--listen",
        "127.0.0.1:0",
        "--invite",
        "--no-code",
    ];
    let mut service = Service::start(&server, &arguments);
    let line = service.line("serving tunnels at ");
    let address = line.split_whitespace().last().unwrap().to_owned();
    knows(&phone, &server, &address);
    knows(&desk, &server, &address);
    let photo = noise(300_000);
    fs::write(phone.path("photo"), &photo).unwrap();
    let sent = phone.run(&["send", "photo", "server:"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(fs::read(server.path("from-phone/photo")).unwrap() == photo);
    let fetched = phone.run(&["recv", "server:", "--dir", "inbox"]);
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert!(fs::read(phone.path("inbox/music/song")).unwrap() == song);
    // The other has its own folder with a limit, and nothing to fetch.
    fs::write(desk.path("big"), noise(2000)).unwrap();
    let sent = desk.run(&["send", "big", "server:"]);
    assert_eq!(sent.code, Some(1), "{sent:?}");
    assert!(!server.path("from-desk/big").exists());
    let fetched = desk.run(&["recv", "server:", "--dir", "inbox"]);
    assert_eq!(fetched.code, Some(1), "{fetched:?}");
    // A ticket of tunnels opens no folder.
    let line = service.line("tack1");
    let ticket = line
        .split_whitespace()
        .find(|word| word.starts_with("tack1"));
    let stranger = Side::new();
    fs::write(stranger.path("virus"), b"x").unwrap();
    let sent = stranger.run(&["send", "virus", ticket.unwrap()]);
    assert_ne!(sent.code, Some(0), "{sent:?}");
    assert!(sent.stderr.contains("known by name"), "{sent:?}");
}

#[test]
fn a_reload_changes_the_rate_of_a_file_that_is_being_fetched() {
    let phone = Side::new();
    let offered = tempfile::tempdir().unwrap();
    let song = noise(4_000_000);
    let music = offered.path().join("music");
    fs::create_dir(&music).unwrap();
    fs::write(music.join("song"), &song).unwrap();
    let offer = format!("offer = [\"{}\"]\n", music.display());
    // 5 kB/s: more than the test has time for.
    let slow = format!("{offer}rate = \"40kbps\"\n");
    let mut served = Served::new(&[("phone", &phone)], &slow);
    let mut fetch = phone.command(&["recv", "server:", "--dir", "inbox"]);
    let fetching = std::thread::spawn(move || finish(&mut fetch));
    let begun = || {
        let mut files = walkdir::WalkDir::new(phone.path("inbox")).into_iter();
        files.any(|entry| {
            let found = entry.ok().and_then(|entry| entry.metadata().ok());
            found.is_some_and(|found| found.is_file() && found.len() > 0)
        })
    };
    while !begun() {
        assert!(!fetching.is_finished(), "{:?}", fetching.join());
        std::thread::sleep(Duration::from_millis(20));
    }
    let words = served.reload(&offer);
    assert!(words.contains("was read again"), "{words}");
    let fetched = fetching.join().unwrap();
    assert_eq!(fetched.code, Some(0), "{fetched:?}");
    assert!(fs::read(phone.path("inbox/music/song")).unwrap() == song);
}

#[test]
fn a_socket_of_the_service_manager_is_used() {
    // Other shells have no descriptors above 9.
    if let Some(why) = tack_skip::lacks(&["bash"]) {
        return tack_skip::skipped(why);
    }
    let target = target(echo).to_string();
    let (server, client) = (Side::new(), Side::new());
    server.run(&["peers", "add", "client", &client.key()]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    // The launcher makes the socket number 3 and says so, as systemd does.
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::empty()).unwrap();
    let script = format!(
        "exec 3<&{}; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"",
        socket.as_raw_fd()
    );
    let launch = |arguments: &[&str]| {
        let mut command = Command::new("bash");
        command
            .args(["-c", &script, "bash"])
            .arg(tack().get_program())
            .args(arguments)
            .arg("--state-dir")
            .arg(server.path("state"));
        command.stdin(Stdio::null());
        command
    };
    let mut service = Service::of(launch(&["serve", "--target", &target]));
    let line = service.line("serving tunnels at ");
    assert!(line.contains(&address), "{line}");
    knows(&client, &server, &address);
    assert_eq!(reach(&client, &target).0, Some(0));
    // Anything else is a mistake of its configuration.
    drop(service);
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::io::fcntl_setfd(&tcp, rustix::io::FdFlags::empty()).unwrap();
    let wrong = format!(
        "exec 3<&{}; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"",
        tcp.as_raw_fd()
    );
    let mut command = Command::new("bash");
    command
        .args(["-c", &wrong, "bash"])
        .arg(tack().get_program());
    command.args(["serve", "--target", &target, "--state-dir"]);
    let ended = finish(command.arg(server.path("state")));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("UDP socket"), "{ended:?}");
}

#[test]
fn a_configuration_that_is_wrong_is_refused_at_the_start() {
    let server = Side::new();
    for (config, words) in [
        (
            "targets = [\"nas\"]\n",
            "serve.toml:1: \"nas\" is not a valid rule",
        ),
        ("\n[peers.x]\n", "nothing to serve"),
        ("targets = [\"nas:1\"]\nallow = [\"nobody\"]\n", "nobody"),
        (
            "targets = [\"nas:1\"]\nallow = []\n",
            "`allow` is an empty list",
        ),
        ("offer = [\"nowhere\"]\n", "nowhere: cannot be offered"),
    ] {
        fs::write(server.path("serve.toml"), config).unwrap();
        let ended = server.run(&["serve", "--config", "serve.toml", "--listen", "127.0.0.1:0"]);
        assert_eq!(ended.code, Some(2), "{config}: {ended:?}");
        assert!(ended.stderr.contains(words), "{config}: {ended:?}");
    }
    let missing = server.run(&["serve", "--config", "missing.toml"]);
    assert_eq!(missing.code, Some(2), "{missing:?}");
}
