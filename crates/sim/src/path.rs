//! One direction of the path between two hosts: middlebox, black holes, bottleneck, marks, loss,
//! damage, delay.
//!
//! In the order in which a packet passes them:
//!
//! 1. blackout (everything is lost), then the MTU black hole (large packets are);
//! 2. the middlebox rewrites headers;
//! 3. the queue drops, marks, and serves; what is lost after it has used the link;
//! 4. loss, damage;
//! 5. delay, extra delay of a reordered packet, suspension;
//! 6. duplication: the copy comes right behind;
//! 7. the delay of the packet's flow, where it has one of its own.

use std::collections::{BTreeMap, VecDeque};
use std::mem;

use tack_base::{Duration, Instant};

use crate::impair::damage::Damage;
use crate::impair::loss::{Loss, LossConfig};
use crate::impair::mark::{Mark, MarkConfig};
use crate::impair::middlebox::{Middlebox, MiddleboxConfig};
use crate::impair::order::{Order, OrderConfig};
use crate::impair::outage::{Blackout, Suspension, SuspensionConfig};
use crate::link::{Bottleneck, BottleneckConfig, Bound, Full, LinkRate};
use crate::packet::Packet;

/// Settings of one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct PathConfig {
    /// Rate, delay and queue.
    pub bottleneck: BottleneckConfig,
    /// Random loss.
    pub loss: LossConfig,
    /// Reordering and duplication.
    pub order: OrderConfig,
    /// Probability of damage.
    pub corrupt: f64,
    /// ECN marks.
    pub mark: MarkConfig,
    /// Header rewriting.
    pub middlebox: MiddleboxConfig,
    /// Times in which everything is lost.
    pub blackouts: Vec<Blackout>,
    /// Repeated suspensions.
    pub suspension: Option<SuspensionConfig>,
    /// IP packets longer than this are dropped silently.
    pub mtu_black_hole: Option<usize>,
    /// From then on.
    pub mtu_black_hole_from: Instant,
}

impl PathConfig {
    /// A direction without faults.
    pub fn new(rate: LinkRate, delay: Duration, queue: Bound) -> Self {
        Self {
            bottleneck: BottleneckConfig { rate, delay, queue },
            loss: LossConfig::default(),
            order: OrderConfig::default(),
            corrupt: 0.0,
            mark: MarkConfig::default(),
            middlebox: MiddleboxConfig::default(),
            blackouts: Vec::new(),
            suspension: None,
            mtu_black_hole: None,
            mtu_black_hole_from: Instant::ZERO,
        }
    }
}

/// What happened to the packets of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PathCounters {
    /// Packets that entered.
    pub packets: u64,
    /// Bytes of the packets that entered.
    pub bytes: u64,
    /// Packets that arrived, copies included.
    pub delivered: u64,
    /// Dropped because the queue was full.
    pub queue_drops: u64,
    /// Lost at random.
    pub lost: u64,
    /// Lost in a blackout.
    pub blacked_out: u64,
    /// Lost because of their size.
    pub too_large: u64,
    /// Damaged.
    pub corrupted: u64,
    /// Delayed beyond packets behind them.
    pub reordered: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Marked congestion experienced.
    pub marked: u64,
    /// Packets of which a middlebox took options out or changed ECN bits.
    pub stripped: u64,
    /// Longest queue, packets.
    pub queue_max: u64,
}

/// One direction of a wired path.
#[derive(Clone, Debug)]
pub struct Path {
    bottleneck: Bottleneck,
    loss: Loss,
    order: Order,
    damage: Damage,
    mark: Mark,
    middlebox: Middlebox,
    blackouts: Vec<Blackout>,
    suspension: Option<Suspension>,
    largest: usize,
    /// Packets that enter before may be larger.
    largest_from: Instant,
    /// There is more than rate, delay and queue.
    has_faults: bool,
    /// On the way, in order of arrival.
    in_order: VecDeque<(Instant, Packet)>,
    /// On the way with extra delay (reordered, or of a flow with a delay of its own), by arrival
    /// and entry.
    late: BTreeMap<(Instant, u64), Packet>,
    /// When the next packet arrives: asked for more often than it changes.
    next: Option<Instant>,
    /// It has changed since [`Path::poll_change`] last told.
    has_changed: bool,
    counters: PathCounters,
}

impl Path {
    /// An empty direction; `direction` is 0 from the server and 1 to the server.
    pub fn new(config: &PathConfig, seed: u64, direction: usize) -> Self {
        let stream = direction as u64;
        Self {
            bottleneck: Bottleneck::new(&config.bottleneck),
            loss: Loss::new(config.loss, seed, stream),
            order: Order::new(config.order, seed, stream),
            damage: Damage::new(config.corrupt, seed, stream),
            mark: Mark::new(config.mark, seed, stream),
            middlebox: Middlebox::new(config.middlebox.clone(), seed, direction),
            blackouts: config.blackouts.clone(),
            suspension: config
                .suspension
                .map(|config| Suspension::new(config, seed, stream)),
            largest: config.mtu_black_hole.unwrap_or(usize::MAX),
            largest_from: config.mtu_black_hole_from,
            in_order: VecDeque::new(),
            late: BTreeMap::new(),
            next: None,
            has_changed: false,
            has_faults: *config != without_faults(config),
            counters: PathCounters::default(),
        }
    }

    /// A packet enters at `now`, which never goes back.
    #[inline]
    pub fn send(&mut self, now: Instant, packet: Packet) {
        self.send_delayed(now, packet, Duration::ZERO);
    }

    /// A packet enters at `now`, which never goes back, and takes longer than others by `beyond`
    /// once it has passed all that is in the way. Packets with the same `beyond` keep their
    /// order among each other.
    pub fn send_delayed(&mut self, now: Instant, packet: Packet, beyond: Duration) {
        let len = packet.len();
        self.counters.packets += 1;
        self.counters.bytes += len as u64;
        if self.has_faults {
            self.send_with_faults(now, packet, beyond);
            return;
        }
        match self.bottleneck.enqueue(now, len) {
            Ok(arrival) => self.deliver(arrival + beyond, !beyond.is_zero(), packet),
            Err(Full) => self.counters.queue_drops += 1,
        }
    }

    /// The steps of a packet that the direction may do something to.
    fn send_with_faults(&mut self, now: Instant, mut packet: Packet, beyond: Duration) {
        let len = packet.len();
        if self.blackouts.iter().any(|blackout| blackout.covers(now)) {
            self.counters.blacked_out += 1;
            return;
        }
        if self.is_too_large(now, len) {
            self.counters.too_large += 1;
            return;
        }
        if self.middlebox.is_on() && self.middlebox.pass(&mut packet) {
            self.counters.stripped += 1;
        }
        if self.mark.is_on() {
            let (packets, bytes) = self.bottleneck.backlog(now);
            self.counters.marked += u64::from(self.mark.apply(&mut packet, packets, bytes));
        }
        let Ok(mut arrival) = self.bottleneck.enqueue(now, packet.len()) else {
            self.counters.queue_drops += 1;
            return;
        };
        if self.loss.loses(&packet) {
            self.counters.lost += 1;
            return;
        }
        if self.damage.strike(&mut packet) {
            self.counters.corrupted += 1;
        }
        let extra = self.order.extra_delay();
        arrival += extra.unwrap_or_default();
        if let Some(suspension) = &mut self.suspension {
            arrival = suspension.hold(arrival);
        }
        arrival += beyond;
        let overtaken = extra.is_some() || !beyond.is_zero();
        self.counters.reordered += u64::from(extra.is_some());
        if self.order.duplicates() {
            self.duplicate(arrival, overtaken, &packet);
        }
        self.deliver(arrival, overtaken, packet);
    }

    /// A copy of a packet is on its way.
    #[cold]
    fn duplicate(&mut self, arrival: Instant, overtaken: bool, packet: &Packet) {
        self.counters.duplicated += 1;
        self.deliver(arrival, overtaken, packet.clone());
    }

    /// A packet is on its way.
    #[inline(always)]
    fn deliver(&mut self, arrival: Instant, overtaken: bool, packet: Packet) {
        self.counters.delivered += 1;
        if overtaken {
            self.late.insert((arrival, self.counters.delivered), packet);
        } else {
            self.in_order.push_back((arrival, packet));
        }
        // Behind others in order, it is not the next.
        if overtaken || self.in_order.len() == 1 {
            self.look();
        }
    }

    /// A packet of `len` bytes vanishes if it enters at `now`.
    #[inline]
    pub(crate) fn is_too_large(&self, now: Instant, len: usize) -> bool {
        len > self.largest && now >= self.largest_from
    }

    /// When the next packet arrives.
    #[inline]
    pub fn next_arrival(&self) -> Option<Instant> {
        self.next
    }

    /// When the next packet arrives, if that may have changed since this was last asked.
    #[inline]
    pub(crate) fn poll_change(&mut self) -> Option<Option<Instant>> {
        mem::take(&mut self.has_changed).then_some(self.next)
    }

    /// Finds the packet that arrives next.
    #[inline]
    fn look(&mut self) {
        let in_order = self.in_order.front().map(|(at, _)| *at);
        self.next = if self.late.is_empty() {
            in_order
        } else {
            let late = self.late.first_key_value().map(|((at, _), _)| *at);
            in_order.into_iter().chain(late).min()
        };
        self.has_changed = true;
    }

    /// The next packet that has arrived by `now`.
    #[inline]
    pub fn receive(&mut self, now: Instant) -> Option<(Instant, Packet)> {
        let at = self.next.filter(|at| *at <= now)?;
        let received = if self.in_order.front().is_some_and(|(first, _)| *first == at) {
            self.in_order.pop_front()
        } else {
            self.late.pop_first().map(|(_, packet)| (at, packet))
        };
        self.look();
        received
    }

    /// When the bottleneck takes a packet of `len` bytes behind fewer than `most` others: `now`
    /// when it has room.
    pub fn room_at(&mut self, now: Instant, len: usize, most: usize) -> Instant {
        self.bottleneck.room_at(now, len, most)
    }

    /// Packets between entry and arrival.
    pub fn under_way(&self) -> usize {
        self.in_order.len() + self.late.len()
    }

    /// Packets and bytes that wait in the bottleneck's queue.
    pub fn backlog(&mut self, now: Instant) -> (usize, u64) {
        self.bottleneck.backlog(now)
    }

    /// What happened so far.
    pub fn counters(&self) -> PathCounters {
        PathCounters {
            queue_max: self.bottleneck.peak().0 as u64,
            ..self.counters
        }
    }
}

/// The same rate, delay and queue alone.
fn without_faults(config: &PathConfig) -> PathConfig {
    let BottleneckConfig { rate, delay, queue } = config.bottleneck.clone();
    PathConfig::new(rate, delay, queue)
}

#[cfg(test)]
mod tests;
