//! A hash of everything that happens, to tell two runs apart.

/// Folds 64-bit words, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceHash(u64);

impl TraceHash {
    pub(super) const fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// Folds a word in: multiply by an odd constant, then mix the high half down, so that each bit
    /// reaches all of them within two words.
    #[inline]
    pub(super) fn add(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93);
        self.0 = mixed ^ (mixed >> 32);
    }

    /// Folds up to eight bytes in.
    #[inline]
    pub(super) fn add_bytes(&mut self, bytes: &[u8]) {
        let word = bytes.first_chunk().copied().unwrap_or_else(|| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            word
        });
        self.add(u64::from_le_bytes(word));
    }

    pub(super) fn finish(self) -> String {
        format!("{:016x}", self.0)
    }
}
