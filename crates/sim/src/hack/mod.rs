//! ROHC-TCP behind the codec of TCP/HACK: what the radios' drivers know of packets.

mod md5;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use arrayvec::ArrayVec;
use bytes::Bytes;
use tack_base::Instant;
use tack_rohc::{Compressor, Config, Decompressor, Delivery, Mode};
use tack_wire::Segment;
use tack_wire::checksum::PROTOCOL_TCP;
use tack_wlan::mac::hack::{Codec, DecodeError, FlowId, Rebuilt};

use crate::packet::{Checksums, Packet};
use crate::scenario::HackCodec;

/// Addresses and ports: of one direction of a connection.
type Tuple = (Ipv4Addr, Ipv4Addr, u16, u16);

/// The contexts between two radios, at one of them.
#[derive(Debug)]
pub(crate) struct RohcCodec {
    mode: Mode,
    compressors: BTreeMap<u8, Compressor>,
    decompressors: BTreeMap<u8, Decompressor>,
    /// The flow asked for last.
    last: Option<(Tuple, FlowId)>,
}

impl RohcCodec {
    /// Without contexts.
    pub(crate) fn new(codec: HackCodec) -> Self {
        Self {
            mode: match codec {
                HackCodec::Rfc => Mode::Rfc,
                HackCodec::Lean => Mode::Lean,
                HackCodec::LeanNoChecksum => Mode::LeanNoChecksum,
            },
            compressors: BTreeMap::new(),
            decompressors: BTreeMap::new(),
            last: None,
        }
    }

    fn identify(&mut self, tuple: Tuple) -> FlowId {
        match self.last {
            Some((last, flow)) if last == tuple => flow,
            _ => {
                let flow = flow_id(tuple);
                self.last = Some((tuple, flow));
                flow
            }
        }
    }
}

/// MD5 over source and destination address, source and destination port and protocol, in network order. Its last byte is the
/// CID.
fn flow_id((src, dst, from, to): Tuple) -> FlowId {
    let mut input = ArrayVec::<u8, 13>::new();
    input.extend(src.octets());
    input.extend(dst.octets());
    input.extend(from.to_be_bytes());
    input.extend(to.to_be_bytes());
    input.push(PROTOCOL_TCP);
    FlowId(u128::from_be_bytes(md5::digest(&input)))
}

/// The headers as they are on the wire.
fn wire(packet: &Packet) -> Packet {
    let mut packet = packet.clone();
    packet.write_checksums();
    packet
}

fn tuple(packet: &Packet) -> Tuple {
    let (from, to) = packet.ports();
    (packet.src(), packet.dst(), from, to)
}

impl Codec<Packet> for RohcCodec {
    fn flow(&mut self, packet: &Packet) -> Option<FlowId> {
        const FLAGS: u8 = 0x17;
        const ACK: u8 = 0x10;
        let is_ack = packet.payload.is_empty()
            && packet.protocol() == PROTOCOL_TCP
            && packet.transport()[13] & FLAGS == ACK;
        is_ack.then(|| self.identify(tuple(packet)))
    }

    fn native_sent(&mut self, cid: u8, packet: &Packet) {
        // Contexts at the other end are exact: responses carry all that is not confirmed, in order.
        let config = Config {
            mode: self.mode,
            robustness: 1,
        };
        let compressor = self.compressors.entry(cid);
        let compressor = compressor.or_insert_with(|| Compressor::new(config));
        // One that it refuses is refused at the other end, too: both contexts stay.
        let _refused = compressor.handle_native(&wire(packet).head, Delivery::Certain);
    }

    fn compress(&mut self, cid: u8, packet: &Packet, out: &mut Vec<u8>) -> bool {
        let Some(compressor) = self.compressors.get_mut(&cid) else {
            return false;
        };
        match compressor.compress(&wire(packet).head) {
            Ok(compressed) => {
                out.extend_from_slice(&compressed.bytes);
                true
            }
            Err(_) => false,
        }
    }

    fn forget(&mut self, cid: u8) {
        if let Some(compressor) = self.compressors.get_mut(&cid) {
            compressor.handle_loss();
        }
    }

    fn native_received(&mut self, cid: u8, packet: &Packet) {
        let mode = self.mode;
        let decompressor = self.decompressors.entry(cid);
        let decompressor = decompressor.or_insert_with(|| Decompressor::new(mode));
        let _refused = decompressor.handle_native(&wire(packet).head);
    }

    fn decompress(&mut self, cid: u8, bytes: &[u8]) -> Result<Rebuilt<Packet>, DecodeError> {
        let decompressor = self.decompressors.get_mut(&cid);
        let decompressor = decompressor.ok_or(DecodeError::Malformed)?;
        let made = decompressor
            .decompress(bytes)
            .map_err(|error| match error {
                tack_rohc::DecodeError::Crc { .. } => DecodeError::Crc,
                _ => DecodeError::Malformed,
            })?;
        let mut head = ArrayVec::new();
        head.try_extend_from_slice(&made.packet)
            .map_err(|_| DecodeError::Malformed)?;
        let packet = Packet {
            head,
            payload: Bytes::new(),
            checksums: Checksums::Written,
            declared: None,
            sent: Instant::ZERO,
        };
        Ok(Rebuilt {
            len: packet.len() as u32,
            packet,
        })
    }

    fn is_same(&self, a: &Packet, b: &Packet) -> bool {
        a.payload == b.payload && wire(a).head == wire(b).head
    }

    fn adopt(&self, rebuilt: &mut Packet, original: &Packet) {
        *rebuilt = original.clone();
    }

    fn timestamp(&self, ack: &Packet) -> Option<u32> {
        Some(timestamps(ack)?.0)
    }

    fn echo(&mut self, data: &Packet) -> Option<(FlowId, u32)> {
        if data.protocol() != PROTOCOL_TCP {
            return None;
        }
        let (_, echo) = timestamps(data)?;
        let (src, dst, from, to) = tuple(data);
        Some((self.identify((dst, src, to, from)), echo))
    }
}

/// Timestamp value and echo of a segment.
fn timestamps(packet: &Packet) -> Option<(u32, u32)> {
    let segment = Segment::parse(packet.transport()).ok()?;
    let stamps = segment.header.options.timestamps?;
    Some((stamps.value, stamps.echo))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_identifier_is_the_last_byte_of_the_hash() {
        let tuple = ([192, 168, 1, 2].into(), [10, 0, 0, 1].into(), 40_000, 5_001);
        let flow = flow_id(tuple);
        assert_eq!(flow.0, 0x872e_5d73_e79b_978b_238a_2ffd_6213_8a6f);
        assert_eq!(flow.cid(), 0x6f);
    }
}
