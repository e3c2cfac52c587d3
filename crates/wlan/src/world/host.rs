//! Packets on their way between radios and their hosts.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tack_base::{Duration, Instant};

use super::config::HostDelays;
use crate::frame::{AccessCategory, Msdu, NodeId};

/// An MSDU that has come to its destination.
#[derive(Clone, Debug)]
pub struct Delivery<M> {
    /// The radio that hands it on: a station's host, or the network behind the access point.
    pub at: NodeId,
    /// What came.
    pub msdu: Msdu<M>,
}

/// What is under way. The delays are the same for all radios, so each list is in order of time.
#[derive(Debug)]
pub(super) struct Hosts<M> {
    receive: Duration,
    transmit: Duration,
    entering: VecDeque<(Instant, Msdu<M>)>,
    relayed: VecDeque<(Instant, Msdu<M>)>,
    /// When the next packet comes to a queue: asked for more often than it changes.
    next_entry: Instant,
    delivered: VecDeque<(Instant, Delivery<M>)>,
    /// Packets in `entering` and `relayed`, by radio and category.
    counts: Vec<[usize; 4]>,
}

impl<M> Hosts<M> {
    pub(super) fn new(delays: HostDelays, radios: usize) -> Self {
        Self {
            receive: delays.receive,
            transmit: delays.transmit,
            entering: VecDeque::new(),
            relayed: VecDeque::new(),
            next_entry: Instant::FAR_FUTURE,
            delivered: VecDeque::new(),
            counts: alloc::vec![[0; 4]; radios],
        }
    }

    /// From the end of a received frame to the host.
    pub(super) fn receive_delay(&self) -> Duration {
        self.receive
    }

    /// Whether what a host sends is at its radio at once.
    #[inline]
    pub(super) fn send_at_once(&self) -> bool {
        self.transmit.is_zero()
    }

    /// A host sends at `now` what takes time to its radio.
    #[inline]
    pub(super) fn send(&mut self, now: Instant, msdu: Msdu<M>) {
        let at = now + self.transmit;
        self.next_entry = self.next_entry.min(at);
        self.counts[msdu.src.index()][msdu.category as usize] += 1;
        self.entering.push_back((at, msdu));
    }

    /// A packet of a station has come to the access point's radio, for another station. Returns it
    /// when it is back at once. The host hears of it at `ready`, if that is not in the past.
    pub(super) fn relay(&mut self, now: Instant, ready: Instant, msdu: Msdu<M>) -> Option<Msdu<M>> {
        let delay = self.receive + self.transmit + ready.saturating_since(now);
        if delay.is_zero() {
            return Some(msdu);
        }
        self.counts[NodeId::AP.index()][msdu.category as usize] += 1;
        let at = now + delay;
        self.next_entry = self.next_entry.min(at);
        insert(&mut self.relayed, at, msdu);
        None
    }

    /// When the next packet comes to a queue.
    #[inline]
    pub(super) fn next_entry(&self) -> Instant {
        self.next_entry
    }

    /// The next packet that has come to a queue by `now`, with the radio whose queue it is: what
    /// goes from one station to another comes to the access point's.
    #[inline]
    pub(super) fn enter(&mut self, now: Instant) -> Option<(NodeId, Msdu<M>)> {
        if self.next_entry > now {
            return None;
        }
        // Of those that have come by now, the radios' own go first.
        let is_own = self.entering.front().is_some_and(|(at, _)| *at <= now);
        let list = if is_own {
            &mut self.entering
        } else {
            &mut self.relayed
        };
        let (_, msdu) = list.pop_front()?;
        let first = |list: &VecDeque<(Instant, Msdu<M>)>| {
            list.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at)
        };
        self.next_entry = first(&self.entering).min(first(&self.relayed));
        let radio = if is_own { msdu.src } else { NodeId::AP };
        self.counts[radio.index()][msdu.category as usize] -= 1;
        Some((radio, msdu))
    }

    /// Packets of `category` on their way to the queue of `node`.
    #[inline]
    pub(super) fn entering(&self, node: NodeId, category: AccessCategory) -> usize {
        self.counts[node.index()][category as usize]
    }

    /// A radio hands a packet to its host, which can hear of it at `ready`.
    #[inline]
    pub(super) fn deliver(&mut self, ready: Instant, delivery: Delivery<M>) {
        insert(&mut self.delivered, ready + self.receive, delivery);
    }

    /// The next packet that is at its host by `now`.
    #[inline]
    pub(super) fn receive(&mut self, now: Instant) -> Option<Delivery<M>> {
        let is_there = self.delivered.front().is_some_and(|(at, _)| *at <= now);
        if is_there {
            self.delivered.pop_front().map(|(_, delivery)| delivery)
        } else {
            None
        }
    }

    /// When the next packet comes to its host, if that is after `handled`: those until then can be
    /// had.
    #[inline]
    pub(super) fn next_delivery(&self, handled: Instant) -> Instant {
        let first = self.delivered.front().map(|(at, _)| *at);
        first
            .filter(|at| *at > handled)
            .unwrap_or(Instant::FAR_FUTURE)
    }

    /// Before when nothing that a radio receives at `at` or later is at its host.
    #[inline]
    pub(super) fn earliest_delivery(&self, at: Instant) -> Instant {
        at + self.receive
    }

    /// True when nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.entering.is_empty() && self.relayed.is_empty() && self.delivered.is_empty()
    }
}

/// Keeps a list in order of time, and what comes at the same time in its order.
#[inline]
fn insert<T>(list: &mut VecDeque<(Instant, T)>, at: Instant, what: T) {
    if list.back().is_none_or(|(last, _)| *last <= at) {
        list.push_back((at, what));
        return;
    }
    let later = list.iter().rev().take_while(|(other, _)| *other > at);
    let position = list.len() - later.count();
    list.insert(position, (at, what));
}
