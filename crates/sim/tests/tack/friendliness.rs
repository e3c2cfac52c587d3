//! What is left for others: the paper's figure 15.

use tack_base::random::RandomStream;

use super::{PAYLOAD_SHARE, is_full, report, set};

/// A flow, as controller and acknowledgement policy.
type Kind = (&'static str, &'static str);

const TACK_BBR: Kind = ("bbr", "tack");
const BBR: Kind = ("bbr", "delayed:2");
const CUBIC: Kind = ("cubic", "delayed:2");

/// Mean share of its fair half that `flow` gets against `other`: bandwidth 1 to 100 Mbit/s, RTT 1
/// to 200 ms, buffer 0.5 to 5 bdp, all at random.
fn share(flow: Kind, other: Kind, samples: u64, seconds: u64) -> f64 {
    let mut random = RandomStream::new(15, "figure 15", 0);
    let mut between = |low: f64, high: f64| low + random.unit() * (high - low);
    let mut sum = 0.0;
    for seed in 0..samples {
        let (mbps, rtt, buffer) = (between(1.0, 100.0), between(1.0, 200.0), between(0.5, 5.0));
        // A queue holds a few packets whatever the product is.
        let packets = (buffer * mbps * rtt * 1e3 / 12_000.0).max(4.0);
        let result = report(
            "friendliness",
            &set![
                format_args!("wired.rate={mbps:.2}Mbps"),
                format_args!("wired.delay={}us", (rtt * 500.0) as u64),
                format_args!("wired.queue={packets:.0}p"),
                format_args!("flow.0.congestion={}", flow.0),
                format_args!("flow.0.ack={}", flow.1),
                format_args!("flow.1.congestion={}", other.0),
                format_args!("flow.1.ack={}", other.1),
                format_args!("duration={seconds}s"),
                format_args!("seed={seed}"),
            ],
        );
        let got = result.flows[0].goodput_bps / (mbps * 1e6 * PAYLOAD_SHARE / 2.0);
        println!(
            "{flow:?} against {other:?}: {mbps:.1} Mbit/s, {rtt:.0} ms, {buffer:.2} bdp: {got:.3}"
        );
        sum += got;
    }
    sum / samples as f64
}

#[test]
fn tack_bbr_is_as_friendly_as_bbr() {
    // Few samples say little about a mean: the short form only notices when something is badly
    // wrong.
    let (samples, seconds, tolerance) = if is_full() {
        (40, 60, 0.15)
    } else {
        (4, 15, 0.5)
    };
    for other in [BBR, CUBIC] {
        let [tack, bbr] = [TACK_BBR, BBR].map(|flow| share(flow, other, samples, seconds));
        println!(
            "against {} {}: TACK-BBR gets {tack:.3} of its fair share, BBR {bbr:.3}; {:+.1} %",
            other.0,
            other.1,
            100.0 * (tack / bbr - 1.0)
        );
        assert!(
            (tack / bbr - 1.0).abs() <= tolerance,
            "{other:?}: {tack} {bbr}"
        );
    }
}
