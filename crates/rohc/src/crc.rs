//! The checks of ROHC (RFC 5795 §5.3.1): least significant bit first, over the uncompressed header.

/// A CRC of a width up to eight bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Crc {
    /// x³ + x + 1: in the formats that are sent most.
    Three,
    /// x⁷ + x⁶ + x³ + x² + x + 1: in the formats that change more of a context.
    Seven,
    /// x⁸ + x² + x + 1: in IR packets.
    Eight,
}

impl Crc {
    /// Its width, bits.
    pub(crate) const fn bits(self) -> u8 {
        match self {
            Self::Three => 3,
            Self::Seven => 7,
            Self::Eight => 8,
        }
    }

    /// The polynomial, bits reversed: RFC 5795 §5.3.1 has the low-order bit enter first.
    const fn polynomial(self) -> u8 {
        match self {
            Self::Three => 0x6,
            Self::Seven => 0x79,
            Self::Eight => 0xe0,
        }
    }

    /// The check of `bytes`, in the low bits.
    pub(crate) fn of(self, bytes: &[u8]) -> u8 {
        let mut crc = (0xff_u16 >> (8 - self.bits())) as u8;
        for &byte in bytes {
            let mut byte = byte;
            for _ in 0..8 {
                let carry = (crc ^ byte) & 1 == 1;
                crc >>= 1;
                byte >>= 1;
                if carry {
                    crc ^= self.polynomial();
                }
            }
        }
        crc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values() {
        // The catalogue's value for each parameter set (CRC-3/ROHC, CRC-7/ROHC, CRC-8/ROHC).
        let digits = b"123456789";
        assert_eq!(Crc::Three.of(digits), 6);
        assert_eq!(Crc::Seven.of(digits), 0x53);
        assert_eq!(Crc::Eight.of(digits), 0xd0);
    }
}
