//! Packet numbers: one for each transmission, retransmissions included (PKT.SEQ of TACK §4.1).

use core::ops::Range;

/// Number of a transmission: zero for the first one. Not a stream position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub(crate) struct PacketNumber(pub(crate) u64);

impl PacketNumber {
    /// The number of the next transmission.
    #[inline]
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// So many numbers before; `None` before the first transmission.
    pub(crate) fn back(self, distance: u64) -> Option<Self> {
        self.0.checked_sub(distance).map(Self)
    }

    /// This number and those after it, `count` in all.
    pub(crate) const fn run(self, count: u64) -> Range<Self> {
        self..Self(self.0 + count)
    }

    /// What travels in the option: the lower half (modulo 2^32).
    #[inline]
    pub(crate) const fn low(self) -> u32 {
        self.0 as u32
    }
}
