//! TCP/HACK in whole runs: random networks on which it is compared with itself turned off, and the figures of its paper.
//!
//! On random networks nobody has to know what a run should give: what happens without HACK is the measure. The quick form is a
//! test; the long one takes numbers of networks:
//!
//! ```text
//! HACK_SEARCH=1..500 cargo test --release -p tack-sim --test hack -- --nocapture
//! ```

mod figures;
mod networks;

use rayon::prelude::*;
use tack_sim::report::HackReport;
use tack_sim::{Checks, Observers, Report, RunError, Scenario, parse_seeds, run};

use networks::{Network, network};

/// The networks of the quick form.
const QUICK: &str = "1..40";

fn play(text: &str, keys: &[String], checks: Checks) -> Result<Report, RunError> {
    let scenario = Scenario::from_toml("hack.toml", text, keys);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut observers = Observers::default().checking(checks);
    run(&scenario, scenario.seed, &mut observers)
}

fn hack(report: &Report) -> HackReport {
    let wlan = report.wlan.as_ref().expect("the network is wireless");
    wlan.hack.expect("HACK is on")
}

/// Bytes delivered over all flows, and when the last one was complete; the end of the run where one was not.
fn outcome(report: &Report) -> (u64, f64) {
    let flows = &report.flows;
    let bytes = flows.iter().map(|flow| flow.bytes_delivered).sum();
    let ends = flows
        .iter()
        .map(|flow| flow.completion_s.unwrap_or(report.virtual_seconds));
    (bytes, ends.fold(0.0, f64::max))
}

/// What is wrong with HACK on a network, if anything is.
fn judge(network: &Network) -> Option<String> {
    let off = [String::from("wlan.hack=off")];
    let plain = match play(&network.toml, &off, Checks::EveryEvent) {
        Ok(report) => report,
        // Broken without HACK: a matter for other tests.
        Err(_) => return None,
    };
    let report = match play(&network.toml, &network.keys, Checks::EveryEvent) {
        Ok(report) => report,
        Err(broken) => return Some(broken.to_string()),
    };
    let stats = hack(&report);
    if stats.crc_failures + stats.decode_failures + stats.differing > 0 {
        return Some(format!("not rebuilt: {stats:?}"));
    }
    let ((bytes, end), (plain_bytes, plain_end)) = (outcome(&report), outcome(&plain));
    if bytes < plain_bytes {
        return Some(format!("{bytes} bytes, {plain_bytes} without; {stats:?}"));
    }
    let timeouts = |report: &Report| report.flows.iter().map(|flow| flow.rto_count).sum::<u64>();
    // Another course of events may meet other losses: a few timeouts more prove nothing.
    if timeouts(&report) > 2 * timeouts(&plain) + 6 {
        return Some(format!(
            "{} timeouts, {} without; {stats:?}",
            timeouts(&report),
            timeouts(&plain)
        ));
    }
    (end > 2.0 * plain_end + 3.0).then(|| format!("{end} s, {plain_end} s without; {stats:?}"))
}

#[test]
fn nothing_is_lost_on_random_networks() {
    let asked = std::env::var("HACK_SEARCH").ok();
    let numbers = parse_seeds(asked.as_deref().unwrap_or(QUICK)).expect("HACK_SEARCH has numbers");
    let failures: Vec<_> = numbers
        .par_iter()
        .filter_map(|number| {
            let network = network(*number);
            let wrong = judge(&network)?;
            let keys = network.keys.join(" ");
            let text = format!("network {number}: {wrong}\n{keys}\n{}", network.toml);
            eprintln!("{text}");
            Some(text)
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} networks:\n{}",
        failures.len(),
        numbers.len(),
        failures.join("\n")
    );
}
