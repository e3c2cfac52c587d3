//! Moving files with `tack` and with the tools people use, side by side in one run on one machine:
//!
//! ```text
//! cargo bench -p tack-cli --bench files                       # everything: takes an hour
//! cargo bench -p tack-cli --bench files -- --quick            # a tenth of each amount
//! cargo bench -p tack-cli --bench files -- --tools tack,rsync # some of the tools
//! ```
//!
//! It needs Linux and Debian's packages rsync and openssh-server; `wormhole` (PyPI: magic-wormhole
//! and magic-wormhole-mailbox-server) and `sendme` (crates.io) take part where they are installed.
//! All connections are on the loopback interface, servers of ssh and rsync are its own and have
//! free ports, keys are made for the run. Results are medians of the rounds, and ratios to `tack`.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark is where the clock is read"
)]

mod data;
mod process;
mod table;
mod tools;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;

use data::Data;
use table::Table;
use tools::{Tool, Update};

#[derive(Debug, Parser)]
struct Args {
    /// A tenth of each amount
    #[arg(long)]
    quick: bool,
    /// How often each copy is measured; the median counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these tools, separated by commas, by the beginning of their names
    #[arg(long, value_delimiter = ',')]
    tools: Vec<String>,
    /// Only these rows, separated by commas, by something in their names ("second run,resumed")
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Leave out these tools, by the beginning of their names
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Folder for data and copies: 3 GiB; a temporary one in the target folder unless given
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Also write the results to this file, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// What `cargo bench` passes
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let base = args
        .dir
        .clone()
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let work = tempfile::tempdir_in(&base).with_context(|| base.display().to_string())?;
    eprintln!("data in {}", work.path().display());
    let data = Data::make(work.path(), if args.quick { 10 } else { 1 })?;
    let (mut tools, mut missing) = tools::all(work.path(), &args.tools)?;
    let is_unwanted = |name: &str| args.without.iter().any(|other| name.starts_with(other));
    tools.retain(|tool| {
        let is_wanted = !is_unwanted(tool.name());
        if !is_wanted {
            missing.push((tool.name().to_owned(), "nobody wanted it".to_owned()));
        }
        is_wanted
    });
    for (name, why) in &missing {
        eprintln!("{name}: left out, because {why}");
    }

    let mut table = Table::default();
    for (workload, source) in data.workloads() {
        measure(&args, &mut table, &workload, &tools, |tool| {
            if !tool.copies() {
                return Ok(None);
            }
            let copy = Fresh::in_folder(work.path())?;
            let taken = timed(|| tool.copy(&source, copy.path(), Update::Nothing))?;
            data::compare(&source, copy.path())?;
            Ok(Some(taken))
        })?;
    }
    let small = data.small();
    let second = format!("{}, second run, nothing changed", data.small_name());
    measure(&args, &mut table, &second, &tools, |tool| {
        if !tool.updates() {
            return Ok(None);
        }
        let copy = Fresh::in_folder(work.path())?;
        tool.copy(&small, copy.path(), Update::Nothing)?;
        let taken = timed(|| tool.copy(&small, copy.path(), Update::Existing))?;
        data::compare(&small, copy.path())?;
        Ok(Some(taken))
    })?;
    let big = data.big();
    let resumed = format!("{}, resumed after kill -9 at half", data.big_name());
    measure(&args, &mut table, &resumed, &tools, |tool| {
        if !tool.resumes() {
            return Ok(None);
        }
        let copy = Fresh::in_folder(work.path())?;
        tool.cut_at_half(&big, copy.path())?;
        let taken = timed(|| tool.copy(&big, copy.path(), Update::Partial))?;
        data::compare(&big, copy.path())?;
        Ok(Some(taken))
    })?;

    println!("{table}");
    for (name, why) in &missing {
        println!("Left out: {name}, because {why}.");
    }
    if let Some(path) = &args.json {
        std::fs::write(path, table.json()).with_context(|| path.display().to_string())?;
    }
    ensure!(!table.has_failures(), "not everything could be measured");
    Ok(())
}

/// Measures a row: in each round every tool once, so that a change of the machine's load meets all
/// of them.
fn measure(
    args: &Args,
    table: &mut Table,
    workload: &str,
    tools: &[Box<dyn Tool>],
    mut one: impl FnMut(&dyn Tool) -> Result<Option<Duration>>,
) -> Result<()> {
    ensure!(args.rounds > 0, "--rounds 0: at least one round is needed");
    let is_wanted = |row: &String| workload.contains(row.as_str());
    if !args.rows.is_empty() && !args.rows.iter().any(is_wanted) {
        return Ok(());
    }
    for round in 0..args.rounds {
        for index in 0..tools.len() {
            let tool = tools[(index + round) % tools.len()].as_ref();
            let taken = match one(tool) {
                // One that fails here takes part again in the next row.
                Err(error) => {
                    let failed = format!("{workload} by {}: {error:#}", tool.name());
                    eprintln!("{failed}");
                    table.failed(failed);
                    None
                }
                Ok(taken) => taken,
            };
            if let Some(taken) = taken {
                eprintln!(
                    "{workload}, round {}: {} {:.2} s",
                    round + 1,
                    tool.name(),
                    taken.as_secs_f64()
                );
                table.add(workload, tool.name(), taken);
            }
        }
    }
    Ok(())
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    // Those that force their files to the disk must not wait for what others left in memory.
    rustix::fs::sync();
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

/// An empty folder for a copy, removed afterwards.
struct Fresh(tempfile::TempDir);

impl Fresh {
    fn in_folder(work: &Path) -> Result<Self> {
        Ok(Self(
            tempfile::Builder::new().prefix("copy-").tempdir_in(work)?,
        ))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}
