//! Which packet numbers are missing: what is merely late, what is lost, and what no longer matters.
//!
//! A skipped number opens a gap. A gap that outlives the settling time is lost: that is reported at
//! once, and again in periodic acknowledgements until every byte that it can have carried is here.
//!
//! A peer can make as many gaps as the window allows, so no step looks at all of them: each one is
//! reached by its number, by its turn in reports, or by the data that came for it.

#[cfg(test)]
mod tests;

use alloc::collections::BTreeMap;
use core::ops::Range;
use core::time::Duration;

use tack_base::filter::WindowedMax;
use tack_base::range_set::RangeSet;
use tack_base::time::nanos;
use tack_base::{Instant, StreamOffset};

use super::carried::Carried;
use super::frontier::{Frontier, New};
use super::report_order::{GapReports, ReportOrder, Wanted};
use crate::ack::Settle;
use crate::send::packet_number::PacketNumber;

/// Gaps remembered however small the window is: some applications send small messages.
const FEW_GAPS: u64 = 128;
/// Least bytes of window for each gap beyond those (RFC 9293 §3.7.1, the segment that every path
/// takes): an honest sender with segments of the size it shows leaves fewer. Further ones come from
/// a hostile sender, and open none: the oldest hold the stream up, and are never forgotten.
const BYTES_PER_GAP: u64 = 536;
/// A single gap of more numbers than this cannot be true: nobody has so much in flight.
const MAX_JUMP: u64 = 1 << 24;
/// How long seen reordering keeps the settling time up, at least.
const REORDERING_MEMORY: Duration = Duration::from_secs(2);
/// Packets over which the loss rate is averaged: counts are halved beyond.
const LOSS_WINDOW: u64 = 4096;

/// A run of missing numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Gap {
    /// The number after its last one.
    end: PacketNumber,
    /// When it was noticed.
    since: Instant,
    /// Once everything below this stream position is here, the gap no longer matters.
    limit: StreamOffset,
    /// When it was reported.
    reported: GapReports,
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
    next: PacketNumber,
    /// When the largest one arrived.
    largest_at: Instant,
    frontier: Frontier,
    /// How many numbers skipped since the frontier's anchor are not accounted for.
    missing: u64,
    /// By their first numbers. Their limits ascend with them.
    gaps: BTreeMap<PacketNumber, Gap>,
    /// Gaps below this number are lost, the others not settled yet.
    settled: PacketNumber,
    /// The order in which the lost ones are reported.
    order: ReportOrder,
    carried: Carried,
    settle: Settle,
    /// The round trip as the sender last stated it, queues included.
    round_trip: Duration,
    /// Lateness of skipped numbers that came after all, nanoseconds.
    lateness: WindowedMax<u64>,
    lateness_at: Instant,
    received_packets: u64,
    lost_packets: u64,
    /// Gaps looked at one after the other, for tests of what a step costs.
    #[cfg(test)]
    visits: u64,
}

impl Gaps {
    /// Nothing received; numbers begin at zero.
    pub(super) fn new(settle: Settle) -> Self {
        Self {
            next: PacketNumber(0),
            largest_at: Instant::ZERO,
            frontier: Frontier::new(),
            missing: 0,
            gaps: BTreeMap::new(),
            settled: PacketNumber(0),
            order: ReportOrder::default(),
            carried: Carried::default(),
            settle,
            round_trip: Duration::ZERO,
            lateness: WindowedMax::new(nanos(REORDERING_MEMORY)),
            lateness_at: Instant::ZERO,
            received_packets: 0,
            lost_packets: 0,
            #[cfg(test)]
            visits: 0,
        }
    }

    /// Numbers begin again with `number`; `highest` ends the data received so far. What is known of
    /// numbers before is void.
    pub(super) fn restart(&mut self, number: u32, highest: StreamOffset) {
        let number = PacketNumber(number.into());
        *self = Self {
            next: number,
            frontier: Frontier::resuming(number, highest),
            received_packets: self.received_packets,
            lost_packets: self.lost_packets,
            round_trip: self.round_trip,
            ..Self::new(self.settle)
        };
    }

    /// The sender's round trip takes so long now, queues included.
    pub(super) fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
    }

    /// What a repetition takes at least: the round trip that the sender stated last, or RTTmin.
    pub(super) fn round_trip(&self, rtt_min: Duration) -> Duration {
        rtt_min.max(self.round_trip)
    }

    /// Largest number received.
    pub(super) fn largest(&self) -> Option<PacketNumber> {
        self.next.back(1)
    }

    /// When it arrived.
    pub(super) fn largest_at(&self) -> Instant {
        self.largest_at
    }

    /// Bytes of heap held, about: gaps, and their order.
    pub(super) fn memory(&self) -> usize {
        self.gaps.len() * 2 * size_of::<(PacketNumber, Gap)>()
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

    /// A segment with this `number` arrived; it carries the stream positions `data`. Full segments
    /// carry `mss`, and `window` bytes may be in flight.
    pub(super) fn on_number(
        &mut self,
        arrived: Instant,
        number: u32,
        data: Range<StreamOffset>,
        mss: u64,
        window: u64,
    ) -> Arrival {
        let Some(number) = self.next.nearest(number) else {
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
        // As many as that are always remembered: where there are fewer, nothing is divided.
        let most = || (window / mss.max(BYTES_PER_GAP)).max(FEW_GAPS) as usize;
        let full = self.gaps.len() >= FEW_GAPS as usize && self.gaps.len() >= most();
        if number >= self.next {
            if number > self.next {
                self.missing += number - self.next;
                let limit = self.frontier.on_skip(self.missing);
                if !full {
                    self.open(self.next..number, arrived, limit);
                }
            }
            self.next = number.next();
            self.largest_at = arrived;
            self.note_data(number, &data, most);
            return Arrival::Ahead;
        }
        self.frontier.on_late(&data);
        let Some(since) = self.remove(number, full) else {
            return Arrival::Seen;
        };
        self.lateness
            .update(arrived.as_nanos(), nanos(arrived.saturating_since(since)));
        self.lateness_at = arrived;
        self.frontier.on_accounted(1);
        Arrival::Late
    }

    /// Data for a hole, or above one, is here.
    pub(super) fn on_data(&mut self, data: &Range<StreamOffset>) {
        self.carried.on_data(data);
    }

    fn open(&mut self, numbers: Range<PacketNumber>, since: Instant, limit: StreamOffset) {
        // An older gap may matter longer than its numbers alone would have it. That keeps limits in
        // the order of numbers.
        let before = self
            .gaps
            .last_key_value()
            .map_or(StreamOffset::SYN, |(_, gap)| gap.limit);
        let gap = Gap {
            end: numbers.end,
            since,
            limit: limit.max(before),
            reported: GapReports::NEVER,
        };
        self.gaps.insert(numbers.start, gap);
    }

    /// Data arrived under `number`, the largest so far.
    fn note_data(
        &mut self,
        number: PacketNumber,
        data: &Range<StreamOffset>,
        most: impl FnOnce() -> usize,
    ) {
        let after = self.frontier.next();
        let Some(new) = self.frontier.on_data(number, data, self.missing) else {
            return;
        };
        if core::mem::take(&mut self.missing) == 0 {
            return;
        }
        // Each gap is below the anchor from here on, and not looked at again.
        for gap in self.gaps.range_mut(after..).map(|(_, gap)| gap) {
            gap.limit = gap.limit.min(data.start);
            #[cfg(test)]
            {
                self.visits += 1;
            }
        }
        if let New::AllElse(span) = new
            && self.carried.len() < most()
        {
            self.carried.add(span, after..number);
        }
    }

    /// Takes `number` out of the gap that holds it; returns when that gap was noticed. What is left
    /// of it stays one gap, its older part forgotten, when there are too many.
    fn remove(&mut self, number: PacketNumber, full: bool) -> Option<Instant> {
        let (&start, gap) = self.gaps.range_mut(..=number).next_back()?;
        if gap.end <= number {
            return None;
        }
        let rest = gap.clone();
        let is_lost = start < self.settled;
        let after = number.next();
        let keeps_after = after < rest.end;
        if start < number && !(full && keeps_after) {
            gap.end = number;
        } else {
            self.gaps.remove(&start);
            if is_lost {
                self.order.remove(start, rest.reported);
            }
        }
        if number >= self.frontier.next() {
            self.missing -= 1;
        }
        if is_lost {
            self.lost_packets = self.lost_packets.saturating_sub(1);
        }
        let since = rest.since;
        if keeps_after {
            if is_lost {
                self.order.add(after, rest.reported);
            }
            self.gaps.insert(after, rest);
        }
        Some(since)
    }

    /// How long a gap may stay open before it counts as lost.
    ///
    /// Adaptive: nothing while reordering was not seen lately, so that the first loss is reported
    /// at once; then a quarter of RTTmin (the paper's choice) or longer, as long as skipped numbers
    /// were seen to be late. At most the round trip that the sender stated last, which a
    /// repetition takes at least: RTTmin where no queue stands. RACK has the same bound (RFC 8985
    /// §6.2 step 4).
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
                    .min(self.round_trip(rtt_min))
            }
        }
    }

    /// Gaps that outlived the settling time count as lost from now on. Returns whether there were
    /// any.
    #[inline]
    pub(super) fn settle(&mut self, now: Instant, rtt_min: Duration) -> bool {
        if self.gaps.is_empty() {
            return false;
        }
        let time = self.settling_time(now, rtt_min);
        let mut any = false;
        while let Some((&start, gap)) = self.first_waiting()
            && gap.since + time <= now
        {
            let (end, reported) = (gap.end, gap.reported);
            self.lost_packets += end - start;
            self.settled = end;
            self.order.add(start, reported);
            any = true;
        }
        any
    }

    #[inline]
    fn first_waiting(&self) -> Option<(&PacketNumber, &Gap)> {
        self.gaps.range(self.settled..).next()
    }

    /// When the oldest open gap will have settled.
    pub(super) fn deadline(&self, now: Instant, rtt_min: Duration) -> Option<Instant> {
        if self.gaps.is_empty() {
            return None;
        }
        let (_, oldest) = self.first_waiting()?;
        Some(oldest.since + self.settling_time(now, rtt_min))
    }

    /// Everything below stream position `position` is here.
    pub(super) fn resolve(&mut self, position: StreamOffset) {
        if self.gaps.is_empty() {
            self.carried.forget_below(position);
            return;
        }
        let mut accounted = 0;
        while let Some(first) = self.gaps.first_entry()
            && first.get().limit <= position
        {
            let (start, gap) = first.remove_entry();
            if start < self.settled {
                self.order.remove(start, gap.reported);
            }
            if start >= self.frontier.next() {
                accounted += gap.end - start;
            }
        }
        self.missing -= accounted;
        self.frontier.on_accounted(accounted);
        self.carried.forget_below(position);
    }

    /// Everything below `position` is here, and what is `ahead` of it: that resolves the gaps that
    /// can have carried nothing else.
    pub(super) fn resolve_ahead(&mut self, position: StreamOffset, ahead: &RangeSet<StreamOffset>) {
        let Self {
            carried,
            gaps,
            order,
            settled,
            ..
        } = self;
        carried.complete(position, ahead, |numbers| {
            while let Some((&start, _)) = gaps.range(numbers.clone()).next()
                && let Some(gap) = gaps.remove(&start)
            {
                if start < *settled {
                    order.remove(start, gap.reported);
                }
            }
        });
    }

    /// Lets `write` list the `wanted` ones of the lost gaps, ascending, as long as it has room for
    /// them. What is reported now can be repaired `round` later, and no sooner. Returns how many
    /// had been reported before.
    pub(super) fn report(
        &mut self,
        wanted: Wanted,
        now: Instant,
        round: Duration,
        mut write: impl FnMut(Range<PacketNumber>) -> bool,
    ) -> usize {
        let mut repeated = 0;
        let due = self.order.take_due(wanted, now);
        for &start in &due {
            let Some(gap) = self.gaps.get_mut(&start) else {
                debug_assert!(false, "a lost gap is in the map");
                continue;
            };
            if !write(start..gap.end) {
                break;
            }
            repeated += usize::from(gap.reported != GapReports::NEVER);
            gap.reported = self.order.report(start, gap.reported, now, round);
        }
        self.order.give_back(due);
        repeated
    }

    /// The gap that begins with `number` is lost, and nothing of it has come.
    pub(super) fn is_lost(&self, number: PacketNumber) -> bool {
        number < self.settled && self.gaps.contains_key(&number)
    }

    /// What was reported did not get through: the newest gaps are new again, `most` of them, and
    /// only what was reported for the first time within a time before now, if one is given. Returns
    /// how many.
    pub(super) fn report_anew(
        &mut self,
        recent: Option<(Instant, Duration)>,
        most: usize,
    ) -> usize {
        let newest = self.gaps.range_mut(..self.settled).rev().take(most);
        let mut anew = 0;
        for (&start, gap) in newest {
            if recent.is_some_and(|(now, time)| !gap.reported.is_newer_than(now, time)) {
                break;
            }
            self.order.remove(start, gap.reported);
            gap.reported = GapReports::NEVER;
            self.order.add(start, gap.reported);
            anew += 1;
        }
        anew
    }

    /// Something is lost whose repair may be under way: the newest loss was reported for the first
    /// time within `patience`, or not yet. What is lost for longer may have come under another
    /// number: nothing shows what the first numbers of a connection carried.
    pub(super) fn is_repair_awaited(&self, now: Instant, patience: Duration) -> bool {
        let newest = self.gaps.range(..self.settled).next_back();
        newest.is_some_and(|(_, gap)| gap.reported.is_newer_than(now, patience))
    }

    /// How many gaps are lost.
    pub(super) fn lost(&self) -> usize {
        self.order.len()
    }

    /// Something is lost that no report has named yet.
    pub(super) fn is_any_unreported(&self) -> bool {
        self.order.is_any_unreported()
    }

    /// The newest lost gap, as the numbers received before and after it.
    pub(super) fn newest_lost(&self) -> Option<(PacketNumber, PacketNumber)> {
        let (start, gap) = self.gaps.range(..self.settled).next_back()?;
        Some((start.back(1)?, gap.end))
    }
}
