//! The intervals of a test: they cover the whole of it, and have the bytes that the sum has.

use serde_json::Value;

use super::Server;
use crate::support::is_long;

/// Bytes of all intervals, of one role.
pub(super) fn sum(test: &Value, role: &str) -> u64 {
    let intervals = test["intervals"].as_array().unwrap().iter();
    let rows = intervals.flat_map(|interval| interval["streams"].as_array().unwrap());
    rows.filter(|row| row["role"] == role)
        .map(|row| row["bytes"].as_u64().unwrap())
        .sum()
}

#[test]
fn intervals_cover_the_whole_test() {
    let server = Server::start(&[]);
    // Ticks within the test, a tick at its very end, and none at all.
    for interval in ["200ms", "300ms", "20s"] {
        let test = server.json(&[
            "--time",
            "600ms",
            "--interval",
            interval,
            "--bidir",
            "-P",
            "2",
        ]);
        let last = test["intervals"].as_array().unwrap().last().unwrap();
        assert!(last["end"].as_f64().unwrap() >= 0.6, "{interval}: {last}");
        let (up, down) = (&test["summary"]["up"], &test["summary"]["down"]);
        assert_eq!(sum(&test, "sender"), up["bytes_sent"], "{interval}");
        assert_eq!(sum(&test, "receiver"), down["bytes_received"], "{interval}");
    }
    let test = server.json(&["--bytes", "1MiB", "--interval", "0s"]);
    assert_eq!(
        test["intervals"].as_array().unwrap().len(),
        0,
        "none were asked for"
    );
}

/// Seconds of the shortest interval.
fn shortest(test: &Value) -> f64 {
    let intervals = test["intervals"].as_array().unwrap().iter();
    let length =
        |interval: &Value| interval["end"].as_f64().unwrap() - interval["start"].as_f64().unwrap();
    intervals.map(length).fold(f64::MAX, f64::min)
}

#[test]
fn the_last_interval_has_its_true_length_and_every_interval_its_rows() {
    let (encrypted, clear) = (Server::start(&[]), Server::clear(&[]));
    let cases = [
        (&encrypted, &["-P", "3"][..]),
        (&clear, &["-u", "-b", "5M"]),
        (&encrypted, &[]),
        (&encrypted, &["-R"]),
        (&clear, &["-P", "3"]),
    ];
    for (server, options) in &cases[..if is_long() { 5 } else { 2 }] {
        let options = [&["-t", "500ms", "-i", "250ms"], *options].concat();
        let test = server.json(&options);
        let (summary, role, bytes) = match options.contains(&"-R") {
            true => (&test["summary"]["down"], "receiver", "bytes_received"),
            false => (&test["summary"]["up"], "sender", "bytes_sent"),
        };
        assert_eq!(sum(&test, role), summary[bytes], "{options:?}");
        // No tail of microseconds with a rate that no path has.
        assert!(shortest(&test) > 0.005, "{options:?}: {test}");
        for interval in test["intervals"].as_array().unwrap() {
            assert!(
                !interval["streams"].as_array().unwrap().is_empty(),
                "{options:?}: {interval}"
            );
        }
    }
}

/// A test of so many bytes ends when it ends: what comes soon after a look belongs to the interval
/// before it, and no interval has bytes and no length.
#[test]
fn a_test_of_so_many_bytes_has_no_interval_without_length() {
    let server = Server::start(&[]);
    for (interval, options) in [
        ("10ms", &["-n", "2M", "-b", "160M"][..]),
        ("1ms", &["-n", "64K"]),
        ("10ms", &["-k", "50"]),
    ] {
        let options = [options, &["-i", interval]].concat();
        let tenth = match interval {
            "10ms" => 0.001,
            _ => 0.000_1,
        };
        for _ in 0..if is_long() { 5 } else { 2 } {
            let test = server.json(&options);
            let summary = &test["summary"]["up"];
            assert_eq!(sum(&test, "sender"), summary["bytes_sent"], "{options:?}");
            assert!(shortest(&test) > 0.9 * tenth, "{options:?}: {test}");
        }
    }
}

#[test]
fn what_is_omitted_is_shown_and_not_counted() {
    let (encrypted, clear) = (Server::start(&[]), Server::clear(&[]));
    for (server, direction) in [(&encrypted, "--bidir"), (&clear, "--bidir"), (&clear, "-u")] {
        let options = [
            "-O", "300ms", "-t", "300ms", "-i", "100ms", "-b", "8M", direction,
        ];
        let test = server.json(&options);
        let up = &test["summary"]["up"];
        // 8 Mbit/s for 300 ms, and not for 600.
        let sent = up["bytes_sent"].as_f64().unwrap();
        assert!((200e3..450e3).contains(&sent), "{sent}");
        let intervals = test["intervals"].as_array().unwrap();
        let counted = serde_json::json!({
            "intervals": intervals.iter().filter(|interval| interval["omitted"] == false).collect::<Vec<_>>()
        });
        assert!(intervals.iter().any(|interval| interval["omitted"] == true));
        assert_eq!(sum(&counted, "sender"), up["bytes_sent"]);
    }
    let said = encrypted
        .test(&["-O", "100ms", "-t", "100ms", "-i", "100ms"])
        .stdout;
    assert!(said.contains("(omitted)"), "{said}");
}

#[test]
fn both_sides_omit_the_same_bytes() {
    const SIZE: u64 = 16 << 20;
    let (encrypted, clear) = (Server::start(&[]), Server::clear(&[]));
    let cases = [(&encrypted, "--bidir"), (&encrypted, "-R"), (&clear, "-P2")];
    for (server, direction) in &cases[..if is_long() { 3 } else { 1 }] {
        for limit in [["-n", "16M"], ["-t", "200ms"]] {
            let options = [&["-O", "150ms", "-i", "100ms", *direction][..], &limit].concat();
            let test = server.json(&options);
            let omitted = |omitted: bool| {
                let intervals = test["intervals"].as_array().unwrap().iter();
                intervals
                    .filter(|interval| interval["omitted"] == omitted)
                    .collect::<Vec<_>>()
            };
            assert!(!omitted(true).is_empty(), "{options:?}");
            let counted = serde_json::json!({ "intervals": omitted(false) });
            for (way, role, bytes) in [
                ("up", "sender", "bytes_sent"),
                ("down", "receiver", "bytes_received"),
            ] {
                let summary = &test["summary"][way];
                if summary.is_null() {
                    continue;
                }
                let sent = &summary["bytes_sent"];
                assert_eq!(sent, &summary["bytes_received"], "{options:?}, {way}");
                assert_eq!(sum(&counted, role), summary[bytes], "{options:?}, {way}");
                if limit[0] == "-n" {
                    let streams = if *direction == "-P2" { 2 } else { 1 };
                    assert_eq!(sent, SIZE * streams, "{options:?}, {way}");
                }
            }
        }
    }
}
