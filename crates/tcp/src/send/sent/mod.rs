//! What is in flight: one record a transmission, one a segment.
//!
//! Transmissions are numbered from zero, one number each time a segment leaves, retransmissions
//! included. Two ordered views: by number (time order, which RACK walks) and by sequence position
//! (which acknowledgements walk). Both only pop at the front and push at the back, so the steady
//! state allocates nothing. What is selectively acknowledged and what is lost is known by ranges of
//! whole segments, so that neither a report nor a retransmission walks past segments that it does
//! not change.

mod check;
mod lost;
mod outstanding;
mod records;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use tack_base::range_set::RangeSet;
use tack_base::{Instant, StreamOffset};

use crate::cc::SendToken;
use crate::send::loss_sign::LossCounts;
use crate::send::packet_number::PacketNumber;
use outstanding::Outstanding;
pub(crate) use records::{Delivered, FlightStart, NewlyLost, Transmission};
use records::{Fate, SentSegment};

/// The log of everything sent and not cumulatively acknowledged.
#[derive(Debug)]
pub(crate) struct SentLog {
    transmissions: VecDeque<Transmission>,
    first_number: PacketNumber,
    /// The newest transmissions of the segments that are neither delivered nor lost.
    outstanding: Outstanding,
    /// No transmission below this number is outstanding.
    first_outstanding: PacketNumber,
    segments: VecDeque<SentSegment>,
    sacked: RangeSet<StreamOffset>,
    lost: RangeSet<StreamOffset>,
    in_flight: u64,
    sacked_bytes: u64,
    sacked_segments: usize,
    lost_bytes: u64,
    /// Segments in the log that were retransmitted.
    retransmitted_segments: usize,
    /// What was marked lost and not taken yet, where anybody wants to know.
    newly_lost: Option<Vec<NewlyLost>>,
    /// Segments that were marked lost, by what told.
    losses: LossCounts,
    /// Kept so that reading blocks allocates nothing.
    added: Vec<Range<StreamOffset>>,
    /// Segments looked at one after the other, for tests of what a report costs.
    #[cfg(test)]
    visits: u64,
}

impl SentLog {
    /// An empty log.
    pub(crate) fn new() -> Self {
        Self {
            transmissions: VecDeque::new(),
            first_number: PacketNumber(0),
            outstanding: Outstanding::default(),
            first_outstanding: PacketNumber(0),
            segments: VecDeque::new(),
            sacked: RangeSet::new(),
            lost: RangeSet::new(),
            in_flight: 0,
            sacked_bytes: 0,
            sacked_segments: 0,
            lost_bytes: 0,
            retransmitted_segments: 0,
            newly_lost: None,
            losses: LossCounts::default(),
            added: Vec::new(),
            #[cfg(test)]
            visits: 0,
        }
    }

    /// Bytes in flight: sent, not known delivered, not known lost (RFC 6675 "pipe").
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Segments selectively acknowledged above the cumulative acknowledgement.
    pub(crate) fn sacked_segments(&self) -> usize {
        self.sacked_segments
    }

    /// Bytes selectively acknowledged above the cumulative acknowledgement.
    pub(crate) fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// Bytes marked lost and not retransmitted yet.
    #[inline]
    pub(crate) fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Segments not cumulatively acknowledged that were retransmitted.
    pub(crate) fn retransmitted_segments(&self) -> usize {
        self.retransmitted_segments
    }

    /// True when everything sent is cumulatively acknowledged.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Segments not cumulatively acknowledged.
    pub(crate) fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// Bytes of heap held, about.
    #[inline]
    pub(crate) fn memory(&self) -> usize {
        self.transmissions.capacity() * size_of::<Transmission>()
            + self.segments.capacity() * size_of::<SentSegment>()
            + (self.sacked.len() + self.lost.len()) * 2 * size_of::<Range<StreamOffset>>()
    }

    /// Gives back the heap of records that are gone. Numbers go on where they were.
    pub(crate) fn free(&mut self) {
        self.transmissions.shrink_to_fit();
        self.segments.shrink_to_fit();
        self.added = Vec::new();
    }

    /// Number that the next transmission gets.
    #[inline]
    pub(crate) fn next_number(&self) -> PacketNumber {
        PacketNumber(self.first_number.0 + self.transmissions.len() as u64)
    }

    /// Number of the newest transmission; before the first one what comes before zero (modulo
    /// 2^64).
    #[inline]
    pub(crate) fn newest_number(&self) -> PacketNumber {
        PacketNumber(self.next_number().0.wrapping_sub(1))
    }

    /// Records a segment that left for the first time; `range` continues what was sent before.
    pub(crate) fn push(
        &mut self,
        range: Range<StreamOffset>,
        now: Instant,
        flight: FlightStart,
        token: SendToken,
    ) {
        debug_assert!(
            self.segments
                .back()
                .is_none_or(|last| last.end == range.start),
            "new segments follow the last one"
        );
        self.segments.push_back(SentSegment {
            start: range.start,
            end: range.end,
            latest: self.next_number(),
            fate: Fate::InFlight,
            retransmitted: false,
            first_sent_at: now,
        });
        self.in_flight += range.end - range.start;
        self.record(range, now, false, flight, token);
    }

    /// Records that `range` left again: a segment, or the first part of one that the path no longer
    /// takes in one piece. It counts as in flight from now on.
    pub(crate) fn push_retransmission(
        &mut self,
        range: Range<StreamOffset>,
        now: Instant,
        flight: FlightStart,
        token: SendToken,
    ) {
        let number = self.next_number();
        let Some(index) = self.index_at(range.start) else {
            debug_assert!(false, "a retransmitted segment is in the log");
            return;
        };
        if self.segments[index].fate == Fate::Sacked {
            debug_assert!(false, "a delivered segment is not retransmitted");
            return;
        }
        if range.end < self.segments[index].end {
            self.cut(index, range.end);
        } else {
            self.retire(self.segments[index].latest);
        }
        let before = self.segments[index];
        match before.fate {
            Fate::Lost => {
                self.lost.remove(before.start..before.end);
                self.lost_bytes -= before.len();
                self.in_flight += before.len();
            }
            Fate::InFlight | Fate::Sacked => {}
        }
        let segment = &mut self.segments[index];
        segment.fate = Fate::InFlight;
        self.retransmitted_segments += usize::from(!segment.retransmitted);
        segment.retransmitted = true;
        segment.latest = number;
        self.record(before.start..before.end, now, true, flight, token);
        self.trim();
    }

    /// Cuts the segment at `index` at `middle`. The second part keeps its transmission; the first
    /// one is about to get one. A number of its own would be one that never leaves, and the
    /// receiver would report it lost.
    fn cut(&mut self, index: usize, middle: StreamOffset) {
        let first = &mut self.segments[index];
        let second = SentSegment {
            start: middle,
            ..*first
        };
        first.end = middle;
        self.segments.insert(index + 1, second);
        self.retransmitted_segments += usize::from(second.retransmitted);
        if let Some(transmission) = self.transmission_mut(second.latest) {
            transmission.start = middle;
        }
    }

    fn record(
        &mut self,
        range: Range<StreamOffset>,
        now: Instant,
        retransmission: bool,
        flight: FlightStart,
        token: SendToken,
    ) {
        self.outstanding.insert(self.next_number());
        self.transmissions.push_back(Transmission {
            start: range.start,
            end: range.end,
            sent_at: now,
            retransmission,
            flight,
            token,
        });
    }

    /// Takes a cumulative acknowledgement up to `position`; `each` sees every segment that it newly
    /// delivers. Returns how many positions it newly delivers.
    pub(crate) fn acknowledge(
        &mut self,
        position: StreamOffset,
        mut each: impl FnMut(&Delivered),
    ) -> u64 {
        let mut newly = 0;
        while let Some(&segment) = self.segments.front() {
            if segment.start >= position {
                break;
            }
            if segment.end > position {
                // Acknowledged in part: a path or peer that cuts segments. The rest stays one
                // segment.
                let part = position - segment.start;
                self.account_leave(segment.fate, part);
                if segment.fate != Fate::Sacked {
                    newly += part;
                }
                self.segments[0].start = position;
                if let Some(transmission) = self.transmission_mut(segment.latest) {
                    transmission.start = position;
                }
                break;
            }
            self.segments.pop_front();
            self.retransmitted_segments -= usize::from(segment.retransmitted);
            self.account_leave(segment.fate, segment.len());
            if segment.fate == Fate::Sacked {
                self.sacked_segments -= 1;
            } else {
                newly += segment.len();
                if let Some(delivered) = self.delivered(&segment) {
                    each(&delivered);
                }
            }
            self.retire(segment.latest);
        }
        self.sacked.remove_below(position);
        self.lost.remove_below(position);
        self.trim();
        newly
    }

    /// Takes a selective acknowledgement of `range` (within what was sent); `each` sees every
    /// segment that it newly delivers. Returns how many positions it newly delivers.
    pub(crate) fn acknowledge_selectively(
        &mut self,
        range: Range<StreamOffset>,
        mut each: impl FnMut(&Delivered),
    ) -> u64 {
        // Most blocks repeat what earlier acknowledgements told.
        if self.sacked.contains(&range) {
            return 0;
        }
        // Whole segments alone count: what a block holds of others, a later block will hold with
        // the rest.
        let Some(range) = self.whole_segments(&range) else {
            return 0;
        };
        // Only what this block adds needs a look: a block grows with each acknowledgement, and
        // walking all of it every time would be quadratic.
        let mut added = core::mem::take(&mut self.added);
        self.sacked.insert_with(range, |part| added.push(part));
        let mut newly = 0;
        for part in added.drain(..) {
            newly += self.mark_sacked(&part, &mut each);
        }
        self.added = added;
        self.trim();
        newly
    }

    /// What is known to have arrived above the cumulative acknowledgement.
    pub(crate) fn sacked(&self) -> &RangeSet<StreamOffset> {
        &self.sacked
    }

    /// The segments that lie in `range` from beginning to end.
    fn whole_segments(&self, range: &Range<StreamOffset>) -> Option<Range<StreamOffset>> {
        let first = self
            .segments
            .partition_point(|segment| segment.start < range.start);
        let past = self
            .segments
            .partition_point(|segment| segment.end <= range.end);
        let last = past.checked_sub(1).filter(|last| first <= *last)?;
        Some(self.segments[first].start..self.segments[last].end)
    }

    /// The segments of `part` are delivered: none of them was known to be.
    fn mark_sacked(
        &mut self,
        part: &Range<StreamOffset>,
        each: &mut impl FnMut(&Delivered),
    ) -> u64 {
        let mut newly = 0;
        let mut index = self
            .segments
            .partition_point(|segment| segment.end <= part.start);
        while let Some(&segment) = self.segments.get(index)
            && segment.start < part.end
        {
            debug_assert_ne!(segment.fate, Fate::Sacked, "its range was not in the set");
            self.account_leave(segment.fate, segment.len());
            self.sacked_bytes += segment.len();
            self.sacked_segments += 1;
            newly += segment.len();
            if let Some(delivered) = self.delivered(&segment) {
                each(&delivered);
            }
            self.retire(segment.latest);
            self.segments[index].fate = Fate::Sacked;
            if segment.fate == Fate::Lost {
                self.lost.remove(segment.start..segment.end);
            }
            index += 1;
            #[cfg(test)]
            {
                self.visits += 1;
            }
        }
        newly
    }

    /// Number and departure of the oldest outstanding transmission.
    #[inline]
    pub(crate) fn oldest_outstanding(&self) -> Option<(PacketNumber, Instant)> {
        let number = self.first_outstanding;
        Some((number, self.sent_at(number)?))
    }

    /// When transmission `number` left, as long as its record is kept.
    pub(crate) fn sent_at(&self, number: PacketNumber) -> Option<Instant> {
        let index = self.index_of(number)?;
        Some(self.transmissions.get(index as usize)?.sent_at)
    }

    /// The number under which the last segment that ends at or below `position` left, if it is
    /// certain that nothing of it left under another one.
    pub(crate) fn original_below(&self, position: StreamOffset) -> Option<PacketNumber> {
        let past = self
            .segments
            .partition_point(|segment| segment.end <= position);
        let segment = self.segments.get(past.checked_sub(1)?)?;
        // A single octet may have been delivered by a window probe, which has no number of its own.
        let certain = segment.fate == Fate::InFlight && !segment.retransmitted && segment.len() > 1;
        certain.then_some(segment.latest)
    }

    /// Whether anything left at `departure` (microseconds modulo 2^32), not after `now`; `None`
    /// when that is longer ago than what is recorded. Quick where it left shortly before `near`.
    pub(crate) fn left_at(
        &self,
        now: Instant,
        departure: u32,
        near: Option<PacketNumber>,
    ) -> Option<bool> {
        let age = (now.as_micros() as u32).wrapping_sub(departure);
        let departure = now.as_micros().checked_sub(age.into())?;
        let is_earlier = |at: usize| self.transmissions[at].sent_at.as_micros() < departure;
        // All before `from` left earlier, none from `to` on.
        let (mut from, mut to) = (0, self.transmissions.len());
        let near = near.and_then(|near| self.index_of(near));
        if let Some(mut at) = near.map(|near| near as usize).filter(|near| *near < to) {
            let mut step = 1;
            while !is_earlier(at) {
                to = at;
                if at == 0 {
                    break;
                }
                at = at.saturating_sub(step);
                step *= 2;
            }
            if at < to {
                from = at + 1;
            }
        }
        while from < to {
            let middle = from.midpoint(to);
            if is_earlier(middle) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        if from == 0 && self.transmissions.front()?.sent_at.as_micros() > departure {
            return None;
        }
        let found = self.transmissions.get(from);
        Some(found.is_some_and(|transmission| transmission.sent_at.as_micros() == departure))
    }

    /// Number and departure of the oldest unacknowledged segment's newest transmission, if that is
    /// outstanding.
    pub(crate) fn front_outstanding(&self) -> Option<(PacketNumber, Instant)> {
        let front = self.segments.front()?;
        let sent_at = self.sent_at(front.latest)?;
        (front.fate == Fate::InFlight).then_some((front.latest, sent_at))
    }

    /// True when the oldest unacknowledged segment was selectively acknowledged: the peer forgot
    /// it.
    pub(crate) fn is_front_sacked(&self) -> bool {
        self.segments
            .front()
            .is_some_and(|segment| segment.fate == Fate::Sacked)
    }

    /// The oldest unacknowledged segment.
    pub(crate) fn front(&self) -> Option<Range<StreamOffset>> {
        self.segments
            .front()
            .map(|segment| segment.start..segment.end)
    }

    /// When the first segment left for the first time: nothing that acknowledges it can answer
    /// anything older.
    pub(crate) fn front_first_sent_at(&self) -> Option<Instant> {
        self.segments.front().map(|segment| segment.first_sent_at)
    }

    /// The highest segment that is neither delivered nor lost.
    pub(crate) fn last_in_flight(&self) -> Option<Range<StreamOffset>> {
        self.segments
            .iter()
            .rev()
            .find(|segment| segment.fate == Fate::InFlight)
            .map(|segment| segment.start..segment.end)
    }

    fn account_leave(&mut self, fate: Fate, len: u64) {
        match fate {
            Fate::InFlight => self.in_flight -= len,
            Fate::Sacked => self.sacked_bytes -= len,
            Fate::Lost => self.lost_bytes -= len,
        }
    }

    fn delivered(&self, segment: &SentSegment) -> Option<Delivered> {
        let index = self.index_of(segment.latest)?;
        let transmission = *self.transmissions.get(index as usize)?;
        Some(Delivered {
            number: segment.latest,
            transmission,
            retransmitted: segment.retransmitted,
            was_lost: segment.fate == Fate::Lost,
        })
    }

    fn transmission_mut(&mut self, number: PacketNumber) -> Option<&mut Transmission> {
        let index = self.index_of(number)?;
        self.transmissions.get_mut(index as usize)
    }

    /// Where the record of `number` is, unless it is gone.
    #[inline]
    fn index_of(&self, number: PacketNumber) -> Option<u64> {
        number.0.checked_sub(self.first_number.0)
    }

    fn retire(&mut self, number: PacketNumber) {
        self.outstanding.remove(number);
    }

    /// Drops settled transmissions from the front of the time view, except those that a lost
    /// segment still names: it may yet be delivered.
    fn trim(&mut self) {
        let to = self.next_number();
        self.first_outstanding = self
            .outstanding
            .first_in(self.first_outstanding..to)
            .unwrap_or(to);
        while self.first_number < self.first_outstanding {
            let front = self.transmissions[0];
            if !self.lost.is_empty()
                && let Some(index) = self.index_at(front.start)
                && self.segments[index].latest == self.first_number
                && self.segments[index].fate == Fate::Lost
            {
                break;
            }
            self.transmissions.pop_front();
            self.first_number = self.first_number.next();
        }
        self.outstanding.drop_below(self.first_number);
    }

    fn index_at(&self, position: StreamOffset) -> Option<usize> {
        let index = self
            .segments
            .partition_point(|segment| segment.end <= position);
        self.segments
            .get(index)
            .filter(|segment| segment.start <= position)
            .map(|_| index)
    }
}
