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
        // Half of what the timer cannot tell apart is no time to wait.
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

    /// A segment that waited for a timer leaves too late.
    #[inline]
    fn is_late(&self, now: Instant) -> bool {
        let least = self.half().max(Nanos::from(self.carrier.timer_granularity));
        now.nanos_since(self.due()) > least
    }

    /// A segment leaves that waited for a timer.
    #[inline]
    fn judge_timer(&mut self, now: Instant) {
        let is_late = self.is_late(now);
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
        // What is only spaced is behind if its timer is late.
        self.behind |= by_rate || (waited && self.is_late(now));
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
            self.judge_timer(now);
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
mod tests {
    use alloc::vec::Vec;

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

    /// A carrier with a fine timer, as sockets of Linux are.
    const FINE: Carrier = Carrier {
        timer_granularity: Duration::from_micros(50),
        max_batch: 64,
        overhead: 28,
    };

    /// Sends segments of 1000 bytes at a rate for one second, while timer `n` fires late by
    /// `late(n)`. Returns the bytes sent, and whether time was lost.
    fn sent_with_timers(mbit: u64, late: impl Fn(u64) -> Duration) -> (u64, bool) {
        let mut pacer = Pacer::new(FINE);
        pacer.set_rate(mbps(mbit));
        let (mut now, mut sent, mut is_time_lost) = (Instant::from_millis(1), 0, false);
        let mut timers = 0..;
        while now < Instant::from_millis(1001) {
            now = loop {
                if let Some(until) = pacer.wait(now) {
                    break until + timers.next().map_or(Duration::ZERO, &late);
                }
                is_time_lost |= pacer.on_send(now, 1000, 1000);
                sent += 1000;
            };
        }
        (sent, is_time_lost)
    }

    #[test]
    fn a_machine_that_wakes_late_keeps_the_rate() {
        for mbit in [8, 24, 80, 400] {
            for micros in [50, 100, 150, 250, 500, 1_000, 4_000, 9_000] {
                // All timers, each second one, and bursts of three.
                let patterns: [fn(u64) -> bool; 3] = [|_| true, |n| n % 2 == 0, |n| n % 8 < 3];
                for (pattern, is_late) in patterns.into_iter().enumerate() {
                    let late = |n| Duration::from_micros(if is_late(n) { micros } else { 0 });
                    let (sent, is_time_lost) = sent_with_timers(mbit, late);
                    let share = sent as f64 / (mbit as f64 * 125_000.0);
                    let what = (mbit, micros, pattern, share);
                    assert!((0.985..=1.015).contains(&share), "{what:?}");
                    assert!(!is_time_lost, "{what:?}");
                }
            }
        }
    }

    /// Sends segments of 1000 bytes at 16 Mbit/s, one each 500 us, from 0 on. The timer of the
    /// segment that is due at 10 ms fires late by `late`, all others are on time. Returns when each
    /// segment of the 20 ms left, microseconds.
    fn departures_with_one_late_timer(late: Duration) -> Vec<u64> {
        let mut pacer = Pacer::new(FINE);
        pacer.set_rate(mbps(16));
        let (mut now, mut left) = (Instant::ZERO, Vec::new());
        while now < Instant::from_millis(20) {
            now = loop {
                if let Some(until) = pacer.wait(now) {
                    let is_late = until == Instant::from_millis(10);
                    break until + if is_late { late } else { Duration::ZERO };
                }
                assert!(!pacer.on_send(now, 1000, 1000));
                left.push(now.as_micros());
            };
        }
        left
    }

    #[test]
    fn what_one_late_timer_held_back_leaves_at_twice_the_rate() {
        let left = departures_with_one_late_timer(Duration::from_millis(2));
        let gaps: Vec<u64> = left.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // 2 ms are four segments, made up for in the next 2 ms, in which four more are due.
        let expected = [500, 2500, 250, 250, 250, 250, 250, 250, 250, 250, 500];
        assert_eq!(gaps[18..29], expected, "{left:?}");
        assert_eq!(left.len(), 40);
    }

    #[test]
    fn an_acknowledgement_does_not_release_two_segments_at_once() {
        let mut pacer = Pacer::new(FINE);
        pacer.set_rate(mbps(16));
        // The window has room for two segments each 1.2 ms, which is less than the rate permits.
        for at in (1..10).map(|n| Instant::from_micros(n * 1_200)) {
            assert_eq!(pacer.wait(at), None);
            pacer.on_send(at, 1000, 1000);
            let until = pacer.wait(at).expect("the second one waits");
            let half = at + Duration::from_micros(250);
            assert!(until >= half, "{until:?} {half:?}");
            pacer.on_send(until, 1000, 1000);
            pacer.pause();
        }
    }

    #[test]
    fn a_machine_that_wakes_far_too_late_says_so() {
        for mbit in [24, 80, 400] {
            let (sent, is_time_lost) = sent_with_timers(mbit, |_| Duration::from_millis(40));
            // 10 to 15 ms of each 40 are made up for.
            let share = sent as f64 / (mbit as f64 * 125_000.0);
            assert!((0.2..=0.4).contains(&share), "{mbit}: {share}");
            assert!(is_time_lost);
        }
    }

    #[test]
    fn what_leaves_together_is_one_quantum_at_high_rates_too() {
        for mbit in [100, 200, 400, 1_000] {
            let mut pacer = Pacer::new(FINE);
            pacer.set_rate(mbps(mbit));
            let most = pacer.quantum(1000) / 1000;
            let (mut now, mut timers) = (Instant::from_millis(1), 0);
            while now < Instant::from_millis(20) {
                let mut together = 0;
                let until = loop {
                    if let Some(until) = pacer.wait(now) {
                        break until;
                    }
                    pacer.on_send(now, 1000, 1000);
                    together += 1;
                };
                assert!(together <= most, "{mbit} at {now:?}: {together}, {most}");
                timers += 1;
                // One is late by 2 ms: less than what leaves at once.
                now = until + Duration::from_millis(if timers == 20 { 2 } else { 0 });
            }
        }
    }

    #[test]
    fn what_is_too_much_to_spread_leaves_at_once() {
        let left = departures_with_one_late_timer(Duration::from_millis(8));
        // 16 segments and the one that is due, of which 10 are 5 ms.
        let at_once = left.iter().filter(|at| **at == 18_000).count();
        assert_eq!(at_once, 7, "{left:?}");
    }

    #[test]
    fn where_most_timers_are_late_what_they_held_back_leaves_at_once() {
        let mut pacer = Pacer::new(FINE);
        pacer.set_rate(mbps(16));
        let (mut now, mut sent) = (Instant::from_millis(1), 0);
        for timer in 0..20 {
            sent = 0;
            let until = loop {
                if let Some(until) = pacer.wait(now) {
                    break until;
                }
                pacer.on_send(now, 1000, 1000);
                sent += 1;
            };
            assert!(timer > 6 || sent <= 2, "{timer}: {sent}");
            now = until + Duration::from_millis(1);
            if timer % 4 == 0 {
                // The window is full for a while, which is no reason to forget it.
                pacer.pause();
            }
        }
        assert_eq!(sent, 3, "1.5 ms are three segments");
    }

    #[test]
    fn a_time_that_a_segment_waits_for_does_not_come_sooner() {
        let mut pacer = Pacer::new(FINE);
        // A segment takes 16 ms.
        pacer.set_rate(Some(Rate::from_bits_per_sec(500_000)));
        let first = Instant::from_millis(100);
        pacer.on_send(first, 1000, 1000);
        assert_eq!(pacer.wait(first), Some(Instant::from_millis(108)));
        let late = Instant::from_millis(115);
        assert_eq!(pacer.wait(late), None);
        pacer.on_send(late, 1000, 1000);
        let until = pacer.wait(late).expect("the next one waits");
        let before = until - Nanos(1_000);
        assert_eq!(pacer.wait(before), Some(until));
        assert_eq!(pacer.wait(until), None);
    }

    #[test]
    fn time_without_a_rate_is_not_a_late_timer() {
        let mut pacer = Pacer::new(FINE);
        pacer.set_rate(mbps(16));
        pacer.on_send(Instant::from_millis(1), 1000, 1000);
        assert!(pacer.wait(Instant::from_millis(1)).is_some());
        pacer.set_rate(None);
        for millis in 2..100 {
            pacer.on_send(Instant::from_millis(millis), 1000, 1000);
        }
        pacer.set_rate(mbps(16));
        let now = Instant::from_millis(200);
        let mut sent = 0;
        while pacer.wait(now).is_none() {
            pacer.on_send(now, 1000, 1000);
            sent += 1;
        }
        assert!(sent <= 2, "{sent}");
    }

    #[test]
    fn exact_carriers_follow_the_time_of_those_before_alone() {
        let mut pacer = Pacer::new(Carrier::default());
        let (mut now, mut next) = (Instant::from_millis(5), Instant::ZERO);
        for n in 0..500_u64 {
            let mbit = [8, 24, 1][n as usize / 50 % 3];
            let rate = Rate::from_bits_per_sec(mbit * 1_000_000);
            pacer.set_rate(Some(rate));
            let is_due = pacer.wait(now).is_none();
            assert_eq!(is_due, next <= now);
            // Each seventh leaves before its time.
            if is_due || n % 7 == 0 {
                let len = 1 + n * 37 % 1000;
                assert!(!pacer.on_send(now, len, 1000));
                next = if is_due { next.max(now) } else { next };
                next += rate.nanos_for(len);
            }
            if n % 11 == 0 {
                pacer.pause();
            }
            assert_eq!(pacer.blocked_until(now), (next > now).then_some(next));
            now += Duration::from_micros(n * 131 % 900);
        }
    }

    #[test]
    fn what_an_idle_sender_did_not_use_is_gone() {
        let mut pacer = Pacer::new(FINE);
        pacer.set_rate(mbps(80));
        assert!(!pacer.on_send(Instant::from_millis(1), 1000, 1000));
        let later = Instant::from_millis(101);
        let mut sent = 0;
        while pacer.wait(later).is_none() {
            assert!(!pacer.on_send(later, 1000, 1000));
            sent += 1000;
        }
        // Two quanta of 250 us: the one made up for, and the one that leaves.
        assert!(sent <= 6_000, "{sent}");
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
