//! What a datagram is: an acknowledgement, data, or neither.

use serde::Serialize;
use tack_wire::{Header, Segment};

/// How the acknowledgements of a flow are distinguished from its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// Its packets are TCP segments, or its datagrams are, one each, as this project's UDP carrier
    /// sends them: an acknowledgement is a segment without payload, SYN, FIN or RST, or with a
    /// report as its only payload. A flow of datagrams counts so when it begins with a SYN.
    Tcp,
    /// Its datagrams are anything: those of at most [`SMALL`] bytes count as acknowledgements,
    /// right or wrong.
    Size,
}

/// Longest payload of a datagram that counts as an acknowledgement where the content is unknown.
pub const SMALL: usize = 100;

/// What a datagram is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    Ack,
    Data,
    /// Neither data nor an acknowledgement: SYN, FIN, RST.
    Other,
    /// A datagram in a flow of TCP that is not a segment.
    Malformed,
}

impl Counting {
    /// How to count the flow that begins with `first`.
    pub(crate) fn of_flow(first: &[u8]) -> Self {
        // An initial SYN acknowledges nothing, and its checksum is left to UDP.
        let is_syn = Segment::parse(first).is_ok_and(|segment| {
            let flags = segment.header.flags;
            flags.syn() && !flags.ack() && !flags.fin() && !flags.rst() && segment.header.ack.0 == 0
        });
        if is_syn && first[16..18] == [0, 0] {
            Self::Tcp
        } else {
            Self::Size
        }
    }

    pub(crate) fn content(self, datagram: &[u8]) -> Content {
        match self {
            Self::Size if datagram.len() <= SMALL => Content::Ack,
            Self::Size => Content::Data,
            Self::Tcp => match Segment::parse(datagram) {
                Err(_) => Content::Malformed,
                Ok(segment) => of_segment(&segment.header, segment.payload.len()),
            },
        }
    }
}

/// What a TCP segment with `payload` bytes behind its header is.
pub(crate) fn of_segment(header: &Header, payload: usize) -> Content {
    let flags = header.flags;
    let is_report = header
        .options
        .tack
        .is_some_and(|option| option.is_feedback());
    if flags.syn() || flags.rst() || flags.fin() {
        Content::Other
    } else if payload == 0 || is_report {
        Content::Ack
    } else {
        Content::Data
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tack_wire::{Flags, SeqNum};

    use super::*;

    fn segment(flags: Flags, payload: usize) -> Vec<u8> {
        let header = Header {
            src_port: 1,
            dst_port: 2,
            seq: SeqNum(7),
            ack: SeqNum(if flags.ack() { 9 } else { 0 }),
            flags,
            ..Header::default()
        };
        let mut bytes = vec![0; header.encoded_len() + payload];
        header.emit(&mut bytes);
        bytes
    }

    #[test]
    fn segments_are_told_apart_once_a_flow_began_with_syn() {
        let counting = Counting::of_flow(&segment(Flags::SYN, 0));
        assert_eq!(counting, Counting::Tcp);
        let cases = [
            (segment(Flags::ACK, 0), Content::Ack),
            (segment(Flags::ACK, 1), Content::Data),
            (segment(Flags::ACK, 1_400), Content::Data),
            (segment(Flags::SYN.with(Flags::ACK), 0), Content::Other),
            (segment(Flags::FIN.with(Flags::ACK), 10), Content::Other),
            (segment(Flags::RST, 0), Content::Other),
            (vec![0xff; 3], Content::Malformed),
        ];
        for (datagram, content) in cases {
            assert_eq!(counting.content(&datagram), content, "{datagram:?}");
        }
    }

    #[test]
    fn anything_else_is_counted_by_size() {
        for first in [
            segment(Flags::ACK, 0),
            segment(Flags::SYN.with(Flags::ACK), 0),
            b"hello".to_vec(),
            Vec::new(),
        ] {
            assert_eq!(Counting::of_flow(&first), Counting::Size);
        }
        assert_eq!(Counting::Size.content(&[0; SMALL]), Content::Ack);
        assert_eq!(Counting::Size.content(&[0; SMALL + 1]), Content::Data);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let counting = Counting::of_flow(&bytes);
            let _ = counting.content(&bytes);
            let _ = Counting::Tcp.content(&bytes);
        }
    }
}
