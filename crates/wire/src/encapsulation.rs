//! TCP in UDP: how our UDP carriers move segments.
//!
//! One UDP datagram holds exactly one TCP segment: genuine header, options, payload, and nothing
//! else. The TCP ports tell the connections on one pair of UDP addresses apart. Nothing is
//! negotiated and nothing is added, so a relay needs no state to turn such a datagram into an IP
//! packet and back, and Wireshark reads it with "decode as TCP".
//!
//! The TCP checksum field is zero when sent and ignored when received: the UDP checksum covers the
//! same bytes and nearly the same pseudo-header, the kernel or the network card has verified it
//! before we see the datagram, and a second pass over the payload would cost as much as the rest of
//! the receive path. It is ignored rather than required to be zero so that a relay may pass on
//! what it took from an IP packet. IPv6 forbids UDP without a checksum (RFC 8200 §8.1); over IPv4 a
//! sender that leaves it out (RFC 768) gives up the protection of its own data.

use core::iter::FusedIterator;
use core::net::IpAddr;

use crate::ip;
use crate::segment::{ParseError, Segment};

/// Bytes of a UDP header (RFC 768).
pub const UDP_HEADER_LEN: usize = 8;

/// Bytes that a path adds to each segment: the IP header of this family and the UDP header.
pub const fn overhead(address: IpAddr) -> usize {
    ip::header_len(address) + UDP_HEADER_LEN
}

/// The longest segment (header, options and payload) that fits an IP packet of `mtu` bytes to
/// `address`; zero when not even the headers fit.
pub const fn segment_limit(mtu: usize, address: IpAddr) -> usize {
    mtu.saturating_sub(overhead(address))
}

/// The segments of what one receive call returned, in order of arrival.
///
/// Receive offload (GRO) joins datagrams of one sender: all of them have `stride` bytes except the
/// last, which may be shorter. Without offload `stride` is the length of `buffer`; a stride of zero
/// or beyond the buffer means the same. Each datagram is judged alone, so a malformed one costs
/// the ones beside it nothing.
pub fn segments(buffer: &[u8], stride: usize) -> Segments<'_> {
    let stride = if stride == 0 { buffer.len() } else { stride };
    Segments {
        datagrams: buffer.chunks(stride.max(1)),
    }
}

/// Iterator of [`segments`]: a segment, or why a datagram is none.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    datagrams: core::slice::Chunks<'a, u8>,
}

impl<'a> Iterator for Segments<'a> {
    type Item = Result<Segment<'a>, ParseError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.datagrams.next().map(Segment::parse)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.datagrams.size_hint()
    }
}

impl ExactSizeIterator for Segments<'_> {}
impl FusedIterator for Segments<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Header;
    use crate::{Flags, SeqNum};
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;
    use std::vec::Vec;

    fn datagram(seq: u32, payload: &[u8]) -> Vec<u8> {
        let header = Header {
            src_port: 1,
            dst_port: 2,
            seq: SeqNum(seq),
            flags: Flags::ACK,
            ..Header::default()
        };
        let mut bytes = std::vec![0; header.encoded_len()];
        header.emit(&mut bytes);
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn a_joined_buffer_comes_apart_at_the_stride() {
        let buffer = [
            datagram(1, b"four"),
            datagram(5, b"five"),
            datagram(9, b"x"),
        ]
        .concat();
        let segments: Vec<_> = segments(&buffer, 24).map(Result::unwrap).collect();
        assert_eq!(
            segments.iter().map(|s| s.header.seq.0).collect::<Vec<_>>(),
            [1, 5, 9]
        );
        assert_eq!(
            segments.iter().map(|s| s.payload).collect::<Vec<_>>(),
            [&b"four"[..], b"five", b"x"]
        );
    }

    #[test]
    fn one_bad_datagram_costs_the_others_nothing() {
        let mut buffer = [
            datagram(1, b"four"),
            datagram(5, b"five"),
            datagram(9, b"nine"),
        ]
        .concat();
        buffer[24 + 12] = 0xf0; // the second one claims a header of 60 bytes
        buffer.truncate(2 * 24 + 19); // and the third is cut short
        let results: Vec<_> = segments(&buffer, 24)
            .map(|s| s.map(|s| s.header.seq.0))
            .collect();
        assert_eq!(
            results,
            [
                Ok(1),
                Err(ParseError::DataOffset(60)),
                Err(ParseError::TooShort(19))
            ]
        );
    }

    #[test]
    fn a_stride_of_zero_or_beyond_the_buffer_means_one_datagram() {
        let one = datagram(7, b"payload");
        for stride in [0, one.len(), one.len() + 1, usize::MAX] {
            let mut segments = segments(&one, stride);
            assert_eq!(segments.len(), 1);
            assert_eq!(segments.next().unwrap().unwrap().payload, b"payload");
        }
        assert_eq!(segments(&[], 0).count(), 0);
        assert_eq!(segments(&[], 1_472).count(), 0);
    }

    #[test]
    fn the_checksum_field_is_not_looked_at() {
        let mut bytes = datagram(7, b"payload");
        assert_eq!(bytes[16..18], [0, 0]);
        bytes[16..18].copy_from_slice(&[0xba, 0xad]);
        assert!(segments(&bytes, bytes.len()).all(|segment| segment.is_ok()));
    }

    #[test]
    fn budgets_of_common_paths() {
        let (v4, v6) = (
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        );
        assert_eq!(segment_limit(1_500, v4), 1_472);
        assert_eq!(segment_limit(1_280, v6), 1_232);
        assert_eq!(segment_limit(20, v6), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_with_any_stride_are_survived(buffer in proptest::collection::vec(any::<u8>(), 0..500), stride in prop_oneof![0..64_usize, any::<usize>()]) {
            let all = segments(&buffer, stride);
            let announced = all.len();
            let mut count = 0;
            for segment in all {
                count += 1;
                if let Ok(segment) = segment {
                    prop_assert!(segment.payload.len() + 20 <= buffer.len());
                }
            }
            prop_assert_eq!(count, announced);
            prop_assert!(count <= buffer.len());
        }
    }
}
