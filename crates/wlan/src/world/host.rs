//! Packets on their way between radios and their hosts.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use tack_base::time::nanos;

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
    receive: u64,
    transmit: u64,
    entering: VecDeque<(u64, Msdu<M>)>,
    relayed: VecDeque<(u64, Msdu<M>)>,
    delivered: VecDeque<(u64, Delivery<M>)>,
    /// Packets in `entering` and `relayed`, by radio and category.
    counts: Vec<[usize; 4]>,
}

impl<M> Hosts<M> {
    pub(super) fn new(delays: HostDelays, radios: usize) -> Self {
        Self {
            receive: nanos(delays.receive),
            transmit: nanos(delays.transmit),
            entering: VecDeque::new(),
            relayed: VecDeque::new(),
            delivered: VecDeque::new(),
            counts: alloc::vec![[0; 4]; radios],
        }
    }

    /// From the end of a received frame to the host.
    pub(super) fn receive_delay(&self) -> tack_base::Duration {
        tack_base::Duration::from_nanos(self.receive)
    }

    /// A host sends at `now`. Returns the packet when it is at the radio at once.
    pub(super) fn send(&mut self, now: u64, msdu: Msdu<M>) -> Option<Msdu<M>> {
        if self.transmit == 0 {
            return Some(msdu);
        }
        self.counts[msdu.src.index()][msdu.category as usize] += 1;
        self.entering.push_back((now + self.transmit, msdu));
        None
    }

    /// A packet of a station has come to the access point's radio, for another station. Returns it when it is back at once.
    /// The host hears of it at `ready`, if that is not in the past.
    pub(super) fn relay(&mut self, now: u64, ready: u64, msdu: Msdu<M>) -> Option<Msdu<M>> {
        let delay = self.receive + self.transmit + ready.saturating_sub(now);
        if delay == 0 {
            return Some(msdu);
        }
        self.counts[NodeId::AP.index()][msdu.category as usize] += 1;
        insert(&mut self.relayed, now + delay, msdu);
        None
    }

    /// When the next packet comes to a queue, nanoseconds.
    #[inline]
    pub(super) fn next_entry(&self) -> u64 {
        let first = |list: &VecDeque<(u64, Msdu<M>)>| list.front().map_or(u64::MAX, |(at, _)| *at);
        first(&self.entering).min(first(&self.relayed))
    }

    /// The next packet that has come to a queue by `now`.
    #[inline]
    pub(super) fn enter(&mut self, now: u64) -> Option<Entry<M>> {
        let is_due =
            |list: &VecDeque<(u64, Msdu<M>)>| list.front().is_some_and(|(at, _)| *at <= now);
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
    pub(super) fn deliver(&mut self, ready: u64, delivery: Delivery<M>) {
        insert(&mut self.delivered, ready + self.receive, delivery);
    }

    /// The next packet that is at its host by `now`.
    #[inline]
    pub(super) fn receive(&mut self, now: u64) -> Option<Delivery<M>> {
        let is_there = self.delivered.front().is_some_and(|(at, _)| *at <= now);
        if is_there {
            self.delivered.pop_front().map(|(_, delivery)| delivery)
        } else {
            None
        }
    }

    /// When the next packet comes to its host, if that is after `handled`, nanoseconds: those until then can be had.
    #[inline]
    pub(super) fn next_delivery(&self, handled: u64) -> u64 {
        let first = self.delivered.front().map(|(at, _)| *at);
        first.filter(|at| *at > handled).unwrap_or(u64::MAX)
    }

    /// Before when nothing that a radio receives at `at` or later is at its host.
    #[inline]
    pub(super) fn earliest_delivery(&self, at: u64) -> u64 {
        at.saturating_add(self.receive)
    }

    /// True when nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.entering.is_empty() && self.relayed.is_empty() && self.delivered.is_empty()
    }
}

/// Keeps a list in order of time, and what comes at the same time in its order.
#[inline]
fn insert<T>(list: &mut VecDeque<(u64, T)>, at: u64, what: T) {
    let later = list.iter().rev().take_while(|(other, _)| *other > at);
    let position = list.len() - later.count();
    list.insert(position, (at, what));
}
