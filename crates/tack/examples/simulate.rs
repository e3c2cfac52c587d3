//! A simulation from code: the same path with ever more loss, and what two ACK policies make of it.
//!
//! `cargo run --release -p tack --example simulate`

use std::error::Error;

use tack_sim::{Checks, Observers, Scenario, run};

const SCENARIO: &str = "
    duration = '3s'
    [wired]
    rate = '20Mbps'
    delay = '20ms'
    [[flow]]
    congestion = 'bbr'
";

/// Runs all simulations, each twice.
pub fn main() -> Result<(), Box<dyn Error>> {
    println!("loss    ack          Mbit/s  acknowledgements");
    for loss in ["0", "0.01", "0.05"] {
        for ack in ["delayed:2", "tack"] {
            let settings = [format!("flow.0.ack={ack}"), format!("wired.loss={loss}")];
            let scenario = Scenario::from_toml("simulate.toml", SCENARIO, &settings)?;
            // Every invariant of the stack is checked at every event; one that does not hold is an
            // error.
            let mut observers = Observers::default().checking(Checks::EveryEvent);
            let report = run(&scenario, 1, &mut observers)?;
            let flow = &report.flows[0];
            println!(
                "{loss:<7} {ack:<12} {:6.2}  {:6}",
                flow.goodput_bps / 1e6,
                flow.acks
            );
            // The same seed gives the same run, bit for bit.
            let again = run(&scenario, 1, &mut Observers::default())?;
            if again.trace_hash != report.trace_hash {
                return Err("the same seed gave another run".into());
            }
        }
    }
    Ok(())
}
