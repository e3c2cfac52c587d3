//! The arguments of `tack sweep`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Plan file (TOML): scenario, axes, seeds, derived columns
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Folder of the data set; finished runs in it are not repeated
    #[arg(long, value_name = "DIR", default_value = "sweep-results")]
    pub(crate) out: PathBuf,
    /// Change a key of every scenario: duration=1s, wired.queue=100p
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Number of parallel runs [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Count the points and runs, and estimate the time from a few runs; keep nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
