//! Codecs for tests: packets are numbers, a compressed one is the difference from the one before
//! and a check.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::codec::{Codec, DecodeError, FlowId, Rebuilt};
use crate::mac::discipline::{Flags, Segment, SegmentReader, Timestamps};

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Toy {
    /// The flow of acknowledgements that it belongs to, or that answer it.
    pub(crate) flow: u128,
    pub(crate) number: u32,
    pub(crate) is_ack: bool,
    /// The timestamp of an acknowledgement, or the one that data echoes.
    pub(crate) stamp: Option<u32>,
}

/// Lets filters read packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToyReader;

impl SegmentReader<Toy> for ToyReader {
    type Flow = (u128, bool);

    fn flow(&self, packet: &Toy) -> Option<(u128, bool)> {
        Some((packet.flow, packet.is_ack))
    }

    fn segment(&self, packet: &Toy) -> Option<Segment> {
        Some(Segment {
            flags: Flags::ACK,
            ack: packet.number,
            payload: if packet.is_ack { 0 } else { 1_460 },
            timestamps: packet.stamp.map(|value| Timestamps { value, echo: 0 }),
            ..Segment::default()
        })
    }
}

/// Contexts of one radio with another.
#[derive(Debug, Default)]
pub(crate) struct ToyCodec {
    sent: BTreeMap<u8, Toy>,
    received: BTreeMap<u8, Toy>,
}

fn check(number: u32) -> u8 {
    (number.wrapping_mul(0x9e37_79b1) >> 24) as u8
}

/// How far one number is behind another, if a byte holds it.
fn step(from: u32, to: u32) -> Option<u8> {
    u8::try_from(to.wrapping_sub(from)).ok()
}

impl Codec<Toy> for ToyCodec {
    fn flow(&mut self, packet: &Toy) -> Option<FlowId> {
        packet.is_ack.then_some(FlowId(packet.flow))
    }

    fn native_sent(&mut self, cid: u8, packet: &Toy) {
        self.sent.insert(cid, *packet);
    }

    fn compress(&mut self, cid: u8, packet: &Toy, out: &mut Vec<u8>) -> bool {
        let Some(last) = self.sent.get_mut(&cid) else {
            return false;
        };
        let Some(step_of_number) = step(last.number, packet.number) else {
            return false;
        };
        let step_of_stamp = match (last.stamp, packet.stamp) {
            (None, None) => None,
            (Some(old), Some(new)) if step(old, new).is_some() => step(old, new),
            _ => return false,
        };
        *last = *packet;
        out.extend([step_of_number, check(packet.number)]);
        out.extend(step_of_stamp);
        true
    }

    fn forget(&mut self, cid: u8) {
        self.sent.remove(&cid);
    }

    fn release_sending(&mut self, cid: u8) {
        self.sent.remove(&cid);
    }

    fn release_receiving(&mut self, cid: u8) {
        self.received.remove(&cid);
    }

    fn native_received(&mut self, cid: u8, packet: &Toy) {
        self.received.insert(cid, *packet);
    }

    fn decompress(&mut self, cid: u8, bytes: &[u8]) -> Result<Rebuilt<Toy>, DecodeError> {
        let last = self.received.get_mut(&cid).ok_or(DecodeError::Malformed)?;
        let (step, expected, stamp) = match (bytes, last.stamp) {
            (&[step, expected], None) => (step, expected, None),
            (&[step, expected, of_stamp], Some(stamp)) => {
                let stamp = stamp.wrapping_add(u32::from(of_stamp));
                (step, expected, Some(stamp))
            }
            _ => return Err(DecodeError::Malformed),
        };
        let number = last.number.wrapping_add(u32::from(step));
        if check(number) != expected {
            return Err(DecodeError::Crc);
        }
        (last.number, last.stamp) = (number, stamp);
        Ok(Rebuilt {
            packet: *last,
            len: 52,
        })
    }

    fn is_same(&self, a: &Toy, b: &Toy) -> bool {
        a == b
    }

    fn adopt(&self, _rebuilt: &mut Toy, _original: &Toy) {}

    fn timestamp(&self, ack: &Toy) -> Option<u32> {
        ack.stamp
    }

    fn echo(&mut self, data: &Toy) -> Option<(FlowId, u32)> {
        let stamp = data.stamp.filter(|_| !data.is_ack)?;
        Some((FlowId(data.flow), stamp))
    }
}

/// A codec with a fault that its check does not find: of so many packets one is rebuilt with
/// another number.
#[derive(Debug)]
pub(crate) struct WrongCodec {
    inner: ToyCodec,
    every: u32,
    rebuilt: u32,
}

impl WrongCodec {
    pub(crate) fn new(every: u32) -> Self {
        Self {
            inner: ToyCodec::default(),
            every,
            rebuilt: 0,
        }
    }
}

impl Codec<Toy> for WrongCodec {
    fn flow(&mut self, packet: &Toy) -> Option<FlowId> {
        self.inner.flow(packet)
    }

    fn native_sent(&mut self, cid: u8, packet: &Toy) {
        self.inner.native_sent(cid, packet);
    }

    fn compress(&mut self, cid: u8, packet: &Toy, out: &mut Vec<u8>) -> bool {
        self.inner.compress(cid, packet, out)
    }

    fn forget(&mut self, cid: u8) {
        self.inner.forget(cid);
    }

    fn release_sending(&mut self, cid: u8) {
        self.inner.release_sending(cid);
    }

    fn release_receiving(&mut self, cid: u8) {
        self.inner.release_receiving(cid);
    }

    fn native_received(&mut self, cid: u8, packet: &Toy) {
        self.inner.native_received(cid, packet);
    }

    fn decompress(&mut self, cid: u8, bytes: &[u8]) -> Result<Rebuilt<Toy>, DecodeError> {
        let mut made = self.inner.decompress(cid, bytes)?;
        self.rebuilt += 1;
        if self.rebuilt.is_multiple_of(self.every) {
            made.packet.number ^= 1 << 20;
        }
        Ok(made)
    }

    fn is_same(&self, a: &Toy, b: &Toy) -> bool {
        self.inner.is_same(a, b)
    }

    fn adopt(&self, rebuilt: &mut Toy, original: &Toy) {
        self.inner.adopt(rebuilt, original);
    }
}
