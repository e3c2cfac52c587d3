//! The arguments of `tack sim`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::values::interval;

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// Scenario files (TOML); - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Change a key of every scenario: wired.rate=10Mbps, flow.0.ack=every
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Seeds to run instead of each scenario's own: 7, 1..10, 1,5,9..12
    #[arg(long, value_name = "SEEDS")]
    pub(crate) seeds: Option<String>,
    /// Number of parallel runs [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Print one JSON object per run
    #[arg(long, group = "format")]
    pub(crate) json: bool,
    /// Print CSV, one line per flow and run
    #[arg(long, group = "format")]
    pub(crate) csv: bool,
    /// Write a Parquet file, one row per flow and run
    #[arg(long, value_name = "OUT", group = "format")]
    pub(crate) parquet: Option<PathBuf>,
    /// Write each flow's state over time as CSV; one run only
    #[arg(long, value_name = "OUT")]
    pub(crate) series: Option<PathBuf>,
    /// Time between the samples of --series
    #[arg(long, value_name = "DURATION", default_value = "100ms", value_parser = interval, requires = "series")]
    pub(crate) series_interval: Duration,
    /// Write the connections' events as JSON lines (qlog style); one run only
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,
    /// Write an event for each data segment that leaves or arrives, too
    #[arg(long, requires = "qlog")]
    pub(crate) segments: bool,
    /// Write all packets as a capture file (pcapng); one run only
    #[arg(long, value_name = "OUT")]
    pub(crate) pcap: Option<PathBuf>,
}
