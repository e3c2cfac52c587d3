//! The whole network: radios, the medium between them, and the accounts.
//!
//! ```text
//!  handle_msdu → queue → contention → PPDU on the medium
//!              → reception → response → reorder → poll_delivery
//! ```
//!
//! One owner, radios by index. Everything that happens at one instant happens in a fixed order:
//! transmissions end, by number; neighbours' packets come, then those of hosts; timers run, by
//! radio; what these put on the air begins. Radios that decide at the same instant do not sense
//! each other, which is how collisions come about. Propagation takes no time.

mod accounts;
mod advance;
mod air;
mod config;
mod crowd;
mod host;
mod joining;
mod medium;
mod overhearing;
mod receive;
mod source;
mod wakes;

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tack_base::Instant;
use tack_base::random::RandomStream;

use crate::frame::{AccessCategory, Msdu, NodeId, Ppdu};
use crate::mac::discipline::BoxedDiscipline;
use crate::mac::hack::{BoxedCodec, CodecFactory, Hack, HackConfig, HackStats};
use crate::mac::station::Station;
use crate::mac::{MacConfig, StationStats};
use crate::phy::ErrorModel;
use accounts::{Accounts, QueueMeter};
use air::{Air, Radio};
use crowd::Crowds;
use host::Hosts;
use overhearing::Overhearing;
use source::Source;
use wakes::Wakes;

pub use crate::mac::station::Beacons;
pub use accounts::{Airtime, QueueStats};
pub use config::{Contenders, HostDelays, HostInterrupt, Offer, WorldConfig};
pub use host::Delivery;

/// A PPDU that went on the air, for captures.
#[derive(Clone, Debug)]
pub struct Captured<M> {
    /// Start.
    pub at: Instant,
    /// What went on the air.
    pub ppdu: Ppdu<M>,
    /// Counts all PPDUs.
    pub number: u64,
}

/// Whether PPDUs are kept for [`World::poll_capture`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Capture {
    /// They are not.
    #[default]
    Off,
    /// They are; the owner polls them after every step.
    On,
}

/// The network.
#[derive(Debug)]
pub struct World<M> {
    mac: Arc<MacConfig>,
    stations: Vec<Station<M>>,
    radios: Vec<Radio>,
    /// When each radio wants to be woken.
    wakes: Wakes,
    /// No wake is earlier.
    next_wake: Instant,
    /// Who hears whom: the receivers of each radio's signal.
    audience: Vec<Vec<u16>>,
    /// Radios that only look on; none in a small network.
    crowds: Option<Crowds>,
    air: Air<M>,
    errors: Vec<ErrorModel>,
    overhearing: Overhearing,
    noise: Vec<RandomStream>,
    sources: Vec<Option<Source>>,
    queues: Vec<QueueMeter>,
    accounts: Accounts,
    hosts: Hosts<M>,
    interrupt: HostInterrupt,
    /// From when on the host can hear of what is being received: now, or the end of the PPDU.
    ready: Instant,
    hack: HackConfig,
    capture: Capture,
    captured: VecDeque<Captured<M>>,
    /// Radios of the network itself: the access point and its stations.
    members: u16,
    /// Radios whose queues have become shorter, each once.
    departed: Vec<u16>,
    starting: Vec<Ppdu<M>>,
    relayed: Vec<Msdu<M>>,
    /// The earliest of everything that is to come, frames within A-MPDUs and packets of hosts
    /// apart.
    next: Instant,
    next_arrival: Instant,
    /// When the next packet of a source with a load of its own comes.
    next_offer: Instant,
    now: Instant,
    /// The last instant at which everything has happened, and not only what is before a packet
    /// that came.
    handled: Instant,
    events: u64,
    looks: u64,
    digest: u64,
}

impl<M: Clone> World<M> {
    /// A network in which nothing has happened. Equal arguments, equal runs.
    pub fn new(config: &WorldConfig, seed: u64) -> Self {
        Self::with_crowd_of(config, seed, crowd::LEAST)
    }

    /// As [`World::new`]; the radios that only look on are dealt with together if there can be
    /// `least` of them that hear the same.
    fn with_crowd_of(config: &WorldConfig, seed: u64, least: usize) -> Self {
        let mac = Arc::new(config.mac.clone());
        let members = config.stations + 1;
        let count = usize::from(members) + config.contenders.radios();
        let audience = config.audience(count);
        let mut world = Self {
            stations: Vec::with_capacity(count),
            radios: (0..count).map(|_| Radio::default()).collect(),
            wakes: Wakes::new(count),
            next_wake: Instant::FAR_FUTURE,
            crowds: Crowds::new(config, &audience, least),
            audience,
            air: Air::default(),
            errors: config.errors(count),
            overhearing: Overhearing::new(config, count, seed),
            noise: Vec::with_capacity(count),
            sources: (0..count).map(|_| None).collect(),
            queues: Vec::with_capacity(count),
            accounts: Accounts::default(),
            hosts: Hosts::new(config.host, count),
            interrupt: config.interrupt,
            ready: Instant::ZERO,
            hack: config.hack,
            capture: Capture::Off,
            captured: VecDeque::new(),
            members,
            departed: Vec::new(),
            starting: Vec::new(),
            relayed: Vec::new(),
            next_arrival: Instant::FAR_FUTURE,
            next_offer: Instant::FAR_FUTURE,
            next: Instant::FAR_FUTURE,
            now: Instant::ZERO,
            handled: Instant::ZERO,
            events: 0,
            looks: 0,
            digest: 0x9e37_79b9_7f4a_7c15,
            mac,
        };
        for index in 0..count as u16 {
            let id = NodeId(index);
            let queue = if id == NodeId::AP {
                config.ap_queue
            } else {
                config.station_queue
            };
            let beacons = config.beacons.filter(|_| id == NodeId::AP);
            let station = Station::new(id, Arc::clone(&world.mac), queue, beacons, seed);
            world.stations.push(station);
            world.queues.push(QueueMeter::default());
            world
                .noise
                .push(RandomStream::new(seed, "noise", u64::from(index)));
        }
        // A neighbouring network: its access point comes first, its stations send to it.
        let Contenders { packet, offer, .. } = config.contenders;
        for contender in 1..config.contenders.radios() as u16 {
            let (at, to) = (NodeId(members + contender), [NodeId(members)]);
            let source = Source::new(at, &to, packet, offer, seed, contender.into());
            world.next_offer = world.next_offer.min(source.next());
            world.sources[at.index()] = Some(source);
        }
        for index in 0..count {
            world.touch(index);
        }
        world.find_next();
        world
    }

    /// Keeps the queue of radio `at` full of packets of `packet` bytes for the radios `to` in turn,
    /// without payload.
    pub fn saturate(&mut self, at: NodeId, to: &[NodeId], packet: u32) {
        self.single_out(at.index());
        self.sources[at.index()] = Some(Source::endless(at, to, packet));
        self.touch(at.index());
        self.find_next();
    }

    /// Keeps what goes on the air for [`World::poll_capture`].
    pub fn set_capture(&mut self, capture: Capture) {
        self.capture = capture;
    }

    /// A packet enters at `msdu.src`. What happens before `now` has to have been handled.
    ///
    /// # Errors
    /// The packet, when the queue is full; the drop is counted. A packet that takes time to the
    /// radio finds the queue full later, which is only counted.
    ///
    /// # Panics
    /// When there is no radio `msdu.src`.
    pub fn handle_msdu(&mut self, now: Instant, msdu: Msdu<M>) -> Result<(), Msdu<M>> {
        self.run_before(now);
        if self.hosts.send_at_once() {
            return self.enter(msdu.src, msdu);
        }
        self.hosts.send(self.now, msdu);
        Ok(())
    }

    /// A packet comes to the queue of radio `at`.
    #[inline(always)]
    fn enter(&mut self, at: NodeId, msdu: Msdu<M>) -> Result<(), Msdu<M>> {
        let to = if at == NodeId::AP {
            msdu.dst
        } else {
            NodeId::AP
        };
        self.put(at, to, msdu)
    }

    /// A packet comes to the queue of radio `at` for receiver `to`.
    #[inline(always)]
    fn put(&mut self, at: NodeId, to: NodeId, msdu: Msdu<M>) -> Result<(), Msdu<M>> {
        let now = self.now;
        self.accounts.advance(self.now, &self.air.moment());
        self.single_out(at.index());
        let outcome = self.stations[at.index()].enqueue(now, to, msdu);
        self.touch(at.index());
        self.next = self.next.min(self.wakes.of(at.index()));
        outcome
    }

    /// Lets everything happen that is due by `now`, in order and each at its own instant.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.soonest() <= now {
            self.step(self.soonest());
        }
        self.now = self.now.max(now);
        self.handled = self.now;
    }

    #[inline]
    fn soonest(&self) -> Instant {
        self.next
            .min(self.next_arrival)
            .min(self.hosts.next_entry())
    }

    /// When something happens next.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = self.soonest().min(self.hosts.next_delivery(self.handled));
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    /// Before when no packet comes to a host, unless another one enters. What happens until then
    /// can be left to the next call of [`World::handle_timeout`] or [`World::handle_msdu`]:
    /// everything still happens at its own instant. Counters, captures and the lengths of
    /// queues lag behind meanwhile.
    #[inline]
    pub fn poll_delivery_timeout(&self) -> Option<Instant> {
        let soonest = self.hosts.earliest_delivery(self.soonest());
        let next = soonest.min(self.hosts.next_delivery(self.handled));
        (next != Instant::FAR_FUTURE).then_some(next)
    }

    /// The next packet that has come to its destination.
    #[inline]
    pub fn poll_delivery(&mut self) -> Option<Delivery<M>> {
        self.hosts.receive(self.now)
    }

    /// The next PPDU that went on the air, when captures are on.
    pub fn poll_capture(&mut self) -> Option<Captured<M>> {
        self.captured.pop_front()
    }

    /// Packets in the queue of `category` at `node`, those on the air and those on the way from the
    /// host included.
    pub fn queue_len(&self, node: NodeId, category: AccessCategory) -> usize {
        self.stations[node.index()].queue_len(category) + self.hosts.entering(node, category)
    }

    /// Packets in all queues of `node`, those on the air and those on the way from the host
    /// included.
    pub fn queued(&self, node: NodeId) -> usize {
        let entering = |category| self.hosts.entering(node, category);
        let entering: usize = AccessCategory::ALL.into_iter().map(entering).sum();
        self.stations[node.index()].queued() + entering
    }

    /// True when no packet is on the way between a radio and its host.
    pub fn hosts_are_idle(&self) -> bool {
        self.hosts.is_idle()
    }

    /// Lets `make` say which discipline each queue of `node` has from now on.
    pub fn set_discipline(
        &mut self,
        node: NodeId,
        make: impl Fn(AccessCategory) -> BoxedDiscipline<M>,
    ) {
        self.stations[node.index()].set_discipline(make);
    }

    /// Turns TCP/HACK on as [`WorldConfig::hack`] says, with codecs that `make` makes: one for each
    /// pair of radios and each end. Before anything is queued.
    pub fn set_codec(&mut self, make: impl Fn() -> BoxedCodec<M> + Send + Sync + 'static) {
        let factory = CodecFactory::new(make);
        if self.hack.is_on() {
            for station in &mut self.stations[..usize::from(self.members)] {
                let hack = Hack::new(self.hack, self.hosts.receive_delay(), factory.clone());
                station.set_hack(hack);
            }
        }
    }

    /// Counters of TCP/HACK at a radio, where it is on.
    pub fn hack_stats(&self, node: NodeId) -> Option<&HackStats> {
        self.stations[node.index()].hack_stats()
    }

    /// How many packets have left the queue of `category` at `node` so far.
    pub fn departures(&self, node: NodeId, category: AccessCategory) -> u64 {
        self.stations[node.index()].departures(category)
    }

    /// The next radio of the network itself whose queues have become shorter since this was last
    /// said of it.
    pub fn poll_departure(&mut self) -> Option<NodeId> {
        let index = self.departed.pop()?;
        self.radios[usize::from(index)].has_departures = false;
        Some(NodeId(index))
    }

    /// Counters of a radio.
    pub fn stats(&self, node: NodeId) -> &StationStats {
        self.stations[node.index()].stats()
    }

    /// Lengths of the queues of a radio over time, all categories together.
    pub fn queue_stats(&self, node: NodeId) -> QueueStats {
        self.queues[node.index()].stats(self.now)
    }

    /// Radios in all, those of a neighbouring network included.
    pub fn radios(&self) -> u16 {
        self.radios.len() as u16
    }

    /// Radios of the network itself: the access point and its stations.
    pub fn members(&self) -> u16 {
        self.members
    }

    /// Who used the air since the counters were reset.
    pub fn airtime(&mut self) -> Airtime {
        self.accounts.advance(self.now, &self.air.moment());
        self.accounts.airtime()
    }

    /// Starts all counters over: the warm-up has ended.
    pub fn reset_stats(&mut self, now: Instant) {
        self.handle_timeout(now);
        self.accounts.advance(self.now, &self.air.moment());
        self.accounts.reset();
        for index in 0..self.stations.len() {
            let queued = self.stations[index].queued();
            self.stations[index].reset_stats();
            self.queues[index].reset(self.now, queued);
        }
    }

    /// How many transmissions and timers have been handled.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// How often a single radio was informed of what the medium does, joined those that are
    /// informed together, or left them: what events cost beyond what does not depend on how many
    /// radios there are.
    pub fn looks(&self) -> u64 {
        self.looks
    }

    /// A hash of everything that went on the air: equal for equal runs.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Settings of the MAC.
    pub fn mac(&self) -> &MacConfig {
        &self.mac
    }

    /// Lets everything happen that is due before `now`, but not at it: brings counters and queues
    /// up to date for an owner that uses [`World::poll_delivery_timeout`].
    pub fn catch_up(&mut self, now: Instant) {
        self.run_before(now);
    }

    /// Probability that noise spoils an MPDU between two radios: the station's end decides.
    fn loss(&self, from: NodeId, at: NodeId, mode: crate::phy::Mode, len: u32) -> f64 {
        let end = if at == NodeId::AP { from } else { at };
        self.errors[end.index()].loss(mode, len as usize)
    }
}

#[cfg(test)]
mod tests;
