//! Flipped bits.

use bytes::BytesMut;
use tack_base::random::RandomStream;

use crate::packet::Packet;

/// Flips bits in packets of one direction.
#[derive(Clone, Debug)]
pub struct Damage {
    probability: f64,
    stream: RandomStream,
}

impl Damage {
    /// Damages packets with this probability.
    pub fn new(probability: f64, seed: u64, direction: u64) -> Self {
        Self {
            probability,
            stream: RandomStream::new(seed, "corrupt", direction),
        }
    }

    /// Draws whether `packet` is damaged, and flips one or more bits of one of its bytes when it
    /// is: header or payload, each byte equally likely.
    ///
    /// The checksums are written first, as the sender would have. Damage within one byte is always
    /// noticed by them, so a run in which damaged bytes reach an application has found a bug,
    /// not the 1-in-65,536 chance of a wider burst.
    pub fn strike(&mut self, packet: &mut Packet) -> bool {
        if !self.stream.chance(self.probability) {
            return false;
        }
        packet.write_checksums();
        let at = self.stream.below(packet.len() as u64) as usize;
        let mask = 1 + self.stream.below(255) as u8;
        if let Some(in_payload) = at.checked_sub(packet.head.len()) {
            // The payload is shared with whoever else holds the packet: damage a copy.
            let mut copy = BytesMut::from(&packet.payload[..]);
            copy[in_payload] ^= mask;
            packet.payload = copy.freeze();
        } else {
            packet.head[at] ^= mask;
        }
        true
    }
}
