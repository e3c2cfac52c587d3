//! `tack doctor` over emulated paths: each has the verdict that it was made for.
//!
//! The tests of the ordinary form are shorter and have one round. The comparison of policies, which
//! needs more and a machine that does nothing else, is left to the long form.

use serde_json::Value;

use crate::support::{Running, finish, is_long, tack};

/// What `tack doctor` says of data from a server behind such links. `None` where the machine did
/// not keep up with the emulation: then there is nothing to judge.
fn verdict(links: &[&str]) -> Option<Value> {
    let mut server = Running::start(tack().args([
        "perf",
        "--server",
        "--insecure",
        "--listen",
        "127.0.0.1:0",
        "--json",
    ]));
    let to = server.line()["address"].as_str().unwrap().to_owned();
    let mut relay = Running::start(
        tack()
            .args([
                "emulate",
                "--realtime",
                "--json",
                "--listen",
                "127.0.0.1:0",
                "--to",
            ])
            .arg(&to)
            .args(links),
    );
    let address = relay.line()["address"].as_str().unwrap().to_owned();
    let (time, rounds) = if is_long() { ("2s", "3") } else { ("1s", "1") };
    let ended = finish(
        tack()
            .args(["doctor", &address, "--insecure", "--reverse", "--json"])
            .args(["--time", time, "--rounds", rounds]),
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    relay.signal(rustix::process::Signal::INT);
    let trust = relay.wait().json()["trust"].clone();
    if trust["ok"] != true {
        tack_skip::skipped(format_args!(
            "the machine did not keep up with the emulated link: {trust}"
        ));
        return None;
    }
    Some(ended.json())
}

fn assert_limited_by(links: &[&str], limit: &str) {
    let Some(said) = verdict(links) else { return };
    let diagnosis = &said["diagnosis"];
    if limit == "shared_medium" && diagnosis["is_steady"] == false {
        tack_skip::skipped(format_args!(
            "other programs disturbed the comparison of policies: {said}"
        ));
        return;
    }
    assert_eq!(diagnosis["limited_by"], limit, "{said}");
    assert_eq!(diagnosis["findings"][0]["what"], limit);
    let policies = said["measured"]["policies"].as_array().unwrap();
    assert_eq!(policies.len(), 3);
    assert!(
        said["measured"]["idle"]["transactions"].as_u64() > Some(0),
        "{said}"
    );
    // Fewer ACKs than delayed:2 sends, on every path with a round trip of some milliseconds.
    let saved = diagnosis["tack"]["acks_saved_share"].as_f64().unwrap();
    assert!((0.1..1.0).contains(&saved), "{said}");
}

#[test]
fn acknowledgements_on_wifi_are_found_to_cost_capacity() {
    if !is_long() {
        return;
    }
    assert_limited_by(&["--wifi", "tack-n", "--delay", "20ms"], "shared_medium");
}

#[test]
fn a_slow_wire_with_a_long_queue_is_found_to_be_bloated() {
    let links = ["--wifi", "802.11ac", "--rate", "8Mbps", "--delay", "10ms"];
    let queue = ["--set", "wired.queue=600p"];
    assert_limited_by(&[&links[..], &queue].concat(), "bufferbloat");
}

#[test]
fn a_path_that_loses_segments_by_itself_is_found_to_do_so() {
    if !is_long() {
        return;
    }
    let links = ["--wifi", "802.11ac", "--rate", "40Mbps", "--delay", "10ms"];
    assert_limited_by(&[&links[..], &["--loss", "2%"]].concat(), "random_loss");
}

#[test]
fn a_peer_that_serves_no_tests_is_named() {
    let ended = finish(tack().args(["doctor", "127.0.0.1:9", "--insecure", "--json"]));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("127.0.0.1:9"), "{ended:?}");
}
