//! Moving files with `tack` and with the tools people use, side by side in one run on one machine:
//!
//! ```text
//! cargo bench -p tack-cli --bench files                            # everything: an hour
//! cargo bench -p tack-cli --bench files -- --minutes 9 --longest 30    # what that time allows
//! cargo bench -p tack-cli --bench files -- --quick                 # a tenth of each amount
//! cargo bench -p tack-cli --bench files -- --tools tack,rsync      # some of the tools
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
use process::{LONGEST, TooLong};
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
    /// Minutes after which no further round of a row begins; the first one of each always does,
    /// and the short ones come first then
    #[arg(long)]
    minutes: Option<u32>,
    /// Seconds after which a copy is given up: "more than" that is its result
    #[arg(long)]
    longest: Option<u32>,
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
    ensure!(args.rounds > 0, "--rounds 0: at least one round is needed");
    let began = Instant::now();
    let budget = args
        .minutes
        .map(|minutes| Duration::from_secs(60 * u64::from(minutes)));
    if let Some(longest) = args.longest {
        LONGEST.get_or_init(|| Duration::from_secs(longest.into()));
    }
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

    let rows = rows(&data);
    let is_wanted = |row: &Row| {
        args.rows.is_empty()
            || args
                .rows
                .iter()
                .any(|wanted| row.name.contains(wanted.as_str()))
    };
    let mut rows: Vec<Row> = rows.into_iter().filter(is_wanted).collect();
    ensure!(!rows.is_empty(), "--rows: no row has such a name");
    let mut table = Table::default();
    for round in 0..args.rounds {
        if round > 0 {
            // If the time does not suffice for all, then for as many as possible.
            rows.sort_by_key(|row| row.cost);
        }
        for row in &mut rows {
            let left = budget.map(|budget| budget.saturating_sub(began.elapsed()));
            if round > 0 && left.is_some_and(|left| row.cost > left) {
                eprintln!("{}: no time for round {}", row.name, round + 1);
                continue;
            }
            let start = Instant::now();
            measure(row, round, &tools, work.path(), &mut table);
            row.cost = start.elapsed();
        }
    }

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

/// A row of the table.
struct Row {
    name: String,
    source: PathBuf,
    what: What,
    /// How long its last round took, all tools together.
    cost: Duration,
}

/// What is measured.
#[derive(Clone, Copy)]
enum What {
    FirstCopy,
    SecondRun,
    Resumption,
}

fn rows(data: &Data) -> Vec<Row> {
    let row = |name: String, source: PathBuf, what| Row {
        name,
        source,
        what,
        cost: Duration::ZERO,
    };
    let mut rows: Vec<Row> = data
        .workloads()
        .into_iter()
        .map(|(name, source)| row(name, source, What::FirstCopy))
        .collect();
    let second = format!("{}, second run, nothing changed", data.small_name());
    rows.push(row(second, data.small(), What::SecondRun));
    let resumed = format!("{}, resumed after kill -9 at half", data.big_name());
    rows.push(row(resumed, data.big(), What::Resumption));
    rows
}

/// Measures a row with every tool once.
fn measure(row: &Row, round: usize, tools: &[Box<dyn Tool>], work: &Path, table: &mut Table) {
    let name = &row.name;
    for index in 0..tools.len() {
        let tool = tools[(index + round) % tools.len()].as_ref();
        if table.is_given_up(name, tool.name()) {
            continue;
        }
        match one(row, tool, work) {
            // One that fails here takes part again in the next row.
            Err(error) => match error.downcast_ref::<TooLong>() {
                Some(TooLong(limit)) => {
                    eprintln!("{name}: {} {error}", tool.name());
                    table.give_up(name, tool.name(), *limit);
                }
                None => {
                    let failed = format!("{name} by {}: {error:#}", tool.name());
                    eprintln!("{failed}");
                    table.failed(failed);
                }
            },
            Ok(Some(taken)) => {
                eprintln!(
                    "{name}, round {}: {} {:.2} s",
                    round + 1,
                    tool.name(),
                    taken.as_secs_f64()
                );
                table.add(name, tool.name(), taken);
            }
            Ok(None) => {}
        }
    }
}

/// Measures a tool once; `None` if it takes no part in this row.
fn one(row: &Row, tool: &dyn Tool, work: &Path) -> Result<Option<Duration>> {
    let source = &row.source;
    let takes_part = match row.what {
        What::FirstCopy => tool.copies(),
        What::SecondRun => tool.updates(),
        What::Resumption => tool.resumes(),
    };
    if !takes_part {
        return Ok(None);
    }
    let copy = Fresh::in_folder(work)?;
    let update = match row.what {
        What::FirstCopy => Update::Nothing,
        What::SecondRun => {
            tool.copy(source, copy.path(), Update::Nothing)?;
            Update::Existing
        }
        What::Resumption => {
            tool.cut_at_half(source, copy.path())?;
            Update::Partial
        }
    };
    let taken = timed(|| tool.copy(source, copy.path(), update));
    if taken.is_err() {
        // What a server still writes must not come after the folder is removed.
        tools::until_quiet(copy.path())?;
    }
    let taken = taken?;
    data::compare(source, copy.path())?;
    Ok(Some(taken))
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
