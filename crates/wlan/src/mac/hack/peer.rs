//! The driver's state of another radio.

use alloc::vec::Vec;

use tack_base::Instant;

use super::carried::{self, Reader, Says};
use super::codec::{BoxedCodec, DecodeError, FlowId};
use super::config::Variant;
use super::contexts::{Claim, Receiving, Sending};
use super::nic::{Descriptor, NativeCopy, Nic, Received};
use super::stats::HackStats;
use crate::frame::{Msdu, seq_before};

/// A native acknowledgement whose fate the originator knows, and the driver does not yet.
#[derive(Debug)]
pub(super) struct Fate<M> {
    pub(super) seq: u16,
    pub(super) packet: M,
    /// When it was first sent.
    pub(super) left: Instant,
    pub(super) is_acked: bool,
}

/// An acknowledgement that was rebuilt.
#[derive(Clone, Debug)]
pub struct RebuiltAck<M> {
    /// The radio that it came from.
    pub from: crate::frame::NodeId,
    /// Its master sequence number.
    pub msn: u8,
    /// The packet.
    pub msdu: Msdu<M>,
}

/// One other radio.
#[derive(Debug)]
pub(super) struct Peer<M> {
    pub(super) codec: BoxedCodec<M>,
    pub(super) nic: Nic<M>,
    pub(super) sending: Sending,
    pub(super) receiving: Receiving<M>,
    received: Received,
    /// The MORE DATA bit of the last frame that the driver knows of.
    pub(super) more: bool,
    /// A PPDU is being received, or has been and was not answered yet: a response is certain to
    /// come.
    pub(super) is_answering: bool,
    /// When the host can know of what is being received.
    pub(super) ready: Instant,
    /// The peer's response to the last frame that wanted one did not come: the next data frame
    /// says so by SYNC.
    pub(super) unanswered: bool,
    /// When what is held has waited too long.
    pub(super) deadline: Instant,
    /// By function: fates in order of sequence numbers, as long as the peer may still hold the
    /// frames back.
    pub(super) fates: [Vec<Fate<M>>; 4],
    /// By function: native acknowledgements under way, with the time at which they were first
    /// sent.
    pub(super) leaving: [Vec<(u16, Instant)>; 4],
    /// Acknowledgements that were held compressed, found no room in the transmit queue, and have
    /// to follow one that left it.
    pub(super) behind: Vec<Msdu<M>>,
    /// Until when the data may come that the last response draws.
    pub(super) draws_until: Instant,
    /// What the last response carried, with numbers: for the simulator, which compares.
    pub(super) on_air: Vec<(u8, M)>,
}

impl<M: Clone> Peer<M> {
    pub(super) fn new(codec: BoxedCodec<M>) -> Self {
        Self {
            codec,
            nic: Nic::default(),
            sending: Sending::default(),
            receiving: Receiving::default(),
            received: Received::default(),
            more: false,
            is_answering: false,
            ready: Instant::ZERO,
            unanswered: false,
            deadline: Instant::FAR_FUTURE,
            fates: Default::default(),
            leaving: Default::default(),
            behind: Vec::new(),
            draws_until: Instant::ZERO,
            on_air: Vec::new(),
        }
    }

    /// Whether an acknowledgement of flow `cid` that has the driver's attention now waits for a
    /// response, and for nothing else.
    pub(super) fn waits(&self, variant: Variant, cid: u8, is_stamped: bool, now: Instant) -> bool {
        match variant {
            Variant::Off | Variant::Opportunistic => false,
            Variant::Timer => true,
            Variant::MoreData | Variant::TimestampEcho => {
                self.is_promised(variant, cid, is_stamped)
                    || self.is_answering
                    || self.expects(variant, now)
            }
        }
    }

    /// Whether the last response carried acknowledgements, which the peer's transport will answer
    /// by data soon.
    pub(super) fn expects(&self, variant: Variant, now: Instant) -> bool {
        variant == Variant::MoreData && now < self.draws_until
    }

    /// Whether data is certain to come that a response will answer.
    fn is_promised(&self, variant: Variant, cid: u8, is_stamped: bool) -> bool {
        match variant {
            Variant::Off | Variant::Opportunistic | Variant::Timer => false,
            Variant::MoreData => self.more,
            Variant::TimestampEcho => {
                let awaits = self.sending.awaits_echo(cid).filter(|_| is_stamped);
                awaits.unwrap_or(self.more)
            }
        }
    }

    /// The CID of a flow that has an acknowledgement to send at `now`, if it owns it.
    pub(super) fn claim(&mut self, flow: FlowId, now: Instant) -> Option<u8> {
        let Self { sending, nic, .. } = self;
        let is_free = || nic.held().all(|held| held.cid != flow.cid());
        match sending.claim(flow, now, is_free) {
            Claim::Own(cid) => Some(cid),
            Claim::Announce(cid) if nic.has_room() => {
                self.codec.release_sending(cid);
                nic.announce(cid, flow.name());
                sending.on_announced(flow, now);
                None
            }
            Claim::Announce(_) | Claim::Taken => None,
        }
    }

    /// How many of a flow are held compressed and are in the transmit queue, too.
    fn twins(&self, cid: u8) -> usize {
        let held = self.nic.held();
        let queued = held.filter(|held| held.native == NativeCopy::Queued && held.cid == cid);
        queued.count()
    }

    /// The CID of a flow of which native acknowledgements wait, all of them without a compressed
    /// twin, if they could have one now.
    pub(super) fn lacks_twins(&self, flow: FlowId) -> Option<u8> {
        let cid = self.sending.cid(flow)?;
        let could = self.sending.waiting(flow) > 0
            && self.sending.is_settled(cid)
            && self.nic.has_room()
            && self.twins(cid) == 0;
        could.then_some(cid)
    }

    /// Compresses an acknowledgement that comes after all those of its flow, if that keeps their
    /// order, both ends certainly have the same context, and it can be told from old ones.
    pub(super) fn compress_newest(&mut self, flow: FlowId, packet: &M) -> Option<Vec<u8>> {
        let cid = flow.cid();
        let keeps_order = self.sending.waiting(flow) == self.twins(cid);
        if !keeps_order {
            return None;
        }
        self.compress(cid, packet)
    }

    /// Compresses an acknowledgement, if both ends certainly have the same context and it can be
    /// told from old ones.
    pub(super) fn compress(&mut self, cid: u8, packet: &M) -> Option<Vec<u8>> {
        if !self.sending.is_settled(cid) || !self.nic.has_room() {
            return None;
        }
        let mut bytes = Vec::new();
        if !self.codec.compress(cid, packet, &mut bytes) {
            return None;
        }
        if bytes.is_empty() || bytes.len() > carried::MAX_LEN {
            // It is not sent, though the codec counts on it.
            self.doubt(cid);
            return None;
        }
        Some(bytes)
    }

    fn doubt(&mut self, cid: u8) {
        self.codec.forget(cid);
        self.sending.on_doubt(cid);
    }

    /// Those of a flow that wait for a response and have not been in one: they go to the transmit
    /// queue, too. In order.
    pub(super) fn queue_held(&mut self, cid: u8) -> Vec<Msdu<M>> {
        let unsent = self.nic.unsent_mut();
        let held = unsent.filter(|held| held.cid == cid && held.native == NativeCopy::None);
        held.map(|held| {
            held.native = NativeCopy::Queued;
            held.msdu.clone()
        })
        .collect()
    }

    /// The newest of a flow, if all of them have been in a response and none is in the transmit
    /// queue: it goes there, too.
    pub(super) fn repeat_newest(&mut self, cid: u8) -> Option<Msdu<M>> {
        if self.nic.unsent().any(|held| held.cid == cid) {
            return None;
        }
        let newest = self.nic.held_mut().rev().find(|held| held.cid == cid)?;
        if newest.native != NativeCopy::None {
            return None;
        }
        newest.native = NativeCopy::Queued;
        Some(newest.msdu.clone())
    }

    /// The transmit queue has no room for the twin of an acknowledgement. Says whether it is held
    /// compressed.
    pub(super) fn refuse(&mut self, packet: &M) -> bool {
        let codec = &self.codec;
        let same = |held: &Descriptor<M>| {
            let other = held.msdu.payload.as_ref();
            held.native == NativeCopy::Queued
                && other.is_some_and(|other| codec.is_same(packet, other))
        };
        let refused = self.nic.held_mut().rev().find(|held| same(held));
        let is_held = refused.is_some();
        if let Some(refused) = refused {
            refused.native = NativeCopy::None;
        }
        is_held
    }

    /// Data is promised: the twins of what is held compressed leave the transmit queue, all of a
    /// flow or, where something newer is in there without twin, none. Returns them, in order.
    pub(super) fn recall(&mut self, variant: Variant) -> Vec<Msdu<M>> {
        let queued = |held: &Descriptor<M>| held.native == NativeCopy::Queued;
        if !self.nic.held().any(queued) {
            return Vec::new();
        }
        let mut recalled = Vec::new();
        for (cid, is_stamped) in self.held_flows(queued) {
            if !self.is_promised(variant, cid, is_stamped) || !self.has_twins_only(cid) {
                continue;
            }
            let all = self.nic.held_mut();
            for held in all.filter(|held| held.cid == cid && held.native == NativeCopy::Queued) {
                held.native = NativeCopy::None;
                recalled.push(held.msdu.clone());
            }
        }
        recalled
    }

    fn has_twins_only(&mut self, cid: u8) -> bool {
        let newest = self.nic.held().find(|held| held.cid == cid);
        let packet = newest.and_then(|held| held.msdu.payload.as_ref());
        let flow = packet.and_then(|packet| self.codec.flow(packet));
        flow.is_some_and(|flow| self.sending.waiting(flow) == self.twins(cid))
    }

    /// Takes back what is held of a flow, because an acknowledgement of it leaves by another way.
    /// Returns those that have to be sent as they are after that and are not in the transmit
    /// queue. What a response has carried and is not confirmed is cleared (HACK, Fig. 7): what
    /// leaves now says more.
    pub(super) fn withdraw(&mut self, cid: u8, stats: &mut HackStats) -> Vec<Msdu<M>> {
        let removed = self.nic.remove(cid);
        if removed.is_empty() {
            return Vec::new();
        }
        self.doubt(cid);
        stats.cleared += removed.sent;
        let mut natives = Vec::new();
        for held in removed.unsent {
            stats.flushed += u64::from(held.native != NativeCopy::Superseded);
            if held.native == NativeCopy::None {
                natives.push(held.msdu);
            }
        }
        natives
    }

    /// The flows of which something is held that `is` what is asked for, and whether it has
    /// timestamps.
    pub(super) fn held_flows(&self, is: impl Fn(&Descriptor<M>) -> bool) -> Vec<(u8, bool)> {
        let mut flows: Vec<(u8, bool)> = Vec::new();
        for held in self.nic.held().filter(|held| is(held)) {
            if !flows.iter().any(|(cid, _)| *cid == held.cid) {
                let packet = held.msdu.payload.as_ref();
                let stamp = packet.and_then(|packet| self.codec.timestamp(packet));
                flows.push((held.cid, stamp.is_some()));
            }
        }
        flows
    }

    /// True when something waits for a response, and for nothing else, that none has carried.
    pub(super) fn has_waiting(&self) -> bool {
        let mut unsent = self.nic.unsent();
        unsent.any(|held| held.native == NativeCopy::None)
    }

    /// The flows of which something waits for a response and has not been in one.
    pub(super) fn waiting_flows(&self) -> Vec<(u8, bool)> {
        if !self.has_waiting() {
            return Vec::new();
        }
        self.held_flows(|held| held.native == NativeCopy::None)
    }

    /// When a frame was first sent; `otherwise`, if that is not known.
    pub(super) fn take_leaving(
        &mut self,
        function: usize,
        seq: u16,
        otherwise: Instant,
    ) -> Instant {
        let leaving = &mut self.leaving[function];
        match leaving.iter().position(|(other, _)| *other == seq) {
            Some(at) => leaving.remove(at).1,
            None => otherwise,
        }
    }

    /// The originator reports a fate.
    pub(super) fn note_fate(&mut self, function: usize, fate: Fate<M>) {
        let fates = &mut self.fates[function];
        let later = fates.iter().position(|old| seq_before(fate.seq, old.seq));
        fates.insert(later.unwrap_or(fates.len()), fate);
    }

    /// The fates of frames before `start`, for which the peer waits no more.
    pub(super) fn take_fates(&mut self, function: usize, start: u16) -> Vec<Fate<M>> {
        let fates = &mut self.fates[function];
        let count = fates.iter().take_while(|fate| seq_before(fate.seq, start));
        let count = count.count();
        fates.drain(..count).collect()
    }

    /// Rebuilds what a response of this peer carried.
    pub(super) fn unpack(
        &mut self,
        from: crate::frame::NodeId,
        carried: &[u8],
        stats: &mut HackStats,
        mut rebuilt: impl FnMut(RebuiltAck<M>),
    ) {
        let Some(mut reader) = Reader::new(carried) else {
            return;
        };
        for entry in reader.by_ref() {
            if !self.received.accept(entry.msn) {
                stats.duplicates += 1;
                continue;
            }
            let bytes = match entry.says {
                Says::Ack(bytes) => bytes,
                Says::Owner(name) => {
                    self.receiving.on_announced(entry.cid, name);
                    self.codec.release_receiving(entry.cid);
                    continue;
                }
            };
            let Some(description) = self.receiving.description(entry.cid) else {
                stats.decode_failures += 1;
                continue;
            };
            match self.codec.decompress(entry.cid, bytes) {
                Ok(made) => {
                    stats.rebuilt += 1;
                    let msdu = Msdu {
                        len: made.len,
                        payload: Some(made.packet),
                        ..description.clone()
                    };
                    let msn = entry.msn;
                    rebuilt(RebuiltAck { from, msn, msdu });
                }
                Err(DecodeError::Crc) => stats.crc_failures += 1,
                Err(DecodeError::Malformed) => stats.decode_failures += 1,
            }
        }
        self.received.advance(reader.msn());
    }
}
