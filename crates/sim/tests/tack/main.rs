//! What TACK promises, measured in virtual time on the scenario files under `scenarios/tack`.
//!
//! Each test prints its figures; `cargo test -p tack-sim --test tack -- --nocapture` shows them. "Utilisation" is
//! goodput over what a full link carries of application bytes: 1,448 of every 1,500.

mod acknowledgements;
mod buffer;
mod dynamics;
mod friendliness;
mod latency;
mod loss;
mod reordering;
mod robustness;
mod timing;
mod window;

use std::path::PathBuf;

use tack_sim::report::FlowReport;
use tack_sim::{Observer, Observers, Report, Scenario, run};

/// Seeds of experiments with chance in them.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;

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
    ($($setting:expr),* $(,)?) => { vec![$(format!("{}", $setting)),*] };
}
use set;

/// Share of a link of `mbps` that the first flow used.
fn utilisation(report: &Report, mbps: f64) -> f64 {
    report.flows[0].goodput_bps / (mbps * 1e6 * PAYLOAD_SHARE)
}

/// Mean over the five seeds of what `measure` says of the runs of a scenario.
fn mean(name: &str, overrides: &[String], measure: impl Fn(&Report) -> f64) -> f64 {
    let figures = SEEDS.map(|seed| {
        let mut overrides = overrides.to_vec();
        overrides.push(format!("seed={seed}"));
        measure(&report(name, &overrides))
    });
    figures.sum::<f64>() / SEEDS.count() as f64
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
