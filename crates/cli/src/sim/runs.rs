//! Runs side by side, results in order.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tack_sim::{Capture, Observers, Qlog, Report, RunError, Scenario, Series, run_jobs};

use crate::exit::Failure;
use crate::progress;

/// One run to do.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) seed: u64,
}

/// Files that record a run.
#[derive(Debug, Default)]
pub(crate) struct Recorders {
    /// State of the flows, and how often.
    pub(crate) series: Option<(BufWriter<File>, Duration)>,
    /// All packets.
    pub(crate) pcap: Option<BufWriter<File>>,
    /// What the connections did and why.
    pub(crate) qlog: Option<BufWriter<File>>,
    /// Also of each data segment.
    pub(crate) segments: bool,
}

/// Does all runs on `jobs` threads (one a processor by default) and gives `report` their results in
/// the order of `runs`. Says how many failed; each of those was named.
pub(crate) fn execute(
    runs: &[Run],
    jobs: Option<usize>,
    recorders: Recorders,
    mut report: impl FnMut(Report) -> Result<(), Failure>,
) -> Result<usize, Failure> {
    let bar = progress::runs(runs.len());
    let mut recorders = Some(recorders);
    let jobs_to_do: Vec<_> = runs
        .iter()
        .cloned()
        .map(|run| (run, recorders.take().unwrap_or_default()))
        .collect();
    let mut failed = 0;
    let mut output = Ok(());
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    run_jobs(
        jobs_to_do,
        jobs,
        |(run, recorders)| one(&run, recorders),
        |number, result| {
            bar.inc(1);
            waiting.insert(number, result);
            while let Some(result) = waiting.remove(&next) {
                next += 1;
                match result {
                    Some(Ok(result)) => {
                        output = bar.suspend(|| report(result));
                        if output.is_err() {
                            return ControlFlow::Break(());
                        }
                    }
                    Some(Err(error)) => {
                        failed += 1;
                        bar.suspend(|| eprintln!("tack: {error}"));
                    }
                    // The panic said why.
                    None => failed += 1,
                }
            }
            ControlFlow::Continue(())
        },
    )
    .map_err(|error| Failure::failed("cannot start threads", error))?;
    output?;
    bar.finish_and_clear();
    Ok(failed)
}

fn one(run: &Run, recorders: Recorders) -> Result<Report, RunError> {
    let began = Instant::now();
    let mut report = record(run, recorders)?;
    report.wall_seconds = began.elapsed().as_secs_f64();
    Ok(report)
}

fn record(run: &Run, recorders: Recorders) -> Result<Report, RunError> {
    let mut series = recorders
        .series
        .map(|(out, interval)| Series::new(out, interval))
        .transpose()?;
    let mut capture = recorders.pcap.map(Capture::new).transpose()?;
    let mut qlog = recorders.qlog.map(Qlog::new).transpose()?;
    if recorders.segments {
        qlog = qlog.map(Qlog::with_segments);
    }
    let mut observers = Observers::default();
    if let Some(series) = &mut series {
        observers = observers.with(series);
    }
    if let Some(capture) = &mut capture {
        observers = observers.with(capture);
    }
    if let Some(qlog) = &mut qlog {
        observers = observers.with(qlog);
    }
    tack_sim::run(&run.scenario, run.seed, &mut observers)
}
