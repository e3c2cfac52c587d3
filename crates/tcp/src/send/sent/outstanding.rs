//! Which transmissions are outstanding: one bit each, so that to find the next one among tens of
//! thousands that are settled takes a few steps. A receiver names gaps of any length, and names
//! them again and again.

use alloc::collections::VecDeque;
use core::ops::Range;

use crate::send::packet_number::PacketNumber;

/// Bits of a word.
const BITS: u64 = u64::BITS as u64;

/// Numbers of outstanding transmissions.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// The first word holds numbers from `BITS * first` on.
    words: VecDeque<u64>,
    first: u64,
    /// Words looked at by searches, for tests of what they cost.
    #[cfg(test)]
    pub(super) looked_at: core::cell::Cell<u64>,
}

impl Outstanding {
    #[inline]
    fn index(&self, number: u64) -> Option<usize> {
        Some((number / BITS).checked_sub(self.first)? as usize)
    }

    /// `number` is outstanding; it is not below what was dropped.
    #[inline]
    pub(super) fn insert(&mut self, number: PacketNumber) {
        let number = number.0;
        let word = number / BITS;
        if self.words.is_empty() {
            self.first = word;
        }
        while word < self.first {
            self.words.push_front(0);
            self.first -= 1;
        }
        let index = (word - self.first) as usize;
        if index >= self.words.len() {
            self.words.resize(index + 1, 0);
        }
        self.words[index] |= 1 << (number % BITS);
    }

    /// `number` is settled. Returns whether it was outstanding.
    #[inline]
    pub(super) fn remove(&mut self, number: PacketNumber) -> bool {
        let number = number.0;
        let word = self
            .index(number)
            .and_then(|index| self.words.get_mut(index));
        let bit = 1 << (number % BITS);
        word.is_some_and(|word| {
            let was = *word & bit != 0;
            *word &= !bit;
            was
        })
    }

    /// The lowest outstanding number in `numbers`.
    #[inline]
    pub(super) fn first_in(&self, numbers: Range<PacketNumber>) -> Option<PacketNumber> {
        let numbers = numbers.start.0..numbers.end.0;
        let from = numbers.start.max(self.first * BITS);
        let mut word = from / BITS;
        let mut mask = u64::MAX << (from % BITS);
        // Looks no further than asked: a report may name hundreds of gaps.
        while word * BITS < numbers.end {
            let found = *self.words.get((word - self.first) as usize)? & mask;
            #[cfg(test)]
            self.looked_at.set(self.looked_at.get() + 1);
            if found != 0 {
                let number = word * BITS + u64::from(found.trailing_zeros());
                return Some(number)
                    .filter(|number| *number < numbers.end)
                    .map(PacketNumber);
            }
            mask = u64::MAX;
            word += 1;
        }
        None
    }

    /// Nothing below `number` is asked for any more.
    #[inline]
    pub(super) fn drop_below(&mut self, number: PacketNumber) {
        let number = number.0;
        while self.first < number / BITS && self.words.pop_front().is_some() {
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_set(
            first in 0_u64..1000,
            steps in proptest::collection::vec((0_u8..8, 0_u64..400), 1..300),
        ) {
            let mut outstanding = Outstanding::default();
            let mut model = BTreeSet::new();
            let (mut next, mut lowest) = (first, first);
            for (act, back) in steps {
                let number = next.saturating_sub(back).max(lowest);
                match act {
                    0..4 => {
                        outstanding.insert(PacketNumber(next));
                        model.insert(next);
                        next += 1;
                    }
                    4 if number < next => {
                        outstanding.insert(PacketNumber(number));
                        model.insert(number);
                    }
                    5 | 6 => prop_assert_eq!(outstanding.remove(PacketNumber(number)), model.remove(&number)),
                    _ => {
                        lowest = number;
                        outstanding.drop_below(PacketNumber(number));
                        model = model.split_off(&number);
                    }
                }
                let numbers = number..number + back / 2;
                let expected = model.range(numbers.clone()).next().copied();
                prop_assert_eq!(outstanding.first_in(PacketNumber(numbers.start)..PacketNumber(numbers.end)).map(|found| found.0), expected);
                prop_assert!(outstanding.words.len() as u64 <= (next - lowest) / BITS + 2);
            }
        }
    }
}
