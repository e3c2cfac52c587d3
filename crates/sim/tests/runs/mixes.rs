//! Random mixes of every impairment with every acknowledgement policy and congestion controller:
//! each moves 1 MiB both ways over one connection, with identical bytes and a graceful close at
//! both ends, every invariant checked at every event.
//!
//! The mixes are numbered by their seed. `TACK_MIXES=17` or `TACK_MIXES=1..5000` runs others than
//! the usual 200 (60 in the ordinary form), and a failure prints the scenario that failed: write it
//! to a file and `tack sim` replays it with the seed it names.

use std::fmt::Write as _;

use tack_base::random::RandomStream;
use tack_sim::{Checks, Observers, Scenario, parse_seeds};

use crate::run;

const BYTES: u64 = 1 << 20;
const POLICIES: [&str; 6] = [
    "tack",
    "every",
    "delayed:2",
    "delayed:4",
    "delayed:8",
    "delayed:16",
];
const CONTROLLERS: [&str; 5] = ["new_reno", "cubic", "bbr", "vegas", "compound"];

#[test]
fn every_mix_delivers_and_closes() {
    let usual = if crate::is_long() { "1..200" } else { "1..60" };
    let seeds = std::env::var("TACK_MIXES").unwrap_or_else(|_| usual.into());
    let mut failures = Vec::new();
    let mut count = 0;
    for seed in parse_seeds(&seeds).expect("TACK_MIXES names seeds") {
        count += 1;
        let text = mix(seed);
        if let Err(what) = attempt(seed, &text) {
            println!("---- mix {seed}: {what}\n{text}");
            failures.push(seed);
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count} mixes failed: {failures:?}",
        failures.len()
    );
    println!("{count} mixes, seeds {seeds}: all delivered and closed");
}

fn attempt(seed: u64, text: &str) -> Result<(), String> {
    let scenario = Scenario::from_toml("mix.toml", text, &[]).map_err(|error| error.to_string())?;
    let mut observers = Observers::default().checking(Checks::EveryEvent);
    let report = run(&scenario, seed, &mut observers).map_err(|error| error.to_string())?;
    let flow = &report.flows[0];
    if flow.bytes_delivered != BYTES || flow.completion_s.is_none() {
        return Err(format!(
            "delivered {} of {BYTES} bytes by {} s",
            flow.bytes_delivered, report.virtual_seconds
        ));
    }
    if flow.closed != [Some("graceful"); 2] {
        return Err(format!(
            "closed as {:?} by {} s",
            flow.closed, report.virtual_seconds
        ));
    }
    Ok(())
}

/// The scenario of mix number `seed`.
fn mix(seed: u64) -> String {
    let mut random = RandomStream::new(seed, "mix", 0);
    let mut wired = String::new();
    let mut tables = String::new();
    let _ = writeln!(wired, "rate = \"{}kbps\"", 1_000 * (1 + random.below(100)));
    let _ = writeln!(wired, "delay = \"{}us\"", 500 + random.below(80_000));
    match random.below(3) {
        0 => _ = writeln!(wired, "queue = \"{}p\"", 10 + random.below(500)),
        1 => _ = writeln!(wired, "queue = \"{}B\"", 15_000 + random.below(500_000)),
        _ => {
            _ = writeln!(
                wired,
                "queue = \"{}.{}bdp\"",
                1 + random.below(3),
                random.below(10)
            )
        }
    }
    let up_to = |random: &mut RandomStream, most: u64| random.below(most + 1) as f64 / 1_000.0;
    for side in ["", "_reverse"] {
        let mut chosen = || random.chance(0.25);
        let picks: [bool; 12] = std::array::from_fn(|_| chosen());
        let mut faults = [
            ("loss", 50),
            ("ack_loss", 200),
            ("reorder", 100),
            ("duplicate", 100),
            ("corrupt", 30),
            ("ecn_mark", 50),
            ("short_sends", 300),
        ]
        .into_iter();
        for (pick, (key, most)) in picks.iter().zip(&mut faults) {
            if *pick {
                let _ = writeln!(wired, "{key}{side} = {}", up_to(&mut random, most));
            }
        }
        if picks[7] {
            let _ = writeln!(wired, "late_timers{side} = \"{}us\"", random.below(10_000));
        }
        if picks[8] {
            let _ = writeln!(
                wired,
                "late_processing{side} = \"{}us\"",
                random.below(5_000)
            );
        }
        if picks[9] {
            let (start, length) = (random.below(3_000), 100 + random.below(2_000));
            let _ = writeln!(
                tables,
                "[[wired.blackout{side}]]\nstart = \"{start}ms\"\nduration = \"{length}ms\""
            );
        }
        if picks[10] {
            let start = random.below(1_000);
            let _ = writeln!(
                tables,
                "[wired.suspension{side}]\nstart = \"{start}ms\"\nperiod = \"1s\"\nduration = \"100ms\"\nduration_max = \"250ms\""
            );
        }
        if picks[11] {
            let _ = writeln!(
                tables,
                "[wired.gilbert_elliott{side}]\ngood_to_bad = {}\nbad_to_good = {}\nloss_bad = 0.5",
                up_to(&mut random, 10),
                0.25 + up_to(&mut random, 400)
            );
        }
        let _ = writeln!(
            wired,
            "batch{side} = {}",
            [1, 1, 4, 16, 64][random.below(5) as usize]
        );
        if random.chance(0.15) {
            let kinds = ["[5]", "[8]", "[5, 8]", "[2]", "[4]"][random.below(5) as usize];
            let from = ["all", "syn", "rest"][random.below(3) as usize];
            let _ = writeln!(
                wired,
                "strip_options{side} = {kinds}\nstrip_options_from{side} = \"{from}\""
            );
        }
    }
    // Drawn apart, so that the mixes of a number stay alike when one more fault is thought of.
    let mut more = RandomStream::new(seed, "more", 0);
    if more.chance(0.1) {
        let _ = writeln!(wired, "mtu_black_hole = {}", 600 + more.below(900));
    }
    if more.chance(0.15) {
        let _ = writeln!(wired, "ecn_threshold = \"{}p\"", 1 + more.below(50));
    }
    // Taken from one SYN only, window scaling leaves the ends reading each other's windows
    // differently: some transfers would end, a kilobyte a second.
    if random.chance(0.05) && !wired.contains("strip_options") {
        let _ = writeln!(wired, "strip_options = [3]\nstrip_options_reverse = [3]");
    }
    if random.chance(0.2) {
        let isn = ["with_sack", "without_sack"][random.below(2) as usize];
        let _ = writeln!(wired, "isn_rewrite = \"{isn}\"");
    }
    if random.chance(0.3) {
        let _ = writeln!(
            wired,
            "clock_skew_ppm = {}",
            random.below(2_001) as i64 - 1_000
        );
    }
    let mut flow = String::new();
    let _ = writeln!(flow, "app = \"duplex\"\nbytes = \"{BYTES}B\"");
    // Every policy meets every controller every thirty mixes.
    let _ = writeln!(flow, "ack = \"{}\"", POLICIES[(seed % 6) as usize]);
    let _ = writeln!(
        flow,
        "congestion = \"{}\"",
        CONTROLLERS[(seed / 6 % 5) as usize]
    );
    let _ = writeln!(
        flow,
        "mss = {}",
        [536, 1_000, 1_460][random.below(3) as usize]
    );
    let _ = writeln!(
        flow,
        "sack = {}\ntimestamps = {}",
        random.chance(0.85),
        random.chance(0.85)
    );
    let _ = writeln!(
        flow,
        "nagle = {}\necn = {}",
        random.chance(0.3),
        random.chance(0.7)
    );
    let _ = writeln!(flow, "receive_buffer = \"{}KiB\"", 16 << random.below(8));
    let _ = writeln!(flow, "send_buffer = \"{}KiB\"", 16 << random.below(8));
    let from = ["server", "client"][random.below(2) as usize];
    format!(
        "name = \"mix-{seed}\"\nseed = {seed}\nduration = \"900s\"\n[wired]\n{wired}{tables}[[flow]]\nfrom = \"{from}\"\n{flow}"
    )
}
