//! The arguments of `tack doctor`, and the tests that they ask for.

use std::time::Duration;

use clap::{Args, Parser};
use tack::Algorithm;

use crate::carrier::CarrierArgs;
use crate::exit::Failure;
use crate::meeting::{PeerArgs, Target};
use crate::perf::{PerfArgs, TestRequest};
use crate::values::{duration, interval};

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The machine that runs `tack perf --server`: its ticket or code, a known peer (laptop:), or
    /// an address
    #[arg(value_name = "PEER")]
    peer: String,
    /// Print one JSON object
    #[arg(long, short = 'J')]
    pub(crate) json: bool,
    /// Measure from the peer to this machine
    #[arg(long, short = 'R')]
    reverse: bool,
    /// Length of each test; a quarter more goes before it, which does not count
    #[arg(long, short, value_name = "DURATION", default_value = "3s", value_parser = interval)]
    time: Duration,
    /// How often each acknowledgement policy has its turn
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=20))]
    rounds: u8,
    /// Congestion control of the tests of acknowledgement policies: new_reno, cubic, bbr, vegas,
    /// compound
    #[arg(long, short = 'C', value_name = "NAME", default_value_t)]
    congestion: Algorithm,
    /// Time to wait for an answer when connecting
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    connect_timeout: Duration,
    /// Do not encrypt; the server needs the option, too
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    carrier: CarrierArgs,
    #[command(flatten)]
    meeting: PeerArgs,
}

/// The tests.
pub(crate) struct Plan {
    pub(crate) target: Target,
    /// How to connect.
    pub(crate) args: PerfArgs,
    pub(crate) reverse: bool,
    /// Requests and responses alone.
    pub(crate) idle: TestRequest,
    /// The same beside data that fills queues.
    pub(crate) filled: TestRequest,
    /// Each policy, and the same beside data that it acknowledges.
    pub(crate) policies: Vec<(&'static str, TestRequest)>,
    pub(crate) rounds: u8,
}

/// The command line of a test.
#[derive(Debug, Parser)]
struct PerfLine {
    #[command(flatten)]
    perf: PerfArgs,
}

impl PerfLine {
    fn parse_words(words: &[&str]) -> Result<PerfArgs, Failure> {
        let line = Self::try_parse_from([&["perf"], words].concat());
        line.map(|line| line.perf)
            .map_err(|error| Failure::usage(error.to_string()))
    }
}

impl DoctorArgs {
    /// # Errors
    /// For a peer that is none.
    pub(crate) fn plan(self) -> Result<Plan, Failure> {
        let seconds = |time: Duration| format!("{}ms", time.as_millis().max(1));
        let (time, idle_time) = (seconds(self.time), seconds(self.time / 2));
        let (timeout, congestion) = (seconds(self.connect_timeout), self.congestion.to_string());
        let request = |words: &[&str]| {
            let mut all = vec!["peer", "--interval", "0s"];
            all.extend(words);
            if self.reverse {
                all.push("--reverse");
            }
            PerfLine::parse_words(&all)?.request()
        };
        let idle = request(&["--rr", "--time", &idle_time])?;
        // Slow start says nothing about a path.
        let omitted = seconds(self.time / 4);
        let load = ["--rr=load", "--time", &time, "--omit", &omitted];
        let filled =
            request(&[&load[..], &["--congestion", "cubic", "--ack", "delayed:2"]].concat())?;
        let mut policies = Vec::new();
        for policy in ["every", "delayed:2", "tack"] {
            let words = ["--congestion", &congestion, "--ack", policy];
            policies.push((policy, request(&[&load[..], &words].concat())?));
        }
        let mut words = vec!["peer", "--connect-timeout", &timeout];
        if self.insecure {
            words.push("--insecure");
        }
        let mut args = PerfLine::parse_words(&words)?;
        args.carrier = self.carrier;
        args.meeting.peer = self.meeting;
        let target = args.meeting.peer.target.target(Some(&self.peer))?;
        let target =
            target.ok_or_else(|| Failure::usage("no peer; expected an address or a name"))?;
        Ok(Plan {
            target,
            args,
            reverse: self.reverse,
            idle,
            filled,
            policies,
            rounds: self.rounds,
        })
    }
}
