//! Logs by level, as text and as JSON.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Watched;
use crate::meeting::Side;
use crate::support::{finish, tack};

#[test]
fn a_log_has_lines_of_its_levels() {
    let mut server = Watched::start(
        tack()
            .args(["perf", "--server", "--insecure", "--listen", "127.0.0.1:0"])
            .args(["--log", "debug", "--log-format", "json"]),
    );
    let address = server.address("listening on").to_string();
    let quiet = finish(
        tack()
            .args(["perf", &address, "--insecure", "--bytes", "1MiB"])
            .env("TACK_LOG", "error"),
    );
    assert_eq!(
        (quiet.code, quiet.stderr.as_str()),
        (Some(0), ""),
        "{quiet:?}"
    );
    // Connections are looked at once a second: their events come when they come.
    let mut events = BTreeMap::new();
    let wanted = [
        ("connection began", "DEBUG"),
        ("test ended", "INFO"),
        ("connection ended", "DEBUG"),
    ];
    while !wanted
        .iter()
        .all(|(message, _)| events.contains_key(*message))
    {
        let event: Value = serde_json::from_str(&server.line("\"message\":")).unwrap();
        assert!(event["timestamp"].is_string() && event["target"].is_string());
        events.insert(event["message"].as_str().unwrap().to_owned(), event);
    }
    for (message, level) in wanted {
        assert_eq!(events[message]["level"], level);
    }
    assert_eq!(events["test ended"]["received"], 1 << 20);
}

#[test]
fn a_level_that_does_not_exist_is_refused() {
    for wrong in ["loud", "tack::perf=loud"] {
        let ended = finish(tack().args(["peers", "--log", wrong]));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(
            ended.stderr.contains("expected error, warn, info"),
            "{ended:?}"
        );
        let ended = finish(tack().arg("peers").env("TACK_LOG", wrong));
        assert_eq!(ended.code, Some(2), "{ended:?}");
    }
}

/// Whatever level: tickets, codes and what they consist of are in no line of the log.
#[test]
fn logs_have_no_secrets() {
    let (server, client) = (Side::new(), Side::new());
    let scratch = tempfile::tempdir().unwrap();
    let (ticket, file) = (scratch.path().join("ticket"), scratch.path().join("file"));
    std::fs::write(&file, b"content").unwrap();
    let mut waiting = server.command(&["recv", "--dir", "inbox", "--listen", "127.0.0.1:0"]);
    waiting
        .args([
            "--once",
            "--no-code",
            "--log",
            "trace",
            "--log-format",
            "json",
            "--write-ticket",
        ])
        .arg(&ticket)
        .current_dir(scratch.path());
    let mut receiver = Watched::start(&mut waiting);
    receiver.line("listening on");
    let text = loop {
        match std::fs::read_to_string(&ticket) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => std::thread::yield_now(),
        }
    };
    let mut sending = client.command(&["send", "--log", "trace"]);
    let sent = finish(sending.arg("--ticket-file").arg(&ticket).arg(&file));
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let mut said = sent.stderr;
    std::io::Read::read_to_string(&mut receiver.errors, &mut said).unwrap();
    let logged: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with('{') || line.contains(" tack::"))
        .collect();
    assert!(
        logged.iter().any(|line| line.contains("let a peer in")),
        "{said}"
    );
    assert!(
        logged
            .iter()
            .any(|line| line.contains("received a transfer")),
        "{said}"
    );
    // Pieces of it as well as the whole.
    let secret = text.as_bytes();
    for piece in secret.windows(12).skip(5) {
        let piece = std::str::from_utf8(piece).unwrap();
        for line in &logged {
            assert!(!line.contains(piece), "{piece} of {text} is in {line}");
        }
    }
}
