//! What routers do whose links carry less than those around them: they lower the MSS of SYNs that
//! pass, so that hosts, which see only the MTU of loopback, send nothing too long.

use bytes::Bytes;
use tack_wire::Flags;
use tack_wire::options::{KIND_MSS, for_each_option_mut};
use tack_wire::segment::HEADER_LEN;

use crate::MAX_DATAGRAM;

/// Largest payload of a segment that the relay carries, without options, bytes.
const MAX_MSS: u16 = (MAX_DATAGRAM - HEADER_LEN) as u16;

/// The segment as it goes on: if it is a SYN that announces a larger MSS than is carried, with that
/// one. Its checksum is left to UDP.
pub(crate) fn clamped(segment: Bytes) -> Bytes {
    if segment.len() < HEADER_LEN || segment[13] & Flags::SYN.0 as u8 == 0 {
        return segment;
    }
    let end = segment.len().min(usize::from(segment[12] >> 4) * 4);
    let mut lowered = segment.to_vec();
    let Some(options) = lowered.get_mut(HEADER_LEN..end) else {
        return segment;
    };
    for_each_option_mut(options, |kind, body| {
        if let (KIND_MSS, [high, low]) = (kind, body) {
            let lower = u16::from_be_bytes([*high, *low]).min(MAX_MSS);
            [*high, *low] = lower.to_be_bytes();
        }
    });
    lowered.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tack_wire::options::TcpOptions;
    use tack_wire::{Header, Segment};

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
