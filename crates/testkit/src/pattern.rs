//! Stream content that a test can make and check at any position, without keeping a copy.

/// The byte at stream `position`. Neighbouring segments, and positions 2^8, 2^16 or 2^32 apart,
/// differ.
pub fn byte(position: u64) -> u8 {
    let mixed = position.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// `len` bytes of the stream from `position` on.
pub fn bytes(position: u64, len: usize) -> Vec<u8> {
    (position..).take(len).map(byte).collect()
}

/// The first position at which `data`, said to begin at stream `position`, is not what the stream
/// holds.
pub fn mismatch(position: u64, data: &[u8]) -> Option<u64> {
    data.iter()
        .zip(position..)
        .find(|(found, at)| **found != byte(*at))
        .map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifted_content_is_noticed_at_once() {
        assert_eq!(mismatch(70, &bytes(70, 1000)), None);
        for shift in [1, 255, 256, 1460, 65_536, 1 << 32] {
            assert!(
                mismatch(70, &bytes(70 + shift, 20)).is_some_and(|at| at < 90),
                "{shift}"
            );
        }
    }
}
