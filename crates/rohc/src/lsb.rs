//! Window-based least significant bits (RFC 4997 §4.11.5).
//!
//! `k` bits of a value name one value of the interval `[reference - p, reference - p + 2^k)`,
//! modulo the field's width. A compressor that does not know which reference the decompressor has
//! may use `k` bits only if the value lies in the interval of every reference that is possible.

/// The number of bits sent, and the position of the interval around the reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lsb {
    /// Bits that travel, 1 to 31.
    pub(crate) bits: u8,
    /// How far the interval reaches below the reference.
    pub(crate) p: i32,
    /// Bits of the whole field: 8, 16 or 32.
    pub(crate) width: u8,
}

impl Lsb {
    /// Of a field of 32 bits.
    pub(crate) const fn of_32(bits: u8, p: i32) -> Self {
        Self { bits, p, width: 32 }
    }

    /// Of a field of 16 bits.
    pub(crate) const fn of_16(bits: u8, p: i32) -> Self {
        Self { bits, p, width: 16 }
    }

    /// Of a field of 8 bits.
    pub(crate) const fn of_8(bits: u8, p: i32) -> Self {
        Self { bits, p, width: 8 }
    }

    const fn mask(bits: u8) -> u32 {
        u32::MAX >> (32 - bits)
    }

    /// Where the interval around `reference` starts.
    const fn low(self, reference: u32) -> u32 {
        reference.wrapping_sub(self.p as u32) & Self::mask(self.width)
    }

    /// Whether a decompressor with this reference reads the value back.
    pub(crate) const fn reaches(self, reference: u32, value: u32) -> bool {
        let above = value.wrapping_sub(self.low(reference)) & Self::mask(self.width);
        above <= Self::mask(self.bits)
    }

    /// What travels of a value.
    pub(crate) const fn encode(self, value: u32) -> u32 {
        value & Self::mask(self.bits)
    }

    /// The value of the interval whose low bits are `bits`.
    pub(crate) const fn decode(self, reference: u32, bits: u32) -> u32 {
        let low = self.low(reference);
        let above = bits.wrapping_sub(low) & Self::mask(self.bits);
        low.wrapping_add(above) & Self::mask(self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_interval_of_rnd_4_is_3_below_to_12_above() {
        let lsb = Lsb::of_32(4, 3);
        let reached: std::vec::Vec<u32> = (90..120).filter(|v| lsb.reaches(100, *v)).collect();
        assert_eq!(reached, (97..=112).collect::<std::vec::Vec<u32>>());
    }

    #[test]
    fn a_timestamp_that_did_not_move_is_out_of_reach_of_one_byte() {
        // p = -1: the trap of RFC 6846's ts_lsb.
        let lsb = Lsb::of_32(7, -1);
        assert!(!lsb.reaches(5000, 5000));
        assert!(lsb.reaches(5000, 5001));
        assert!(lsb.reaches(5000, 5128));
        assert!(!lsb.reaches(5000, 5129));
    }

    proptest! {
        #[test]
        fn what_is_reached_is_read_back(
            reference: u32,
            offset in -70_000_i32..70_000,
            bits in 1_u8..=18,
            p in -1_i32..65_536,
            width in prop::sample::select(std::vec![8_u8, 16, 32]),
        ) {
            let lsb = Lsb { bits: bits.min(width), p, width };
            let mask = Lsb::mask(width);
            let reference = reference & mask;
            let value = reference.wrapping_add(offset as u32) & mask;
            if lsb.reaches(reference, value) {
                prop_assert_eq!(lsb.decode(reference, lsb.encode(value)), value);
            }
        }

        #[test]
        fn every_bit_pattern_names_a_value_of_the_interval(reference: u32, bits: u32) {
            let lsb = Lsb::of_32(15, 8191);
            let value = lsb.decode(reference, lsb.encode(bits));
            prop_assert!(lsb.reaches(reference, value));
            prop_assert_eq!(lsb.encode(value), lsb.encode(bits));
        }
    }
}
