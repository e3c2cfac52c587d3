//! The arguments of `tack sweep`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::lab::PlotWidth;
use crate::progress::LineArgs;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SweepArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SweepCommand>,
    #[command(flatten)]
    pub(crate) run: SweepRunArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SweepCommand {
    /// Plot a column of a data set over an axis, with intervals
    Report(SweepReportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SweepReportArgs {
    /// Folder of the data set, or of one plan in it
    #[arg(value_name = "FOLDER", default_value = "sweep-results")]
    pub(crate) folder: PathBuf,
    /// Column to show [default: that of the stopping rule, the first derived one, or goodput_bps]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) column: Option<String>,
    /// Key of the plan's axis for the x axis of the plot [default: the one with the most values]
    #[arg(long, value_name = "KEY")]
    pub(crate) over: Option<String>,
    /// Key of the plan's axis whose values become the lines of the plot [default: the one with the
    /// fewest values]
    #[arg(long, value_name = "KEY")]
    pub(crate) by: Option<String>,
    /// Width of the SVG and PDF plots: page (7 inches) or column (3.5 inches)
    #[arg(long, value_enum, default_value_t = PlotWidth::Page)]
    pub(crate) width: PlotWidth,
    /// Output folder
    #[arg(long, value_name = "DIR", default_value = "sweep-report")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SweepRunArgs {
    /// Plan file (TOML): scenario, axes, seeds, derived columns
    #[arg(value_name = "PLAN", required = true)]
    pub(crate) plan: Option<PathBuf>,
    /// Folder of the data set, with --dask also a URL; finished runs in it are not repeated
    #[arg(long, value_name = "DIR", default_value = "sweep-results")]
    pub(crate) out: PathBuf,
    /// Change a key of every scenario: duration=1s, wired.queue=100p
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Number of parallel runs [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) lines: LineArgs,
    /// Let the workers of a Dask scheduler do the runs, such as tcp://10.0.0.1:8786; needs Python
    /// with the package tack (TACK_PYTHON names the interpreter)
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["jobs", "dry_run"])]
    pub(crate) dask: Option<String>,
    /// Count the points and runs, and estimate the time from a few runs; keep nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
