//! The network between the hosts: the wired path, and behind its near end a client or a wireless
//! network.
//!
//! A run asks direction by direction what has come, because hosts answer at once. Who has no hosts
//! of its own to drive, as the emulator, drives the whole by the usual verbs: [`Network::send`],
//! [`Network::handle_timeout`], [`Network::poll_arrival`], [`Network::poll_timeout`].

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use tack_base::Instant;
use tack_wlan::mac::discipline::AckFilter;
use tack_wlan::world::Airtime;
use tack_wlan::{AccessCategory, Capture, Captured, Msdu, NodeId};

use super::datagram::SATURATION;
use super::host::{address, host_at};
use super::ports::flow_of;
use super::segments::HeaderReader;
use crate::hack::RohcCodec;
use crate::packet::Packet;
use crate::path::Path;
use crate::report::{WiredReport, WlanReport};
use crate::scenario::{Flow, Party, Scenario};

/// The wireless network, whose packets are those of the simulator.
pub(super) type Wireless = tack_wlan::World<Packet>;

/// A packet that has come to a host.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When it came, in the run's time.
    pub at: Instant,
    /// Which host: the server is 0, the client or the first station 1.
    pub host: usize,
    /// What came. Its checksums may be wrong, where the path damages packets.
    pub packet: Packet,
}

/// Packets that saturating senders keep in the queue of a radio, each: two Block ACK windows, and
/// as many for the times that the radio is faster than it was on average. Those that the wired path
/// holds come on top.
const RADIO_SATURATION: usize = 256;

/// How fast packets leave a queue.
#[derive(Clone, Debug, Default)]
struct Pull {
    /// How many had left by when, oldest first.
    marks: VecDeque<(Instant, u64)>,
}

impl Pull {
    /// Marks for each span.
    const MARKS: u32 = 16;

    /// How many packets leave during `span` at the pace of the last such time. So far `departures`
    /// have left.
    fn during(&mut self, span: Duration, now: Instant, departures: u64) -> usize {
        let last = self.marks.back().map(|(at, _)| *at);
        if last.is_none_or(|at| now.saturating_since(at) >= span / Self::MARKS) {
            self.marks.push_back((now, departures));
        }
        while let Some((at, _)) = self.marks.get(1)
            && now.saturating_since(*at) >= span
        {
            self.marks.pop_front();
        }
        let Some((since, before)) = self.marks.front() else {
            return 0;
        };
        let left = u128::from(departures - before);
        let time = now.saturating_since(*since).max(span).as_nanos().max(1);
        (left * span.as_nanos() / time) as usize
    }
}

/// All links of a run. What a full queue drops is gone, and counted.
#[derive(Debug)]
pub struct Network {
    /// From the server, and to it.
    pub(super) paths: [Path; 2],
    pub(super) wireless: Option<Wireless>,
    /// Capacities of the queues of the access point and of a station.
    queues: [usize; 2],
    /// How many packets of each category the access point sends while one crosses the wired path.
    pulls: [Pull; 4],
    /// How long a packet takes to the access point where no queue is before it.
    crossing: Duration,
    /// What the packets of each flow take beyond the wired path; empty when no flow has such a
    /// delay.
    beyond: Vec<Duration>,
    /// Packets from station to station that the access point holds for the delay of their flow, by
    /// when they go on and in the order in which they came.
    held: BTreeMap<(Instant, u64), Packet>,
    /// Packets held so far.
    holds: u64,
    arrivals: VecDeque<Arrival>,
    /// Somebody looks at the radios between deliveries.
    wants_every_event: bool,
}

impl Network {
    /// The links that `scenario` describes, without traffic. `capture` says whether what goes on
    /// the air is kept.
    pub fn new(scenario: &Scenario, seed: u64, capture: Capture) -> Self {
        let wired = &scenario.wired;
        let wireless = scenario.wlan.as_ref().map(|wlan| {
            let mut world = Wireless::new(&wlan.world, seed);
            world.set_capture(capture);
            if wlan.ack_filter != AckFilter::Off {
                for node in (0..world.members()).map(NodeId) {
                    world.set_discipline(node, |_| wlan.ack_filter.discipline(HeaderReader));
                }
            }
            let codec = wlan.hack_codec;
            world.set_codec(move || Box::new(RohcCodec::new(codec)));
            world
        });
        let queues = scenario.wlan.as_ref().map_or([0; 2], |wlan| {
            [wlan.world.ap_queue, wlan.world.station_queue]
        });
        Self {
            paths: [
                Path::new(&wired.forward, seed, 0),
                Path::new(&wired.reverse, seed, 1),
            ],
            wireless,
            queues,
            pulls: Default::default(),
            crossing: wired.forward.bottleneck.delay,
            beyond: Vec::new(),
            held: BTreeMap::new(),
            holds: 0,
            arrivals: VecDeque::new(),
            wants_every_event: true,
        }
    }

    /// For a run in which only packets that come to hosts count: without captures, and without
    /// datagrams, whose senders look at the queues of radios.
    pub(super) fn with_deliveries_only(mut self) -> Self {
        self.wants_every_event = false;
        self
    }

    /// With the delays that `flows` have of their own. Packets are distinguished by the ports that
    /// a run gives its flows.
    pub(super) fn with_flow_delays(mut self, flows: &[Flow]) -> Self {
        if flows.iter().any(|flow| !flow.extra_delay.is_zero()) {
            self.beyond = flows.iter().map(|flow| flow.extra_delay).collect();
            self.crossing += self.beyond.iter().copied().max().unwrap_or_default();
        }
        self
    }

    /// What the packet's flow takes beyond the wired path.
    #[inline]
    fn beyond(&self, packet: &Packet) -> Duration {
        if self.beyond.is_empty() {
            return Duration::ZERO;
        }
        flow_of(packet.ports())
            .and_then(|flow| self.beyond.get(flow))
            .copied()
            .unwrap_or_default()
    }

    /// A packet enters the wired path.
    #[inline]
    fn enter_path(&mut self, now: Instant, direction: usize, packet: Packet) {
        let beyond = self.beyond(&packet);
        self.paths[direction].send_delayed(now, packet, beyond);
    }

    /// The wired path does not let a packet of this length through that `host` sends at `now`.
    #[inline]
    pub(super) fn is_too_large(&self, now: Instant, host: usize, packet: &Packet) -> bool {
        // From station to station it takes no wired path.
        (host == 0 || host_at(packet.dst()) == 0)
            && self.paths[usize::from(host > 0)].is_too_large(now, packet.len())
    }

    /// A packet of a station has come to the access point: to go to the server, or to another
    /// station after the delay of its flow.
    fn pass_on(&mut self, now: Instant, packet: Packet) {
        if host_at(packet.dst()) == 0 {
            self.enter_path(now, 1, packet);
        } else {
            let at = now + self.beyond(&packet);
            self.held.insert((at, self.holds), packet);
            self.holds += 1;
        }
    }

    /// The radios do what is due by `now`, and the access point sends on what it has held long
    /// enough.
    pub(super) fn drive_radios(&mut self, now: Instant) {
        while let Some(entry) = self.held.first_entry().filter(|entry| entry.key().0 <= now) {
            let at = entry.key().0;
            let packet = entry.remove();
            self.distribute(at, packet);
        }
        if let Some(wireless) = &mut self.wireless {
            wireless.handle_timeout(now);
        }
    }

    /// The radios do what is due before `now`, where they may have been left behind: somebody looks
    /// at their queues.
    pub(super) fn catch_up(&mut self, now: Instant) {
        if let Some(wireless) = &mut self.wireless
            && !self.wants_every_event
        {
            wireless.catch_up(now);
        }
    }

    /// When something happens next on the air, or to what the access point holds.
    #[inline]
    pub(super) fn next_wireless(&self) -> Option<Instant> {
        let wireless = self.wireless.as_ref().and_then(|wireless| {
            if self.wants_every_event {
                wireless.poll_timeout()
            } else {
                wireless.poll_delivery_timeout()
            }
        });
        if self.held.is_empty() {
            return wireless;
        }
        let held = self.held.first_key_value().map(|((at, _), _)| *at);
        wireless.into_iter().chain(held).min()
    }

    /// The address of a host: packets go where their destination address says.
    ///
    /// # Panics
    /// When there are more than 65,534 hosts before it.
    pub fn address(host: usize) -> Ipv4Addr {
        let host = u16::try_from(host).expect("a network has fewer hosts than a /16");
        match host {
            0 => address(Party::Server),
            station => address(Party::Station(station - 1)),
        }
    }

    /// Hosts of the network, numbered from 0, the server.
    pub fn hosts(&self) -> usize {
        1 + self.wireless.as_ref().map_or(1, |wireless| {
            usize::from(wireless.members().saturating_sub(1))
        })
    }

    /// Host `host` sends a packet at `now`, up to which time has passed by
    /// [`Network::handle_timeout`].
    ///
    /// # Panics
    /// When there is no such host.
    #[inline]
    pub fn send(&mut self, now: Instant, host: usize, packet: Packet) {
        let beyond = self.beyond(&packet);
        match &mut self.wireless {
            Some(wireless) if host > 0 => {
                // What is to be held goes no farther by itself.
                let to = if beyond.is_zero() {
                    node(host_at(packet.dst()))
                } else {
                    NodeId::AP
                };
                enter(wireless, now, (NodeId(host as u16), to), packet);
            }
            _ => self.paths[host].send_delayed(now, packet, beyond),
        }
    }

    /// A packet of the server has come to the access point.
    pub(super) fn distribute(&mut self, now: Instant, packet: Packet) {
        if let Some(wireless) = &mut self.wireless {
            let to = node(host_at(packet.dst()));
            enter(wireless, now, (NodeId::AP, to), packet);
        }
    }

    /// The next packet that has come by the wired path of this direction to the host at its end,
    /// `1 - direction`. With a wireless network the packets of the server go on to the access point
    /// instead.
    #[inline]
    pub(super) fn receive_wired(&mut self, now: Instant, direction: usize) -> Option<Packet> {
        loop {
            let (_, packet) = self.paths[direction].receive(now)?;
            if direction == 0 && self.wireless.is_some() {
                self.distribute(now, packet);
            } else {
                return Some(packet);
            }
        }
    }

    /// The next packet that has come to a station over the air. Those that came to the access point
    /// go on.
    pub(super) fn receive_wireless(&mut self, now: Instant) -> Option<(usize, Packet)> {
        loop {
            let delivery = self.wireless.as_mut()?.poll_delivery()?;
            let packet = delivery.msdu.payload?;
            if delivery.at == NodeId::AP {
                self.pass_on(now, packet);
            } else {
                return Some((delivery.at.index(), packet));
            }
        }
    }

    /// Lets everything happen that is due by `now`, in order and each at its own instant.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(at) = self.poll_timeout().filter(|at| *at <= now) {
            for direction in [0, 1] {
                while let Some(packet) = self.receive_wired(at, direction) {
                    let host = 1 - direction;
                    self.arrivals.push_back(Arrival { at, host, packet });
                }
            }
            self.drive_radios(at);
            while let Some((host, packet)) = self.receive_wireless(at) {
                self.arrivals.push_back(Arrival { at, host, packet });
            }
        }
        self.drive_radios(now);
    }

    /// The next packet that has come to a host, in the order of arrival.
    pub fn poll_arrival(&mut self) -> Option<Arrival> {
        self.arrivals.pop_front()
    }

    /// When something happens next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let wired = self.paths.iter().filter_map(Path::next_arrival).min();
        wired.into_iter().chain(self.next_wireless()).min()
    }

    /// The shares of airtime so far; nothing without a wireless network.
    pub fn airtime(&mut self) -> Airtime {
        self.wireless
            .as_mut()
            .map_or_else(Airtime::default, |wireless| wireless.airtime())
    }

    /// Transmissions so far that another one spoilt at their receiver.
    pub fn collisions(&self) -> u64 {
        self.wireless.as_ref().map_or(0, |wireless| {
            (0..wireless.radios())
                .map(|node| wireless.stats(NodeId(node)).collisions)
                .sum()
        })
    }

    /// Figures of the wireless network, if there is one.
    pub fn wlan_report(&mut self) -> Option<WlanReport> {
        self.wireless.as_mut().map(WlanReport::new)
    }

    /// What happened to the packets of the wired path. Damaged packets are the hosts' to find.
    pub fn wired_report(&self) -> WiredReport {
        WiredReport {
            forward: self.paths[0].counters(),
            reverse: self.paths[1].counters(),
            checksum_drops: 0,
        }
    }

    pub(super) fn captured(&mut self) -> Option<Captured<Packet>> {
        self.wireless.as_mut()?.poll_capture()
    }

    /// When a saturating sender at `host`, one of `senders` of the same `category` there, sends its
    /// next packet of `len` bytes. `None`: when a radio has room again.
    pub(super) fn room(
        &mut self,
        now: Instant,
        host: usize,
        len: usize,
        (category, senders): (AccessCategory, usize),
    ) -> Option<Instant> {
        let Some(wireless) = &self.wireless else {
            return Some(self.paths[host].room_at(now, len, SATURATION));
        };
        let wanted = RADIO_SATURATION * senders;
        if host > 0 {
            let queued = wireless.queue_len(NodeId(host as u16), category);
            return (queued < wanted.min(self.queues[1])).then_some(now);
        }
        let queued = wireless.queue_len(NodeId::AP, category);
        let departures = wireless.departures(NodeId::AP, category);
        let pulled = self.pulls[category as usize].during(self.crossing, now, departures);
        if queued + self.paths[0].under_way() >= wanted.min(self.queues[0]) + pulled {
            return None;
        }
        Some(self.paths[0].room_at(now, len, SATURATION))
    }

    /// The next host whose radio's queues have become shorter.
    pub(super) fn poll_departure(&mut self) -> Option<usize> {
        self.wireless.as_mut()?.poll_departure().map(NodeId::index)
    }

    /// Packets in front of the bottleneck of what host `from` sends: the radio's queues, or the
    /// path's.
    pub fn backlog(&mut self, now: Instant, from: usize) -> usize {
        match &self.wireless {
            Some(wireless) if from > 0 => wireless.queued(NodeId(from as u16)),
            Some(wireless) => wireless.queued(NodeId::AP) + self.paths[0].backlog(now).0,
            None => self.paths[from].backlog(now).0,
        }
    }

    /// Nothing is under way.
    pub(super) fn is_drained(&self) -> bool {
        let is_silent = self.wireless.as_ref().is_none_or(|wireless| {
            wireless.hosts_are_idle()
                && (0..wireless.members()).all(|node| wireless.queued(NodeId(node)) == 0)
        });
        is_silent
            && self.held.is_empty()
            && self.paths.iter().all(|path| path.next_arrival().is_none())
    }
}

/// The radio by which a host is reached: the server is behind the access point.
fn node(host: usize) -> NodeId {
    match host {
        0 => NodeId::AP,
        host => NodeId(host as u16),
    }
}

/// A packet enters the wireless network at one radio, for another. A full queue drops it, which the
/// network counts.
fn enter(wireless: &mut Wireless, now: Instant, (src, dst): (NodeId, NodeId), packet: Packet) {
    if dst == src || dst.0 >= wireless.members() {
        return;
    }
    let msdu = Msdu {
        src,
        dst,
        len: packet.len() as u32,
        class: packet.class(),
        category: packet.access_category(),
        payload: Some(packet),
    };
    let _dropped = wireless.handle_msdu(now, msdu);
}
