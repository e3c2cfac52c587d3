//! `tack sim`: scenario files and seeds in, tables out.

mod args;
mod columns;
mod output;
mod runs;

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use tack_sim::{Scenario, parse_seeds};

use crate::exit::{Exit, Failure};
pub(crate) use args::SimArgs;
use output::{Format, Output};
use runs::{Recorders, Run};

/// Runs what the arguments name.
pub(crate) fn run(args: &SimArgs) -> Result<Exit, Failure> {
    let runs = plan(args)?;
    if (args.series.is_some() || args.pcap.is_some() || args.qlog.is_some()) && runs.len() != 1 {
        return Err(Failure::usage(format!(
            "--series, --pcap and --qlog record one run; these are {} (give one FILE and at most one seed)",
            runs.len()
        )));
    }
    let series = args.series.as_deref().map(create).transpose()?;
    let recorders = Recorders {
        series: series.map(|out| (out, args.series_interval)),
        pcap: args.pcap.as_deref().map(create).transpose()?,
        segments: args.segments,
        qlog: args.qlog.as_deref().map(create).transpose()?,
    };
    let format = match (&args.parquet, args.json, args.csv) {
        (Some(path), ..) => Format::Parquet(
            create(path)?
                .into_inner()
                .map_err(|error| Failure::plain(error.to_string()))?,
        ),
        (None, true, _) => Format::Json,
        (None, false, true) => Format::Csv,
        (None, false, false) => Format::Table,
    };
    let mut output = Output::new(format)?;
    let failed = runs::execute(&runs, args.jobs.map(usize::from), recorders, |report| {
        output.report(report)
    })?;
    output.finish()?;
    match failed {
        0 => Ok(Exit::Done),
        count => Err(Failure::plain(format!(
            "{count} of {} runs failed",
            runs.len()
        ))),
    }
}

/// Every scenario with every seed, in the order given.
fn plan(args: &SimArgs) -> Result<Vec<Run>, Failure> {
    let seeds = args
        .seeds
        .as_deref()
        .map(parse_seeds)
        .transpose()
        .map_err(Failure::usage)?;
    if args
        .files
        .iter()
        .filter(|file| file.as_os_str() == "-")
        .count()
        > 1
    {
        return Err(Failure::usage("standard input (-) can be given only once"));
    }
    let mut runs = Vec::new();
    for file in &args.files {
        let scenario = if file.as_os_str() == "-" {
            let text = std::io::read_to_string(std::io::stdin())
                .map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
            Scenario::from_toml("standard input", &text, &args.overrides)
        } else {
            Scenario::from_file(file, &args.overrides)
        };
        let scenario = scenario.map_err(Failure::usage)?;
        let scenario = std::sync::Arc::new(scenario);
        let own = [scenario.seed];
        for &seed in seeds.as_deref().unwrap_or(&own) {
            runs.push(Run {
                scenario: std::sync::Arc::clone(&scenario),
                seed,
            });
        }
    }
    Ok(runs)
}

fn create(path: &Path) -> Result<BufWriter<File>, Failure> {
    File::create(path)
        .map(BufWriter::new)
        .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}
