//! What the driver of one radio knows of another one.

use alloc::vec::Vec;

use super::carried::{self, Reader};
use super::codec::{BoxedCodec, DecodeError};
use super::config::Variant;
use super::contexts::{Receiving, Sending};
use super::nic::{Descriptor, Nic, Received};
use super::stats::HackStats;
use crate::frame::{Msdu, seq_before};

/// A native acknowledgement whose fate the link knows, and the driver does not yet.
#[derive(Debug)]
pub(super) struct Fate<M> {
    pub(super) seq: u16,
    pub(super) packet: M,
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
    /// A PPDU is being received, or has been and was not answered yet: a response is certain to come.
    pub(super) is_answering: bool,
    /// When the host can know of what is being received, nanoseconds.
    pub(super) ready: u64,
    /// The peer's response to the last frame that wanted one did not come: the next data frame says so by SYNC.
    pub(super) unanswered: bool,
    /// When what is held has waited too long, nanoseconds.
    pub(super) deadline: u64,
    /// By function: fates in order of sequence numbers, as long as the peer may still hold the frames back.
    pub(super) fates: [Vec<Fate<M>>; 4],
    /// By function: native acknowledgements under way, with the time at which they were first sent.
    pub(super) leaving: [Vec<(u16, u64)>; 4],
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
            ready: 0,
            unanswered: false,
            deadline: u64::MAX,
            fates: Default::default(),
            leaving: Default::default(),
            on_air: Vec::new(),
        }
    }

    /// Whether an acknowledgement of flow `cid` that has the driver's attention now waits for a response.
    pub(super) fn waits(&self, variant: Variant, cid: u8, is_stamped: bool) -> bool {
        match variant {
            Variant::Off => false,
            Variant::Opportunistic | Variant::Timer => true,
            Variant::MoreData => self.more || self.is_answering,
            Variant::TimestampEcho => {
                let awaits = self.sending.awaits_echo(cid).filter(|_| is_stamped);
                awaits.unwrap_or(self.more) || self.is_answering
            }
        }
    }

    /// Compresses an acknowledgement, if both ends certainly have the same context and it can be told from old ones.
    pub(super) fn compress(&mut self, cid: u8, packet: &M) -> Option<Vec<u8>> {
        let twins = self.nic.unsent();
        let twins = twins.filter(|held| held.is_queued && held.cid == cid);
        if !self.sending.is_settled(cid, twins.count()) || !self.nic.has_room() {
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

    /// Takes back what is held of a flow, because an acknowledgement of it leaves by another way. Returns what has to be sent as
    /// it is before that. What a response has carried and is not confirmed is cleared (HACK, Fig. 7): what leaves now
    /// says more.
    pub(super) fn withdraw(&mut self, cid: u8, stats: &mut HackStats) -> Vec<Msdu<M>> {
        let (natives, _) = self.take_back(cid, stats);
        natives
    }

    /// As [`Peer::withdraw`], when nothing else is about to leave: then the newest of those that were carried and not confirmed goes
    /// again, unless a newer one does.
    pub(super) fn give_up(&mut self, cid: u8, stats: &mut HackStats) -> Vec<Msdu<M>> {
        let (mut natives, newest) = self.take_back(cid, stats);
        if natives.is_empty()
            && let Some(newest) = newest
        {
            stats.flushed += 1;
            natives.push(newest);
        }
        natives
    }

    fn take_back(&mut self, cid: u8, stats: &mut HackStats) -> (Vec<Msdu<M>>, Option<Msdu<M>>) {
        let removed = self.nic.remove(cid);
        if removed.is_empty() {
            return (Vec::new(), None);
        }
        self.doubt(cid);
        stats.cleared += removed.sent;
        let has_twin = removed.unsent.iter().any(|held| held.is_queued);
        let alone = removed.unsent.into_iter().filter(|held| !held.is_queued);
        let natives: Vec<_> = alone.map(|held| held.msdu).collect();
        stats.flushed += natives.len() as u64;
        // A twin in the queue is newer than what was sent.
        let newest = removed.newest_sent.filter(|_| !has_twin);
        (natives, newest)
    }

    /// The flows of which something is held; with `only_unsent`, of which something is held that no response has carried.
    pub(super) fn held_flows(&self, only_unsent: bool) -> Vec<(u8, bool)> {
        let mut flows: Vec<(u8, bool)> = Vec::new();
        let mut add = |held: &Descriptor<M>| {
            if !flows.iter().any(|(cid, _)| *cid == held.cid) {
                let packet = held.msdu.payload.as_ref();
                let stamp = packet.and_then(|packet| self.codec.timestamp(packet));
                flows.push((held.cid, stamp.is_some()));
            }
        };
        if only_unsent {
            self.nic.unsent().for_each(&mut add);
        } else {
            self.nic.held().for_each(&mut add);
        }
        flows
    }

    /// When a frame was first sent; `otherwise`, if that is not known.
    pub(super) fn take_leaving(&mut self, function: usize, seq: u16, otherwise: u64) -> u64 {
        let leaving = &mut self.leaving[function];
        match leaving.iter().position(|(other, _)| *other == seq) {
            Some(at) => leaving.remove(at).1,
            None => otherwise,
        }
    }

    /// A fate that the link tells.
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
            let Some(description) = self.receiving.description(entry.cid) else {
                stats.decode_failures += 1;
                continue;
            };
            match self.codec.decompress(entry.cid, entry.bytes) {
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
