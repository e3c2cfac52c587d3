//! Sequence numbers: 32-bit serial-number arithmetic (RFC 9293 §3.4, RFC 1982).

use core::fmt;
use core::ops::{Add, Sub};

use tack_base::StreamOffset;

/// A TCP sequence number. There is no total order: compare through the methods.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SeqNum(pub u32);

impl SeqNum {
    /// Signed distance from `earlier` to `self`, modulo 2^32.
    #[inline]
    pub const fn distance(self, earlier: Self) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }

    /// True when `self` comes before `other`.
    #[inline]
    pub const fn before(self, other: Self) -> bool {
        self.distance(other) < 0
    }

    /// True when `self` comes after `other`.
    #[inline]
    pub const fn after(self, other: Self) -> bool {
        self.distance(other) > 0
    }

    /// The 64-bit stream position that this number names, taken as the one nearest to `near`.
    ///
    /// `origin` is the number of position zero (an ISN). `None` when the nearest one would be
    /// negative.
    #[inline]
    pub fn position(self, origin: Self, near: StreamOffset) -> Option<StreamOffset> {
        let low = self.0.wrapping_sub(origin.0);
        let delta = low.wrapping_sub(near.0 as u32) as i32;
        near.0
            .checked_add_signed(i64::from(delta))
            .map(StreamOffset)
    }

    /// The number of stream position `position` when `origin` is the number of position zero.
    #[inline]
    pub const fn at(origin: Self, position: StreamOffset) -> Self {
        Self(origin.0.wrapping_add(position.0 as u32))
    }
}

impl Add<u32> for SeqNum {
    type Output = Self;
    #[inline]
    fn add(self, rhs: u32) -> Self {
        Self(self.0.wrapping_add(rhs))
    }
}

impl Sub<u32> for SeqNum {
    type Output = Self;
    #[inline]
    fn sub(self, rhs: u32) -> Self {
        Self(self.0.wrapping_sub(rhs))
    }
}

impl fmt::Debug for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let high = SeqNum(u32::MAX - 5);
        let low = high + 10;
        assert!(high.before(low) && low.after(high));
        assert_eq!(low.distance(high), 10);
    }

    #[test]
    fn positions_unwrap_near_a_reference() {
        let origin = SeqNum(u32::MAX - 100);
        for position in [0_u64, 101, 5_000_000_000, 0x1_0000_0000].map(StreamOffset) {
            let seq = SeqNum::at(origin, position);
            for near in [
                position.saturating_sub(1_000_000),
                position,
                position + 1_000_000,
            ] {
                assert_eq!(seq.position(origin, near), Some(position));
            }
        }
        assert_eq!((origin - 1).position(origin, StreamOffset::SYN), None);
    }
}
