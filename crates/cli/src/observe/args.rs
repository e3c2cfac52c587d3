//! The options of watching a command run.

use std::path::PathBuf;

use clap::Args;

use crate::address::Address;
use crate::values::listen;

/// Metrics and traces of the connections of a command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ObserveArgs {
    /// Serve metrics of the connections at http://ADDR/metrics, in the text format of Prometheus
    /// and OpenMetrics; ADDR is an address of this machine, or a port of 127.0.0.1
    #[arg(long, value_name = "ADDR", value_parser = listen, help_heading = "Watching")]
    pub(crate) metrics: Option<Address>,
    /// Let --metrics listen on addresses beyond loopback: everybody who reaches them may read
    #[arg(long, requires = "metrics", help_heading = "Watching")]
    pub(crate) metrics_anywhere: bool,
    /// Write what each connection does and why to a file of its own in this folder: qlog 0.3 as a
    /// JSON text sequence (.sqlog), which qvis opens
    #[arg(long, value_name = "DIR", help_heading = "Watching")]
    pub(crate) qlog: Option<PathBuf>,
}
