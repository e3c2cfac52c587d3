//! One run: hosts, paths, flows and the loop over events.

mod app;
mod check;
mod clock;
mod datagram;
mod drive;
mod event;
mod figures;
mod flows;
mod hash;
mod host;
mod meter;
mod network;
mod ports;
mod progress;
mod segments;
mod stream;
mod video;
mod watch;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use tack_base::{Duration, Instant};
use tack_tcp::ConnectionId;
use tack_wire::Segment;
use tack_wire::checksum::{PROTOCOL_TCP, PROTOCOL_UDP};
use tack_wlan::Capture;

use crate::kernel::{Kernel, Slot};
use crate::observe::{Observer, PacketEvent, Passing, Sample};
use crate::packet::Packet;
use crate::report::{Report, WiredReport, WlanReport};
use crate::scenario::{Party, Scenario};
use event::{Broken, Event};
use flows::Flows;
use hash::TraceHash;
use host::Host;
pub use network::{Arrival, Network};

/// Whether the invariants of the stack are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// Only what costs next to nothing: delivered bytes are the bytes sent.
    #[default]
    Cheap,
    /// Every invariant, at every event.
    EveryEvent,
}

/// Who watches a run, and how closely.
#[derive(Default)]
pub struct Observers<'a> {
    list: Vec<&'a mut dyn Observer>,
    checks: Checks,
    stop: Option<&'a AtomicBool>,
}

impl<'a> Observers<'a> {
    /// Adds an observer.
    #[must_use]
    pub fn with(mut self, observer: &'a mut dyn Observer) -> Self {
        self.list.push(observer);
        self
    }

    /// Chooses how closely the stack is checked.
    #[must_use]
    pub fn checking(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }

    /// Ends the run with [`RunError::Stopped`] soon after `stop` becomes true: within some thousand
    /// events.
    #[must_use]
    pub fn until(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }
}

impl std::fmt::Debug for Observers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observers")
            .field("observers", &self.list.len())
            .field("checks", &self.checks)
            .finish()
    }
}

/// Why a run has no report.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The stack broke a promise: a bug in it, not in the scenario.
    #[error("at {at} s, flow {flow}, {host}: {what} (scenario {scenario:?}, seed {seed})")]
    Broken {
        /// When, seconds of virtual time.
        at: f64,
        /// Which flow.
        flow: usize,
        /// Whose side.
        host: String,
        /// The invariant, in words.
        what: String,
        /// Name of the scenario.
        scenario: String,
        /// Seed of the run.
        seed: u64,
    },
    /// An observer could not write what it saw.
    #[error("cannot write: {0}")]
    Observer(#[from] io::Error),
    /// The caller stopped the run ([`Observers::until`]).
    #[error("the run was stopped")]
    Stopped,
}

/// Runs `scenario` with `seed`. The same arguments give the same report, but for what the
/// observers' output costs.
///
/// # Errors
/// [`RunError`] when the stack broke an invariant or an observer could not write.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    observers: &mut Observers<'_>,
) -> Result<Report, RunError> {
    let mut world = World::new(scenario, seed, observers);
    let outcome = world.run(scenario);
    let at = world.kernel.now();
    let report = outcome
        .map(|ended| (ended == Ended::Complete).then(|| world.report(scenario, seed)))
        .map_err(|broken| RunError::Broken {
            at: at.as_secs_f64(),
            flow: broken.flow,
            host: broken.host.name().into_owned(),
            what: broken.what,
            scenario: scenario.name.clone(),
            seed,
        });
    // What was seen of a broken run is what its finder needs: write it out in any case.
    let written = observers
        .list
        .iter_mut()
        .map(|observer| observer.finish())
        .fold(Ok(()), io::Result::and);
    let report = report?.ok_or(RunError::Stopped)?;
    written?;
    Ok(report)
}

/// How a run that broke nothing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Complete,
    /// By the caller.
    Stopped,
}

/// A run looks this often, in events, whether its caller stopped it.
const STOP_INTERVAL: u64 = 4096;

struct World<'a, 'o> {
    kernel: Kernel<Event>,
    hosts: Vec<Host>,
    network: Network,
    /// The next arrival from each path.
    arrivals: [Slot; 2],
    /// The next thing in the wireless network.
    wireless: Slot,
    /// When each path has room again for the saturating flows that send into it.
    fills: [Slot; 2],
    /// The next timer of each host.
    wakes: Vec<Slot>,
    /// Saturating flows, all of which wait for room: in a radio's queue or in the path, by host
    /// and category.
    waiting: Vec<[VecDeque<usize>; 4]>,
    flows: Flows,
    checksum_drops: u64,
    hash: TraceHash,
    warmup: Instant,
    end: Instant,
    observers: &'a mut Observers<'o>,
    intervals: Vec<Option<Duration>>,
    traces: bool,
}

impl<'a, 'o> World<'a, 'o> {
    fn new(scenario: &Scenario, seed: u64, observers: &'a mut Observers<'o>) -> Self {
        let wired = &scenario.wired;
        let mut kernel = Kernel::default();
        let arrivals = [0, 1].map(|direction| kernel.slot(Event::Arrival(direction)));
        let wireless = kernel.slot(Event::Wireless);
        let fills = [0, 1].map(|host| kernel.slot(Event::Fill(host)));
        let near_end = match &scenario.wlan {
            None => vec![Party::Client],
            Some(wlan) => (0..wlan.world.stations).map(Party::Station).collect(),
        };
        let hosts: Vec<_> = std::iter::once(Host::new(Party::Server, wired.server, seed))
            .chain(
                near_end
                    .into_iter()
                    .map(|party| Host::new(party, wired.client, seed)),
            )
            .collect();
        let wakes = (0..hosts.len())
            .map(|host| kernel.slot(Event::Wake(host)))
            .collect();
        let captures = observers.list.iter().any(|observer| observer.wants_radio());
        let capture = if captures { Capture::On } else { Capture::Off };
        let flows = Flows::new(&scenario.flows, hosts.len(), seed);
        let mut network = Network::new(scenario, seed, capture).with_flow_delays(&scenario.flows);
        if !captures && !flows.has_udp() {
            network = network.with_deliveries_only();
        }
        Self {
            kernel,
            flows,
            waiting: (0..hosts.len()).map(|_| Default::default()).collect(),
            hosts,
            network,
            arrivals,
            wireless,
            fills,
            wakes,
            checksum_drops: 0,
            hash: TraceHash::new(),
            warmup: Instant::ZERO + scenario.warmup,
            end: Instant::ZERO + scenario.duration,
            intervals: observers
                .list
                .iter()
                .map(|observer| observer.interval())
                .collect(),
            traces: observers
                .list
                .iter()
                .any(|observer| observer.wants_traces()),
            observers,
        }
    }

    fn run(&mut self, scenario: &Scenario) -> Result<Ended, Broken> {
        for observer in &mut self.observers.list {
            observer.on_start(scenario);
        }
        self.expect();
        self.kernel.schedule(self.warmup, Event::Warm);
        for (at, event) in self.flows.agenda() {
            self.kernel.schedule(at, event);
        }
        for (observer, interval) in self.intervals.iter().enumerate() {
            if let Some(interval) = interval {
                self.kernel
                    .schedule(Instant::ZERO + *interval, Event::Sample(observer));
            }
        }
        while let Some((now, event)) = self.kernel.next(self.end) {
            self.handle(now, event)?;
            if self.is_stopped() {
                return Ok(Ended::Stopped);
            }
            if self.flows.all_complete() && self.is_drained() {
                self.end = now;
                break;
            }
        }
        let stall = self.flows.end_progress(self.end);
        if self.observers.checks == Checks::EveryEvent {
            stall?;
        }
        Ok(Ended::Complete)
    }

    /// The caller wants no more of this run.
    #[inline]
    fn is_stopped(&self) -> bool {
        self.kernel.handled().is_multiple_of(STOP_INTERVAL)
            && (self.observers.stop).is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// UDP flows are complete once sent; the run still waits for what is under way.
    fn is_drained(&self) -> bool {
        !self.flows.has_udp() || self.network.is_drained()
    }

    fn handle(&mut self, now: Instant, event: Event) -> Result<(), Broken> {
        match event {
            Event::Arrival(direction) => {
                while let Some((host, packet)) = self.network.receive_wired(now, direction) {
                    self.arrive(now, host, packet)?;
                }
                self.expect();
            }
            Event::Fill(host) => self.fill(now, host),
            Event::Wireless => self.radio(now)?,
            Event::Process(host) => {
                while let Some((arrived, packet)) = self.hosts[host].take_arrived(now) {
                    self.process(now, arrived, host, &packet)?;
                }
            }
            Event::Wake(host) => {
                self.hosts[host].wake(now);
                self.service(now, host)?;
            }
            Event::Start(flow) => self.start(now, flow)?,
            Event::Stop(flow) => self.stop(now, flow)?,
            Event::App(flow) => self.act(now, flow)?,
            Event::Pause(flow) => self.flows.set_paused(flow, now, true),
            Event::Resume(flow) => self.resume(now, flow)?,
            Event::Warm => {
                self.flows.end_warmup(&self.hosts, now);
                if let Some(wireless) = &mut self.network.wireless {
                    wireless.reset_stats(now);
                }
                // Whatever was due at this very instant has happened.
                self.radio(now)?;
            }
            Event::Sample(observer) => self.sample(now, observer),
        }
        Ok(())
    }

    /// Makes sure that what comes next on the links is met when it happens.
    #[inline]
    fn expect(&mut self) {
        for (path, slot) in self.network.paths.iter().zip(self.arrivals) {
            self.kernel.set(slot, path.next_arrival());
        }
        if self.network.wireless.is_some() {
            let next = self.network.next_wireless();
            self.kernel.set_last(self.wireless, next);
        }
    }

    /// The wireless network does what is due; its packets go on to where they belong.
    fn radio(&mut self, now: Instant) -> Result<(), Broken> {
        if self.network.wireless.is_none() {
            return Ok(());
        }
        self.network.drive_radios(now);
        while let Some((host, packet)) = self.network.receive_wireless(now) {
            self.arrive(now, host, packet)?;
        }
        while let Some(captured) = self.network.captured() {
            for observer in &mut self.observers.list {
                observer.on_radio(&captured);
            }
        }
        if self.flows.has_udp() {
            self.saturate(now);
        }
        self.expect();
        Ok(())
    }

    fn arrive(&mut self, now: Instant, host: usize, packet: Packet) -> Result<(), Broken> {
        self.see(now, host, Passing::In, &packet);
        match self.hosts[host].arrive(now, packet) {
            Ok(packet) => self.process(now, now, host, &packet),
            Err(later) => {
                self.kernel.schedule(later, Event::Process(host));
                Ok(())
            }
        }
    }

    /// A host's stack takes a packet from its interface.
    fn process(
        &mut self,
        now: Instant,
        arrived: Instant,
        host: usize,
        packet: &Packet,
    ) -> Result<(), Broken> {
        if !packet.verify_checksums() {
            self.checksum_drops += 1;
            return Ok(());
        }
        match packet.protocol() {
            PROTOCOL_TCP => self.process_segment(now, arrived, host, packet),
            PROTOCOL_UDP => self.process_datagram(now, host, packet),
            _ => Ok(()),
        }
    }

    fn process_segment(
        &mut self,
        now: Instant,
        arrived: Instant,
        host: usize,
        packet: &Packet,
    ) -> Result<(), Broken> {
        let Ok(header) = Segment::parse(packet.transport()) else {
            return Ok(());
        };
        let segment = Segment {
            header: header.header,
            payload: &packet.payload,
        };
        let stall =
            self.flows
                .note_progress(host, now, &segment, now.saturating_since(packet.sent));
        if self.observers.checks == Checks::EveryEvent {
            stall?;
            self.flows.note_received(host, &segment.header);
        }
        let peer = host::carrier(packet.src());
        let clock = self.hosts[host].clock;
        let (local, arrived_local) = (clock.local(now), clock.local(arrived));
        let ports = (segment.header.src_port, segment.header.dst_port);
        let taker = self.hosts[host].endpoint.handle_segment(
            local,
            arrived_local,
            peer,
            &segment,
            packet.ecn(),
        );
        if let (Some(id), Some(flow)) = (taker, self.flows.by_ports(ports)) {
            self.flows.adopt(flow, host, id, &mut self.hosts);
            if !packet.payload.is_empty() && !watch::is_feedback(&segment.header) {
                self.flows.on_data(
                    flow,
                    host,
                    &self.hosts,
                    arrived.saturating_since(packet.sent),
                );
            }
            // Entering TIME-WAIT is no event of its own, and is what the end of a run waits for.
            if self.flows.is_closing(flow) {
                self.tell(now, host, id)?;
            }
        }
        self.service(now, host)
    }

    /// Lets a host do all that it can now: tell its applications, send, and set its timer.
    fn service(&mut self, now: Instant, host: usize) -> Result<(), Broken> {
        loop {
            while let Some(id) = self.hosts[host].endpoint.poll_ready() {
                self.tell(now, host, id)?;
            }
            if self.observers.checks == Checks::EveryEvent {
                self.flows.note_rates(host, &self.hosts[host], now);
            }
            self.transmit(now, host)?;
            // Some events come to light only when there is nothing left to send.
            let Some(id) = self.hosts[host].endpoint.poll_ready() else {
                break;
            };
            self.tell(now, host, id)?;
        }
        if self.observers.checks == Checks::EveryEvent {
            self.flows.check_books(host, &mut self.hosts[host])?;
        }
        if self.traces {
            let observers = &mut self.observers.list;
            self.flows
                .drain_traces(host, &mut self.hosts[host], |flow, party, event| {
                    for observer in observers.iter_mut() {
                        observer.on_trace(flow, party, event);
                    }
                });
        }
        let wake = self.hosts[host].next_wake(now);
        self.kernel.set(self.wakes[host], wake);
        Ok(())
    }

    fn transmit(&mut self, now: Instant, host: usize) -> Result<(), Broken> {
        let Self {
            hosts,
            network,
            hash,
            observers,
            flows,
            ..
        } = self;
        let local = hosts[host].clock.local(now);
        let party = hosts[host].party();
        let mut outcome = Ok(());
        hosts[host].transmit(now, |mut packet| {
            flows.mark(&mut packet);
            observe(now, (host, party), Passing::Out, &packet, hash, observers);
            let checks_all = observers.checks == Checks::EveryEvent;
            if (checks_all || may_take_numbers(&packet))
                && let Ok(segment) = Segment::parse(packet.transport())
            {
                let payload = packet.payload.len();
                let stall = flows.note_sent(host, now, &segment.header, payload);
                if checks_all && outcome.is_ok() {
                    outcome = stall
                        .and_then(|()| flows.check_sent(host, local, &segment.header, payload));
                }
            }
            network.send(now, host, packet);
        });
        self.expect();
        outcome
    }

    /// Passes a packet that is not TCP's from a host into its path.
    fn emit(&mut self, now: Instant, host: usize, mut packet: Packet) {
        self.flows.mark(&mut packet);
        self.see(now, host, Passing::Out, &packet);
        self.network.send(now, host, packet);
        self.expect();
    }

    fn see(&mut self, now: Instant, host: usize, passing: Passing, packet: &Packet) {
        let who = (host, self.hosts[host].party());
        observe(now, who, passing, packet, &mut self.hash, self.observers);
    }

    /// Connection `id` of `host` has events.
    fn tell(&mut self, now: Instant, host: usize, id: ConnectionId) -> Result<(), Broken> {
        let local = self.hosts[host].clock.local(now);
        let Some(connection) = self.hosts[host].endpoint.get_mut(id) else {
            return Ok(());
        };
        let mut closed = None;
        while let Some(event) = connection.poll_event() {
            if let tack_tcp::Event::Closed(reason) = event {
                closed = Some(reason);
            }
        }
        let Some((flow, side)) = self.flows.by_connection(host, id) else {
            return Ok(());
        };
        let wake = self.flows.drive(flow, side, now, local, connection)?;
        if let Some(reason) = closed {
            let stats = connection.stats(local);
            self.flows.on_closed(flow, side, reason, stats);
        }
        if let Some(at) = wake {
            self.kernel.schedule(at, Event::App(flow));
        }
        Ok(())
    }

    fn sample(&mut self, now: Instant, observer: usize) {
        let Some(interval) = self.intervals[observer] else {
            return;
        };
        self.network.catch_up(now);
        for flow in 0..self.flows.len() {
            let direction = self.flows.sender(flow);
            let queue_packets = self.network.backlog(now, direction);
            let sample = Sample {
                queue_packets,
                ..self.flows.sample(flow, &self.hosts, now, interval)
            };
            self.observers.list[observer].on_sample(&sample);
        }
        self.kernel
            .schedule(now + interval, Event::Sample(observer));
    }

    fn report(&mut self, scenario: &Scenario, seed: u64) -> Report {
        let (events, wlan) = match &mut self.network.wireless {
            None => (0, None),
            Some(wireless) => {
                wireless.handle_timeout(self.end);
                self.hash.add(wireless.digest());
                (wireless.events(), Some(WlanReport::new(wireless)))
            }
        };
        Report {
            name: scenario.name.clone(),
            seed,
            virtual_seconds: self.end.as_secs_f64(),
            wall_seconds: 0.0,
            events: self.kernel.handled() + events,
            flows: self
                .flows
                .report(scenario, &self.hosts, self.warmup, self.end),
            owd_p95_us: self.flows.one_way_p95(),
            wlan,
            wired: WiredReport {
                checksum_drops: self.checksum_drops,
                ..self.network.wired_report()
            },
            trace_hash: self.hash.finish(),
        }
    }
}

/// Folds a packet into the hash and shows it to whoever watches.
#[inline]
fn observe(
    at: Instant,
    (host, party): (usize, Party),
    passing: Passing,
    packet: &Packet,
    hash: &mut TraceHash,
    observers: &mut Observers<'_>,
) {
    let transport = packet.transport();
    hash.add(at.as_nanos() << 2 | (host as u64) << 1 | u64::from(passing == Passing::In));
    hash.add_bytes(transport);
    hash.add_bytes(&transport[8..]);
    hash.add((packet.len() as u64) << 8 | u64::from(packet.head[1]));
    for observer in &mut observers.list {
        observer.on_packet(&PacketEvent {
            at,
            host: party,
            passing,
            packet,
        });
    }
}

/// The packet's segment takes sequence numbers, unless its payload is the lists of a TACK report.
fn may_take_numbers(packet: &Packet) -> bool {
    !packet.payload.is_empty()
        || Segment::flags(packet.transport()).is_some_and(|flags| flags.syn() || flags.fin())
}
