//! The driver's part: which acknowledgements wait for a response, and which go as they are.
//!
//! The driver learns of frames after an interrupt, and decides by its former knowledge until then.
//! A compressed acknowledgement is at the NIC at once: the host's delay on the way down has passed
//! when the driver gets the acknowledgement.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tack_base::{Duration, Instant};

use super::codec::{CodecFactory, FlowId};
use super::config::{HackConfig, Variant};
use super::nic::{Answers, Descriptor, NativeCopy};
use super::peer::{Peer, RebuiltAck};
use super::queue_changes::{Native, QueueChanges};
use super::stats::HackStats;
use crate::frame::{AckPolicy, Class, Data, Msdu, NodeId};

/// Acknowledgements draw data, which comes a round trip later if the sender has some and its window
/// was full. So a response that carries some promises another one, though only the transport keeps
/// that promise; it is relied on no longer than this, as the echo of a timestamp is. A batch whose
/// header promises nothing would draw the same data by the response to it, were its
/// own acknowledgements not sent natively before.
const DRAWN: Duration = Duration::from_millis(20);

/// An event at the NIC.
#[derive(Debug)]
pub(super) enum Interrupt<M> {
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
        /// When it was first sent.
        left: Instant,
        is_acked: bool,
    },
}

/// TCP/HACK at one radio.
#[derive(Debug)]
pub struct Hack<M> {
    pub(super) config: HackConfig,
    /// From what the NIC sees to the driver.
    delay: Duration,
    pub(super) factory: CodecFactory<M>,
    pub(super) peers: Vec<Option<Peer<M>>>,
    interrupts: VecDeque<(Instant, Interrupt<M>)>,
    /// When the radio was last woken.
    pub(super) now: Instant,
    /// How long after a frame was first sent the peer may have gone on without it; `None` is
    /// never.
    pub(super) reorder_timeout: Option<Duration>,
    /// The first deadline of all peers.
    deadline: Instant,
    pub(super) rebuilt: VecDeque<RebuiltAck<M>>,
    pub(super) stats: HackStats,
}

impl<M: Clone> Hack<M> {
    /// Without contexts. The driver hears of what the NIC sees after `interrupt`.
    pub fn new(config: HackConfig, interrupt: Duration, factory: CodecFactory<M>) -> Self {
        Self {
            config,
            delay: interrupt,
            factory,
            peers: Vec::new(),
            interrupts: VecDeque::new(),
            now: Instant::ZERO,
            reorder_timeout: None,
            deadline: Instant::FAR_FUTURE,
            rebuilt: VecDeque::new(),
            stats: HackStats::default(),
        }
    }

    /// A peer that holds frames back for `timeout` at most, and then goes on without what they wait
    /// for, may discard a frame that it acknowledges: what took so long is not taken for
    /// received.
    pub(in crate::mac) fn set_reorder_timeout(&mut self, timeout: Option<Duration>) {
        self.reorder_timeout = timeout;
    }

    pub(in crate::mac) fn set_now(&mut self, now: Instant) {
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

    pub(super) fn peer(&mut self, id: NodeId) -> &mut Peer<M> {
        let index = id.index();
        if self.peers.len() <= index {
            self.peers.resize_with(index + 1, || None);
        }
        let factory = &self.factory;
        self.peers[index].get_or_insert_with(|| Peer::new(factory.make()))
    }

    pub(super) fn known(&self, id: NodeId) -> Option<&Peer<M>> {
        self.peers.get(id.index())?.as_ref()
    }

    /// When the driver next has something to do.
    #[inline]
    pub(in crate::mac) fn next(&self) -> Instant {
        let interrupt = self.interrupts.front();
        let interrupt = interrupt.map_or(Instant::FAR_FUTURE, |(at, _)| *at);
        interrupt.min(self.deadline)
    }

    pub(super) fn interrupt(&mut self, at: Instant, interrupt: Interrupt<M>) {
        let due = at + self.delay;
        let later = self.interrupts.iter().rev();
        let later = later.take_while(|(other, _)| *other > due).count();
        let position = self.interrupts.len() - later;
        self.interrupts.insert(position, (due, interrupt));
    }

    pub(super) fn set_deadline(&mut self, id: NodeId, deadline: Instant) {
        self.peer(id).deadline = deadline;
        let all = self.peers.iter().flatten().map(|peer| peer.deadline);
        self.deadline = all.min().unwrap_or(Instant::FAR_FUTURE);
    }

    /// An acknowledgement for `to`. It goes to the transmit queue, or is held compressed, or both.
    pub(in crate::mac) fn admit(
        &mut self,
        at: Instant,
        to: NodeId,
        msdu: Msdu<M>,
    ) -> QueueChanges<M> {
        let variant = self.config.variant;
        let native = |msdu| Native {
            msdu,
            to,
            is_twin: false,
        };
        let mut changes = QueueChanges::none(to);
        let peer = self.peer(to);
        let behind = core::mem::take(&mut peer.behind);
        changes.natives.extend(behind.into_iter().map(native));
        let flow = msdu.payload.as_ref();
        let flow = flow.and_then(|packet| peer.codec.flow(packet));
        let cid = flow.and_then(|flow| peer.claim(flow, at));
        let (Some(packet), Some(flow), Some(cid)) = (&msdu.payload, flow, cid) else {
            changes.natives.push(native(msdu));
            return changes;
        };
        let stamp = peer.codec.timestamp(packet);
        let waits = peer.waits(variant, cid, stamp.is_some(), at);
        if let Some(bytes) = peer.compress_newest(flow, packet) {
            self.hold(at, (to, cid), bytes, msdu, NativeCopy::None);
            let peer = self.peer(to);
            if waits {
                changes.recalled = peer.recall(variant);
                self.bound_wait(at, to);
                self.limit_wait(at, to);
                return changes;
            }
            changes.queue_twins(peer.queue_held(cid));
            return changes;
        }
        // It goes as it is, after what is held of its flow.
        changes.queue_twins(peer.queue_held(cid));
        changes.natives.push(native(msdu));
        changes
    }

    pub(super) fn with_stats(&mut self, id: NodeId) -> (&mut Peer<M>, &mut HackStats) {
        self.peer(id);
        let peer = self.peers[id.index()].as_mut();
        (peer.expect("it was made above"), &mut self.stats)
    }

    pub(super) fn hold(
        &mut self,
        at: Instant,
        (to, cid): (NodeId, u8),
        bytes: Vec<u8>,
        msdu: Msdu<M>,
        native: NativeCopy,
    ) {
        let due = at + self.config.hold;
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
            native,
        });
        let retained = peer.nic.held().count() as u64;
        stats.retained_max = stats.retained_max.max(retained);
        if is_first {
            self.set_deadline(to, due);
        }
    }

    /// What waits for a response has a deadline. The deadline of what joined the transmit queue has
    /// passed, and it gets another one when it is taken back from there.
    pub(super) fn bound_wait(&mut self, now: Instant, to: NodeId) {
        let due = now + self.config.hold;
        let peer = self.peer(to);
        if peer.deadline == Instant::FAR_FUTURE && peer.has_waiting() {
            self.set_deadline(to, due);
        }
    }

    /// What waits for data that is not promised, and that a response should draw, waits no longer
    /// than that usually takes.
    fn limit_wait(&mut self, now: Instant, to: NodeId) {
        let variant = self.config.variant;
        let peer = self.peer(to);
        let until = peer.draws_until;
        if peer.expects(variant, now)
            && !peer.more
            && peer.deadline > until
            && peer.nic.has_unsent()
        {
            self.set_deadline(to, until);
        }
    }

    /// A response has left, and the next one is not promised to some flows: what waits of them goes
    /// to the transmit queue, too.
    fn release(&mut self, to: NodeId) -> QueueChanges<M> {
        let variant = self.config.variant;
        let now = self.now;
        self.limit_wait(now, to);
        let peer = self.peer(to);
        let mut queued = Vec::new();
        for (cid, is_stamped) in peer.waiting_flows() {
            if !peer.waits(variant, cid, is_stamped, now) {
                queued.extend(peer.queue_held(cid));
            }
        }
        let mut changes = QueueChanges::none(to);
        changes.queue_twins(queued);
        changes
    }

    /// What is held for `to` has waited too long: it goes to the transmit queue, too. Of a flow of
    /// which a response has carried everything the newest does.
    fn end_wait(&mut self, to: NodeId) -> QueueChanges<M> {
        self.set_deadline(to, Instant::FAR_FUTURE);
        let peer = self.peer(to);
        let mut queued = Vec::new();
        for (cid, _) in peer.held_flows(|_| true) {
            queued.extend(peer.queue_held(cid));
            queued.extend(peer.repeat_newest(cid));
        }
        peer.draws_until = Instant::ZERO;
        // A promise that was not kept counts no more.
        peer.more = false;
        let mut changes = QueueChanges::none(to);
        changes.queue_twins(queued);
        changes
    }

    /// Does one thing that is due; `None` when nothing is.
    pub(in crate::mac) fn handle_timeout(&mut self, now: Instant) -> Option<QueueChanges<M>> {
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
        Some(self.end_wait(NodeId(index as u16)))
    }

    fn handle_interrupt(&mut self, interrupt: Interrupt<M>) -> QueueChanges<M> {
        let variant = self.config.variant;
        match interrupt {
            Interrupt::Data { from, more } => {
                let peer = self.peer(from);
                peer.more = more;
                peer.is_answering = true;
                let recalled = peer.recall(variant);
                self.bound_wait(self.now, from);
                QueueChanges {
                    recalled,
                    ..QueueChanges::none(from)
                }
            }
            Interrupt::Echo { from, flow, value } => {
                self.peer(from).sending.on_echo(flow, value);
                QueueChanges::none(from)
            }
            Interrupt::Answered(to) => {
                self.peer(to).is_answering = false;
                self.release(to)
            }
            Interrupt::Settled {
                to,
                packet,
                left,
                is_acked,
            } => {
                let peer = self.peer(to);
                let flow = peer.codec.flow(&packet);
                let cid = flow.and_then(|flow| peer.sending.on_settled(flow, left, is_acked));
                if let Some(cid) = cid {
                    peer.codec.native_sent(cid, &packet);
                }
                let native = |msdu| Native {
                    msdu,
                    to,
                    is_twin: false,
                };
                let behind = core::mem::take(&mut peer.behind);
                QueueChanges {
                    natives: behind.into_iter().map(native).collect(),
                    lacks_twins: flow.filter(|flow| peer.lacks_twins(*flow).is_some()),
                    ..QueueChanges::none(to)
                }
            }
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

    /// The header of frame `index` of a PPDU was read, the first one of it that could be. The host
    /// can know at `at`. Returns the acknowledgements that the peer has, as this confirms, and
    /// that have to be taken out of the transmit queue.
    pub(in crate::mac) fn on_data_header(
        &mut self,
        at: Instant,
        from: NodeId,
        data: &Data<M>,
        index: usize,
    ) -> Vec<Msdu<M>> {
        let Some(mpdu) = data.mpdus.get(index) else {
            return Vec::new();
        };
        let answers = match data.ack {
            AckPolicy::Normal => Answers::Single(data.category, mpdu.seq),
            AckPolicy::BlockAck => Answers::Block,
        };
        let (due, now) = (at + self.config.hold, self.now);
        let peer = self.peer(from);
        peer.ready = at;
        let confirmed = peer.nic.on_data(answers, mpdu.retry, data.sync);
        for cid in confirmed.iter().flat_map(|confirmed| &confirmed.owned) {
            peer.sending.on_agreed(*cid, now);
        }
        if confirmed.is_some() && peer.deadline != Instant::FAR_FUTURE {
            let deadline = if peer.nic.is_empty() {
                Instant::FAR_FUTURE
            } else {
                due
            };
            self.set_deadline(from, deadline);
        }
        let more = data.more_data;
        self.interrupt(at, Interrupt::Data { from, more });
        confirmed.map_or(Vec::new(), |confirmed| confirmed.twins)
    }

    /// A Block ACK request came.
    pub(in crate::mac) fn on_request(&mut self, from: NodeId) {
        self.peer(from).nic.on_request();
    }

    /// A packet came as it is, in order.
    pub(in crate::mac) fn on_delivered(&mut self, at: Instant, from: NodeId, msdu: &Msdu<M>) {
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

    /// A response to `to` goes on the air: what does it carry? Returns the acknowledgements that
    /// were in the transmit queue, too, and have to be taken out of it.
    pub(in crate::mac) fn load(
        &mut self,
        at: Instant,
        to: NodeId,
        carried: &mut Vec<u8>,
    ) -> Vec<Msdu<M>> {
        let due = at + self.config.hold;
        let drawn = DRAWN.min(self.config.hold);
        let (peer, stats) = self.with_stats(to);
        let new = peer.nic.load(carried);
        peer.draws_until = if new > 0 { at + drawn } else { Instant::ZERO };
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
        }
        let mut twins = Vec::new();
        // All that is held is in the response.
        for held in peer.nic.held_mut() {
            if held.native == NativeCopy::Queued {
                held.native = NativeCopy::None;
                twins.push(held.msdu.clone());
            }
        }
        stats.responses += u64::from(!carried.is_empty());
        if !peer.nic.is_empty() {
            self.set_deadline(to, due);
        }
        twins
    }

    /// A response lasted no longer than what protects it.
    pub(in crate::mac) fn count_fitting(&mut self) {
        self.stats.fitting += 1;
    }

    /// A response to `to` left, or could not.
    pub(in crate::mac) fn on_responded(&mut self, at: Instant, to: NodeId) {
        self.interrupt(at, Interrupt::Answered(to));
    }
}
