//! How the queues of radios read the TCP headers of packets.

use tack_wire::checksum::PROTOCOL_UDP;
use tack_wire::tack;
use tack_wlan::mac::discipline::{Flags, OtherOptions, Segment, SegmentReader, Timestamps};

use crate::packet::Packet;

/// Reads TCP over IPv4, and TCP in UDP where the packet's maker says that it is: the emulator,
/// which looks into its datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderReader;

/// Addresses, protocol, ports; within UDP the ports of both. Zeros where there is none.
type Flow = [u8; 17];

impl SegmentReader<Packet> for HeaderReader {
    type Flow = Flow;

    #[inline]
    fn flow(&self, packet: &Packet) -> Option<Flow> {
        let (tcp, _) = packet.tcp()?;
        let mut flow = [0; 17];
        flow[..8].copy_from_slice(&packet.head[12..20]);
        flow[8] = packet.protocol();
        flow[9..13].copy_from_slice(&tcp[..4]);
        if packet.protocol() == PROTOCOL_UDP {
            flow[13..].copy_from_slice(&packet.transport()[..4]);
        }
        Some(flow)
    }

    fn segment(&self, packet: &Packet) -> Option<Segment> {
        const FIXED: usize = tack_wire::segment::HEADER_LEN;
        let (tcp, payload) = packet.tcp()?;
        let mut segment = Segment {
            flags: Flags(u16::from_be_bytes([tcp[12] & 0x0f, tcp[13]])),
            ack: word(&tcp[8..]),
            payload: payload as u32,
            traffic_class: packet.head[1],
            ..Segment::default()
        };
        read_options(&tcp[FIXED..], &mut segment);
        Some(segment)
    }
}

/// Reads the options. The parser of `tack-wire` says how many are unknown, but not which, and
/// forgives malformed ones; a filter has to keep its hands off them.
fn read_options(options: &[u8], segment: &mut Segment) {
    const SIGNATURE: u8 = 19;
    let mut rest = options;
    let mut others = OtherOptions::None;
    while let Some((kind, tail)) = rest.split_first() {
        match kind {
            0 => break,
            1 => {
                rest = tail;
                continue;
            }
            _ => {}
        }
        let len = usize::from(tail.first().copied().unwrap_or(0));
        let Some(body) = rest.get(2..len) else {
            others = others.max(OtherOptions::Unknown);
            break;
        };
        match (*kind, body.len()) {
            // A kind that comes twice has no settled meaning.
            (5, _) if !segment.sack.is_empty() => others = others.max(OtherOptions::Unknown),
            (8, _) if segment.timestamps.is_some() => others = others.max(OtherOptions::Unknown),
            (5, 8 | 16 | 24 | 32) => {
                let blocks = body.chunks_exact(8);
                segment.sack = blocks
                    .map(|block| (word(block), word(&block[4..])))
                    .collect();
            }
            (8, 8) => {
                segment.timestamps = Some(Timestamps {
                    value: word(body),
                    echo: word(&body[4..]),
                });
            }
            (SIGNATURE, _) => others = others.max(OtherOptions::Signature),
            // Kinds for experiments are shared, told apart by what comes first (RFC 6994 §3).
            (tack::OPTION_KIND, _) if body.starts_with(&tack::EXPERIMENT_ID.to_be_bytes()) => {
                others = others.max(OtherOptions::Tack)
            }
            _ => others = others.max(OtherOptions::Unknown),
        }
        rest = &rest[len..];
    }
    segment.options = others;
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use bytes::Bytes;
    use tack_base::Instant;
    use tack_wire::checksum::PROTOCOL_TCP;
    use tack_wire::{Ecn, Header, SeqNum, TackOption, TcpOptions};

    use super::*;
    use crate::packet::Inner;

    fn packet(header: &Header, payload: &'static [u8]) -> Packet {
        let mut bytes = [0; tack_wire::segment::MAX_HEADER_LEN];
        let len = header.emit(&mut bytes);
        let addresses = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        Packet::new(
            addresses,
            PROTOCOL_TCP,
            Ecn::Ect0,
            &bytes[..len],
            Bytes::from_static(payload),
            Instant::ZERO,
        )
    }

    fn header() -> Header {
        Header {
            src_port: 1,
            dst_port: 2,
            ack: SeqNum(7),
            flags: tack_wire::Flags::ACK,
            ..Header::default()
        }
    }

    fn segment(packet: &Packet) -> Segment {
        HeaderReader.segment(packet).unwrap()
    }

    #[test]
    fn a_segment_is_read_as_the_stack_writes_it() {
        let mut header = header();
        header.flags = tack_wire::Flags::ACK.with(tack_wire::Flags::ECE);
        header.options = TcpOptions {
            timestamps: Some(tack_wire::Timestamps { value: 3, echo: 4 }),
            ..TcpOptions::default()
        };
        let blocks = [(10, 20), (30, 40)];
        for (start, end) in blocks {
            header.options.sack.push(tack_wire::SackBlock {
                start: SeqNum(start),
                end: SeqNum(end),
            });
        }
        let read = segment(&packet(&header, b"hello"));
        let expected = Segment {
            flags: Flags(0x050),
            ack: 7,
            payload: 5,
            timestamps: Some(Timestamps { value: 3, echo: 4 }),
            sack: blocks.into_iter().collect(),
            options: OtherOptions::None,
            traffic_class: Ecn::Ect0 as u8,
        };
        assert_eq!(read, expected);
        assert!(segment(&packet(&header, b"")).is_plain_ack());
    }

    #[test]
    fn options_are_told_apart() {
        let with = |options: &[u8]| {
            let mut packet = packet(&header(), b"");
            assert!(packet.head.append(options));
            packet.head[32] = (((20 + options.len()) / 4) << 4) as u8;
            segment(&packet).options
        };
        let mut signature = [0; 20];
        signature[..2].copy_from_slice(&[19, 18]);
        assert_eq!(with(&signature), OtherOptions::Signature);
        let [high, low] = tack::EXPERIMENT_ID.to_be_bytes();
        assert_eq!(with(&[253, 8, high, low, 0, 0, 0, 0]), OtherOptions::Tack);
        assert_eq!(with(&[]), OtherOptions::None);
        assert_eq!(with(&[1, 1, 1, 0]), OtherOptions::None);
        for unknown in [
            // Another experiment, MPTCP, a window scale, SACK of half a block, a length that is
            // too long or none.
            [253, 4, 0, 0].as_slice(),
            &[30, 4, 0, 0],
            &[1, 3, 3, 7],
            &[5, 6, 0, 0, 0, 0, 1, 1],
            &[8, 11, 0, 0],
            &[8, 1, 0, 0],
            &[1, 1, 1, 8],
        ] {
            assert_eq!(with(unknown), OtherOptions::Unknown, "{unknown:?}");
        }
    }

    #[test]
    fn every_segment_of_tack_is_known_as_such() {
        let mut header = header();
        header.options.tack = Some(TackOption::Data(tack::DataStamp {
            number: 1,
            departure: 2,
        }));
        let read = segment(&packet(&header, b""));
        assert_eq!(read.options, OtherOptions::Tack);
        assert!(!read.is_ack());
    }

    #[test]
    fn flows_differ_by_addresses_ports_and_direction() {
        let one = packet(&header(), b"");
        let flow = HeaderReader.flow(&one);
        assert!(flow.is_some());
        for at in [15, 19, 21, 23] {
            let mut other = one.clone();
            other.head[at] ^= 1;
            assert_ne!(HeaderReader.flow(&other), flow, "byte {at}");
        }
        let mut back = one.clone();
        back.head[12..20].rotate_left(4);
        back.head[20..24].rotate_left(2);
        assert_ne!(HeaderReader.flow(&back), flow);
        let mut acknowledged = one.clone();
        acknowledged.head[31] ^= 1;
        assert_eq!(HeaderReader.flow(&acknowledged), flow);
    }

    #[test]
    fn fragments_and_datagrams_have_no_flow() {
        let mut fragment = packet(&header(), b"");
        fragment.head[6] = 0x20;
        assert_eq!(HeaderReader.flow(&fragment), None);
        assert_eq!(HeaderReader.segment(&fragment), None);
        let mut datagram = packet(&header(), b"");
        datagram.head[9] = PROTOCOL_UDP;
        assert_eq!(HeaderReader.flow(&datagram), None);
    }

    #[test]
    fn what_the_emulator_carries_in_udp_is_read_too() {
        let mut tcp = vec![0; 60];
        let len = header().emit(&mut tcp);
        tcp.truncate(len);
        let datagram = |ports: [u8; 2], inner| {
            let mut tcp = tcp.clone();
            tcp[3] = ports[0];
            let addresses = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
            let mut packet = Packet::new(
                addresses,
                PROTOCOL_UDP,
                Ecn::NotEct,
                &[0, ports[1], 0, 0, 0, 0, 0, 0],
                Bytes::from(tcp),
                Instant::ZERO,
            );
            packet.inner = inner;
            packet
        };
        let ack = datagram([2, 9], Inner::Segment);
        assert!(segment(&ack).is_plain_ack());
        // The ports of either header tell flows apart: two clients may have the same inside.
        for ports in [[3, 9], [2, 8]] {
            let other = datagram(ports, Inner::Segment);
            assert_ne!(HeaderReader.flow(&other), HeaderReader.flow(&ack));
        }
        // What only looks like a segment is left alone.
        let lookalike = datagram([2, 9], Inner::Unknown);
        assert_eq!(HeaderReader.flow(&lookalike), None);
        assert_eq!(HeaderReader.segment(&lookalike), None);
    }

    #[test]
    fn a_segment_that_is_cut_off_is_none() {
        let whole = packet(&header(), b"");
        for len in 0..whole.transport().len() {
            let mut cut = Packet::new(
                (whole.src(), whole.dst()),
                PROTOCOL_UDP,
                Ecn::NotEct,
                &[0; 8],
                Bytes::copy_from_slice(&whole.transport()[..len]),
                Instant::ZERO,
            );
            cut.inner = Inner::Segment;
            assert_eq!(HeaderReader.segment(&cut), None, "{len}");
        }
    }
}
