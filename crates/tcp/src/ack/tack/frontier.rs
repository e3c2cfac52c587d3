//! How far new data can have got under a packet number: what skipped numbers can have carried.
//!
//! At the anchor it is known. Of the numbers skipped since, the holes in the data received take
//! some; each of the others can have taken new data further by a segment at most, which bounds what
//! a skipped number carried. An arrival is surely new data, and moves the anchor, when none of the
//! skipped numbers can have carried it earlier: because all are needed for the holes before it, or
//! because it lies beyond their bound. That it is the newest data *received* is not enough: a
//! retransmission is that too when all that left between it and its original was lost, and to take
//! it for new data would forget those losses.

use core::ops::Range;

use tack_base::StreamOffset;

use crate::send::packet_number::PacketNumber;

/// Where new data had got to.
#[derive(Debug)]
pub(super) struct Frontier {
    /// The number after the anchor's.
    next: PacketNumber,
    /// Nothing beyond this stream position left before that number.
    end: StreamOffset,
    /// End of the newest data received.
    newest_end: StreamOffset,
    /// Segments at least that the holes opened since the anchor take.
    needed: u64,
    /// No number skipped since the anchor carried anything at or beyond this position.
    reach: StreamOffset,
    /// Largest segment seen, bytes.
    segment: u64,
}

impl Frontier {
    /// Nothing was sent; the stream begins at position 1.
    pub(super) const fn new() -> Self {
        Self {
            next: PacketNumber(0),
            end: StreamOffset::FIRST_BYTE,
            newest_end: StreamOffset::FIRST_BYTE,
            needed: 0,
            reach: StreamOffset::SYN,
            segment: 1,
        }
    }

    /// Data up to `end` left before `number`.
    pub(super) const fn resuming(number: PacketNumber, end: StreamOffset) -> Self {
        Self {
            next: number,
            end,
            newest_end: end,
            ..Self::new()
        }
    }

    /// The first number after the anchor.
    pub(super) const fn next(&self) -> PacketNumber {
        self.next
    }

    /// A segment of this size is possible.
    pub(super) fn on_segment(&mut self, len: u64) {
        self.segment = self.segment.max(len);
    }

    /// Numbers were skipped; with them, `missing` since the anchor are not accounted for. Returns a
    /// bound: none of them carried anything at or beyond that position.
    pub(super) fn on_skip(&mut self, missing: u64) -> StreamOffset {
        let beyond = missing
            .saturating_sub(self.needed)
            .saturating_mul(self.segment);
        let bound = self.newest_end.saturating_add(beyond);
        self.reach = self.reach.max(bound);
        bound
    }

    /// `data` arrived under a skipped number, or again. If it is newer than what came so far,
    /// numbers skipped from here on can have got as much further.
    pub(super) fn on_late(&mut self, data: &Range<StreamOffset>) {
        self.newest_end = self.newest_end.max(data.end);
    }

    /// `data` arrived under `number`, the largest so far; `missing` of the numbers since the anchor
    /// are not accounted for. `None`: it may have left before.
    pub(super) fn on_data(
        &mut self,
        number: PacketNumber,
        data: &Range<StreamOffset>,
        missing: u64,
    ) -> Option<New> {
        let hole = data.start.0.checked_sub(self.newest_end.0)?;
        self.needed += hole.div_ceil(self.segment);
        self.newest_end = data.end;
        let new = if missing <= self.needed {
            New::AllElse(self.end..data.start)
        } else if data.start >= self.reach {
            New::Only
        } else {
            return None;
        };
        self.next = number.next();
        self.end = data.end;
        self.needed = 0;
        self.reach = StreamOffset::SYN;
        Some(new)
    }

    /// So many skipped numbers came late, or no longer matter: they do not explain holes any more.
    pub(super) fn on_accounted(&mut self, numbers: u64) {
        self.needed = self.needed.saturating_sub(numbers);
    }
}

/// An arrival is new data for sure: what left before it lies before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum New {
    /// And what was skipped since the anchor is all in here, new data too.
    AllElse(Range<StreamOffset>),
    /// What was skipped may have been retransmissions.
    Only,
}
