//! Contexts: which flow a CID stands for, and when both ends certainly have the same.
//!
//! A context begins with a native acknowledgement, which both ends see. CIDs are one byte of a
//! hash, so two flows may have the same: the first one keeps it, and the other stays native. Both
//! ends know which one is the first, because native acknowledgements arrive in order. Only when the
//! first one's were all given up before the second one came they may not: then neither is
//! compressed.
//!
//! A CID gets another owner when its flow has been silent for [`SILENCE`] and another one asks for
//! it, or when nobody knows who owns it. The compressing end says so in a response, between two
//! compressed acknowledgements; that arrives in order and is sent again until it is confirmed. From
//! the confirmation on a native acknowledgement of the new owner makes its context.

use alloc::collections::BTreeMap;

use tack_base::{Duration, Instant};

use super::codec::FlowId;
use crate::frame::Msdu;

/// How long a flow keeps a CID that another one asks for, since its last acknowledgement. A flow
/// that loses it goes native, so this need not be long: it is beyond most round trips, lest two
/// flows take turns.
pub(super) const SILENCE: Duration = Duration::from_millis(200);

/// One CID at the compressing end.
#[derive(Clone, Copy, Debug)]
struct Slot {
    owner: FlowId,
    /// When the owner last had an acknowledgement to send.
    last: Instant,
    /// Nobody knows which flow the other end takes for the owner.
    is_void: bool,
    /// The other end was told who owns the CID now, and has not confirmed it.
    is_announced: bool,
    /// The other end certainly takes the same flow for the owner.
    is_agreed: bool,
    /// A native acknowledgement makes a context if it was first sent at this time or later.
    since: Instant,
    /// The newest native acknowledgement was certainly received, and is what the next one refers
    /// to.
    is_certain: bool,
    /// The newest timestamp that left, and the newest that came back.
    sent: Option<u32>,
    echoed: Option<u32>,
}

impl Slot {
    const fn new(owner: FlowId, now: Instant) -> Self {
        Self {
            owner,
            last: now,
            is_void: false,
            is_announced: false,
            is_agreed: false,
            since: Instant::ZERO,
            is_certain: false,
            sent: None,
            echoed: None,
        }
    }
}

/// Native acknowledgements of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Natives {
    /// In the transmit queue, never sent.
    waiting: usize,
    /// Sent at least once, and the driver does not know what became of them.
    under_way: usize,
}

/// Whose a CID is, for a flow that has an acknowledgement to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Claim {
    /// The flow's.
    Own(u8),
    /// Another one's: the flow stays native.
    Taken,
    /// The flow's, once the other end knows: it has to be told.
    Announce(u8),
}

/// The compressing end.
#[derive(Debug, Default)]
pub(super) struct Sending {
    slots: BTreeMap<u8, Slot>,
    /// The flows that have any.
    natives: BTreeMap<FlowId, Natives>,
}

impl Sending {
    /// Whose the CID of a flow is that has an acknowledgement to send at `now`. `is_free` says
    /// whether nothing of the CID is held.
    pub(super) fn claim(
        &mut self,
        flow: FlowId,
        now: Instant,
        is_free: impl FnOnce() -> bool,
    ) -> Claim {
        let cid = flow.cid();
        let slot = self.slots.entry(cid).or_insert(Slot::new(flow, now));
        let is_owner = slot.owner == flow;
        if is_owner {
            slot.last = now;
        } else {
            slot.is_void |= !slot.is_agreed && !slot.is_announced;
        }
        let is_silent = now.saturating_since(slot.last) >= SILENCE;
        let has_natives = !is_owner && is_silent && self.natives.contains_key(&slot.owner);
        if slot.is_announced {
            Claim::Taken
        } else if is_owner && !slot.is_void {
            Claim::Own(cid)
        } else if (slot.is_void || is_silent && !has_natives) && is_free() {
            Claim::Announce(cid)
        } else {
            Claim::Taken
        }
    }

    /// The other end is being told that the CID is the flow's.
    pub(super) fn on_announced(&mut self, flow: FlowId, now: Instant) {
        let slot = Slot {
            is_announced: true,
            ..Slot::new(flow, now)
        };
        self.slots.insert(flow.cid(), slot);
    }

    /// The other end knows.
    pub(super) fn on_agreed(&mut self, cid: u8, now: Instant) {
        if let Some(slot) = self.slots.get_mut(&cid) {
            slot.is_announced = false;
            slot.is_agreed = true;
            slot.since = now;
        }
    }

    fn owned(&mut self, flow: FlowId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(&flow.cid())?;
        (slot.owner == flow).then_some(slot)
    }

    /// The CID, if the flow owns it.
    pub(super) fn cid(&self, flow: FlowId) -> Option<u8> {
        let slot = self.slots.get(&flow.cid())?;
        (slot.owner == flow && !slot.is_announced && !slot.is_void).then_some(flow.cid())
    }

    /// Native acknowledgements of the flow that were never sent.
    pub(super) fn waiting(&self, flow: FlowId) -> usize {
        self.natives.get(&flow).map_or(0, |natives| natives.waiting)
    }

    /// Whether both ends certainly have the same context: no native acknowledgement is under way
    /// that would change it. Those that were never sent are the caller's business, since order
    /// has to be kept.
    pub(super) fn is_settled(&self, cid: u8) -> bool {
        let slot = self.slots.get(&cid);
        slot.is_some_and(|slot| {
            let natives = self.natives.get(&slot.owner);
            slot.is_certain && natives.is_none_or(|natives| natives.under_way == 0)
        })
    }

    fn count(&mut self, flow: FlowId, count: impl FnOnce(&mut Natives)) {
        let natives = self.natives.entry(flow).or_default();
        count(natives);
        if natives.waiting == 0 && natives.under_way == 0 {
            self.natives.remove(&flow);
        }
    }

    /// A native acknowledgement is in the queue.
    pub(super) fn on_queued(&mut self, flow: FlowId) {
        self.count(flow, |natives| natives.waiting += 1);
    }

    /// One was taken out of the queue and never sent.
    pub(super) fn on_gone(&mut self, flow: FlowId) {
        self.count(flow, |natives| {
            natives.waiting = natives.waiting.saturating_sub(1);
        });
    }

    /// One is sent for the first time.
    pub(super) fn on_leaving(&mut self, flow: FlowId) {
        self.count(flow, |natives| {
            natives.waiting = natives.waiting.saturating_sub(1);
            natives.under_way += 1;
        });
    }

    /// One that was first sent at `left` was received for certain, or given up and possibly
    /// received. Returns the CID if it is the context now.
    pub(super) fn on_settled(&mut self, flow: FlowId, left: Instant, is_acked: bool) -> Option<u8> {
        self.count(flow, |natives| {
            natives.under_way = natives.under_way.saturating_sub(1);
        });
        let slot = self.owned(flow)?;
        slot.is_certain = is_acked && !slot.is_announced && left >= slot.since;
        slot.is_agreed |= slot.is_certain;
        slot.is_certain.then_some(flow.cid())
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

    /// Whether the echo of the newest timestamp is still to come, and data with it; `None` when
    /// none was sent.
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

/// Whose a CID is at the rebuilding end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    /// The flow whose native acknowledgement came first.
    Flow(FlowId),
    /// The one that the other end has named.
    Named(u32),
}

/// The rebuilding end: whose context each CID is, and what its packets look like to the link.
#[derive(Debug)]
pub(super) struct Receiving<M> {
    slots: BTreeMap<u8, (Owner, Option<Msdu<M>>)>,
}

impl<M> Default for Receiving<M> {
    fn default() -> Self {
        Self {
            slots: BTreeMap::new(),
        }
    }
}

impl<M> Receiving<M> {
    /// A native acknowledgement came, `description` without its payload. Returns the CID if the
    /// flow owns it.
    pub(super) fn on_native(&mut self, flow: FlowId, description: Msdu<M>) -> Option<u8> {
        let cid = flow.cid();
        let new = (Owner::Flow(flow), None);
        let (owner, known) = self.slots.entry(cid).or_insert(new);
        let is_owner = match *owner {
            Owner::Flow(other) => other == flow,
            Owner::Named(name) => name == flow.name(),
        };
        if !is_owner {
            return None;
        }
        known.get_or_insert(description);
        Some(cid)
    }

    /// The other end said which flow owns the CID from now on.
    pub(super) fn on_announced(&mut self, cid: u8, name: u32) {
        self.slots.insert(cid, (Owner::Named(name), None));
    }

    /// What the packets of a CID look like.
    pub(super) fn description(&self, cid: u8) -> Option<&Msdu<M>> {
        self.slots.get(&cid)?.1.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: FlowId = FlowId(0x1_0000_0007);
    const B: FlowId = FlowId(0x2_0000_0007);
    const NANOSECOND: Duration = Duration::from_nanos(1);
    /// When a flow that was last heard at [`Instant::ZERO`] has been silent for long enough.
    const SILENT: Instant = Instant::from_millis(200);
    const LATER: Instant = Instant::from_millis(600);

    fn settled(sending: &mut Sending, flow: FlowId, left: Instant) -> Option<u8> {
        sending.on_queued(flow);
        sending.on_leaving(flow);
        sending.on_settled(flow, left, true)
    }

    #[test]
    fn a_silent_flow_gives_its_cid_away() {
        let mut sending = Sending::default();
        assert_eq!(sending.claim(A, Instant::ZERO, || true), Claim::Own(7));
        assert_eq!(settled(&mut sending, A, Instant::from_nanos(5)), Some(7));
        assert_eq!(sending.claim(B, SILENT - NANOSECOND, || true), Claim::Taken);
        assert_eq!(sending.claim(B, SILENT, || false), Claim::Taken, "held");
        assert_eq!(sending.claim(B, SILENT, || true), Claim::Announce(7));
        sending.on_queued(A);
        assert_eq!(sending.claim(B, SILENT, || true), Claim::Taken, "queued");
        sending.on_gone(A);
        sending.on_announced(B, SILENT);
        // Until the other end knows, nobody owns it.
        assert_eq!(sending.claim(A, LATER, || true), Claim::Taken);
        assert_eq!(sending.claim(B, LATER, || true), Claim::Taken);
        sending.on_agreed(7, LATER);
        assert_eq!(sending.claim(B, LATER, || true), Claim::Own(7));
        // What was sent before the other end knew may have been no context there.
        assert_eq!(settled(&mut sending, B, LATER - NANOSECOND), None);
        assert!(!sending.is_settled(7));
        assert_eq!(settled(&mut sending, B, LATER), Some(7));
        assert!(sending.is_settled(7));
        assert!(sending.natives.is_empty());
    }

    /// The first flow's native acknowledgements were all given up: the other end may know the
    /// second one only.
    #[test]
    fn a_doubtful_owner_is_announced() {
        let mut sending = Sending::default();
        assert_eq!(sending.claim(A, Instant::ZERO, || true), Claim::Own(7));
        sending.on_queued(A);
        sending.on_leaving(A);
        assert_eq!(sending.on_settled(A, Instant::ZERO, false), None);
        assert_eq!(
            sending.claim(B, Instant::from_nanos(1), || false),
            Claim::Taken
        );
        assert_eq!(
            sending.claim(A, Instant::from_nanos(2), || true),
            Claim::Announce(7)
        );
    }

    #[test]
    fn the_rebuilding_end_follows_what_is_announced() {
        let msdu = |len| Msdu::<()> {
            len,
            src: crate::frame::NodeId(1),
            dst: crate::frame::NodeId::AP,
            class: crate::frame::Class::TransportAck,
            category: crate::frame::AccessCategory::BestEffort,
            payload: None,
        };
        let mut receiving = Receiving::default();
        assert_eq!(receiving.on_native(A, msdu(1)), Some(7));
        assert_eq!(receiving.on_native(B, msdu(2)), None);
        receiving.on_announced(7, B.name());
        assert!(receiving.description(7).is_none());
        assert_eq!(receiving.on_native(A, msdu(3)), None);
        assert_eq!(receiving.on_native(B, msdu(4)), Some(7));
        assert_eq!(receiving.description(7).unwrap().len, 4);
    }
}
