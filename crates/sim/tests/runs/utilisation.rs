//! How well flows use a link and share it, in virtual time: 100 Mbit/s, 40 ms, a queue of one
//! bandwidth-delay product.
//!
//! Goodput counts application bytes; "utilisation" is that over what a full link carries of them,
//! headers counted out: 1,448 of every 1,500 bytes.

use rayon::prelude::*;
use tack_sim::{Checks, Observers, Report, Scenario};

use crate::run;

use crate::is_long;

const PATH: &str = "[wired]\nrate = '100Mbps'\ndelay = '20ms'\nqueue = '1.0bdp'\n";
const PAYLOAD_SHARE: f64 = 1_448.0 / 1_500.0;

fn report(text: &str, overrides: &[&str]) -> Report {
    let overrides: Vec<_> = overrides.iter().map(ToString::to_string).collect();
    let scenario =
        Scenario::from_toml("test.toml", text, &overrides).expect("the scenario is sound");
    // Whatever `checking` finds fails the test with the invariant's name.
    let mut observers = Observers::default().checking(Checks::EveryEvent);
    run(&scenario, scenario.seed, &mut observers).expect("no invariant breaks")
}

fn single(controller: &str, more: &[&str]) -> Report {
    let text =
        format!("duration = '20s'\nwarmup = '5s'\n{PATH}[[flow]]\ncongestion = '{controller}'\n");
    report(&text, more)
}

fn utilisation(report: &Report) -> f64 {
    let goodput: f64 = report.flows.iter().map(|flow| flow.goodput_bps).sum();
    goodput / (100e6 * PAYLOAD_SHARE)
}

#[test]
fn each_controller_fills_a_clean_link() {
    let all = [("cubic", 0.95), ("bbr", 0.95), ("new_reno", 0.90)];
    for (controller, least) in &all[..if is_long() { 3 } else { 2 }] {
        let report = single(controller, &[]);
        let share = utilisation(&report);
        println!("{controller}: {:.1} %", 100.0 * share);
        assert!(share >= *least, "{controller}: {share}");
    }
}

/// A receive buffer that follows the pace, as transfers of files have it, costs little goodput:
/// over radios, over a large product of bandwidth and delay, over losses, and in queues that
/// another flow fills. With a least buffer of 4 KiB the path's needs alone decide; that may cost a
/// tenth.
#[test]
fn a_buffer_that_shrinks_costs_little_goodput() {
    let far = "[wired]\nrate = '1Gbps'\ndelay = '25ms'\nqueue = '4000p'\n";
    let ac = "[wlan]\npreset = 'tack-ac'\n";
    let paths = [
        ("ac", ac.to_owned(), false),
        ("errors", format!("{ac}frame_error_rate = 0.1\n"), false),
        ("far", format!("{far}{ac}"), false),
        (
            "loss",
            "[wired]\nrate = '100Mbps'\ndelay = '50ms'\nloss = 0.01\n".into(),
            false,
        ),
        (
            "shared",
            "[wired]\nrate = '100Mbps'\ndelay = '250us'\nqueue = '1000p'\n".into(),
            true,
        ),
    ];
    let mut results = Vec::new();
    let all = paths
        .iter()
        .flat_map(|path| [(path, "bbr"), (path, "cubic")]);
    all.collect::<Vec<_>>()
        .into_par_iter()
        .map(|((name, path, is_shared), controller)| {
            let other = if *is_shared { "[[flow]]\ncongestion = 'cubic'\n" } else { "" };
            let text = format!(
                "duration = '4s'\nwarmup = '1s'\n{path}[[flow]]\ncongestion = '{controller}'\n{other}"
            );
            let goodput = |key: &str| -> f64 {
                let of = |seed| report(&text, &[key, seed]).flows[0].goodput_bps / 1e6;
                ["seed=1", "seed=2"].map(of).iter().sum::<f64>() / 2.0
            };
            let goodputs = ["receive_window=autotuned", "least_receive_buffer=4KiB", "least_receive_buffer=384KiB"].map(|key| {
                goodput(&format!("flow.0.{key}"))
            });
            (*name, controller, goodputs)
        })
        .collect_into_vec(&mut results);
    for (name, controller, [grows, small, usual]) in results {
        println!("{name}, {controller}: {grows:.1}, {small:.1}, {usual:.1} Mbit/s");
        assert!(small >= 0.9 * grows, "{name}, {controller}");
        assert!(usual >= 0.95 * grows, "{name}, {controller}");
    }
}

#[test]
fn bbr_does_not_mind_random_loss() {
    let seeds = ["seed=1", "seed=2", "seed=3"];
    for seed in &seeds[..if is_long() { 3 } else { 1 }] {
        let report = single("bbr", &["wired.loss=0.01", seed]);
        let share = utilisation(&report);
        println!("bbr, 1 % loss, {seed}: {:.1} %", 100.0 * share);
        assert!(share >= 0.85, "{seed}: {share}");
    }
}

/// A send buffer smaller than startup's window keeps BBR's samples from growing, and must not keep
/// it in startup: at 1 Gbit/s and 20 ms it would overflow the queue for seconds.
#[test]
fn bbr_leaves_startup_when_the_send_buffer_is_the_limit() {
    if !crate::is_long() {
        return;
    }
    let text = "duration = '6s'\nwarmup = '2s'\n[wired]\nrate = '1Gbps'\ndelay = '10ms'\nqueue = '1.0bdp'\n[[flow]]\n";
    let scenario = Scenario::from_toml("test.toml", text, &[]).unwrap();
    let report = run(&scenario, 1, &mut Observers::default()).unwrap();
    let flow = &report.flows[0];
    println!(
        "{:.1} %, {} retransmitted",
        10.0 * utilisation(&report),
        flow.retransmitted_segments
    );
    assert!(
        10.0 * utilisation(&report) >= 95.0,
        "{}",
        utilisation(&report)
    );
    assert!(
        flow.retransmitted_segments < 1_000,
        "{}",
        flow.retransmitted_segments
    );
}

#[test]
fn delayed_acknowledgements_keep_their_ratio() {
    let policies = [
        ("delayed:2", 2.0),
        ("delayed:16", 16.0),
        ("every", 1.0),
        ("delayed:4", 4.0),
        ("delayed:8", 8.0),
    ];
    for (policy, segments) in &policies[..if is_long() { 5 } else { 2 }] {
        let report = single("bbr", &[&format!("flow.0.ack={policy}")]);
        let flow = &report.flows[0];
        assert_eq!(
            flow.retransmitted_segments, 0,
            "{policy}: the link is clean"
        );
        let ratio = flow.data_segments as f64 / flow.acks as f64;
        println!(
            "{policy}: {ratio:.3} data segments an acknowledgement, {:.1} %",
            100.0 * utilisation(&report)
        );
        assert!((ratio / segments - 1.0).abs() <= 0.02, "{policy}: {ratio}");
        assert!(utilisation(&report) >= 0.95, "{policy}");
    }
}

/// (Long form: three runs of a minute and a half for each controller. In the ordinary form TACK's
/// tests have two flows on one path.)
#[test]
fn two_of_a_kind_share_fairly() {
    if !is_long() {
        return;
    }
    ["bbr", "cubic"].par_iter().for_each(|controller| {
        // The path is clean, so a seed changes nothing: what differs is when the second flow finds
        // the first.
        let mut seen = Vec::new();
        let starts = ["100ms", "3s", "10s"];
        for start in starts {
            let text = format!(
                "duration = '90s'\nwarmup = '30s'\n{PATH}[[flow]]\ncongestion = '{controller}'\n[[flow]]\nstart = '{start}'\ncongestion = '{controller}'\n"
            );
            let scenario = Scenario::from_toml("test.toml", &text, &[]).unwrap();
            let report = run(&scenario, scenario.seed, &mut Observers::default()).unwrap();
            let (fairness, share) = (report.fairness(), utilisation(&report));
            println!(
                "two {controller}, the second {start} later: Jain {fairness:.4}, {:.1} %",
                100.0 * share
            );
            assert!(fairness >= 0.95, "{controller}, {start}: {fairness}");
            assert!(share >= 0.9, "{controller}, {start}: {share}");
            seen.push(report.trace_hash);
        }
        seen.dedup();
        assert_eq!(seen.len(), starts.len(), "{controller}: the runs are the same");
    });
}
