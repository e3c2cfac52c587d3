//! Positions in a stream of bytes.

use core::fmt;
use core::ops::{Add, AddAssign, Range, Sub};

/// A position in the stream that one side of a connection sends, 64 bits: the SYN is 0, the first
/// byte 1, and the FIN follows the last byte.
///
/// It is neither a count of bytes nor a packet number nor a sequence number (32 bits on the wire):
/// two positions differ by a count, and a count moves a position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StreamOffset(pub u64);

impl StreamOffset {
    /// That of the SYN.
    pub const SYN: Self = Self(0);
    /// That of the first byte.
    pub const FIRST_BYTE: Self = Self(1);
    /// Beyond every other.
    pub const MAX: Self = Self(u64::MAX);

    /// A range of positions, from their numbers.
    #[inline]
    pub const fn range(numbers: Range<u64>) -> Range<Self> {
        Self(numbers.start)..Self(numbers.end)
    }

    /// Positions from `earlier` to this one; zero if `earlier` comes after it.
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The position `count` after this one, or the last of all.
    #[inline]
    pub const fn saturating_add(self, count: u64) -> Self {
        Self(self.0.saturating_add(count))
    }

    /// The position `count` before this one; that of the SYN if there are fewer.
    #[inline]
    pub const fn saturating_sub(self, count: u64) -> Self {
        Self(self.0.saturating_sub(count))
    }
}

impl Add<u64> for StreamOffset {
    type Output = Self;
    #[inline]
    fn add(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

impl AddAssign<u64> for StreamOffset {
    #[inline]
    fn add_assign(&mut self, count: u64) {
        self.0 += count;
    }
}

impl Sub<u64> for StreamOffset {
    type Output = Self;
    #[inline]
    fn sub(self, count: u64) -> Self {
        Self(self.0 - count)
    }
}

impl Sub for StreamOffset {
    type Output = u64;
    #[inline]
    fn sub(self, earlier: Self) -> u64 {
        self.0 - earlier.0
    }
}

impl fmt::Debug for StreamOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_counts_do_not_mix() {
        let first = StreamOffset::FIRST_BYTE;
        assert_eq!(first + 1000 - first, 1000_u64);
        assert_eq!(first + 1000 - 1000, first);
        assert_eq!(first.saturating_since(first + 1), 0);
        assert_eq!(first.saturating_sub(2), StreamOffset::SYN);
    }
}
