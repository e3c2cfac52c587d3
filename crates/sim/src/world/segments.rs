//! How the queues of radios read the TCP headers of packets.

use tack_wire::checksum::{PROTOCOL_TCP, PROTOCOL_UDP};
use tack_wire::tack;
use tack_wlan::mac::discipline::{Flags, OtherOptions, Segment, SegmentReader, Timestamps};

use crate::packet::Packet;

/// Reads TCP over IPv4, and TCP in UDP where whoever made the packet has declared what it is: the emulator, which looks into
/// its datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderReader;

/// Addresses, protocol, ports; within UDP the ports of both. Zeros where there is none.
type Flow = [u8; 17];

impl SegmentReader<Packet> for HeaderReader {
    type Flow = Flow;

    #[inline]
    fn flow(&self, packet: &Packet) -> Option<Flow> {
        let mut flow = [0; 17];
        flow[..8].copy_from_slice(&packet.head[12..20]);
        flow[8] = packet.protocol();
        flow[9..13].copy_from_slice(packet.transport().get(..4)?);
        match packet.protocol() {
            PROTOCOL_TCP if !is_fragment(packet) => Some(flow),
            PROTOCOL_UDP if packet.declared.is_some() => {
                flow[13..].copy_from_slice(packet.payload.get(..4)?);
                Some(flow)
            }
            _ => None,
        }
    }

    fn segment(&self, packet: &Packet) -> Option<Segment> {
        let traffic_class = packet.head[1];
        match packet.protocol() {
            PROTOCOL_TCP if !is_fragment(packet) => {
                let segment = read(packet.transport(), packet.payload.len())?;
                Some(Segment {
                    traffic_class,
                    ..segment
                })
            }
            // Data may be something else than TCP.
            PROTOCOL_UDP if packet.declared == Some(tack_wlan::Class::TransportAck) => {
                let segment = read(&packet.payload, 0)?;
                Some(Segment {
                    traffic_class,
                    ..segment
                })
            }
            _ => None,
        }
    }
}

/// True for any fragment of an IP packet: more fragments follow, or the offset is not zero (RFC 791 §3.1).
fn is_fragment(packet: &Packet) -> bool {
    u16::from_be_bytes([packet.head[6], packet.head[7]]) & 0x3fff != 0
}

/// Reads a header from the start of `bytes`; the payload is what follows it, and `more`.
fn read(bytes: &[u8], more: usize) -> Option<Segment> {
    let fixed = bytes.first_chunk::<{ tack_wire::segment::HEADER_LEN }>()?;
    let header_len = usize::from(fixed[12] >> 4) * 4;
    let options = bytes.get(tack_wire::segment::HEADER_LEN..header_len)?;
    let mut segment = Segment {
        flags: Flags(u16::from_be_bytes([fixed[12] & 0x0f, fixed[13]])),
        ack: word(&fixed[8..]),
        payload: (bytes.len() - header_len + more) as u32,
        ..Segment::default()
    };
    read_options(options, &mut segment);
    Some(segment)
}

/// Reads the options. The parser of `tack-wire` says how many are unknown, but not which, and forgives malformed ones; a filter
/// has to keep its hands off them.
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
