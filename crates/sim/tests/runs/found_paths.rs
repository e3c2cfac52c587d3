//! Paths that the random search (`../differential/`) flagged, each with its neighbours, sorted by
//! the flag. A test asserts that the fault is repaired, or that it is not TACK's. TACK is compared
//! with `delayed:2` on the same path, as in the search.

mod acknowledgements;
mod goodput;
mod requests;
mod retransmissions;

use tack_sim::{Checks, FlowReport, Observers, Report, Scenario};

use crate::run;

/// Runs a scenario, every invariant checked at every event.
pub(crate) fn report(text: &str, seed: u64) -> Report {
    let scenario = Scenario::from_toml("found.toml", text, &[]).expect("the scenario is sound");
    let mut observers = Observers::default().checking(Checks::EveryEvent);
    match run(&scenario, seed, &mut observers) {
        Ok(report) => report,
        Err(broken) => panic!("{broken}\n{text}"),
    }
}

pub(crate) fn flows(text: &str, seed: u64) -> Vec<FlowReport> {
    report(text, seed).flows
}
