//! The arguments of `tack demo`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tack::Algorithm;

use super::mechanism::Mechanisms;
use crate::links::LinkArgs;
use crate::trust::TrustArgs;
use crate::values::interval;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// File to send [default: this program, repeated to fill --time]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) links: LinkArgs,
    /// Mechanisms to compare, two to four, separated by commas, each over an emulated Wi-Fi of its
    /// own: an ACK policy, then +filter (ACK filter safe), +filter=MODE, +hack (TCP/HACK
    /// more-data) or +hack=VARIANT, as in tack,delayed:2+filter,delayed:2+hack. The others are
    /// compared with the first. --ack-filter and --hack apply to mechanisms that set neither
    #[arg(long, value_name = "LIST", default_value = "delayed:2,tack")]
    pub(crate) compare: Mechanisms,
    /// Number of rounds, each with the next seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) seeds: u16,
    /// Approximate time of a transfer; a file that takes longer is truncated
    #[arg(long, value_name = "DURATION", default_value = "8s", value_parser = interval)]
    pub(crate) time: Duration,
    /// Congestion control of the sender
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) congestion: Algorithm,
    /// Output file of the HTML report [default: a new file in the directory for temporary files]
    #[arg(long, value_name = "OUT")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}
