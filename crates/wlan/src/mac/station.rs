//! One radio: its queues, its contention and the exchange of frames (§10.3, §10.23.2, §10.25).
//!
//! The medium tells it what it senses (`on_busy`, `on_idle`, `on_reception_start`, `receive`,
//! `overhear`), and wakes it at [`Station::poll_timeout`]; then [`Station::handle_timeout`] may
//! return what goes on the air. An exchange is
//!
//! ```text
//!  grant → [RTS … CTS | CTS to self] → data | Block ACK request
//!        → (ACK | Block ACK | timeout) → backoff
//! ```

mod agreements;
mod beacons;
mod crowd;
mod exchange;
mod hack;
mod reception;

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tack_base::random::RandomStream;
use tack_base::{Duration, Instant};

use super::access::{BusyEnd, ChannelAccess, Contention, CwAdaptation, Rules};
use super::agreement::Agreements;
use super::config::MacConfig;
use super::discipline::{BoxedDiscipline, Waiting};
use super::duplicates::DuplicateCache;
use super::hack::Hack;
use super::originator::{Originator, TxStatus};
use super::queue::TransmitQueue;
use super::recipient::Recipient;
use super::stats::StationStats;
use crate::frame::{AccessCategory, Class, Mpdu, Msdu, NodeId, Ppdu};
pub use beacons::Beacons;

/// What this radio waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaited {
    Cts,
    Ack,
    BlockAck,
}

/// What was sent, or is about to be, in the exchange under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Job {
    /// Data frames to a receiver.
    Data(NodeId),
    /// A Block ACK request to a receiver.
    Request(NodeId),
    /// The ADDBA frame with this sequence number to a receiver.
    Addba(NodeId, u16),
    Beacon,
}

/// Where the exchange under way stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// On the air.
    Sending,
    /// SIFS before the prepared frame.
    Pausing { until: Instant },
    /// The response has to begin by the deadline.
    Waiting { awaited: Awaited, deadline: Instant },
    /// The deadline has passed while a reception was under way: its end decides.
    Receiving { awaited: Awaited },
}

/// An exchange under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Exchange {
    /// The function that won the medium.
    function: usize,
    job: Job,
    step: Step,
    /// End of the transmission opportunity; the grant itself with a limit of zero.
    txop_end: Instant,
    /// PPDUs sent so far that want a response.
    attempts: u8,
}

/// A recipient that holds frames back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Hold {
    /// When they will have waited too long.
    until: Instant,
    from: NodeId,
    /// Index of the access category.
    category: usize,
}

/// Frames that were sent to a radio, which read none of them.
#[derive(Debug)]
struct Unread<M> {
    function: usize,
    to: NodeId,
    mpdus: Vec<Mpdu<M>>,
}

/// One radio.
#[derive(Debug)]
pub struct Station<M> {
    id: NodeId,
    config: Arc<MacConfig>,
    access: ChannelAccess,
    random: RandomStream,
    /// By function: one for DCF, four by category for EDCA.
    queues: Vec<TransmitQueue<M>>,
    beacons: Option<Beacons>,
    next_beacon: Instant,
    beacon_is_due: bool,
    exchange: Option<Exchange>,
    /// Goes on the air after CTS, or next within the TXOP.
    prepared: Option<Ppdu<M>>,
    /// A response that is due.
    response: Option<(Instant, Ppdu<M>)>,
    /// This radio is sending.
    is_sending: bool,
    /// A PPDU is being received whose header has been read at this instant.
    reception: Option<Instant>,
    recipients: Vec<[Recipient<M>; 4]>,
    /// The recipients that hold frames back, by the time until which they do.
    holds: BTreeSet<Hold>,
    /// When the first of them has held frames too long.
    next_hold: Instant,
    duplicates: DuplicateCache,
    /// TCP/HACK, where it is on.
    hack: Option<Box<Hack<M>>>,
    /// Set-up of Block ACK agreements, where there is any.
    agreements: Option<Box<Agreements>>,
    /// MPDU lists that can be used again.
    spare: Vec<Vec<Mpdu<M>>>,
    /// What was sent last, of which nothing was read.
    unread: Option<Unread<M>>,
    stats: StationStats,
    sifs: Duration,
    response_timeout: Duration,
}

impl<M: Clone> Station<M> {
    /// A radio with empty queues of `queue` packets each.
    pub fn new(
        id: NodeId,
        config: Arc<MacConfig>,
        queue: usize,
        beacons: Option<Beacons>,
        seed: u64,
    ) -> Self {
        let mut functions: Vec<Contention> = if config.is_qos {
            config.contention.to_vec()
        } else {
            Vec::from([config.contention[AccessCategory::BestEffort as usize]])
        };
        let mut queues: Vec<_> = functions
            .iter()
            .map(|_| TransmitQueue::new(queue))
            .collect();
        if config.negotiates() {
            queues.iter_mut().for_each(TransmitQueue::negotiate);
        }
        if beacons.is_some() {
            // A beacon goes after PIFS, before everything else.
            functions.push(Contention {
                aifsn: 1,
                cw_min: 0,
                cw_max: 0,
                rules: Rules::Edca,
                adaptation: CwAdaptation::Standard,
            });
        }
        let timing = &config.timing;
        let access = ChannelAccess::new(timing.slot, timing.sifs, config.eifs_extra(), &functions);
        Self {
            id,
            access,
            random: RandomStream::new(seed, "backoff", u64::from(id.0)),
            queues,
            next_beacon: beacons.map_or(Instant::FAR_FUTURE, |beacons| {
                Instant::ZERO + beacons.interval
            }),
            beacons,
            beacon_is_due: false,
            exchange: None,
            prepared: None,
            response: None,
            is_sending: false,
            reception: None,
            recipients: Vec::new(),
            holds: BTreeSet::new(),
            next_hold: Instant::FAR_FUTURE,
            duplicates: DuplicateCache::default(),
            hack: None,
            agreements: config.negotiates().then(Box::default),
            spare: Vec::new(),
            unread: None,
            stats: StationStats::default(),
            sifs: timing.sifs,
            response_timeout: config.response_timeout(),
            config,
        }
    }

    /// Adds a packet for receiver `to` to the queue of its category.
    ///
    /// # Errors
    /// The packet, when the queue is full.
    pub fn enqueue(&mut self, now: Instant, to: NodeId, msdu: Msdu<M>) -> Result<(), Msdu<M>> {
        if self.hack.is_some() && msdu.class == Class::TransportAck {
            return self.enqueue_ack(now, to, msdu);
        }
        self.push(now, to, msdu)
    }

    #[inline]
    fn push(&mut self, now: Instant, to: NodeId, msdu: Msdu<M>) -> Result<(), Msdu<M>> {
        let function = self.function(msdu.category);
        match self.queues[function].push(to, msdu) {
            Ok(gone) => {
                self.stats.superseded += u64::from(gone.is_some());
                if let (Some(hack), Some(gone)) = (&mut self.hack, gone) {
                    hack.on_gone(to, &gone);
                }
            }
            Err(msdu) => {
                self.stats.queue_drops += 1;
                return Err(msdu);
            }
        }
        let len = self.queues[function].len() as u64;
        self.stats.queue_max = self.stats.queue_max.max(len);
        self.wish(now, function);
        Ok(())
    }

    /// Lets `make` say which discipline each queue has from now on.
    pub fn set_discipline(&mut self, make: impl Fn(AccessCategory) -> BoxedDiscipline<M>) {
        for function in 0..self.queues.len() {
            let discipline = make(self.category(function));
            self.queues[function].set_discipline(discipline);
        }
    }

    /// Takes the packet out of the queue of `category` that is at `position` of those that wait for
    /// `to` and were never sent. The queue's length, the counters and the wish to transmit
    /// follow.
    pub fn remove(
        &mut self,
        now: Instant,
        category: AccessCategory,
        to: NodeId,
        position: usize,
    ) -> Option<Msdu<M>> {
        let function = self.function(category);
        let msdu = self.queues[function].remove(to, position)?;
        self.stats.removed += 1;
        if let Some(hack) = &mut self.hack {
            hack.on_gone(to, &msdu);
        }
        self.wish(now, function);
        Some(msdu)
    }

    /// What waits for `to` in the queue of `category` and was never sent.
    pub fn waiting(&self, category: AccessCategory, to: NodeId) -> Option<Waiting<'_, M>> {
        let queue = &self.queues[self.function(category)];
        queue.originator(to).map(Originator::waiting)
    }

    /// Lets something happen to the originator for `to` by which frames that were sent may leave
    /// its queue: its length, the counters and the wish to transmit follow here.
    fn settle(
        &mut self,
        at: Instant,
        function: usize,
        to: NodeId,
        act: impl FnOnce(&mut Originator<M>, &MacConfig) -> TxStatus,
    ) -> TxStatus {
        let config = &self.config;
        let status = self.queues[function].change(to, |originator| act(originator, config));
        self.stats.acked += status.acked as u64;
        self.stats.retry_drops += status.dropped as u64;
        self.tell_settled(at, function, to);
        self.wish(at, function);
        status
    }

    /// A function contends while its queue has something to send. That of the exchange under way
    /// looks at its queue when the exchange ends.
    fn wish(&mut self, at: Instant, function: usize) {
        let is_in_exchange = self
            .exchange
            .is_some_and(|exchange| exchange.function == function);
        if is_in_exchange {
            return;
        }
        let has_some = !self.queues[function].is_empty();
        if has_some && !self.access.wants(function) {
            let random = &mut self.random;
            self.access.request(function, at, |cw| draw(random, cw));
        } else if !has_some {
            self.access.set_wants(function, false);
        }
    }

    /// When this radio next has something to do by itself.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = self.next_wake();
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    /// As [`Station::poll_timeout`]; [`Instant::FAR_FUTURE`] for never.
    #[inline]
    pub(crate) fn next_wake(&self) -> Instant {
        let mut first = self.next_beacon.min(self.next_hold);
        if let Some((at, _)) = &self.response {
            first = first.min(*at);
        }
        first = first.min(self.next_interrupt());
        first = first.min(self.next_agreement());
        match self.exchange {
            Some(exchange) => match exchange.step {
                Step::Pausing { until } => first = first.min(until),
                Step::Waiting { deadline, .. } => first = first.min(deadline),
                Step::Sending | Step::Receiving { .. } => {}
            },
            None if self.response.is_none() => {
                if let Some(grant) = self.access.grant() {
                    first = first.min(grant);
                }
            }
            None => {}
        }
        first
    }

    /// The medium becomes busy: a signal begins, or this radio sends.
    #[inline]
    pub fn on_busy(&mut self, now: Instant) {
        self.access.on_busy(now);
    }

    /// The medium becomes idle.
    #[inline]
    pub fn on_idle(&mut self, now: Instant, end: BusyEnd) {
        self.access.on_idle(now, end);
    }

    /// Reception of a PPDU began; its header will have been read at `header_end`.
    #[inline]
    pub fn on_reception_start(&mut self, header_end: Instant) {
        self.reception = Some(header_end);
    }

    /// Reception broke off before the header was read, or because this radio sends.
    #[inline]
    pub fn on_reception_lost(&mut self) {
        self.reception = None;
    }

    /// True when frames have waited too long for one before them: [`Station::release_overdue`] is
    /// due.
    #[inline]
    pub fn holds_overdue(&self, now: Instant) -> bool {
        self.next_hold <= now
    }

    /// True while an exchange is under way that this radio began.
    #[inline]
    pub fn is_in_exchange(&self) -> bool {
        self.exchange.is_some()
    }

    /// True when this radio has something to send or an exchange is under way.
    pub fn is_active(&self) -> bool {
        self.exchange.is_some()
            || self.response.is_some()
            || self.is_sending
            || self.queues.iter().any(|queue| !queue.is_empty())
    }

    /// Packets in the queue of `category`, those on the air included.
    pub fn queue_len(&self, category: AccessCategory) -> usize {
        self.queues[self.function(category)].len()
    }

    /// How many packets have left the queue of `category` so far.
    pub fn departures(&self, category: AccessCategory) -> u64 {
        self.queues[self.function(category)].departures()
    }

    /// Packets in all queues.
    pub fn queued(&self) -> usize {
        self.queues.iter().map(TransmitQueue::len).sum()
    }

    /// Counters.
    pub fn stats(&self) -> &StationStats {
        &self.stats
    }

    /// Starts the counters over.
    pub fn reset_stats(&mut self) {
        self.stats = StationStats {
            queue_max: self.queued() as u64,
            ..StationStats::default()
        };
        if let Some(hack) = &mut self.hack {
            hack.reset_stats();
        }
    }

    /// Another transmission spoilt what this radio sends, which wants a response.
    pub fn on_collision(&mut self) {
        self.stats.collisions += 1;
        let is_first = self.exchange.is_some_and(|exchange| exchange.attempts == 1);
        self.stats.access_collisions += u64::from(is_first);
    }

    /// Takes back what this radio sent to `to` and nobody read. Most often it is sent again as it
    /// is.
    pub fn keep(&mut self, to: Option<NodeId>, category: AccessCategory, mpdus: Vec<Mpdu<M>>) {
        match to {
            // Within a limit the next attempt may have less time.
            Some(to) if self.config.txop_limit[category as usize].is_zero() => {
                let function = self.function(category);
                let unread = Unread {
                    function,
                    to,
                    mpdus,
                };
                if let Some(before) = self.unread.replace(unread) {
                    self.recycle(before.mpdus);
                }
            }
            _ => self.recycle(mpdus),
        }
    }

    /// A list for the next frames of `function` to `to`: what was sent last, if it was sent to that
    /// one, or an empty one.
    fn list(&mut self, function: usize, to: NodeId) -> Vec<Mpdu<M>> {
        match self.unread.take() {
            Some(last) if (last.function, last.to) == (function, to) => last.mpdus,
            Some(mut last) => {
                last.mpdus.clear();
                last.mpdus
            }
            None => self.spare.pop().unwrap_or_default(),
        }
    }

    /// Takes back a list of MPDUs to use it again.
    pub fn recycle(&mut self, mut mpdus: Vec<Mpdu<M>>) {
        if self.spare.len() < 2 {
            mpdus.clear();
            self.spare.push(mpdus);
        }
    }

    #[inline]
    fn function(&self, category: AccessCategory) -> usize {
        if self.config.is_qos {
            category as usize
        } else {
            0
        }
    }

    fn category(&self, function: usize) -> AccessCategory {
        if self.config.is_qos {
            AccessCategory::ALL[function.min(3)]
        } else {
            AccessCategory::BestEffort
        }
    }
}

/// A backoff: uniformly distributed in `0..=cw`.
#[inline]
fn draw(random: &mut RandomStream, cw: u32) -> u32 {
    random.below(u64::from(cw) + 1) as u32
}

#[cfg(test)]
mod tests;
