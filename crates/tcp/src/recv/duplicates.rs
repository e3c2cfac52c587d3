//! What acknowledgements report beyond the cumulative number: SACK blocks (RFC 2018) and DSACK
//! (RFC 2883).

use core::ops::Range;

use arrayvec::ArrayVec;
use tack_base::StreamOffset;
use tack_base::range_set::RangeSet;
use tack_wire::{SackBlock, SackBlocks, SeqNum};

/// How many recently changed blocks are remembered: as many as ever fit into one segment.
const RECENT: usize = 4;

/// Order of reports: the block that changed last comes first (RFC 2018 §4), a duplicate before it.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// A position inside each of the blocks that changed last, newest first.
    recent: ArrayVec<StreamOffset, RECENT>,
    /// A duplicate to report once.
    duplicate: Option<Range<StreamOffset>>,
}

impl Reports {
    /// Data at `position` arrived above a hole.
    pub(crate) fn on_out_of_order(&mut self, position: StreamOffset) {
        if let Some(index) = self.recent.iter().position(|known| *known == position) {
            self.recent.remove(index);
        }
        if self.recent.is_full() {
            self.recent.pop();
        }
        self.recent.insert(0, position);
    }

    /// Data arrived that was here already.
    pub(crate) fn on_duplicate(&mut self, range: Range<StreamOffset>) {
        if !range.is_empty() {
            self.duplicate = Some(range);
        }
    }

    /// True when an acknowledgement would carry blocks.
    #[inline]
    pub(crate) fn is_empty(&self, ahead: &RangeSet<StreamOffset>) -> bool {
        self.duplicate.is_none() && ahead.is_empty()
    }

    /// Takes at most `capacity` blocks for the next acknowledgement. `irs` is position zero.
    pub(crate) fn take(
        &mut self,
        ahead: &RangeSet<StreamOffset>,
        irs: SeqNum,
        capacity: usize,
    ) -> SackBlocks {
        let mut blocks = SackBlocks::new();
        let capacity = capacity.min(RECENT);
        let block = |range: &Range<StreamOffset>| SackBlock {
            start: SeqNum::at(irs, range.start),
            end: SeqNum::at(irs, range.end),
        };
        if capacity == 0 {
            return blocks;
        }
        if let Some(duplicate) = self.duplicate.take() {
            blocks.push(block(&duplicate));
            // RFC 2883 §4: when the duplicate lies inside a block, that block follows.
            if let Some(around) = ahead.range_at(duplicate.start)
                && blocks.len() < capacity
            {
                blocks.push(block(&around));
            }
        }
        // Names merged into one block are named once.
        let mut named: ArrayVec<StreamOffset, RECENT> = ArrayVec::new();
        self.recent
            .retain(|position| match ahead.range_at(*position) {
                Some(range) if !named.contains(&range.start) => {
                    named.push(range.start);
                    true
                }
                _ => false,
            });
        let known = self
            .recent
            .iter()
            .filter_map(|position| ahead.range_at(*position));
        for range in known.chain(ahead.iter().rev().take(RECENT)) {
            if blocks.len() == capacity {
                break;
            }
            let candidate = block(&range);
            if !blocks.contains(&candidate) {
                blocks.push(candidate);
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(blocks: &SackBlocks) -> alloc::vec::Vec<(u32, u32)> {
        blocks.iter().map(|b| (b.start.0, b.end.0)).collect()
    }

    #[test]
    fn newest_block_first_then_the_others() {
        let (mut reports, mut ahead) = (Reports::default(), RangeSet::new());
        for start in [10, 30, 50] {
            ahead.insert(StreamOffset::range(start..start + 10));
            reports.on_out_of_order(StreamOffset(start));
        }
        assert_eq!(
            ranges(&reports.take(&ahead, SeqNum(0), 3)),
            [(50, 60), (30, 40), (10, 20)]
        );
        ahead.insert(StreamOffset::range(20..25));
        reports.on_out_of_order(StreamOffset(20));
        assert_eq!(
            ranges(&reports.take(&ahead, SeqNum(0), 3)),
            [(10, 25), (50, 60), (30, 40)]
        );
    }

    #[test]
    fn duplicates_are_reported_once_and_first() {
        let (mut reports, mut ahead) = (Reports::default(), RangeSet::new());
        ahead.insert(StreamOffset::range(100..200));
        reports.on_out_of_order(StreamOffset(100));
        reports.on_duplicate(StreamOffset::range(120..130));
        assert_eq!(
            ranges(&reports.take(&ahead, SeqNum(0), 3)),
            [(120, 130), (100, 200)]
        );
        assert_eq!(ranges(&reports.take(&ahead, SeqNum(0), 3)), [(100, 200)]);
        reports.on_duplicate(StreamOffset::range(5..9));
        assert_eq!(
            ranges(&reports.take(&RangeSet::new(), SeqNum(0), 3)),
            [(5, 9)]
        );
    }
}
