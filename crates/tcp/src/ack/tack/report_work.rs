//! How much work the lists of a report may be.
//!
//! Each segment may draw a report, and a peer that leaves thousands of holes fills the lists of
//! each with entries that tell nothing new. So the segments pay for them: each for two blocks and
//! a gap, and what reports leave of that is kept for the next ones, up to a bound. Where losses are
//! honest a report has many segments, or few entries. A gap that no report has named yet needs no
//! payment: a segment had to come for it.

/// Of each list, entries that are kept at most: two reports of the longest.
const MOST: usize = 128;
/// Blocks that a segment pays for. With one, a path that strips half of the reports left a sender
/// without word of what had arrived.
const BLOCKS_OF_A_SEGMENT: usize = 2;
/// Blocks that a report lists in any case, as SACK does beside timestamps (RFC 2018 §3).
const FREE_BLOCKS: usize = 3;
/// Gaps that need no payment when there are no more: they are repeated at growing intervals.
const FREE_GAPS: usize = 8;

/// What has been paid for.
#[derive(Clone, Debug)]
pub(super) struct ReportWork {
    blocks: usize,
    gaps: usize,
    /// Gaps that may be named anew.
    anew: usize,
}

impl Default for ReportWork {
    fn default() -> Self {
        Self {
            blocks: MOST,
            gaps: MOST,
            anew: 0,
        }
    }
}

impl ReportWork {
    /// A segment arrived.
    #[inline]
    pub(super) fn on_segment(&mut self) {
        self.blocks = (self.blocks + BLOCKS_OF_A_SEGMENT).min(MOST);
        self.gaps = (self.gaps + 1).min(MOST);
        self.anew = self.anew.saturating_add(1);
    }

    /// How many blocks a report may list.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.max(FREE_BLOCKS)
    }

    /// How many of the `lost` gaps it may repeat.
    pub(super) fn gaps(&self, lost: usize) -> u64 {
        match lost {
            ..=FREE_GAPS => FREE_GAPS as u64,
            _ => self.gaps as u64,
        }
    }

    /// A report lists so many blocks, and repeats so many `gaps` of the `lost` ones.
    pub(super) fn spend(&mut self, blocks: usize, gaps: usize, lost: usize) {
        self.blocks = self.blocks.saturating_sub(blocks);
        if lost > FREE_GAPS {
            self.gaps = self.gaps.saturating_sub(gaps);
        }
    }

    /// How many gaps may be named anew: one for each segment since the connection began.
    pub(super) fn anew(&self) -> usize {
        self.anew
    }

    /// So many are.
    pub(super) fn spend_anew(&mut self, gaps: usize) {
        self.anew = self.anew.saturating_sub(gaps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_segment_pays_for_a_gap_and_two_blocks() {
        let mut work = ReportWork::default();
        work.spend(1_000, 1_000, 9);
        assert_eq!((work.blocks(), work.gaps(9)), (FREE_BLOCKS, 0));
        for _ in 0..20 {
            work.on_segment();
        }
        assert_eq!((work.blocks(), work.gaps(9), work.anew()), (40, 20, 20));
        work.spend(5, 6, 9);
        work.spend_anew(7);
        assert_eq!((work.blocks(), work.gaps(9), work.anew()), (35, 14, 13));
        // Few gaps need no payment.
        work.spend(0, 6, 8);
        assert_eq!((work.gaps(8), work.gaps(9)), (8, 14));
        for _ in 0..1_000 {
            work.on_segment();
        }
        assert_eq!((work.blocks(), work.gaps(9)), (MOST, MOST as u64));
    }
}
