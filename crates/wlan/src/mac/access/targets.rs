//! Radios by the count at which their backoff ends: a ring of lists, one for each count within the
//! largest contention window.
//!
//! Putting a radio in and taking it out costs the same however many there are.

use alloc::vec::Vec;

/// No radio.
const NONE: u16 = u16::MAX;

/// Neighbours in a list.
#[derive(Clone, Copy, Debug)]
struct Links {
    before: u16,
    after: u16,
}

/// Radios, each at a count. No two counts are farther apart than the ring is long.
#[derive(Clone, Debug)]
pub(super) struct Targets {
    /// The first radio of each list, by the remainder of its count.
    heads: Vec<u16>,
    /// Which lists are not empty, a bit each.
    occupied: Vec<u64>,
    /// By radio.
    links: Vec<Links>,
    /// The smallest count of all; the largest number there is, when nobody is in.
    first: u64,
    len: usize,
}

impl Targets {
    /// Nobody, of `radios` that may come in; counts are at most `span` apart.
    pub(super) fn new(radios: usize, span: u32) -> Self {
        let lists = (span as usize + 1).next_power_of_two();
        let alone = Links {
            before: NONE,
            after: NONE,
        };
        Self {
            heads: alloc::vec![NONE; lists],
            occupied: alloc::vec![0; lists.div_ceil(64)],
            links: alloc::vec![alone; radios],
            first: u64::MAX,
            len: 0,
        }
    }

    #[inline]
    fn list(&self, count: u64) -> usize {
        count as usize & (self.heads.len() - 1)
    }

    /// Puts radio `who`, which is not in, at `count`.
    #[inline]
    pub(super) fn insert(&mut self, count: u64, who: u16) {
        let list = self.list(count);
        let after = core::mem::replace(&mut self.heads[list], who);
        self.links[usize::from(who)] = Links {
            before: NONE,
            after,
        };
        if after == NONE {
            self.occupied[list / 64] |= 1 << (list % 64);
        } else {
            self.links[usize::from(after)].before = who;
        }
        self.first = self.first.min(count);
        self.len += 1;
    }

    /// Takes out radio `who`, which is at `count`.
    #[inline]
    pub(super) fn remove(&mut self, count: u64, who: u16) {
        let list = self.list(count);
        let Links { before, after } = self.links[usize::from(who)];
        if after != NONE {
            self.links[usize::from(after)].before = before;
        }
        if before != NONE {
            self.links[usize::from(before)].after = after;
        } else {
            debug_assert_eq!(self.heads[list], who, "it is where it was put");
            self.heads[list] = after;
        }
        self.len -= 1;
        if self.heads[list] == NONE {
            self.occupied[list / 64] &= !(1 << (list % 64));
            if self.len == 0 {
                self.first = u64::MAX;
            } else if count == self.first {
                self.first = self.next(count);
            }
        }
    }

    /// The smallest count of those that are in, all of which are at `count` or later.
    fn next(&self, count: u64) -> u64 {
        let begin = self.list(count);
        let lists = self.heads.len();
        let (mut word, mut bits) = (begin / 64, self.occupied[begin / 64]);
        bits &= u64::MAX << (begin % 64);
        while bits == 0 {
            word = (word + 1) % self.occupied.len();
            bits = self.occupied[word];
        }
        let list = 64 * word + bits.trailing_zeros() as usize;
        // From the beginning to there, around the ring if need be.
        count + (list.wrapping_sub(begin) & (lists - 1)) as u64
    }

    /// The smallest count, and a radio that is there.
    #[inline]
    pub(super) fn first(&self) -> Option<(u64, u16)> {
        (self.len > 0).then(|| (self.first, self.heads[self.list(self.first)]))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// As a sorted set does it.
        #[test]
        fn the_smallest_count_comes_first(
            span in prop_oneof![Just(0_u32), Just(7), Just(63), Just(200), Just(1_023)],
            steps in prop::collection::vec((0..12_u16, any::<prop::sample::Index>(), any::<bool>()), 1..200),
        ) {
            let mut targets = Targets::new(12, span);
            let mut model = BTreeSet::new();
            let mut counts = [None; 12];
            let mut counted = 3_u64;
            for (who, slots, advances) in steps {
                let at = &mut counts[usize::from(who)];
                if let Some(count) = at.take() {
                    targets.remove(count, who);
                    model.remove(&(count, who));
                } else {
                    let count = counted + slots.index(span as usize + 1) as u64;
                    *at = Some(count);
                    targets.insert(count, who);
                    model.insert((count, who));
                }
                let first = targets.first();
                prop_assert_eq!(
                    first.map(|(count, _)| count),
                    model.first().map(|(count, _)| *count)
                );
                prop_assert!(first.is_none_or(|first| model.contains(&first)));
                if advances {
                    // Time goes on to the next radio, or by as much as there is room for when
                    // nobody is in.
                    counted = first.map_or(counted + u64::from(span), |(count, _)| count);
                }
            }
        }
    }
}
