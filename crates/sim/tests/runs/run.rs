//! How the tests run a scenario.

use tack_sim::{Checks, Observers, Report, RunError, Scenario};

/// Runs a scenario in which no sender may stall (invariant 8 of ARCHITECTURE.md). One that does is
/// run again, for the words of the stall detector.
pub(crate) fn run(
    scenario: &Scenario,
    seed: u64,
    observers: &mut Observers<'_>,
) -> Result<Report, RunError> {
    let report = tack_sim::run(scenario, seed, observers)?;
    if report.flows.iter().any(|flow| flow.stalls > 0) {
        let mut checking = Observers::default().checking(Checks::EveryEvent);
        let stall = tack_sim::run(scenario, seed, &mut checking).err();
        panic!("{}, seed {seed}: {stall:?}", scenario.name);
    }
    Ok(report)
}
