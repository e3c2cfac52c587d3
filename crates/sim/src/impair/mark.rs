//! Congestion-experienced marks by a node on the way (RFC 3168 §5).

use tack_base::random::RandomStream;

use crate::link::Bound;
use crate::packet::Packet;

/// Settings of marking in one direction; zero and `None` are off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MarkConfig {
    /// Probability that a packet of a capable transport is marked.
    pub probability: f64,
    /// A packet of a capable transport that finds at least this much waiting is marked.
    pub threshold: Option<Bound>,
}

/// Marks in one direction.
#[derive(Clone, Debug)]
pub struct Mark {
    config: MarkConfig,
    stream: RandomStream,
}

impl Mark {
    /// Of direction `direction`.
    pub fn new(config: MarkConfig, seed: u64, direction: u64) -> Self {
        Self {
            config,
            stream: RandomStream::new(seed, "ecn_mark", direction),
        }
    }

    /// True when marking can happen at all.
    pub fn is_on(&self) -> bool {
        self.config.probability > 0.0 || self.config.threshold.is_some()
    }

    /// Marks `packet`, which finds `packets` and `bytes` waiting, when it should be. Says whether
    /// it was marked now.
    pub fn apply(&mut self, packet: &mut Packet, packets: usize, bytes: u64) -> bool {
        let over = match self.config.threshold {
            None => false,
            Some(Bound::Packets(bound)) => packets >= bound,
            Some(Bound::Bytes(bound)) => bytes >= bound,
        };
        let chosen = self.stream.chance(self.config.probability);
        (over | chosen) && packet.ecn() != tack_wire::Ecn::Ce && packet.mark_congestion()
    }
}
