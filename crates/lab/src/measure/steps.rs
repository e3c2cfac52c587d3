//! How soon the sender's estimate of the bandwidth follows steps of it (10 to 20 to 10 Mbit/s, at
//! 10 s and 20 s).

use tack_base::Instant;
use tack_sim::Observer;
use tack_sim::scenario::Party;
use tack_tcp::trace::{TraceEvent, Traced};

use super::values::Values;

/// Of 1,500 bytes, 1,448 count.
const PAYLOAD_SHARE: f64 = 1_448.0 / 1_500.0;
const ROUND_TRIP_S: f64 = 0.04;

/// The sender's estimates over time, Mbit/s of payload.
#[derive(Debug, Default)]
pub(super) struct Steps(Vec<(Instant, f64)>);

impl Observer for Steps {
    fn wants_traces(&self) -> bool {
        true
    }

    fn on_trace(&mut self, _flow: usize, host: Party, event: &TraceEvent) {
        if let (Party::Server, Traced::AckReceived(received)) = (host, &event.what)
            && let Some(bandwidth) = received.bandwidth
        {
            self.0
                .push((event.at, bandwidth.bits_per_sec() as f64 / 1e6));
        }
    }
}

impl Steps {
    /// Round trips from `step` until the estimate has `arrived`; infinite when it never does.
    fn round_trips(&self, step: Instant, arrived: impl Fn(f64) -> bool) -> f64 {
        self.0
            .iter()
            .find(|(at, mbps)| *at > step && arrived(*mbps))
            .map_or(f64::INFINITY, |(at, _)| {
                at.saturating_since(step).as_secs_f64() / ROUND_TRIP_S
            })
    }

    pub(super) fn add_to(self, values: &mut Values) {
        let (low, high) = (10.0 * PAYLOAD_SHARE, 20.0 * PAYLOAD_SHARE);
        let up = self.round_trips(Instant::from_millis(10_000), |mbps| mbps >= 0.95 * high);
        let down = self.round_trips(Instant::from_millis(20_000), |mbps| mbps <= 1.05 * low);
        values.insert("steps.up", up);
        values.insert("steps.down", down);
        // The course around the steps, in quarters of a second: the last estimate before each.
        for quarter in 36..=100_u64 {
            let at = Instant::from_millis(quarter * 250);
            if let Some((_, mbps)) = self.0.iter().rfind(|(when, _)| *when <= at) {
                values.insert(format!("estimate.{:.2}", quarter as f64 / 4.0), *mbps);
            }
        }
    }
}
