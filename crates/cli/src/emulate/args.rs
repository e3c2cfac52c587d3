//! The arguments of `tack emulate`.

use std::time::Duration;

use clap::Args;

use crate::address::{Address, ReachArgs};
use crate::links::LinkArgs;
use crate::trust::TrustArgs;
use crate::values::{interval, listen};

#[derive(Debug, Args)]
pub(crate) struct EmulateArgs {
    #[command(flatten)]
    pub(crate) links: LinkArgs,
    /// Address that clients send to, or a port of 127.0.0.1; each client is a Wi-Fi station. Port
    /// 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = listen)]
    pub(crate) listen: Address,
    /// Destination of the clients' datagrams: a host on the wire behind the access point
    #[arg(long, value_name = "ADDR")]
    pub(crate) to: Address,
    /// Stop after this time
    #[arg(long, value_name = "DURATION", value_parser = interval)]
    pub(crate) duration: Option<Duration>,
    /// Number of stations; client addresses take them in turn [default: the scenario's, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=500))]
    pub(crate) stations: Option<u16>,
    /// Maximum number of client addresses at a time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) max_flows: u16,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    /// Print JSON to standard output: the listening address, and one object at the end
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}
