//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::demo::DemoArgs;
use crate::emulate::EmulateArgs;
use crate::exit::EXIT_CODES;
use crate::perf::PerfArgs;
use crate::transfer::{RecvArgs, SendArgs};
use crate::values::interval;

/// Reliable transport that is fast over Wi-Fi: move files, measure a path, run simulations.
#[derive(Debug, Parser)]
#[command(name = "tack", version, after_long_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send files and folders to a `tack recv`
    #[command(after_long_help = EXIT_CODES)]
    Send(SendArgs),
    /// Receive files and folders from `tack send`
    #[command(after_long_help = EXIT_CODES)]
    Recv(RecvArgs),
    /// Measure a path: throughput, round-trip time, losses, acknowledgements
    #[command(after_long_help = EXIT_CODES)]
    Perf(PerfArgs),
    /// Run scenario files in the simulator
    #[command(after_long_help = EXIT_CODES)]
    Sim(SimArgs),
    /// See it: send a file over emulated Wi-Fi, with delayed ACKs and with TACK, and compare
    #[command(after_long_help = EXIT_CODES)]
    Demo(DemoArgs),
    /// Put an emulated Wi-Fi link between UDP programs, in real time
    #[command(after_long_help = EXIT_CODES)]
    Emulate(EmulateArgs),
    /// Reproduce the figures of the TACK paper
    #[command(subcommand, after_long_help = EXIT_CODES)]
    Lab(LabCommand),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

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
    /// Runs at the same time; default one a processor
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Print one JSON object a run
    #[arg(long, group = "format")]
    pub(crate) json: bool,
    /// Print CSV, one line for each flow of each run
    #[arg(long, group = "format")]
    pub(crate) csv: bool,
    /// Write a Parquet file, one row for each flow of each run
    #[arg(long, value_name = "OUT", group = "format")]
    pub(crate) parquet: Option<PathBuf>,
    /// Write each flow's state over time as CSV; one run only
    #[arg(long, value_name = "OUT")]
    pub(crate) series: Option<PathBuf>,
    /// Time between the samples of --series
    #[arg(long, value_name = "DURATION", default_value = "100ms", value_parser = interval, requires = "series")]
    pub(crate) series_interval: Duration,
    /// Write what the connections did and why, one JSON object a line (qlog style); one run only
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,
    /// Write all packets as a capture file (pcapng); one run only
    #[arg(long, value_name = "OUT")]
    pub(crate) pcap: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Say which figures there are
    List,
    /// Measure figures; what was measured before with the same code is not measured again
    Run(LabRunArgs),
    /// Write one HTML page with every figure, from what was measured
    Report(LabReportArgs),
    /// Write the plots of what was measured as files: SVG, PDF, CSV, Parquet
    Export(LabExportArgs),
    /// Measure what is missing, and fail when a claim does not hold
    Check(LabRunArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    /// Figures: 1, 5b, …; `tack lab list` names them
    #[arg(value_name = "FIGURE", required_unless_present = "all")]
    pub(crate) figures: Vec<String>,
    /// Every figure
    #[arg(long, conflicts_with = "figures")]
    pub(crate) all: bool,
    /// The cells that say most, with few seeds (the default): all figures within minutes
    #[arg(long, group = "extent")]
    pub(crate) quick: bool,
    /// Every cell, with seeds enough for narrow intervals: takes long, and goes on where it was cut off
    #[arg(long, group = "extent")]
    pub(crate) full: bool,
    /// Runs at the same time; default one a processor
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Print the claims as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: LabStoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LabReportArgs {
    /// Where the page goes; unless given, report.html beside the results
    #[arg(long, value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: LabStoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LabExportArgs {
    /// Figures: 1, 5b, …; all that were measured unless given
    #[arg(value_name = "FIGURE")]
    pub(crate) figures: Vec<String>,
    /// Where the files go; unless given, the folder plots beside the results
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Formats, separated by commas; all unless given
    #[arg(long, value_name = "FORMAT", value_enum, value_delimiter = ',')]
    pub(crate) format: Vec<PlotFormat>,
    /// How wide SVG and PDF are: a page (7 inches) or a column of two (3.5 inches)
    #[arg(long, value_enum, default_value_t = PlotWidth::Page)]
    pub(crate) width: PlotWidth,
    #[command(flatten)]
    pub(crate) store: LabStoreArgs,
}

/// What plots are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlotFormat {
    /// For pages and drawing programs
    Svg,
    /// For papers; the font is in it
    Pdf,
    /// The numbers of each plot and each table
    Csv,
    /// The numbers of each plot
    Parquet,
}

/// How wide plots are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlotWidth {
    Page,
    Column,
}

#[derive(Debug, Args)]
pub(crate) struct LabStoreArgs {
    /// Seeds of each cell instead of the figure's own number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: Option<u64>,
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) results: PathBuf,
    /// Folder with recorded link traces, for figure 14: NAME.down with NAME.up (Mahimahi), NAME.pitree-trace (Zhuge)
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
