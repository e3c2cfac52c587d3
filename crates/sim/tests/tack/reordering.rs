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
