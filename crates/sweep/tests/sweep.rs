//! Sweeps: batches in any order, interruptions, damage, and rows that other plans have.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tack_sweep::{
    Cell, Folder, Outcome, Plan, Sweep, SweepError, TaskError, open, run_batch, run_embedded,
};

const PLAN: &str = "
name = 'acks'
seeds = 2
[scenario]
duration = '200ms'
[scenario.wired]
loss = 0.01
[[scenario.flow]]
congestion = 'cubic'
[[axis]]
key = 'flow.0.ack'
values = ['tack', 'delayed:2']
[[axis]]
key = 'wired.delay'
values = ['5ms', '10ms', '20ms']
[columns]
acks_per_segment = 'acks / data_segments'
";

fn plan(text: &str) -> Plan {
    let files = |name: &str| Err(format!("{name} cannot be read"));
    Plan::from_toml("acks.toml", text, &[], &files).unwrap()
}

fn sweep(text: &str, root: &Path, jobs: usize) -> Outcome {
    let folder = Folder::new(root);
    let opened = open(plan(text), &folder).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    run_embedded(opened, &folder, jobs, &stop, |_| ControlFlow::Continue(())).unwrap()
}

/// Names and contents of the files of the plan.
fn files(root: &Path, text: &str) -> Vec<(String, Vec<u8>)> {
    let folder = root.join(plan(text).partition());
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn texts(outcome: &Outcome, column: &str) -> Vec<String> {
    let at = outcome.rows.find(column).unwrap();
    (0..outcome.rows.len())
        .map(|row| match outcome.rows.cell(row, at) {
            Cell::Text(text) => text,
            Cell::Integer(number) => number.to_string(),
            other => format!("{other:?}"),
        })
        .collect()
}

#[test]
fn rows_are_those_of_the_plan_in_its_order_and_are_not_measured_again() {
    let scratch = tempfile::tempdir().unwrap();
    let first = sweep(PLAN, scratch.path(), 2);
    assert_eq!(first.rows.len(), 12);
    assert_eq!(texts(&first, "seed")[..4], ["1", "2", "1", "2"]);
    assert_eq!(texts(&first, "wired.delay")[..3], ["5ms", "5ms", "10ms"]);
    assert_eq!(texts(&first, "flow.0.ack")[5..7], ["tack", "delayed:2"]);
    let kept = files(scratch.path(), PLAN);
    assert_eq!(kept.len(), 1, "merged: {kept:?}");

    // The numbers are the simulator's.
    let settings = ["flow.0.ack=delayed:2".into(), "wired.delay=20ms".into()];
    let text = "duration = '200ms'\n[wired]\nloss = 0.01\n[[flow]]\ncongestion = 'cubic'";
    let scenario = tack_sim::Scenario::from_toml("x.toml", text, &settings).unwrap();
    let report = tack_sim::run(&scenario, 2, &mut tack_sim::Observers::default()).unwrap();
    let row = first.rows.len() - 1;
    let cell = |name: &str| first.rows.cell(row, first.rows.find(name).unwrap());
    assert_eq!(cell("trace_hash"), Cell::Text(report.trace_hash.clone()));
    assert_eq!(
        cell("goodput_bps"),
        Cell::Float(report.flows[0].goodput_bps)
    );
    assert_eq!(cell("wired.delay_s"), Cell::Float(0.02));
    let ratio = report.flows[0].acks as f64 / report.flows[0].data_segments as f64;
    assert_eq!(cell("acks_per_segment"), Cell::Float(ratio));

    let again = sweep(PLAN, scratch.path(), 1);
    assert_eq!((again.counts.reused, again.counts.done), (12, 12));
    assert_eq!(again.rows, first.rows);
    assert_eq!(files(scratch.path(), PLAN), kept);

    let other = tempfile::tempdir().unwrap();
    sweep(PLAN, other.path(), 1);
    assert_eq!(
        files(other.path(), PLAN),
        kept,
        "the same bytes with any number of threads"
    );
}

#[test]
fn results_may_come_twice_late_or_not_at_all() {
    let mut sweep = Sweep::new(plan(PLAN));
    let stop = AtomicBool::new(false);
    let first = sweep.next_batch(5).unwrap();
    let second = sweep.next_batch(5).unwrap();
    assert_eq!((first.runs, second.runs, sweep.waiting()), (5, 5, 2));
    let result = run_batch(&second.task, &stop).unwrap();
    let accepted = sweep.accept(&result).unwrap();
    let file = accepted.file.unwrap();
    assert_eq!(accepted.runs, 5);
    tack_sweep::read_file(&file.name, file.content).unwrap();
    let twice = sweep.accept(&result).unwrap();
    assert_eq!((twice.file, twice.runs), (None, 0));

    // The first one is lost, and done by somebody else; then its result comes all the same.
    sweep.lost(&first.id);
    assert_eq!(sweep.waiting(), 7);
    let late = run_batch(&first.task, &stop).unwrap();
    assert_eq!(sweep.accept(&late).unwrap().runs, 0, "it is nobody's");
    while let Some(batch) = sweep.next_batch(3) {
        sweep
            .accept(&run_batch(&batch.task, &stop).unwrap())
            .unwrap();
    }
    assert!(sweep.is_done());
    let scratch = tempfile::tempdir().unwrap();
    self::sweep(PLAN, scratch.path(), 2);
    let merged = sweep.merged().unwrap().unwrap();
    assert_eq!(
        files(scratch.path(), PLAN),
        [(merged.name, merged.content)],
        "the same as without any of this"
    );
}

#[test]
fn what_is_no_task_or_result_is_refused() {
    let stop = AtomicBool::new(false);
    let mut sweep = Sweep::new(plan(PLAN));
    let batch = sweep.next_batch(1).unwrap();
    let result = run_batch(&batch.task, &stop).unwrap();
    for wrong in [&b""[..], b"{}", b"\n", &result[..result.len() - 1]] {
        assert!(matches!(sweep.accept(wrong), Err(TaskError::Format(_))));
        assert!(matches!(run_batch(wrong, &stop), Err(TaskError::Format(_))));
    }
    assert_eq!(sweep.accept(&result).unwrap().runs, 1);
    let text = String::from_utf8(batch.task).unwrap();
    let other = text.replace(tack_sweep::CODE_VERSION, "0000000000000000");
    let error = run_batch(other.as_bytes(), &stop).unwrap_err();
    assert!(
        error.to_string().contains("the same version of tack"),
        "{error}"
    );
}

#[test]
fn a_stopped_sweep_keeps_its_rows_and_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = Folder::new(scratch.path());
    let stop = Arc::new(AtomicBool::new(false));
    let opened = open(plan(PLAN), &folder).unwrap();
    let stopped = run_embedded(opened, &folder, 1, &stop, |counts| match counts.done {
        0..3 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    })
    .unwrap();
    assert!(stopped.is_stopped);
    assert!(
        stopped.rows.len() >= 3 && stopped.rows.len() < 12,
        "{}",
        stopped.rows.len()
    );
    let rest = sweep(PLAN, scratch.path(), 2);
    assert_eq!(rest.counts.reused, stopped.rows.len());
    let other = tempfile::tempdir().unwrap();
    sweep(PLAN, other.path(), 2);
    assert_eq!(files(scratch.path(), PLAN), files(other.path(), PLAN));
}

#[test]
fn a_damaged_file_is_named_and_its_runs_are_done_again() {
    let scratch = tempfile::tempdir().unwrap();
    sweep(PLAN, scratch.path(), 2);
    let whole = files(scratch.path(), PLAN);
    let folder = scratch.path().join(plan(PLAN).partition());
    let path = folder.join(&whole[0].0);
    let mut content = whole[0].1.clone();
    content[500] ^= 1;
    fs::write(&path, &content).unwrap();
    fs::write(folder.join("rows-0.parquet"), b"").unwrap();
    fs::write(folder.join("mine.parquet"), b"PAR1").unwrap();

    let opened = open(plan(PLAN), &Folder::new(scratch.path())).unwrap();
    let named: Vec<_> = opened
        .damaged
        .iter()
        .map(|(path, why)| format!("{}: {why}", path.display()))
        .collect();
    assert_eq!(named.len(), 3, "{named:?}");
    assert!(
        named
            .iter()
            .any(|line| line.contains(&whole[0].0) && line.contains("contents"))
    );
    assert!(
        named
            .iter()
            .any(|line| line.contains("mine.parquet: not a file of a sweep"))
    );

    let again = sweep(PLAN, scratch.path(), 2);
    assert_eq!((again.counts.reused, again.rows.len()), (0, 12));
    let names: Vec<_> = files(scratch.path(), PLAN)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert!(names.contains(&whole[0].0), "measured again: {names:?}");
    assert!(
        names.contains(&"mine.parquet.damaged".into()),
        "set aside: {names:?}"
    );
    assert!(
        open(plan(PLAN), &Folder::new(scratch.path()))
            .unwrap()
            .damaged
            .is_empty()
    );
}

#[test]
fn runs_of_another_plan_in_the_same_folder_are_taken_over() {
    let scratch = tempfile::tempdir().unwrap();
    sweep(PLAN, scratch.path(), 2);
    let other = "
        name = 'delays'
        seeds = 3
        [scenario]
        duration = '200ms'
        [scenario.wired]
        loss = 0.01
        [[scenario.flow]]
        congestion = 'cubic'
        ack = 'tack'
        [[axis]]
        key = 'wired.delay'
        values = ['10ms', '40ms']
        [columns]
        segments_per_ack = 'data_segments / acks'
    ";
    let outcome = sweep(other, scratch.path(), 2);
    assert_eq!((outcome.counts.copied, outcome.rows.len()), (2, 6));
    let alone = tempfile::tempdir().unwrap();
    assert_eq!(
        sweep(other, alone.path(), 1).rows,
        outcome.rows,
        "bit for bit"
    );
}

#[test]
fn a_stopping_rule_runs_as_many_seeds_as_an_interval_needs() {
    let text = |within: &str, max: u32| {
        PLAN.replace("200ms", "1s").replace(
            "seeds = 2\n",
            &format!("seeds = {{ column = 'bytes_delivered', within = '{within}', min = 3, max = {max} }}\n"),
        )
    };
    let scratch = tempfile::tempdir().unwrap();
    let loose = sweep(&text("100%", 20), scratch.path(), 2);
    assert_eq!(loose.rows.len(), 18, "three of each");
    let narrow = sweep(&text("5%", 20), scratch.path(), 2);
    assert!(narrow.rows.len() > 18, "{}", narrow.rows.len());
    assert_eq!(narrow.counts.reused, 18);
    let [column, point] = ["bytes_delivered", "point"].map(|name| narrow.rows.find(name).unwrap());
    for wanted in 0..6 {
        let values: Vec<f64> = (0..narrow.rows.len())
            .filter(|row| narrow.rows.cell(*row, point) == Cell::Integer(wanted))
            .map(|row| narrow.rows.cell(row, column).number().unwrap())
            .collect();
        let estimate = tack_sweep::Estimate::of(&values);
        assert!(
            values.len() == 20 || estimate.half_width <= 0.05 * estimate.mean,
            "{estimate} of {} seeds",
            values.len()
        );
    }
    // Neither the order of the runs nor what was there before decides which seeds these are.
    let other = tempfile::tempdir().unwrap();
    assert_eq!(sweep(&text("5%", 20), other.path(), 1).rows, narrow.rows);
    // A looser rule wants fewer rows, and deletes none.
    assert_eq!(sweep(&text("100%", 20), scratch.path(), 2).rows, loose.rows);
    assert_eq!(
        sweep(&text("5%", 20), scratch.path(), 2).counts.reused,
        narrow.rows.len()
    );
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    fs::write(&file, b"").unwrap();
    let folder = Folder::new(&file);
    let error = match open(plan(PLAN), &folder) {
        Err(error) => error.to_string(),
        Ok(opened) => {
            let stop = Arc::new(AtomicBool::new(false));
            let ended = run_embedded(opened, &folder, 1, &stop, |_| ControlFlow::Continue(()));
            assert!(matches!(ended, Err(SweepError::Folder(_))), "{ended:?}");
            ended.unwrap_err().to_string()
        }
    };
    assert!(error.contains("file"), "{error}");
}
