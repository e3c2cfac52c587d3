//! Delivery rate measured by the sender (draft-ietf-ccwg-bbr §4.1, "delivery rate estimation").
//!
//! Each transmission remembers how much had been delivered when it left. When it is delivered
//! itself, what was delivered since, over the longer of the sending and the acknowledging interval,
//! is a rate that the path has carried. The longer interval keeps compressed ACKs and bursts from
//! inflating it.

use core::time::Duration;

use tack_base::{Instant, Rate};

use super::Measured;
use crate::cc::RateSample;
use crate::send::packet_number::PacketNumber;
use crate::send::sent::{Delivered, FlightStart};

/// The estimator's state ("C.*" in the draft).
#[derive(Debug)]
pub(crate) struct RateEstimator {
    delivered: u64,
    /// Counted as delivered, but the peer took its report back: counts no second time.
    reneged: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Total delivered at which the current application-limited phase ends; zero outside one.
    app_limited_until: u64,
    sample: Option<Pending>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    number: PacketNumber,
    prior: FlightStart,
    sent_at: Instant,
}

impl RateEstimator {
    /// A fresh estimator.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            delivered: 0,
            reneged: 0,
            delivered_at: now,
            first_sent_at: now,
            app_limited_until: 0,
            sample: None,
        }
    }

    /// A transmission leaves; returns what it must remember.
    #[inline]
    pub(crate) fn on_send(&mut self, now: Instant, in_flight: u64) -> FlightStart {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        FlightStart {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until != 0,
        }
    }

    /// A segment was delivered by the acknowledgement being processed, which arrived at `arrived`.
    #[inline]
    pub(crate) fn on_delivered(&mut self, arrived: Instant, delivered: &Delivered) {
        self.count(arrived, delivered);
        if self
            .sample
            .is_none_or(|sample| delivered.number > sample.number)
        {
            self.sample = Some(Pending {
                number: delivered.number,
                prior: delivered.transmission.flight,
                sent_at: delivered.transmission.sent_at,
            });
        }
    }

    /// A segment was delivered, but not by its newest transmission: it counts, and yields no
    /// sample, for when the one that arrived left is not on record any more.
    pub(crate) fn on_delivered_earlier(&mut self, arrived: Instant, delivered: &Delivered) {
        self.count(arrived, delivered);
    }

    /// The peer does not have `bytes` any more that it reported (RFC 2018 §8), or never had them.
    pub(crate) fn on_reneged(&mut self, bytes: u64) {
        self.reneged += bytes;
    }

    #[inline]
    fn count(&mut self, arrived: Instant, delivered: &Delivered) {
        let len = delivered.transmission.len();
        let known = self.reneged.min(len);
        self.reneged -= known;
        self.delivered += len - known;
        self.delivered_at = arrived;
    }

    /// All segments of the acknowledgement were seen: the sample, if there is a sound one. Where
    /// the receiver measures, its figure takes the place of ours, within what our own count of
    /// deliveries allows; `slow_start` tells that sending grows from one round trip to the next.
    pub(crate) fn finish_ack(
        &mut self,
        min_rtt: Option<Duration>,
        measured: Measured,
        slow_start: bool,
    ) -> Option<RateSample> {
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let told = match measured {
            Measured::BySender => None,
            // Reports of losses carry no rate. Where they come often, the next report that carries
            // one may deliver nothing by itself: the sample waits for it. What left meanwhile
            // counts deliveries from this report on, and so it must count sending from what this
            // report delivered: else the sample has deliveries of a shorter time than its interval.
            Measured::ByReceiver(None) => {
                if let Some(sample) = self.sample {
                    self.first_sent_at = sample.sent_at;
                }
                return None;
            }
            Measured::ByReceiver(rate) => rate,
        };
        let sample = self.sample.take()?;
        let send_elapsed = sample.sent_at.saturating_since(sample.prior.first_sent_at);
        let ack_elapsed = self
            .delivered_at
            .saturating_since(sample.prior.delivered_at);
        self.first_sent_at = sample.sent_at;
        let interval = send_elapsed.max(ack_elapsed);
        // A sample shorter than the round trip must stem from a spurious retransmission
        // (draft, §4.1.2.3).
        if interval.is_zero() || min_rtt.is_some_and(|min| interval < min) {
            return None;
        }
        let delivered = self.delivered - sample.prior.delivered;
        let delivery_rate = match told {
            None => Rate::from_bytes_over(delivered, interval),
            // Never more than was delivered in that time, whatever a burst, or a false report,
            // makes it look like. In slow start the first segments of a flight leave in no time at
            // all, and the round trip that follows carries twice as much.
            Some(rate) => {
                let span = if slow_start {
                    send_elapsed.max(interval / 2)
                } else {
                    interval
                };
                rate.min(Rate::from_bytes_over(delivered, span))
            }
        };
        Some(RateSample {
            delivered,
            interval,
            delivery_rate,
            prior_delivered: sample.prior.delivered,
            app_limited: sample.prior.app_limited,
        })
    }

    /// The sender has nothing to send although window and pacing would allow it.
    #[inline]
    pub(crate) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// Sending is application-limited at the moment.
    #[inline]
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// No sample waits for a rate: an acknowledgement that delivers nothing changes nothing.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        self.sample.is_none()
            && (self.app_limited_until == 0 || self.delivered <= self.app_limited_until)
    }

    /// Total of positions delivered.
    #[inline]
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    use tack_base::StreamOffset;

    use crate::send::sent::Transmission;

    /// A segment of 1,000 bytes leaves each millisecond and is delivered after 20 ms. What was
    /// delivered is told each `losses` milliseconds without a rate, and each 12 ms with `told`
    /// bytes a second. The rates sampled in a second, bytes a second, once the first two round
    /// trips are over.
    fn samples(losses: u64, told: u64) -> Vec<u64> {
        const ROUND_TRIP: u64 = 20;
        let mut rate = RateEstimator::new(Instant::ZERO);
        let mut flying = Vec::new();
        let mut samples = Vec::new();
        for ms in 0..1_000_u64 {
            let now = Instant::from_millis(ms);
            let reports = ms % 12 == 0;
            if ms >= ROUND_TRIP && (reports || ms % losses == 0) {
                for delivered in flying.drain(..(flying.len() - ROUND_TRIP as usize)) {
                    rate.on_delivered(now, &delivered);
                }
                let measured = reports.then(|| Rate::from_bytes_per_sec(told));
                let sample = rate.finish_ack(
                    Some(Duration::from_millis(ROUND_TRIP)),
                    Measured::ByReceiver(measured),
                    false,
                );
                if ms >= 3 * ROUND_TRIP {
                    samples.extend(sample.map(|sample| sample.delivery_rate.bytes_per_sec()));
                }
            }
            let start = StreamOffset(1 + ms * 1_000);
            let mut transmission = Transmission::new(start..start + 1_000, now, false);
            transmission.flight = rate.on_send(now, flying.len() as u64 * 1_000);
            flying.push(Delivered {
                number: PacketNumber(ms),
                transmission,
                retransmitted: false,
                was_lost: false,
            });
        }
        assert!(samples.len() > 70, "{}", samples.len());
        samples
    }

    /// Reports of losses deliver without telling a rate. Sending counts from them as deliveries do:
    /// samples of one over the interval of the other had 15 % less than the path carries.
    #[test]
    fn reports_without_a_rate_leave_the_next_sample_whole() {
        for losses in [1, 3, 5, 1_000] {
            for rate in samples(losses, 1_000_000) {
                assert!((950_000..=1_000_000).contains(&rate), "{losses}: {rate}");
            }
        }
    }

    /// A receiver that tells of ten times what arrived gets it no faster.
    #[test]
    fn a_receiver_tells_of_no_more_than_was_delivered() {
        for losses in [1, 3, 1_000] {
            for rate in samples(losses, 10_000_000) {
                assert!(rate <= 1_050_000, "{losses}: {rate}");
            }
        }
    }
}
