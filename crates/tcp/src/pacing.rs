//! Spreads segments over time, in quanta that the carrier can keep.
//!
//! A segment may leave once the time of those before it has passed, each at the rate at which it
//! left: a rate that changes meanwhile holds from the next one on. A carrier whose timer is coarse
//! sends one quantum together, then waits until that quantum's time is over; lateness is made up
//! for, but never by more than one quantum.

use core::time::Duration;

use tack_base::{Instant, Rate};

use crate::config::Carrier;

/// Interval that one quantum covers when the carrier's timer is finer than this: batching that no
/// one notices, and that keeps the cost per segment low on real carriers.
const QUANTUM_INTERVAL: Duration = Duration::from_micros(250);

/// The pacer of one connection.
#[derive(Debug)]
pub(crate) struct Pacer {
    rate: Option<Rate>,
    /// The instant from which the next segment may leave.
    next: Instant,
    /// Bytes left of the quantum that is leaving now.
    quantum_left: u64,
    carrier: Carrier,
    last_sent_at: Instant,
}

impl Pacer {
    /// A pacer for `carrier` that does not limit yet.
    pub(crate) fn new(carrier: Carrier) -> Self {
        Self {
            rate: None,
            next: Instant::ZERO,
            quantum_left: 0,
            carrier,
            last_sent_at: Instant::ZERO,
        }
    }

    /// The rate from now on; `None` does not limit.
    #[inline]
    pub(crate) fn set_rate(&mut self, rate: Option<Rate>) {
        self.rate = rate.filter(|rate| !rate.is_zero());
    }

    /// The rate in force.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Bytes that leave together: clamp(rate × interval, one segment, one batch).
    #[inline]
    pub(crate) fn quantum(&self, mss: u64) -> u64 {
        let Some(rate) = self.rate else {
            return mss * self.carrier.max_batch as u64;
        };
        if self.carrier.max_batch <= 1 {
            return mss;
        }
        let interval = self.carrier.timer_granularity.max(QUANTUM_INTERVAL);
        rate.bytes_in(interval)
            .clamp(mss, mss * self.carrier.max_batch as u64)
    }

    /// When the next segment may leave; `None` when it may leave now.
    #[inline]
    pub(crate) fn blocked_until(&self, now: Instant) -> Option<Instant> {
        (self.rate.is_some() && self.quantum_left == 0 && self.next > now).then_some(self.next)
    }

    /// When the last segment left.
    pub(crate) fn last_sent_at(&self) -> Instant {
        self.last_sent_at
    }

    /// A segment of `len` bytes leaves now.
    #[inline]
    pub(crate) fn on_send(&mut self, now: Instant, len: u64, mss: u64) {
        self.last_sent_at = now;
        let Some(rate) = self.rate else { return };
        if self.blocked_until(now).is_some() {
            // Not due, but sent (a fast retransmission): it takes its time, and opens no quantum
            // for what follows.
            self.next += rate.time_for(len);
            return;
        }
        if self.quantum_left == 0 || self.next <= now {
            self.quantum_left = self.quantum(mss);
            // Timers are late now and then: the time lost is made up for, at most one quantum of
            // it.
            let credit = rate
                .time_for(self.quantum_left)
                .max(self.carrier.timer_granularity);
            let earliest =
                if self.carrier.timer_granularity.is_zero() && self.carrier.max_batch <= 1 {
                    now
                } else {
                    now - credit
                };
            self.next = self.next.max(earliest);
        }
        self.quantum_left = self.quantum_left.saturating_sub(len);
        if self.quantum_left < mss {
            self.quantum_left = 0;
        }
        self.next += rate.time_for(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(n: u64) -> Option<Rate> {
        Some(Rate::from_bits_per_sec(n * 1_000_000))
    }

    #[test]
    fn exact_carriers_space_every_segment() {
        let mut pacer = Pacer::new(Carrier::default());
        pacer.set_rate(mbps(8));
        let mut now = Instant::from_millis(5);
        for _ in 0..10 {
            assert_eq!(pacer.blocked_until(now), None);
            pacer.on_send(now, 1000, 1000);
            assert_eq!(
                pacer.blocked_until(now),
                Some(now + Duration::from_millis(1))
            );
            now += Duration::from_millis(1);
        }
    }

    #[test]
    fn what_is_sent_before_its_time_opens_no_quantum() {
        let carrier = Carrier {
            timer_granularity: Duration::from_millis(8),
            max_batch: 16,
            overhead: 20,
        };
        let mut pacer = Pacer::new(carrier);
        pacer.set_rate(mbps(8));
        let now = Instant::from_millis(100);
        while pacer.blocked_until(now).is_none() {
            pacer.on_send(now, 1000, 1000);
        }
        let before = pacer.blocked_until(now).expect("blocked");
        pacer.on_send(now, 1000, 1000);
        assert_eq!(
            pacer.blocked_until(now),
            Some(before + Duration::from_millis(1))
        );
    }

    #[test]
    fn late_timers_do_not_lower_the_rate_of_single_segments() {
        let carrier = Carrier {
            timer_granularity: Duration::from_millis(1),
            max_batch: 1,
            overhead: 20,
        };
        let mut pacer = Pacer::new(carrier);
        pacer.set_rate(mbps(20));
        let mut now = Instant::from_millis(1);
        let mut sent = 0;
        // A segment is due every 400 us, and each timer fires 700 us late.
        while now < Instant::from_millis(101) {
            while pacer.blocked_until(now).is_none() {
                pacer.on_send(now, 1000, 1000);
                sent += 1000;
            }
            now = pacer.blocked_until(now).expect("blocked") + Duration::from_micros(700);
        }
        assert!((245_000..=255_000).contains(&sent), "{sent}");
    }

    #[test]
    fn coarse_carriers_send_quanta_at_the_same_average() {
        let carrier = Carrier {
            timer_granularity: Duration::from_millis(1),
            max_batch: 64,
            overhead: 28,
        };
        let mut pacer = Pacer::new(carrier);
        pacer.set_rate(mbps(80));
        let mut now = Instant::from_millis(1);
        let mut sent = 0;
        while now < Instant::from_millis(101) {
            while pacer.blocked_until(now).is_none() {
                pacer.on_send(now, 1000, 1000);
                sent += 1000;
            }
            now = pacer.blocked_until(now).expect("blocked") + Duration::from_micros(300);
        }
        // 100 ms at 10,000 bytes a millisecond, at most two quanta ahead.
        assert!((980_000..=1_020_000).contains(&sent), "{sent}");
    }
}
