use super::*;
use crate::options::{SackBlock, Timestamps};
use etherparse::TcpHeader;
use proptest::prelude::*;
use std::string::ToString;
use std::vec::Vec;

fn emitted(header: &Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = std::vec![0xaa; header.encoded_len()];
    assert_eq!(header.emit(&mut bytes), bytes.len());
    bytes.extend_from_slice(payload);
    bytes
}

#[test]
fn header_bytes() {
    let header = Header {
        src_port: 0x0102,
        dst_port: 0x0304,
        seq: SeqNum(0x0506_0708),
        ack: SeqNum(0x090a_0b0c),
        flags: Flags::ACK.with(Flags::PSH),
        window: 0x0d0e,
        urgent: 0x0f10,
        ..Header::default()
    };
    let bytes = emitted(&header, b"!");
    assert_eq!(
        bytes,
        [
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x50, 0x18, 13, 14, 0, 0, 15, 16, b'!'
        ]
    );
    assert_eq!(
        Segment::parse(&bytes),
        Ok(Segment {
            header,
            payload: b"!"
        })
    );
    assert_eq!(Segment::ports(&bytes), Some((0x0102, 0x0304)));
}

#[test]
fn short_and_impossible_headers_name_the_trouble() {
    let whole = emitted(&Header::default(), b"");
    for len in 0..20 {
        assert_eq!(
            Segment::parse(&whole[..len]),
            Err(ParseError::TooShort(len))
        );
    }
    assert_eq!(Segment::ports(&whole[..3]), None);
    for words in [0_u8, 4, 6, 15] {
        let mut bytes = whole.clone();
        bytes[12] = words << 4;
        assert_eq!(
            Segment::parse(&bytes),
            Err(ParseError::DataOffset(usize::from(words) * 4))
        );
    }
    assert_eq!(
        ParseError::DataOffset(16).to_string(),
        "data offset at byte 12 names a header of 16 bytes"
    );
}

#[test]
fn reserved_bits_are_ignored() {
    let mut bytes = emitted(&Header::default(), b"");
    bytes[12] |= 0x0e; // RFC 9293 §3.1: must be ignored when not understood
    assert_eq!(Segment::parse(&bytes).unwrap().header, Header::default());
}

#[test]
fn syn_and_fin_take_sequence_space() {
    let segment = |flags| Segment {
        header: Header {
            flags,
            ..Header::default()
        },
        payload: b"abc",
    };
    assert_eq!(segment(Flags::ACK).sequence_len(), 3);
    assert_eq!(segment(Flags::SYN).sequence_len(), 4);
    assert_eq!(segment(Flags::SYN.with(Flags::FIN)).sequence_len(), 5);
}

#[test]
fn prints_like_tcpdump() {
    let mut header = Header {
        src_port: 50_000,
        dst_port: 443,
        seq: SeqNum(u32::MAX),
        ack: SeqNum(9),
        flags: Flags::ACK.with(Flags::PSH),
        window: 512,
        ..Header::default()
    };
    let line = |header: &Header, payload| {
        Segment {
            header: header.clone(),
            payload,
        }
        .to_string()
    };
    assert_eq!(
        line(&header, b"data"),
        "50000 > 443: Flags [P.], seq 4294967295:3, ack 9, win 512, length 4"
    );
    header.options.timestamps = Some(Timestamps { value: 7, echo: 8 });
    header.options.sack.push(SackBlock {
        start: SeqNum(30),
        end: SeqNum(40),
    });
    assert_eq!(
        line(&header, b""),
        "50000 > 443: Flags [P.], seq 4294967295, ack 9, win 512, options [TS val 7 ecr 8,sack 1 {30:40}], length 0"
    );
    let reset = Header {
        flags: Flags::RST.with(Flags::URG),
        urgent: 3,
        ..Header::default()
    };
    assert_eq!(
        line(&reset, b""),
        "0 > 0: Flags [RU], seq 0, win 0, urg 3, length 0"
    );
}

prop_compose! {
    fn header()(
        (src_port, dst_port, window, urgent) in any::<(u16, u16, u16, u16)>(), (seq, ack) in any::<(u32, u32)>(), flags in 0_u16..0x200,
        mss: Option<u16>, timestamps: Option<(u32, u32)>, sack in proptest::collection::vec(any::<(u32, u32)>(), 0..3),
    ) -> Header {
        let options = TcpOptions {
            mss,
            timestamps: timestamps.map(|(value, echo)| Timestamps { value, echo }),
            sack: sack.into_iter().map(|(start, end)| SackBlock { start: SeqNum(start), end: SeqNum(end) }).collect(),
            ..TcpOptions::default()
        };
        Header {
            src_port, dst_port, window, urgent, options, flags: Flags(flags), seq: SeqNum(seq), ack: SeqNum(ack),
        }
    }
}

proptest! {
    #[test]
    fn what_is_emitted_parses_back(header in header(), payload in proptest::collection::vec(any::<u8>(), 0..100)) {
        let bytes = emitted(&header, &payload);
        prop_assert_eq!(Segment::parse(&bytes), Ok(Segment { header, payload: &payload }));
    }

    #[test]
    fn another_parser_reads_the_same(header in header(), payload in proptest::collection::vec(any::<u8>(), 0..100)) {
        let bytes = emitted(&header, &payload);
        let (other, rest) = TcpHeader::from_slice(&bytes).unwrap();
        prop_assert_eq!(rest, &payload[..]);
        prop_assert_eq!((other.source_port, other.destination_port), (header.src_port, header.dst_port));
        prop_assert_eq!((other.sequence_number, other.acknowledgment_number), (header.seq.0, header.ack.0));
        prop_assert_eq!((other.window_size, other.urgent_pointer), (header.window, header.urgent));
        let flags = [other.fin, other.syn, other.rst, other.psh, other.ack, other.urg, other.ece, other.cwr];
        let low = flags.iter().rev().fold(0_u16, |bits, &set| bits << 1 | u16::from(set));
        let bits = u16::from(other.ns) << 8 | low;
        prop_assert_eq!(bits, header.flags.0);
        // And the other way round: its bytes mean the same to us.
        let theirs = [&other.to_bytes()[..], &payload].concat();
        prop_assert_eq!(Segment::parse(&theirs), Ok(Segment { header, payload: &payload }));
    }

    #[test]
    fn any_bytes_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), words in 0..16_u8) {
        if let Some(offset) = bytes.get_mut(12) {
            *offset = words << 4;
        }
        match Segment::parse(&bytes) {
            Ok(segment) => {
                prop_assert_eq!(segment.payload, &bytes[usize::from(words) * 4..]);
                prop_assert_eq!(TcpHeader::from_slice(&bytes).is_ok(), true);
                prop_assert!(!segment.to_string().is_empty());
            }
            Err(_) => prop_assert!(TcpHeader::from_slice(&bytes).is_err()),
        }
    }
}
