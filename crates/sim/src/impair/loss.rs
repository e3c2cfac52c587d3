//! Random loss: independent, bursty, and of acknowledgements only.

use tack_base::random::RandomStream;

use crate::packet::Packet;

/// A two-state chain (Gilbert 1960, Elliott 1963); the state changes once a packet, before the
/// packet's fate is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability of going from good to bad.
    pub good_to_bad: f64,
    /// Probability of going from bad to good.
    pub bad_to_good: f64,
    /// Loss probability in the good state.
    pub loss_good: f64,
    /// Loss probability in the bad state.
    pub loss_bad: f64,
}

/// Settings of loss in one direction; zero and `None` are off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LossConfig {
    /// Probability that a packet is lost, each for itself.
    pub bernoulli: f64,
    /// Probability that a pure TCP acknowledgement is lost, on top of the others.
    pub acks: f64,
    /// Loss in bursts.
    pub gilbert_elliott: Option<GilbertElliott>,
}

/// Loss in one direction.
#[derive(Clone, Debug)]
pub struct Loss {
    config: LossConfig,
    independent: RandomStream,
    acks: RandomStream,
    bursts: RandomStream,
    is_bad: bool,
}

impl Loss {
    /// Loss of direction `direction`.
    pub fn new(config: LossConfig, seed: u64, direction: u64) -> Self {
        Self {
            config,
            independent: RandomStream::new(seed, "loss", direction),
            acks: RandomStream::new(seed, "ack_loss", direction),
            bursts: RandomStream::new(seed, "gilbert_elliott", direction),
            is_bad: false,
        }
    }

    /// Draws the fate of one packet: true when it is lost.
    #[inline]
    pub fn loses(&mut self, packet: &Packet) -> bool {
        // Every stream draws for every packet it concerns, whatever the others said.
        let independent = self.independent.chance(self.config.bernoulli);
        let burst = match self.config.gilbert_elliott {
            None => false,
            Some(chain) => self.burst(&chain),
        };
        let ack =
            self.config.acks > 0.0 && packet.is_pure_ack() && self.acks.chance(self.config.acks);
        independent | burst | ack
    }

    fn burst(&mut self, chain: &GilbertElliott) -> bool {
        let leave = if self.is_bad {
            chain.bad_to_good
        } else {
            chain.good_to_bad
        };
        self.is_bad ^= self.bursts.chance(leave);
        self.bursts.chance(if self.is_bad {
            chain.loss_bad
        } else {
            chain.loss_good
        })
    }
}
