//! `tack sweep`: plans of scenarios and seeds, measured into a Parquet data set.

mod args;
mod report;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tack_sweep::{CODE_VERSION, Counts, Folder, Opened, Outcome, Plan, run_batch};

use crate::dask;
use crate::exit::{Exit, Failure};
use crate::printer::write_stdout;
use crate::progress;
use crate::signals::Signals;
pub(crate) use args::SweepArgs;
use args::{SweepCommand, SweepRunArgs};

/// Runs what the arguments name.
pub(crate) async fn run(args: SweepArgs) -> Result<Exit, Failure> {
    match args.command {
        Some(SweepCommand::Report(args)) => report::write(&args),
        None => sweep(args.run).await,
    }
}

/// Runs a plan. The first signal ends the sweep; what is done stays.
async fn sweep(args: SweepRunArgs) -> Result<Exit, Failure> {
    // The parser insists on it where no other command is named.
    let plan = args.plan.clone().unwrap_or_default();
    if let Some(address) = &args.dask {
        return on_workers(&args, &plan, address).await;
    }
    if args.out.to_string_lossy().contains("://") {
        return Err(Failure::usage(format!(
            "--out {}: a URL needs --dask; without it the data set is in a folder of this machine",
            args.out.display()
        )));
    }
    let mut signals = Signals::new()?;
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let mut work = tokio::task::spawn_blocking(move || measure(&args, &plan, &seen));
    let mut signal = None;
    let exit = loop {
        tokio::select! {
            done = &mut work => {
                break done.map_err(|error| Failure::failed("the sweep panicked", error))??;
            }
            exit = signals.next(), if signal.is_none() => {
                signal = Some(exit);
                stop.store(true, Ordering::Relaxed);
            }
        }
    };
    Ok(signal.unwrap_or(exit))
}

/// The Python package does the sweep on the workers of a scheduler, and prints what this program
/// would.
async fn on_workers(args: &SweepRunArgs, plan: &Path, address: &str) -> Result<Exit, Failure> {
    const RUNNER: dask::Runner = dask::Runner {
        module: "dask_runner",
        version: "code_version",
        code: CODE_VERSION,
    };
    let mut arguments = vec!["--out".into(), args.out.clone().into_os_string()];
    for setting in &args.overrides {
        arguments.extend(["--set".into(), setting.into()]);
    }
    if args.json {
        arguments.push("--json".into());
    }
    arguments.extend(["--".into(), plan.as_os_str().to_owned()]);
    dask::run(&RUNNER, address, arguments).await
}

fn measure(args: &SweepRunArgs, plan: &Path, stop: &Arc<AtomicBool>) -> Result<Exit, Failure> {
    let began = Instant::now();
    let plan = Plan::from_file(plan, &args.overrides).map_err(Failure::usage)?;
    let folder = Folder::new(&args.out);
    let opened = tack_sweep::open(plan, &folder)
        .map_err(|error| Failure::failed("cannot read the data set", error))?;
    for (path, why) in &opened.damaged {
        eprintln!(
            "tack: {}: {why}; its runs are repeated where needed",
            path.display()
        );
    }
    let jobs = args.jobs.map_or_else(processors, usize::from);
    if args.dry_run {
        return estimate(args, opened, &folder, jobs);
    }
    let damaged = opened
        .damaged
        .iter()
        .map(|(path, _)| path.clone())
        .collect();
    let name = opened.sweep.plan().name().to_owned();
    let present = opened.sweep.counts().done;
    let bar = progress::sweep_runs();
    // Time and rate are those of this call.
    bar.set_position(present as u64);
    bar.reset_eta();
    let mut lines = progress::Lines::new(bar.is_hidden(), args.lines);
    let outcome = tack_sweep::run_embedded(opened, &folder, jobs, stop, |counts: Counts| {
        bar.set_length(counts.runs as u64);
        bar.set_position(counts.done as u64);
        if let Some(line) = lines.next(Instant::now(), counts.done, counts.runs) {
            let seconds = began.elapsed().as_secs_f64();
            let rate = (counts.done - present) as f64 / seconds;
            let left = (counts.runs - counts.done) as f64 / rate;
            eprintln!("{line}, {rate:.1} a second, about {left:.0} s left");
        }
        ControlFlow::Continue(())
    });
    bar.finish_and_clear();
    let outcome = outcome.map_err(|error| Failure::failed("the sweep ended", error))?;
    say(
        args,
        &Summary::of(name, outcome, damaged, began.elapsed(), present),
    )
}

/// What a sweep has come to, as `--json` prints it.
#[derive(Serialize)]
struct Summary {
    plan: String,
    code: &'static str,
    folder: PathBuf,
    points: usize,
    /// Wanted by the plan.
    runs: usize,
    /// Rows of the plan that are there now.
    rows: usize,
    /// Runs of this call.
    new: usize,
    /// Rows that were there before.
    reused: usize,
    /// Of these, rows of other plans.
    copied: usize,
    failed: usize,
    failures: Vec<String>,
    /// Files that could not be read.
    damaged: Vec<PathBuf>,
    complete: bool,
    seconds: f64,
}

impl Summary {
    fn of(
        plan: String,
        outcome: Outcome,
        damaged: Vec<PathBuf>,
        took: Duration,
        present: usize,
    ) -> Self {
        let counts = outcome.counts;
        Self {
            plan,
            code: CODE_VERSION,
            folder: outcome.part,
            points: counts.points,
            runs: counts.runs,
            rows: outcome.rows.len(),
            new: counts.done - counts.failed - present,
            reused: present,
            copied: counts.copied,
            failed: counts.failed,
            failures: outcome.failures,
            damaged,
            complete: !outcome.is_stopped && counts.failed == 0,
            seconds: took.as_secs_f64(),
        }
    }
}

fn say(args: &SweepRunArgs, summary: &Summary) -> Result<Exit, Failure> {
    let Summary {
        plan,
        folder,
        points,
        runs,
        new,
        reused,
        copied,
        seconds,
        ..
    } = summary;
    for failure in &summary.failures {
        eprintln!("tack: {failure}");
    }
    if args.json {
        print_json(summary)?;
    } else {
        let others = match copied {
            0 => String::new(),
            copied => format!(" ({copied} of them by other plans)"),
        };
        let text = format!(
            "{plan}: {points} points, {} of {runs} runs: {new} new in {seconds:.1} s, {reused} from before{others}\n{}\n",
            summary.rows,
            folder.display()
        );
        write_stdout(text.as_bytes())?;
    }
    match summary.failed {
        0 if summary.complete => Ok(Exit::Done),
        // A signal says which.
        0 => Ok(Exit::Interrupted),
        failed => Err(Failure::plain(format!("{failed} of {runs} runs failed"))),
    }
}

/// What a dry run finds, as `--json` prints it.
#[derive(Serialize)]
struct Estimate {
    plan: String,
    code: &'static str,
    folder: PathBuf,
    points: usize,
    /// Combinations that are the same scenario as another.
    equal_points: u64,
    /// Wanted by the plan; with a stopping rule, as far as known.
    runs: usize,
    /// What a stopping rule may call for.
    most_runs: usize,
    present: usize,
    missing: usize,
    /// Of the runs that were tried, on one processor.
    seconds_per_run: Option<f64>,
    tried: usize,
    jobs: usize,
    /// Of the missing runs.
    estimated_seconds: Option<f64>,
}

/// Runs that a dry run tries, and the time after which it tries no more.
const TRIED: usize = 16;
const PATIENCE: Duration = Duration::from_secs(2);

fn estimate(
    args: &SweepRunArgs,
    opened: Opened,
    folder: &Folder,
    jobs: usize,
) -> Result<Exit, Failure> {
    let mut sweep = opened.sweep;
    let counts = sweep.counts();
    let missing = sweep.waiting();
    let began = Instant::now();
    let (mut tried, mut seconds) = (0, 0.0);
    for batch in sweep.spread(TRIED) {
        let result = run_batch(&batch.task, &AtomicBool::new(false))
            .and_then(|result| sweep.accept(&result))
            .map_err(|error| Failure::failed("cannot run a point", error))?;
        tried += 1;
        seconds += result.seconds;
        if began.elapsed() > PATIENCE {
            break;
        }
    }
    let plan = sweep.plan();
    let each = (tried > 0).then(|| seconds / tried as f64);
    let found = Estimate {
        plan: plan.name().into(),
        code: CODE_VERSION,
        folder: folder.root().join(plan.partition()),
        points: counts.points,
        equal_points: plan.equal_points(),
        runs: counts.runs,
        most_runs: plan.runs().1,
        present: counts.done,
        missing,
        seconds_per_run: each,
        tried,
        jobs,
        estimated_seconds: each.map(|each| each * missing as f64 / jobs as f64),
    };
    if args.json {
        print_json(&found)?;
        return Ok(Exit::Done);
    }
    let mut text = format!(
        "{}: {} points, {} runs, {} of them there already\n",
        found.plan, found.points, found.runs, found.present
    );
    if found.most_runs > found.runs {
        text += &format!(
            "the stopping rule may call for up to {} runs\n",
            found.most_runs
        );
    }
    if found.equal_points > 0 {
        text += &format!(
            "{} more combinations are the same scenarios as others\n",
            found.equal_points
        );
    }
    if let (Some(each), Some(total)) = (found.seconds_per_run, found.estimated_seconds) {
        text += &format!(
            "about {total:.0} s for {missing} runs on {jobs} processors: {each:.3} s each, as {tried} of them took\n"
        );
    }
    text += &format!("{}\n", found.folder.display());
    write_stdout(text.as_bytes())?;
    Ok(Exit::Done)
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value)
        .map_err(|error| Failure::failed("cannot print the summary", error))?;
    write_stdout(format!("{text}\n").as_bytes())
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}
