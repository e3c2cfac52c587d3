//! The transmit queue of one access category: drop-tail by packets over all receivers.

use alloc::vec::Vec;

use super::link::Link;
use crate::frame::{Msdu, NodeId};

/// Packets of one category. Those that are on the air, or wait to be repeated, keep their place until they are settled.
#[derive(Clone, Debug)]
pub struct TransmitQueue<M> {
    links: Vec<Link<M>>,
    len: usize,
    capacity: usize,
    arrivals: u64,
}

impl<M: Clone> TransmitQueue<M> {
    /// An empty queue for at most `capacity` packets.
    pub fn new(capacity: usize) -> Self {
        Self {
            links: Vec::new(),
            len: 0,
            capacity,
            arrivals: 0,
        }
    }

    /// Adds a packet for receiver `to`.
    ///
    /// # Errors
    /// The packet, when the queue is full.
    pub fn push(&mut self, to: NodeId, msdu: Msdu<M>) -> Result<(), Msdu<M>> {
        if self.len >= self.capacity {
            return Err(msdu);
        }
        self.len += 1;
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.link(to).push(msdu, arrival);
        Ok(())
    }

    /// The link to `to`.
    pub fn link(&mut self, to: NodeId) -> &mut Link<M> {
        if self.links.len() <= to.index() {
            self.links.resize_with(to.index() + 1, Link::default);
        }
        &mut self.links[to.index()]
    }

    /// Whose turn it is: a request that is due, else the receiver of the packet that came first.
    pub fn next_receiver(&self) -> Option<NodeId> {
        let turns = self.links.iter().enumerate();
        turns
            .filter_map(|(to, link)| Some((link.turn()?, to)))
            .min()
            .map(|(_, to)| NodeId(to as u16))
    }

    /// Frames left the queue for good.
    pub fn on_settled(&mut self, frames: usize) {
        self.len -= frames.min(self.len);
    }

    /// Packets, those on the air included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Nothing to send, no request either.
    pub fn is_empty(&self) -> bool {
        self.len == 0 && self.links.iter().all(Link::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{AccessCategory, Class};

    fn msdu(to: u16) -> Msdu<()> {
        Msdu {
            src: NodeId::AP,
            dst: NodeId(to),
            len: 1_500,
            class: Class::Data,
            category: AccessCategory::BestEffort,
            payload: None,
        }
    }

    #[test]
    fn the_tail_is_dropped_over_all_receivers() {
        let mut queue = TransmitQueue::new(2);
        assert!(queue.push(NodeId(2), msdu(2)).is_ok());
        assert!(queue.push(NodeId(1), msdu(1)).is_ok());
        assert!(queue.push(NodeId(3), msdu(3)).is_err());
        assert_eq!(queue.next_receiver(), Some(NodeId(2)));
        queue.on_settled(1);
        assert!(queue.push(NodeId(3), msdu(3)).is_ok());
    }
}
