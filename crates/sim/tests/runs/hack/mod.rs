//! TCP/HACK in whole runs: random networks on which it is compared with itself turned off, and the
//! figures of its paper.
//!
//! On random networks nobody has to know what a run should give: what happens without HACK is the
//! measure. Three networks of four have a filter of acknowledgements, with HACK and without. The
//! test takes a few networks; a search takes numbers of networks:
//!
//! ```text
//! HACK_SEARCH=1..500 cargo test --release -p tack-sim --test runs hack -- --nocapture
//! ```

mod echo;
mod figures;
mod filtered;
mod networks;
mod standards;

use rayon::prelude::*;
use tack_sim::report::HackReport;
use tack_sim::{Checks, Observers, Report, RunError, Scenario, parse_seeds};

use crate::run;

use self::networks::{Network, network};

/// Seeds of a network that differs at its first one.
const SEEDS: u64 = 15;
/// So many more seeds have to be worse than better.
const MARGIN: i64 = 7;

/// The networks of the long form.
const NETWORKS: &str = "1..40";

/// The networks of the test.
fn usual() -> &'static str {
    if crate::is_long() { NETWORKS } else { "1..8" }
}

fn play(text: &str, keys: &[String], checks: Checks) -> Result<Report, RunError> {
    let scenario = Scenario::from_toml("hack.toml", text, keys);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut observers = Observers::default().checking(checks);
    run(&scenario, scenario.seed, &mut observers)
}

/// Bytes delivered over all flows, and when the last one was complete; the end of the run where one
/// was not.
fn outcome(report: &Report) -> (u64, f64) {
    let flows = &report.flows;
    let bytes = flows.iter().map(|flow| flow.bytes_delivered).sum();
    let ends = flows
        .iter()
        .map(|flow| flow.completion_s.unwrap_or(report.virtual_seconds));
    (bytes, ends.fold(0.0, f64::max))
}

/// What came of a network with one seed.
struct Outcome {
    /// Something had no end, or a sender did not get on.
    broken: Option<String>,
    bytes: u64,
    /// When the last flow was complete, seconds.
    end: f64,
    timeouts: u64,
    /// A filter dropped acknowledgements.
    is_filtered: bool,
}

impl Outcome {
    fn new(network: &Network, is_on: bool, seed: u64) -> (Self, Option<HackReport>) {
        let mut keys = vec![format!("seed={seed}")];
        if is_on {
            keys.extend(network.keys.iter().cloned());
        }
        let (report, broken) = match play(&network.toml, &keys, Checks::EveryEvent) {
            Ok(report) => (report, None),
            Err(broken) => {
                let report = play(&network.toml, &keys, Checks::Cheap);
                (
                    report.expect("nothing is checked"),
                    Some(broken.to_string()),
                )
            }
        };
        let (bytes, end) = outcome(&report);
        let timeouts = report.flows.iter().map(|flow| flow.rto_count).sum();
        let wlan = report.wlan.expect("it is wireless");
        let hack = wlan.hack;
        let outcome = Self {
            broken,
            bytes,
            end,
            timeouts,
            is_filtered: wlan.acks_filtered > 0,
        };
        (outcome, hack)
    }
}

/// Whether acknowledgements were rebuilt at the first seed of a network, and others dropped by a
/// filter.
fn has_both(network: &Network) -> bool {
    let (on, hack) = Outcome::new(network, true, network.seed);
    on.is_filtered && hack.is_some_and(|hack| hack.rebuilt > 0)
}

/// What is wrong with HACK on a network, if anything is. One run is enough where something was
/// rebuilt wrongly. For the rest another course of events meets other losses, and these networks
/// have many: of several seeds clearly more have to be worse with HACK than without it, than the
/// other way round.
fn judge(network: &Network) -> Option<String> {
    let first = compare(network, network.seed)?;
    let Verdict::Worse(what) = first else {
        return if let Verdict::Wrong(what) = first {
            Some(what)
        } else {
            None
        };
    };
    let mut balance = 1_i64;
    for more in 1..SEEDS {
        match compare(network, network.seed + 10_000 * more) {
            Some(Verdict::Wrong(what)) => return Some(what),
            Some(Verdict::Worse(_)) => balance += 1,
            Some(Verdict::Better) => balance -= 1,
            None => {}
        }
    }
    (balance >= MARGIN).then(|| format!("{what}; a balance of {balance} of {SEEDS} seeds"))
}

enum Verdict {
    /// An acknowledgement was not rebuilt as it was.
    Wrong(String),
    /// It goes worse with HACK.
    Worse(String),
    /// It goes worse without.
    Better,
}

fn compare(network: &Network, seed: u64) -> Option<Verdict> {
    let (on, hack) = Outcome::new(network, true, seed);
    let hack = hack.expect("HACK is on");
    if hack.crc_failures + hack.decode_failures + hack.differing > 0 {
        return Some(Verdict::Wrong(format!("not rebuilt: {hack:?}")));
    }
    let (off, _) = Outcome::new(network, false, seed);
    let is_timer = network.is_timer;
    if let Some(what) = worse(&on, &off, is_timer) {
        return Some(Verdict::Worse(format!("{what}; {hack:?}")));
    }
    worse(&off, &on, is_timer).map(|_| Verdict::Better)
}

/// How one run is worse than another, if it is; `is_timer`: time does not count, since no delay is
/// good for all paths (HACK, section 3.2).
fn worse(one: &Outcome, other: &Outcome, is_timer: bool) -> Option<String> {
    if let (Some(broken), None) = (&one.broken, &other.broken) {
        return Some(broken.clone());
    }
    if one.bytes < other.bytes {
        return Some(format!("{} bytes, not {}", one.bytes, other.bytes));
    }
    if is_timer {
        return None;
    }
    if one.timeouts > 2 * other.timeouts + 6 {
        return Some(format!("{} timeouts, not {}", one.timeouts, other.timeouts));
    }
    let is_slow = one.end > 1.5 * other.end + 2.0;
    is_slow.then(|| format!("{} s, not {} s", one.end, other.end))
}

#[test]
fn nothing_is_lost_on_random_networks() {
    let asked = std::env::var("HACK_SEARCH").ok();
    let numbers =
        parse_seeds(asked.as_deref().unwrap_or(usual())).expect("HACK_SEARCH has numbers");
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

/// The usual networks are about both at once. (Long form alone.)
#[test]
fn filters_drop_acknowledgements_of_random_networks() {
    if !crate::is_long() {
        return;
    }
    let numbers = parse_seeds(NETWORKS).unwrap();
    let both = numbers.par_iter().map(|number| network(*number));
    let both = both.filter(has_both).count();
    assert!(both >= numbers.len() / 3, "{both} of {}", numbers.len());
}
