//! What is left for others at a shared bottleneck. How much the paper's flows leave each other is a
//! figure of the lab (15).

use super::{PAYLOAD_SHARE, cells, is_long, report, set};

/// Rate in Mbit/s, delay one way, queue in bandwidth-delay products.
type Bottleneck = (f64, &'static str, f64);

const SHORT: [Bottleneck; 2] = [(20.0, "20ms", 1.0), (50.0, "5ms", 3.0)];
const FULL: [Bottleneck; 6] = [
    (20.0, "20ms", 1.0),
    (50.0, "5ms", 3.0),
    (2.0, "50ms", 2.0),
    (100.0, "2ms", 5.0),
    (20.0, "80ms", 0.5),
    (80.0, "40ms", 1.0),
];

#[test]
fn neither_of_two_flows_starves_that_differ_in_acknowledgements_alone() {
    let controllers = ["bbr", "cubic", "new_reno"];
    for controller in &controllers[..if is_long() { 3 } else { 2 }] {
        for (mbps, delay, queue) in cells(&SHORT, &FULL) {
            let result = report(
                "friendliness",
                &set![
                    format_args!("wired.rate={mbps}Mbps"),
                    format_args!("wired.delay={delay}"),
                    format_args!("wired.queue={queue}bdp"),
                    format_args!("flow.0.congestion={controller}"),
                    "flow.0.ack=tack",
                    format_args!("flow.1.congestion={controller}"),
                    "flow.1.ack=delayed:2",
                    "duration=30s",
                ],
            );
            let shares = [0, 1]
                .map(|flow| result.flows[flow].goodput_bps / (mbps * 1e6 * PAYLOAD_SHARE / 2.0));
            println!(
                "{controller}, {mbps} Mbit/s, {delay} one way, {queue} bdp: of its fair share TACK gets {:.3}, delayed ACK {:.3}",
                shares[0], shares[1]
            );
            assert!(
                shares.iter().all(|share| *share >= 0.5),
                "{controller}, {mbps} Mbit/s, {delay}, {queue} bdp: {shares:?}"
            );
        }
    }
}
