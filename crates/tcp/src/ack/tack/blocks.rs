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
    positions: Vec<StreamOffset>,
    changed: Vec<Range<StreamOffset>>,
    chosen: Vec<Range<StreamOffset>>,
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
        self.changed.clear();
        if ahead.len() > most && most > 1 {
            self.find_changed(ahead, most);
        }
        self.chosen.clear();
        let mut room = most - self.changed.len();
        let mut changed = self.changed.iter().peekable();
        for block in ahead.iter().rev() {
            if room == 0 {
                break;
            }
            if changed.next_if_eq(&&block).is_none() {
                room -= 1;
            }
            self.chosen.push(block);
        }
        self.chosen.extend(changed.cloned());
        &self.chosen
    }

    /// At most `most` of the blocks that changed last, the highest first.
    fn find_changed(&mut self, ahead: &RangeSet<StreamOffset>, most: usize) {
        self.positions.clear();
        let recent = self.recent.iter().rev();
        self.positions.extend(recent.take(most));
        self.positions
            .sort_unstable_by_key(|&position| Reverse(position));
        let mut blocks = ahead.descending();
        for &position in &self.positions {
            // What the cumulative acknowledgement covers by now is in no block any more.
            if let Some(block) = blocks.range_at(position)
                && self.changed.last() != Some(&block)
            {
                self.changed.push(block);
                if self.changed.len() == most {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use tack_base::random::RandomStream;

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

    /// What a report should list, without any short cut: the blocks that hold what came last, then
    /// the highest.
    fn plainly(
        recent: &VecDeque<StreamOffset>,
        ahead: &RangeSet<StreamOffset>,
        most: usize,
    ) -> Vec<Range<StreamOffset>> {
        let highest: Vec<_> = ahead
            .iter()
            .rev()
            .map(|block| (block.start, block.end))
            .collect();
        let mut chosen: BTreeSet<_> = recent
            .iter()
            .rev()
            .take(most)
            .filter(|_| ahead.len() > most && most > 1)
            .filter_map(|position| ahead.range_at(*position))
            .map(|block| (block.start, block.end))
            .collect();
        for block in highest {
            if chosen.len() < most {
                chosen.insert(block);
            }
        }
        chosen
            .iter()
            .rev()
            .map(|&(start, end)| start..end)
            .collect()
    }

    #[test]
    fn the_choice_is_that_of_the_plain_rule_on_random_arrivals() {
        for seed in 0..50 {
            let mut random = RandomStream::new(seed, "blocks", 0);
            let (mut blocks, mut ahead) = (Blocks::default(), RangeSet::new());
            let (mut next, mut below) = (0, 0);
            for _ in 0..600 {
                // New data beyond holes, repairs anywhere, and what is acknowledged by now.
                let start = if random.chance(0.6) {
                    next += 10 * (1 + random.below(3));
                    next
                } else {
                    (below + random.below(next - below + 1)) / 10 * 10
                };
                let data = StreamOffset::range(start..start + 10);
                blocks.on_data(data.clone());
                ahead.insert(data);
                if random.chance(0.02) {
                    below += random.below(next - below + 1) / 4;
                    ahead.remove_below(StreamOffset::range(below..below).start);
                }
                let most = [1, 2, 8, MAX_BLOCKS][random.below(4) as usize];
                let expected = plainly(&blocks.recent, &ahead, most);
                assert_eq!(blocks.choose(&ahead, most), expected, "seed {seed}, {most}");
            }
        }
    }
}
