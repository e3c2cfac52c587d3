//! Metrics, scraped and read by another parser.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use prometheus_parse::{Scrape, Value};

use super::Watched;
use crate::support::{PATIENCE, finish, tack};

/// A perf server with metrics: it, its address, and that of the metrics.
fn server() -> (Watched, SocketAddr, SocketAddr) {
    let mut server = Watched::start(tack().args([
        "perf",
        "--server",
        "--insecure",
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        "0",
    ]));
    let metrics = server.address("metrics at");
    let address = server.address("listening on");
    (server, address, metrics)
}

fn ask(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = Vec::new();
    // What hangs up while we still send may reset the connection.
    let _ = stream.write_all(request);
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

pub(crate) fn scrape(address: SocketAddr) -> (String, String) {
    let answer = ask(address, b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
    (head.to_owned(), body.to_owned())
}

/// The values of a counter or a gauge, by their labels.
pub(crate) fn values(scrape: &Scrape, name: &str) -> HashMap<String, f64> {
    let samples = scrape.samples.iter().filter(|it| it.metric == name);
    samples
        .map(|sample| {
            let mut labels: Vec<_> = sample.labels.values().cloned().collect();
            labels.sort_unstable();
            let value = match sample.value {
                Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => value,
                ref other => panic!("{other:?}"),
            };
            (labels.join(","), value)
        })
        .collect()
}

pub(crate) fn parsed(text: &str) -> Scrape {
    Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).unwrap()
}

#[test]
fn a_scrape_has_what_the_test_counted() {
    let (_server, address, metrics) = server();
    let test = finish(tack().args([
        "perf",
        &address.to_string(),
        "--insecure",
        "--bytes",
        "20MiB",
        "--ack",
        "tack",
        "--json",
    ]))
    .json();
    let (head, text) = scrape(metrics);
    assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"));
    assert!(text.ends_with("# EOF\n"), "{text}");
    let scrape = parsed(&text);
    let one = |name: &str| values(&scrape, name)[""];
    assert_eq!(one("tack_connections_opened_total"), 2.0);
    assert!(one("tack_read_bytes_total") >= f64::from(20 << 20));
    // The connections of the test and its control: what the test counted, and a little more.
    let kinds = &test["server"][0]["transport"]["acks_by_kind"];
    let acks = values(&scrape, "tack_acks_sent_total");
    let periodic = acks["count,tack"] + acks["tack,timer"];
    assert!(
        periodic >= kinds["tack"].as_f64().unwrap(),
        "{acks:?} {kinds}"
    );
    let all: f64 = acks.values().sum();
    let counted = test["server"][0]["transport"]["acks_sent"]
        .as_f64()
        .unwrap();
    assert!(
        (counted..counted + 100.0).contains(&all),
        "{acks:?} {counted}"
    );
    let segments = values(&scrape, "tack_segments_received_total");
    assert!(
        segments["data"] >= 20.0 * 1_048_576.0 / 1_460.0,
        "{segments:?}"
    );
    let detectors = values(&scrape, "tack_lost_segments_total");
    for detector in ["report", "overdue", "rack", "duplicate_acks", "timeout"] {
        assert!(detectors.contains_key(detector), "{detectors:?}");
    }
    let losses = values(&scrape, "tack_loss_episodes_total");
    assert!(losses.contains_key("acknowledgements") && losses.contains_key("timeout"));
    let rtt = scrape
        .samples
        .iter()
        .find(|it| it.metric == "tack_rtt_seconds");
    assert!(matches!(rtt.unwrap().value, Value::Histogram(ref buckets) if buckets.len() == 20));
    for name in [
        "tack_acks_avoided_total",
        "tack_ack_airtime_saved_seconds_total",
        "tack_retransmitted_segments_total",
        "tack_data_sent_bytes_total",
        "tack_connections",
    ] {
        assert!(one(name) >= 0.0, "{name}");
    }
    assert!(text.contains("tack_build_info{version="), "{text}");
    // A second look adds nothing to what is over.
    let again = parsed(&self::scrape(metrics).1);
    assert_eq!(values(&again, "tack_acks_sent_total"), acks);
}

#[test]
fn hostile_scrapers_are_harmless() {
    let (_server, address, metrics) = server();
    let status = |request: &[u8]| {
        let answer = ask(metrics, request);
        answer.split(' ').nth(1).map(str::to_owned)
    };
    let is = |code: &str| Some(code.to_owned());
    assert_eq!(status(b"GET / HTTP/1.1\r\n\r\n"), is("404"));
    assert_eq!(status(b"DELETE /metrics HTTP/1.1\r\n\r\n"), is("405"));
    assert_eq!(
        status(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        is("400")
    );
    let mut endless = b"GET /metrics HTTP/1.1\r\n".to_vec();
    endless.extend(b"X: y\r\n".repeat(100_000));
    // The answer may be lost by the reset; more than that nobody gets.
    for request in [&[b'A'; 100_000][..], &endless] {
        assert!(matches!(status(request).as_deref(), None | Some("431")));
    }
    // Those that say nothing have all places, and others are hung up on.
    let idle: Vec<_> = (0..40)
        .map(|_| TcpStream::connect(metrics).unwrap())
        .collect();
    let test = finish(tack().args([
        "perf",
        &address.to_string(),
        "--insecure",
        "--bytes",
        "1MiB",
    ]));
    assert_eq!(test.code, Some(0), "{test:?}");
    drop(idle);
    // Their places are free again once they are gone.
    let mut answer = String::new();
    while !answer.starts_with("HTTP/1.1 200") {
        answer = ask(metrics, b"GET /metrics HTTP/1.0\r\n\r\n");
    }
    assert!(
        answer.contains("tack_connections_opened_total 2"),
        "{answer}"
    );
}

#[test]
fn beyond_loopback_takes_a_word() {
    let at = [
        "perf",
        "--server",
        "--insecure",
        "--listen",
        "127.0.0.1:0",
        "--metrics",
    ];
    let refused = finish(tack().args(at).arg("0.0.0.0:0"));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--metrics-anywhere"), "{refused:?}");
    let nowhere = finish(tack().args(at).arg("localhost"));
    assert_eq!(nowhere.code, Some(2), "{nowhere:?}");
    let mut allowed = Watched::start(tack().args(at).args(["0.0.0.0:0", "--metrics-anywhere"]));
    let mut address = allowed.address("metrics at");
    address.set_ip([127, 0, 0, 1].into());
    assert!(scrape(address).1.contains("tack_connections 0"));
}
