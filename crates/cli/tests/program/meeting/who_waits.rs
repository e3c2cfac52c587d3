//! Either side may be the one that waits, whichever of them sends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::{Side, Waiting, text};

#[test]
fn the_side_that_receives_may_be_the_one_that_connects() {
    let (alice, bob) = (Side::new(), Side::new());
    let file = alice.file("file", 100_000);
    let sender =
        Waiting::start(&mut alice.command(&["send", text(&file), "--listen", "127.0.0.1:0"]));
    // A peer that wants the same gets an error that says so, and uses nothing up.
    let refused = bob.run(&["send", text(&bob.file("x", 1)), &sender.ticket]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("one has to send"), "{refused:?}");
    let received = bob.run(&["recv", &sender.ticket, "--dir", "inbox"]);
    assert_eq!(received.code, Some(0), "{received:?}");
    assert_eq!(bob.received("file").unwrap(), fs::read(&file).unwrap());
    let (code, said) = sender.end();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn whoever_has_a_name_may_start_first() {
    let (alice, bob) = (Side::new(), Side::new());
    let file = bob.file("file", 100);
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    bob.run(&["peers", "add", "alice", &alice.key(), "--address", &address]);
    alice.run(&["peers", "add", "bob", &bob.key()]);
    let mut sender = bob
        .command(&["send", text(&file), "alice:"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(sender.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for it"), "{line}");
    let mut receiver = alice.command(&["recv", "--once", "--dir", "inbox", "--listen", &address]);
    let (code, _) = Waiting::start(&mut receiver).end();
    assert_eq!(code, Some(0));
    assert_eq!(sender.wait().unwrap().code(), Some(0));
    assert_eq!(alice.received("file"), Some(vec![7; 100]));
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "two figures for the same real time are compared"
)]
fn the_wait_for_a_peer_is_not_part_of_the_transfer() {
    let (alice, bob) = (Side::new(), Side::new());
    let file = bob.file("file", 100);
    let mut command = bob.command(&["send", "--json", "--listen", "127.0.0.1:0", text(&file)]);
    let mut sender = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(sender.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("tack1") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0);
    }
    let ticket = line
        .split_whitespace()
        .find(|word| word.starts_with("tack1"));
    // Longer than the transfer takes, and no bound on anything but the figure below.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let began = std::time::SystemTime::now();
    let received = alice.run(&["recv", "--dir", "inbox", ticket.unwrap()]);
    assert_eq!(received.code, Some(0), "{received:?}");
    let output = sender.wait_with_output().unwrap();
    let took = began.elapsed().unwrap().as_secs_f64();
    let output = String::from_utf8(output.stdout).unwrap();
    let summary: serde_json::Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    let seconds = summary["seconds"].as_f64().unwrap();
    assert!(seconds <= took, "{seconds} s of {took} s");
}
