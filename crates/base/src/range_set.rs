//! A set of disjoint, non-adjacent half-open ranges of positions.
//!
//! Few ranges live at a time (holes of a window), but a peer may make as many as its window holds,
//! and touch any of them: a tree keeps each step logarithmic, whichever range it is about. The
//! number of positions is a counter.

use alloc::collections::{BTreeMap, btree_map};
use core::ops::{Bound, Range, Sub};

/// Disjoint, non-adjacent half-open ranges in ascending order, of positions whose difference is a
/// number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet<P> {
    /// Where each range ends, by where it starts.
    ranges: BTreeMap<P, P>,
    /// Positions in all of them.
    positions: u64,
}

impl<P: Copy + Ord + Sub<Output = u64>> RangeSet<P> {
    /// The empty set.
    pub const fn new() -> Self {
        Self {
            ranges: BTreeMap::new(),
            positions: 0,
        }
    }

    /// True when nothing is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of ranges (not of positions).
    #[inline]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Number of positions in all ranges.
    #[inline]
    pub fn positions(&self) -> u64 {
        self.positions
    }

    /// The ranges, lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range<P>> + ExactSizeIterator + '_ {
        self.ranges.iter().map(|(start, end)| *start..*end)
    }

    /// The lowest range.
    pub fn first(&self) -> Option<Range<P>> {
        self.ranges
            .first_key_value()
            .map(|(start, end)| *start..*end)
    }

    /// The highest range.
    pub fn last(&self) -> Option<Range<P>> {
        self.ranges
            .last_key_value()
            .map(|(start, end)| *start..*end)
    }

    /// The highest range that starts at or below `position`.
    #[inline]
    fn starting_by(&self, position: P) -> Option<Range<P>> {
        // Most questions are about the highest range, which is found sooner.
        let (start, end) = match self.ranges.last_key_value()? {
            (start, end) if *start <= position => (start, end),
            _ => self.ranges.range(..=position).next_back()?,
        };
        Some(*start..*end)
    }

    /// The range that holds `position`.
    pub fn range_at(&self, position: P) -> Option<Range<P>> {
        self.starting_by(position)
            .filter(|range| range.end > position)
    }

    /// Answers about positions that come highest first and lie near each other.
    pub fn descending(&self) -> Descending<'_, P> {
        Descending {
            set: self,
            asked: None,
            found: None,
            below: self.ranges.range(..),
        }
    }

    /// The first piece of `range` that is in the set. For ranges that are not empty.
    pub fn first_common(&self, range: &Range<P>) -> Option<Range<P>> {
        let known = self.range_at(range.start).or_else(|| {
            let mut behind = self.ranges.range(range.start..range.end);
            behind.next().map(|(start, end)| *start..*end)
        })?;
        Some(known.start.max(range.start)..known.end.min(range.end))
    }

    /// True when all of `range` is in the set (true for an empty range).
    pub fn contains(&self, range: &Range<P>) -> bool {
        range.is_empty()
            || self
                .range_at(range.start)
                .is_some_and(|r| r.end >= range.end)
    }

    /// True when some range overlaps `range` or adjoins it: to add it makes no range more. For
    /// ranges that are not empty.
    pub fn touches(&self, range: &Range<P>) -> bool {
        self.starting_by(range.end)
            .is_some_and(|known| known.end >= range.start)
    }

    /// Adds `range`; calls `added` with each part that was not in the set, lowest first.
    ///
    /// The work grows with the ranges that become one, each of which had to be added before.
    pub fn insert_with(&mut self, range: Range<P>, mut added: impl FnMut(Range<P>)) {
        if range.is_empty() {
            return;
        }
        let Range { start, end } = range;
        let mut new = 0;
        let mut added = |part: Range<P>| {
            new += part.end - part.start;
            added(part);
        };
        match self.ranges.range_mut(..=end).next_back() {
            Some((&known, known_end)) if *known_end >= start && known <= start => {
                // No other range overlaps or touches the new one.
                if *known_end < end {
                    added(*known_end..end);
                    *known_end = end;
                }
            }
            Some((_, known_end)) if *known_end >= start => self.merge(start..end, &mut added),
            _ => {
                self.ranges.insert(start, end);
                added(start..end);
            }
        }
        self.positions += new;
    }

    /// Makes one range of `range` and of those that overlap or touch it.
    fn merge(&mut self, range: Range<P>, added: &mut impl FnMut(Range<P>)) {
        let Range { start, end } = range;
        let below = self.starting_by(start).filter(|below| below.end >= start);
        let (merged_start, mut uncovered) =
            below.map_or((start, start), |below| (below.start, below.end));
        let above = (Bound::Excluded(start), Bound::Included(end));
        while let Some((&known, &known_end)) = self.ranges.range(above).next() {
            if uncovered < known {
                added(uncovered..known);
            }
            uncovered = known_end;
            self.ranges.remove(&known);
        }
        if uncovered < end {
            added(uncovered..end);
        }
        self.ranges.insert(merged_start, uncovered.max(end));
    }

    /// Adds `range`; returns how many of its positions were new.
    pub fn insert(&mut self, range: Range<P>) -> u64 {
        let before = self.positions;
        self.insert_with(range, |_| {});
        self.positions - before
    }

    /// Removes every position in `range`.
    pub fn remove(&mut self, range: Range<P>) {
        if range.is_empty() {
            return;
        }
        while let Some((&start, end)) = self.ranges.range_mut(..range.end).next_back() {
            let known = start..*end;
            if known.end <= range.start {
                break;
            }
            if known.start < range.start {
                *end = range.start;
            } else {
                self.ranges.remove(&known.start);
            }
            self.positions -= known.end.min(range.end) - known.start.max(range.start);
            if known.end > range.end {
                self.ranges.insert(range.end, known.end);
            }
            if known.start <= range.start {
                break;
            }
        }
    }

    /// Removes every position below `bound`.
    #[inline]
    pub fn remove_below(&mut self, bound: P) {
        while let Some(first) = self.ranges.first_entry()
            && *first.key() < bound
        {
            let (start, end) = first.remove_entry();
            self.positions -= end.min(bound) - start;
            if end > bound {
                self.ranges.insert(bound, end);
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.positions = 0;
    }
}

/// Ranges that [`Descending`] steps over before it looks a position up anew, which costs about as
/// much.
const STEPS: usize = 8;

/// Finds the ranges that hold positions; see [`RangeSet::descending`]. Any order gives the right
/// answers.
#[derive(Debug)]
pub struct Descending<'a, P> {
    set: &'a RangeSet<P>,
    asked: Option<P>,
    /// The highest range that starts at or below the position asked about last.
    found: Option<Range<P>>,
    /// The ranges below that one.
    below: btree_map::Range<'a, P, P>,
}

impl<P: Copy + Ord + Sub<Output = u64>> Descending<'_, P> {
    /// The range that holds `position`.
    pub fn range_at(&mut self, position: P) -> Option<Range<P>> {
        if self.asked.is_some_and(|asked| position <= asked) {
            self.step_down(position);
        } else {
            self.look_up(position);
        }
        self.asked = Some(position);
        self.found.clone().filter(|found| found.end > position)
    }

    /// True when all of `range` is in the set (true for an empty range).
    pub fn contains(&mut self, range: &Range<P>) -> bool {
        range.is_empty()
            || self
                .range_at(range.start)
                .is_some_and(|found| found.end >= range.end)
    }

    fn step_down(&mut self, position: P) {
        for _ in 0..STEPS {
            if !self.is_above(position) {
                return;
            }
            self.take_next();
        }
        if self.is_above(position) {
            self.look_up(position);
        }
    }

    /// The range found starts above `position`.
    fn is_above(&self, position: P) -> bool {
        self.found
            .as_ref()
            .is_some_and(|found| found.start > position)
    }

    fn look_up(&mut self, position: P) {
        self.below = self.set.ranges.range(..=position);
        self.take_next();
    }

    fn take_next(&mut self) {
        self.found = self.below.next_back().map(|(start, end)| *start..*end);
    }
}

#[cfg(test)]
mod tests;
