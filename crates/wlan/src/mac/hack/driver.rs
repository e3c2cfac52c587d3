//! The driver's part: which acknowledgements wait for a response, and which go as they are.
//!
//! What the NIC sees is known to the driver after an interrupt; until then it decides by what it knew before. What it
//! compresses is at the NIC at once: the host's delay on the way down has passed when the driver is asked.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tack_base::Duration;
use tack_base::time::nanos;

use super::codec::{CodecFactory, FlowId};
use super::config::{HackConfig, Variant};
use super::nic::{Answers, Descriptor};
use super::peer::{Fate, Peer, RebuiltAck};
use super::stats::HackStats;
use crate::frame::{AckPolicy, Class, Data, Msdu, NodeId};
use crate::mac::link::Settlement;

/// What the NIC tells.
#[derive(Debug)]
enum Interrupt<M> {
    /// The first frame of a PPDU of data was read.
    Data { from: NodeId, more: bool },
    /// A frame with data of a flow came, which echoes a timestamp.
    Echo {
        from: NodeId,
        flow: FlowId,
        value: u32,
    },
    /// A response left.
    Answered(NodeId),
    /// A native acknowledgement was received for certain, or given up.
    Settled {
        to: NodeId,
        packet: M,
        is_acked: bool,
    },
}

/// An acknowledgement for the transmit queue.
#[derive(Debug)]
pub(in crate::mac) struct Native<M> {
    pub(in crate::mac) msdu: Msdu<M>,
    pub(in crate::mac) to: NodeId,
}

/// TCP/HACK at one radio.
#[derive(Debug)]
pub struct Hack<M> {
    config: HackConfig,
    hold: u64,
    /// From what the NIC sees to the driver, nanoseconds.
    delay: u64,
    factory: CodecFactory<M>,
    peers: Vec<Option<Peer<M>>>,
    interrupts: VecDeque<(u64, Interrupt<M>)>,
    /// When the radio was last woken, nanoseconds.
    now: u64,
    /// From when on a peer may have gone on without a frame, nanoseconds after it was first sent.
    patience: u64,
    /// The first deadline of all peers.
    deadline: u64,
    rebuilt: VecDeque<RebuiltAck<M>>,
    stats: HackStats,
}

impl<M: Clone> Hack<M> {
    /// Without contexts. The driver hears of what the NIC sees after `interrupt`.
    pub fn new(config: HackConfig, interrupt: Duration, factory: CodecFactory<M>) -> Self {
        Self {
            config,
            hold: nanos(config.hold),
            delay: nanos(interrupt),
            factory,
            peers: Vec::new(),
            interrupts: VecDeque::new(),
            now: 0,
            patience: u64::MAX,
            deadline: u64::MAX,
            rebuilt: VecDeque::new(),
            stats: HackStats::default(),
        }
    }

    /// A peer that holds frames back for `timeout` at most, and then goes on without what they wait for, may discard a frame
    /// that it acknowledges: what took so long is not taken for received.
    pub(in crate::mac) fn set_patience(&mut self, timeout: Option<Duration>) {
        self.patience = timeout.map_or(u64::MAX, nanos);
    }

    pub(in crate::mac) fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    /// Counters.
    pub fn stats(&self) -> &HackStats {
        &self.stats
    }

    pub(in crate::mac) fn reset_stats(&mut self) {
        self.stats = HackStats {
            msn: self.stats.msn,
            ..HackStats::default()
        };
    }

    /// True when acknowledgements are queued as they are while they are held compressed.
    pub(in crate::mac) fn queues_twins(&self) -> bool {
        self.config.variant == Variant::Opportunistic
    }

    fn peer(&mut self, id: NodeId) -> &mut Peer<M> {
        let index = id.index();
        if self.peers.len() <= index {
            self.peers.resize_with(index + 1, || None);
        }
        let factory = &self.factory;
        self.peers[index].get_or_insert_with(|| Peer::new(factory.make()))
    }

    fn known(&self, id: NodeId) -> Option<&Peer<M>> {
        self.peers.get(id.index())?.as_ref()
    }

    /// When the driver next has something to do, nanoseconds.
    #[inline]
    pub(in crate::mac) fn next(&self) -> u64 {
        let interrupt = self.interrupts.front().map_or(u64::MAX, |(at, _)| *at);
        interrupt.min(self.deadline)
    }

    fn interrupt(&mut self, at: u64, interrupt: Interrupt<M>) {
        let due = at + self.delay;
        let later = self.interrupts.iter().rev();
        let later = later.take_while(|(other, _)| *other > due).count();
        let position = self.interrupts.len() - later;
        self.interrupts.insert(position, (due, interrupt));
    }

    fn set_deadline(&mut self, id: NodeId, deadline: u64) {
        self.peer(id).deadline = deadline;
        let all = self.peers.iter().flatten().map(|peer| peer.deadline);
        self.deadline = all.min().unwrap_or(u64::MAX);
    }

    /// An acknowledgement for `to`. Returns what goes to the transmit queue now, in order: nothing when it is held compressed.
    pub(in crate::mac) fn admit(&mut self, at: u64, to: NodeId, msdu: Msdu<M>) -> Vec<Native<M>> {
        let variant = self.config.variant;
        let native = |msdu| Native { msdu, to };
        let peer = self.peer(to);
        let Some(packet) = &msdu.payload else {
            return Vec::from([native(msdu)]);
        };
        let flow = peer.codec.flow(packet);
        let Some(cid) = flow.and_then(|flow| peer.sending.claim(flow)) else {
            return Vec::from([native(msdu)]);
        };
        let stamp = peer.codec.timestamp(packet);
        let mut natives = Vec::new();
        if peer.waits(variant, cid, stamp.is_some()) {
            if let Some(bytes) = peer.compress(cid, packet) {
                return self.hold(at, (to, cid), bytes, msdu);
            }
            if !peer.nic.has_room() {
                natives = self.flush(to, false);
            }
        }
        // It goes as it is, after what is held of its flow.
        let (peer, stats) = self.with_stats(to);
        natives.extend(peer.withdraw(cid, stats).into_iter().map(native));
        natives.push(native(msdu));
        if peer.nic.is_empty() {
            self.set_deadline(to, u64::MAX);
        }
        natives
    }

    fn with_stats(&mut self, id: NodeId) -> (&mut Peer<M>, &mut HackStats) {
        self.peer(id);
        let peer = self.peers[id.index()].as_mut();
        (peer.expect("it was made above"), &mut self.stats)
    }

    fn hold(
        &mut self,
        at: u64,
        (to, cid): (NodeId, u8),
        bytes: Vec<u8>,
        msdu: Msdu<M>,
    ) -> Vec<Native<M>> {
        let is_queued = self.queues_twins();
        let twin = is_queued.then(|| msdu.clone());
        let due = at.saturating_add(self.hold);
        let (peer, stats) = self.with_stats(to);
        stats.compressed += 1;
        stats.compressed_bytes += bytes.len() as u64;
        stats.original_bytes += u64::from(msdu.len);
        stats.msn += 1;
        let is_first = !peer.nic.has_unsent();
        peer.nic.push(Descriptor {
            cid,
            bytes,
            msdu,
            is_queued,
        });
        let retained = peer.nic.held().count() as u64;
        stats.retained_max = stats.retained_max.max(retained);
        if is_first {
            self.set_deadline(to, due);
        }
        twin.into_iter().map(|msdu| Native { msdu, to }).collect()
    }

    /// Gives up what is held for `to`: all of it, or with `only_unsent` the flows of which something waits that does not wait
    /// any more. Returns what goes to the transmit queue.
    fn flush(&mut self, to: NodeId, only_unsent: bool) -> Vec<Native<M>> {
        let variant = self.config.variant;
        let (peer, stats) = self.with_stats(to);
        let mut natives = Vec::new();
        for (cid, is_stamped) in peer.held_flows(only_unsent) {
            if only_unsent {
                if !peer.waits(variant, cid, is_stamped) {
                    natives.extend(peer.withdraw(cid, stats));
                }
            } else {
                natives.extend(peer.give_up(cid, stats));
            }
        }
        if peer.nic.is_empty() {
            self.set_deadline(to, u64::MAX);
        }
        let native = |msdu| Native { msdu, to };
        natives.into_iter().map(native).collect()
    }

    /// Does one thing that is due. Returns what goes to the transmit queue; `None` when nothing is due.
    pub(in crate::mac) fn handle_timeout(&mut self, now: u64) -> Option<Vec<Native<M>>> {
        if let Some((at, _)) = self.interrupts.front()
            && *at <= now
        {
            let (_, interrupt) = self.interrupts.pop_front()?;
            return Some(self.handle_interrupt(interrupt));
        }
        if self.deadline > now {
            return None;
        }
        let overdue = |peer: &Option<Peer<M>>| peer.as_ref().is_some_and(|p| p.deadline <= now);
        let index = self.peers.iter().position(overdue)?;
        let to = NodeId(index as u16);
        self.set_deadline(to, u64::MAX);
        let natives = self.flush(to, false);
        // A promise that was not kept counts no more.
        self.peer(to).more = false;
        Some(natives)
    }

    fn handle_interrupt(&mut self, interrupt: Interrupt<M>) -> Vec<Native<M>> {
        match interrupt {
            Interrupt::Data { from, more } => {
                let peer = self.peer(from);
                peer.more = more;
                peer.is_answering = true;
            }
            Interrupt::Echo { from, flow, value } => {
                self.peer(from).sending.on_echo(flow, value);
            }
            Interrupt::Answered(to) => {
                self.peer(to).is_answering = false;
                return self.flush(to, true);
            }
            Interrupt::Settled {
                to,
                packet,
                is_acked,
            } => {
                let peer = self.peer(to);
                let flow = peer.codec.flow(&packet);
                let cid = flow.and_then(|flow| peer.sending.on_settled(flow, is_acked));
                if let Some(cid) = cid {
                    peer.codec.native_sent(cid, &packet);
                }
            }
        }
        Vec::new()
    }

    /// An acknowledgement is in the transmit queue.
    pub(in crate::mac) fn on_queued(&mut self, to: NodeId, packet: &M) {
        self.stats.native += 1;
        let is_twin = self.queues_twins();
        let peer = self.peer(to);
        let Some(flow) = peer.codec.flow(packet) else {
            return;
        };
        peer.sending.on_queued(flow);
        if let Some(value) = peer.codec.timestamp(packet)
            && !is_twin
        {
            peer.sending.on_timestamp(flow.cid(), value);
        }
    }

    /// One that was never sent was taken out of the transmit queue.
    pub(in crate::mac) fn on_gone(&mut self, to: NodeId, msdu: &Msdu<M>) {
        let (Class::TransportAck, Some(packet)) = (msdu.class, &msdu.payload) else {
            return;
        };
        self.stats.native = self.stats.native.saturating_sub(1);
        let Peer {
            codec,
            sending,
            nic,
            ..
        } = self.peer(to);
        let Some(flow) = codec.flow(packet) else {
            return;
        };
        sending.on_gone(flow);
        nic.unqueue(|held| {
            let same = |other| codec.is_same(packet, other);
            held.cid == flow.cid() && held.msdu.payload.as_ref().is_some_and(same)
        });
    }

    /// The transmit queue was full for an acknowledgement, which is dropped. If it is held compressed, it is dropped there, too, as
    /// without TCP/HACK; the twins of the others are in the queue.
    pub(in crate::mac) fn on_refused(&mut self, to: NodeId, packet: &M) {
        let (peer, stats) = self.with_stats(to);
        let Some(flow) = peer.codec.flow(packet) else {
            return;
        };
        let (cid, codec) = (flow.cid(), &peer.codec);
        let is_held = peer.nic.unqueue(|held| {
            let same = |other| codec.is_same(packet, other);
            held.cid == cid && held.msdu.payload.as_ref().is_some_and(same)
        });
        if !is_held {
            return;
        }
        let removed = peer.withdraw(cid, stats);
        stats.flushed -= removed.len() as u64;
        if peer.nic.is_empty() {
            self.set_deadline(to, u64::MAX);
        }
    }

    /// An acknowledgement leaves the transmit queue for the first time: where it has a twin, what is held of its flow is out of
    /// date.
    pub(in crate::mac) fn on_leaving(
        &mut self,
        (to, function): (NodeId, usize),
        seq: u16,
        packet: &M,
    ) {
        let (now, has_twins) = (self.now, self.queues_twins());
        let (peer, stats) = self.with_stats(to);
        peer.leaving[function].push((seq, now));
        if !has_twins {
            return;
        }
        let flow = peer.codec.flow(packet);
        let Some(cid) = flow.and_then(|flow| peer.sending.claim(flow)) else {
            return;
        };
        // Their twins are in the queue, or something newer is.
        let removed = peer.withdraw(cid, stats);
        stats.flushed -= removed.len() as u64;
        if peer.nic.is_empty() {
            self.set_deadline(to, u64::MAX);
        }
    }

    /// What the link to `to` has settled, of one function.
    pub(in crate::mac) fn on_settled(
        &mut self,
        at: u64,
        (to, function): (NodeId, usize),
        settled: Vec<Settlement<M>>,
        start: Option<u16>,
    ) {
        let patience = self.patience;
        let peer = self.peer(to);
        for Settlement {
            seq,
            msdu,
            is_acked,
        } in settled
        {
            let since = peer.take_leaving(function, seq, at);
            let is_acked = is_acked && at - since < patience;
            if let Some(packet) = msdu.payload {
                let fate = Fate {
                    seq,
                    packet,
                    is_acked,
                };
                peer.note_fate(function, fate);
            }
        }
        let Some(start) = start else {
            return;
        };
        for Fate {
            packet, is_acked, ..
        } in peer.take_fates(function, start)
        {
            let settled = Interrupt::Settled {
                to,
                packet,
                is_acked,
            };
            self.interrupt(at, settled);
        }
    }

    /// Whether `to` answered the last frame that wanted a response.
    pub(in crate::mac) fn set_answered(&mut self, to: NodeId, is_answered: bool) {
        self.peer(to).unanswered = !is_answered;
    }

    /// The SYNC bit of a data frame to `to`.
    pub(in crate::mac) fn sync(&self, to: NodeId) -> bool {
        self.known(to).is_some_and(|peer| peer.unanswered)
    }

    /// The header of frame `index` of a PPDU was read, the first one of it that could be. The host can know at `at`.
    pub(in crate::mac) fn on_data_header(
        &mut self,
        at: u64,
        from: NodeId,
        data: &Data<M>,
        index: usize,
    ) {
        let Some(mpdu) = data.mpdus.get(index) else {
            return;
        };
        let answers = match data.ack {
            AckPolicy::Normal => Answers::Single(data.category, mpdu.seq),
            AckPolicy::BlockAck => Answers::Block,
        };
        let due = at.saturating_add(self.hold);
        let peer = self.peer(from);
        peer.ready = at;
        if peer.nic.on_data(answers, mpdu.retry, data.sync) && peer.deadline != u64::MAX {
            let deadline = if peer.nic.is_empty() { u64::MAX } else { due };
            self.set_deadline(from, deadline);
        }
        let more = data.more_data;
        self.interrupt(at, Interrupt::Data { from, more });
    }

    /// A Block ACK request came.
    pub(in crate::mac) fn on_request(&mut self, from: NodeId) {
        self.peer(from).nic.on_request();
    }

    /// A packet came as it is, in order.
    pub(in crate::mac) fn on_delivered(&mut self, at: u64, from: NodeId, msdu: &Msdu<M>) {
        let Some(packet) = &msdu.payload else {
            return;
        };
        let wants_echo = self.config.variant == Variant::TimestampEcho;
        let Peer {
            codec,
            receiving,
            ready,
            ..
        } = self.peer(from);
        let ready = at.max(*ready);
        match msdu.class {
            Class::TransportAck => {
                let Some(flow) = codec.flow(packet) else {
                    return;
                };
                let description = Msdu {
                    payload: None,
                    ..*msdu
                };
                if let Some(cid) = receiving.on_native(flow, description) {
                    codec.native_received(cid, packet);
                }
            }
            Class::Data if wants_echo => {
                if let Some((flow, value)) = codec.echo(packet) {
                    self.interrupt(ready, Interrupt::Echo { from, flow, value });
                }
            }
            Class::Data => {}
        }
    }

    /// A response to `to` goes on the air: what does it carry? Returns the acknowledgements that were in the transmit queue, too,
    /// and have to be taken out of it.
    pub(in crate::mac) fn load(
        &mut self,
        at: u64,
        to: NodeId,
        carried: &mut Vec<u8>,
    ) -> Vec<Msdu<M>> {
        let due = at.saturating_add(self.hold);
        let (peer, stats) = self.with_stats(to);
        let new = peer.nic.load(carried);
        let mut twins = Vec::new();
        peer.on_air.clear();
        for (msn, held) in peer.nic.sent() {
            peer.on_air
                .extend(held.msdu.payload.clone().map(|packet| (msn, packet)));
            stats.carried += 1;
        }
        for (_, held) in peer.nic.sent().rev().take(new) {
            let packet = held.msdu.payload.as_ref();
            if let Some(value) = packet.and_then(|packet| peer.codec.timestamp(packet)) {
                peer.sending.on_timestamp(held.cid, value);
            }
            if held.is_queued {
                twins.push(held.msdu.clone());
            }
        }
        stats.responses += u64::from(!carried.is_empty());
        if !peer.nic.is_empty() {
            self.set_deadline(to, due);
        }
        twins.reverse();
        twins
    }

    /// A response lasted no longer than what protects it.
    pub(in crate::mac) fn count_fitting(&mut self) {
        self.stats.fitting += 1;
    }

    /// A response to `to` left, or could not.
    pub(in crate::mac) fn on_responded(&mut self, at: u64, to: NodeId) {
        self.interrupt(at, Interrupt::Answered(to));
    }

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

    /// Compares a rebuilt acknowledgement with what it came from, and gives it what does not travel.
    pub(in crate::mac) fn compare(&mut self, ack: &mut RebuiltAck<M>, original: &M) {
        let (peer, stats) = self.with_stats(ack.from);
        if let Some(packet) = &mut ack.msdu.payload {
            if peer.codec.is_same(packet, original) {
                peer.codec.adopt(packet, original);
            } else {
                stats.differing += 1;
            }
        }
    }
}
