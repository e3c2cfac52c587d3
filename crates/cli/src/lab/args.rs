//! The arguments of `tack lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use tack_lab::Only;

use crate::progress::LineArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the figures
    List,
    /// Measure figures; finished runs of the same code are not repeated
    Run(LabRunArgs),
    /// Write one HTML page with every measured figure
    Report(LabReportArgs),
    /// Write the plots of measured figures as SVG, PDF, CSV and Parquet files
    Export(LabExportArgs),
    /// Measure missing runs, and fail if a claim does not hold
    Check(LabRunArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LabRunArgs {
    /// Figures such as 1 or 5b; `tack lab list` lists them
    #[arg(value_name = "FIGURE", required_unless_present = "all")]
    pub(crate) figures: Vec<String>,
    /// Every figure but those in real time, which are measured when they are named
    #[arg(long, conflicts_with = "figures")]
    pub(crate) all: bool,
    /// Measure the main parameters with few seeds (default); all figures take minutes
    #[arg(long, group = "extent")]
    pub(crate) quick: bool,
    /// Measure all parameters with enough seeds for narrow intervals; takes long, and resumes if
    /// interrupted
    #[arg(long, group = "extent")]
    pub(crate) full: bool,
    /// Number of parallel runs [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Let the workers of a Dask scheduler do the runs, such as tcp://10.0.0.1:8786; needs Python
    /// with the package tack (TACK_PYTHON names the interpreter)
    #[arg(long, value_name = "ADDRESS", conflicts_with = "jobs")]
    pub(crate) dask: Option<String>,
    /// Print the claims as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Measure a part of figure kernel, and judge what the folder then has: claims (gro, no-gro,
    /// reads, quic), links (g, n, ac, wired, pantheon), separated by commas
    #[arg(long, value_name = "PART", value_parser = part, value_delimiter = ',')]
    pub(crate) only: Vec<Only>,
    /// Of figure kernel, measure only paths with TEXT in their name, of all that it has
    #[arg(long, value_name = "TEXT")]
    pub(crate) path: Option<String>,
    #[command(flatten)]
    pub(crate) lines: LineArgs,
    #[command(flatten)]
    pub(crate) store: LabStoreArgs,
}

/// A part by its name.
fn part(name: &str) -> Result<Only, String> {
    let found = Only::ALL.into_iter().find(|part| part.name() == name);
    found.ok_or_else(|| {
        let names = Only::ALL.map(Only::name).join(", ");
        format!("no part is called so; expected one of {names}")
    })
}

#[derive(Debug, Args)]
pub(crate) struct LabReportArgs {
    /// Output file [default: report.html in the results folder]
    #[arg(long, value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: LabStoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LabExportArgs {
    /// Figures such as 1 or 5b [default: all measured figures]
    #[arg(value_name = "FIGURE")]
    pub(crate) figures: Vec<String>,
    /// Output folder [default: plots in the results folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Formats, separated by commas [default: all]
    #[arg(long, value_name = "FORMAT", value_enum, value_delimiter = ',')]
    pub(crate) format: Vec<PlotFormat>,
    /// Width of SVG and PDF plots: page (7 inches) or column (3.5 inches)
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
    /// For papers, with its font embedded
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
    /// Number of seeds per parameter set, instead of the figure's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: Option<u64>,
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub(crate) results: PathBuf,
    /// Folder with recorded link traces, for figure 14: NAME.down with NAME.up (Mahimahi),
    /// NAME.pitree-trace (Zhuge)
    #[arg(long, value_name = "DIR")]
    pub(crate) traces: Option<PathBuf>,
}
