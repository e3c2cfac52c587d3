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
            let text = fs::read_to_string(path).unwrap();
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
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
        assert_eq!(head["qlog_format"], "NDJSON");
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
    let received = data(&here, "transport:ack_received").unwrap();
    let counted = test["client"][0]["transport"]["acks_received"]
        .as_u64()
        .unwrap();
    assert!(
        received + 3 >= counted || !are_complete,
        "{received} of {counted}"
    );
    let hosts = |traces: &[Vec<Value>], host: &str| {
        let events = traces.iter().flat_map(|trace| &trace[1..]);
        events.into_iter().all(|event| event["host"] == host)
    };
    assert!(hosts(&there, "server") && hosts(&here, "client"));
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
