//! Tunnels at their limits: open files, a full disk, readers that do not read, readers that go.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::getuid;

use crate::meeting::Side;
use crate::support::finish;
use crate::tunnel::{Service, Two, connect, echo, target};

/// `command` with a limit of open files, as `ulimit` sets it.
fn limited(command: &Command, limit: &str) -> Command {
    let mut limited = Command::new("sh");
    let script = format!("ulimit {limit} && exec \"$@\"");
    limited.args(["-c", &script, "sh"]);
    limited.arg(command.get_program()).args(command.get_args());
    limited.stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    limited
}

/// A connection that is carried, unless it is refused.
fn carried(address: SocketAddr) -> Option<TcpStream> {
    let mut stream = connect(address);
    let mut heard = [0; 4];
    stream.write_all(b"word").ok()?;
    stream.read_exact(&mut heard).ok()?;
    Some(stream)
}

/// A `tack serve` of `target` under a limit of open files, for two peers, and what it said first.
fn serve(limit: &str, target: &str) -> (Service, Side, Side, String) {
    let (server, phone, desk) = (Side::new(), Side::new(), Side::new());
    server.run(&["peers", "add", "phone", &phone.key()]);
    server.run(&["peers", "add", "desk", &desk.key()]);
    let key = server.key();
    let serving = server.command(&["serve", "--listen", "127.0.0.1:0", "--target", target]);
    let mut service = Service::of(limited(&serving, limit));
    let line = service.line("serving tunnels at ");
    let address = line.split_whitespace().last().unwrap().to_owned();
    for side in [&phone, &desk] {
        side.run(&["peers", "add", "server", &key, "--address", &address]);
    }
    let said = service.said.clone();
    // The folder of the server lasts as long as the service.
    std::mem::forget(server);
    (service, phone, desk, said)
}

#[test]
fn open_files_are_no_reason_to_disown_a_peer() {
    const LIMIT: usize = 64;
    let target = target(echo).to_string();
    let spec = format!("0:{target}");
    for option in ["-Sn", "-n"] {
        let (_service, phone, desk, said) = serve(&format!("{option} {LIMIT}"), &target);
        let forward = ["forward", "-L", &spec, "server:"];
        let mut forward = Service::start(&phone, &forward);
        let line = forward.line(" leads to ");
        let address = line.split_whitespace().find_map(|word| word.parse().ok());
        let many: Vec<_> = (0..LIMIT + 6)
            .map_while(|_| carried(address.unwrap()))
            .collect();
        let reached = finish(&mut desk.command(&["connect", "server:", &target]));
        match option {
            // The program raises a soft limit.
            "-Sn" => {
                assert!(!said.contains("may open"), "{said}");
                assert_eq!(many.len(), LIMIT + 6);
                assert_eq!(reached.code, Some(0), "{reached:?}");
            }
            _ => {
                assert!(said.contains("may open 64 files"), "{said}");
                assert!(many.len() < LIMIT, "{}", many.len());
                assert_ne!(reached.code, Some(0), "{reached:?}");
                let words = &reached.stderr;
                assert!(words.contains("at the moment"), "{words}");
            }
        }
    }
}

#[test]
fn known_peers_that_cannot_be_read_are_said_once_and_are_no_fault_of_the_peer() {
    let target = target(echo).to_string();
    let mut two = Two::new(&["--target", &target]);
    let (_forward, address) = two.forward("-L", &format!("0:{target}"));
    std::fs::write(two.server.path("state/peers.json"), b"{").unwrap();
    let reach = || two.client.run(&["connect", "server:", &target]);
    let ended = reach();
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.stderr.contains("at the moment"), "{ended:?}");
    // Both ways to this side: that of carried connections, and that of meetings.
    for _ in 0..2 {
        assert!(carried(address).is_none());
    }
    two.service.line("until that works, nobody is let in");
    let before = two.service.said.matches("nobody is let in").count();
    two.service.child.kill().unwrap();
    let mut rest = String::new();
    two.service.rest(&mut rest);
    let after = rest.matches("nobody is let in").count();
    assert_eq!(before + after, 1, "{rest}");
}

/// Mounts a small file system over the state folder `$1`, with its contents, and runs the rest of
/// the arguments as a command.
const SMALL_DISK: &str = r#"
mount --make-rprivate / &&
mount -t tmpfs -o size=128k,mode=700 tmpfs /mnt &&
cp -a "$1/." /mnt &&
mount --move /mnt "$1" && shift && exec "$@"
"#;

#[test]
fn a_full_disk_is_no_reason_to_end_what_others_have() {
    if !getuid().is_root() {
        return tack_skip::skipped("mounting takes root");
    }
    if let Some(why) = tack_skip::lacks(&["unshare", "mount"]) {
        return tack_skip::skipped(why);
    }
    let (server, known, guest, other) = (Side::new(), Side::new(), Side::new(), Side::new());
    let target = target(echo).to_string();
    server.run(&["peers", "add", "known", &known.key()]);
    // Made before its folder is copied.
    let key = server.key();
    let state = server.path("state");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--target", &target];
    let serving = server.command(&[&serve[..], &["--invite", "--remember", "guest"]].concat());
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", SMALL_DISK, "sh"]);
    command.arg(&state).arg(serving.get_program());
    command.args(serving.get_args()).stdin(Stdio::null());
    let mut service = Service::of(command);
    let line = service.line("serving tunnels at ");
    let address = line.split_whitespace().last().unwrap().to_owned();
    let line = service.line("tack1");
    let mut words = line.split_whitespace();
    let ticket = words.find(|word| word.starts_with("tack1")).unwrap();
    known.run(&["peers", "add", "server", &key, "--address", &address]);
    // The folder as the service sees it.
    let disk = Path::new("/proc").join(service.child.id().to_string());
    let disk = disk.join("root").join(state.strip_prefix("/").unwrap());
    let fill = || {
        let mut filler = std::fs::File::create(disk.join("filler")).unwrap();
        while filler.write_all(&[7; 4096]).is_ok() {}
    };
    let free = || std::fs::remove_file(disk.join("filler")).unwrap();
    let reach = |side: &Side, peer: &str| side.run(&["connect", peer, &target]);

    // Who used the ticket cannot be noted: it may be tried again.
    fill();
    let ended = reach(&guest, ticket);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.stderr.contains("at the moment"), "{ended:?}");
    service.line("No space left");
    let ended = reach(&known, "server:");
    assert_eq!(ended.code, Some(0), "{ended:?}");

    // It is noted that the guest used it, and nothing more: the guest is let in.
    free();
    let file = disk.join("invitations.json");
    let noted = std::fs::read_to_string(&file).unwrap();
    let bound = format!("\"bound\": \"{}\"", guest.key());
    let noted = noted.replacen("\"bound\": null", &bound, 1);
    assert!(noted.contains(&bound), "{noted}");
    std::fs::write(&file, noted).unwrap();
    fill();
    for _ in 0..2 {
        let ended = reach(&guest, ticket);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        service.line("the invitation may serve the same peer again");
    }
    let ended = reach(&other, ticket);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let ended = reach(&known, "server:");
    assert_eq!(ended.code, Some(0), "{ended:?}");

    // With room all is noted, and the invitation has served.
    free();
    let ended = reach(&guest, ticket);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    service.line("kept as guest");
    let noted = std::fs::read_to_string(&file).unwrap();
    assert!(!noted.contains("secret"), "{noted}");
}

#[test]
fn a_command_keeps_the_limit_of_open_files_that_it_was_started_with() {
    if !getuid().is_root() || !Path::new("/dev/net/tun").exists() {
        return tack_skip::skipped("no TUN device");
    }
    let two = Two::new(&["--target", "127.0.0.1:*"]);
    let exec = ["exec", "server:", "--state-dir"];
    let state = two.client.path("state");
    let mut command = crate::support::tack();
    command.args(exec).arg(state);
    command.args(["--", "sh", "-c", "ulimit -Sn"]);
    let ended = finish(&mut limited(&command, "-Sn 300"));
    assert_eq!(ended.stdout.trim(), "300", "{ended:?}");
}

#[test]
fn connections_that_are_stuck_do_not_hold_up_another() {
    // What begins with `s` is never read.
    let target = target(|mut stream| {
        std::thread::spawn(move || {
            let mut first = [0];
            stream.read_exact(&mut first).unwrap();
            match first {
                [b's'] => std::thread::park(),
                _ => echo(stream),
            }
        });
    });
    let two = Two::new(&["--target", &target.to_string()]);
    let (_forward, address) = two.forward("-L", &format!("0:{target}"));
    let stuck: Vec<_> = (0..10)
        .map(|_| {
            let mut stream = connect(address);
            // More than all buffers on the way hold.
            std::thread::spawn(move || stream.write_all(&vec![b's'; 64 << 20]))
        })
        .collect();
    let mut stream = connect(address);
    stream.write_all(b"eword").unwrap();
    let mut heard = [0; 4];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"word");
    assert!(stuck.iter().all(|writing| !writing.is_finished()));
}

#[test]
fn a_reader_of_standard_output_that_goes_is_no_error() {
    let target = target(|mut stream| while stream.write_all(&[b'x'; 4096]).is_ok() {});
    let two = Two::new(&["--target", &target.to_string()]);
    let mut connect = two
        .client
        .command(&["connect", "server:", &target.to_string()]);
    // Standard input stays open.
    connect.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = connect.stderr(Stdio::piped()).spawn().unwrap();
    let _input = child.stdin.take();
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut [0; 10]).unwrap();
    drop(output);
    let mut said = String::new();
    let mut errors = child.stderr.take().unwrap();
    errors.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
    assert_eq!(said, "");
}
