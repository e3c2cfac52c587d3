//! The lost part of the log: how segments come to be presumed lost, how that is taken back, and
//! what leaves again first.

use core::ops::Range;

use tack_base::{Instant, StreamOffset};

use super::SentLog;
use super::records::{Fate, FlightStart, NewlyLost, SentSegment};
use crate::cc::SendToken;
use crate::send::loss_sign::{LossCounts, LossSign};
use crate::send::packet_number::PacketNumber;

impl SentLog {
    /// Marks the segment whose newest transmission is `number` lost, which `sign` told. Returns its
    /// length, zero when it is not in flight.
    pub(crate) fn mark_lost(&mut self, number: PacketNumber, sign: LossSign) -> u64 {
        let Some(range) = self.lose(number) else {
            return 0;
        };
        self.count_loss(sign);
        if let Some(newly_lost) = &mut self.newly_lost {
            newly_lost.push(NewlyLost {
                range: range.clone(),
                number,
                sign,
            });
        }
        range.end - range.start
    }

    /// As [`Self::mark_lost`], for a segment that did not leave.
    pub(crate) fn mark_kept_back(&mut self, number: PacketNumber) {
        let _range = self.lose(number);
    }

    /// A segment is lost, whether it is marked or not.
    pub(crate) fn count_loss(&mut self, sign: LossSign) {
        *self.losses.of_mut(sign) += 1;
    }

    /// Segments that were marked lost so far, or counted.
    pub(crate) fn losses(&self) -> LossCounts {
        self.losses
    }

    /// The segment that is lost now, if it was in flight.
    fn lose(&mut self, number: PacketNumber) -> Option<Range<StreamOffset>> {
        if !self.outstanding.remove(number) {
            return None;
        }
        let start = self.transmission_mut(number)?.start;
        let index = self.index_at(start)?;
        let segment = &mut self.segments[index];
        debug_assert_eq!(
            segment.fate,
            Fate::InFlight,
            "outstanding transmissions belong to segments in flight"
        );
        segment.fate = Fate::Lost;
        let (range, len) = (segment.start..segment.end, segment.len());
        self.in_flight -= len;
        self.lost_bytes += len;
        self.lost.insert(range.clone());
        self.trim();
        Some(range)
    }

    /// Keeps what is marked lost from now on, for [`Self::pop_newly_lost`].
    pub(crate) fn watch_losses(&mut self) {
        self.newly_lost.get_or_insert_default();
    }

    /// The last segment marked lost that was not taken yet.
    pub(crate) fn pop_newly_lost(&mut self) -> Option<NewlyLost> {
        self.newly_lost.as_mut()?.pop()
    }

    /// Marks every segment in flight with more than `len` positions lost: the path takes none of
    /// them. Returns the positions marked.
    pub(crate) fn mark_lost_longer_than(&mut self, len: u64) -> u64 {
        let mut lost = 0;
        let to = self.next_number();
        let mut next = self.outstanding.first_in(self.first_outstanding..to);
        while let Some(number) = next {
            if self
                .transmission_mut(number)
                .is_some_and(|sent| sent.len() > len)
            {
                lost += self.mark_lost(number, LossSign::PathMtu);
            }
            next = self.outstanding.first_in(number.next()..to);
        }
        lost
    }

    /// Marks lost what was last sent under `numbers`, which a report named, unless it left after
    /// `youngest`. Returns the positions marked.
    ///
    /// Numbers that are settled cost next to nothing: a receiver names a gap until its bytes are
    /// there.
    pub(crate) fn mark_numbers_lost(
        &mut self,
        numbers: Range<PacketNumber>,
        youngest: Instant,
    ) -> u64 {
        let mut lost = 0;
        let mut next = self.outstanding.first_in(numbers.clone());
        while let Some(number) = next
            // They left in their order.
            && self.sent_at(number).is_some_and(|at| at <= youngest)
        {
            #[cfg(test)]
            {
                self.visits += 1;
            }
            lost += self.mark_lost(number, LossSign::Report);
            next = self.outstanding.first_in(number.next()..numbers.end);
        }
        lost
    }

    /// Marks the oldest unacknowledged segment lost. Returns its length, zero when it is not in
    /// flight.
    pub(crate) fn mark_front_lost(&mut self, sign: LossSign) -> u64 {
        self.segments
            .front()
            .map(|segment| segment.latest)
            .map_or(0, |number| self.mark_lost(number, sign))
    }

    /// Takes back that segments are lost (a spurious episode): they count as in flight again.
    pub(crate) fn unmark_lost(&mut self) {
        for range in core::mem::take(&mut self.lost).iter() {
            let index = self
                .segments
                .partition_point(|segment| segment.end <= range.start);
            let segments = self.segments.range_mut(index..);
            for segment in segments.take_while(|segment| segment.start < range.end) {
                debug_assert_eq!(
                    segment.fate,
                    Fate::Lost,
                    "the range is that of lost segments"
                );
                segment.fate = Fate::InFlight;
                self.in_flight += segment.len();
                self.lost_bytes -= segment.len();
                if segment.latest >= self.first_number {
                    self.outstanding.insert(segment.latest);
                    self.first_outstanding = self.first_outstanding.min(segment.latest);
                }
            }
        }
    }

    /// Forgets selective acknowledgements: the peer may have dropped what it reported
    /// (RFC 2018 §8). What was reported counts as lost.
    pub(crate) fn forget_sacked(&mut self, now: Instant) {
        for index in 0..self.segments.len() {
            let SentSegment {
                start,
                end,
                fate,
                retransmitted,
                ..
            } = self.segments[index];
            if fate != Fate::Sacked {
                continue;
            }
            self.sacked_bytes -= end - start;
            self.lost_bytes += end - start;
            self.lost.insert(start..end);
            // Its record may be gone: it gets a settled one, of which no time can be measured.
            let number = self.next_number();
            self.record(
                start..end,
                now,
                true,
                FlightStart::default(),
                SendToken::default(),
            );
            self.retire(number);
            self.retransmitted_segments += usize::from(!retransmitted);
            let segment = &mut self.segments[index];
            segment.fate = Fate::Lost;
            segment.latest = number;
            segment.retransmitted = true;
        }
        self.sacked_segments = 0;
        self.sacked.clear();
    }

    /// All of `range` is marked lost, and its retransmission has not left.
    pub(crate) fn is_lost(&self, range: &Range<StreamOffset>) -> bool {
        self.lost.contains(range)
    }

    /// The lowest segment marked lost whose retransmission has not left.
    #[inline]
    pub(crate) fn first_lost(&self) -> Option<Range<StreamOffset>> {
        let lost = self.lost.first()?;
        let segment = &self.segments[self.index_at(lost.start)?];
        Some(segment.start..segment.end)
    }
}
