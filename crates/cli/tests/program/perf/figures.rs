//! What tests measure and print, and the options that say what to measure.

use std::net::SocketAddr;

use serde_json::Value;

use super::{Server, intervals::sum};
use crate::support::{Running, finish, is_long, tack};

#[test]
fn both_directions_move_the_bytes_asked_for() {
    const SIZE: u64 = 8 << 20;
    let server = Server::start(&[]);
    let up = server.json(&["--bytes", "8MiB"]);
    assert_eq!(up["summary"]["up"]["bytes_received"], SIZE);
    assert_eq!(up["summary"]["down"], Value::Null);
    let down = server.json(&["--bytes", "8MiB", "--reverse"]);
    assert_eq!(down["summary"]["down"]["bytes_received"], SIZE);
    assert_eq!(down["summary"]["up"], Value::Null);
    let both = server.json(&["--bytes", "8MiB", "--bidir"]);
    for (test, direction) in [(&up, "up"), (&down, "down"), (&both, "up"), (&both, "down")] {
        let summary = &test["summary"][direction];
        assert_eq!(
            (&summary["bytes_sent"], &summary["bytes_received"]),
            (&SIZE.into(), &SIZE.into())
        );
        assert!(summary["goodput_bps"].as_f64().unwrap() > 0.0);
        assert!(summary["data_segments"].as_u64().unwrap() >= SIZE / 1460);
        assert!(summary["acks_sent"].as_u64().unwrap() > 0);
        assert!(summary["srtt_us"].as_f64().unwrap() >= summary["min_rtt_us"].as_f64().unwrap());
        let limited = summary["limited"].as_object().unwrap();
        assert!(limited.contains_key(summary["limited_by"].as_str().unwrap()));
    }
}

#[test]
fn parallel_connections_with_settings_of_their_own() {
    let server = Server::start(&[]);
    let test = server.json(&[
        "--parallel",
        "3",
        "--time",
        "500ms",
        "--interval",
        "100ms",
        "--congestion",
        "cubic",
        "--ack",
        "delayed:8",
        "--mss",
        "1000",
        "--window",
        "256KiB",
    ]);
    assert_eq!(test["request"]["congestion"], "cubic");
    let (client, server_side) = (
        test["client"].as_array().unwrap(),
        test["server"].as_array().unwrap(),
    );
    assert_eq!((client.len(), server_side.len()), (3, 3));
    for (sender, receiver) in client.iter().zip(server_side) {
        assert_eq!(sender["sent"], receiver["received"]);
        assert!(sender["sent"].as_u64().unwrap() > 0);
        // The segment size asked for, less what options take of it.
        let mss = sender["transport"]["mss"].as_u64().unwrap();
        assert!((900..=1000).contains(&mss), "{mss}");
    }
    let intervals = test["intervals"].as_array().unwrap();
    assert!(!intervals.is_empty());
    assert_eq!(intervals[0]["streams"].as_array().unwrap().len(), 3);
    assert!(
        intervals
            .windows(2)
            .all(|pair| pair[0]["end"] == pair[1]["start"])
    );
}

/// The server alone sends datagrams: it says that it has sent all before it sends its results.
#[test]
fn datagrams_from_the_server_end() {
    let kinds = [
        &["-u", "-R", "-b", "20M", "-t", "200ms"][..],
        &["-u", "-R", "-k", "40"],
    ];
    // Several servers at the same time: their tests mostly wait.
    std::thread::scope(|scope| {
        for options in [kinds, kinds, kinds].into_iter().flatten() {
            scope.spawn(move || {
                let server = Server::clear(&[]);
                for _ in 0..2 {
                    let test = server.json(options);
                    let down = &test["summary"]["down"];
                    assert!(
                        down["bytes_received"].as_u64().unwrap() > 0,
                        "{options:?}: {test}"
                    );
                }
            });
        }
    });
}

#[test]
fn a_test_with_datagrams_counts_loss_and_jitter() {
    let server = Server::clear(&[]);
    let test = server.json(&[
        "-u", "-b", "2M", "-t", "400ms", "-l", "500", "-P", "2", "--bidir",
    ]);
    for direction in ["up", "down"] {
        let summary = &test["summary"][direction];
        let loss = &summary["datagrams"];
        let number = |name: &str| loss[name].as_f64().unwrap_or(f64::NAN);
        // 2 Mbit/s for 400 ms in datagrams of 500 bytes are 200 a stream.
        assert!((350.0..=450.0).contains(&number("sent")), "{loss}");
        assert_eq!(
            number("sent"),
            number("received") + number("lost"),
            "{loss}"
        );
        assert!(number("jitter_us") >= 0.0 && number("out_of_order") >= 0.0);
        assert_eq!(summary["bytes_sent"].as_f64(), Some(number("sent") * 500.0));
    }
    let said = server.test(&["-u", "-k", "20", "-b", "0"]).stdout;
    assert!(
        said.contains("of 20 datagrams lost") && said.contains("jitter"),
        "{said}"
    );
}

#[test]
fn a_bitrate_holds_for_connections() {
    let server = Server::start(&[]);
    let test = server.json(&["-b", "4M", "-t", "500ms"]);
    let sent = test["summary"]["up"]["bytes_sent"].as_f64().unwrap();
    // 250 kB, and a piece of 10 ms more at most.
    assert!((100e3..=256e3).contains(&sent), "{sent}");
}

#[test]
fn a_thousand_connections_at_once() {
    // In the ordinary form a quarter of them.
    let count = if is_long() { 1024 } else { 256_u64 };
    let server = Server::start(&[]);
    let test = server.json(&[
        "-P",
        &count.to_string(),
        "-n",
        "2K",
        "-i",
        "0",
        "--connect-timeout",
        "60s",
    ]);
    assert_eq!(test["summary"]["up"]["bytes_received"], count * 2048);
    assert_eq!(test["server"].as_array().unwrap().len() as u64, count);
}

#[test]
fn the_servers_view_comes_on_request() {
    let server = Server::start(&[]);
    let test = server.json(&["-t", "300ms", "-i", "100ms", "--get-server-output"]);
    let output = &test["server_output"]["json"];
    let there = serde_json::json!({"intervals": output});
    assert_eq!(
        sum(&there, "receiver"),
        test["summary"]["up"]["bytes_received"]
    );
    let said = server
        .test(&["-t", "200ms", "-i", "100ms", "--get-server-output"])
        .stdout;
    let (_, text) = said.split_once("server:").expect(&said);
    assert!(text.contains("receive"), "{said}");
}

#[test]
fn iperf3s_spellings_run_a_test_between_chosen_addresses() {
    let mut running =
        Running::start(tack().args(["perf", "-s", "-B", "127.0.0.1", "-p", "0", "-J", "-1"]));
    let address: SocketAddr = running.line()["address"].as_str().unwrap().parse().unwrap();
    let port = address.port().to_string();
    let ended = finish(tack().args([
        "perf",
        "-c",
        "localhost",
        "-4",
        "-p",
        &port,
        "-B",
        "127.0.0.2",
        "-P",
        "2",
        "-R",
        "-n",
        "1M",
        "-J",
    ]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.json()["summary"]["down"]["bytes_received"], 2 << 20);
    let served = running.line();
    let peer: SocketAddr = served["peer"].as_str().unwrap().parse().unwrap();
    assert_eq!(peer.ip().to_string(), "127.0.0.2");
    assert_eq!(running.wait().code, Some(0));
    let ended = finish(tack().args(["perf", "-c", "127.0.0.1", "-6"]));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("no IPv6 address"), "{}", ended.stderr);
}

#[test]
fn a_policy_that_is_asked_for_shows() {
    let server = Server::start(&[]);
    let test = |options: &[&str], coalesce: &str| {
        let test = server.json(&[&["--bytes", "8MiB"], options].concat());
        assert_eq!(test["request"]["coalesce"], coalesce, "{options:?}");
        let receiver = &test["server"][0]["transport"];
        let figure = |name: &str| receiver[name].as_f64().unwrap();
        figure("segments_received") / figure("acks_sent")
    };
    test(&[], "on");
    let every = test(&["--ack", "every"], "off");
    assert!(every < 1.2, "{every} segments an acknowledgement");
    let delayed = test(&["--ack", "delayed:8"], "off");
    assert!(delayed > 4.0, "{delayed} segments an acknowledgement");
    test(&["--ack", "every", "--coalesce", "on"], "on");
    let said = server.test(&["--bytes", "1MiB"]).stdout;
    assert!(said.contains("--coalesce off"), "{said}");
}

#[test]
fn lines_for_people() {
    let server = Server::start(&[]);
    let ended = server.test(&["--time", "500ms", "--interval", "200ms", "--bidir"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in [
        "role",
        "send",
        "receive",
        "0.00-",
        "bit/s",
        "up: limited by",
        "down: limited by",
        "processors:",
    ] {
        assert!(
            ended.stdout.contains(part),
            "{part} is missing in\n{}",
            ended.stdout
        );
    }
}

#[test]
fn wrong_usage_is_said_before_anything_happens() {
    for (arguments, complaint) in [
        (&["perf"][..], "expected an address, a ticket"),
        (&["perf", "laptop:", "--insecure"], "takes an address"),
        (&["perf", "--server", "127.0.0.1"], "cannot be used with"),
        (
            &["perf", "127.0.0.1", "--bidir", "--reverse"],
            "cannot be used with",
        ),
        (
            &["perf", "127.0.0.1", "--ack", "sometimes"],
            "one of: every",
        ),
        (&["perf", "127.0.0.1", "--time", "soon"], "duration"),
        (&["perf", "127.0.0.1", "--window", "100GiB"], "window"),
        (
            &["perf", "127.0.0.1", "-u"],
            "UDP tests (-u) are not encrypted",
        ),
    ] {
        let ended = finish(tack().args(arguments));
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(
            ended.stderr.contains(complaint),
            "{arguments:?}: {}",
            ended.stderr
        );
        assert_eq!(ended.stdout, "");
    }
}
