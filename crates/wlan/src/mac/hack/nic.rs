//! The NIC's part: opaque bytes that it appends to its responses to one radio, until it knows that they arrived.
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

/// Half of the master sequence numbers, less one: among so many a receiver tells new ones from old ones.
pub(super) const MOST_RETAINED: u8 = 127;

/// So many numbers are out of use without being confirmed that a response says where the numbers are, even if it has
/// nothing else to carry.
const GAP: u8 = 64;

/// What a response answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answers {
    /// An A-MPDU or a Block ACK request.
    Block,
    /// A single frame.
    Single(AccessCategory, u16),
}

/// A compressed acknowledgement.
#[derive(Clone, Debug)]
pub(super) struct Descriptor<M> {
    pub(super) cid: u8,
    pub(super) bytes: Vec<u8>,
    /// The acknowledgement itself, in case it has to be sent as it is.
    pub(super) msdu: Msdu<M>,
    /// It is in the transmit queue, too.
    pub(super) is_queued: bool,
}

/// What was taken back.
#[derive(Debug)]
pub(super) struct Removed<M> {
    /// Never sent, in order.
    pub(super) unsent: Vec<Descriptor<M>>,
    /// How many were sent and may have arrived.
    pub(super) sent: u64,
    /// The newest of them.
    pub(super) newest_sent: Option<Msdu<M>>,
}

impl<M> Removed<M> {
    pub(super) fn is_empty(&self) -> bool {
        self.unsent.is_empty() && self.newest_sent.is_none()
    }
}

/// The descriptors for one radio.
#[derive(Debug)]
pub(super) struct Nic<M> {
    /// `None` where a descriptor was taken back.
    held: VecDeque<Option<Descriptor<M>>>,
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
        self.held.push_back(Some(descriptor));
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
        self.held.iter().skip(self.sent).flatten()
    }

    /// All descriptors.
    pub(super) fn held(&self) -> impl Iterator<Item = &Descriptor<M>> {
        self.held.iter().flatten()
    }

    /// The header of a data frame was read. Says whether it confirms the last response (HACK, section 3.4): it does, unless
    /// SYNC is set or it is the repetition of the single frame that the response answered.
    pub(super) fn on_data(&mut self, answers: Answers, is_retry: bool, sync: bool) -> bool {
        let is_repetition =
            is_retry && matches!(answers, Answers::Single(..)) && answers == self.answered;
        let confirms = !sync && !is_repetition;
        if confirms {
            self.confirm();
        }
        self.answering = answers;
        confirms
    }

    /// A Block ACK request came, which confirms nothing: what it asks for may be the last response.
    pub(super) fn on_request(&mut self) {
        self.answering = Answers::Block;
    }

    fn confirm(&mut self) {
        let Some(loaded) = self.loaded.take() else {
            return;
        };
        self.confirmed = loaded;
        self.held.drain(..self.sent);
        self.first = self.first.wrapping_add(self.sent as u8);
        self.sent = 0;
        self.trim();
    }

    /// Writes what the response carries that is about to go on the air. Returns how many descriptors are in it for the first
    /// time: the last ones.
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
                Some(descriptor) => writer.push(descriptor.cid, &descriptor.bytes),
                None => writer.skip(),
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
            held.as_ref().map(|descriptor| (msn, descriptor))
        })
    }

    /// Takes back the descriptors of a flow.
    pub(super) fn remove(&mut self, cid: u8) -> Removed<M> {
        let mut removed = Removed {
            unsent: Vec::new(),
            sent: 0,
            newest_sent: None,
        };
        for (at, held) in self.held.iter_mut().enumerate() {
            if held.as_ref().is_none_or(|descriptor| descriptor.cid != cid) {
                continue;
            }
            if let Some(descriptor) = held.take() {
                if at < self.sent {
                    removed.sent += 1;
                    removed.newest_sent = Some(descriptor.msdu);
                } else {
                    removed.unsent.push(descriptor);
                }
            }
        }
        self.trim();
        removed
    }

    /// The first unsent descriptor that `is` says it is no longer is in the transmit queue. Says whether there is one.
    pub(super) fn unqueue(&mut self, is: impl Fn(&Descriptor<M>) -> bool) -> bool {
        let unsent = self.held.iter_mut().skip(self.sent).flatten();
        for descriptor in unsent {
            if descriptor.is_queued && is(descriptor) {
                descriptor.is_queued = false;
                return true;
            }
        }
        false
    }

    /// Numbers at the end that were never sent are given again; those at the beginning are passed over.
    fn trim(&mut self) {
        while self.held.len() > self.sent && matches!(self.held.back(), Some(None)) {
            self.held.pop_back();
        }
        while matches!(self.held.front(), Some(None)) {
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
