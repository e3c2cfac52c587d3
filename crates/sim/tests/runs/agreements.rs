//! Block ACK agreements that radios negotiate (ADDBA), in whole runs: beside TCP/HACK and filters
//! of acknowledgements, and on random wireless paths with several faults at once, compared with
//! agreements that stand from the start.
//!
//! The quick form of the comparison is a test; the long form takes numbers of paths:
//!
//! ```text
//! TACK_AGREEMENT_SEARCH=1..500 cargo test --release -p tack-sim --test runs agreements -- \
//!     --nocapture
//! ```

use std::fmt::Write as _;

use rayon::prelude::*;
use tack_base::random::RandomStream;
use tack_sim::{Checks, Observers, Report, RunError, Scenario, parse_seeds};

use crate::run;

/// Runs a scenario, every invariant checked at every event. A sender that does not get on breaks
/// one.
fn try_to_play(text: &str, agreement: &str, seed: u64) -> Result<Report, RunError> {
    let keys = [format!("wlan.block_ack_agreement={agreement}")];
    let scenario = Scenario::from_toml("agreements.toml", text, &keys)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut observers = Observers::default().checking(Checks::EveryEvent);
    run(&scenario, seed, &mut observers)
}

fn play(text: &str, agreement: &str, seed: u64) -> Report {
    try_to_play(text, agreement, seed)
        .unwrap_or_else(|broken| panic!("{agreement}, seed {seed}: {broken}\n{text}"))
}

/// Once agreements stand, what HACK or a filter does for goodput is the same.
#[test]
fn hack_and_filters_work_over_a_negotiated_agreement() {
    let mechanisms = [
        "hack = 'more-data'",
        "ack_filter = 'paper'",
        "ack_filter = 'cake_aggressive'",
        "hack = 'opportunistic'",
        "hack = 'timer'",
        "hack = 'timestamp-echo'",
        "ack_filter = 'safe'",
        "ack_filter = 'cake'",
    ];
    let count = if crate::is_long() {
        mechanisms.len()
    } else {
        1
    };
    for mechanism in &mechanisms[..count] {
        let text = format!(
            "duration = '5s'\nwarmup = '2s'\n[wlan]\nstandard = '802.11n'\nrate = '150Mbps'\n{mechanism}\n[[flow]]\ncongestion = 'cubic'\n"
        );
        // CUBIC's goodput scatters by two per cent from seed to seed.
        let [established, negotiated] = ["established", "negotiated"]
            .map(|agreement| [1, 2, 3, 4].map(|seed| play(&text, agreement, seed)));
        let goodput = |reports: &[Report; 4]| -> f64 {
            reports.iter().map(|one| one.flows[0].goodput_bps).sum()
        };
        let ratio = goodput(&negotiated) / goodput(&established);
        assert!((0.97..=1.03).contains(&ratio), "{mechanism}: {ratio}");
        let works = |report: &Report| {
            let wlan = report.wlan.as_ref().unwrap();
            match &wlan.hack {
                Some(hack) => hack.carried > 0 && hack.crc_failures == 0,
                None => wlan.acks_filtered > 0,
            }
        };
        let work = |reports: &[Report; 4]| reports.each_ref().map(works);
        assert_eq!(work(&established), work(&negotiated), "{mechanism}");
    }
}

fn pick<T: Copy>(random: &mut RandomStream, choices: &[T]) -> T {
    choices[random.below(choices.len() as u64) as usize]
}

/// Path number `number`: a network with aggregation, transfers in all directions, two to four of
/// what can go wrong.
fn path(number: u64) -> String {
    let mut random = RandomStream::new(number, "negotiated path", 0);
    let random = &mut random;
    let standard = pick(random, &["802.11n", "802.11ac", "802.11ax"]);
    let stations = 1 + random.below(6);
    let mut wlan = format!("[wlan]\nstandard = '{standard}'\nstations = {stations}\n");
    let mut every_flow = String::new();
    let mut faults: Vec<u64> = (0..11).collect();
    for _ in 0..2 + random.below(3) {
        match faults.swap_remove(random.below(faults.len() as u64) as usize) {
            0 => {
                let rate = 0.004 * f64::from(1 << random.below(6) as u32);
                _ = writeln!(wlan, "frame_error_rate = {rate}");
            }
            1 => _ = writeln!(wlan, "retry_limit = {}", 1 + random.below(3)),
            2 if stations > 1 => {
                let pairs: Vec<_> = (1..stations)
                    .map(|other| format!("'sta0-sta{other}'"))
                    .collect();
                _ = writeln!(wlan, "hidden = [{}]", pairs.join(", "));
            }
            3 => _ = writeln!(wlan, "rts_threshold = '500B'"),
            4 => _ = writeln!(wlan, "txop_limit = '{}ms'", 1 + random.below(4)),
            5 => _ = writeln!(wlan, "contenders = {}", 1 + random.below(3)),
            6 => _ = writeln!(wlan, "missed_block_ack = 'resend'"),
            7 => _ = writeln!(wlan, "queue = '{}p'", 10 << random.below(4)),
            8 => {
                let hack = pick(random, &["opportunistic", "more-data", "timer"]);
                _ = writeln!(wlan, "hack = '{hack}'");
            }
            9 => {
                let filter = pick(random, &["paper", "safe", "cake", "cake_aggressive"]);
                _ = writeln!(wlan, "ack_filter = '{filter}'");
            }
            10 => {
                let category = pick(random, &["background", "video", "voice"]);
                _ = writeln!(every_flow, "access_category = '{category}'");
            }
            // One station has nobody to be hidden from.
            _ => {}
        }
    }
    let congestion = pick(random, &["new_reno", "cubic", "bbr"]);
    let mut flows = String::new();
    let bytes = 12_000_000 / stations;
    for station in 0..stations {
        let (from, to) = match random.below(5) {
            0 | 1 => (format!("sta{station}"), "server".to_owned()),
            2 if stations > 1 => (
                format!("sta{station}"),
                format!("sta{}", (station + 1) % stations),
            ),
            _ => ("server".to_owned(), format!("sta{station}")),
        };
        let ack = pick(random, &["every", "delayed:2", "tack"]);
        _ = write!(
            flows,
            "[[flow]]\nfrom = '{from}'\nto = '{to}'\nstart = '{}ms'\nbytes = '{bytes}B'\nack = '{ack}'\ncongestion = '{congestion}'\n{every_flow}",
            random.below(500)
        );
    }
    format!(
        "name = 'negotiated-{number}'\nduration = '120s'\n[wired]\nrate = '1Gbps'\ndelay = '{}ms'\n{wlan}{flows}",
        1 + random.below(20)
    )
}

/// Seconds until the last byte of the last flow.
fn last_byte(report: &Report) -> f64 {
    let ends = report.flows.iter();
    ends.map(|flow| flow.completion_s.unwrap_or(f64::INFINITY))
        .fold(0.0, f64::max)
}

fn median(number: u64, text: &str, agreement: &str) -> f64 {
    const SEEDS: u64 = 7;
    let mut values: Vec<_> = (0..SEEDS)
        .map(|nth| last_byte(&play(text, agreement, number + 1_000_000 * nth)))
        .collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Every byte arrives, no sender stops getting on, and it does not take much longer.
#[test]
fn negotiation_is_no_worse_than_none_on_random_paths() {
    let asked = std::env::var("TACK_AGREEMENT_SEARCH").ok();
    let usual = if crate::is_long() { "1..16" } else { "1..4" };
    let numbers = parse_seeds(asked.as_deref().unwrap_or(usual)).expect("numbers of paths");
    let worse: Vec<_> = numbers
        .par_iter()
        .filter(|number| {
            let text = path(**number);
            let is_slower = |with: f64, without: f64| with > 1.5 * without + 1.0;
            let mut without = last_byte(&play(&text, "established", **number));
            let mut with = match try_to_play(&text, "negotiated", **number) {
                Ok(report) => last_byte(&report),
                Err(broken) => {
                    println!("{broken}\n{text}");
                    return true;
                }
            };
            if is_slower(with, without) {
                with = median(**number, &text, "negotiated");
                without = median(**number, &text, "established");
            }
            let is_worse = is_slower(with, without);
            if is_worse {
                println!("{with} s, {without} s with agreements from the start\n{text}");
            }
            is_worse
        })
        .collect();
    assert!(
        worse.is_empty(),
        "{worse:?}: TACK_AGREEMENT_SEARCH=… prints them"
    );
}
