//! Output for the programs around iperf, and requests with responses.

use serde_json::Value;

use super::Server;

/// What `iperf3 -J` of version 3.12 printed.
fn theirs(name: &str) -> Value {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../py/tests/data/");
    let text = std::fs::read_to_string(format!("{file}{name}")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Every key of `theirs` is in `ours`, with a value of the same kind; of arrays the first elements
/// are compared.
fn assert_has(path: &str, ours: &Value, theirs: &Value) {
    // What a program of TCP sockets has to say and this one has not.
    const LEFT_OUT: [&str; 5] = [
        ".start.cookie",
        ".start.sock_bufsize",
        ".start.sndbuf_actual",
        ".start.rcvbuf_actual",
        ".start.fq_rate",
    ];
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in theirs {
                let path = format!("{path}.{key}");
                if LEFT_OUT.contains(&path.as_str()) {
                    continue;
                }
                let our_value = ours.get(key).unwrap_or_else(|| panic!("{path} is missing"));
                assert_has(&path, our_value, value);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            let (Some(ours), Some(theirs)) = (ours.first(), theirs.first()) else {
                assert_eq!(ours.is_empty(), theirs.is_empty(), "{path}");
                return;
            };
            assert_has(&format!("{path}[]"), ours, theirs);
        }
        (Value::Number(_), Value::Number(_))
        | (Value::String(_), Value::String(_))
        | (Value::Bool(_), Value::Bool(_)) => {}
        _ => panic!("{path}: {ours} is not of the kind of {theirs}"),
    }
}

fn whole(server: &Server, options: &[&str]) -> Value {
    let ended = server.test(&[options, &["--json=iperf3"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn iperf3s_json_has_every_field_that_iperf3_prints() {
    let server = Server::clear(&[]);
    let quick = ["--time", "600ms", "--interval", "200ms"];
    let up = whole(&server, &[&quick[..], &["-P", "2"]].concat());
    assert_has("", &up, &theirs("iperf3-tcp.json"));
    let sent = up["end"]["sum_sent"]["bytes"].as_u64().unwrap();
    assert_eq!(
        sent,
        up["tack"]["summary"]["up"]["bytes_sent"].as_u64().unwrap()
    );
    let streams = up["end"]["streams"].as_array().unwrap();
    let of_streams: u64 = streams
        .iter()
        .map(|stream| stream["sender"]["bytes"].as_u64().unwrap())
        .sum();
    assert_eq!((streams.len(), of_streams), (2, sent));
    let of_intervals: u64 = up["intervals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|interval| interval["sum"]["bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(of_intervals, sent);
    assert_eq!(up["start"]["connected"].as_array().unwrap().len(), 2);
    let down = whole(&server, &[&quick[..], &["--reverse"]].concat());
    assert_eq!(down["start"]["test_start"]["reverse"], 1);
    assert_eq!(
        down["end"]["sum_received"]["bytes"],
        down["tack"]["summary"]["down"]["bytes_received"]
    );
    let udp = whole(
        &server,
        &[&quick[..], &["--udp", "-b", "5M", "-R"]].concat(),
    );
    assert_has("", &udp, &theirs("iperf3-udp.json"));
    let both = whole(&server, &[&quick[..], &["--bidir"]].concat());
    assert_has("", &both, &theirs("iperf3-bidir.json"));
}

#[test]
fn iperf3s_json_tells_an_error_as_iperf3_does() {
    let server = Server::start(&["--max-duration", "1s"]);
    let ended = server.test(&["--time", "5s", "--json=iperf3"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    let error = json["error"].as_str().unwrap();
    assert!(error.contains("up to 1s"), "{error}");
    let ended = Server::start(&[]).test(&["--json=iperf4"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}

#[test]
fn iperf2s_csv_has_a_row_for_each_interval_and_one_for_the_whole() {
    let server = Server::start(&[]);
    let ended = server.test(&["--bytes", "8MiB", "--interval", "50ms", "--csv=iperf2"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let rows: Vec<Vec<&str>> = ended
        .stdout
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    let (last, intervals) = rows.split_last().unwrap();
    assert!(rows.iter().all(|row| row.len() == 9), "{ended:?}");
    assert!(rows.iter().all(|row| row[3] == "127.0.0.1"), "{ended:?}");
    let bytes: u64 = intervals
        .iter()
        .map(|row| row[7].parse::<u64>().unwrap())
        .sum();
    assert_eq!((last[7], bytes), ("8388608", 8 << 20));
    assert_eq!(last[4], server.address.port().to_string());
    let both = server.test(&["--bytes", "1MiB", "-P", "2", "--reverse", "--csv"]);
    let last = both.stdout.lines().last().unwrap();
    assert!(last.contains(",-1,0.0-"), "{both:?}");
}

#[test]
fn requests_are_answered_one_at_a_time_and_measured() {
    let server = Server::start(&[]);
    let test = server.json(&["--rr", "--time", "500ms", "--interval", "100ms"]);
    let rr = &test["summary"]["rr"];
    assert_eq!(test["summary"]["up"], Value::Null);
    let transactions = rr["transactions"].as_u64().unwrap();
    assert!(transactions > 10, "{rr}");
    // A request is answered after it came and before the next one leaves.
    assert_eq!(test["client"][0]["sent"], transactions);
    assert_eq!(test["server"][0]["received"], transactions);
    assert_eq!(test["server"][0]["sent"], test["client"][0]["received"]);
    let of_intervals: u64 = test["intervals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            it["streams"][0]["latency"]["transactions"]
                .as_u64()
                .unwrap()
        })
        .sum();
    assert_eq!(of_intervals, transactions);
    let percentile = |name: &str| rr[name].as_f64().unwrap();
    assert!(percentile("min_us") > 0.0);
    assert!(percentile("p50_us") <= percentile("p99_us"));
    assert!(percentile("p99_us") <= percentile("max_us"));
    let long = server.json(&[
        "--rr", "--length", "100KiB", "--bytes", "1000KiB", "-P", "2",
    ]);
    let rr = &long["summary"]["rr"];
    assert_eq!(rr["transactions"], 20);
    assert_eq!(rr["message_bytes"], 102_400);
    let text = server.test(&["--rr", "--time", "300ms"]);
    assert!(text.stdout.contains("rr: "), "{text:?}");
}

#[test]
fn requests_beside_bulk_data_are_on_a_connection_of_their_own() {
    let server = Server::start(&[]);
    let options = ["--rr=load", "--time", "600ms", "--omit", "200ms", "--bidir"];
    let test = server.json(&options);
    for direction in ["up", "down"] {
        let bytes = &test["summary"][direction]["bytes_received"];
        assert!(bytes.as_u64().unwrap() > 0, "{test}");
    }
    assert_eq!(test["client"].as_array().unwrap().len(), 2);
    let rr = &test["summary"]["rr"];
    assert_eq!(rr["connections"], 1);
    assert_eq!(
        rr["transactions"],
        test["client"][1]["latency"]["transactions"]
    );
    assert!(rr["transactions"].as_u64().unwrap() > 0, "{rr}");
    // The bulk connection's bytes are those of the direction; the other one counts there not.
    assert_eq!(
        test["summary"]["up"]["bytes_sent"],
        test["client"][0]["sent"]
    );
    let ended = server.test(&["--rr=load", "--bytes", "1MiB"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("ends by time"), "{ended:?}");
}
