//! A set of disjoint, non-adjacent half-open ranges of stream positions.
//!
//! Few ranges live at a time (holes of a window), most insertions touch the right edge: a sorted
//! ring with binary search beats a tree here, and gives "the n newest" for free.

use alloc::collections::VecDeque;
use core::ops::Range;

/// Disjoint, non-adjacent half-open ranges in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: VecDeque<Range<u64>>,
}

impl RangeSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self {
            ranges: VecDeque::new(),
        }
    }

    /// True when nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of ranges (not of positions).
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Number of positions in all ranges.
    pub fn positions(&self) -> u64 {
        self.ranges.iter().map(|r| r.end - r.start).sum()
    }

    /// The ranges, lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + '_ {
        self.ranges.iter().cloned()
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.front().cloned()
    }

    /// The highest range.
    pub fn last(&self) -> Option<Range<u64>> {
        self.ranges.back().cloned()
    }

    /// The range that holds `position`.
    pub fn range_at(&self, position: u64) -> Option<Range<u64>> {
        let index = self.ranges.partition_point(|r| r.end <= position);
        self.ranges
            .get(index)
            .filter(|r| r.start <= position)
            .cloned()
    }

    /// True when all of `range` is in the set (true for an empty range).
    pub fn contains(&self, range: &Range<u64>) -> bool {
        range.is_empty()
            || self
                .range_at(range.start)
                .is_some_and(|r| r.end >= range.end)
    }

    /// Adds `range`; calls `added` with each part that was not in the set, lowest first.
    pub fn insert_with(&mut self, range: Range<u64>, mut added: impl FnMut(Range<u64>)) {
        if range.is_empty() {
            return;
        }
        // Ranges that overlap or touch the new one: indices first..past.
        let first = self.ranges.partition_point(|r| r.end < range.start);
        let mut past = first;
        let mut merged = range.clone();
        let mut uncovered = range.start;
        while let Some(existing) = self.ranges.get(past) {
            if existing.start > range.end {
                break;
            }
            if uncovered < existing.start {
                added(uncovered..existing.start.min(range.end));
            }
            uncovered = uncovered.max(existing.end);
            merged.start = merged.start.min(existing.start);
            merged.end = merged.end.max(existing.end);
            past += 1;
        }
        if uncovered < range.end {
            added(uncovered..range.end);
        }
        if past == first {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..past);
        }
    }

    /// Adds `range`; returns how many of its positions were new.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        let mut new = 0;
        self.insert_with(range, |part| new += part.end - part.start);
        new
    }

    /// Removes every position in `range`.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let mut index = self.ranges.partition_point(|r| r.end <= range.start);
        while let Some(existing) = self.ranges.get(index).cloned() {
            if existing.start >= range.end {
                break;
            }
            match (existing.start < range.start, existing.end > range.end) {
                (true, true) => {
                    self.ranges[index].end = range.start;
                    self.ranges.insert(index + 1, range.end..existing.end);
                    return;
                }
                (true, false) => {
                    self.ranges[index].end = range.start;
                    index += 1;
                }
                (false, true) => {
                    self.ranges[index].start = range.end;
                    return;
                }
                (false, false) => {
                    self.ranges.remove(index);
                }
            }
        }
    }

    /// Removes every position below `bound`.
    pub fn remove_below(&mut self, bound: u64) {
        while let Some(front) = self.ranges.front_mut() {
            if front.end <= bound {
                self.ranges.pop_front();
            } else {
                front.start = front.start.max(bound);
                break;
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests;
