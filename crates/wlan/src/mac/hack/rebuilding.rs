//! The rebuilding end: what responses carried.

use super::driver::Hack;
use super::peer::RebuiltAck;
use crate::frame::NodeId;

impl<M: Clone> Hack<M> {
    /// A response carried these bytes.
    pub(in crate::mac) fn unpack(&mut self, from: NodeId, carried: &[u8]) {
        if carried.is_empty() {
            return;
        }
        self.peer(from);
        let Self {
            peers,
            rebuilt,
            stats,
            ..
        } = self;
        if let Some(Some(peer)) = peers.get_mut(from.index()) {
            peer.unpack(from, carried, stats, |ack| rebuilt.push_back(ack));
        }
    }

    /// The next acknowledgement that was rebuilt.
    pub(in crate::mac) fn poll_rebuilt(&mut self) -> Option<RebuiltAck<M>> {
        self.rebuilt.pop_front()
    }

    /// Where a descriptor of the last response to `to` came from.
    pub(in crate::mac) fn original(&self, to: NodeId, msn: u8) -> Option<&M> {
        let on_air = &self.known(to)?.on_air;
        let found = on_air.iter().find(|(number, _)| *number == msn);
        found.map(|(_, packet)| packet)
    }

    /// True when two packets to `to` are the same.
    pub(in crate::mac) fn is_same(&self, to: NodeId, a: &M, b: &M) -> bool {
        let peer = self.known(to);
        peer.is_some_and(|peer| peer.codec.is_same(a, b))
    }

    /// Compares a rebuilt acknowledgement with what it came from, and gives it what does not
    /// travel. One that came from nothing differs.
    pub(in crate::mac) fn compare(&mut self, ack: &mut RebuiltAck<M>, original: Option<&M>) {
        let (peer, stats) = self.with_stats(ack.from);
        match (&mut ack.msdu.payload, original) {
            (Some(packet), Some(original)) if peer.codec.is_same(packet, original) => {
                peer.codec.adopt(packet, original);
            }
            _ => stats.differing += 1,
        }
    }
}
