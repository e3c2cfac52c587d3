//! Bit by bit, most significant first: how RFC 6846 §8.2 defines its formats.

use arrayvec::ArrayVec;

use crate::error::DecodeError;

/// The most bytes that a compressed packet takes: `co_common` with every field (23), an option list
/// with 15 indices and all of 40 option bytes in their longest form (64), an irregular chain (66)
/// fit with room to spare.
pub const MAX_COMPRESSED_LEN: usize = 192;

/// Bytes of one compressed packet.
pub type CompressedBytes = ArrayVec<u8, MAX_COMPRESSED_LEN>;

/// Appends bit fields to a packet.
#[derive(Default)]
pub(crate) struct BitWriter {
    bytes: CompressedBytes,
    /// Bits of the last byte that are not used yet, 0 to 7.
    free: u8,
}

impl BitWriter {
    /// Appends the `bits` low bits of `value`, at most 32.
    pub(crate) fn push(&mut self, value: u32, bits: u8) {
        for shift in (0..bits).rev() {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            self.free -= 1;
            if let Some(last) = self.bytes.last_mut() {
                *last |= u8::from(value >> shift & 1 == 1) << self.free;
            }
        }
    }

    /// Appends one bit.
    pub(crate) fn push_bit(&mut self, bit: bool) {
        self.push(u32::from(bit), 1);
    }

    /// Appends whole bytes; the position must be at a byte's start.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.free, 0, "bytes start at a byte");
        self.bytes.extend(bytes.iter().copied());
    }

    /// The packet so far; what is left of its last byte is zero.
    pub(crate) fn finish(self) -> CompressedBytes {
        self.bytes
    }

    /// Whole bytes so far, counting a byte that has begun.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Takes bit fields from a packet.
#[derive(Clone, Copy)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    /// Bits taken so far.
    position: usize,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Takes `bits` bits, at most 32.
    pub(crate) fn take(&mut self, bits: u8) -> Result<u32, DecodeError> {
        let end = self.position + usize::from(bits);
        if end > self.bytes.len() * 8 {
            return Err(DecodeError::Truncated {
                needed: end.div_ceil(8),
                available: self.bytes.len(),
            });
        }
        let mut value = 0;
        for position in self.position..end {
            let bit = self.bytes[position / 8] >> (7 - position % 8) & 1;
            value = value << 1 | u32::from(bit);
        }
        self.position = end;
        Ok(value)
    }

    /// Takes one bit.
    pub(crate) fn take_bit(&mut self) -> Result<bool, DecodeError> {
        Ok(self.take(1)? == 1)
    }

    /// Takes eight bits.
    pub(crate) fn take_u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.take(8)? as u8)
    }

    /// Takes sixteen bits.
    pub(crate) fn take_u16(&mut self) -> Result<u16, DecodeError> {
        Ok(self.take(16)? as u16)
    }

    /// Whole bytes taken, counting a byte that has begun.
    pub(crate) fn consumed(&self) -> usize {
        self.position.div_ceil(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_they_were_written() {
        let fields = [
            (0b1101, 4),
            (0xa, 4),
            (0x1_ffff, 17),
            (0, 1),
            (0xdead_beef, 32),
        ];
        let mut writer = BitWriter::default();
        for (value, bits) in fields {
            writer.push(value, bits);
        }
        assert_eq!(writer.len(), 8);
        let bytes = writer.finish();
        assert_eq!(bytes[0], 0xda);
        let mut reader = BitReader::new(&bytes);
        for (value, bits) in fields {
            assert_eq!(reader.take(bits), Ok(value));
        }
        assert_eq!(reader.consumed(), 8);
    }

    #[test]
    fn a_short_packet_says_how_much_is_missing() {
        let mut reader = BitReader::new(&[0xff]);
        assert_eq!(reader.take(4), Ok(0xf));
        let error = reader.take(16).unwrap_err();
        assert_eq!(
            error,
            DecodeError::Truncated {
                needed: 3,
                available: 1
            }
        );
    }
}
