//! What congestion control answers, and what it does not, over whole transfers: windows that loss must hold down, marks, paths
//! of a few segments, and many flows on one link. Each with legacy acknowledgements and with TACK.

use tack_sim::{Observers, Report, Scenario, run};

fn simulate(text: &str, seed: u64) -> Report {
    let scenario =
        Scenario::from_toml("congestion.toml", text, &[]).expect("the scenario is sound");
    run(&scenario, seed, &mut Observers::default()).expect("no invariant breaks")
}

fn mbps(report: &Report, flow: usize) -> f64 {
    report.flows[flow].goodput_bps / 1e6
}

/// Share of its segments that a flow sent again, per cent.
fn retransmitted(report: &Report, flow: usize) -> f64 {
    let flow = &report.flows[flow];
    100.0 * flow.retransmitted_segments as f64 / flow.data_segments as f64
}

fn one_flow(path: &str, congestion: &str, ack: &str) -> String {
    format!(
        "duration = '15s'\nwarmup = '5s'\n[wired]\n{path}\n\
         [[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n"
    )
}

/// In a long recovery FlightSize spans many windows; a window reduced from it is not reduced. At 3 % loss Reno's window is
/// about seven segments (RFC 3649 section 2), 16 Mbit/s on this path.
#[test]
fn a_window_that_loss_holds_down_stays_down_when_the_network_duplicates_and_reorders() {
    let path = "rate = '200Mbps'\ndelay = '2500us'\nqueue = '1.0bdp'\nloss = 0.03";
    for congestion in ["cubic", "new_reno", "compound", "vegas"] {
        for ack in ["delayed:2", "tack"] {
            for fault in [
                "",
                "duplicate = 0.02",
                "reorder = 0.05\nreorder_delay = '2ms'",
            ] {
                let text = one_flow(&format!("{path}\n{fault}"), congestion, ack);
                let goodput = mbps(&simulate(&text, 1), 0);
                println!("{congestion} {ack} {fault:?}: {goodput:.1} Mbit/s");
                assert!(
                    (9.0..20.0).contains(&goodput),
                    "{congestion} {ack} {fault:?}: {goodput:.1} Mbit/s"
                );
            }
        }
    }
}

/// Where the peer counts segments, a pacing floor of a segment an interval is several times what the path carries.
#[test]
fn a_path_of_a_few_segments_is_not_flooded_with_tack() {
    for (rate, delay, queue) in [
        ("1500kbps", "6ms", "1.0bdp"),
        ("1500kbps", "6ms", "4.0bdp"),
        ("1Mbps", "10ms", "2.0bdp"),
        ("3Mbps", "6ms", "2.0bdp"),
        ("5Mbps", "6ms", "1.0bdp"),
        ("500kbps", "20ms", "2.0bdp"),
    ] {
        let path = format!("rate = '{rate}'\ndelay = '{delay}'\nqueue = '{queue}'");
        let [legacy, tack] =
            ["delayed:2", "tack"].map(|ack| simulate(&one_flow(&path, "bbr", ack), 1));
        let (before, after) = (retransmitted(&legacy, 0), retransmitted(&tack, 0));
        let acks = [&legacy, &tack].map(|report| report.flows[0].acks);
        println!("{rate} {delay} {queue}: {before:.1} and {after:.1} % again, ACKs {acks:?}");
        assert!(
            after <= before + 2.0,
            "{rate} {delay} {queue}: {after:.1} % again, {before:.1} with delayed:2"
        );
        assert!(
            acks[1] * 20 <= acks[0] * 21,
            "{rate} {delay} {queue}: ACKs {acks:?}"
        );
    }
}

const MARKING: &str = "rate = '50Mbps'\ndelay = '10ms'\nqueue = '4.0bdp'\necn_threshold = '20p'";

/// BBR had nine tenths and more of the link, as it did not answer marks that CUBIC answers (RFC 3168 section 6.1.2).
#[test]
fn who_answers_marks_gets_a_fair_share_beside_bbr() {
    for ack in ["tack", "delayed:2"] {
        let flow = |congestion| format!("[[flow]]\ncongestion = '{congestion}'\nack = '{ack}'\n");
        let text = format!(
            "duration = '30s'\nwarmup = '10s'\n[wired]\n{MARKING}\n{}{}",
            flow("bbr"),
            flow("cubic")
        );
        let report = simulate(&text, 1);
        let (bbr, cubic) = (mbps(&report, 0), mbps(&report, 1));
        let marked = report.wired.forward.marked;
        println!("{ack}: BBR {bbr:.1}, CUBIC {cubic:.1} Mbit/s, {marked} marked");
        assert!(cubic > 20.0 && bbr > 14.0, "{ack}: {bbr:.1} and {cubic:.1}");
    }
}

/// The answer is to the queue: a flow that is alone gives up the queue, not the path.
#[test]
fn marks_cost_a_lone_bbr_flow_little() {
    for path in [
        MARKING,
        "rate = '100Mbps'\ndelay = '20ms'\nqueue = '2.0bdp'\necn_threshold = '20p'",
    ] {
        for ack in ["tack", "delayed:2"] {
            let text = one_flow(path, "bbr", ack);
            let plain = text.replace("ecn_threshold = '20p'", "");
            let [marked, plain] = [&text, &plain].map(|text| mbps(&simulate(text, 1), 0));
            println!("{ack}, {path:?}: {marked:.1} of {plain:.1} Mbit/s");
            assert!(marked > 0.9 * plain, "{ack}: {marked:.1} of {plain:.1}");
        }
    }
}

/// Fifty flows share 167 segments of path. What each may count on is less than an acknowledgement interval carries.
#[test]
fn none_of_fifty_bbr_flows_starves_and_tack_costs_no_retransmissions() {
    let [legacy, tack] = ["delayed:2", "tack"].map(|ack| {
        let mut text = String::from(
            "duration = '45s'\nwarmup = '5s'\n[wired]\nrate = '100Mbps'\ndelay = '10ms'\nqueue = '1.0bdp'\n",
        );
        for flow in 0..50 {
            text += &format!(
                "[[flow]]\ncongestion = 'bbr'\nack = '{ack}'\nstart = '{}ms'\n",
                20 * flow
            );
        }
        let report = simulate(&text, 1);
        let flows = &report.flows;
        let least = flows.iter().map(|flow| flow.goodput_bps).fold(f64::MAX, f64::min);
        let again: u64 = flows.iter().map(|flow| flow.retransmitted_segments).sum();
        let sent: u64 = flows.iter().map(|flow| flow.data_segments).sum();
        println!("{ack}: least {:.2} Mbit/s, {again} of {sent} again", least / 1e6);
        assert!(least > 50e3, "{ack}: {:.0} bit/s", least);
        again as f64 / sent as f64
    });
    assert!(tack <= legacy + 0.02, "{tack:.3} after {legacy:.3}");
}
