//! `tack lab` on its cheapest figure.

use std::fs;
use std::path::Path;

use tack_lab::{Depth, Entry, FIGURES, Results};

use crate::browser::VIEWS;
use crate::pages::{REPORTS, browser, has_every_figure, inspect, look};
use crate::support::{Ended, finish, is_long, tack};

/// Standard error without progress, of which a slow machine sees some.
fn said(ended: &Ended) -> String {
    let lines = ended.stderr.lines();
    lines
        .filter(|line| !line.contains(" runs after "))
        .collect()
}

fn lab(results: &Path, arguments: &[&str]) -> Ended {
    finish(
        tack()
            .arg("lab")
            .args(arguments)
            .arg("--results")
            .arg(results),
    )
}

/// One measurement, because it takes longest, for all that is done with it.
#[test]
fn a_figure_is_measured_once_checked_reported_and_exported() {
    let scratch = tempfile::tempdir().unwrap();
    let results = scratch.path().join("results");
    is_measured_checked_and_reported(&results);
    is_exported(&results, &scratch.path().join("out"));
    if is_long() {
        damaged_lines_are_named_and_measured_again(&results);
    }
}

fn is_measured_checked_and_reported(results: &Path) {
    let lines = ["--progress-every", "0s"];
    let run = [&["run", "7", "--seeds", "1", "--jobs", "1"], &lines[..]].concat();
    let run = lab(results, &run);
    assert_eq!((run.code, said(&run).as_str()), (Some(0), ""));
    // An interval of no length ends with each run, except with the last, which the results follow.
    let told: Vec<_> = run
        .stderr
        .lines()
        .map(|line| line.split(" after ").next().unwrap())
        .collect();
    let expected: Vec<_> = (0..23)
        .map(|done| format!("tack: {done} of 23 runs"))
        .collect();
    assert_eq!(told, expected, "without a terminal progress is lines");
    assert!(run.stdout.starts_with("Figure 7: "), "{}", run.stdout);
    assert!(run.stdout.contains("  undecided   802.11b: goodput"));
    assert!(
        run.stdout
            .ends_with("8 claims: 4 calibrated, 4 inconclusive\n"),
        "what was fitted passes nothing, and one run decides nothing: {}",
        run.stdout
    );
    let journal = fs::read_to_string(results.join("points.jsonl")).unwrap();
    assert_eq!(journal.lines().count(), 23, "one run a calibration");
    let table = fs::read_to_string(results.join("results.csv")).unwrap();
    assert!(table.contains(",flows.0.goodput_bps,"));
    assert!(results.join("results.parquet").exists());

    let check = lab(results, &["check", "7", "--seeds", "1"]);
    assert_eq!((check.code, said(&check).as_str()), (Some(0), ""));
    assert_eq!(check.stdout, run.stdout);
    assert_eq!(
        fs::read_to_string(results.join("points.jsonl")).unwrap(),
        journal,
        "nothing was measured again"
    );

    let json = lab(results, &["check", "7", "--seeds", "1", "--json"]);
    let claims: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        claims[0]["verdict"], "inconclusive",
        "one run decides nothing"
    );

    let report = lab(results, &["report", "--seeds", "1"]);
    assert_eq!(report.code, Some(0));
    assert!(report.stderr.contains("not measured yet: 1 3 "));
    let page = fs::read_to_string(report.stdout.trim_end()).unwrap();
    let table = fs::read_to_string(results.join("claims.csv")).unwrap();
    assert!(table.starts_with("figure,command,code,claim,paper,ours,verdict,reason\n"));
    let document = fs::read_to_string(results.join("report.md")).unwrap();
    assert!(document.contains("Not measured yet."));
    assert!(page.contains("id=\"plot-7\"") || page.contains("id=\"plot-7-t\""));
    // Figure 7, and the closed forms of TCP/HACK's figures 1(a) and 1(b), which need no run.
    assert!(page.contains("3 of "), "one figure was measured");
}

/// Plots as files in the folder `out`, which does not exist yet.
fn is_exported(results: &Path, out: &Path) {
    let folder = out.to_str().unwrap();
    let export = |options: &[&str]| {
        let options = [&["export", "--seeds", "1", "--out", folder][..], options].concat();
        lab(results, &options)
    };
    let missing = export(&["7", "8"]);
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("not measured yet: 8"),
        "{}",
        missing.stderr
    );
    assert!(!out.exists());

    let all = export(&[]);
    assert_eq!((all.code, said(&all).as_str()), (Some(0), ""));
    let names: Vec<_> = all
        .stdout
        .lines()
        .map(|line| line.rsplit('/').next().unwrap())
        // Closed forms are there without a run.
        .filter(|name| !name.starts_with("figure-hack1"))
        .collect();
    let expected = [
        "figure-7.svg",
        "figure-7.pdf",
        "figure-7.csv",
        "figure-7-table.csv",
        "figure-7.parquet",
    ];
    assert_eq!(names, expected);
    let read = |name: &str| fs::read(out.join(name)).unwrap();
    assert!(read("figure-7.svg").starts_with(b"<svg "));
    let pdf = read("figure-7.pdf");
    assert!(
        pdf.starts_with(b"%PDF-") && pdf.len() > 4_000,
        "with its font"
    );
    assert!(read("figure-7.parquet").starts_with(b"PAR1"));
    let numbers = String::from_utf8(read("figure-7.csv")).unwrap();
    assert!(numbers.contains("802.11n,UDP,,,Mbit/s,2"), "{numbers}");

    let narrow = export(&["7", "--format", "pdf", "--width", "column"]);
    assert_eq!(narrow.stdout.lines().count(), 1);
    assert_ne!(read("figure-7.pdf"), pdf);
}

fn damaged_lines_are_named_and_measured_again(results: &Path) {
    let run = ["run", "7", "--seeds", "1", "--jobs", "1"];
    let journal = results.join("points.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let damaged = text.replacen("\"seed\"", "\"see", 1);
    fs::write(&journal, &damaged).unwrap();

    let report = lab(results, &["report", "--seeds", "1"]);
    assert!(report.stderr.contains("line 1"), "{}", report.stderr);
    let again = lab(results, &run);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(
        again.stderr.contains("points.jsonl: cannot read 1 line"),
        "{}",
        again.stderr
    );
    let grown = fs::read_to_string(&journal).unwrap();
    assert_eq!(grown.lines().count(), damaged.lines().count() + 1);
}

#[test]
fn recordings_are_read_before_anything_runs() {
    let scratch = tempfile::tempdir().unwrap();
    let (results, traces) = (
        scratch.path().join("results"),
        scratch.path().join("traces"),
    );
    fs::create_dir(&traces).unwrap();
    let folder = traces.to_str().unwrap();

    let run = lab(&results, &["run", "14", "--traces", folder]);
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr
            .contains("no recorded trace is there; expected files called NAME.down")
    );

    fs::write(traces.join("air.pitree-trace"), "0.2 30\n0.4 x\n").unwrap();
    for command in ["run", "check"] {
        let run = lab(&results, &[command, "14", "--traces", folder]);
        assert_eq!(run.code, Some(2));
        assert!(
            run.stderr
                .contains("air.pitree-trace: line 2: \"0.4 x\" should be"),
            "{}",
            run.stderr
        );
    }
    let report = lab(&results, &["report", "--traces", folder]);
    assert_eq!(report.code, Some(2));

    fs::write(traces.join("air.pitree-trace"), "0.2 30\n").unwrap();
    let other = lab(&results, &["run", "7", "--traces", folder]);
    assert_eq!(other.code, Some(2));
    assert!(other.stderr.contains("--traces applies to figure 14"));
}

#[test]
fn a_path_that_figure_kernel_does_not_have_is_named_with_those_that_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| {
        let run = lab(folder.path(), &[&["run"], arguments].concat());
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        run.stderr
    };
    let unknown = refused(&["kernel", "--path", "nowhere"]);
    for words in ["--path \"nowhere\"", "802.11ac", "policer 12 Mbit/s"] {
        assert!(unknown.contains(words), "{unknown}");
    }
    let excluded = refused(&["kernel", "--path", "policer", "--only", "n"]);
    assert!(excluded.contains("--only leaves"), "{excluded}");
    let other = refused(&["1", "--path", "policer"]);
    assert!(other.contains("--path apply to figure kernel"), "{other}");
}

#[test]
fn figures_are_listed_and_unknown_ones_refused() {
    let list = finish(tack().args(["lab", "list"]));
    assert_eq!(list.code, Some(0));
    for id in ["1 ", "5b ", "14 ", "S1 ", "S3 "] {
        assert!(
            list.stdout.lines().any(|line| line.starts_with(id)),
            "{id}: {}",
            list.stdout
        );
    }
    let scratch = tempfile::tempdir().unwrap();
    let unknown = lab(scratch.path(), &["run", "99"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown
            .stderr
            .contains("\"99\" is not a figure; expected one of 1, 3, 5a")
    );
    let nothing = lab(scratch.path(), &["run"]);
    assert_eq!(nothing.code, Some(2));
}

#[test]
fn a_report_on_a_folder_that_does_not_exist_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    let nowhere = scratch.path().join("nowhere");
    for command in [&["report"][..], &["export", "--out", "."]] {
        let report = lab(&nowhere, command);
        assert_eq!(report.code, Some(2), "{report:?}");
        assert!(
            report.stderr.contains("no such folder"),
            "{}",
            report.stderr
        );
    }
    assert!(!nowhere.exists());
}

#[test]
fn the_report_of_the_lab_renders_with_every_figure() {
    if !is_long() {
        return;
    }
    let Some(mut browser) = browser() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    std::fs::write(&file, &REPORTS[1]).unwrap();
    let missing = has_every_figure(&inspect(&mut browser, &file));
    assert_eq!(missing, [""; 0]);
}

/// In a browser of the width of a desk, plots have the width of the page; each can be saved, and
/// what was not measured is folded away.
#[test]
fn the_report_of_the_lab_uses_its_page() {
    let Some(mut browser) = browser() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    let depth = Depth::quick();
    let entries: Vec<_> = FIGURES
        .iter()
        .map(|figure| Entry {
            figure: *figure,
            depth: depth.clone(),
            outcome: (figure.id == "7").then(|| figure.reduce(&depth, &Results::default())),
        })
        .collect();
    std::fs::write(&file, tack_lab::page(&entries, "2026-01-01")).unwrap();
    let (seen, problems) = look(&mut browser, &file, VIEWS[0]);
    assert!(problems.is_empty(), "{problems:?}");
    assert!(
        seen["widest"].as_f64().unwrap() > 900.0,
        "{}",
        seen["widest"]
    );
    let names: Vec<_> = seen["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["figure-7.svg", "figure-7.csv"]);
    let folded = seen["folded"].as_array().unwrap();
    assert_eq!(folded.len(), FIGURES.len() - 1);
    assert!(folded.iter().all(|open| *open == false));
    // What a link saves can be opened.
    let page = format!(
        "<!doctype html><title>x</title><img alt=x src=\"{}\">",
        seen["files"][0]["url"].as_str().unwrap()
    );
    std::fs::write(&file, page).unwrap();
    browser.open(&file, VIEWS[0]);
    let size = browser.evaluate("document.querySelector('img').naturalWidth");
    assert_eq!(size, 800, "the SVG of the link is drawn");
}
