//! MD5 (RFC 1321), for context identifiers. Not for anything that has to be secure.

/// Shifts of the four rounds.
const SHIFTS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];

/// The digest of at most 55 bytes: one block.
///
/// # Panics
/// When `input` is longer.
pub(super) fn digest(input: &[u8]) -> [u8; 16] {
    assert!(input.len() <= 55, "one block of MD5 holds 55 bytes");
    let mut block = [0; 64];
    block[..input.len()].copy_from_slice(input);
    block[input.len()] = 0x80;
    block[56..].copy_from_slice(&(8 * input.len() as u64).to_le_bytes());
    let start = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let [mut a, mut b, mut c, mut d] = start;
    for step in 0..64 {
        let (mix, word) = match step / 16 {
            0 => (b & c | !b & d, step),
            1 => (d & b | !d & c, 5 * step + 1),
            2 => (b ^ c ^ d, 3 * step + 5),
            _ => (c ^ (b | !d), 7 * step),
        };
        let at = word % 16 * 4;
        let word = u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
        let sum = a
            .wrapping_add(mix)
            .wrapping_add(sine(step))
            .wrapping_add(word);
        let rotated = sum.rotate_left(SHIFTS[step / 16][step % 4]);
        (a, d, c, b) = (d, c, b, b.wrapping_add(rotated));
    }
    let mut digest = [0; 16];
    for (at, (word, start)) in [a, b, c, d].into_iter().zip(start).enumerate() {
        digest[4 * at..][..4].copy_from_slice(&word.wrapping_add(start).to_le_bytes());
    }
    digest
}

/// RFC 1321 §3.4: the integer part of 2^32 |sin(step + 1)|.
fn sine(step: usize) -> u32 {
    (4_294_967_296.0 * ((step + 1) as f64).sin().abs()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(digest: [u8; 16]) -> String {
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// RFC 1321, appendix A.5.
    #[test]
    fn digests_are_those_of_the_rfc() {
        for (input, expected) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            (
                "abcdefghijklmnopqrstuvwxyz",
                "c3fcd3d76192e4007dfb496cca67e13b",
            ),
        ] {
            assert_eq!(hex(digest(input.as_bytes())), expected);
        }
    }
}
