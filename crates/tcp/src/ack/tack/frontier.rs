//! How far new data can have got under a packet number: what skipped numbers can have carried.
//!
//! At the anchor it is known. Beyond it, each number can have taken new data further by a segment at most, which bounds what a
//! skipped number carried. An arrival is surely new data, and moves the anchor, when all that was skipped since is needed for
//! the holes before it: then nothing is left that can have carried it, or later data, earlier. That it is the newest data
//! *received* is not enough: a retransmission is that too when all that left between it and its original was lost, and to take
//! it for new data would forget those losses.

use core::ops::Range;

/// Where new data had got to.
#[derive(Debug)]
pub(super) struct Frontier {
    /// The number after the anchor's.
    next: u64,
    /// Nothing beyond this stream position left before that number.
    end: u64,
    /// End of the newest data received.
    newest_end: u64,
    /// Segments at least that the holes opened since the anchor take.
    needed: u64,
    /// Largest segment seen, bytes.
    segment: u64,
}

impl Frontier {
    /// Nothing was sent; the stream begins at position 1.
    pub(super) const fn new() -> Self {
        Self {
            next: 0,
            end: 1,
            newest_end: 1,
            needed: 0,
            segment: 1,
        }
    }

    /// A segment of this size is possible.
    pub(super) fn on_segment(&mut self, len: u64) {
        self.segment = self.segment.max(len);
    }

    /// The first number after the anchor.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// No number below `number` carried anything at or beyond this position.
    pub(super) fn bound(&self, number: u64) -> u64 {
        let numbers = number.saturating_sub(self.next);
        self.end
            .saturating_add(numbers.saturating_mul(self.segment))
    }

    /// `data` arrived under `number`, the largest so far; `missing` of the numbers since the anchor are not accounted for.
    /// When `data` is new for sure, returns what lies between the anchor and it, which is all that those can have carried.
    pub(super) fn on_data(
        &mut self,
        number: u64,
        data: &Range<u64>,
        missing: u64,
    ) -> Option<Range<u64>> {
        let hole = data.start.checked_sub(self.newest_end)?;
        self.needed += hole.div_ceil(self.segment);
        self.newest_end = data.end;
        if missing > self.needed {
            return None;
        }
        let skipped = self.end..data.start;
        self.next = number + 1;
        self.end = data.end;
        self.needed = 0;
        Some(skipped)
    }

    /// So many skipped numbers came late, or no longer matter: they do not explain holes any more.
    pub(super) fn on_accounted(&mut self, numbers: u64) {
        self.needed = self.needed.saturating_sub(numbers);
    }
}
