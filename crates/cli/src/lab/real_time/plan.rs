//! What a run in real time is, and why one is not made.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tack_lab::{Measure, Point, Receiver, Stack};
use tack_sim::Scenario;
use tack_sim::scenario::Transport;

/// A limit of the pacing rate that no path reaches, bytes a second.
pub(super) const UNREACHED: u64 = 12_500_000_000;

/// A run that cannot be made, and a run that failed.
#[derive(Debug)]
pub(super) enum Trouble {
    Skipped(String),
    Failed(String),
}

impl Trouble {
    pub(super) fn no(what: &str) -> Self {
        Self::Failed(format!("there is no {what}"))
    }
}

/// What the run of a point is.
pub(super) struct Plan {
    pub(super) stack: Stack,
    pub(super) congestion: String,
    pub(super) ack: String,
    /// What is not measured, at the beginning.
    pub(super) omit: Duration,
    /// What is measured, after that.
    pub(super) length: Duration,
}

impl Plan {
    pub(super) fn of(point: &Point, scenario: &Scenario) -> Result<Self, Trouble> {
        let wrong = |what: &str| Trouble::Failed(format!("not a run in real time: {what}"));
        let Measure::RealTime(stack) = point.measure() else {
            return Err(wrong("its measure"));
        };
        let flow = scenario.flows.first().ok_or_else(|| wrong("no flow"))?;
        let Transport::Tcp(_) = &flow.transport else {
            return Err(wrong("its transport"));
        };
        let setting = |key: &str| {
            let found = point.settings().iter().rev();
            let mut values = found.filter_map(|setting| setting.strip_prefix(key));
            values.next().map(str::to_owned)
        };
        Ok(Self {
            stack,
            congestion: setting("flow.0.congestion=").ok_or_else(|| wrong("congestion"))?,
            ack: setting("flow.0.ack=").ok_or_else(|| wrong("ack"))?,
            omit: scenario.warmup,
            length: scenario.duration.saturating_sub(scenario.warmup),
        })
    }

    /// Whether frames that come together are one packet to the kernel.
    pub(super) fn has_receive_offload(&self) -> bool {
        self.stack.receiver().is_none_or(Receiver::has_offload)
    }

    /// The program that moves the bytes.
    pub(super) fn program(&self) -> Result<PathBuf, Trouble> {
        match self.stack {
            Stack::Kernel(_) | Stack::KernelPaced(_) | Stack::KernelWithoutGso => {
                self.check_congestion_control()?;
                if !self.stack.receiver().is_some_and(Receiver::reads_seldom) {
                    let found = Command::new("iperf3").arg("-v").output();
                    found.map_err(|error| Trouble::Skipped(format!("no iperf3: {error}")))?;
                }
                Ok("iperf3".into())
            }
            Stack::Quinn(_) => {
                let named = std::env::var_os("TACK_BENCH_QUINN").map(PathBuf::from);
                let program = named
                    .unwrap_or_else(|| PathBuf::from("bench/quinn/target/release/bench-quinn"));
                let program = program.canonicalize().map_err(|error| {
                    Trouble::Skipped(format!(
                        "no {}: {error}; `cargo build --release --manifest-path bench/quinn/Cargo.toml` makes it, and \
                         TACK_BENCH_QUINN names it from elsewhere",
                        program.display()
                    ))
                })?;
                Ok(program)
            }
            Stack::Tack(_) | Stack::TackWithoutGso => std::env::current_exe()
                .map_err(|error| Trouble::Failed(format!("cannot find this program: {error}"))),
        }
    }

    fn check_congestion_control(&self) -> Result<(), Trouble> {
        let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
            .unwrap_or_default();
        if known.split_whitespace().any(|name| name == self.congestion) {
            return Ok(());
        }
        Err(Trouble::Skipped(format!(
            "this kernel has no {} (modprobe tcp_{}); it has {}",
            self.congestion,
            self.congestion,
            known.trim()
        )))
    }
}
