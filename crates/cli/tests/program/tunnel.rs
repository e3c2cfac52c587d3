//! Tunnels: connections of other programs over `tack serve`, with what may happen to them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use crate::meeting::Side;
use crate::support::{Ended, PATIENCE, finish};

/// A program that runs until the test ends, and what it says.
pub(crate) struct Service {
    pub(crate) child: Child,
    errors: BufReader<std::process::ChildStderr>,
    /// What it has said so far, as far as somebody waited for it.
    pub(crate) said: String,
}

impl Service {
    pub(crate) fn start(side: &Side, arguments: &[&str]) -> Self {
        Self::of(side.command(arguments))
    }

    pub(crate) fn of(mut command: std::process::Command) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        Self::running(command.spawn().unwrap())
    }

    /// Of a program that runs, and whose standard error is a pipe.
    fn running(mut child: Child) -> Self {
        let errors = BufReader::new(child.stderr.take().unwrap());
        let said = String::new();
        Self {
            child,
            errors,
            said,
        }
    }

    /// What it says until it ends, which somebody has caused.
    pub(crate) fn rest(&mut self, said: &mut String) {
        self.errors.read_to_string(said).unwrap();
    }

    /// The next line that contains `words`.
    pub(crate) fn line(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            let len = self.errors.read_line(&mut line).unwrap();
            self.said.push_str(&line);
            assert!(len > 0, "it ended without saying {words:?}: {}", self.said);
            if line.contains(words) {
                return line;
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two machines that know each other; one serves.
pub(crate) struct Two {
    pub(crate) server: Side,
    pub(crate) client: Side,
    pub(crate) service: Service,
    /// Where the server listens.
    pub(crate) address: String,
}

impl Two {
    pub(crate) fn new(options: &[&str]) -> Self {
        let (server, client) = (Side::new(), Side::new());
        server.run(&["peers", "add", "client", &client.key()]);
        let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--verbose"];
        arguments.extend(options);
        let mut service = Service::start(&server, &arguments);
        let line = service.line("serving tunnels at ");
        let address = line.split_whitespace().last().unwrap().to_owned();
        client.run(&[
            "peers",
            "add",
            "server",
            &server.key(),
            "--address",
            &address,
        ]);
        Self {
            server,
            client,
            service,
            address,
        }
    }

    fn connect(&self, target: &str) -> std::process::Command {
        self.client.command(&["connect", "server:", target])
    }

    /// A `tack forward`, and the address that leads on.
    pub(crate) fn forward(&self, option: &str, spec: &str) -> (Service, SocketAddr) {
        let mut service = Service::start(&self.client, &["forward", option, spec, "server:"]);
        let line = service.line(" leads to ");
        let mut words = line.split_whitespace();
        let address = words.find_map(|word| word.parse().ok());
        (service, address.unwrap_or_else(|| panic!("{line}")))
    }
}

/// Serves one connection after the other with `talk`.
pub(crate) fn target(talk: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            talk(stream);
        }
    });
    address
}

/// Says back what it hears, and ends when the other side has ended.
pub(crate) fn echo(mut stream: TcpStream) {
    let _: JoinHandle<()> = std::thread::spawn(move || {
        let mut reading = stream.try_clone().unwrap();
        let _ = std::io::copy(&mut reading, &mut stream);
        let _ = stream.shutdown(Shutdown::Write);
    });
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

pub(crate) fn noise(len: usize) -> Vec<u8> {
    (0..len as u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

#[test]
fn standard_streams_reach_a_target_and_end_one_by_one() {
    let target = target(echo);
    let two = Two::new(&["--target", &target.to_string()]);
    let mut child = two
        .connect(&target.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes = noise(3_000_000);
    let mut input = child.stdin.take().unwrap();
    let sent = bytes.clone();
    // The target answers the last byte only after the end of our stream reached it.
    let writing = std::thread::spawn(move || input.write_all(&sent).unwrap());
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout == bytes, "{} bytes", output.stdout.len());
}

/// A program whose standard input stays open, and who reads its standard output.
fn held_open(
    mut command: std::process::Command,
) -> (Service, std::process::ChildStdin, JoinHandle<Vec<u8>>) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let reading = std::thread::spawn(move || {
        let mut heard = Vec::new();
        output.read_to_end(&mut heard).unwrap();
        heard
    });
    (Service::running(child), input, reading)
}

/// The exit code of a program, which ends by itself, while `meanwhile` is done again and again.
fn ends(service: &mut Service, mut meanwhile: impl FnMut()) -> Option<i32> {
    for _ in 0..PATIENCE.as_millis() / 20 {
        if let Some(status) = service.child.try_wait().unwrap() {
            return status.code();
        }
        meanwhile();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("it does not end");
}

#[test]
fn the_end_of_the_other_side_is_passed_on_while_standard_input_is_open() {
    let target = target(|mut stream| stream.write_all(b"bye").unwrap());
    let two = Two::new(&["--target", &target.to_string()]);
    let (mut service, mut input, reading) = held_open(two.connect(&target.to_string()));
    // As ssh waits for the end of its ProxyCommand.
    let mut waited = 0;
    while !reading.is_finished() {
        assert!(waited < PATIENCE.as_millis(), "standard output stays open");
        std::thread::sleep(std::time::Duration::from_millis(20));
        waited += 20;
    }
    assert_eq!(reading.join().unwrap(), b"bye");
    assert!(service.child.try_wait().unwrap().is_none(), "half-closed");
    // Nobody takes what is said now: the connection is over in both directions.
    let code = ends(&mut service, || _ = input.write_all(b"more"));
    assert_eq!(code, Some(1));
    service.line("broke off");
}

#[test]
fn a_side_that_ends_first_still_takes_what_the_other_says() {
    let (tell, told) = std::sync::mpsc::channel();
    let target = target(move |mut stream| {
        stream.shutdown(Shutdown::Write).unwrap();
        let mut heard = Vec::new();
        tell.send(stream.read_to_end(&mut heard).map(|_| heard))
            .unwrap();
    });
    let two = Two::new(&["--target", &target.to_string()]);
    let (mut service, mut input, reading) = held_open(two.connect(&target.to_string()));
    assert_eq!(reading.join().unwrap(), b"");
    let bytes = noise(300_000);
    input.write_all(&bytes).unwrap();
    drop(input);
    assert_eq!(ends(&mut service, || ()), Some(0));
    assert!(told.recv_timeout(PATIENCE).unwrap().unwrap() == bytes);
}

#[test]
fn on_a_terminal_the_end_of_the_other_side_is_the_end() {
    // It makes a terminal.
    if let Some(why) = tack_skip::lacks(&["script"]) {
        return tack_skip::skipped(why);
    }
    let target = target(|mut stream| stream.write_all(b"bye").unwrap());
    let two = Two::new(&["--target", &target.to_string()]);
    let connect = two.connect(&target.to_string());
    let words = std::iter::once(connect.get_program()).chain(connect.get_args());
    let words: Vec<_> = words
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &words.join(" "), "/dev/null"]);
    let (mut service, _input, reading) = held_open(script);
    assert_eq!(ends(&mut service, || ()), Some(0));
    let heard = String::from_utf8(reading.join().unwrap()).unwrap();
    assert!(heard.contains("bye"), "{heard:?}");
}

#[test]
fn a_ticket_in_a_file_names_the_peer_and_one_over_standard_input_is_refused_where_that_is_carried()
{
    let target = target(echo).to_string();
    let (server, client) = (Side::new(), Side::new());
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--keep", "--no-code"];
    let mut service = Service::start(&server, &[&arguments[..], &["--target", &target]].concat());
    let line = service.line("tack1");
    let mut words = line.split_whitespace();
    let ticket = words.find(|word| word.starts_with("tack1")).unwrap();
    std::fs::write(client.path("ticket"), ticket).unwrap();
    let by_file = ["--ticket-file", "ticket"];
    let ended = client.run(&[&["connect", &target][..], &by_file].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut by_environment = client.command(&["connect", &target]);
    let ended = finish(by_environment.env("TACK_TICKET", ticket));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let spec = format!("0:{target}");
    for command in [
        &["forward", "-L", &spec][..],
        &["proxy", "--listen", "127.0.0.1:0"],
    ] {
        let mut service = Service::start(&client, &[command, &by_file].concat());
        service.line(" lead");
    }
    for (arguments, words) in [
        (&["connect", &target][..], "no peer: expected PEER"),
        (&["forward", "-L", &spec], "no peer: expected PEER"),
        (&["proxy"], "no peer: expected PEER"),
        (
            &["connect", "-", &target],
            "standard input, which is carried",
        ),
        (
            &["connect", "--ticket-fd", "0", &target],
            "which is carried",
        ),
    ] {
        let ended = client.run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(words), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn a_port_here_leads_to_a_target_there_for_many_at_once() {
    let target = target(echo);
    let two = Two::new(&["--target", "127.0.0.1:*"]);
    let (_forward, address) = two.forward("-L", &format!("0:{target}"));
    let talks: Vec<_> = (0..30)
        .map(|n| {
            std::thread::spawn(move || {
                let mut stream = connect(address);
                let bytes = noise(20_000 + n);
                let mut reading = stream.try_clone().unwrap();
                let heard = std::thread::spawn(move || {
                    let mut heard = Vec::new();
                    reading.read_to_end(&mut heard).unwrap();
                    heard
                });
                stream.write_all(&bytes).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
                assert!(heard.join().unwrap() == bytes);
            })
        })
        .collect();
    for talk in talks {
        talk.join().unwrap();
    }
}

#[test]
fn a_port_there_leads_to_a_target_here() {
    let target = target(echo);
    let two = Two::new(&["--remote-listen", "127.0.0.1:*"]);
    let (mut forward, address) = two.forward("-R", &format!("0:{target}"));
    let talk = |address| {
        let mut stream = connect(address);
        stream.write_all(b"from there").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).unwrap();
        heard
    };
    assert_eq!(talk(address), "from there");
    assert_eq!(talk(address), "from there");
    // Once nobody carries them, connections are refused.
    forward.child.kill().unwrap();
    let mut service = two.service;
    drop(forward);
    while TcpStream::connect(address).is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let _ = service.child.kill();
}

#[test]
fn a_port_that_may_not_be_listened_on_is_refused() {
    let two = Two::new(&["--remote-listen", "127.0.0.1:1-1024"]);
    for listen in ["127.0.0.1:2000", "127.0.0.1:0", "0.0.0.0:80"] {
        let spec = format!("{listen}:localhost:80");
        let ended = finish(&mut two.client.command(&["forward", "-R", &spec, "server:"]));
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.stderr.contains("does not permit"), "{ended:?}");
        assert!(ended.stderr.contains("(its --remote-listen)"), "{ended:?}");
    }
}

#[test]
fn resets_are_carried_over_in_both_directions() {
    // The target resets after the first byte it hears.
    let resetting = target(|mut stream| {
        let _ = stream.read(&mut [0]);
        socket_reset(stream);
    });
    let (tell, told) = std::sync::mpsc::channel();
    let listening = target(move |mut stream| {
        let mut heard = Vec::new();
        tell.send(stream.read_to_end(&mut heard)).unwrap();
    });
    let two = Two::new(&["--target", "127.0.0.1:*"]);
    let (_first, to_resetting) = two.forward("-L", &format!("0:{resetting}"));
    let (_second, to_listening) = two.forward("-L", &format!("0:{listening}"));
    let mut stream = connect(to_resetting);
    stream.write_all(&[1]).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let mut stream = connect(to_listening);
    stream.write_all(b"words").unwrap();
    socket_reset(stream);
    let error = told.recv_timeout(PATIENCE).unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

/// Ends a connection by a reset.
pub(crate) fn socket_reset(stream: TcpStream) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    stream.set_nonblocking(true).unwrap();
    runtime.block_on(async {
        tokio::net::TcpStream::from_std(stream)
            .unwrap()
            .set_zero_linger()
            .unwrap();
    });
}

fn refused(two: &Two, target: &str) -> String {
    let Ended { code, stderr, .. } = finish(&mut two.connect(target));
    assert_eq!(code, Some(3), "{target}: {stderr}");
    stderr
}

#[test]
fn refusals_say_why() {
    let open = target(echo);
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let rule = format!("127.0.0.1:{}", closed.port());
    let two = Two::new(&[
        "--target",
        &rule,
        "--target",
        "*:*",
        "--target",
        "nowhere.invalid:80",
    ]);
    assert!(refused(&two, &closed.to_string()).contains("connection refused"));
    // Where there is no name server, that is what is said.
    let said = refused(&two, "nowhere.invalid:80");
    let is_said = |words| said.contains(words);
    assert!(
        is_said("no address of this name") || is_said("no answer about this name"),
        "{said}"
    );
    // Loopback is not among any hosts, in whatever way it is written.
    let port = open.port();
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"] {
        let said = refused(&two, &format!("{host}:{port}"));
        assert!(said.contains("does not permit"), "{host}: {said}");
    }
    // The serving side speaks of itself.
    let mut two = two;
    let line = two.service.line("127.0.0.1:");
    assert!(!line.contains("the other side"), "{line}");
    let line = two.service.line("not permitted");
    assert!(!line.contains("the other side"), "{line}");
    let ended = finish(&mut two.connect("nowhere"));
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("is not a valid target"), "{ended:?}");
}

#[test]
fn strangers_and_peers_that_are_not_allowed_are_refused() {
    let target = target(echo).to_string();
    let two = Two::new(&["--target", &target]);
    let stranger = Side::new();
    let address = two.client.run(&["peers", "--json"]).stdout;
    let address = address
        .split('"')
        .find(|word| word.starts_with("127.0.0.1:"))
        .unwrap();
    stranger.run(&[
        "peers",
        "add",
        "server",
        &two.server.key(),
        "--address",
        address,
    ]);
    let ended = stranger.run(&["connect", "server:", &target]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    // A known peer, but not one of those that are served.
    let (server, friend) = (Side::new(), Side::new());
    server.run(&["peers", "add", "friend", &friend.key()]);
    server.run(&["peers", "add", "other", &stranger.key()]);
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--target",
        &target,
        "--allow",
        "friend",
    ];
    let mut service = Service::start(&server, &arguments);
    let line = service.line("serving tunnels at ");
    let address = line.split_whitespace().last().unwrap();
    for (side, expected) in [(&friend, Some(0)), (&stranger, Some(3))] {
        side.run(&[
            "peers",
            "add",
            "second",
            &server.key(),
            "--address",
            address,
        ]);
        let ended = side.run(&["connect", "second:", &target]);
        assert_eq!(ended.code, expected, "{ended:?}");
    }
    let unknown = server.run(&["serve", "--target", &target, "--allow", "nobody"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

#[test]
fn a_ticket_lets_a_peer_in_that_is_known_from_then_on() {
    let target = target(echo).to_string();
    let (server, client) = (Side::new(), Side::new());
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--target",
        &target,
        "--invite",
        "--remember",
        "guest",
    ];
    let mut service = Service::start(&server, &arguments);
    let line = service.line("tack1");
    let ticket = line
        .split_whitespace()
        .find(|word| word.starts_with("tack1"))
        .unwrap();
    let ended = client.run(&["connect", ticket, &target, "--remember", "server"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = client.run(&["connect", "server:", &target]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let known = server.run(&["peers"]).stdout;
    assert!(known.contains("guest"), "{known}");
    // The ticket has served.
    let other = Side::new().run(&["connect", ticket, &target]);
    assert_eq!(other.code, Some(1), "{other:?}");
}

/// What runs on writes to a journal: a ticket, which may serve many, and a code are not for it.
#[test]
fn programs_that_run_on_name_the_peer_and_no_secret() {
    let target = target(echo).to_string();
    let server = Side::new();
    let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--keep"];
    arguments.extend(["--target", &target, "--remote-listen", "127.0.0.1:*"]);
    let mut service = Service::start(&server, &arguments);
    let line = service.line("--code");
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "--code").unwrap();
    let (address, code) = (words[at - 1], words[at + 1]);
    let is_complete = words.last() == Some(&"HOST:PORT");
    let line = service.line("tack1");
    let mut words = line.split_whitespace();
    let ticket = words.find(|word| word.starts_with("tack1")).unwrap();
    let key = server.key();
    let short = [&key[..4], &key[4..8], &key[8..12], &key[12..16]].join("-");
    let spec = format!("0:{target}");
    let commands = [
        vec!["forward", "-L", &spec],
        vec!["forward", "-R", &spec],
        vec!["proxy", "--listen", "127.0.0.1:0"],
    ];
    let named = ["--remember", "server"];
    for (peer, options, expected) in [
        (ticket, &[][..], short.as_str()),
        (ticket, &named, "server:"),
        (address, &["--code", code], short.as_str()),
    ] {
        let commands = if peer == ticket {
            &commands[..]
        } else {
            &commands[..1]
        };
        for command in commands {
            let client = Side::new();
            let arguments = [&command[..], options, &[peer]].concat();
            let mut running = Service::start(&client, &arguments);
            let said = loop {
                let line = running.line("");
                assert!(!line.contains("tack1") && !line.contains(code), "{line}");
                if line.contains(" lead") {
                    break line;
                }
            };
            assert!(said.contains(expected), "{arguments:?}: {said}");
        }
    }
    assert!(
        is_complete,
        "the command with the code has a place for a target"
    );
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    let target = target(echo);
    let (rule, spec) = (target.to_string(), format!("0:{target}"));
    let rules = ["--target", &rule, "--remote-listen", "127.0.0.1:*"];
    let mut two = Two::new(&rules);
    let (_forward, here) = two.forward("-L", &spec);
    let (mut remote, there) = two.forward("-R", &spec);
    let talk = |address: SocketAddr| {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"word")?;
        let mut heard = [0; 4];
        stream.read_exact(&mut heard)?;
        assert_eq!(&heard, b"word");
        std::io::Result::Ok(())
    };
    talk(here).unwrap();
    talk(there).unwrap();
    two.service.child.kill().unwrap();
    two.service.child.wait().unwrap();
    talk(here).unwrap_err();
    talk(there).unwrap_err();
    remote.line("is lost; trying again");
    let arguments = ["serve", "--listen", &two.address];
    two.service = Service::start(&two.server, &[&arguments[..], &rules].concat());
    two.service.line("serving tunnels at ");
    talk(here).unwrap();
    // It asks the server again to listen.
    let line = remote.line(" leads to ");
    let again = line.split_whitespace().find_map(|word| word.parse().ok());
    talk(again.unwrap()).unwrap();
}

#[test]
fn nothing_to_serve_and_nothing_to_forward_are_mistakes() {
    let side = Side::new();
    for arguments in [
        &["serve"][..],
        &["forward", "server:"],
        &["serve", "--target", "nas"],
        &["serve", "--target", "nas:1", "--rate", "0"],
        &["serve", "--target", "nas:1", "--max-connections", "0"],
        &["serve", "--target", "nas:1", "--max-per-peer", "0"],
    ] {
        let ended = side.run(arguments);
        assert_eq!(ended.code, Some(2), "{ended:?}");
    }
}
