//! A receiver that asks its user before each transfer (`--confirm`).

use std::fs;
use std::io::Write;
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::resume::{MIB, Protection, Relay, source};
use crate::support::{Ended, Running, finish};

/// A receiver whose user types.
struct Asking {
    dir: tempfile::TempDir,
    running: Running,
    keyboard: Option<ChildStdin>,
    address: String,
    protection: Protection,
}

impl Asking {
    fn start(protection: Protection) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = protection.waiting_receiver();
        command.args(["--confirm", "--listen", "127.0.0.1:0", "--dir"]);
        let mut running = Running::start(command.arg(dir.path()).stdin(Stdio::piped()));
        let address = running.line()["address"].as_str().unwrap().to_owned();
        let keyboard = running.child.stdin.take();
        Self {
            dir,
            running,
            keyboard,
            address,
            protection,
        }
    }

    fn type_line(&mut self, line: &str) {
        writeln!(self.keyboard.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Ends it: what it said.
    fn end(self) -> Ended {
        self.running.signal(rustix::process::Signal::INT);
        self.running.wait()
    }
}

#[test]
fn a_user_of_the_receiver_can_decline() {
    for (answer, code) in [("n", 1), ("y", 0)] {
        let (_source, path, _) = source(1000);
        let mut receiver = Asking::start(Protection::Clear);
        receiver.type_line(answer);
        let mut command = receiver.protection.command("send");
        let sent = finish(command.arg(path).arg(&receiver.address));
        assert_eq!(sent.code, Some(code), "{sent:?}");
        assert_eq!(receiver.dir.path().join("file").exists(), code == 0);
        assert!(code == 0 || sent.stderr.contains("declined"), "{sent:?}");
    }
}

#[test]
fn a_receiver_whose_input_has_ended_says_that_nobody_was_asked() {
    let (_source, path, _) = source(1000);
    let mut receiver = Asking::start(Protection::Clear);
    receiver.keyboard = None;
    let mut command = receiver.protection.command("send");
    let sent = finish(command.arg(path).arg(&receiver.address));
    assert_eq!(sent.code, Some(1), "{sent:?}");
    let words = "nobody can be asked at the receiver: its standard input has ended";
    assert!(sent.stderr.contains(words), "{sent:?}");
    assert!(!sent.stderr.contains("declined it"), "{sent:?}");
    receiver.end();
    // Known before anything is sent.
    let mut command = Protection::Clear.waiting_receiver();
    let refused = finish(command.args(["--confirm", "--listen", "127.0.0.1:0"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--confirm"), "{refused:?}");
}

#[test]
fn what_was_accepted_cannot_grow_at_will() {
    let source = tempfile::tempdir().unwrap();
    let folder = source.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a"), [1; 1000]).unwrap();
    for (more, code) in [(MIB / 2, 0), (3 * MIB, 1)] {
        let mut receiver = Asking::start(Protection::Clear);
        let mut command = receiver.protection.command("send");
        let sending = Running::start(command.arg(&folder).arg(&receiver.address));
        receiver
            .running
            .until_said("sends 1 file, 1000 B; take it?");
        fs::write(folder.join("b"), vec![2; more as usize]).unwrap();
        receiver.type_line("y");
        let sent = sending.wait();
        assert_eq!(sent.code, Some(code), "{sent:?}");
        let is_too_much = sent
            .stderr
            .contains("more than the 1000 bytes that it announced");
        assert_eq!(is_too_much, code != 0, "{sent:?}");
        receiver.end();
        fs::remove_file(folder.join("b")).unwrap();
    }
}

/// The first transfer is interrupted once, and the second one is another transfer.
fn asked_once_for_each(protection: Protection) {
    let (_source, path, content) = source(8 * MIB);
    let mut receiver = Asking::start(protection);
    let relay = Relay::to(receiver.address.parse().unwrap());
    // Whoever is asked again does not answer.
    receiver.type_line("y");
    receiver.keyboard = None;
    let mut command = receiver.protection.command("send");
    command.args(["--bwlimit", "40M", "--timeout", "4s"]);
    let sending = Running::start(command.arg(&path).arg(relay.address.to_string()));
    let part = || {
        let entries = fs::read_dir(receiver.dir.path()).unwrap().flatten();
        entries
            .map(|entry| entry.metadata().map_or(0, |found| found.len()))
            .max()
    };
    while part() < Some(2 * MIB) {
        std::thread::sleep(Duration::from_millis(5));
    }
    relay.epoch.fetch_add(1, Ordering::Relaxed);
    let sent = sending.wait();
    assert_eq!(sent.code, Some(0), "{sent:?}");
    assert!(sent.json()["reconnects"].as_u64().unwrap() > 0, "{sent:?}");
    assert!(fs::read(receiver.dir.path().join("file")).unwrap() == content);

    let mut command = receiver.protection.command("send");
    command.args(["--name", "other"]);
    let refused = finish(command.arg(&path).arg(&receiver.address));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let said = receiver.end().stderr;
    assert_eq!(said.matches("take it?").count(), 2, "{said}");
}

#[test]
fn a_transfer_that_goes_on_is_not_asked_about_again() {
    asked_once_for_each(Protection::encrypted());
}

#[test]
fn a_transfer_in_clear_text_that_goes_on_is_not_asked_about_again() {
    asked_once_for_each(Protection::Clear);
}
