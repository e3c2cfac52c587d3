//! `tack perf`: how fast a path is, and what limits it.
//!
//! A control connection agrees on the test and exchanges results; the data flows on connections of
//! their own, to a TCP port that the server opens for this one test with the settings the client
//! asked for, so that congestion control and acknowledgement policy hold on both sides. A UDP test
//! opens a socket for its datagrams instead. Who may test is decided as for transfers, except that
//! on one machine anybody may (`security`).

mod args;
mod client;
mod data_channels;
mod exchange;
mod flow;
mod iperf2;
mod iperf3;
mod latency;
mod lines;
mod omitted;
mod processor;
mod protocol;
mod recorded_output;
mod report;
mod request;
mod results;
mod security;
mod server;
mod udp;
mod watch;

use crate::exit::{Exit, Failure};

pub(crate) use args::PerfArgs;
pub(crate) use client::measure;
pub(crate) use report::{Cpu, DirectionSummary, LimitedBy, RrSummary, Summary};
pub(crate) use request::TestRequest;

/// Runs a test or serves them.
pub(crate) async fn run(args: PerfArgs) -> Result<Exit, Failure> {
    match args.target()? {
        Some(server) => client::run(&args, &server).await,
        None => server::run(&args).await,
    }
}
