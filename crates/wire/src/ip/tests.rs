use super::*;
use core::net::{Ipv4Addr, Ipv6Addr};
use etherparse::{Ipv6HeaderSlice, PacketBuilder};
use proptest::prelude::*;
use std::string::ToString;
use std::vec::Vec;

const V4: (IpAddr, IpAddr) = (
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
);
const V6: (IpAddr, IpAddr) = (
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)),
);

fn packet(emit: &Emit, payload: &[u8]) -> Vec<u8> {
    let mut out = std::vec![0xaa; header_len(emit.src)];
    assert_eq!(emit_header(&mut out, emit), out.len());
    out.extend_from_slice(payload);
    out
}

/// A UDP-less IPv6 packet: `next` names the first of `extensions`, whose bytes name what follows.
fn v6_with_extensions(next: u8, extensions: &[u8], payload: &[u8]) -> Vec<u8> {
    let body = [extensions, payload].concat();
    packet(&Emit::new(V6.0, V6.1, next, body.len()), &body)
}

#[test]
fn v4_header_bytes() {
    let emit = Emit {
        ecn: Ecn::Ect0,
        dscp: 46,
        ident: 0x1234,
        hop_limit: 7,
        ..Emit::new(V4.0, V4.1, checksum::PROTOCOL_TCP, 3)
    };
    let bytes = packet(&emit, b"abc");
    assert_eq!(
        bytes[..10],
        [0x45, 46 << 2 | 2, 0, 23, 0x12, 0x34, 0x40, 0, 7, 6]
    );
    assert_eq!(checksum::internet(&bytes[..20]), [0, 0]);
    assert_eq!(bytes[12..20], [10, 0, 0, 1, 10, 0, 0, 2]);
    let free = packet(
        &Emit {
            fragmenting: Fragmenting::Allowed,
            ..emit
        },
        b"abc",
    );
    assert_eq!(free[6], 0);
}

#[test]
fn v6_header_bytes() {
    let bytes = packet(
        &Emit {
            ecn: Ecn::Ce,
            dscp: 63,
            ..Emit::new(V6.0, V6.1, 17, 1)
        },
        b"x",
    );
    assert_eq!(bytes[..8], [0x6f, 0xf0, 0, 0, 0, 1, 17, 64]);
}

#[test]
fn padding_behind_the_packet_is_ignored() {
    for (src, dst) in [V4, V6] {
        let mut bytes = packet(&Emit::new(src, dst, 6, 4), b"data");
        bytes.extend_from_slice(&[0xee; 18]);
        assert_eq!(parse(&bytes).unwrap().payload, b"data");
    }
}

#[test]
fn v4_options_are_stepped_over() {
    let mut bytes = packet(&Emit::new(V4.0, V4.1, 6, 8), b"....data");
    // Turn the first four payload bytes into four no-operation options.
    bytes[0] = 0x46;
    bytes[20..24].fill(1);
    set_ecn(&mut bytes, Ecn::Ce).unwrap(); // also recomputes the checksum
    assert_eq!(
        parse(&bytes).unwrap(),
        Packet {
            src: V4.0,
            dst: V4.1,
            ecn: Ecn::Ce,
            protocol: 6,
            payload: b"data"
        }
    );
}

#[test]
fn a_wrong_v4_checksum_is_refused() {
    let mut bytes = packet(&Emit::new(V4.0, V4.1, 6, 4), b"data");
    bytes[8] ^= 1;
    assert_eq!(parse(&bytes), Err(IpError::Checksum));
}

#[test]
fn fragments_are_refused() {
    for (at, value) in [(6, 0x20_u8), (7, 1)] {
        let mut bytes = packet(
            &Emit {
                fragmenting: Fragmenting::Allowed,
                ..Emit::new(V4.0, V4.1, 6, 4)
            },
            b"data",
        );
        bytes[at] = value;
        set_ecn(&mut bytes, Ecn::NotEct).unwrap();
        assert_eq!(parse(&bytes), Err(IpError::Fragment), "byte {at}");
    }
    let fragment = |offset_and_more: u8| {
        v6_with_extensions(44, &[6, 0, 0, offset_and_more, 0, 0, 0, 9], b"data")
    };
    assert_eq!(parse(&fragment(1)), Err(IpError::Fragment));
    assert_eq!(parse(&fragment(8)), Err(IpError::Fragment));
    // An atomic fragment is a whole packet (RFC 6946).
    assert_eq!(parse(&fragment(0)).unwrap().payload, b"data");
}

#[test]
fn v6_extension_headers_are_stepped_over() {
    let chain = [
        [60, 0, 1, 4, 0, 0, 0, 0], // hop-by-hop, padded; destination options follow
        [43, 0, 1, 4, 0, 0, 0, 0], // destination options; a routing header follows
        [17, 0, 0, 0, 0, 0, 0, 0], // routing with no segments left; UDP follows
    ]
    .concat();
    let bytes = v6_with_extensions(0, &chain, b"datagram");
    let packet = parse(&bytes).unwrap();
    assert_eq!((packet.protocol, packet.payload), (17, &b"datagram"[..]));
}

#[test]
fn v6_headers_that_ask_for_more_are_refused() {
    let routing = v6_with_extensions(43, &[6, 0, 0, 1, 0, 0, 0, 0], b"data");
    assert_eq!(parse(&routing), Err(IpError::Extension));
    let late_hop_by_hop = v6_with_extensions(
        60,
        &[0, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0],
        b"data",
    );
    assert_eq!(parse(&late_hop_by_hop), Err(IpError::Extension));
    let authenticated = v6_with_extensions(51, &[6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1], b"data");
    assert_eq!(parse(&authenticated), Err(IpError::Extension));
    let cut = v6_with_extensions(60, &[6, 9, 1, 4], b"data");
    assert_eq!(
        parse(&cut),
        Err(IpError::Truncated {
            offset: 40,
            needed: 80,
            available: 8
        })
    );
    let mut jumbo = packet(&Emit::new(V6.0, V6.1, 6, 0), b"not said to be there");
    assert_eq!(parse(&jumbo), Err(IpError::NoPayload));
    jumbo.truncate(40);
    assert_eq!(parse(&jumbo), Err(IpError::NoPayload));
}

#[test]
fn short_and_foreign_bytes_name_the_trouble() {
    assert_eq!(
        parse(&[]),
        Err(IpError::Truncated {
            offset: 0,
            needed: 1,
            available: 0
        })
    );
    assert_eq!(parse(&[0x50; 60]), Err(IpError::Version(5)));
    assert_eq!(parse(&[0x44; 60]), Err(IpError::HeaderLength(4)));
    let whole = packet(&Emit::new(V4.0, V4.1, 6, 4), b"data");
    assert_eq!(
        parse(&whole[..23]),
        Err(IpError::Truncated {
            offset: 0,
            needed: 24,
            available: 23
        })
    );
    assert_eq!(
        parse(&whole[..23]).unwrap_err().to_string(),
        "what starts at byte 0 needs 24 bytes and has 23"
    );
}

#[test]
fn a_payload_may_fill_the_packet() {
    for ((src, dst), longest) in [(V4, 65_515), (V6, 65_535)] {
        let payload = std::vec![7; longest];
        let bytes = packet(&Emit::new(src, dst, 6, longest), &payload);
        assert_eq!(parse(&bytes).unwrap().payload.len(), longest);
    }
}

fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(a, b)| (a.into(), b.into())),
        any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(a, b)| (a.into(), b.into())),
    ]
}

fn codepoint() -> impl Strategy<Value = Ecn> {
    any::<u8>().prop_map(Ecn::from_bits)
}

proptest! {
    #[test]
    fn what_is_emitted_parses_back(
        (src, dst) in addresses(), ecn in codepoint(), dscp in 0..64_u8, ident: u16, hop_limit: u8,
        // Numbers of extension headers would be read as such.
        protocol in prop_oneof![Just(6_u8), Just(17), Just(253)],
        payload in proptest::collection::vec(any::<u8>(), 1..300), marked in codepoint(),
    ) {
        let emit = Emit { ecn, dscp, ident, hop_limit, ..Emit::new(src, dst, protocol, payload.len()) };
        let mut bytes = packet(&emit, &payload);
        let expected = Packet { src, dst, ecn, protocol, payload: &payload };
        prop_assert_eq!(parse(&bytes), Ok(expected));
        set_ecn(&mut bytes, marked).unwrap();
        prop_assert_eq!(parse(&bytes), Ok(Packet { ecn: marked, ..expected }));
        // Marking touches nothing but the codepoint.
        set_ecn(&mut bytes, ecn).unwrap();
        prop_assert_eq!(bytes, packet(&emit, &payload));
    }

    #[test]
    fn packets_of_another_builder_parse(
        (src, dst) in addresses(), hop_limit: u8, payload in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let builder = match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => PacketBuilder::ipv4(src.octets(), dst.octets(), hop_limit),
            (IpAddr::V6(src), IpAddr::V6(dst)) => PacketBuilder::ipv6(src.octets(), dst.octets(), hop_limit),
            _ => unreachable!("the strategy never mixes families"),
        }
        .tcp(443, 50_000, 0x0102_0304, 1_024);
        let mut bytes = Vec::new();
        builder.write(&mut bytes, &payload).unwrap();
        let packet = parse(&bytes).unwrap();
        prop_assert_eq!((packet.src, packet.dst, packet.protocol), (src, dst, 6));
        prop_assert!(checksum::verify_tcp(src, dst, packet.payload));
        let segment = crate::Segment::parse(packet.payload).unwrap();
        prop_assert_eq!(segment.payload, &payload[..]);
        prop_assert_eq!(segment.header.seq, crate::SeqNum(0x0102_0304));
    }

    #[test]
    fn any_bytes_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), version in prop_oneof![Just(4_u8), Just(6), any::<u8>()], ecn in codepoint()) {
        if let Some(first) = bytes.first_mut() {
            *first = *first & 0x0f | version << 4;
        }
        let parsed = parse(&bytes).map(|packet| packet.payload.len());
        if let Ok(len) = parsed {
            prop_assert!(len <= bytes.len());
        }
        let before = bytes.clone();
        if set_ecn(&mut bytes, ecn).is_err() {
            prop_assert_eq!(&bytes, &before);
            prop_assert!(parsed.is_err());
        } else if bytes[0] >> 4 == 6 {
            prop_assert_eq!(Ipv6HeaderSlice::from_slice(&bytes).unwrap().ecn().value(), ecn as u8);
        }
    }
}
