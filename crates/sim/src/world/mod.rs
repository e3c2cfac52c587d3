//! One run: hosts, paths, flows and the loop over events.

mod app;
mod check;
mod clock;
mod datagram;
mod event;
mod figures;
mod flow_actions;
mod flows;
mod hash;
mod host;
mod meter;
mod network;
mod observers;
mod ports;
mod progress;
mod segments;
mod stack;
mod stream;
mod video;
mod watch;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;

use tack_base::{Duration, Instant};
use tack_wlan::Capture;

use crate::kernel::{Kernel, Slot};
use crate::observe::Sample;
use crate::report::{Report, WiredReport, WlanReport};
use crate::scenario::{Party, Scenario};
use event::{Broken, Event};
use flows::Flows;
use hash::TraceHash;
use host::Host;
pub use network::{Arrival, Network};
pub use observers::{Checks, Observers};
pub(crate) use ports::flow_of;

/// Out of line: what only asks whether it is needed stays short.
#[inline(never)]
fn expect_arrival(kernel: &mut Kernel<Event>, slot: Slot, next: Option<Instant>) {
    kernel.set(slot, next);
}

/// Why a run has no report.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The stack broke a promise: a bug in it, not in the scenario.
    #[error("at {at} s, flow {flow}, {host}: {what} (scenario {scenario:?}, seed {seed})")]
    Broken {
        /// When, seconds of virtual time.
        at: f64,
        /// Index of the flow whose connection broke it.
        flow: usize,
        /// The host whose side of the flow broke it.
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
    /// The caller stopped it.
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
    /// The next thing in the wireless network, where there is one.
    wireless: Option<Slot>,
    /// What is next there may be something else since its slot was set.
    wireless_moved: bool,
    /// When each path has room again for the saturating flows that send into it; none without
    /// datagrams.
    fills: Vec<Slot>,
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
        let flows = Flows::new(&scenario.flows, hosts.len(), seed);
        let mut kernel = Kernel::default();
        let arrivals = [0, 1].map(|direction| kernel.slot(Event::Arrival(direction)));
        let wireless = (scenario.wlan.as_ref()).map(|_| kernel.slot(Event::Wireless));
        let filled = if flows.has_udp() { 2 } else { 0 };
        let fills = (0..filled)
            .map(|host| kernel.slot(Event::Fill(host)))
            .collect();
        let wakes = (0..hosts.len())
            .map(|host| kernel.slot(Event::Wake(host)))
            .collect();
        let captures = observers.list.iter().any(|observer| observer.wants_radio());
        let capture = if captures { Capture::On } else { Capture::Off };
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
            wireless_moved: false,
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
        self.expect_wireless();
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
            self.expect_wireless();
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
                while let Some(packet) = self.network.receive_wired(now, direction) {
                    self.arrive(now, 1 - direction, packet)?;
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

    /// Makes sure that what comes next on the links is met when it happens: as soon as it is known,
    /// because of two things at one instant the one that was set first happens first.
    #[inline(always)]
    fn expect(&mut self) {
        self.wireless_moved = true;
        for (path, slot) in self.network.paths.iter_mut().zip(self.arrivals) {
            // Asked several times for each packet, and it has seldom changed.
            if let Some(next) = path.poll_change() {
                expect_arrival(&mut self.kernel, slot, next);
            }
        }
    }

    /// As [`World::expect`], of the wireless network. It comes last at its instant whenever it was
    /// set: once after each event is enough.
    #[inline]
    fn expect_wireless(&mut self) {
        if let Some(slot) = self.wireless
            && std::mem::take(&mut self.wireless_moved)
        {
            self.kernel.set_last(slot, self.network.next_wireless());
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
