//! Transfers that end before they are complete: refused, killed, interrupted, without a peer.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::resume::{MIB, Protection, part, source};
use crate::support::{Receiver, Running, finish, noise, tack};

/// Waits until the receiver has something under way: bytes were sent and taken.
fn under_way(receiver: &Receiver) -> (Running, std::process::ChildStdin) {
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
                "600s",
                &address,
            ])
            .stdin(Stdio::piped()),
    );
    let mut input = sender.child.stdin.take().unwrap();
    // More than all buffers on the way hold together, so that the receiver has begun when this
    // returns.
    input.write_all(&noise(3, 24 << 20)).unwrap();
    (sender, input)
}

#[test]
fn more_senders_than_allowed_are_told_so() {
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("file");
    fs::write(&path, "x").unwrap();
    let receiver = Receiver::start(&["--max-transfers", "1", "--max-waiting", "0"]);
    let (first, input) = under_way(&receiver);
    let ended = receiver.send(&[path.to_str().unwrap()]);
    assert_eq!(ended.code, Some(5), "a code of its own: {ended:?}");
    assert!(ended.stderr.contains("--max-transfers"), "{}", ended.stderr);
    drop(input);
    assert_eq!(first.wait().code, Some(0));
    assert!(fs::read(receiver.path("half")).unwrap() == noise(3, 24 << 20));
}

#[test]
fn a_reader_that_does_not_read_our_output_does_not_make_us_deaf() {
    let source = tempfile::tempdir().unwrap();
    let root = source.path().join("names");
    fs::create_dir(&root).unwrap();
    for number in 0..1000 {
        fs::write(root.join(format!("{number}{}", "long".repeat(50))), "").unwrap();
    }
    // The summary is larger than the pipe to this test, which does not read it.
    let receiver = Receiver::start(&[]);
    assert_eq!(receiver.send(&[root.to_str().unwrap()]).code, Some(0));
    let second = receiver.send(&["--name", "second", root.to_str().unwrap()]);
    assert_eq!(second.code, Some(0), "{second:?}");
    receiver.running.signal(Signal::INT);
    let mut running = receiver.running;
    assert!(
        running.status().code().is_some(),
        "it does not end on a signal"
    );
}

#[test]
fn a_killed_sender_leaves_nothing() {
    let receiver = Receiver::start(&["--once", "--timeout", "3s"]);
    let (mut sender, input) = under_way(&receiver);
    sender.child.kill().unwrap();
    sender.child.wait().unwrap();
    drop(input);
    let Receiver { running, dir, .. } = receiver;
    let received = running.wait();
    assert_eq!(received.code, Some(1), "{received:?}");
    assert!(!received.json()["ok"].as_bool().unwrap());
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "something is left"
    );
}

#[test]
fn a_killed_receiver_leaves_nothing_and_the_sender_notices() {
    let receiver = Receiver::start(&["--once"]);
    let (sender, input) = under_way(&receiver);
    let Receiver {
        mut running, dir, ..
    } = receiver;
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let sent = sender.wait();
    drop(input);
    assert_eq!(sent.code, Some(1), "{sent:?}");
    assert!(sent.stderr.contains("receiver"), "{}", sent.stderr);
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "something is left"
    );
}

#[test]
fn signals_end_both_sides_cleanly() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let receiver = Receiver::start(&[]);
        let (sender, input) = under_way(&receiver);
        sender.signal(signal);
        let sent = sender.wait();
        assert_eq!(sent.code, Some(code), "{sent:?}");
        drop(input);

        let (sender, input) = under_way(&receiver);
        receiver.running.signal(signal);
        let Receiver { running, dir, .. } = receiver;
        let received = running.wait();
        assert_eq!(received.code, Some(code), "{received:?}");
        // The sender is not to blame.
        assert_eq!(received.json()["error"], "this receiver was stopped");
        assert!(
            received.stderr.contains("this receiver was stopped"),
            "{}",
            received.stderr
        );
        let sent = sender.wait();
        drop(input);
        assert_eq!(sent.code, Some(1), "{sent:?}");
        assert!(sent.stderr.contains("shutting down"), "{}", sent.stderr);
        assert!(sent.stderr.contains("goes on where"), "{}", sent.stderr);
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            0,
            "something is left"
        );
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a bound on a real process takes a real clock"
)]
fn nobody_waits_for_a_sender_that_was_stopped() {
    for protection in [Protection::Clear, Protection::encrypted()] {
        let (_source, path, _) = source(8 * MIB);
        let dir = tempfile::tempdir().unwrap();
        let mut command = protection.waiting_receiver();
        command.args(["--once", "--listen", "127.0.0.1:0", "--dir"]);
        let mut receiver = Running::start(command.arg(dir.path()));
        let address = receiver.line()["address"].as_str().unwrap().to_owned();
        let mut command = protection.command("send");
        let sender = Running::start(command.args(["--bwlimit", "20M"]).arg(path).arg(address));
        while part(dir.path()) < MIB {
            std::thread::sleep(Duration::from_millis(5));
        }
        let stopped = Instant::now();
        sender.signal(Signal::INT);
        assert_eq!(sender.wait().code, Some(130));
        assert_eq!(receiver.line()["event"], "transfer", "it may not return");
        let received = receiver.wait();
        assert_eq!(received.code, Some(1), "{received:?}");
        assert!(
            received.stderr.contains("the sender closed it"),
            "{received:?}"
        );
        assert!(stopped.elapsed() < Duration::from_secs(30), "it waited");
    }
}

#[test]
fn a_receiver_in_clear_text_is_waited_for() {
    let (_source, path, _) = source(1000);
    let address = {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().to_string()
    };
    let mut command = tack();
    command.args(["send", "--insecure", "--wait", "60s"]);
    let sender = Running::start(command.arg(&path).arg(&address));
    sender.until_said("waiting for it, ");
    let dir = tempfile::tempdir().unwrap();
    let mut command = tack();
    command.args(["recv", "--insecure", "--once", "--listen", &address]);
    let receiver = Running::start(command.arg("--dir").arg(dir.path()));
    let sent = sender.wait();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert_eq!(receiver.wait().code, Some(0));
}

#[test]
fn sending_to_nobody_ends_soon() {
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("file");
    fs::write(&path, "x").unwrap();
    // A socket that never answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let sent = finish(tack().args([
        "send",
        "--insecure",
        path.to_str().unwrap(),
        &address,
        "--connect-timeout",
        "500ms",
        "--json",
    ]));
    assert_eq!(sent.code, Some(3), "{sent:?}");
    assert!(sent.stderr.contains(&address), "{}", sent.stderr);
    assert_eq!(sent.json()["ok"], false);
    drop(silent);
    let sent = finish(tack().args([
        "send",
        "--insecure",
        path.to_str().unwrap(),
        &address,
        "--connect-timeout",
        "100s",
    ]));
    assert_eq!(sent.code, Some(3), "nobody has the port: {sent:?}");
    assert!(sent.stderr.contains("refused"), "{}", sent.stderr);
}

#[test]
fn closed_standard_output_is_no_error() {
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("file");
    fs::write(&path, "x").unwrap();
    let mut receiver = Receiver::start(&["--once"]);
    receiver.running.close_stdout();
    let mut sender = Running::start(
        tack()
            .args(["send", "--insecure", "--json"])
            .arg(&path)
            .arg(receiver.address.to_string()),
    );
    sender.close_stdout();
    let sent = sender.wait();
    assert_eq!((sent.code, sent.stderr.as_str()), (Some(0), ""));
    assert_eq!(receiver.running.wait().code, Some(0));
}
