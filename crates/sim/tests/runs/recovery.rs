//! Loss recovery over whole transfers: window cuts that were due stay, whatever the path does to
//! the witnesses.

use rayon::prelude::*;
use tack_sim::{Checks, FlowReport, Observers, Qlog, Scenario};

use crate::run;

use crate::is_long;

/// One transfer of 10 MB at 1 % loss over 20 Mbit/s and 40 ms, with `path` and `flow` besides.
fn transfer(path: &str, flow: &str) -> FlowReport {
    traced(path, flow).0
}

/// Besides the report: how many loss episodes began, and how many were taken back.
fn traced(path: &str, flow: &str) -> (FlowReport, usize, usize) {
    let text = format!(
        "duration = '900s'\n[wired]\nrate = '20Mbps'\ndelay = '20ms'\nqueue = '100p'\nloss = 0.01\n{path}\n\
         [[flow]]\nbytes = '10MB'\n{flow}\n"
    );
    let scenario = Scenario::from_toml("recovery.toml", &text, &[]).expect("the scenario is sound");
    let mut log = Vec::new();
    let mut qlog = Qlog::new(&mut log).expect("memory takes it");
    let mut observers = Observers::default()
        .checking(Checks::EveryEvent)
        .with(&mut qlog);
    let mut report = run(&scenario, 1, &mut observers).expect("no invariant breaks");
    let log = String::from_utf8(log).expect("it is text");
    let episodes = |state: &str| log.matches(&format!("\"state\":\"{state}\"")).count();
    (
        report.flows.remove(0),
        episodes("begins"),
        episodes("undone"),
    )
}

/// Watching changes nothing. Where timers are late, the sender sent what was due whenever its trace
/// was read: path 168997 had 26 Mbit/s with a trace and 19 without.
#[test]
fn a_run_is_the_same_with_a_trace_and_without() {
    let text = "duration = '5s'\n[wired]\nrate = '45Mbps'\ndelay = '57ms'\nqueue = '0.5bdp'\nlate_timers = '6366us'\n\
                [[flow]]\ncongestion = 'bbr'\n[[flow]]\ncongestion = 'bbr'\nack = 'delayed:2'\n";
    let scenario = Scenario::from_toml("traced.toml", text, &[]).expect("the scenario is sound");
    let mut log = Vec::new();
    let mut qlog = Qlog::new(&mut log).expect("memory takes it");
    let [traced, plain] =
        [Observers::default().with(&mut qlog), Observers::default()].map(|mut observers| {
            let report = run(&scenario, 1, &mut observers).expect("no invariant breaks");
            report.trace_hash
        });
    assert_eq!(traced, plain);
    assert!(log.len() > 100_000, "{} bytes of trace", log.len());
}

/// RFC 3708 §2: what the network duplicates says nothing about retransmissions. Believed, it would
/// take back each window cut, and a window that loss should hold at a few segments would grow to
/// what the path carries.
#[test]
fn duplicates_made_by_the_network_take_no_window_cut_back() {
    let flows = [
        "congestion = 'cubic'",
        "congestion = 'new_reno'",
        "congestion = 'new_reno'\ntimestamps = false",
    ];
    for flow in &flows[..if is_long() { 3 } else { 1 }] {
        let (plain, begun, undone) = traced("", flow);
        assert!(
            begun > 20 && undone == 0,
            "{flow}: {begun} begun, {undone} undone"
        );
        let (doubled, begun, undone) = traced("duplicate = 0.05", flow);
        println!(
            "{flow:?}: {:?} s; with duplicates {:?} s, {begun} episodes, {undone} taken back",
            plain.completion_s, doubled.completion_s
        );
        assert!(doubled.completion_s.is_some());
        // A copy of a retransmission cannot be told from a needless one.
        assert!(
            begun > 20 && undone <= begun / 10,
            "{flow}: {begun} begun, {undone} undone"
        );
    }
}

/// A box that takes timestamps off everything but the SYN leaves the peer echoing the SYN's for
/// ever: neither a round trip nor proof that a retransmission was needless.
#[test]
fn stale_echoes_are_not_believed() {
    let flows = ["congestion = 'cubic'", "congestion = 'new_reno'"];
    for flow in &flows[..if is_long() { 2 } else { 1 }] {
        let plain = transfer("", flow);
        for faults in [
            "strip_options = [8]\nstrip_options_from = 'rest'",
            "strip_options = [8]\nstrip_options_from = 'rest'\n[[wired.blackout]]\nstart = '2s'\nduration = '1s'",
            "strip_options = [8]\nstrip_options_from = 'rest'\nmtu_black_hole = 1300",
        ] {
            let stripped = transfer(faults, flow);
            let (plain, took) = (plain.completion_s.unwrap(), stripped.completion_s);
            let srtt = stripped.srtt_us.expect("there are samples");
            println!(
                "{flow:?}, {faults:?}: {took:?}, without {plain:.1} s; srtt {} us",
                srtt
            );
            let took = took.expect("it ends");
            assert!(
                (0.7 * plain..1.4 * plain + 10.0).contains(&took),
                "{flow}: {faults}"
            );
            assert!(srtt < 200_000, "{flow}: {faults}");
        }
    }
}

/// A box that rewrites sequence numbers but not SACK blocks: losses are found by counting
/// duplicates instead.
#[test]
fn blocks_that_make_no_sense_are_given_up() {
    let plain = transfer("", "congestion = 'new_reno'\nsack = false")
        .completion_s
        .expect("it ends");
    let shifted = transfer("isn_rewrite = 'without_sack'", "congestion = 'new_reno'")
        .completion_s
        .expect("it ends");
    println!("without SACK {plain:.1} s, with useless SACK {shifted:.1} s");
    assert!(shifted < 1.5 * plain);
}

/// A startup that overshoots a long fat path leaves thousands of holes at once. A receiver that
/// detects losses remembers and tells them all, the oldest first: nothing waits for the
/// retransmission timeout.
#[test]
fn mass_loss_is_told_without_a_timeout() {
    let paths = [("0.1bdp", "bbr"), ("0.33bdp", "bbr"), ("0.33bdp", "cubic")];
    let paths = if is_long() { &paths[..] } else { &paths[2..] };
    paths.par_iter().for_each(|(queue, controller)| {
        let flow = |ack: &str| {
            let text = format!(
                "duration = '10s'\n[wired]\nrate = '1Gbps'\ndelay = '100ms'\nqueue = '{queue}'\n\
                 [[flow]]\ncongestion = '{controller}'\nack = '{ack}'\nreceive_buffer = '64MiB'\nsend_buffer = '64MiB'\n"
            );
            let scenario =
                Scenario::from_toml("mass.toml", &text, &[]).expect("the scenario is sound");
            let mut report = run(&scenario, 1, &mut Observers::default()).expect("it runs");
            report.flows.remove(0)
        };
        let (tack, delayed) = rayon::join(|| flow("tack"), || flow("delayed:2"));
        println!(
            "{queue} {controller}: tack {:.0} Mbit/s, {} timeouts, {} spurious of {}, {} acks; delayed:2 {:.0} Mbit/s, {} acks",
            tack.goodput_bps / 1e6,
            tack.rto_count,
            tack.spurious_retransmissions,
            tack.retransmitted_segments,
            tack.acks,
            delayed.goodput_bps / 1e6,
            delayed.acks
        );
        assert_eq!(tack.rto_count, 0, "{queue} {controller}");
        assert!(
            tack.goodput_bps > 0.9 * delayed.goodput_bps,
            "{queue} {controller}"
        );
    });
}

/// Without SACK and timestamps nearly every acknowledgement on such a path covers a retransmission,
/// and Karn's algorithm takes no sample. A timer that stayed backed off all the while would wait
/// for half a minute where the path delivers.
#[test]
fn progress_without_samples_ends_backing_off() {
    let text = "duration = '300s'\n[wired]\nrate = '10Mbps'\ndelay = '20ms'\nloss = 0.15\nloss_reverse = 0.15\n\
                [[flow]]\nbytes = '400kB'\napp = 'duplex'\nack = 'delayed:2'\ncongestion = 'new_reno'\n\
                sack = false\ntimestamps = false\n";
    let scenario = Scenario::from_toml("lossy.toml", text, &[]).expect("the scenario is sound");
    let ends: Vec<_> = (1..=if is_long() { 40_u64 } else { 10 })
        .into_par_iter()
        .map(|seed| {
            let mut observers = Observers::default().checking(Checks::EveryEvent);
            let report = run(&scenario, seed, &mut observers)
                .unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
            report.flows[0].completion_s.expect("the transfer ends")
        })
        .collect();
    let mean = ends.iter().sum::<f64>() / ends.len() as f64;
    println!("{mean:.1} s on average: {ends:?}");
    assert!(mean < 20.0, "{mean} s");
}
