//! The model of the path: how fast and how long. Bottleneck bandwidth is the largest delivery rate
//! of ten rounds, round-trip propagation time the smallest RTT of ten seconds.

use core::time::Duration;

use tack_base::filter::WindowedMax;
use tack_base::time::nanos;
use tack_base::{Instant, Rate};

use super::super::{Ack, RateSample};
use super::round::Round;

/// Window of the bandwidth filter, rounds: one gain cycle and two round trips.
const BANDWIDTH_ROUNDS: u64 = 10;
/// Window of the RTT filter.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);

/// Whether the RTT floor is fresh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Freshness {
    /// Seen within the window.
    Fresh,
    /// The window has passed without a smaller or equal one: time to look again.
    Expired,
}

/// Estimates of the path.
#[derive(Clone, Debug)]
pub(super) struct Model {
    max_bandwidth: WindowedMax<Rate>,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
}

impl Model {
    pub(super) fn new(now: Instant, rtt: Option<Duration>) -> Self {
        Self {
            max_bandwidth: WindowedMax::new(BANDWIDTH_ROUNDS),
            min_rtt: rtt,
            min_rtt_at: now,
        }
    }

    /// Bottleneck bandwidth; zero before the first sample.
    pub(super) fn max_bandwidth(&self) -> Rate {
        self.max_bandwidth.get().unwrap_or(Rate::ZERO)
    }

    /// Round-trip propagation time.
    pub(super) const fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// Takes a delivery-rate sample. One limited by the application says how fast the path is *at
    /// least*, so it counts only when it raises the estimate.
    pub(super) fn on_sample(&mut self, sample: &RateSample, round: &Round) {
        if !sample.app_limited || sample.delivery_rate >= self.max_bandwidth() {
            self.max_bandwidth
                .update(round.count(), sample.delivery_rate);
        }
    }

    /// Takes an RTT sample, and says whether the floor had expired before it.
    pub(super) fn on_rtt(&mut self, ack: &Ack, mss: u64) -> Freshness {
        let freshness = if ack.now > self.min_rtt_at + MIN_RTT_WINDOW {
            Freshness::Expired
        } else {
            Freshness::Fresh
        };
        if let Some(rtt) = ack.rtt {
            let smaller = self.min_rtt.is_none_or(|min| rtt < min);
            if smaller || (freshness == Freshness::Expired && !maybe_delayed(ack, mss)) {
                self.min_rtt = Some(rtt);
                self.min_rtt_at = ack.now;
            }
        }
        freshness
    }

    /// The RTT floor was looked for just now.
    pub(super) fn refresh_min_rtt(&mut self, now: Instant) {
        self.min_rtt_at = now;
    }

    /// `gain` times the bandwidth-delay product at `bandwidth`, bytes, rounded up; `None` before the
    /// first RTT sample.
    pub(super) fn bdp(&self, bandwidth: Rate, gain: f64) -> Option<u64> {
        let bits = bandwidth.bits_per_sec() as f64 * nanos(self.min_rtt?) as f64 / 1e9;
        Some(libm::ceil(bits / 8.0 * gain) as u64)
    }
}

/// The acknowledgement may have waited for the peer's delayed-ACK timer: it is for less than a
/// segment, all that was delivered in a round trip. Its RTT must not replace an expired floor.
fn maybe_delayed(ack: &Ack, mss: u64) -> bool {
    let lone = ack.rate.is_some_and(|rate| {
        rate.prior_delivered.saturating_add(ack.delivered) == ack.total_delivered
    });
    ack.acked > 0 && ack.acked < mss && ack.acked == ack.delivered && lone
}
