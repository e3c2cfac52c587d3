//! The NIC's part: opaque bytes that it appends to its responses to one radio, until it knows that
//! they arrived.
//!
//! ```text
//!  confirmed        first              + sent            next
//!      | removed …    | in the last response | not sent yet |
//! ```
//!
//! Nothing here knows a packet: what is counted are descriptors, as the driver hands them in.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::carried::Writer;
use crate::frame::{AccessCategory, Msdu};

/// Half of the master sequence numbers, less one: among so many a receiver distinguishes new ones
/// from old ones.
pub(super) const MOST_RETAINED: u8 = 127;

/// So many numbers are out of use without being confirmed that a response says where the numbers
/// are, even if it has nothing else to carry.
const GAP: u8 = 64;

/// The frames that a response acknowledges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answers {
    /// An A-MPDU or a Block ACK request.
    Block,
    /// A single frame.
    Single(AccessCategory, u16),
}

/// The native copy of an acknowledgement that is held compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NativeCopy {
    /// None is in the transmit queue: the acknowledgement waits for a response.
    None,
    /// One is in the transmit queue. Whichever of the two leaves first wins.
    Queued,
    /// One was in the transmit queue, and a newer acknowledgement replaced it there.
    Superseded,
}

/// A compressed acknowledgement.
#[derive(Clone, Debug)]
pub(super) struct Descriptor<M> {
    pub(super) cid: u8,
    pub(super) bytes: Vec<u8>,
    /// The acknowledgement itself, in case it has to be sent as it is.
    pub(super) msdu: Msdu<M>,
    pub(super) native: NativeCopy,
}

/// An entry with a master sequence number.
#[derive(Clone, Debug)]
enum Item<M> {
    Ack(Descriptor<M>),
    /// The CID is the flow's with this name from now on.
    Owner(u8, u32),
    /// It was taken back.
    Nothing,
}

impl<M> Item<M> {
    fn ack(&self) -> Option<&Descriptor<M>> {
        match self {
            Self::Ack(descriptor) => Some(descriptor),
            Self::Owner(..) | Self::Nothing => None,
        }
    }

    fn ack_mut(&mut self) -> Option<&mut Descriptor<M>> {
        match self {
            Self::Ack(descriptor) => Some(descriptor),
            Self::Owner(..) | Self::Nothing => None,
        }
    }

    fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

/// The descriptors that were removed.
#[derive(Debug)]
pub(super) struct Removed<M> {
    /// Never sent, in order.
    pub(super) unsent: Vec<Descriptor<M>>,
    /// How many were sent and may have arrived.
    pub(super) sent: u64,
}

impl<M> Removed<M> {
    pub(super) fn is_empty(&self) -> bool {
        self.unsent.is_empty() && self.sent == 0
    }
}

/// The descriptors that a header confirms.
#[derive(Debug)]
pub(super) struct Confirmed<M> {
    /// Acknowledgements that have arrived and are in the transmit queue, too.
    pub(super) twins: Vec<Msdu<M>>,
    /// CIDs of which the other end has learned the owner.
    pub(super) owned: Vec<u8>,
}

impl<M> Default for Confirmed<M> {
    fn default() -> Self {
        Self {
            twins: Vec::new(),
            owned: Vec::new(),
        }
    }
}

/// The descriptors for one radio.
#[derive(Debug)]
pub(super) struct Nic<M> {
    held: VecDeque<Item<M>>,
    /// Master sequence number of the first.
    first: u8,
    /// So many of them, from the first, were in the last response.
    sent: usize,
    /// All before this number have arrived.
    confirmed: u8,
    /// The last response carried what is before this number.
    loaded: Option<u8>,
    /// What the next response will answer, and what the last one answered.
    answering: Answers,
    answered: Answers,
}

impl<M> Default for Nic<M> {
    fn default() -> Self {
        Self {
            held: VecDeque::new(),
            first: 0,
            sent: 0,
            confirmed: 0,
            loaded: None,
            answering: Answers::Block,
            answered: Answers::Block,
        }
    }
}

impl<M> Nic<M> {
    /// The master sequence number of the next descriptor.
    pub(super) fn next(&self) -> u8 {
        self.first.wrapping_add(self.held.len() as u8)
    }

    /// True while another descriptor can be told from old ones.
    pub(super) fn has_room(&self) -> bool {
        self.next().wrapping_sub(self.confirmed) < MOST_RETAINED
    }

    pub(super) fn push(&mut self, descriptor: Descriptor<M>) {
        debug_assert!(self.has_room());
        self.held.push_back(Item::Ack(descriptor));
    }

    /// Tells the other end whose the CID is from now on.
    pub(super) fn announce(&mut self, cid: u8, name: u32) {
        debug_assert!(self.has_room());
        self.held.push_back(Item::Owner(cid, name));
    }

    /// True when nothing is held.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// True when something is held that no response has carried.
    pub(super) fn has_unsent(&self) -> bool {
        self.held.len() > self.sent
    }

    /// The descriptors that no response has carried.
    pub(super) fn unsent(&self) -> impl Iterator<Item = &Descriptor<M>> {
        self.held.iter().skip(self.sent).filter_map(Item::ack)
    }

    /// All descriptors.
    pub(super) fn held(&self) -> impl DoubleEndedIterator<Item = &Descriptor<M>> {
        self.held.iter().filter_map(Item::ack)
    }

    /// All descriptors, in case their place changes.
    pub(super) fn held_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Descriptor<M>> {
        self.held.iter_mut().filter_map(Item::ack_mut)
    }

    /// Those that no response has carried, in case their place changes.
    pub(super) fn unsent_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Descriptor<M>> {
        let unsent = self.held.iter_mut().skip(self.sent);
        unsent.filter_map(Item::ack_mut)
    }

    /// The header of a data frame was read. Says what it confirms of the last response (HACK,
    /// section 3.4): it does, unless SYNC is set or it is the repetition of the single frame
    /// that the response answered.
    pub(super) fn on_data(
        &mut self,
        answers: Answers,
        is_retry: bool,
        sync: bool,
    ) -> Option<Confirmed<M>> {
        let is_repetition =
            is_retry && matches!(answers, Answers::Single(..)) && answers == self.answered;
        let confirms = !sync && !is_repetition;
        let confirmed = confirms.then(|| self.confirm());
        self.answering = answers;
        confirmed
    }

    /// A Block ACK request came, which confirms nothing: what it asks for may be the last response.
    pub(super) fn on_request(&mut self) {
        self.answering = Answers::Block;
    }

    fn confirm(&mut self) -> Confirmed<M> {
        let mut confirmed = Confirmed::default();
        let Some(loaded) = self.loaded.take() else {
            return confirmed;
        };
        self.confirmed = loaded;
        for item in self.held.drain(..self.sent) {
            match item {
                Item::Ack(held) if held.native == NativeCopy::Queued => {
                    confirmed.twins.push(held.msdu)
                }
                Item::Owner(cid, _) => confirmed.owned.push(cid),
                Item::Ack(_) | Item::Nothing => {}
            }
        }
        self.first = self.first.wrapping_add(self.sent as u8);
        self.sent = 0;
        self.trim();
        confirmed
    }

    /// Writes what the response carries that is about to go on the air. Returns how many numbers
    /// are in it for the first time: the last ones.
    pub(super) fn load(&mut self, carried: &mut Vec<u8>) -> usize {
        let gap = self.next().wrapping_sub(self.confirmed);
        self.answered = self.answering;
        if self.held.is_empty() && gap <= GAP {
            self.loaded = None;
            return 0;
        }
        let mut writer = Writer::new(carried, self.first);
        for held in &self.held {
            match held {
                Item::Ack(descriptor) => writer.push(descriptor.cid, &descriptor.bytes),
                Item::Owner(cid, name) => writer.announce(*cid, *name),
                Item::Nothing => writer.skip(),
            }
        }
        self.loaded = Some(self.next());
        let new = self.held.len() - self.sent;
        self.sent = self.held.len();
        new
    }

    /// What the last response carried, with the numbers: those still held.
    pub(super) fn sent(&self) -> impl DoubleEndedIterator<Item = (u8, &Descriptor<M>)> {
        let numbered = self.held.iter().take(self.sent).enumerate();
        numbered.filter_map(|(at, held)| {
            let msn = self.first.wrapping_add(at as u8);
            held.ack().map(|descriptor| (msn, descriptor))
        })
    }

    /// Takes back the descriptors of a flow.
    pub(super) fn remove(&mut self, cid: u8) -> Removed<M> {
        let mut removed = Removed {
            unsent: Vec::new(),
            sent: 0,
        };
        for (at, held) in self.held.iter_mut().enumerate() {
            if held.ack().is_none_or(|descriptor| descriptor.cid != cid) {
                continue;
            }
            if at < self.sent {
                removed.sent += 1;
                *held = Item::Nothing;
            } else if let Item::Ack(descriptor) = core::mem::replace(held, Item::Nothing) {
                removed.unsent.push(descriptor);
            }
        }
        self.trim();
        removed
    }

    /// Numbers at the end that were never sent are given again; those at the beginning are passed
    /// over.
    fn trim(&mut self) {
        while self.held.len() > self.sent && self.held.back().is_some_and(Item::is_nothing) {
            self.held.pop_back();
        }
        while self.held.front().is_some_and(Item::is_nothing) {
            self.held.pop_front();
            self.first = self.first.wrapping_add(1);
            self.sent = self.sent.saturating_sub(1);
        }
    }
}

/// The receiving side: which numbers are new.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    next: u8,
}

impl Received {
    /// True when the number was not seen, which it is from now on.
    pub(super) fn accept(&mut self, msn: u8) -> bool {
        let is_new = msn.wrapping_sub(self.next) <= MOST_RETAINED;
        if is_new {
            self.next = msn.wrapping_add(1);
        }
        is_new
    }

    /// A response said that nothing before `msn` is to come.
    pub(super) fn advance(&mut self, msn: u8) {
        if msn.wrapping_sub(self.next) <= MOST_RETAINED {
            self.next = msn;
        }
    }
}
