//! Round trips: exact under load, whatever waits in queues or for an acknowledgement, and whatever the clocks do.

use super::{report, set};

/// Propagation both ways, and the time that a data packet and a report take at 20 Mbit/s.
const RTT_MIN_US: f64 = 100_000.0 + 600.0 + 32.0;

#[test]
fn one_way_timing_sees_the_minimum_that_sampling_misses() {
    // A queue that CUBIC empties when it backs off: otherwise the minimum would not occur.
    let estimate = |controller: &str, ack: &str| {
        let result = report(
            "round-trip",
            &set![
                format_args!("flow.0.congestion={controller}"),
                format_args!("flow.0.ack={ack}"),
                "wired.queue=0.4bdp",
            ],
        );
        let error = result.flows[0].min_rtt_us.expect("measured") as f64 / RTT_MIN_US - 1.0;
        println!("{controller}, {ack}: RTTmin {:+.2} %", 100.0 * error);
        error
    };
    for controller in ["bbr", "cubic"] {
        assert!(estimate(controller, "tack").abs() <= 0.01, "{controller}");
        estimate(controller, "tack:timing=sampled");
    }
    // The paper has 8 to 18 %.
    assert!(estimate("cubic", "tack:timing=sampled") >= 0.08);
}

#[test]
fn percentiles_of_the_round_trip_are_to_be_had() {
    let smallest = |percentile: u32| {
        let result = report(
            "round-trip",
            &set![
                "flow.0.congestion=cubic",
                format_args!("flow.0.ack=tack:percentile={percentile}"),
                "wired.queue=0.4bdp",
            ],
        );
        result.flows[0].min_rtt_us.expect("measured")
    };
    let figures = [0, 50, 100].map(smallest);
    println!("smallest of the minima, medians and maxima per interval: {figures:?} us");
    assert!(
        figures[0] <= figures[1] && figures[1] <= figures[2],
        "{figures:?}"
    );
}

#[test]
fn drifting_clocks_do_not_walk_the_minimum() {
    let straight = report(
        "clock-skew",
        &set!["wired.clock_skew_ppm=0", "duration=60s"],
    );
    let expected = straight.flows[0].min_rtt_us.expect("measured") as f64;
    for ppm in [100, -100] {
        let result = report(
            "clock-skew",
            &set![format_args!("wired.clock_skew_ppm={ppm}")],
        );
        let flow = &result.flows[0];
        let measured = flow.min_rtt_us.expect("measured") as f64;
        println!(
            "{ppm} ppm over ten minutes: RTTmin {measured} us, {expected} us with clocks that agree; {:.2} Mbit/s",
            flow.goodput_bps / 1e6
        );
        assert!((measured / expected - 1.0).abs() <= 0.001, "{ppm}");
        assert!(flow.goodput_bps >= 0.98 * straight.flows[0].goodput_bps);
        assert_eq!((flow.rto_count, flow.retransmitted_segments), (0, 0));
    }
}
