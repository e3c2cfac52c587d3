//! Round trips: exact under load, whatever waits in queues or for an acknowledgement, and whatever
//! the clocks do.

use std::time::Duration;

use tack_sim::Observer;
use tack_sim::scenario::Party;
use tack_tcp::trace::{TraceEvent, Traced};

use super::{observe, of_seeds, report, seeds, set};

/// Propagation both ways, and the time that a data packet and a report take at 20 Mbit/s.
const RTT_MIN_US: f64 = 100_000.0 + 600.0 + 32.0;

#[test]
fn one_way_timing_sees_the_minimum_that_sampling_misses() {
    // A queue that CUBIC empties when it backs off: otherwise the minimum would not occur.
    let errors = |controller: &str, ack: &str| {
        let errors = of_seeds(
            "round-trip",
            &set![
                format_args!("flow.0.congestion={controller}"),
                format_args!("flow.0.ack={ack}"),
                "wired.queue=0.4bdp",
            ],
            |report| report.flows[0].min_rtt_us.expect("measured") as f64 / RTT_MIN_US - 1.0,
        );
        let percent: Vec<_> = errors.iter().map(|error| 100.0 * error).collect();
        println!("{controller}, {ack}: RTTmin off by {percent:+.2?} %");
        errors
    };
    for controller in ["bbr", "cubic"] {
        let exact = errors(controller, "tack");
        assert!(exact.iter().all(|error| error.abs() <= 0.01), "{exact:?}");
        let sampled = errors(controller, "tack:timing=sampled");
        // By how much is figure 6(a) of the lab. BBR empties the queue to look for the minimum.
        let is_above = |(sampled, exact): (&f64, &f64)| match controller {
            "cubic" => *sampled > *exact + 0.01,
            _ => sampled >= exact,
        };
        assert!(sampled.iter().zip(&exact).all(is_above), "{sampled:?}");
    }
}

/// Every round trip that the sender measured.
#[derive(Default)]
struct RoundTrips(Vec<u64>);

impl Observer for RoundTrips {
    fn wants_traces(&self) -> bool {
        true
    }

    fn on_trace(&mut self, _flow: usize, host: Party, event: &TraceEvent) {
        if let (Party::Server, Traced::AckReceived(received)) = (host, &event.what)
            && let Some(rtt) = received.rtt
        {
            self.0.push(rtt.as_micros() as u64);
        }
    }
}

#[test]
fn percentiles_of_the_round_trip_are_to_be_had() {
    let means = [0, 75, 100].map(|wanted| {
        let mut round_trips = RoundTrips::default();
        observe(
            "round-trip",
            &set![
                "flow.0.congestion=cubic",
                format_args!("flow.0.ack=tack:percentile={wanted}"),
                // No queue of the flow's own, which would differ from run to run: half of the
                // segments are late.
                "flow.0.send_buffer=200KiB",
                "wired.reorder=0.5",
                "wired.reorder_delay=10ms",
            ],
            &mut round_trips,
        );
        round_trips.0.iter().sum::<u64>() / round_trips.0.len() as u64
    });
    println!("means of the minima, upper quartiles and maxima of the intervals: {means:?} us");
    // A tenth of the ten milliseconds apart at least.
    assert!(
        means[0] + 1_000 < means[1] && means[1] + 1_000 < means[2],
        "{means:?}"
    );
}

/// Longer than RTTmin holds (10 s) and BBR takes to measure it again.
const RENEWAL: Duration = Duration::from_secs(12);

/// The least RTTmin in each period of [`RENEWAL`]: between the end of its ten seconds and that of
/// the probe it is what the probe finds on its way down.
#[derive(Default)]
struct Minima(Vec<u64>);

impl Observer for Minima {
    fn wants_traces(&self) -> bool {
        true
    }

    fn on_trace(&mut self, _flow: usize, host: Party, event: &TraceEvent) {
        if let (Party::Server, Traced::AckReceived(received)) = (host, &event.what)
            && let Some(min_rtt) = received.min_rtt
        {
            let period = (event.at.as_nanos() / RENEWAL.as_nanos() as u64) as usize;
            self.0.resize(self.0.len().max(period + 1), u64::MAX);
            let least = &mut self.0[period];
            *least = (*least).min(min_rtt.as_micros() as u64);
        }
    }
}

#[test]
fn drifting_clocks_do_not_walk_the_minimum() {
    let straight = report(
        "clock-skew",
        &set!["wired.clock_skew_ppm=0", "duration=60s"],
    );
    let expected = straight.flows[0].min_rtt_us.expect("measured");
    for (ppm, seed) in seeds().flat_map(|seed| [(100, seed), (-100, seed)]) {
        let mut minima = Minima::default();
        let result = observe(
            "clock-skew",
            &set![
                format_args!("wired.clock_skew_ppm={ppm}"),
                format_args!("seed={seed}")
            ],
            &mut minima,
        );
        let flow = &result.flows[0];
        assert_eq!(minima.0.len(), 50, "{ppm}");
        // In the first one it is that of the handshake, whose segments are short.
        let minima = &minima.0[1..];
        let (least, most) = (minima.iter().min(), minima.iter().max());
        println!(
            "{ppm} ppm over ten minutes: RTTmin {} to {} us, {expected} us with clocks that agree; {:.2} Mbit/s",
            least.expect("periods"),
            most.expect("periods"),
            flow.goodput_bps / 1e6
        );
        for measured in minima {
            let error = *measured as f64 / expected as f64 - 1.0;
            assert!(error.abs() <= 0.001, "{ppm}: {minima:?}");
        }
        assert!(flow.goodput_bps >= 0.98 * straight.flows[0].goodput_bps);
        assert_eq!((flow.rto_count, flow.retransmitted_segments), (0, 0));
    }
}
