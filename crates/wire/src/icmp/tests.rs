use std::vec::Vec;

use etherparse::{Icmpv4Header, Icmpv6Header, PacketBuilder};
use proptest::prelude::*;

use super::*;
use crate::ip;

/// A segment of 20 bytes from port 1000 to port 2000 in an IPv4 packet, cut to its first 28 bytes.
fn segment_v4() -> Vec<u8> {
    let mut bytes = Vec::new();
    PacketBuilder::ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .tcp(1000, 2000, 0xfedc_ba98, 100)
        .write(&mut bytes, &[7; 1000])
        .unwrap();
    bytes.truncate(28);
    bytes
}

fn segment_v6() -> Vec<u8> {
    let (src, dst) = ([0x20; 16], [0x21; 16]);
    let mut bytes = Vec::new();
    PacketBuilder::ipv6(src, dst, 64)
        .tcp(1000, 2000, 0xfedc_ba98, 100)
        .write(&mut bytes, &[7; 1000])
        .unwrap();
    bytes
}

fn packet_v4(kind: Icmpv4Type, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    PacketBuilder::ipv4([192, 0, 2, 9], [192, 0, 2, 1], 64)
        .icmpv4(kind)
        .write(&mut bytes, payload)
        .unwrap();
    bytes
}

fn packet_v6(kind: Icmpv6Type, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    PacketBuilder::ipv6([0x22; 16], [0x20; 16], 64)
        .icmpv6(kind)
        .write(&mut bytes, payload)
        .unwrap();
    bytes
}

fn heard(bytes: &[u8]) -> Option<(Problem, u16, u16, u32)> {
    match parse(&ip::parse(bytes).unwrap())? {
        Message::Error(error) => Some((
            error.problem,
            error.quoted.src_port,
            error.quoted.dst_port,
            error.quoted.seq.0,
        )),
        Message::EchoRequest(_) => None,
    }
}

#[test]
fn errors_name_the_segment() {
    let expect = |problem| Some((problem, 1000, 2000, 0xfedc_ba98));
    let unreachable = Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Host);
    assert_eq!(
        heard(&packet_v4(unreachable, &segment_v4())),
        expect(Problem::Unreachable)
    );
    let too_big = |next_hop_mtu| {
        Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::FragmentationNeeded {
            next_hop_mtu,
        })
    };
    assert_eq!(
        heard(&packet_v4(too_big(900), &segment_v4())),
        expect(Problem::TooBig { mtu: 900 })
    );
    // 1,040 bytes did not fit: an old router does not say what would.
    assert_eq!(
        heard(&packet_v4(too_big(0), &segment_v4())),
        expect(Problem::TooBig { mtu: 1_006 })
    );
    assert_eq!(
        heard(&packet_v6(
            Icmpv6Type::PacketTooBig { mtu: 1_300 },
            &segment_v6()
        )),
        expect(Problem::TooBig { mtu: 1_300 })
    );
    assert_eq!(
        heard(&packet_v6(
            Icmpv6Type::DestinationUnreachable(DestUnreachableCode::NoRoute),
            &segment_v6()
        )),
        expect(Problem::Unreachable)
    );
}

#[test]
fn what_is_damaged_or_about_something_else_is_not_heard() {
    let unreachable = Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Host);
    let mut udp = segment_v4();
    udp[9] = 17;
    assert_eq!(heard(&packet_v4(unreachable.clone(), &udp)), None);
    assert_eq!(
        heard(&packet_v4(unreachable.clone(), &segment_v4()[..27])),
        None,
        "cut inside the sequence number"
    );
    let mut damaged = packet_v4(unreachable, &segment_v4());
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(heard(&damaged), None);
    let mut damaged = packet_v6(Icmpv6Type::PacketTooBig { mtu: 1_300 }, &segment_v6());
    damaged[46] ^= 1;
    assert_eq!(heard(&damaged), None);
}

#[test]
fn an_echo_is_answered_with_the_same_bytes() {
    let ping = etherparse::IcmpEchoHeader { id: 7, seq: 9 };
    let request = packet_v4(Icmpv4Type::EchoRequest(ping), b"payload");
    let packet = ip::parse(&request).unwrap();
    let Some(Message::EchoRequest(request)) = parse(&packet) else {
        panic!("{packet:?}")
    };
    let mut reply = std::vec![0; request.len()];
    emit_echo_reply(&mut reply, packet.dst, packet.src, request);
    let (header, payload) = Icmpv4Header::from_slice(&reply).unwrap();
    assert_eq!(header.icmp_type, Icmpv4Type::EchoReply(ping));
    assert_eq!(payload, b"payload");
    assert_eq!(checksum::internet(&reply), [0, 0]);

    let request = packet_v6(Icmpv6Type::EchoRequest(ping), b"payload");
    let packet = ip::parse(&request).unwrap();
    let Some(Message::EchoRequest(request)) = parse(&packet) else {
        panic!("{packet:?}")
    };
    let mut reply = std::vec![0; request.len()];
    emit_echo_reply(&mut reply, packet.dst, packet.src, request);
    let (header, payload) = Icmpv6Header::from_slice(&reply).unwrap();
    assert_eq!(header.icmp_type, Icmpv6Type::EchoReply(ping));
    assert_eq!(payload, b"payload");
    let slice = Icmpv6Slice::from_slice(&reply).unwrap();
    assert!(slice.is_checksum_valid([0x20; 16], [0x22; 16]));
}

proptest! {
    #[test]
    fn any_message_is_survived(payload in proptest::collection::vec(any::<u8>(), 0..200), six: bool) {
        let (src, dst): (IpAddr, IpAddr) = if six {
            (core::net::Ipv6Addr::LOCALHOST.into(), core::net::Ipv6Addr::LOCALHOST.into())
        } else {
            (core::net::Ipv4Addr::LOCALHOST.into(), core::net::Ipv4Addr::LOCALHOST.into())
        };
        let mut payload = payload;
        // Most would fail at the checksum.
        if payload.len() >= 4 {
            payload[2..4].fill(0);
            let sum = if six {
                let mut sum = Sum::pseudo_header(src, dst, PROTOCOL_ICMPV6, payload.len());
                sum.add(&payload);
                sum.finish()
            } else {
                checksum::internet(&payload)
            };
            payload[2..4].copy_from_slice(&sum);
        }
        let protocol = if six { PROTOCOL_ICMPV6 } else { PROTOCOL_ICMP };
        let packet = Packet { src, dst, ecn: crate::Ecn::NotEct, protocol, payload: &payload };
        let _ = parse(&packet);
    }
}

#[test]
fn errors_that_are_written_are_those_of_another_implementation() {
    use etherparse::icmpv4::DestUnreachableHeader as V4;
    use etherparse::icmpv6::DestUnreachableCode as V6;
    for (reason, v4, v6) in [
        (Unreachable::Network, V4::Network, V6::NoRoute),
        (Unreachable::Host, V4::Host, V6::Address),
        (Unreachable::Port, V4::Port, V6::Port),
        (
            Unreachable::Prohibited,
            V4::FilterProhibited,
            V6::Prohibited,
        ),
    ] {
        for (packet, quoted) in [
            (
                packet_v4(Icmpv4Type::DestinationUnreachable(v4), &segment_v4()),
                segment_v4(),
            ),
            (
                packet_v6(Icmpv6Type::DestinationUnreachable(v6), &segment_v6()[..60]),
                segment_v6()[..60].to_vec(),
            ),
        ] {
            let theirs = ip::parse(&packet).unwrap();
            let mut out = [0xff; 200];
            let len = emit_unreachable(&mut out, theirs.src, theirs.dst, reason, &quoted);
            assert_eq!(out[..len], *theirs.payload, "{reason:?}");
        }
    }
    let mut out = [0; 1000];
    let (src, dst) = (IpAddr::from([1; 4]), IpAddr::from([2; 4]));
    let len = emit_unreachable(&mut out, src, dst, Unreachable::Host, &[0; 2000]);
    assert_eq!(len, HEADER_LEN + MAX_QUOTE);
}
