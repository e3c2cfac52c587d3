//! Measurements of a run: the numbers of the simulator's report, and more that an observer
//! sees.
//!
//! The sources of this folder are part of the code version: results are run again when one changes.

mod blocked;
mod change;
mod stack;
mod steps;
mod values;

use tack_sim::{Observer, Observers, RunError, Scenario, run};

use blocked::add_blocked;
pub(crate) use change::BEFORE;
use change::Change;
pub use stack::{Receiver, Stack, Taking, Tuning};
use steps::Steps;
use tack_sim::Blocked;
pub use values::Values;

/// Measurements besides the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Nothing besides the report.
    Report,
    /// How many bytes periodic acknowledgements say wait above a hole, as the paper's figure 5(a)
    /// looks at it: shares `blocked.le.BYTES` of the acknowledgements with no more than so
    /// many.
    Blocked,
    /// The sender's estimate of the bandwidth while that steps: round trips of 40 ms from the steps
    /// at 10 s (up) and 20 s (down) until it has arrived, `steps.up` and `steps.down`, and its
    /// course `estimate.SECONDS`.
    Steps,
    /// What the first flow, alone by TCP, does while the second one comes and goes, for each round
    /// trip of the path from 16 before that: Mbit/s of payload `sent.ROUND` and
    /// `arrived.ROUND`, acknowledgements `acks.ROUND`; and for how many round trips the second
    /// one stays, `change.present`.
    Change,
    /// Nothing of the simulator: the scenario's links in real time, with a transport of its own.
    /// The program does such runs, one at a time, since this crate has no clock.
    RealTime(Stack),
}

impl Measure {
    /// How keys and result files call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Blocked => "blocked",
            Self::Steps => "steps",
            Self::Change => "change",
            Self::RealTime(stack) => stack.name(),
        }
    }

    /// The measure of that name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Report, Self::Blocked, Self::Steps, Self::Change];
        let real = Stack::ALL.map(Self::RealTime);
        let mut all = all.into_iter().chain(real);
        all.find(|measure| measure.name() == name)
    }

    /// Whether runs take place in real time, and not in the simulator.
    pub const fn is_real_time(self) -> bool {
        matches!(self, Self::RealTime(_))
    }

    /// Runs `scenario` and measures: in the simulator, whatever the measure.
    ///
    /// # Errors
    /// [`RunError`] when the stack broke a promise.
    pub fn take(self, scenario: &Scenario, seed: u64) -> Result<Values, RunError> {
        match self {
            Self::Report | Self::RealTime(_) => {
                let report = run(scenario, seed, &mut Observers::default())?;
                Ok(Values::of_report(&report))
            }
            Self::Blocked => watched(scenario, seed, Blocked::default(), add_blocked),
            Self::Steps => watched(scenario, seed, Steps::default(), Steps::add_to),
            Self::Change => watched(scenario, seed, Change::default(), Change::add_to),
        }
    }
}

/// Runs under the eyes of `observer`, which then adds what it saw.
fn watched<O: Observer>(
    scenario: &Scenario,
    seed: u64,
    mut observer: O,
    add: fn(O, &mut Values),
) -> Result<Values, RunError> {
    let report = run(
        scenario,
        seed,
        &mut Observers::default().with(&mut observer),
    )?;
    let mut values = Values::of_report(&report);
    add(observer, &mut values);
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_become_numbers_by_name() {
        let text = "duration = '1s'\n[wired]\nrate = '10Mbps'\n[[flow]]\n";
        let scenario = Scenario::from_toml("a.toml", text, &[]).unwrap();
        let values = Measure::Report.take(&scenario, 1).unwrap();
        assert!(values.get("flows.0.goodput_bps") > 1e6);
        assert!(values.get("wired.forward.delivered").is_nan() || values.iter().count() > 30);
        assert!(
            values.get("wall_seconds").is_nan(),
            "it differs between equal runs"
        );
        assert_eq!(values, Measure::Report.take(&scenario, 1).unwrap());
    }
}
