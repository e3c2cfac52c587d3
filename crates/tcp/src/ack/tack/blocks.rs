//! Which of the blocks above a hole a report lists.
//!
//! The highest are enough where holes are few. With thousands of them, repairs merge blocks far
//! below the highest: a sender that never gets those reported keeps them in flight, and may wait
//! for a window that cannot open until its timer expires.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use tack_base::StreamOffset;
use tack_base::range_set::RangeSet;

/// Blocks that a report lists at most.
pub(super) const MAX_BLOCKS: usize = 64;

/// The choice of blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// First positions of the runs of data that came last above a hole, the oldest first,
    /// [`MAX_BLOCKS`] at most.
    recent: VecDeque<StreamOffset>,
    /// Where the last of them ends.
    end: StreamOffset,
    /// Kept so that reporting allocates nothing.
    chosen: Vec<Range<StreamOffset>>,
    highest: Vec<Range<StreamOffset>>,
}

impl Blocks {
    /// Data came above a hole. What follows the data that came before it belongs to the same run.
    #[inline]
    pub(super) fn on_data(&mut self, data: Range<StreamOffset>) {
        if data.start != self.end || self.recent.is_empty() {
            if self.recent.len() == MAX_BLOCKS {
                self.recent.pop_front();
            }
            self.recent.push_back(data.start);
        }
        self.end = data.end;
    }

    /// At most `most` blocks of `ahead`, the highest first: those that changed last, then the
    /// highest. A single one is always the highest.
    pub(super) fn choose(
        &mut self,
        ahead: &RangeSet<StreamOffset>,
        most: usize,
    ) -> &[Range<StreamOffset>] {
        self.chosen.clear();
        self.highest.clear();
        self.highest.extend(ahead.iter().rev().take(most));
        if ahead.len() > most && most > 1 {
            let lowest = self
                .highest
                .last()
                .map_or(StreamOffset::SYN, |block| block.start);
            for &position in self.recent.iter().rev() {
                // What changed lately is among the highest, unless it is a repair.
                let block = if position < lowest {
                    ahead.range_at(position)
                } else {
                    let index = self.highest.partition_point(|block| block.start > position);
                    self.highest.get(index).cloned()
                };
                // What the cumulative acknowledgement covers by now is in no block any more.
                self.chosen
                    .extend(block.filter(|block| block.contains(&position)));
            }
            self.sort();
            self.chosen.truncate(most);
        }
        let changed = self.chosen.len();
        for block in self.highest.drain(..) {
            if self.chosen.len() == most {
                break;
            }
            // Those that changed are in order, the highest first.
            let known = self.chosen[..changed]
                .binary_search_by_key(&Reverse(block.start), |known| Reverse(known.start));
            if known.is_err() {
                self.chosen.push(block);
            }
        }
        self.sort();
        &self.chosen
    }

    fn sort(&mut self) {
        self.chosen
            .sort_unstable_by_key(|block| Reverse(block.start));
        self.chosen.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of ten in every twenty.
    fn holes(count: u64) -> RangeSet<StreamOffset> {
        let mut ahead = RangeSet::new();
        for number in 0..count {
            ahead.insert(StreamOffset::range(20 * number..20 * number + 10));
        }
        ahead
    }

    #[test]
    fn a_repair_far_below_the_highest_blocks_is_told() {
        let (mut blocks, mut ahead) = (Blocks::default(), RangeSet::new());
        for number in 0..1_000 {
            blocks.on_data(StreamOffset::range(20 * number..20 * number + 10));
            ahead.insert(StreamOffset::range(20 * number..20 * number + 10));
        }
        let first = blocks.choose(&ahead, MAX_BLOCKS).to_vec();
        let highest: Vec<_> = ahead.iter().rev().take(MAX_BLOCKS).collect();
        assert_eq!(first, highest, "the newest are the highest so far");
        for start in [4_010, 110, 8_010] {
            blocks.on_data(StreamOffset::range(start..start + 10));
            ahead.insert(StreamOffset::range(start..start + 10));
        }
        let told = blocks.choose(&ahead, MAX_BLOCKS);
        assert_eq!(told.len(), MAX_BLOCKS);
        for repaired in [8_000..8_030, 4_000..4_030, 100..130].map(StreamOffset::range) {
            assert!(told.contains(&repaired), "{repaired:?}");
        }
        assert!(told.is_sorted_by(|above, below| above.start > below.end));
        assert_eq!(told[0], highest[0]);
    }

    #[test]
    fn few_blocks_are_all_told_and_a_single_one_is_the_highest() {
        let (mut blocks, ahead) = (Blocks::default(), holes(5));
        blocks.on_data(StreamOffset::range(20..30));
        let all: Vec<_> = ahead.iter().rev().collect();
        assert_eq!(blocks.choose(&ahead, MAX_BLOCKS), all);
        assert_eq!(blocks.choose(&ahead, 1), &all[..1]);
        // What came by runs of many segments counts once.
        let ahead = holes(100);
        for number in 0..100 {
            blocks.on_data(StreamOffset::range(500 + number..501 + number));
        }
        assert_eq!(blocks.recent.len(), 2);
        assert!(
            blocks
                .choose(&ahead, 2)
                .contains(&StreamOffset::range(20..30))
        );
    }
}
