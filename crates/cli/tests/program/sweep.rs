//! `tack sweep`: a plan becomes a data set, whatever happens to the program meanwhile.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::pages::{browser, inspect};
use crate::support::{Ended, Running, finish, is_long, tack};

const PLAN: &str = "
seeds = 3
[scenario]
duration = '2s'
warmup = '200ms'
[scenario.wired]
rate = '50Mbps'
loss = 0.001
[[scenario.flow]]
[[axis]]
key = 'flow.0.ack'
values = ['tack', 'delayed:2']
[[axis]]
key = 'wired.delay'
from = '5ms'
to = '40ms'
count = 4
[columns]
acks_per_segment = 'acks / data_segments'
";

fn sweep(folder: &Path, arguments: &[&str]) -> Ended {
    let mut command = tack();
    command.current_dir(folder).arg("sweep").args(arguments);
    finish(&mut command)
}

/// A folder with the plan in it.
fn place(text: &str) -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("acks.toml"), text).unwrap();
    scratch
}

/// The Parquet files of the one plan in `results`.
fn files(results: &Path) -> Vec<(String, Vec<u8>)> {
    let part = fs::read_dir(results).unwrap().next().unwrap().unwrap();
    let mut files: Vec<_> = fs::read_dir(part.path())
        .unwrap()
        .map(|entry| {
            let path: PathBuf = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn a_plan_becomes_a_data_set_once() {
    let scratch = place(PLAN);
    let dry = sweep(scratch.path(), &["acks.toml", "--dry-run", "--json"]);
    assert_eq!(dry.code, Some(0), "{dry:?}");
    let estimate = dry.json();
    assert_eq!(
        (&estimate["points"], &estimate["missing"]),
        (&8.into(), &24.into())
    );
    assert!(estimate["estimated_seconds"].as_f64().unwrap() > 0.0);
    assert!(
        !scratch.path().join("sweep-results").exists(),
        "nothing is kept"
    );

    let first = sweep(scratch.path(), &["acks.toml"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(
        first
            .stdout
            .starts_with("acks: 8 points, 24 of 24 runs: 24 new in "),
        "{}",
        first.stdout
    );
    let results = scratch.path().join("sweep-results");
    let kept = files(&results);
    assert_eq!(kept.len(), 1);

    let again = sweep(scratch.path(), &["acks.toml", "--json", "--jobs", "1"]);
    let summary = again.json();
    assert_eq!(
        (&summary["new"], &summary["reused"], &summary["complete"]),
        (&0.into(), &24.into(), &true.into())
    );
    assert_eq!(files(&results), kept);
    let dry = sweep(scratch.path(), &["acks.toml", "--dry-run"]);
    assert!(
        dry.stdout
            .starts_with("acks: 8 points, 24 runs, 24 of them there already\n"),
        "{}",
        dry.stdout
    );

    // Another setting is another scenario.
    let other = sweep(
        scratch.path(),
        &["acks.toml", "--json", "--set", "duration=1s"],
    );
    assert_eq!(other.json()["new"], 24);
}

/// Whenever the program is killed, what it had written stays, and the rest is made up for: in the
/// end the data set has the same bytes as without any of it.
#[test]
fn a_killed_program_loses_only_what_was_under_way() {
    let (seeds, times) = if is_long() { (12, 12) } else { (4, 2) };
    let text = PLAN.replace("seeds = 3", &format!("seeds = {seeds}"));
    let whole = place(&text);
    let expected = sweep(whole.path(), &["acks.toml", "--out", "results"]);
    assert_eq!(expected.code, Some(0), "{expected:?}");
    let expected = files(&whole.path().join("results"));

    let scratch = place(&text);
    let mut present = 0;
    for number in 1..=times {
        let mut command = tack();
        command
            .current_dir(scratch.path())
            .args(["sweep", "acks.toml", "--out", "results"]);
        let mut running = Running::start(&mut command);
        std::thread::sleep(Duration::from_millis(number * 137 % 900 + 60));
        running.child.kill().unwrap();
        running.child.wait().unwrap();
        drop(running);
        let dry = sweep(
            scratch.path(),
            &["acks.toml", "--out", "results", "--dry-run", "--json"],
        );
        assert_eq!(
            (dry.code, dry.stderr.as_str()),
            (Some(0), ""),
            "no file is damaged"
        );
        let now = dry.json()["present"].as_u64().unwrap();
        assert!(now >= present, "{now} of {present} rows are left");
        present = now;
    }
    let last = sweep(scratch.path(), &["acks.toml", "--out", "results", "--json"]);
    assert_eq!(last.code, Some(0), "{last:?}");
    assert_eq!(last.json()["reused"], present);
    assert_eq!(files(&scratch.path().join("results")), expected);
}

#[test]
fn an_interrupt_keeps_what_is_done() {
    let text = PLAN.replace("seeds = 3", "seeds = 400");
    let scratch = place(&text);
    let mut command = tack();
    command
        .current_dir(scratch.path())
        .args(["sweep", "acks.toml", "--json"]);
    let running = Running::start(&mut command);
    let results = scratch.path().join("sweep-results");
    while !results.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = i32::try_from(running.child.id()).unwrap();
    let id = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let ended = running.wait();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let summary = ended.json();
    assert_eq!(summary["complete"], false);
    let rows = summary["rows"].as_u64().unwrap();
    assert!(rows > 0, "{summary}");
    let dry = sweep(scratch.path(), &["acks.toml", "--dry-run", "--json"]);
    assert_eq!(dry.json()["present"], rows);
}

#[test]
fn a_damaged_file_is_named() {
    let scratch = place(PLAN);
    sweep(scratch.path(), &["acks.toml"]);
    let results = scratch.path().join("sweep-results");
    let [(name, content)] = &files(&results)[..] else {
        panic!("one file");
    };
    let part = fs::read_dir(&results)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    fs::write(part.join(name), &content[..content.len() / 2]).unwrap();
    let again = sweep(scratch.path(), &["acks.toml", "--json"]);
    assert_eq!(again.code, Some(0));
    assert!(
        again.stderr.contains(name) && again.stderr.contains("damaged"),
        "{}",
        again.stderr
    );
    assert_eq!(again.json()["new"], 24);
    assert!(
        files(&results)
            .iter()
            .any(|file| file == &(name.clone(), content.clone()))
    );
}

#[test]
fn mistakes_have_their_place_and_code_2() {
    let scratch = place(&PLAN.replace("wired.delay", "wired.dealy"));
    let wrong = sweep(scratch.path(), &["acks.toml"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong
            .stderr
            .starts_with("tack: acks.toml:14: wired.dealy: unknown key; did you mean \"delay\"?"),
        "{}",
        wrong.stderr
    );
    let missing = sweep(scratch.path(), &["none.toml"]);
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("none.toml: cannot be read"),
        "{}",
        missing.stderr
    );
    let scratch = place(PLAN);
    let setting = sweep(scratch.path(), &["acks.toml", "--set", "wired.rat=5Mbps"]);
    assert!(
        setting.stderr.contains("--set: wired.rat: unknown key"),
        "{}",
        setting.stderr
    );
}

#[test]
fn a_report_shows_a_column_over_an_axis() {
    let scratch = place(PLAN);
    sweep(scratch.path(), &["acks.toml"]);
    let report = sweep(scratch.path(), &["report"]);
    assert_eq!(
        (report.code, report.stderr.as_str()),
        (Some(0), ""),
        "{report:?}"
    );
    assert_eq!(report.stdout.lines().count(), 5);
    let read = |name: &str| fs::read_to_string(scratch.path().join(name)).unwrap();
    let page = read("sweep-report/report.html");
    assert!(page.contains("acks_per_segment over wired.delay"));
    assert!(page.contains("Means of 3 runs each") && page.contains("<svg") && page.contains(" ± "));
    let points = read("sweep-report/points.csv");
    let lines: Vec<_> = points.lines().collect();
    assert_eq!(
        lines[0],
        "flow.0.ack,wired.delay,x,mean acks_per_segment,half_width,runs"
    );
    assert_eq!(lines.len(), 9);
    assert!(
        lines[1].starts_with("tack,5ms,0.005,0.0") && lines[1].ends_with(",3"),
        "{}",
        lines[1]
    );
    assert!(
        fs::read(scratch.path().join("sweep-report/plot.pdf"))
            .unwrap()
            .starts_with(b"%PDF")
    );

    let texts = [
        "report",
        "sweep-results",
        "--column",
        "goodput_bps",
        "--over",
        "flow.0.ack",
        "--out",
        "bars",
    ];
    assert_eq!(sweep(scratch.path(), &texts).code, Some(0));
    assert!(read("bars/plot.svg").contains("delayed:2"));
    for (arguments, expected) in [
        (
            &["report", "--column", "goodput"][..],
            "did you mean \"goodput_bps\"?",
        ),
        (
            &["report", "--over", "wired.rate"],
            "its axes are flow.0.ack, wired.delay",
        ),
        (&["report", "nowhere"], "there is no data set"),
    ] {
        let wrong = sweep(scratch.path(), arguments);
        assert_eq!(wrong.code, Some(2));
        assert!(wrong.stderr.contains(expected), "{}", wrong.stderr);
    }
}

#[test]
fn without_python_a_cluster_is_refused_and_said_why() {
    let scratch = place(PLAN);
    let on = |python: &Path| {
        let mut command = tack();
        command
            .current_dir(scratch.path())
            .args(["sweep", "acks.toml", "--dask", "tcp://127.0.0.1:1"])
            .env("TACK_PYTHON", python);
        finish(&mut command)
    };
    let none = on(Path::new("/nowhere/python"));
    assert_eq!(none.code, Some(2));
    assert!(
        none.stderr.contains("/nowhere/python cannot be started"),
        "{}",
        none.stderr
    );
    // Interpreters without the package, and with another version of it.
    let interpreter = |name: &str, text: &str| {
        let path = scratch.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&path, mode).unwrap();
        path
    };
    let bare = on(&interpreter(
        "bare",
        "echo \"No module named 'tack'\" >&2; exit 1",
    ));
    assert_eq!(bare.code, Some(2));
    assert!(bare.stderr.contains("No module named 'tack'") && bare.stderr.contains("pip install"));
    let old = on(&interpreter("old", "echo 0000"));
    assert_eq!(old.code, Some(2));
    assert!(
        old.stderr.contains("another version (code 0000)"),
        "{}",
        old.stderr
    );
    let url = sweep(
        scratch.path(),
        &["acks.toml", "--out", "s3://bucket/sweeps"],
    );
    assert_eq!(url.code, Some(2));
    assert!(url.stderr.contains("a URL needs --dask"), "{}", url.stderr);
}

/// The examples that the documentation shows.
#[test]
fn the_plans_of_this_project_can_be_run() {
    let plans = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/plans");
    let mut count = 0;
    for entry in fs::read_dir(plans).unwrap() {
        let path = entry.unwrap().path();
        let scratch = tempfile::tempdir().unwrap();
        let path = path.to_string_lossy();
        let dry = sweep(
            scratch.path(),
            &[&path, "--dry-run", "--json", "--set", "duration=600ms"],
        );
        assert_eq!(dry.code, Some(0), "{path}: {dry:?}");
        assert!(dry.json()["missing"].as_u64().unwrap() > 0);
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn the_report_of_a_sweep_renders() {
    let Some(mut browser) = browser() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("delays.toml");
    let text = r#"
        seeds = 2
        [scenario]
        duration = "300ms"
        wired = { rate = "20Mbps" }
        flow = [{}]
        [[axis]]
        key = "flow.0.ack"
        values = ["tack", "delayed:2"]
        [[axis]]
        key = "wired.delay"
        values = ["2ms", "10ms", "40ms"]
    "#;
    std::fs::write(&plan, text).unwrap();
    let data = folder.path().join("data");
    let swept = finish(tack().arg("sweep").arg(&plan).arg("--out").arg(&data));
    assert_eq!(swept.code, Some(0), "{swept:?}");
    let out = folder.path().join("report");
    let written = finish(
        tack()
            .args(["sweep", "report"])
            .arg(&data)
            .arg("--out")
            .arg(&out),
    );
    assert_eq!(written.code, Some(0), "{written:?}");
    let seen = inspect(&mut browser, &out.join("report.html"));
    assert_eq!(seen["plots"], 1, "the other is for narrow windows");
}
