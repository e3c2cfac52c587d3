//! What both sides say of a transfer, to people and to programs.

use std::fs;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use crate::support::{Receiver, noise};

/// The objects that a program printed, one a line.
fn objects(output: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    output.lines().map(parse).collect()
}

/// The bytes of the progress events among `objects`, which must be of `size` at most and grow.
fn progress(objects: &[Value], size: u64, more: &str) -> Vec<u64> {
    let events = objects
        .iter()
        .filter(|object| object["event"] == "progress");
    let bytes: Vec<u64> = events
        .map(|event| {
            assert_eq!(event["all_files"], 1, "{event}");
            assert!(event["files"].as_u64().unwrap() <= 1, "{event}");
            assert!(event["file"].as_str().unwrap().ends_with("data"), "{event}");
            assert!(event["silent_seconds"].as_f64().unwrap() >= 0.0, "{event}");
            assert!(!event[more].is_null(), "{event}");
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
