//! A codec for tests: packets are numbers, a compressed one is the difference from the one before
//! and a check.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::codec::{Codec, DecodeError, FlowId, Rebuilt};

/// A packet: flow, number, and whether it is an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Toy {
    pub(crate) flow: u128,
    pub(crate) number: u32,
    pub(crate) is_ack: bool,
}

/// Contexts of one radio with another.
#[derive(Debug, Default)]
pub(crate) struct ToyCodec {
    sent: BTreeMap<u8, u32>,
    received: BTreeMap<u8, Toy>,
}

fn check(number: u32) -> u8 {
    (number.wrapping_mul(0x9e37_79b1) >> 24) as u8
}

impl Codec<Toy> for ToyCodec {
    fn flow(&mut self, packet: &Toy) -> Option<FlowId> {
        packet.is_ack.then_some(FlowId(packet.flow))
    }

    fn native_sent(&mut self, cid: u8, packet: &Toy) {
        self.sent.insert(cid, packet.number);
    }

    fn compress(&mut self, cid: u8, packet: &Toy, out: &mut Vec<u8>) -> bool {
        let Some(last) = self.sent.get_mut(&cid) else {
            return false;
        };
        let Ok(step) = u8::try_from(packet.number.wrapping_sub(*last)) else {
            return false;
        };
        *last = packet.number;
        out.extend([step, check(packet.number)]);
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
        let [step, expected] = *bytes else {
            return Err(DecodeError::Malformed);
        };
        let number = last.number + u32::from(step);
        if check(number) != expected {
            return Err(DecodeError::Crc);
        }
        last.number = number;
        Ok(Rebuilt {
            packet: *last,
            len: 52,
        })
    }

    fn is_same(&self, a: &Toy, b: &Toy) -> bool {
        a == b
    }

    fn adopt(&self, _rebuilt: &mut Toy, _original: &Toy) {}
}
