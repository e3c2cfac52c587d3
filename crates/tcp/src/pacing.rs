//! Spreads segments over time, in quanta that the carrier can keep.
//!
//! A segment may leave once the time of those before it has passed, each at the rate at which it
//! left: a rate that changes meanwhile holds from the next one on. A carrier whose timer is coarse
//! sends one quantum together, then waits until that quantum's time is over. What a late timer held
//! back is made up for: always by one quantum, and by up to [`LATENESS`] where a segment waited for
//! the timer alone.
//!
//! What is made up for leaves at twice the rate, not at once: a path with a short queue drops what
//! comes at once. Linux spaces packets by at least half of their time, too
//! (`tcp_update_skb_after_send` in net/ipv4/tcp_output.c). What exceeds [`SPREAD`] leaves at once,
//! since the next timer may be as late; so does all of it where most timers are late. A process
//! that shares its processor wakes milliseconds late at each quantum. One quantum for each would be
//! a small part of the rate, and a controller that measures what it sends (BBR) would take that
//! part for the path's rate and go lower still.

use core::time::Duration;

use tack_base::time::Nanos;
use tack_base::{Instant, Rate};

use crate::config::Carrier;

/// Interval that one quantum covers when the carrier's timer is finer than this: batching that no
/// one notices, and that keeps the cost per segment low on real carriers.
const QUANTUM_INTERVAL: Duration = Duration::from_micros(250);

/// How much of what a late timer held back leaves at twice the rate. What exceeds this leaves at
/// once.
const SPREAD: Nanos = Nanos(5_000_000);

/// Longest burst at the pacing rate that leaves at once, beside a quantum: two or three time slices
/// of a busy machine's scheduler. It is never larger than the congestion window.
const BURST: Nanos = Nanos(10_000_000);

/// Most that is made up for.
const LATENESS: Nanos = Nanos(SPREAD.0 + BURST.0);

/// How much of the smoothed share of late timers a new one makes: one in so many.
const SMOOTHING: u8 = 8;

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
    /// A segment waits for its time, and for nothing else.
    waiting: bool,
    /// So it does because of the rate, not only to be spaced.
    by_rate: bool,
    /// The length that was last sent, and its time at `rate`: segments are mostly as long as the
    /// one before.
    known: (u64, Nanos),
    /// Since a segment last waited, only the rate has held segments back. A `next` in the past then
    /// means that a timer fired late.
    behind: bool,
    /// When the last quantum began to leave, and the time at the rate of what has left since.
    opened: Instant,
    spent: Nanos,
    /// Share of the timers that fired late by more than half of a quantum's time, smoothed, of 255.
    late_share: u8,
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
            waiting: false,
            by_rate: false,
            known: (0, Nanos::ZERO),
            behind: false,
            opened: Instant::ZERO,
            spent: Nanos::ZERO,
            late_share: 0,
        }
    }

    /// The rate from now on; `None` does not limit.
    #[inline]
    pub(crate) fn set_rate(&mut self, rate: Option<Rate>) {
        let rate = rate.filter(|rate| !rate.is_zero());
        if rate != self.rate {
            self.rate = rate;
            self.known = (0, Nanos::ZERO);
        }
    }

    /// `len` bytes take their time at `rate`, the rate in force.
    #[inline]
    fn advance(&mut self, rate: Rate, len: u64) {
        if self.known.0 != len {
            self.known = (len, rate.nanos_for(len));
        }
        self.next += self.known.1;
        self.spent = Nanos(self.spent.0.saturating_add(self.known.1.0));
    }

    /// From when the next quantum may leave.
    #[inline]
    fn due(&self) -> Instant {
        // The timer is too coarse for half of this time.
        match self.half() < Nanos::from(self.carrier.timer_granularity) {
            true => self.next,
            false => self.spaced(),
        }
    }

    /// The same of a timer that is fine enough: half of the time of what left is over.
    #[inline]
    fn spaced(&self) -> Instant {
        if self.late_share > u8::MAX / 2 {
            return self.next;
        }
        let spaced = self.opened + self.half();
        let spaced = match self.behind {
            true => spaced.min(self.next + SPREAD),
            false => spaced,
        };
        self.next.max(spaced)
    }

    /// Half of the time of what has left since the last quantum was opened.
    #[inline]
    fn half(&self) -> Nanos {
        Nanos(self.spent.0 / 2)
    }

    /// A segment that waited for a timer leaves late.
    #[inline]
    fn is_late(&self, now: Instant) -> bool {
        let least = self.half().max(Nanos::from(self.carrier.timer_granularity));
        now.nanos_since(self.due()) > least
    }

    /// A segment left that waited for a timer, which was late or not.
    #[inline]
    fn count_timer(&mut self, is_late: bool) {
        // Rounded up, so that the share reaches both ends.
        match is_late {
            true => self.late_share += (u8::MAX - self.late_share).div_ceil(SMOOTHING),
            false => self.late_share -= self.late_share.div_ceil(SMOOTHING),
        }
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
        if self.rate.is_none() || self.quantum_left > 0 {
            return None;
        }
        let due = self.due();
        (due > now).then_some(due)
    }

    /// A segment that nothing else holds back wants to leave: until when it has to wait; `None`
    /// when it may leave now.
    #[inline]
    pub(crate) fn wait(&mut self, now: Instant) -> Option<Instant> {
        let until = self.blocked_until(now)?;
        self.waiting = true;
        self.by_rate |= self.next > now;
        Some(until)
    }

    /// Something other than the rate holds the next segment back.
    #[inline]
    pub(crate) fn pause(&mut self) {
        self.waiting = false;
        self.by_rate = false;
        self.behind = false;
    }

    /// When the last segment left.
    pub(crate) fn last_sent_at(&self) -> Instant {
        self.last_sent_at
    }

    /// A segment of `len` bytes leaves now. Tells whether a timer was so late that time was lost:
    /// the machine is slower than the rate.
    #[inline]
    pub(crate) fn on_send(&mut self, now: Instant, len: u64, mss: u64) -> bool {
        self.last_sent_at = now;
        let waited = core::mem::take(&mut self.waiting);
        let by_rate = core::mem::take(&mut self.by_rate);
        self.behind |= by_rate;
        let is_late = waited && self.is_late(now);
        // What is only spaced is behind if its timer is late.
        self.behind |= is_late;
        let Some(rate) = self.rate else {
            self.behind = false;
            return false;
        };
        if self.blocked_until(now).is_some() {
            // Not due, but sent (a fast retransmission): it takes its time, and opens no quantum
            // for what follows.
            self.advance(rate, len);
            return false;
        }
        if waited {
            self.count_timer(is_late);
        }
        let mut is_time_lost = false;
        if self.quantum_left == 0 || self.spaced() <= now {
            self.quantum_left = self.quantum(mss);
            self.opened = now;
            self.spent = Nanos::ZERO;
            // What is made up for whatever a quantum takes.
            if self.next < now - self.least_credit(now) {
                let earliest = now - self.credit(now, rate);
                is_time_lost = waited && !self.is_exact() && self.next < earliest;
                self.next = self.next.max(earliest);
            }
        }
        self.quantum_left = self.quantum_left.saturating_sub(len);
        if self.quantum_left < mss {
            self.quantum_left = 0;
        }
        self.advance(rate, len);
        is_time_lost
    }

    /// The timer is never late.
    #[inline]
    fn is_exact(&self) -> bool {
        self.carrier.timer_granularity.is_zero() && self.carrier.max_batch <= 1
    }

    /// How much of the time that has passed without sending may still be used.
    #[inline]
    fn credit(&self, now: Instant, rate: Rate) -> Nanos {
        let least = self.least_credit(now);
        if self.is_exact() {
            return least;
        }
        rate.nanos_for(self.quantum_left).max(least)
    }

    /// The same, but for the time of a quantum.
    #[inline]
    fn least_credit(&self, now: Instant) -> Nanos {
        if self.is_exact() {
            return Nanos::ZERO;
        }
        let late = if self.behind {
            now.nanos_since(self.next).min(LATENESS)
        } else {
            Nanos::ZERO
        };
        Nanos::from(self.carrier.timer_granularity).max(late)
    }
}

#[cfg(test)]
mod tests;
