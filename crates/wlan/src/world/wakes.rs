//! When each radio wants to be woken, and which is first.
//!
//! The radios are taken in blocks of consecutive numbers, each with its earliest wake. A block in
//! which a wake has been set is looked through again when the first wake is asked for. Asking thus
//! costs about the square root of the number of radios, and setting a wake next to nothing.

use alloc::vec::Vec;

use tack_base::Instant;

/// Blocks are as many as a word has bits, at most.
const BLOCKS: usize = 64;

/// Radios in a block, in networks of up to a thousand radios.
const BLOCK: usize = 16;

/// Wakes of radios, by number.
#[derive(Clone, Debug)]
pub(super) struct Wakes {
    wakes: Vec<Instant>,
    /// Radios in a block.
    block: usize,
    /// The earliest wake of each block that is not in `changed`.
    first: Vec<Instant>,
    /// Blocks with a wake that has been set since their first was worked out, one bit each.
    changed: u64,
}

impl Wakes {
    /// None of `radios` wants to be woken.
    pub(super) fn new(radios: usize) -> Self {
        let block = radios.div_ceil(BLOCKS).max(BLOCK);
        Self {
            wakes: alloc::vec![Instant::FAR_FUTURE; radios],
            block,
            first: alloc::vec![Instant::FAR_FUTURE; radios.div_ceil(block)],
            changed: 0,
        }
    }

    /// When radio `index` wants to be woken.
    #[inline]
    pub(super) fn of(&self, index: usize) -> Instant {
        self.wakes[index]
    }

    /// Radio `index` wants to be woken at `wake`.
    #[inline]
    pub(super) fn set(&mut self, index: usize, wake: Instant) {
        self.wakes[index] = wake;
        self.changed |= 1 << (index / self.block);
    }

    /// The earliest wake of all radios.
    pub(super) fn first(&mut self) -> Instant {
        self.work_out();
        let first = self.first.iter();
        first.fold(Instant::FAR_FUTURE, |first, wake| first.min(*wake))
    }

    /// The first radio from number `from` on that wants to be woken by `at`.
    pub(super) fn due(&mut self, from: usize, at: Instant) -> Option<usize> {
        self.work_out();
        let blocks = self.first.iter().enumerate().skip(from / self.block);
        let mut due = blocks.filter(|(_, first)| **first <= at);
        due.find_map(|(block, _)| {
            let begins = (block * self.block).max(from);
            let ends = ((block + 1) * self.block).min(self.wakes.len());
            (begins..ends).find(|index| self.wakes[*index] <= at)
        })
    }

    fn work_out(&mut self) {
        while self.changed != 0 {
            let block = self.changed.trailing_zeros() as usize;
            self.changed &= self.changed - 1;
            let begins = block * self.block;
            let ends = (begins + self.block).min(self.wakes.len());
            let wakes = self.wakes[begins..ends].iter();
            self.first[block] = wakes.fold(Instant::FAR_FUTURE, |first, wake| first.min(*wake));
        }
    }
}

#[cfg(test)]
mod tests;
