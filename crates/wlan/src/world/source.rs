//! Traffic without payload: sources that never run dry, and sources with a load of their own.

use alloc::vec::Vec;
use core::time::Duration;

use tack_base::Instant;
use tack_base::random::RandomStream;
use tack_base::time::nanos;

use super::config::Offer;
use crate::frame::{AccessCategory, Class, Msdu, NodeId};
use crate::mac::Station;

/// Packets kept in the queue for each receiver: two full Block ACK windows.
const LEVEL: usize = 128;

/// Packets without payload for some receivers in turn.
#[derive(Clone, Debug)]
pub(super) struct Source {
    at: NodeId,
    to: Vec<NodeId>,
    turn: usize,
    packet: u32,
    supply: Supply,
}

#[derive(Clone, Debug)]
enum Supply {
    Endless,
    Poisson {
        /// Mean time between packets.
        interval: Duration,
        /// When the next one comes.
        next: Instant,
        random: RandomStream,
    },
}

impl Source {
    /// A source that keeps the queue full.
    pub(super) fn endless(at: NodeId, to: &[NodeId], packet: u32) -> Self {
        Self {
            at,
            to: to.to_vec(),
            turn: 0,
            packet,
            supply: Supply::Endless,
        }
    }

    /// A source of contender number `index` that offers what `offer` says.
    pub(super) fn new(
        at: NodeId,
        to: &[NodeId],
        packet: u32,
        offer: Offer,
        seed: u64,
        index: u64,
    ) -> Self {
        let mut source = Self::endless(at, to, packet);
        if let Offer::Poisson { interval } = offer {
            let mut random = RandomStream::new(seed, "contender", index);
            let next = Instant::ZERO + exponential(&mut random, interval);
            source.supply = Supply::Poisson {
                interval,
                next,
                random,
            };
        }
        source
    }

    /// When its next packet comes; never, when they are there already.
    pub(super) fn next(&self) -> Instant {
        match self.supply {
            Supply::Endless => Instant::FAR_FUTURE,
            Supply::Poisson { next, .. } => next,
        }
    }

    /// Fills the queue up, if it is to be kept full.
    #[inline]
    pub(super) fn refill<M: Clone>(&mut self, now: Instant, station: &mut Station<M>) {
        if !matches!(self.supply, Supply::Endless) {
            return;
        }
        let level = LEVEL * self.to.len();
        while station.queue_len(AccessCategory::BestEffort) < level {
            if !self.enqueue(now, station) {
                return;
            }
        }
    }

    /// The packets that come by `now`. Those that find the queue full are lost, which the station
    /// counts.
    pub(super) fn arrive<M: Clone>(&mut self, now: Instant, station: &mut Station<M>) {
        while self.next() <= now {
            self.enqueue(now, station);
            if let Supply::Poisson {
                interval,
                next,
                random,
            } = &mut self.supply
            {
                *next += exponential(random, *interval);
            }
        }
    }

    /// Puts a packet into the queue. False when that was full.
    fn enqueue<M: Clone>(&mut self, now: Instant, station: &mut Station<M>) -> bool {
        let to = self.to[self.turn];
        self.turn = (self.turn + 1) % self.to.len();
        let msdu = Msdu {
            src: self.at,
            dst: to,
            len: self.packet,
            class: Class::Data,
            category: AccessCategory::BestEffort,
            payload: None,
        };
        station.enqueue(now, to, msdu).is_ok()
    }
}

/// An exponentially distributed time with this mean, a nanosecond at least.
fn exponential(random: &mut RandomStream, mean: Duration) -> Duration {
    let share = -libm::log(1.0 - random.unit());
    Duration::from_nanos(((share * nanos(mean) as f64) as u64).max(1))
}
