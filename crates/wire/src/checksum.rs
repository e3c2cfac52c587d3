//! The Internet checksum (RFC 1071) with the TCP pseudo-header of IPv4 (RFC 9293 §3.1) and IPv6
//! (RFC 8200 §8.1).
//!
//! The sum is the same whatever the byte order of the adder (RFC 1071 §2(B)), so everything here
//! adds native words, four bytes into eight so that carries gather above and nothing branches, and
//! only [`Sum::finish`] puts the two bytes into the order in which they travel.

use core::net::IpAddr;

/// Protocol number of TCP in an IP header.
pub const PROTOCOL_TCP: u8 = 6;
/// Protocol number of UDP in an IP header.
pub const PROTOCOL_UDP: u8 = 17;

/// Where the checksum lies in a TCP header.
const TCP_FIELD: core::ops::Range<usize> = 16..18;

/// A ones' complement sum in progress. Pieces are added in the order in which they travel; a piece
/// of odd length is not padded, the next one goes on in the middle of its last word.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Native 16-bit words, not yet folded further than this.
    words: u64,
    /// The next byte is the second one of a word.
    mid_word: bool,
}

impl Sum {
    /// The sum over nothing.
    pub const fn new() -> Self {
        Self {
            words: 0,
            mid_word: false,
        }
    }

    /// The sum over the pseudo-header of a transport segment of `len` bytes (header and payload).
    ///
    /// The addresses are meant to be of one family; the layout follows the source.
    pub fn pseudo_header(src: IpAddr, dst: IpAddr, protocol: u8, len: usize) -> Self {
        let mut sum = Self::new();
        for address in [src, dst] {
            match address {
                IpAddr::V4(address) => sum.add(&address.octets()),
                IpAddr::V6(address) => sum.add(&address.octets()),
            }
        }
        // IPv4 has a 16-bit length and IPv6 a 32-bit one; as sums of words the two are the same,
        // because the upper half of the longer one is zero for every length that IPv4 can carry.
        sum.add(&(len as u32).to_be_bytes());
        sum.add(&[0, protocol]);
        sum
    }

    /// Adds `bytes`.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        let folded = fold(add_words(bytes));
        let aligned = if self.mid_word {
            folded.swap_bytes()
        } else {
            folded
        };
        self.words += u64::from(aligned);
        self.mid_word ^= bytes.len() % 2 == 1;
    }

    /// The checksum, as it travels: the complement of the sum.
    #[inline]
    pub fn finish(self) -> [u8; 2] {
        (!fold(self.words)).to_ne_bytes()
    }
}

/// The Internet checksum of `bytes`; zero over data that contains its own correct checksum.
#[inline]
pub fn internet(bytes: &[u8]) -> [u8; 2] {
    (!fold(add_words(bytes))).to_ne_bytes()
}

/// Writes the checksum into `segment`, a TCP header with options and payload.
///
/// # Panics
/// When `segment` is shorter than the 20 bytes of a TCP header.
pub fn fill_tcp(src: IpAddr, dst: IpAddr, segment: &mut [u8]) {
    assert!(
        segment.len() >= crate::segment::HEADER_LEN,
        "a TCP segment has at least 20 bytes"
    );
    segment[TCP_FIELD].fill(0);
    let mut sum = Sum::pseudo_header(src, dst, PROTOCOL_TCP, segment.len());
    sum.add(segment);
    segment[TCP_FIELD].copy_from_slice(&sum.finish());
}

/// True when `segment` carries the checksum that belongs to it and to these addresses.
///
/// Bytes too short for a TCP header have no checksum, and none that is right.
pub fn verify_tcp(src: IpAddr, dst: IpAddr, segment: &[u8]) -> bool {
    if segment.len() < crate::segment::HEADER_LEN {
        return false;
    }
    let mut sum = Sum::pseudo_header(src, dst, PROTOCOL_TCP, segment.len());
    sum.add(segment);
    sum.finish() == [0, 0]
}

/// Sums native 32-bit words into 64 bits; up to 16 GiB cannot overflow. An odd last byte counts as
/// the first byte of a word whose second one is zero (RFC 1071 §1).
#[inline]
fn add_words(bytes: &[u8]) -> u64 {
    // Eight independent lanes: no chain of dependent additions, and the compiler vectorises it.
    let mut lanes = [0_u64; 8];
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        let (words, _) = block.as_chunks::<4>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane += u64::from(u32::from_ne_bytes(*word));
        }
    }
    let mut sum: u64 = lanes.iter().sum();
    let (words, tail) = rest.as_chunks::<4>();
    for word in words {
        sum += u64::from(u32::from_ne_bytes(*word));
    }
    let mut last = [0; 4];
    last[..tail.len()].copy_from_slice(tail);
    sum + u64::from(u32::from_ne_bytes(last))
}

/// Folds the carries back in until sixteen bits are left.
#[inline]
const fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;
    use std::vec::Vec;

    /// RFC 1071 §4.1 in its plainest form: 16 bits at a time, carries folded at once.
    fn reference(bytes: &[u8]) -> [u8; 2] {
        let mut sum = 0_u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(u16::from_be_bytes([
                pair[0],
                pair.get(1).copied().unwrap_or(0),
            ]));
            sum = (sum >> 16) + (sum & 0xffff);
        }
        (!(sum as u16)).to_be_bytes()
    }

    #[test]
    fn example_of_rfc_1071() {
        // §3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
        assert_eq!(
            internet(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            (!0xddf2_u16).to_be_bytes()
        );
    }

    #[test]
    fn extremes_fold_completely() {
        for len in [1, 2, 31, 32, 33, 1_500, 65_535, 4 << 20] {
            let ones = std::vec![0xff; len];
            assert_eq!(internet(&ones), reference(&ones), "{len} bytes of ones");
            assert_eq!(internet(&std::vec![0; len]), [0xff, 0xff]);
        }
    }

    #[test]
    fn a_segment_without_a_header_never_verifies() {
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        for len in 0..20 {
            assert!(!verify_tcp(local, local, &std::vec![0xff; len]));
        }
    }

    fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
        prop_oneof![
            any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(a, b)| (a.into(), b.into())),
            any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(a, b)| (a.into(), b.into())),
        ]
    }

    /// Any segment with a plain 20-byte header.
    fn segment() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>(), 20..2_000).prop_map(|mut bytes| {
            bytes[12] = 5 << 4;
            bytes
        })
    }

    proptest! {
        #[test]
        fn agrees_with_the_plain_sum(bytes in proptest::collection::vec(any::<u8>(), 0..3_000)) {
            prop_assert_eq!(internet(&bytes), reference(&bytes));
        }

        #[test]
        fn pieces_sum_to_the_whole(bytes in proptest::collection::vec(any::<u8>(), 0..500), cuts in any::<[u16; 3]>()) {
            let mut cuts = cuts.map(|cut| usize::from(cut) % (bytes.len() + 1));
            cuts.sort_unstable();
            let mut sum = Sum::new();
            for piece in [&bytes[..cuts[0]], &bytes[cuts[0]..cuts[1]], &bytes[cuts[1]..cuts[2]], &bytes[cuts[2]..]] {
                sum.add(piece);
            }
            prop_assert_eq!(sum.finish(), internet(&bytes));
        }

        #[test]
        fn tcp_agrees_with_etherparse((src, dst) in addresses(), mut segment in segment()) {
            fill_tcp(src, dst, &mut segment);
            prop_assert!(verify_tcp(src, dst, &segment));
            let oracle = etherparse::TcpSlice::from_slice(&segment).unwrap();
            let expected = match (src, dst) {
                (IpAddr::V4(src), IpAddr::V4(dst)) => {
                    oracle.calc_checksum_ipv4(src.octets(), dst.octets()).unwrap()
                }
                (IpAddr::V6(src), IpAddr::V6(dst)) => {
                    oracle.calc_checksum_ipv6(src.octets(), dst.octets()).unwrap()
                }
                _ => unreachable!("the strategy never mixes families"),
            };
            prop_assert_eq!(oracle.checksum(), expected);
        }

        #[test]
        fn one_flipped_bit_is_always_noticed((src, dst) in addresses(), mut segment in segment(), at in any::<u16>(), bit in 0..8_u8) {
            fill_tcp(src, dst, &mut segment);
            let at = usize::from(at) % segment.len();
            segment[at] ^= 1 << bit;
            prop_assert!(!verify_tcp(src, dst, &segment));
        }
    }
}
