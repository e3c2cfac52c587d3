//! A source that never runs dry.

use alloc::vec::Vec;

use tack_base::Instant;

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
}

impl Source {
    pub(super) fn new(at: NodeId, to: &[NodeId], packet: u32) -> Self {
        Self {
            at,
            to: to.to_vec(),
            turn: 0,
            packet,
        }
    }

    /// Fills the queue up.
    #[inline]
    pub(super) fn refill<M: Clone>(&mut self, now: Instant, station: &mut Station<M>) {
        let level = LEVEL * self.to.len();
        while station.queue_len(AccessCategory::BestEffort) < level {
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
            if station.enqueue(now, to, msdu).is_err() {
                return;
            }
        }
    }
}
