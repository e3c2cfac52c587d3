//! A congestion controller in the simulator, beside one that is built in.
//!
//! `cargo run --release -p tack --example controller`

use std::error::Error;

use tack::ControllerFactory;
use tack::cc::{Ack, Cause, Congestion, CongestionController, Init, Metrics};
use tack_sim::{FlowReport, Observers, Scenario, run};

/// Additive increase by two segments each round trip, decrease by a quarter: MulTCP's idea, without
/// its finer points.
#[derive(Debug)]
struct Bold {
    mss: u64,
    cwnd: u64,
    ssthresh: u64,
}

impl Bold {
    fn new(init: &Init) -> Self {
        Self {
            mss: init.mss,
            cwnd: init.initial_window,
            ssthresh: u64::MAX,
        }
    }
}

impl CongestionController for Bold {
    fn on_ack(&mut self, ack: &Ack) {
        // Nothing is learnt of the path while losses are repaired, or while the application has
        // little to send.
        if ack.in_recovery || !ack.cwnd_limited {
            return;
        }
        self.cwnd += if self.in_slow_start() {
            ack.acked
        } else {
            2 * self.mss * ack.acked / self.cwnd
        };
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.ssthresh = (self.cwnd / 4 * 3).max(2 * self.mss);
        self.cwnd = match congestion.cause {
            Cause::Timeout => self.mss,
            _ => self.ssthresh,
        };
    }

    fn on_mss(&mut self, mss: u64) {
        self.mss = mss;
    }

    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    fn metrics(&self) -> Metrics {
        Metrics::phase(if self.in_slow_start() {
            "slow_start"
        } else {
            "avoidance"
        })
    }
}

const SCENARIO: &str = "
    duration = '10s'
    [wired]
    rate = '50Mbps'
    delay = '10ms'
    [[flow]]
    congestion = 'new_reno'
    ack = 'delayed:2'
";

fn simulate(own: Option<ControllerFactory>) -> Result<FlowReport, Box<dyn Error>> {
    let mut scenario = Scenario::from_toml("controller.toml", SCENARIO, &[])?;
    let config = scenario.flows[0].tcp_config_mut().ok_or("not a TCP flow")?;
    config.controller = own;
    let mut report = run(&scenario, 1, &mut Observers::default())?;
    Ok(report.flows.remove(0))
}

/// Runs both simulations.
pub fn main() -> Result<(), Box<dyn Error>> {
    let own = simulate(Some(ControllerFactory::new("bold", Bold::new)))?;
    for flow in [&simulate(None)?, &own] {
        println!(
            "{:<12} {:5.1} Mbit/s, {:5} acknowledgements",
            flow.congestion.as_deref().unwrap_or_default(),
            flow.goodput_bps / 1e6,
            flow.acks
        );
    }
    if own.goodput_bps < 40e6 {
        return Err("most of 50 Mbit/s was expected".into());
    }
    Ok(())
}
