//! ROHC-TCP behind the codec of TCP/HACK: what the radios' drivers know of packets.

mod encapsulated;
mod md5;
mod tuple;

use std::collections::BTreeMap;

use tack_rohc::{Compressor, Config, Decompressor, Delivery, Mode};
use tack_wire::Segment;
use tack_wire::checksum::PROTOCOL_TCP;
use tack_wlan::mac::hack::{Codec, DecodeError, FlowId, Rebuilt};

use crate::packet::{Checksums, Packet};
use crate::scenario::HackCodec;
use tuple::{Ports, Tuple};

/// Rebuilds the acknowledgements of one flow.
#[derive(Debug)]
struct Rebuilder {
    decompressor: Decompressor,
    /// Ports of the UDP header around them, if there is one: the same in all packets of a flow, as
    /// the native ones show.
    udp: Option<Ports>,
}

/// The contexts between two radios, at one of them.
#[derive(Debug)]
pub(crate) struct RohcCodec {
    mode: Mode,
    compressors: BTreeMap<u8, Compressor>,
    rebuilders: BTreeMap<u8, Rebuilder>,
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
            rebuilders: BTreeMap::new(),
            last: None,
        }
    }

    fn identify(&mut self, tuple: Tuple) -> FlowId {
        match self.last {
            Some((last, flow)) if last == tuple => flow,
            _ => {
                let flow = tuple.flow_id();
                self.last = Some((tuple, flow));
                flow
            }
        }
    }
}

/// The packet as it is on the wire.
fn wire(packet: &Packet) -> Packet {
    let mut packet = packet.clone();
    packet.write_checksums();
    packet
}

/// IP and TCP header of an acknowledgement as ROHC-TCP takes them: as they are on the wire, without
/// what is around the segment.
fn headers(packet: &Packet) -> Option<Packet> {
    let bare = match packet.protocol() {
        PROTOCOL_TCP => packet.clone(),
        _ => encapsulated::unwrap(packet)?,
    };
    Some(wire(&bare))
}

impl Codec<Packet> for RohcCodec {
    fn flow(&mut self, packet: &Packet) -> Option<FlowId> {
        const FLAGS: u8 = 0x17;
        const ACK: u8 = 0x10;
        let (header, payload) = packet.tcp()?;
        let is_ack = payload == 0 && header[13] & FLAGS == ACK;
        let is_known = packet.protocol() == PROTOCOL_TCP || encapsulated::is_sound(packet);
        (is_ack && is_known).then_some(())?;
        Tuple::of(packet).map(|tuple| self.identify(tuple))
    }

    fn native_sent(&mut self, cid: u8, packet: &Packet) {
        let Some(packet) = headers(packet) else {
            return;
        };
        // Contexts at the other end are exact: responses carry all that is not confirmed, in order.
        let config = Config {
            mode: self.mode,
            robustness: 1,
        };
        let compressor = self.compressors.entry(cid);
        let compressor = compressor.or_insert_with(|| Compressor::new(config));
        // One that it refuses is refused at the other end, too: both contexts stay.
        let _refused = compressor.handle_native(&packet.head, Delivery::Certain);
    }

    fn compress(&mut self, cid: u8, packet: &Packet, out: &mut Vec<u8>) -> bool {
        let Some(compressor) = self.compressors.get_mut(&cid) else {
            return false;
        };
        let Some(packet) = headers(packet) else {
            return false;
        };
        match compressor.compress(&packet.head) {
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

    fn release_sending(&mut self, cid: u8) {
        self.compressors.remove(&cid);
    }

    fn release_receiving(&mut self, cid: u8) {
        self.rebuilders.remove(&cid);
    }

    fn native_received(&mut self, cid: u8, packet: &Packet) {
        let Some(bare) = headers(packet) else {
            return;
        };
        let mode = self.mode;
        let rebuilder = self.rebuilders.entry(cid).or_insert_with(|| Rebuilder {
            decompressor: Decompressor::new(mode),
            udp: None,
        });
        if rebuilder.decompressor.handle_native(&bare.head).is_ok() {
            rebuilder.udp = (packet.protocol() != PROTOCOL_TCP).then(|| packet.ports());
        }
    }

    fn decompress(&mut self, cid: u8, bytes: &[u8]) -> Result<Rebuilt<Packet>, DecodeError> {
        let rebuilder = self.rebuilders.get_mut(&cid);
        let rebuilder = rebuilder.ok_or(DecodeError::Malformed)?;
        let made = rebuilder
            .decompressor
            .decompress(bytes)
            .map_err(|error| match error {
                tack_rohc::DecodeError::Crc { .. } => DecodeError::Crc,
                _ => DecodeError::Malformed,
            })?;
        let bare = Packet::from_head(&made.packet).ok_or(DecodeError::Malformed)?;
        let packet = match rebuilder.udp {
            None => bare,
            Some(ports) => encapsulated::wrap(&bare, ports).ok_or(DecodeError::Crc)?,
        };
        Ok(Rebuilt {
            len: packet.len() as u32,
            packet,
        })
    }

    fn is_same(&self, a: &Packet, b: &Packet) -> bool {
        if a.checksums == b.checksums && a.checksums == Checksums::Blank {
            // Equal bytes have equal checksums.
            return a.payload == b.payload && a.head == b.head;
        }
        a.payload == b.payload && wire(a).head == wire(b).head
    }

    fn adopt(&self, rebuilt: &mut Packet, original: &Packet) {
        *rebuilt = original.clone();
    }

    fn timestamp(&self, ack: &Packet) -> Option<u32> {
        Some(timestamps(ack)?.0)
    }

    fn echo(&mut self, data: &Packet) -> Option<(FlowId, u32)> {
        let (_, echo) = timestamps(data)?;
        let flow = Tuple::of(data)?.reverse();
        Some((self.identify(flow), echo))
    }
}

/// Timestamp value and echo of a segment.
fn timestamps(packet: &Packet) -> Option<(u32, u32)> {
    let (header, _) = packet.tcp()?;
    let stamps = Segment::parse(header).ok()?.header.options.timestamps?;
    Some((stamps.value, stamps.echo))
}
