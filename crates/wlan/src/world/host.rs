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

/// A packet that comes to a queue.
#[derive(Debug)]
pub(super) enum Entry<M> {
    /// From the radio's own host.
    Own(Msdu<M>),
    /// From one station to another, through the access point.
    Relayed(Msdu<M>),
}

/// What is under way. The delays are the same for all radios, so each list is in order of time.
#[derive(Debug)]
pub(super) struct Hosts<M> {
    receive: Duration,
    transmit: Duration,
    entering: VecDeque<(Instant, Msdu<M>)>,
    relayed: VecDeque<(Instant, Msdu<M>)>,
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
            delivered: VecDeque::new(),
            counts: alloc::vec![[0; 4]; radios],
        }
    }

    /// From the end of a received frame to the host.
    pub(super) fn receive_delay(&self) -> Duration {
        self.receive
    }

    /// A host sends at `now`. Returns the packet when it is at the radio at once.
    pub(super) fn send(&mut self, now: Instant, msdu: Msdu<M>) -> Option<Msdu<M>> {
        if self.transmit.is_zero() {
            return Some(msdu);
        }
        self.counts[msdu.src.index()][msdu.category as usize] += 1;
        self.entering.push_back((now + self.transmit, msdu));
        None
    }

    /// A packet of a station has come to the access point's radio, for another station. Returns it
    /// when it is back at once. The host hears of it at `ready`, if that is not in the past.
    pub(super) fn relay(&mut self, now: Instant, ready: Instant, msdu: Msdu<M>) -> Option<Msdu<M>> {
        let delay = self.receive + self.transmit + ready.saturating_since(now);
        if delay.is_zero() {
            return Some(msdu);
        }
        self.counts[NodeId::AP.index()][msdu.category as usize] += 1;
        insert(&mut self.relayed, now + delay, msdu);
        None
    }

    /// When the next packet comes to a queue.
    #[inline]
    pub(super) fn next_entry(&self) -> Instant {
        let first = |list: &VecDeque<(Instant, Msdu<M>)>| {
            list.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at)
        };
        first(&self.entering).min(first(&self.relayed))
    }

    /// The next packet that has come to a queue by `now`.
    #[inline]
    pub(super) fn enter(&mut self, now: Instant) -> Option<Entry<M>> {
        let is_due =
            |list: &VecDeque<(Instant, Msdu<M>)>| list.front().is_some_and(|(at, _)| *at <= now);
        if is_due(&self.entering) {
            let (_, msdu) = self.entering.pop_front()?;
            self.counts[msdu.src.index()][msdu.category as usize] -= 1;
            return Some(Entry::Own(msdu));
        }
        if is_due(&self.relayed) {
            let (_, msdu) = self.relayed.pop_front()?;
            self.counts[NodeId::AP.index()][msdu.category as usize] -= 1;
            return Some(Entry::Relayed(msdu));
        }
        None
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
    let later = list.iter().rev().take_while(|(other, _)| *other > at);
    let position = list.len() - later.count();
    list.insert(position, (at, what));
}
