//! How fast one flow is, and how two flows share a link.

use rayon::prelude::*;
use tack_sim::FlowReport;

use super::flows;

/// Path 60415: timers of the sender's host are up to 4.3 ms late, and the queue of ten packets
/// drains in 0.6 ms. What a report frees leaves in bursts as long as the timers are late. A legacy
/// policy that sends as few acknowledgements is as slow. With timers on time, TACK is as fast as
/// `delayed:2`.
#[test]
fn with_late_timers_a_plain_policy_that_acknowledges_as_seldom_is_no_faster() {
    if !crate::is_long() {
        return;
    }
    let run = |ack: &str, late: &str| {
        let text = format!(
            "duration = '6s'\n[wired]\nrate = '194185kbps'\ndelay = '8724us'\nqueue = '10p'\n\
             isn_rewrite = 'without_sack'\nlate_timers = '{late}'\nlate_processing = '315us'\n\
             [[flow]]\ncongestion = 'new_reno'\nack = '{ack}'\nsend_buffer = '410103B'\n"
        );
        let runs: Vec<_> = (1..=4)
            .into_par_iter()
            .map(|seed| flows(&text, seed).remove(0))
            .collect();
        let sum = |figure: fn(&FlowReport) -> f64| runs.iter().map(figure).sum::<f64>();
        let mbps = sum(|flow| flow.goodput_bps) / 4e6;
        let acks = sum(|flow| flow.acks as f64) / sum(|flow| flow.bytes_delivered as f64) * 1e6;
        println!("{ack}, late by {late}: {mbps:.1} Mbit/s, {acks:.0} acknowledgements a MB");
        (mbps, acks)
    };
    let [tack, sparse, plain] = ["tack", "delayed:16", "delayed:2"].map(|ack| run(ack, "4315us"));
    // What the search flags, and its reason.
    assert!(tack.0 < 0.7 * plain.0, "{tack:?}, {plain:?}");
    assert!(
        sparse.1 <= tack.1 && sparse.0 <= tack.0,
        "{tack:?}, {sparse:?}"
    );
    let [tack, plain] = ["tack", "delayed:2"].map(|ack| run(ack, "0us"));
    assert!(tack.0 >= 0.95 * plain.0, "{tack:?}, {plain:?}");
}

/// Path 50266: one flow's acknowledgements fill the queue of a slow reverse link, and those of the
/// other hardly get in. That does not come from TACK: the flow that acknowledges less often
/// starves. So it is with plain policies, too. Of two plain flows one has next to nothing, as
/// chance decides. Two of TACK are more even; the one that begins later, if only by a packet, has
/// more. There, too, the faster one reports more often and more of its reports get through; where
/// the way back has room both have as much.
#[test]
fn who_acknowledges_more_often_starves_the_other_on_a_full_reverse_link() {
    if !crate::is_long() {
        return;
    }
    let shares_at = |way_back: &str, congestion: &str, first: &str, second: &str| {
        let text = format!(
            "duration = '6s'\n[wired]\nrate = '66821kbps'\ndelay = '785us'\nqueue = '2.0bdp'\n\
             loss_reverse = 0.0367\nrate_reverse = '{way_back}'\n\
             [[flow]]\ncongestion = '{congestion}'\nack = '{first}'\n\
             [[flow]]\ncongestion = '{congestion}'\nack = '{second}'\n"
        );
        let seeds: Vec<u64> = (1..=16).collect();
        let runs: Vec<_> = seeds.par_iter().map(|seed| flows(&text, *seed)).collect();
        let mbps = |nth: usize| {
            runs.iter().map(|flows| flows[nth].goodput_bps).sum::<f64>() / 1e6 / runs.len() as f64
        };
        let slower = |flows: &Vec<FlowReport>| flows[0].goodput_bps.min(flows[1].goodput_bps) / 1e6;
        let slower = runs.iter().map(slower).sum::<f64>() / runs.len() as f64;
        println!(
            "{congestion}: {first} {:.2}, {second} {:.2} Mbit/s; the slower one {slower:.2}",
            mbps(0),
            mbps(1)
        );
        (mbps(0), mbps(1), slower)
    };
    let shares = |congestion, first, second| shares_at("599kbps", congestion, first, second);
    let (tack, dense, _) = shares("cubic", "tack", "delayed:2");
    assert!(tack < 0.1 * dense, "{tack}, {dense}");
    let (plain, denser, _) = shares("cubic", "delayed:2", "every");
    assert!(plain < 0.1 * denser, "{plain}, {denser}");
    for congestion in ["new_reno", "cubic", "compound", "bbr"] {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| shares(congestion, ack, ack).2);
        assert!(tack > 1.2 * plain, "{congestion}: {tack}, {plain}");
        let (first, second, _) = shares_at("66821kbps", congestion, "tack", "tack");
        let even = 0.85..1.18;
        assert!(
            even.contains(&(first / second)),
            "{congestion}: {first}, {second}"
        );
    }
}

/// Path 61432, which differs from 50266 by reordering: with most segments out of order `delayed:2`
/// acknowledges each of them, and fills the way back. TACK beside TACK has there what `delayed:2`
/// has beside its like, and on a fast way back they are alike beside each other as well.
#[test]
fn beside_its_like_tack_is_as_fast_on_a_full_reverse_link() {
    if !crate::is_long() {
        return;
    }
    let first = |acks: [&str; 2], way_back: &str| {
        let [first, second] = acks;
        let text = format!(
            "duration = '12276352us'\n[wired]\nrate = '7723kbps'\ndelay = '6908us'\nqueue = '1.0bdp'\n\
             reorder = 0.2211\nreorder_delay = '8514us'\nrate_reverse = '{way_back}'\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{first}'\ntimestamps = false\n\
             [[flow]]\ncongestion = 'bbr'\nack = '{second}'\ntimestamps = false\n"
        );
        let goodput = |seed| flows(&text, seed)[0].goodput_bps / 1e6;
        (1..=16).into_par_iter().map(goodput).sum::<f64>() / 16.0
    };
    let plain = first(["delayed:2", "delayed:2"], "161kbps");
    let beside_plain = first(["tack", "delayed:2"], "161kbps");
    let beside_tack = first(["tack", "tack"], "161kbps");
    let fast = first(["tack", "delayed:2"], "1Gbps");
    println!(
        "delayed:2 {plain:.2} Mbit/s, TACK beside it {beside_plain:.2}, beside TACK {beside_tack:.2}, on a fast way back {fast:.2}"
    );
    // What the search flags.
    assert!(beside_plain < 0.7 * plain, "{beside_plain}, {plain}");
    assert!(beside_tack > 0.7 * plain, "{beside_tack}, {plain}");
    assert!(fast > 0.7 * plain, "{fast}, {plain}");
}

/// Path 132040 and its neighbours: an application stops reading for 1.6 s, and the queue drains
/// meanwhile. The sender said that its round trip was 1.7 s, and the next time in a segment that
/// waited in a new queue for two seconds; until then the receiver took that for the measure of its
/// window: 2.5 Mbit/s, 3.7 with `delayed:2`. Now it sees by itself that the queue has drained.
#[test]
fn the_window_follows_the_round_trip_after_a_pause() {
    let mbps = |delay: &str, ack: &str| {
        let text = format!(
            "duration = '14019224us'\n[wired]\nrate = '4070kbps'\ndelay = '{delay}'\nqueue = '1000p'\n\
             [[flow]]\ncongestion = 'new_reno'\nack = '{ack}'\napp = 'bulk:pause=2637605us,resume=4227906us'\n"
        );
        flows(&text, 1)[0].goodput_bps / 1e6
    };
    let delays = ["46ms", "48ms", "50480us", "52ms", "55ms"];
    delays.par_iter().for_each(|delay| {
        let [tack, plain] = ["tack", "delayed:2"].map(|ack| mbps(delay, ack));
        println!("{delay}: {tack:.2} Mbit/s, {plain:.2} with delayed:2");
        assert!(tack > 0.95 * plain, "{delay}: {tack}, {plain}");
    });
}
