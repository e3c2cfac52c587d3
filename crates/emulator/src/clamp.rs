//! What routers do whose links carry less than those around them: they lower the MSS of SYNs that
//! pass, so that hosts, which see only the MTU of loopback, send nothing too long.

use bytes::Bytes;
use tack_wire::segment::HEADER_LEN;

use crate::MAX_DATAGRAM;

/// Largest payload of a segment that the relay carries, without options, bytes.
const MAX_MSS: u16 = (MAX_DATAGRAM - HEADER_LEN) as u16;

/// Kinds of TCP options (RFC 9293 §3.1).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;

/// The segment as it goes on: if it is a SYN that announces a larger MSS than is carried, with that
/// one. Its checksum is left to UDP.
pub(crate) fn clamped(segment: Bytes) -> Bytes {
    let Some(at) = mss_at(&segment) else {
        return segment;
    };
    let announced = u16::from_be_bytes([segment[at], segment[at + 1]]);
    if announced <= MAX_MSS {
        return segment;
    }
    let mut lowered = segment.to_vec();
    lowered[at..at + 2].copy_from_slice(&MAX_MSS.to_be_bytes());
    lowered.into()
}

/// Where a SYN has its MSS.
fn mss_at(segment: &[u8]) -> Option<usize> {
    const SYN: u8 = 2;
    if segment.len() < HEADER_LEN || segment[13] & SYN == 0 {
        return None;
    }
    let end = segment.len().min(usize::from(segment[12] >> 4) * 4);
    let mut at = HEADER_LEN;
    while at + 1 < end {
        let len = usize::from(segment[at + 1]);
        match segment[at] {
            END => return None,
            NO_OPERATION => at += 1,
            MSS if len == 4 && at + 4 <= end => return Some(at + 2),
            _ if len < 2 => return None,
            _ => at += len,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tack_wire::options::TcpOptions;
    use tack_wire::{Flags, Header, Segment};

    use super::*;

    fn segment(flags: Flags, mss: Option<u16>) -> Bytes {
        let header = Header {
            flags,
            options: TcpOptions {
                mss,
                sack_permitted: true,
                window_scale: Some(7),
                ..TcpOptions::default()
            },
            ..Header::default()
        };
        let mut bytes = vec![9; header.encoded_len() + 3];
        header.emit(&mut bytes);
        bytes.into()
    }

    #[test]
    fn only_a_syn_that_announces_more_is_changed() {
        for (flags, mss, expected) in [
            (Flags::SYN, Some(8_952), Some(MAX_MSS)),
            (Flags::SYN.with(Flags::ACK), Some(u16::MAX), Some(MAX_MSS)),
            (Flags::SYN, Some(1_000), Some(1_000)),
            (Flags::SYN, None, None),
            (Flags::ACK, Some(8_952), Some(8_952)),
        ] {
            let before = segment(flags, mss);
            let after = clamped(before.clone());
            let (before, after) = (Segment::parse(&before), Segment::parse(&after));
            let (mut before, after) = (before.unwrap(), after.unwrap());
            before.header.options.mss = expected;
            assert_eq!(before, after);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let after = clamped(bytes.clone().into());
            prop_assert_eq!(after.len(), bytes.len());
        }
    }
}
