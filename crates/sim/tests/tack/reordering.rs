//! Reordering: nothing is retransmitted for nothing, and where there is none a loss is told at once
//! (see `loss`).

use super::{cells, report, seeds, set, spurious, utilisation};

#[test]
fn late_packets_are_waited_for() {
    for reorder in cells(&[0.05], &[0.01, 0.02, 0.05]) {
        for controller in ["bbr", "cubic"] {
            for settle in cells(&["adaptive"], &["adaptive", "0.25", "0"]) {
                let mut worst: f64 = 0.0;
                let mut share = 0.0;
                for seed in seeds() {
                    let result = report(
                        "reordering",
                        &set![
                            format_args!("wired.reorder={reorder}"),
                            format_args!("flow.0.congestion={controller}"),
                            format_args!("flow.0.ack=tack:settle={settle}"),
                            format_args!("seed={seed}"),
                            "duration=10s",
                        ],
                    );
                    worst = worst.max(spurious(&result.flows[0]));
                    share += utilisation(&result, 100.0) / seeds().count() as f64;
                }
                println!(
                    "{:.0} % up to RTTmin/2 late, {controller}, settle={settle}: {:.3} % spurious at worst, {:.1} % of the link",
                    100.0 * reorder,
                    100.0 * worst,
                    100.0 * share
                );
                if settle == "adaptive" {
                    assert!(worst < 0.005, "{reorder}, {controller}: {worst}");
                    assert!(share >= 0.9, "{reorder}, {controller}: {share}");
                }
            }
        }
    }
}

/// BBR keeps a queue, so that a repetition takes longer than RTTmin: the receiver waits as long for
/// a packet that is late by more than RTTmin. Without a queue it waits for RTTmin, as RACK does.
#[test]
fn packets_later_than_rttmin_are_waited_for_behind_a_queue() {
    for reorder in cells(&[0.2], &[0.05, 0.2]) {
        let run = |ack: &str, seed| {
            let result = report(
                "reordering",
                &set![
                    format_args!("wired.reorder={reorder}"),
                    "wired.reorder_delay=60ms",
                    format_args!("flow.0.ack={ack}"),
                    format_args!("seed={seed}"),
                    "duration=10s",
                ],
            );
            let (again, share) = (spurious(&result.flows[0]), utilisation(&result, 100.0));
            println!(
                "{:.0} % up to 1.5 RTTmin late, {ack}: {:.3} % spurious, {:.1} % of the link",
                100.0 * reorder,
                100.0 * again,
                100.0 * share
            );
            (again, share)
        };
        for seed in seeds() {
            let (again, share) = run("tack", seed);
            assert!(again < 0.005, "{reorder}: {again}");
            let (plain_again, plain_share) = run("delayed:2", seed);
            assert!(again < plain_again, "{reorder}: {again}, {plain_again}");
            assert!(share > plain_share, "{reorder}: {share}, {plain_share}");
        }
    }
}
