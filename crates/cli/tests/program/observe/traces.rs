//! Traces of real connections.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use super::Watched;
use crate::support::{finish, tack};

/// The files of a folder: what each line says.
fn traces(folder: &Path) -> Vec<Vec<Value>> {
    assert_eq!(
        fs::metadata(folder).unwrap().permissions().mode() & 0o777,
        0o700
    );
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            assert_eq!(
                fs::metadata(path).unwrap().permissions().mode() & 0o777,
                0o600
            );
            // A JSON text sequence (RFC 7464), which qvis knows by its name.
            assert_eq!(path.extension().unwrap(), "sqlog");
            let text = fs::read_to_string(path).unwrap();
            let mut records = text.split('\u{1e}');
            assert_eq!(records.next(), Some(""));
            records
                .map(|record| serde_json::from_str(record).unwrap())
                .collect()
        })
        .collect()
}

fn count(trace: &[Value], name: &str) -> u64 {
    trace.iter().filter(|line| line["name"] == name).count() as u64
}

#[test]
fn each_connection_has_a_file_with_all_that_it_did() {
    let scratch = tempfile::tempdir().unwrap();
    let (there, here) = (
        scratch.path().join("a/server"),
        scratch.path().join("client"),
    );
    let mut server = Watched::start(
        tack()
            .args([
                "perf",
                "--server",
                "--listen",
                "127.0.0.1:0",
                "--one-off",
                "--qlog",
            ])
            .arg(&there),
    );
    let address = server.address("listening on").to_string();
    let test = finish(
        tack()
            .args([
                "perf", &address, "--bytes", "8MiB", "--ack", "tack", "--json", "--qlog",
            ])
            .arg(&here),
    );
    assert_eq!(test.code, Some(0), "{test:?}");
    let (test_said, test) = (test.stderr.clone(), test.json());
    server.child.wait().unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut server.errors, &mut said).unwrap();
    // A machine that is busy otherwise: then the program says how many it lost.
    let is_complete = |said: &str| !said.contains("events are missing");
    let are_complete = is_complete(&said) && is_complete(&test_said);
    let (there, here) = (traces(&there), traces(&here));
    // The control connection, and the one of the data.
    assert_eq!((there.len(), here.len()), (2, 2));
    for trace in there.iter().chain(&here) {
        let (head, events) = trace.split_first().unwrap();
        assert_eq!(head["qlog_format"], "JSON-SEQ");
        assert_eq!(head["qlog_version"], "0.3");
        assert!(
            head["title"].as_str().unwrap().starts_with("tack perf: "),
            "{head}"
        );
        assert!(events.windows(2).all(|pair| {
            pair[0]["time"].as_f64().unwrap() <= pair[1]["time"].as_f64().unwrap()
        }));
    }
    let data = |traces: &[Vec<Value>], name: &str| traces.iter().map(|it| count(it, name)).max();
    let sent = data(&there, "tack:ack_sent").unwrap();
    let counted = test["server"][0]["transport"]["acks_sent"]
        .as_u64()
        .unwrap();
    // Handshakes leave before the program has the connection.
    assert!(
        sent <= counted && (sent + 3 >= counted || !are_complete),
        "{sent} of {counted}"
    );
    let received = data(&here, "recovery:metrics_updated").unwrap();
    let counted = test["client"][0]["transport"]["acks_received"]
        .as_u64()
        .unwrap();
    assert!(
        received + 3 >= counted || !are_complete,
        "{received} of {counted}"
    );
    let is_host = |traces: &[Vec<Value>], host: &str| {
        let mut heads = traces.iter().map(|trace| &trace[0]);
        heads.all(|head| head["trace"]["vantage_point"]["type"] == host)
    };
    assert!(is_host(&there, "server") && is_host(&here, "client"));
    let transport = &test["client"][0]["transport"];
    segments_are_there(&here, &there, transport, are_complete);
}

/// Each data segment is a packet on both sides, with the same number, and each that was sent is
/// acknowledged or lost.
fn segments_are_there(here: &[Vec<Value>], there: &[Vec<Value>], counted: &Value, complete: bool) {
    let data = |traces: &[Vec<Value>], name: &str| -> Vec<Value> {
        let of = |trace: &Vec<Value>| -> Vec<Value> {
            let is_data = |event: &&Value| {
                event["name"] == name && event["data"]["frames"][0]["frame_type"] == "stream"
            };
            trace.iter().filter(is_data).cloned().collect()
        };
        traces.iter().map(of).max_by_key(Vec::len).unwrap()
    };
    let number = |event: &Value| event["data"]["header"]["packet_number"].as_u64().unwrap();
    let (sent, arrived) = (
        data(here, "transport:packet_sent"),
        data(there, "transport:packet_received"),
    );
    let segments = counted["data_segments"].as_u64().unwrap();
    assert!(sent.len() as u64 <= segments && !sent.is_empty());
    let numbers: Vec<u64> = sent.iter().map(number).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    if !complete {
        return;
    }
    assert!(
        sent.len() as u64 + 3 >= segments,
        "{} of {segments}",
        sent.len()
    );
    let sent_bytes = |event: &Value| {
        let frame = &event["data"]["frames"][0];
        (
            number(event),
            frame["offset"].clone(),
            frame["length"].clone(),
        )
    };
    let left: std::collections::BTreeMap<_, _> = sent
        .iter()
        .map(sent_bytes)
        .map(|(number, offset, length)| (number, (offset, length)))
        .collect();
    for (number, offset, length) in arrived.iter().map(sent_bytes) {
        assert_eq!(left.get(&number), Some(&(offset, length)), "{number}");
    }
    let acked = here
        .iter()
        .flatten()
        .filter_map(|event| event["data"]["frames"][0]["acked_ranges"].as_array())
        .flatten()
        .map(|range| 1 + range[1].as_u64().unwrap() - range[0].as_u64().unwrap());
    assert!(acked.sum::<u64>() > 0);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let ended = finish(
        tack()
            .args(["perf", "127.0.0.1:9", "--qlog"])
            .arg(file.path()),
    );
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains(file.path().to_str().unwrap()),
        "{ended:?}"
    );
}
