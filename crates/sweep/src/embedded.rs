//! A sweep on the processors of this machine.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::folder::{Folder, FolderError};
use crate::parquet_file::ParquetError;
use crate::plan::Plan;
use crate::sweep::{Counts, Sweep};
use crate::table::Table;
use crate::task::{TaskError, run_batch};

/// What a sweep has come to.
#[derive(Debug)]
pub struct Outcome {
    /// Its part of the data set.
    pub part: PathBuf,
    /// How far it is.
    pub counts: Counts,
    /// Rows of the plan, in its order.
    pub rows: Table,
    /// Each run that failed: how to see it again, and what happened.
    pub failures: Vec<String>,
    /// Whether it was stopped before its end.
    pub is_stopped: bool,
}

/// Why a sweep cannot go on. What it had is kept.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The data set.
    #[error("{0}")]
    Folder(#[from] FolderError),
    /// A task, or its result.
    #[error("{0}")]
    Task(#[from] TaskError),
    /// The merged file.
    #[error("cannot merge the rows: {0}")]
    Parquet(#[from] ParquetError),
    /// The system gives no threads.
    #[error("cannot start threads: {0}")]
    Threads(std::io::Error),
}

/// What a sweep finds in the folder before it begins.
#[derive(Debug)]
pub struct Opened {
    /// With all that was found.
    pub sweep: Sweep,
    /// Files of the plan's part.
    names: Vec<String>,
    /// Files that do not count, with the folder's name: their runs are done again.
    pub damaged: Vec<(PathBuf, String)>,
    own_damaged: Vec<String>,
}

/// Reads what `folder` has of `plan`, and what other plans in it have of its runs.
///
/// # Errors
/// [`FolderError`] when files cannot be read.
pub fn open(plan: Plan, folder: &Folder) -> Result<Opened, FolderError> {
    let own = plan.partition();
    let mut sweep = Sweep::new(plan);
    let read = folder.read(&own)?;
    for (_, table, _) in &read.files {
        sweep.add_own(table);
    }
    let mut damaged = Vec::new();
    let mut note = |part: &str, files: &[(String, String)]| {
        let root = folder.root().join(part);
        damaged.extend(
            files
                .iter()
                .map(|(name, why)| (root.join(name), why.clone())),
        );
    };
    note(&own, &read.damaged);
    let own_damaged = read.damaged.into_iter().map(|(name, _)| name).collect();
    for part in folder.parts()? {
        if part != own && sweep.waiting() > 0 {
            let read = folder.read(&part)?;
            for (_, table, _) in &read.files {
                sweep.add_other(table);
            }
            note(&part, &read.damaged);
        }
    }
    Ok(Opened {
        sweep,
        names: read.files.into_iter().map(|(name, ..)| name).collect(),
        damaged,
        own_damaged,
    })
}

/// A task takes about so long, seconds: short enough that little is lost with it, long enough that
/// its file is worth its while.
pub const TASK_SECONDS: f64 = 1.0;

/// Most runs of a task.
pub const TASK_RUNS: usize = 1_000;

/// How many runs the next task has.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    wanted: f64,
    /// Time of a run, a mean in which the past fades.
    each: Option<f64>,
}

impl Pace {
    /// For tasks of `seconds`.
    pub const fn new(seconds: f64) -> Self {
        Self {
            wanted: seconds,
            each: None,
        }
    }

    /// Learns from a task.
    pub fn took(&mut self, runs: usize, seconds: f64) {
        if runs > 0 {
            let now = seconds / runs as f64;
            self.each = Some(self.each.map_or(now, |each| 0.7 * each + 0.3 * now));
        }
    }

    /// Runs of the next task, with `waiting` left for `workers`: the last ones are small, so that
    /// all end together.
    pub fn runs(&self, waiting: usize, workers: usize) -> usize {
        let Some(each) = self.each else {
            return 1;
        };
        let long = (self.wanted / each.max(1e-9)).min(TASK_RUNS as f64) as usize;
        long.min(waiting.div_ceil(2 * workers.max(1))).max(1)
    }
}

/// How often the caller hears about progress, at least.
const TICK: Duration = Duration::from_millis(50);

/// Does what is left of a sweep on `jobs` threads, and keeps it in `folder`. `hear` is called on
/// this thread, often, and may end the sweep; `stop` ends it too. Then the rows of finished runs
/// are kept.
///
/// # Errors
/// [`SweepError`] when rows cannot be kept, or when there are no threads.
pub fn run_embedded(
    opened: Opened,
    folder: &Folder,
    jobs: usize,
    stop: &Arc<AtomicBool>,
    mut hear: impl FnMut(Counts) -> ControlFlow<()>,
) -> Result<Outcome, SweepError> {
    let Opened {
        mut sweep,
        mut names,
        own_damaged,
        ..
    } = opened;
    let part = sweep.plan().partition();
    folder.set_aside(&part, &own_damaged)?;
    let jobs = jobs.clamp(1, sweep.waiting().max(1));
    let (tasks_in, tasks) = mpsc::channel::<Vec<u8>>();
    let tasks = Arc::new(Mutex::new(tasks));
    let (results_in, results) = mpsc::channel();
    let mut threads = Vec::new();
    for _ in 0..jobs {
        let (tasks, results_in, stop) = (Arc::clone(&tasks), results_in.clone(), Arc::clone(stop));
        let work = move || {
            loop {
                let next = match tasks.lock() {
                    Ok(tasks) => tasks.recv(),
                    Err(_) => return,
                };
                let Ok(task) = next else {
                    return;
                };
                if results_in.send(run_batch(&task, &stop)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("sweep".into());
        threads.push(thread.spawn(work).map_err(SweepError::Threads)?);
    }
    drop(results_in);
    let mut pace = Pace::new(TASK_SECONDS);
    let mut failures = Vec::new();
    let mut out = 0;
    let mut error = None;
    loop {
        let is_stopped = stop.load(Ordering::Relaxed);
        while !is_stopped
            && out < 2 * jobs
            && let Some(batch) = sweep.next_batch(pace.runs(sweep.waiting(), jobs))
        {
            out += 1;
            // The threads wait for it: they end when this end of the channel is dropped.
            let _ = tasks_in.send(batch.task);
        }
        if out == 0 {
            break;
        }
        match results.recv_timeout(TICK) {
            Ok(result) => {
                out -= 1;
                let kept = result.map_err(SweepError::from).and_then(|result| {
                    let accepted = sweep.accept(&result)?;
                    pace.took(accepted.runs, accepted.seconds);
                    failures.extend(accepted.failures);
                    if let Some(file) = accepted.file {
                        folder.put(&part, &file)?;
                        names.push(file.name);
                    }
                    Ok(())
                });
                if let Err(first) = kept {
                    // Nor could anything else be kept.
                    stop.store(true, Ordering::Relaxed);
                    error.get_or_insert(first);
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
        if hear(sweep.counts()).is_break() {
            stop.store(true, Ordering::Relaxed);
        }
    }
    drop(tasks_in);
    for thread in threads {
        // A panic in the simulator is caught before; there is nothing to learn from another.
        let _ = thread.join();
    }
    if let Some(error) = error {
        return Err(error);
    }
    let is_stopped = !sweep.is_done();
    if !is_stopped {
        if let Some(merged) = sweep.merged()?
            && names != [merged.name.as_str()]
        {
            folder.merge(&part, &merged, &names)?;
        }
        folder.clean(&part)?;
    }
    Ok(Outcome {
        part: folder.root().join(&part),
        counts: sweep.counts(),
        rows: sweep.rows(),
        failures,
        is_stopped,
    })
}
