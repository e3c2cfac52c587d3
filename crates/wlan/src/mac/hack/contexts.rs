//! Contexts: which flow a CID stands for, and when both ends certainly have the same.
//!
//! A context begins with a native acknowledgement, which both ends see. CIDs are one byte of a hash, so two flows may have the
//! same: the first one keeps it, and the other stays native. Both ends know which one is the first, because native
//! acknowledgements arrive in order. Only when the first one's were all given up before the second one came they may not: then
//! neither is compressed. CIDs are not given anew.

use alloc::collections::BTreeMap;

use super::codec::FlowId;
use crate::frame::Msdu;

/// One CID at the compressing end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    owner: FlowId,
    /// Nobody knows which flow the other end takes for the owner.
    is_void: bool,
    /// A native acknowledgement of the owner was certainly received, at some time.
    was_certain: bool,
    /// The newest native acknowledgement was certainly received, and is what the next one refers to.
    is_certain: bool,
    /// Native acknowledgements in the transmit queue, those on the air included.
    queued: usize,
    /// The newest timestamp that left, and the newest that came back.
    sent: Option<u32>,
    echoed: Option<u32>,
}

/// The compressing end.
#[derive(Debug, Default)]
pub(super) struct Sending {
    slots: BTreeMap<u8, Slot>,
}

impl Sending {
    /// The CID of a flow that has an acknowledgement to send, if it owns it or nobody does.
    pub(super) fn claim(&mut self, flow: FlowId) -> Option<u8> {
        let cid = flow.cid();
        let slot = self.slots.entry(cid).or_insert(Slot {
            owner: flow,
            is_void: false,
            was_certain: false,
            is_certain: false,
            queued: 0,
            sent: None,
            echoed: None,
        });
        if slot.owner != flow {
            slot.is_void |= !slot.was_certain;
            return None;
        }
        (!slot.is_void).then_some(cid)
    }

    fn owned(&mut self, flow: FlowId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(&flow.cid())?;
        (slot.owner == flow).then_some(slot)
    }

    /// Whether an acknowledgement of the flow may be compressed while `twins` of those in the queue are held compressed, too:
    /// no other native one is under way.
    pub(super) fn is_settled(&self, cid: u8, twins: usize) -> bool {
        let slot = self.slots.get(&cid);
        slot.is_some_and(|slot| slot.is_certain && slot.queued == twins)
    }

    /// A native acknowledgement is in the queue.
    pub(super) fn on_queued(&mut self, flow: FlowId) {
        if let Some(slot) = self.owned(flow) {
            slot.queued += 1;
        }
    }

    /// One was taken out of the queue and never sent.
    pub(super) fn on_gone(&mut self, flow: FlowId) {
        if let Some(slot) = self.owned(flow) {
            slot.queued = slot.queued.saturating_sub(1);
        }
    }

    /// One was received for certain, or given up and possibly received. Returns the CID if it is the context now.
    pub(super) fn on_settled(&mut self, flow: FlowId, is_acked: bool) -> Option<u8> {
        let slot = self.owned(flow)?;
        slot.queued = slot.queued.saturating_sub(1);
        slot.is_certain = is_acked;
        slot.was_certain |= is_acked;
        is_acked.then_some(flow.cid())
    }

    /// Compressed acknowledgements were taken back: only a native one brings the two ends together.
    pub(super) fn on_doubt(&mut self, cid: u8) {
        if let Some(slot) = self.slots.get_mut(&cid) {
            slot.is_certain = false;
        }
    }

    /// An acknowledgement with this timestamp leaves.
    pub(super) fn on_timestamp(&mut self, cid: u8, value: u32) {
        if let Some(slot) = self.slots.get_mut(&cid) {
            slot.sent = Some(newer(slot.sent, value));
        }
    }

    /// Data of the flow's other direction echoed this timestamp.
    pub(super) fn on_echo(&mut self, flow: FlowId, value: u32) {
        if let Some(slot) = self.owned(flow) {
            slot.echoed = Some(newer(slot.echoed, value));
        }
    }

    /// Whether the echo of the newest timestamp is still to come, and data with it; `None` when none was sent.
    pub(super) fn awaits_echo(&self, cid: u8) -> Option<bool> {
        let slot = self.slots.get(&cid)?;
        let sent = slot.sent?;
        Some(slot.echoed.is_none_or(|echoed| is_before(echoed, sent)))
    }
}

/// RFC 7323 §5.2: timestamps are compared on the circle.
const fn is_before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

fn newer(old: Option<u32>, value: u32) -> u32 {
    old.filter(|old| is_before(value, *old)).unwrap_or(value)
}

/// The rebuilding end: whose context each CID is, and what its packets look like to the link.
#[derive(Debug)]
pub(super) struct Receiving<M> {
    slots: BTreeMap<u8, (FlowId, Msdu<M>)>,
}

impl<M> Default for Receiving<M> {
    fn default() -> Self {
        Self {
            slots: BTreeMap::new(),
        }
    }
}

impl<M> Receiving<M> {
    /// A native acknowledgement came, `description` without its payload. Returns the CID if the flow owns it.
    pub(super) fn on_native(&mut self, flow: FlowId, description: Msdu<M>) -> Option<u8> {
        let cid = flow.cid();
        let slot = self.slots.entry(cid).or_insert((flow, description));
        (slot.0 == flow).then_some(cid)
    }

    /// What the packets of a CID look like.
    pub(super) fn description(&self, cid: u8) -> Option<&Msdu<M>> {
        self.slots.get(&cid).map(|(_, description)| description)
    }
}
