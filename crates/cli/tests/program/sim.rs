//! `tack sim` on small scenarios.

use std::fs;
use std::path::PathBuf;

use crate::support::{self, finish, tack};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use serde_json::Value;

const SCENARIO: &str = "
    name = 'small'
    duration = '2s'
    [wired]
    rate = '10Mbps'
    delay = '5ms'
    [[flow]]
    congestion = 'cubic'
    [[flow]]
    transport = 'udp'
    rate = '1Mbps'
";

struct Scratch {
    dir: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        let scratch = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        fs::write(scratch.path("small.toml"), SCENARIO).unwrap();
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn sim(&self, options: &[&str]) -> support::Ended {
        finish(tack().arg("sim").arg(self.path("small.toml")).args(options))
    }
}

/// A report without the one figure that differs between equal runs.
fn pure(line: &str) -> Value {
    let mut report: Value = serde_json::from_str(line).unwrap();
    assert!(report["wall_seconds"].as_f64().unwrap() > 0.0);
    report["wall_seconds"] = Value::Null;
    report
}

#[test]
fn json_lines_are_ordered_and_repeatable() {
    let scratch = Scratch::new();
    let runs = |jobs: &str| {
        let ended = scratch.sim(&[
            "--json",
            "--seeds",
            "3..5",
            "--jobs",
            jobs,
            "--set",
            "wired.loss=0.01",
        ]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout.lines().map(pure).collect::<Vec<_>>()
    };
    let (one, two) = (runs("1"), runs("2"));
    assert_eq!(one, two);
    let seeds: Vec<u64> = one
        .iter()
        .map(|run| run["seed"].as_u64().unwrap())
        .collect();
    assert_eq!(seeds, [3, 4, 5]);
    assert_eq!(one[0]["name"], "small");
    assert_eq!(one[0]["flows"].as_array().unwrap().len(), 2);
    assert_ne!(one[0]["trace_hash"], one[1]["trace_hash"]);
    let goodput = one[0]["flows"][1]["goodput_bps"].as_f64().unwrap();
    assert!((0.9e6..1.01e6).contains(&goodput), "{goodput}");
}

#[test]
fn tables_and_csv_have_a_line_for_each_flow() {
    let scratch = Scratch::new();
    let table = scratch.sim(&[]);
    assert_eq!(table.code, Some(0), "{table:?}");
    assert!(
        table.stdout.contains("goodput") && table.stdout.contains("cubic"),
        "{}",
        table.stdout
    );
    assert_eq!(table.stderr, "");
    let csv = scratch.sim(&["--csv", "--seeds", "1,2"]);
    let lines: Vec<&str> = csv.stdout.lines().collect();
    assert_eq!(lines.len(), 5, "{}", csv.stdout);
    let columns = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == columns));
}

#[test]
fn parquet_says_what_csv_says() {
    let scratch = Scratch::new();
    let out = scratch.path("runs.parquet");
    let ended = scratch.sim(&["--parquet", out.to_str().unwrap(), "--seeds", "1..3"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), ""),
        "{ended:?}"
    );
    let csv = scratch.sim(&["--csv", "--seeds", "1..3"]).stdout;
    let names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let reader = SerializedFileReader::new(fs::File::open(out).unwrap()).unwrap();
    let fields: Vec<String> = reader
        .metadata()
        .file_metadata()
        .schema()
        .get_fields()
        .iter()
        .map(|field| field.name().to_owned())
        .collect();
    assert_eq!(fields, names);
    let rows: Vec<_> = reader
        .get_row_iter(None)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(rows.len(), 6);
    let column = |name: &str| names.iter().position(|other| *other == name).unwrap();
    for (row, line) in rows.iter().zip(csv.lines().skip(1)) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(row.get_string(column("name")).unwrap(), cells[0]);
        assert_eq!(row.get_long(column("seed")).unwrap().to_string(), cells[1]);
        assert_eq!(
            row.get_double(column("goodput_bps")).unwrap().to_string(),
            cells[column("goodput_bps")]
        );
        assert_eq!(
            row.get_string(column("congestion"))
                .map_or("", String::as_str),
            cells[column("congestion")]
        );
    }
}

#[test]
fn series_and_captures_record_one_run() {
    let scratch = Scratch::new();
    let (series, pcap) = (scratch.path("series.csv"), scratch.path("packets.pcapng"));
    let (series_text, pcap_text) = (series.to_str().unwrap(), pcap.to_str().unwrap());
    let ended = scratch.sim(&[
        "--series",
        series_text,
        "--series-interval",
        "500ms",
        "--pcap",
        pcap_text,
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines = fs::read_to_string(&series).unwrap();
    assert!(
        lines.starts_with("time_s,flow,") && lines.lines().count() > 6,
        "{lines}"
    );
    let capture = fs::read(&pcap).unwrap();
    assert_eq!(
        &capture[..4],
        b"\x0a\x0d\x0d\x0a",
        "a pcapng section header"
    );
    assert!(capture.len() > 100_000);

    let ended = scratch.sim(&["--series", series_text, "--seeds", "1..2"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("one run"), "{}", ended.stderr);
}

#[test]
fn wrong_scenarios_are_named() {
    let scratch = Scratch::new();
    fs::write(
        scratch.path("bad.toml"),
        "[wired]\nrate = '10 parsecs'\n[[flow]]\n",
    )
    .unwrap();
    let bad = scratch.path("bad.toml");
    let missing = scratch.path("missing.toml");
    for (arguments, complaint) in [
        (vec![bad.to_str().unwrap()], "rate"),
        (vec![missing.to_str().unwrap()], "missing.toml"),
        (vec![bad.to_str().unwrap(), "--seeds", "9..1"], "9..1"),
        (
            vec![bad.to_str().unwrap(), "--json", "--csv"],
            "cannot be used with",
        ),
    ] {
        let ended = finish(tack().arg("sim").args(&arguments));
        assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:?}");
        assert!(
            ended.stderr.contains(complaint),
            "{arguments:?}: {}",
            ended.stderr
        );
        assert_eq!(ended.stdout, "");
    }
    let ended = scratch.sim(&["--set", "wired.colour=red"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("colour"), "{}", ended.stderr);
}

#[test]
fn closed_standard_output_ends_a_run_without_complaint() {
    let scratch = Scratch::new();
    let mut running = support::Running::start(
        tack()
            .arg("sim")
            .arg(scratch.path("small.toml"))
            .args(["--json", "--seeds", "1..4"]),
    );
    running.close_stdout();
    let ended = running.wait();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_scenario_may_come_from_standard_input() {
    use std::io::Write;
    let scratch = Scratch::new();
    let mut running = support::Running::start(
        tack()
            .args(["sim", "-", "--json"])
            .stdin(std::process::Stdio::piped()),
    );
    let mut input = running.child.stdin.take().unwrap();
    input.write_all(SCENARIO.as_bytes()).unwrap();
    drop(input);
    let piped = running.wait();
    assert_eq!(piped.code, Some(0), "{piped:?}");
    let named = scratch.sim(&["--json"]);
    assert_eq!(pure(&piped.stdout), pure(&named.stdout));
    let twice = finish(tack().args(["sim", "-", "-"]));
    assert_eq!(twice.code, Some(2), "{twice:?}");
}
