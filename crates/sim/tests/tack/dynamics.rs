//! Paths that change: a rate that steps, a link that pauses.

use tack_base::{Instant, Rate};
use tack_sim::Observer;
use tack_sim::scenario::Party;
use tack_tcp::trace::{TraceEvent, Traced};

use super::{cells, is_long, observe, report, seeds, set, utilisation};

/// The sender's estimate of the bandwidth over time.
#[derive(Default)]
struct Estimates(Vec<(Instant, Rate)>);

impl Observer for Estimates {
    fn wants_traces(&self) -> bool {
        true
    }

    fn on_trace(&mut self, _flow: usize, host: Party, event: &TraceEvent) {
        if let (Party::Server, Traced::AckReceived(received)) = (host, &event.what)
            && let Some(bandwidth) = received.bandwidth
        {
            self.0.push((event.at, bandwidth));
        }
    }
}

impl Estimates {
    /// Round trips of 40 ms from `step` until the estimate is as `arrived` wants it.
    fn round_trips(&self, step: Instant, arrived: impl Fn(f64) -> bool) -> f64 {
        self.0
            .iter()
            .find(|(at, rate)| *at > step && arrived(rate.bits_per_sec() as f64 / 1e6))
            .map_or(f64::INFINITY, |(at, _)| {
                at.saturating_since(step).as_secs_f64() / 0.04
            })
    }
}

#[test]
fn a_step_of_the_rate_is_followed() {
    // Of 1,500 bytes, 1,448 count.
    let (low, high) = (10.0 * 1_448.0 / 1_500.0, 20.0 * 1_448.0 / 1_500.0);
    // With its usual probe for RTTmin, a pause of 200 ms that every tenth second begins with, the
    // real-time profile can meet the step within that pause; real-time flows probe mildly.
    for (controller, most) in [
        ("bbr", 24.0),
        ("bbr:profile=realtime", 24.0),
        ("bbr:profile=realtime,probe_rtt=mild", 12.0),
    ] {
        for seed in seeds() {
            let mut estimates = Estimates::default();
            observe(
                "rate-step",
                &set![
                    format_args!("flow.0.congestion={controller}"),
                    format_args!("seed={seed}"),
                ],
                &mut estimates,
            );
            let up =
                estimates.round_trips(Instant::from_millis(10_000), |mbps| mbps >= 0.95 * high);
            let down =
                estimates.round_trips(Instant::from_millis(20_000), |mbps| mbps <= 1.05 * low);
            println!("{controller}, seed {seed}: up in {up:.1}, down in {down:.1} round trips");
            assert!(up <= most && down <= most, "{controller}: {up} {down}");
        }
    }
}

#[test]
fn a_link_that_pauses_is_used_as_soon_as_it_goes_on() {
    let short = if is_long() {
        &["bbr", "cubic"][..]
    } else {
        &["bbr"]
    };
    for controller in cells(short, &["bbr", "cubic", "new_reno", "vegas", "compound"]) {
        for queue in cells(&["300p"], &["300p", "1000p"]) {
            for seed in seeds() {
                let result = report(
                    "suspension",
                    &set![
                        format_args!("flow.0.congestion={controller}"),
                        format_args!("wired.queue={queue}"),
                        format_args!("seed={seed}"),
                    ],
                );
                let flow = &result.flows[0];
                // What the pause held back arrives after it: the link offers its whole rate.
                let share = utilisation(&result, 100.0);
                println!(
                    "{controller}, queue {queue}, seed {seed}: {:.1} % of what the link offers, {} timeouts, {} probes, {} spurious, p95 one way {:.1} ms",
                    100.0 * share,
                    flow.rto_count,
                    flow.tlp_count,
                    flow.spurious_retransmissions,
                    flow.owd_p95_us.expect("measured") as f64 / 1e3
                );
                assert!(share >= 0.9, "{controller}, {queue}: {share}");
                // Eleven suspensions: none may become a storm.
                assert!(flow.rto_count <= 1, "{controller}: {}", flow.rto_count);
            }
        }
    }
}
