//! What both sides say of a transfer, to people and to programs.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use crate::meeting::Side;
use crate::support::{Receiver, noise};

/// The objects that a program printed, one a line.
fn objects(output: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    output.lines().map(parse).collect()
}

/// The bytes of the progress events among `objects`, all of them about `data`, of `size` bytes.
fn progress(objects: &[Value], size: u64, more: &str) -> Vec<u64> {
    let events = objects
        .iter()
        .filter(|object| object["event"] == "progress" && object["file"] != "");
    let bytes: Vec<u64> = events
        .map(|event| {
            assert_eq!(
                (&event["all_files"], &event["file_size"]),
                (&1.into(), &size.into()),
                "{event}"
            );
            assert!(event["files"].as_u64().unwrap() <= 1, "{event}");
            assert!(event["file"].as_str().unwrap().ends_with("data"), "{event}");
            assert!(event["silent_seconds"].as_f64().unwrap() >= 0.0, "{event}");
            assert!(!event[more].is_null(), "{event}");
            assert_eq!(event["bytes"], event["file_bytes"], "{event}");
            event["bytes"].as_u64().unwrap()
        })
        .collect();
    assert!(bytes.is_sorted() && bytes.iter().all(|bytes| *bytes <= size));
    bytes
}

#[test]
fn both_sides_tell_how_far_they_are_and_what_was_left_out() {
    const SIZE: u64 = 4_000_000;
    /// Bytes a second.
    const RATE: f64 = 1e6;
    let source = tempfile::tempdir().unwrap();
    let root = source.path().join("tree");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("data"), noise(1, SIZE as usize)).unwrap();
    fs::write(root.join("notes.tmp"), "excluded").unwrap();
    mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let receiver = Receiver::start(&["--once"]);
    let options = ["--json", "--exclude", "*.tmp", "--bwlimit", "8Mbps"];
    let sent = receiver.send(&[&options[..], &[root.to_str().unwrap()]].concat());
    let stored = fs::read(receiver.path("tree/data")).unwrap();
    let Receiver { running, .. } = receiver;
    let received = running.wait();
    assert_eq!(
        (sent.code, received.code),
        (Some(0), Some(0)),
        "{sent:?} {received:?}"
    );
    assert!(stored == noise(1, SIZE as usize));

    // The limit holds from the first byte on: what it makes up for is a fifth of a second.
    let seconds = sent.json()["seconds"].as_f64().unwrap();
    assert!(seconds >= SIZE as f64 / RATE - 0.3, "{seconds} s");
    let here = progress(&objects(&sent.stdout), SIZE, "reconnecting");
    let there = progress(&objects(&received.stdout), SIZE, "peer");
    for bytes in [&here, &there] {
        assert!(
            bytes.iter().any(|bytes| (1..SIZE).contains(bytes)),
            "{here:?} {there:?}"
        );
    }

    assert!(sent.stderr.contains("pipe: skipped"), "{}", sent.stderr);
    for why in ["neither files nor folders nor links", "named by --exclude"] {
        let told = format!("the sender left out 1: {why}");
        assert!(received.stderr.contains(&told), "{}", received.stderr);
    }
    let (here, there) = (sent.json(), received.json());
    assert_eq!(
        (&here["skipped"], &here["excluded"]),
        (&1.into(), &1.into()),
        "{here}"
    );
    assert_eq!(
        there["skipped"].as_u64().unwrap() + there["excluded"].as_u64().unwrap(),
        2,
        "{there}"
    );
}

/// Waits for a file that a program writes.
fn content_of(path: &Path) -> String {
    for _ in 0..6_000 {
        if let Ok(text) = fs::read_to_string(path)
            && !text.is_empty()
        {
            return text;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("no {path:?}");
}

/// Ended with the test, however that ends.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn neither_ticket_nor_code_goes_to_the_journal() {
    for is_journal in [true, false] {
        let (alice, bob) = (Side::new(), Side::new());
        let (log, ticket) = (alice.path("log"), alice.path("ticket"));
        let stream = File::create(&log).unwrap();
        let metadata = stream.metadata().unwrap();
        // What systemd says of the stream that it connects; and one of another process.
        let inode = metadata.ino() + u64::from(!is_journal);
        let journal = format!("{}:{inode}", metadata.dev());
        let arguments = [
            "recv",
            "--once",
            "--dir",
            "inbox",
            "--listen",
            "127.0.0.1:0",
        ];
        let mut command = alice.command(&arguments);
        command.arg("--write-ticket").arg(&ticket);
        command.env("JOURNAL_STREAM", journal).stderr(stream);
        let mut receiver = Ending(command.spawn().unwrap());
        let secret = content_of(&ticket);
        let file = bob.path("file");
        fs::write(&file, "content").unwrap();
        let (file, by) = (file.to_str().unwrap(), ticket.to_str().unwrap());
        let sent = bob.run(&["send", file, "--ticket-file", by]);
        assert_eq!(sent.code, Some(0), "{sent:?}");
        assert!(receiver.0.wait().unwrap().success());
        let said = fs::read_to_string(&log).unwrap();
        assert_eq!(said.contains(secret.trim()), !is_journal, "{said}");
        assert_eq!(said.contains("--code"), !is_journal, "{said}");
        assert_eq!(
            said.contains("not written to the journal"),
            is_journal,
            "{said}"
        );
    }
}
