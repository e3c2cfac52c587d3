//! The arguments of `tack lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

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
