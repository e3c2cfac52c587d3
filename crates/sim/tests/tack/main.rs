//! What TACK promises, measured in virtual time on the scenario files under `scenarios/tack`.
//!
//! Each test prints its figures. Usually they run in a short form, one seed and the cells that say
//! most. The full form, five seeds and every cell, takes about ten minutes of processor time:
//!
//! ```text
//! TACK_FULL=1 cargo test -p tack-sim --test tack -- --nocapture --test-threads=2
//! ```
//!
//! `docs/validation/tack.md` has its figures. "Utilisation" is goodput over what a full link
//! carries of application bytes: 1,448 of every 1,500.

mod acknowledgements;
mod buffer;
mod dynamics;
mod friendliness;
mod latency;
mod loss;
mod reordering;
mod robustness;
#[path = "../runs/run.rs"]
mod run;
mod timing;
mod window;

use std::path::PathBuf;

use tack_sim::report::FlowReport;
use tack_sim::{Observer, Observers, Report, Scenario};

use run::run;

/// Whether the full form of each experiment was asked for.
fn is_full() -> bool {
    std::env::var_os("TACK_FULL").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Whether more than the ordinary form was asked for, by `TACK_LONG=1`, as CI does, or by
/// `TACK_FULL=1`.
fn is_long() -> bool {
    tack_skip::is_long() || is_full()
}

/// Seeds of experiments with chance in them.
fn seeds() -> std::ops::RangeInclusive<u64> {
    if is_full() { 1..=5 } else { 1..=1 }
}

/// One of two forms of an experiment's parameters.
fn cells<T: Copy>(short: &[T], full: &[T]) -> Vec<T> {
    if is_full() { full } else { short }.to_vec()
}

const PAYLOAD_SHARE: f64 = 1_448.0 / 1_500.0;

/// Reads a scenario file of `scenarios/tack` with overrides.
fn scenario(name: &str, overrides: &[String]) -> Scenario {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../scenarios/tack")
        .join(name)
        .with_extension("toml");
    Scenario::from_file(&path, overrides).expect("the scenario is sound")
}

/// Runs a scenario file.
fn report(name: &str, overrides: &[String]) -> Report {
    let scenario = scenario(name, overrides);
    run(&scenario, scenario.seed, &mut Observers::default()).expect("no promise is broken")
}

/// Runs a scenario file under the eyes of `observer`.
fn observe(name: &str, overrides: &[String], observer: &mut dyn Observer) -> Report {
    let scenario = scenario(name, overrides);
    let mut observers = Observers::default().with(observer);
    run(&scenario, scenario.seed, &mut observers).expect("no promise is broken")
}

/// Overrides from `key=value` texts.
macro_rules! set {
    ($($setting:expr),* $(,)?) => { [$(format!("{}", $setting)),*] };
}
use set;

/// Share of a link of `mbps` that the first flow used.
fn utilisation(report: &Report, mbps: f64) -> f64 {
    report.flows[0].goodput_bps / (mbps * 1e6 * PAYLOAD_SHARE)
}

/// What `measure` says of the runs of a scenario, one a seed.
fn of_seeds(name: &str, overrides: &[String], measure: impl Fn(&Report) -> f64) -> Vec<f64> {
    seeds()
        .map(|seed| {
            let mut overrides = overrides.to_vec();
            overrides.push(format!("seed={seed}"));
            measure(&report(name, &overrides))
        })
        .collect()
}

/// Mean over the seeds of what `measure` says of the runs of a scenario.
fn mean(name: &str, overrides: &[String], measure: impl Fn(&Report) -> f64) -> f64 {
    let figures = of_seeds(name, overrides, measure);
    figures.iter().sum::<f64>() / figures.len() as f64
}

/// Share of its segments that the sender retransmitted for nothing.
fn spurious(flow: &FlowReport) -> f64 {
    flow.spurious_retransmissions as f64 / flow.data_segments as f64
}

/// The value that a share of `values` does not exceed; they get sorted.
fn percentile(values: &mut [u64], share: f64) -> u64 {
    values.sort_unstable();
    let index = (values.len().saturating_sub(1) as f64 * share).round() as usize;
    values.get(index).copied().unwrap_or(0)
}
