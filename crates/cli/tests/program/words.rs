//! What the program says when something is in the way: it names the thing, and does so soon.

use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::process::Stdio;

use crate::support::{Receiver, Running, finish, noise, tack};
use rustix::process::Signal;

fn small_file() -> (tempfile::TempDir, String) {
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("file");
    fs::write(&path, "x").unwrap();
    let path = path.to_str().unwrap().to_owned();
    (source, path)
}

#[test]
fn another_service_on_the_port_is_called_that() {
    let (_source, path) = small_file();
    let mut server = Running::start(tack().args(["perf", "-s", "--listen", "0", "--json"]));
    let perf = server.line()["address"].as_str().unwrap().to_owned();
    let receiver = Receiver::start(&[]);
    let recv = receiver.address.to_string();
    for (arguments, address, wanted) in [
        (
            vec!["send", "--insecure", &path, &perf],
            &perf,
            "expected `tack recv`",
        ),
        (vec!["perf", &recv], &recv, "expected `tack perf --server`"),
    ] {
        let ended = finish(tack().args(arguments));
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(
            ended.stderr.contains("another tack service"),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains(wanted), "{}", ended.stderr);
        // The one port that the user knows of.
        assert!(ended.stderr.contains(address.as_str()), "{}", ended.stderr);
        assert_eq!(ended.stderr.matches("port").count(), 0, "{}", ended.stderr);
    }
}

#[test]
fn something_that_is_not_tack_is_called_that() {
    // The second answer is long enough for a header without options: its thirteenth byte, P,
    // gives a length of 20.
    for answer in ["what?", "this is not Prometheus; good bye"] {
        something_answers(answer);
    }
}

fn something_answers(answer: &'static str) {
    let (_source, path) = small_file();
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let answering = std::thread::spawn(move || {
        let mut datagram = [0; 2000];
        let (_, from) = other.recv_from(&mut datagram).unwrap();
        other.send_to(answer.as_bytes(), from).unwrap();
        other
    });
    let ended = finish(tack().args([
        "send",
        "--insecure",
        &path,
        &address,
        "--connect-timeout",
        "100s",
    ]));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(
        ended.stderr.contains("does not speak tack"),
        "{}",
        ended.stderr
    );
    answering.join().unwrap();
}

/// Firewalls and those who read logs see one port of the program.
#[test]
fn connecting_uses_one_port() {
    let (_source, path) = small_file();
    let uses_one_port = |arguments: &[&str]| {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap().to_string();
        let limit = [&address, "--connect-timeout", "2s"];
        let ended = finish(tack().args(arguments).args(limit));
        assert_ne!(ended.code, Some(0), "{ended:?}");
        other.set_nonblocking(true).unwrap();
        let mut ports = std::collections::BTreeSet::new();
        let mut datagrams = 0;
        while let Ok((_, from)) = other.recv_from(&mut [0; 2000]) {
            ports.insert(from.port());
            datagrams += 1;
        }
        // A SYN and its repetition.
        assert!(datagrams >= 2, "{arguments:?}: {datagrams}, {ended:?}");
        assert_eq!(ports.len(), 1, "{arguments:?}");
    };
    // At the same time: they only wait.
    std::thread::scope(|scope| {
        scope.spawn(|| uses_one_port(&["send", "--insecure", &path]));
        scope.spawn(|| uses_one_port(&["send", &path]));
        scope.spawn(|| uses_one_port(&["perf"]));
        scope.spawn(|| uses_one_port(&["perf", "--insecure"]));
    });
}

#[test]
fn a_number_to_listen_on_is_a_port_and_to_send_to_is_a_mistake() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().to_str().unwrap();
    let mut running =
        Running::start(tack().args(["recv", "--listen", "0", "--json", "--dir", dir]));
    let address = running.line()["address"].as_str().unwrap().to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let (_source, path) = small_file();
    let ended = finish(tack().args(["send", &path, "7831"]));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("host:port"), "{}", ended.stderr);
}

#[test]
fn a_folder_that_cannot_be_written_to_is_noticed_at_the_start() {
    // Read-only for everyone, the administrator included.
    let ended = finish(tack().args(["recv", "--dir", "/proc", "--listen", "0"]));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("cannot store files in this directory"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_receiver_that_stalls_is_not_one_that_resets() {
    let receiver = Receiver::start(&[]);
    let address = receiver.address.to_string();
    let mut sender = Running::start(
        tack()
            .args([
                "send",
                "--insecure",
                "-",
                "--name",
                "half",
                "--timeout",
                "3s",
                &address,
            ])
            .stdin(Stdio::piped()),
    );
    let mut input = sender.child.stdin.take().unwrap();
    input.write_all(&noise(3, 24 << 20)).unwrap();
    receiver.running.signal(Signal::STOP);
    // What does not fit is written when the sender has given up.
    let writing = std::thread::spawn(move || {
        let _ = input.write_all(&noise(3, 24 << 20));
    });
    let ended = sender.wait();
    receiver.running.signal(Signal::CONT);
    writing.join().unwrap();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(!ended.stderr.contains("reset"), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("stopped answering")
            || ended.stderr.contains("silent for 3 s (--timeout)"),
        "{}",
        ended.stderr
    );
}
