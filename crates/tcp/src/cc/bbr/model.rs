//! The model of the path: how fast and how long. Bottleneck bandwidth is the largest delivery rate
//! of the last rounds, round-trip propagation time the smallest RTT of the last seconds.

use core::time::Duration;

use tack_base::filter::WindowedMax;
use tack_base::time::nanos;
use tack_base::{Instant, Rate};

use super::super::{Ack, RateSample};
use super::BbrOptions;
use super::feedback::{Feedback, FilterClock};
use super::round::Round;

/// Whether the RTT floor is fresh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Freshness {
    /// Seen within the window.
    Fresh,
    /// The window has passed without a smaller or equal one: time to look again.
    Expired,
}

/// What becomes of an expired RTT floor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ExpiredFloor {
    /// The next sample is the new one; a probe with a nearly empty path will correct it.
    Replace,
    /// It stays until the probe has found another.
    Hold,
}

/// Estimates of the path.
#[derive(Clone, Debug)]
pub(super) struct Model {
    max_bandwidth: WindowedMax<Rate>,
    clock: FilterClock,
    min_rtt_window: Duration,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
}

impl Model {
    pub(super) fn new(now: Instant, rtt: Option<Duration>, options: BbrOptions) -> Self {
        let window = options.profile.bandwidth_rounds() * FilterClock::ROUND;
        Self {
            max_bandwidth: WindowedMax::new(window),
            clock: FilterClock::new(now),
            min_rtt_window: options.probe_rtt.min_rtt_window(),
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
    pub(super) fn on_sample(
        &mut self,
        now: Instant,
        sample: &RateSample,
        round: &Round,
        feedback: Feedback,
    ) {
        match self.min_rtt {
            Some(min_rtt) if feedback.is_sparse() => {
                self.clock.on_sample(now, min_rtt, sample.app_limited);
            }
            _ if round.started() => self.clock.on_round(),
            _ => {}
        }
        if !sample.app_limited || sample.delivery_rate >= self.max_bandwidth() {
            self.max_bandwidth
                .update(self.clock.position(), sample.delivery_rate);
        }
    }

    /// Takes an RTT sample, and says whether the floor had expired before it. The sample replaces
    /// an expired floor, unless that is to be held until something better is known.
    pub(super) fn on_rtt(&mut self, ack: &Ack, mss: u64, expired: ExpiredFloor) -> Freshness {
        let freshness = if ack.now > self.min_rtt_at + self.min_rtt_window {
            Freshness::Expired
        } else {
            Freshness::Fresh
        };
        if let Some(rtt) = ack.rtt {
            let smaller = self.min_rtt.is_none_or(|min| rtt < min);
            let replaces = freshness == Freshness::Expired
                && expired == ExpiredFloor::Replace
                && !maybe_delayed(ack, mss);
            if smaller || replaces {
                self.min_rtt = Some(rtt);
                self.min_rtt_at = ack.now;
            }
        }
        freshness
    }

    /// The RTT floor was looked for just now; `found` is what was seen, where the old one was held
    /// meanwhile.
    pub(super) fn refresh_min_rtt(&mut self, now: Instant, found: Option<Duration>) {
        self.min_rtt = found.or(self.min_rtt);
        self.min_rtt_at = now;
    }

    /// `gain` times the bandwidth-delay product at `bandwidth`, bytes, rounded up; `None` before
    /// the first RTT sample.
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
