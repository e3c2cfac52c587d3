//! Runs side by side, results in order.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tack_sim::{Capture, Observers, Qlog, Report, RunError, Scenario, Series};

use crate::exit::Failure;

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
}

/// Does all runs on `jobs` threads (one a processor by default) and gives `report` their results in the order of `runs`.
/// Says how many failed; each of those was named.
pub(crate) fn execute(
    runs: &[Run],
    jobs: Option<usize>,
    recorders: Recorders,
    mut report: impl FnMut(Report) -> Result<(), Failure>,
) -> Result<usize, Failure> {
    let bar = progress_bar(runs.len());
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs.unwrap_or(0))
        .build()
        .map_err(|error| Failure::failed("cannot start threads", error))?;
    let (results_in, results) = mpsc::channel();
    let mut recorders = Some(recorders);
    for (number, run) in runs.iter().cloned().enumerate() {
        let results_in = results_in.clone();
        let recorders = recorders.take().unwrap_or_default();
        pool.spawn(move || {
            // Nobody listens any more once standard output is closed.
            let _ = results_in.send((number, one(&run, recorders)));
        });
    }
    drop(results_in);

    let mut failed = 0;
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    for (number, result) in results {
        bar.inc(1);
        waiting.insert(number, result);
        while let Some(result) = waiting.remove(&next) {
            next += 1;
            match result {
                Ok(result) => bar.suspend(|| report(result))?,
                Err(error) => {
                    failed += 1;
                    bar.suspend(|| eprintln!("tack: {error}"));
                }
            }
        }
    }
    bar.finish_and_clear();
    // A run whose thread died left no result.
    Ok(failed + (runs.len() - next))
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

fn progress_bar(runs: usize) -> ProgressBar {
    // Hides itself when standard error is no terminal.
    let bar =
        ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr_with_hz(5));
    if let Ok(style) =
        ProgressStyle::with_template("{bar:32} {pos}/{len} runs, {elapsed} ETA {eta}")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
