//! Which packet numbers are missing: what is merely late, what is lost, and what no longer matters.
//!
//! A skipped number opens a gap. A gap that outlives the settling time is lost: that is told at once, and
//! again in periodic acknowledgements until every byte that it can have carried is here.

#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use core::ops::Range;
use core::time::Duration;

use tack_base::Instant;
use tack_base::filter::WindowedMax;
use tack_base::range_set::RangeSet;
use tack_base::time::nanos;

use super::frontier::{Frontier, New};
use crate::ack::Settle;

/// Most gaps remembered. A startup that overshoots a path of 1 Gbit/s and 200 ms leaves some 17,000; more than this come only
/// from a hostile sender, and open none: the oldest hold the stream up, and are never forgotten.
const MAX_GAPS: usize = 1 << 16;
/// A single gap of more numbers than this is a lie: nobody has so much in flight.
const MAX_JUMP: u64 = 1 << 24;
/// How long seen reordering keeps the settling time up, at least.
const REORDERING_MEMORY: Duration = Duration::from_secs(2);
/// Packets over which the loss rate is averaged: counts are halved beyond.
const LOSS_WINDOW: u64 = 4096;

/// A run of missing numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Gap {
    /// The numbers.
    pub(super) numbers: Range<u64>,
    /// When it was noticed.
    since: Instant,
    /// Once everything below this stream position is here, the gap no longer matters.
    limit: u64,
    /// All that it can have carried, alone or with the gaps just beside it, is in here, where that is known.
    carried: Option<Range<u64>>,
    /// How often it was reported.
    pub(super) reports: u32,
    /// When it was reported last.
    pub(super) reported_at: Option<Instant>,
}

/// Where an arriving number fell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// The next one, or a later one.
    Ahead,
    /// One that had been skipped.
    Late,
    /// One seen before, or too old to say.
    Seen,
}

/// The receiver's view of packet numbers.
#[derive(Debug)]
pub(super) struct Gaps {
    /// The next number if nothing is skipped.
    next: u64,
    /// When the largest one arrived.
    largest_at: Instant,
    frontier: Frontier,
    /// No gap has a limit below this.
    lowest_limit: u64,
    /// Not settled yet, ascending.
    waiting: VecDeque<Gap>,
    /// Lost, ascending.
    lost: VecDeque<Gap>,
    settle: Settle,
    /// Lateness of skipped numbers that came after all, nanoseconds.
    lateness: WindowedMax<u64>,
    lateness_at: Instant,
    received_packets: u64,
    lost_packets: u64,
}

impl Gaps {
    /// Nothing received; numbers begin at zero.
    pub(super) fn new(settle: Settle) -> Self {
        Self {
            next: 0,
            largest_at: Instant::ZERO,
            frontier: Frontier::new(),
            lowest_limit: u64::MAX,
            waiting: VecDeque::new(),
            lost: VecDeque::new(),
            settle,
            lateness: WindowedMax::new(nanos(REORDERING_MEMORY)),
            lateness_at: Instant::ZERO,
            received_packets: 0,
            lost_packets: 0,
        }
    }

    /// Numbers begin again with `number`; `highest` ends the data received so far. What is known of numbers before is void.
    pub(super) fn restart(&mut self, number: u32, highest: u64) {
        *self = Self {
            next: number.into(),
            frontier: Frontier::resuming(number.into(), highest),
            received_packets: self.received_packets,
            lost_packets: self.lost_packets,
            ..Self::new(self.settle)
        };
    }

    /// Largest number received.
    pub(super) fn largest(&self) -> Option<u64> {
        self.next.checked_sub(1)
    }

    /// When it arrived.
    pub(super) fn largest_at(&self) -> Instant {
        self.largest_at
    }

    /// Lost and not resolved, ascending.
    pub(super) fn lost_mut(&mut self) -> &mut VecDeque<Gap> {
        &mut self.lost
    }

    /// Share of packets lost, 0 to 1.
    pub(super) fn loss_rate(&self) -> f64 {
        let total = self.received_packets + self.lost_packets;
        if total == 0 {
            0.0
        } else {
            self.lost_packets as f64 / total as f64
        }
    }

    /// A segment with this `number` arrived; it carries the stream positions `data`. Full segments carry `mss`.
    pub(super) fn on_number(
        &mut self,
        arrived: Instant,
        number: u32,
        data: Range<u64>,
        mss: u64,
    ) -> Arrival {
        let delta = i64::from(number.wrapping_sub(self.next as u32) as i32);
        let Some(number) = self.next.checked_add_signed(delta) else {
            return Arrival::Seen;
        };
        if number > self.next + MAX_JUMP {
            // To believe it would make copies of all that follows.
            return Arrival::Seen;
        }
        self.received_packets += 1;
        if self.received_packets + self.lost_packets > LOSS_WINDOW {
            self.received_packets /= 2;
            self.lost_packets /= 2;
        }
        self.frontier.on_segment(mss);
        if number >= self.next {
            if number > self.next && self.waiting.len() + self.lost.len() < MAX_GAPS {
                let missing = self.missing() + number - self.next;
                let limit = self.frontier.on_skip(missing);
                self.lowest_limit = self.lowest_limit.min(limit);
                self.waiting.push_back(Gap {
                    numbers: self.next..number,
                    since: arrived,
                    limit,
                    carried: None,
                    reports: 0,
                    reported_at: None,
                });
            }
            self.next = number + 1;
            self.largest_at = arrived;
            self.note_data(number, &data);
            return Arrival::Ahead;
        }
        let full = self.waiting.len() + self.lost.len() >= MAX_GAPS;
        let late = Self::remove(&mut self.waiting, number, full).or_else(|| {
            let since = Self::remove(&mut self.lost, number, full);
            self.lost_packets = self.lost_packets.saturating_sub(u64::from(since.is_some()));
            since
        });
        let Some(since) = late else {
            return Arrival::Seen;
        };
        self.lateness
            .update(arrived.as_nanos(), nanos(arrived.saturating_since(since)));
        self.lateness_at = arrived;
        self.frontier.on_late(data.end);
        Arrival::Late
    }

    /// How many numbers since the frontier's anchor are missing.
    fn missing(&self) -> u64 {
        let after = self.frontier.next();
        let count = |gaps: &VecDeque<Gap>| -> u64 {
            gaps.iter()
                .rev()
                .take_while(|gap| gap.numbers.start >= after)
                .map(|gap| gap.numbers.end - gap.numbers.start)
                .sum()
        };
        count(&self.waiting) + count(&self.lost)
    }

    /// Data arrived under `number`, the largest so far.
    fn note_data(&mut self, number: u64, data: &Range<u64>) {
        let after = self.frontier.next();
        let missing = self.missing();
        let Some(new) = self.frontier.on_data(number, data, missing) else {
            return;
        };
        if missing == 0 {
            return;
        }
        self.lowest_limit = self.lowest_limit.min(data.start);
        for gaps in [&mut self.waiting, &mut self.lost] {
            let newer = gaps.iter_mut().rev();
            for gap in newer.take_while(|gap| gap.numbers.start >= after) {
                gap.limit = gap.limit.min(data.start);
                if let New::AllElse(carried) = &new {
                    gap.carried = Some(carried.clone());
                }
            }
        }
    }

    /// Takes `number` out of the gap that holds it; returns when that gap was noticed. What is left of it stays one gap, its
    /// older part forgotten, when there are too many.
    fn remove(gaps: &mut VecDeque<Gap>, number: u64, full: bool) -> Option<Instant> {
        let index = gaps.partition_point(|gap| gap.numbers.end <= number);
        let gap = gaps
            .get_mut(index)
            .filter(|gap| gap.numbers.start <= number)?;
        let since = gap.since;
        let (before, after) = (gap.numbers.start..number, number + 1..gap.numbers.end);
        match (before.is_empty(), after.is_empty()) {
            (true, true) => {
                gaps.remove(index);
            }
            (true, false) => gap.numbers = after,
            (false, false) if full => gap.numbers = after,
            (false, true) => gap.numbers = before,
            (false, false) => {
                let rest = Gap {
                    numbers: after,
                    ..gap.clone()
                };
                gap.numbers = before;
                gaps.insert(index + 1, rest);
            }
        }
        Some(since)
    }

    /// How long a gap may stay open before it counts as lost.
    ///
    /// Adaptive: nothing while reordering was not seen lately, so that the first loss is told at once; then a quarter of
    /// RTTmin (the paper's choice) or longer, as long as skipped numbers were seen to be late, RTTmin at most.
    pub(super) fn settling_time(&self, now: Instant, rtt_min: Duration) -> Duration {
        match self.settle {
            Settle::Fixed(thousandths) => rtt_min * u32::from(thousandths) / 1000,
            Settle::Adaptive => {
                let memory = REORDERING_MEMORY.max(rtt_min * 16);
                let Some(late) = self.lateness.get() else {
                    return Duration::ZERO;
                };
                if now.saturating_since(self.lateness_at) > memory {
                    return Duration::ZERO;
                }
                (Duration::from_nanos(late) * 5 / 4)
                    .max(rtt_min / 4)
                    .min(rtt_min)
            }
        }
    }

    /// Moves gaps that outlived the settling time to the lost ones. Returns whether there were any.
    pub(super) fn settle(&mut self, now: Instant, rtt_min: Duration) -> bool {
        let time = self.settling_time(now, rtt_min);
        let mut any = false;
        while self
            .waiting
            .front()
            .is_some_and(|gap| gap.since + time <= now)
            && let Some(gap) = self.waiting.pop_front()
        {
            self.lost_packets += gap.numbers.end - gap.numbers.start;
            // Late arrivals may have shortened later ones first; order by number holds all the same.
            let index = self
                .lost
                .partition_point(|lost| lost.numbers.start < gap.numbers.start);
            self.lost.insert(index, gap);
            any = true;
        }
        any
    }

    /// When the oldest open gap will have settled.
    pub(super) fn deadline(&self, now: Instant, rtt_min: Duration) -> Option<Instant> {
        let oldest = self.waiting.front()?;
        Some(oldest.since + self.settling_time(now, rtt_min))
    }

    /// Everything below stream position `position` is here.
    pub(super) fn resolve(&mut self, position: u64) {
        if position < self.lowest_limit {
            return;
        }
        let after = self.frontier.next();
        let mut accounted = 0;
        let mut lowest = u64::MAX;
        let mut open = |gap: &Gap| {
            let open = gap.limit > position;
            if open {
                lowest = lowest.min(gap.limit);
            } else if gap.numbers.start >= after {
                accounted += gap.numbers.end - gap.numbers.start;
            }
            open
        };
        self.waiting.retain(&mut open);
        self.lost.retain(&mut open);
        self.lowest_limit = lowest;
        self.frontier.on_accounted(accounted);
    }

    /// Everything below `position` is here, and what is `ahead` of it: that resolves the gaps that can have carried nothing else.
    pub(super) fn resolve_ahead(&mut self, position: u64, ahead: &RangeSet) {
        self.lost.retain(|gap| {
            gap.carried
                .as_ref()
                .is_none_or(|carried| !ahead.contains(&(carried.start.max(position)..carried.end)))
        });
    }

    /// Something is lost and has not come.
    pub(super) fn is_any_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The newest lost gap, as the numbers received before and after it.
    pub(super) fn newest_lost(&self) -> Option<(u64, u64)> {
        let gap = self.lost.back()?;
        Some((gap.numbers.start.checked_sub(1)?, gap.numbers.end))
    }
}
