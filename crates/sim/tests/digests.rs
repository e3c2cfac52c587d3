//! Digests of whole runs: a change that says it changes no behaviour must leave each of them as it
//! is.
//!
//! Every scenario below runs once, and a hash of its report is compared with the one in
//! `data/digests.txt`. The report has a hash of every packet in it, so one header bit or one
//! nanosecond makes a difference. Left out are `wall_seconds` and `events`: they are about the
//! simulator, not about what it simulated.
//!
//! A change of behaviour changes digests, and then the file is written anew:
//!
//! ```text
//! TACK_WRITE_DIGESTS=1 cargo test -p tack-sim --test digests
//! ```
//!
//! That is right only in a commit that changes behaviour on purpose and explains the change. A
//! refactoring that needs it has a fault.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use rayon::prelude::*;
use tack_sim::{Observers, Scenario, run};

/// A path with loss, reordering and duplicates in both directions.
const LOSSY: &str = "loss = 0.01\nack_loss_reverse = 0.02\nreorder = 0.01\nduplicate = 0.005\nreorder_reverse = 0.01\n";
/// The same, with blackouts that make retransmission timeouts, and late timers.
const BROKEN: &str = "loss = 0.02\nduplicate = 0.01\nlate_timers = '1ms'\n[[wired.blackout]]\nstart = '1s'\nduration = '700ms'\n";

/// Name and text of every scenario.
fn scenarios() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: &str, text: String| all.push((name.to_owned(), text));
    let wired = |path: &str, flows: &str| {
        format!("duration = '4s'\n[wired]\nrate = '20Mbps'\ndelay = '15ms'\n{path}{flows}")
    };
    let flow = |keys: &str| format!("[[flow]]\n{keys}");
    let lossy_flow = |keys: &str| wired(&format!("queue = '50p'\n{LOSSY}"), &flow(keys));
    for congestion in ["new_reno", "cubic", "bbr", "vegas", "compound"] {
        for (name, ack) in [("delayed", "delayed:2"), ("tack", "tack")] {
            add(
                &format!("lossy-{congestion}-{name}"),
                lossy_flow(&format!("congestion = '{congestion}'\nack = '{ack}'\n")),
            );
        }
    }
    for ack in ["every", "delayed:8"] {
        add(
            &format!("lossy-cubic-{ack}"),
            lossy_flow(&format!("congestion = 'cubic'\nack = '{ack}'\n")),
        );
    }
    for (name, keys) in [
        ("no-sack", "sack = false"),
        ("no-timestamps", "timestamps = false"),
        ("plain", "sack = false\ntimestamps = false"),
    ] {
        add(
            &format!("lossy-{name}"),
            lossy_flow(&format!(
                "congestion = 'new_reno'\nack = 'delayed:2'\n{keys}\n"
            )),
        );
        add(
            &format!("broken-{name}"),
            wired(
                BROKEN,
                &flow(&format!("congestion = 'cubic'\nack = 'every'\n{keys}\n")),
            ),
        );
    }
    for (name, keys) in [
        ("delayed", "ack = 'delayed:2'\ncongestion = 'cubic'\n"),
        ("tack", "ack = 'tack'\ncongestion = 'bbr'\n"),
        (
            "tack-poor",
            "ack = 'tack:rich=off,iack=periodic,timing=sampled'\ncongestion = 'new_reno'\n",
        ),
        (
            "tack-silent",
            "ack = 'tack:l=8,iack=off,settle=0.25'\ncongestion = 'cubic'\n",
        ),
    ] {
        add(&format!("broken-{name}"), wired(BROKEN, &flow(keys)));
    }
    for (name, keys) in [
        (
            "plain",
            "sack = false\ntimestamps = false\nack = 'delayed:2'\n",
        ),
        ("tack", "ack = 'tack'\n"),
    ] {
        // So many losses that most timeouts back off, and few acknowledgements give a round trip.
        add(
            &format!("scarce-samples-{name}"),
            wired(
                "loss = 0.25\nloss_reverse = 0.15\n",
                &flow(&format!("congestion = 'new_reno'\n{keys}")),
            )
            .replace("duration = '4s'", "duration = '60s'"),
        );
    }
    add(
        "marks",
        wired(
            "queue = '40p'\necn_threshold = '10p'\necn_mark = 0.002\n",
            "[[flow]]\ncongestion = 'cubic'\nack = 'delayed:2'\n[[flow]]\ncongestion = 'bbr'\nack = 'tack'\n",
        ),
    );
    add(
        "small-buffers",
        wired(
            "loss = 0.005\n",
            "[[flow]]\nreceive_buffer = '24KiB'\nack = 'tack'\ncongestion = 'cubic'\n\
             [[flow]]\nsend_buffer = '16KiB'\nack = 'delayed:2'\ncongestion = 'bbr'\nnagle = true\n",
        ),
    );
    for ack in ["delayed:2", "tack"] {
        add(
            &format!("zero-window-{ack}"),
            wired(
                "loss = 0.005\n",
                &flow(&format!(
                    "app = 'bulk:pause=500ms,resume=2s'\nreceive_buffer = '128KiB'\nack = '{ack}'\ncongestion = 'cubic'\n"
                )),
            ),
        );
        add(
            &format!("requests-{ack}"),
            wired(
                "loss = 0.01\n",
                &format!(
                    "[[flow]]\napp = 'request:200B,20KiB,gap=20ms'\nack = '{ack}'\nstop = '3s'\n\
                     [[flow]]\napp = 'duplex'\nbytes = '2MB'\nack = '{ack}'\ncongestion = 'cubic'\n"
                ),
            ),
        );
    }
    add(
        "middlebox",
        wired(
            "loss = 0.01\nisn_rewrite = 'without_sack'\nbatch = 16\nshort_sends = 0.01\nlate_processing = '200us'\n",
            "[[flow]]\ncongestion = 'cubic'\nack = 'delayed:2'\n[[flow]]\nack = 'tack'\n",
        ),
    );
    add(
        "stripped",
        wired(
            "loss = 0.01\nstrip_options = [253]\nstrip_options_from = 'rest'\nclock_skew_ppm = 80\n",
            "[[flow]]\nack = 'tack'\n[[flow]]\nack = 'tack'\ntimestamps = false\nbytes = '1MB'\n",
        ),
    );
    let many: String = (0..24)
        .map(|number| {
            let ack = ["delayed:2", "tack"][number % 2];
            let congestion = ["cubic", "bbr", "new_reno"][number % 3];
            format!(
                "[[flow]]\nstart = '{}ms'\nbytes = '150kB'\nack = '{ack}'\ncongestion = '{congestion}'\n",
                number * 20
            )
        })
        .collect();
    add(
        "many-flows",
        wired("queue = '60p'\nmtu_black_hole = 1300\n", &many),
    );
    for (preset, ack) in [("g", "delayed:2"), ("n", "tack"), ("ac", "tack")] {
        add(
            &format!("wlan-{preset}"),
            format!(
                "duration = '1s'\n[wlan]\npreset = 'tack-{preset}'\nframe_error_rate = 0.02\nstations = 2\n\
                 [[flow]]\nack = '{ack}'\n[[flow]]\nfrom = 'sta1'\nto = 'server'\nack = '{ack}'\ncongestion = 'cubic'\n"
            ),
        );
    }
    add(
        "wlan-hack",
        "duration = '1s'\n[wlan]\nstandard = '802.11n'\nrate = '150Mbps'\nhack = 'more-data'\n\
         [[flow]]\nack = 'delayed:2'\ncongestion = 'new_reno'\n"
            .to_owned(),
    );
    add(
        "wlan-ack-filter",
        "duration = '2s'\n[wlan]\nstandard = '802.11b'\nack_filter = 'cake'\nqueue = '30p'\nstations = 2\n\
         [[flow]]\nfrom = 'sta0'\nto = 'server'\nack = 'every'\n[[flow]]\nfrom = 'sta1'\nto = 'server'\nack = 'delayed:2'\n"
            .to_owned(),
    );
    all
}

/// The digest of one run.
fn digest(name: &str, text: &str) -> String {
    let scenario = Scenario::from_toml(name, text, &[])
        .unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
    let mut report = run(&scenario, 1, &mut Observers::default())
        .unwrap_or_else(|broken| panic!("{name}: {broken}"));
    let stalls: u64 = report.flows.iter().map(|flow| flow.stalls).sum();
    assert_eq!(stalls, 0, "{name}");
    report.wall_seconds = 0.0;
    report.events = 0;
    assert!(
        report.flows.iter().any(|flow| flow.bytes_delivered > 0),
        "{name} delivers nothing, so it compares nothing"
    );
    format!("{:016x}", fnv(report.to_json().as_bytes()))
}

/// FNV-1a, 64 bits: it tells two runs apart, and no library can change it.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[test]
fn the_runs_are_those_on_record() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/digests.txt");
    let scenarios = scenarios();
    let digests: Vec<(&str, String)> = scenarios
        .par_iter()
        .map(|(name, text)| (name.as_str(), digest(name, text)))
        .collect();
    if std::env::var_os("TACK_WRITE_DIGESTS").is_some() {
        let mut text = String::new();
        for (name, digest) in &digests {
            let _ = writeln!(text, "{name} {digest}");
        }
        std::fs::write(&file, text).expect("the file can be written");
        return;
    }
    let text = std::fs::read_to_string(&file).expect("the file is in the repository");
    let mut recorded: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    let mut differing = Vec::new();
    for (name, digest) in &digests {
        match recorded.remove(name) {
            Some(known) if known == digest => {}
            Some(known) => differing.push(format!("{name}: {digest}, on record {known}")),
            None => differing.push(format!("{name}: {digest}, not on record")),
        }
    }
    differing.extend(
        recorded
            .keys()
            .map(|name| format!("{name}: on record, and no scenario")),
    );
    assert!(
        differing.is_empty(),
        "{} of {} runs differ:\n{}\n\
         If behaviour was to change, write the file anew with TACK_WRITE_DIGESTS=1 and explain the change in the commit.",
        differing.len(),
        digests.len(),
        differing.join("\n")
    );
}
