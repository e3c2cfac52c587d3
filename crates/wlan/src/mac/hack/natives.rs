//! The driver's view of acknowledgements in the transmit queue, and of those that leave it.

use alloc::vec::Vec;

use tack_base::Instant;

use super::codec::FlowId;
use super::driver::{Hack, Interrupt};
use super::nic::NativeCopy;
use super::peer::Fate;
use crate::frame::{Class, Msdu, NodeId};
use crate::mac::originator::Settlement;

impl<M: Clone> Hack<M> {
    /// An acknowledgement is in the transmit queue.
    pub(in crate::mac) fn on_queued(&mut self, to: NodeId, packet: &M) {
        self.stats.native += 1;
        let peer = self.peer(to);
        if let Some(flow) = peer.codec.flow(packet) {
            peer.sending.on_queued(flow);
        }
    }

    /// One that was never sent was taken out of the transmit queue. Returns its flow.
    pub(in crate::mac) fn on_taken(&mut self, to: NodeId, msdu: &Msdu<M>) -> Option<FlowId> {
        let (Class::TransportAck, Some(packet)) = (msdu.class, &msdu.payload) else {
            return None;
        };
        self.stats.native = self.stats.native.saturating_sub(1);
        let peer = self.peer(to);
        let flow = peer.codec.flow(packet)?;
        peer.sending.on_gone(flow);
        Some(flow)
    }

    /// One that was never sent has gone from the transmit queue, for a newer one. What is held
    /// compressed of it stays.
    pub(in crate::mac) fn on_gone(&mut self, to: NodeId, msdu: &Msdu<M>) {
        let Some(flow) = self.on_taken(to, msdu) else {
            return;
        };
        let peer = self.peer(to);
        let (codec, packet) = (&peer.codec, msdu.payload.as_ref());
        let same = |other: &M| packet.is_some_and(|packet| codec.is_same(packet, other));
        let mut held = peer.nic.held_mut();
        let twin = held.find(|held| {
            held.native == NativeCopy::Queued
                && held.cid == flow.cid()
                && held.msdu.payload.as_ref().is_some_and(same)
        });
        if let Some(twin) = twin {
            twin.native = NativeCopy::Superseded;
        }
    }

    /// The transmit queue has no room for the twin of an acknowledgement that is held compressed:
    /// it waits for a response, and the queue is asked again later.
    pub(in crate::mac) fn on_refused(&mut self, at: Instant, to: NodeId, packet: &M) {
        let due = at + self.config.hold;
        let peer = self.peer(to);
        if peer.refuse(packet) && peer.deadline == Instant::FAR_FUTURE {
            self.set_deadline(to, due);
        }
    }

    /// The flow of an acknowledgement that is about to come from the host, if others of it wait in
    /// the transmit queue that can be compressed.
    pub(in crate::mac) fn lacks_twins(&mut self, to: NodeId, msdu: &Msdu<M>) -> Option<FlowId> {
        let peer = self.peer(to);
        let flow = peer.codec.flow(msdu.payload.as_ref()?)?;
        peer.lacks_twins(flow).map(|_| flow)
    }

    /// The flow of an acknowledgement.
    pub(in crate::mac) fn flow(&mut self, to: NodeId, msdu: &Msdu<M>) -> Option<FlowId> {
        let packet = msdu.payload.as_ref()?;
        self.peer(to).codec.flow(packet)
    }

    /// Compresses acknowledgements of a flow that wait in the transmit queue, all that do, in
    /// order. Returns those that leave it because data is promised.
    pub(in crate::mac) fn compress_waiting(
        &mut self,
        at: Instant,
        (to, flow): (NodeId, FlowId),
        waiting: Vec<Msdu<M>>,
    ) -> Vec<Msdu<M>> {
        let variant = self.config.variant;
        let peer = self.peer(to);
        let Some(cid) = peer.lacks_twins(flow) else {
            return Vec::new();
        };
        if peer.sending.waiting(flow) != waiting.len() {
            return Vec::new();
        }
        for msdu in waiting {
            let packet = msdu.payload.as_ref();
            let peer = self.peer(to);
            let Some(bytes) = packet.and_then(|packet| peer.compress(cid, packet)) else {
                break;
            };
            self.hold(at, (to, cid), bytes, msdu, NativeCopy::Queued);
        }
        let recalled = self.peer(to).recall(variant);
        self.bound_wait(at, to);
        recalled
    }

    /// An acknowledgement leaves the transmit queue for the first time: what is held of its flow is
    /// out of date. What of that is not in the queue goes there when this one is settled, and
    /// there may be room.
    pub(in crate::mac) fn on_leaving(
        &mut self,
        (to, function): (NodeId, usize),
        seq: u16,
        packet: &M,
    ) {
        let now = self.now;
        let (peer, stats) = self.with_stats(to);
        peer.leaving[function].push((seq, now));
        let Some(flow) = peer.codec.flow(packet) else {
            return;
        };
        peer.sending.on_leaving(flow);
        let Some(cid) = peer.sending.cid(flow) else {
            return;
        };
        if let Some(value) = peer.codec.timestamp(packet) {
            peer.sending.on_timestamp(cid, value);
        }
        let behind = peer.withdraw(cid, stats);
        peer.behind.extend(behind);
        if peer.nic.is_empty() {
            self.set_deadline(to, Instant::FAR_FUTURE);
        }
    }

    /// What the originator for `to` has settled, of one function.
    pub(in crate::mac) fn on_settled(
        &mut self,
        at: Instant,
        (to, function): (NodeId, usize),
        settled: Vec<Settlement<M>>,
        start: Option<u16>,
    ) {
        let timeout = self.reorder_timeout;
        let peer = self.peer(to);
        for Settlement {
            seq,
            msdu,
            is_acked,
        } in settled
        {
            let left = peer.take_leaving(function, seq, at);
            let waited = at.saturating_since(left);
            let is_acked = is_acked && timeout.is_none_or(|timeout| waited < timeout);
            if let Some(packet) = msdu.payload {
                let fate = Fate {
                    seq,
                    packet,
                    left,
                    is_acked,
                };
                peer.note_fate(function, fate);
            }
        }
        let Some(start) = start else {
            return;
        };
        for fate in peer.take_fates(function, start) {
            let settled = Interrupt::Settled {
                to,
                packet: fate.packet,
                left: fate.left,
                is_acked: fate.is_acked,
            };
            self.interrupt(at, settled);
        }
    }
}
