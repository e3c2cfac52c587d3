//! An acknowledgement policy in twenty lines, in the simulator, beside two that are built in.
//!
//! `cargo run --release -p tack --example policy`

use std::error::Error;
use std::time::Duration;

use tack::ack::{
    AckContract, AckDecision, AckPolicy, AckPolicyFactory, AckReason, DataArrival, SegmentOrder,
};
use tack_sim::{FlowReport, Observers, Scenario, run};

const DELAY: Duration = Duration::from_millis(10);

/// One acknowledgement for eight segments, or 10 ms after the first of them; at once on anything
/// out of the ordinary.
#[derive(Debug)]
struct EveryEighth;

impl AckPolicy for EveryEighth {
    fn contract(&self) -> AckContract {
        AckContract::new(DELAY, 8)
    }

    fn on_data(&mut self, arrival: &DataArrival) -> AckDecision {
        if arrival.order != SegmentOrder::InOrder {
            AckDecision::Now(AckReason::Loss)
        } else if arrival.fin || arrival.push || arrival.ce_changed {
            AckDecision::Now(AckReason::Event)
        } else if arrival.unacknowledged >= 8 * arrival.peer_mss {
            AckDecision::Now(AckReason::Threshold)
        } else {
            // A timer that is set already stands if it is earlier.
            AckDecision::Delayed(arrival.now + DELAY)
        }
    }
}

const SCENARIO: &str = "
    duration = '5s'
    [wired]
    rate = '50Mbps'
    delay = '10ms'
    [[flow]]
    congestion = 'cubic'
";

fn simulate(ack: &str, own: Option<AckPolicyFactory>) -> Result<FlowReport, Box<dyn Error>> {
    let mut scenario =
        Scenario::from_toml("policy.toml", SCENARIO, &[format!("flow.0.ack={ack}")])?;
    let config = scenario.flows[0].tcp_config_mut().ok_or("not a TCP flow")?;
    config.ack_policy = own;
    let mut report = run(&scenario, 1, &mut Observers::default())?;
    Ok(report.flows.remove(0))
}

/// Runs the three simulations.
pub fn main() -> Result<(), Box<dyn Error>> {
    let own = AckPolicyFactory::new("every eighth", || EveryEighth);
    let built_in = simulate("delayed:2", None)?;
    let tack = simulate("tack", None)?;
    let own = simulate("delayed:2", Some(own))?;
    for flow in [&built_in, &tack, &own] {
        println!(
            "{:<12} {:5.1} Mbit/s, {:5} acknowledgements",
            flow.ack.as_deref().unwrap_or_default(),
            flow.goodput_bps / 1e6,
            flow.acks
        );
    }
    if own.acks * 3 > built_in.acks || own.goodput_bps < 0.9 * built_in.goodput_bps {
        return Err("a quarter of the acknowledgements and the same goodput were expected".into());
    }
    Ok(())
}
