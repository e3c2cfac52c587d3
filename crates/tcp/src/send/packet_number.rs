//! Packet numbers: one for each transmission, retransmissions included (PKT.SEQ of TACK §4.1).

use core::ops::{Add, Range, Sub};

/// Number of a transmission: zero for the first one. Not a stream position. The sender counts its
/// own, the receiver those of its peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct PacketNumber(pub u64);

impl PacketNumber {
    /// The number of the next transmission.
    #[inline]
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The number nearest to this one whose lower half is `low`; `None` before the first
    /// transmission.
    #[inline]
    pub(crate) fn nearest(self, low: u32) -> Option<Self> {
        let distance = i64::from(low.wrapping_sub(self.low()) as i32);
        self.0.checked_add_signed(distance).map(Self)
    }

    /// So many numbers before; `None` before the first transmission.
    #[inline]
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

impl Add<u64> for PacketNumber {
    type Output = Self;
    #[inline]
    fn add(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

impl Sub for PacketNumber {
    type Output = u64;
    #[inline]
    fn sub(self, earlier: Self) -> u64 {
        self.0 - earlier.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_half_means_the_nearest_number() {
        let near = PacketNumber(1 << 32);
        assert_eq!(near.nearest(3), Some(near + 3));
        assert_eq!(near.nearest(u32::MAX), near.back(1));
        assert_eq!(PacketNumber(5).nearest(u32::MAX), None);
    }
}
