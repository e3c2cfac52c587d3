//! Two endpoints and the network between them, stepped from event to event.

mod app;
mod arrival;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

use tack_base::Instant;
use tack_base::random::RandomStream;
use tack_tcp::{CloseReason, Config, Connection, ConnectionId, Endpoint, EndpointConfig, Event};
use tack_wire::{Ecn, Segment};

pub use self::app::App;
use self::arrival::Arrival;
pub use crate::hosts::PORT;
use crate::hosts::{Hosts, SPIN};
use crate::model::{Delivery, Link, Model};
use crate::side::Side;
use crate::trace::{Origins, Trace, describe};
use crate::watch::Watch;

/// Time at which every run begins.
pub const BEGIN: Instant = Instant::from_millis(1_000_000);

/// Two endpoints, the network between them, and an application on each connection. What breaks an
/// invariant panics with the last segments.
#[derive(Debug)]
pub struct Pair {
    hosts: Hosts,
    /// By sender.
    links: [Link; 2],
    now: Instant,
    arrivals: BinaryHeap<Reverse<Arrival>>,
    serial: u64,
    apps: [BTreeMap<ConnectionId, App>; 2],
    /// Connections of the server in the order they were accepted.
    accepted: Vec<ConnectionId>,
    /// What is seen on the wire of each connection, by (client port, server port).
    watches: BTreeMap<(u16, u16), Watch>,
    trace: Trace,
    /// What the buffers of one connection may take.
    memory_cap: usize,
    /// What is read must be what was written.
    checks_content: bool,
    recent: [VecDeque<Vec<u8>>; 2],
    /// Time from one turn of a side's process to the next; zero when it always runs.
    turns: [Duration; 2],
    /// Packets that entered the network, by sender.
    pub packets: [u64; 2],
}

/// Segments kept for replays, by side.
const RECENT: usize = 64;

impl Pair {
    /// Two hosts: `forward` leads from the client to the server, `backward` the other way. Random
    /// faults follow `seed`.
    pub fn new(seed: u64, forward: Model, backward: Model) -> Self {
        let config = |side: u8| EndpointConfig::new([side ^ seed as u8; 16]);
        Self {
            hosts: Hosts::new([config(1), config(2)]),
            links: [
                Link::new(forward, RandomStream::new(seed, "testkit link", 0)),
                Link::new(backward, RandomStream::new(seed, "testkit link", 1)),
            ],
            now: BEGIN,
            arrivals: BinaryHeap::new(),
            serial: 0,
            apps: [BTreeMap::new(), BTreeMap::new()],
            accepted: Vec::new(),
            watches: BTreeMap::new(),
            trace: Trace::new(200),
            memory_cap: 0,
            checks_content: true,
            recent: Default::default(),
            turns: [Duration::ZERO; 2],
            packets: [0, 0],
        }
    }

    /// The current instant.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.now.saturating_since(BEGIN)
    }

    /// The network from this side to the other, to change it.
    pub fn model(&mut self, from: Side) -> &mut Model {
        &mut self.links[from.index()].model
    }

    /// From now on the process of this side runs only once in each `period`, as on a machine with
    /// other work: segments and timers wait for its next turn.
    pub fn set_turns(&mut self, side: Side, period: Duration) {
        self.turns[side.index()] = period;
    }

    /// The path may change what is in the streams: from here on they are read without being
    /// compared.
    pub fn expect_other_content(&mut self) {
        self.checks_content = false;
    }

    /// The endpoint of a side.
    pub fn endpoint(&mut self, side: Side) -> &mut Endpoint {
        self.hosts.endpoint_mut(side)
    }

    /// The server listens with `config`.
    pub fn listen(&mut self, config: &Config) {
        self.hosts
            .set_max_batch(Side::Server, config.carrier.max_batch);
        self.allow_memory(config);
        self.hosts.listen(config, 16);
    }

    /// The client connects with `config`.
    pub fn connect(&mut self, config: &Config) -> ConnectionId {
        self.hosts
            .set_max_batch(Side::Client, config.carrier.max_batch);
        self.allow_memory(config);
        let id = self.hosts.connect(self.now, config);
        self.apps[0].insert(id, App::new(id));
        self.settle(Side::Client);
        id
    }

    fn allow_memory(&mut self, config: &Config) {
        let cap = 4 * (config.receive_buffer + config.send_buffer) + (1 << 20);
        self.memory_cap = self.memory_cap.max(cap);
    }

    /// A network with one connection, whose first packet has just entered. Both ends have the same
    /// `config`.
    pub fn open(seed: u64, config: &Config, forward: Model, backward: Model) -> Self {
        let mut pair = Self::new(seed, forward, backward);
        pair.listen(config);
        pair.connect(config);
        pair
    }

    /// The application of this side's first connection.
    ///
    /// # Panics
    /// When there is none (yet).
    pub fn app(&mut self, side: Side) -> &mut App {
        let id = self.first(side).expect("there is a connection");
        self.app_of(side, id)
    }

    fn app_of(&mut self, side: Side, id: ConnectionId) -> &mut App {
        self.apps[side.index()]
            .get_mut(&id)
            .expect("each connection has an application")
    }

    /// This side's first connection.
    ///
    /// # Panics
    /// When there is none (yet), or it is forgotten.
    pub fn connection(&self, side: Side) -> &Connection {
        let id = self.first(side).expect("there is a connection");
        self.hosts
            .endpoint(side)
            .get(id)
            .expect("it is not forgotten")
    }

    /// Uses a verb of this side's first connection.
    ///
    /// # Panics
    /// When there is none (yet), or it is forgotten.
    pub fn with<T>(&mut self, side: Side, verb: impl FnOnce(&mut Connection, Instant) -> T) -> T {
        let id = self.first(side).expect("there is a connection");
        let result = verb(
            self.hosts
                .endpoint_mut(side)
                .get_mut(id)
                .expect("it is not forgotten"),
            self.now,
        );
        self.settle(side);
        result
    }

    /// The applications of all connections of a side, oldest first.
    pub fn apps(&self, side: Side) -> impl Iterator<Item = &App> {
        self.apps[side.index()].values()
    }

    fn first(&self, side: Side) -> Option<ConnectionId> {
        self.apps[side.index()].keys().next().copied()
    }

    /// This side's first application wants to write `bytes` more, from now on.
    pub fn send(&mut self, side: Side, bytes: u64) {
        let id = self.app(side).id;
        self.send_on(side, id, bytes);
    }

    /// The same on a connection of one's choice.
    pub fn send_on(&mut self, side: Side, id: ConnectionId, bytes: u64) {
        self.app_of(side, id).to_write += bytes;
        self.work(side, id);
        self.settle(side);
    }

    /// This side's first application ends its stream once everything is written.
    pub fn finish(&mut self, side: Side) {
        let id = self.app(side).id;
        self.finish_on(side, id);
    }

    /// The same on a connection of one's choice.
    pub fn finish_on(&mut self, side: Side, id: ConnectionId) {
        self.app_of(side, id).finishing = true;
        self.work(side, id);
        self.settle(side);
    }

    /// This side's first application stops or begins to read.
    pub fn set_reading(&mut self, side: Side, reading: bool) {
        let app = self.app(side);
        app.reading = reading;
        let id = app.id;
        self.work(side, id);
        self.settle(side);
    }

    /// Runs until `done`, at most for `limit`. Returns whether it is.
    pub fn run_until(&mut self, limit: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let end = self.now + limit;
        loop {
            if done(self) {
                return true;
            }
            match self.next() {
                Some(next) if next <= end => self.step(next),
                _ => {
                    self.now = end;
                    return done(self);
                }
            }
        }
    }

    /// Lets time pass.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Runs until both ends are established.
    ///
    /// # Panics
    /// When that takes longer than `limit`.
    pub fn establish(&mut self, limit: Duration) {
        let connected = self.run_until(limit, |pair| {
            [Side::Client, Side::Server].into_iter().all(|side| {
                pair.apps[side.index()]
                    .values()
                    .next()
                    .is_some_and(|app| app.events.contains(&Event::Connected))
            })
        });
        assert!(connected, "no connection within {limit:?}\n{}", self.trace);
    }

    /// Sends so many bytes each way on the first connection, ends both streams, and demands that
    /// all of it arrives and both ends are closed, within `limit`.
    ///
    /// # Panics
    /// When it does not.
    pub fn transfer(&mut self, client_bytes: u64, server_bytes: u64, limit: Duration) {
        self.establish(limit);
        self.send(Side::Client, client_bytes);
        self.send(Side::Server, server_bytes);
        self.finish(Side::Client);
        self.finish(Side::Server);
        let done = self.run_until(limit, |pair| {
            pair.app(Side::Client).closed().is_some() && pair.app(Side::Server).closed().is_some()
        });
        for (side, expected) in [(Side::Client, server_bytes), (Side::Server, client_bytes)] {
            let app = self.app(side).clone();
            let state = (app.read == expected && app.ended, app.closed());
            assert!(
                done && state == (true, Some(CloseReason::Graceful)),
                "{side:?} after {:?}: {app:?}\n{:?}\n{}",
                self.elapsed(),
                self.hosts
                    .endpoint(side)
                    .get(app.id)
                    .map(|connection| connection.stats(self.now)),
                self.trace
            );
            // Nobody lied: what was taken for a lie is a mistake of ours.
            let stats = self
                .hosts
                .endpoint(side)
                .get(app.id)
                .map(|connection| connection.stats(self.now));
            let invalid = stats.map_or(0, |stats| stats.invalid_reports);
            assert_eq!(invalid, 0, "{side:?} refused reports\n{}", self.trace);
        }
    }

    /// Delivers a given segment to a side, at once, as if it came from the other one.
    ///
    /// # Panics
    /// When the bytes are not a valid segment.
    pub fn inject(&mut self, to: Side, bytes: &[u8], ecn: Ecn) {
        let segment = Segment::parse(bytes).expect("a segment");
        let text = describe(
            &segment.header,
            segment.payload.len(),
            ecn,
            Origins::default(),
        );
        self.trace.note(
            Instant::ZERO + self.elapsed(),
            format!("injected to {to:?} {text}"),
        );
        self.hosts
            .handle_segment(to, self.now, self.now, &segment, ecn);
        self.settle(to);
    }

    /// The segments that left a side last, newest first, to replay or to forge.
    pub fn recent(&self, from: Side) -> impl ExactSizeIterator<Item = &[u8]> {
        self.recent[from.index()].iter().map(Vec::as_slice)
    }

    /// The last segments, for messages.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    fn next(&mut self) -> Option<Instant> {
        let arrival = self.arrivals.peek().map(|Reverse(arrival)| arrival.at);
        let timers = [Side::Client, Side::Server].map(|side| self.deadline(side));
        timers
            .into_iter()
            .flatten()
            .chain(arrival)
            .min()
            .map(|next| next.max(self.now))
    }

    /// When a side handles its next timer.
    fn deadline(&mut self, side: Side) -> Option<Instant> {
        let deadline = self.hosts.endpoint_mut(side).poll_timeout()?;
        Some(self.turn(side, deadline))
    }

    /// The first turn of a side's process at or after `at`.
    fn turn(&self, side: Side, at: Instant) -> Instant {
        let period = self.turns[side.index()].as_nanos();
        let since = at.saturating_since(BEGIN).as_nanos();
        if period == 0 || at < BEGIN || at == Instant::FAR_FUTURE {
            return at;
        }
        let turns = since.div_ceil(period);
        BEGIN + Duration::from_nanos(u64::try_from(turns * period).unwrap_or(u64::MAX))
    }

    /// Everything that happens at `next`.
    fn step(&mut self, next: Instant) {
        self.now = next;
        for _ in 0..SPIN {
            if self
                .arrivals
                .peek()
                .is_some_and(|Reverse(arrival)| arrival.at <= next)
            {
                let Some(Reverse(arrival)) = self.arrivals.pop() else {
                    return;
                };
                let segment = Segment::parse(&arrival.bytes).expect("the network carries segments");
                let Arrival {
                    to, arrived, ecn, ..
                } = arrival;
                self.hosts.handle_segment(to, next, arrived, &segment, ecn);
                self.settle(arrival.to);
                continue;
            }
            let due = [Side::Client, Side::Server].into_iter().find(|side| {
                self.deadline(*side)
                    .is_some_and(|deadline| deadline <= next)
            });
            let Some(side) = due else { return };
            self.hosts.endpoint_mut(side).handle_timeout(next);
            self.settle(side);
        }
        panic!("timers fire without end at {next}\n{}", self.trace);
    }

    /// Drains an endpoint: segments, then events.
    fn settle(&mut self, side: Side) {
        loop {
            self.drain(side);
            if side == Side::Server {
                while let Some(id) = self.hosts.endpoint_mut(side).accept(PORT) {
                    self.apps[side.index()].insert(id, App::new(id));
                    self.accepted.push(id);
                }
            }
            let Some(id) = self.hosts.endpoint_mut(side).poll_ready() else {
                break;
            };
            self.work(side, id);
        }
        self.check(side);
    }

    fn drain(&mut self, side: Side) {
        let mut buf = Vec::new();
        while let Some(transmit) = self.hosts.poll_transmit(side, self.now, &mut buf) {
            for bytes in buf.chunks(transmit.segment_size) {
                self.packets[side.index()] += 1;
                self.observe(side, bytes, transmit.ecn);
                let recent = &mut self.recent[side.index()];
                let mut slot = if recent.len() == RECENT {
                    recent.pop_back().unwrap_or_default()
                } else {
                    Vec::new()
                };
                slot.clear();
                slot.extend_from_slice(bytes);
                recent.push_front(slot);
                let leaves = transmit.departure.max(self.now);
                for Delivery { at, bytes, ecn } in
                    self.links[side.index()].send(leaves, bytes, transmit.ecn)
                {
                    let serial = self.serial;
                    self.serial += 1;
                    let to = side.other();
                    let processed = self.turn(to, at + self.links[side.index()].model.late);
                    self.arrivals.push(Reverse(Arrival {
                        at: processed,
                        serial,
                        to,
                        arrived: at,
                        bytes,
                        ecn,
                    }));
                }
            }
        }
    }

    fn observe(&mut self, side: Side, bytes: &[u8], ecn: Ecn) {
        let segment = Segment::parse(bytes).expect("endpoints send segments");
        let header = &segment.header;
        let key = match side {
            Side::Client => (header.src_port, header.dst_port),
            Side::Server => (header.dst_port, header.src_port),
        };
        let watch = self.watches.entry(key).or_default();
        let verdict = watch.observe(side, &segment);
        let origins = Origins {
            seq: watch.origin(side),
            ack: watch.origin(side.other()),
        };
        let arrow = if side == Side::Client {
            "client >"
        } else {
            "server >"
        };
        let text = describe(header, segment.payload.len(), ecn, origins);
        self.trace
            .note(Instant::ZERO + self.elapsed(), format!("{arrow} {text}"));
        // With a box in the middle the two ends do not speak of the same numbers.
        if let (Err(why), false) = (verdict, self.links.iter().any(|link| link.model.rewrites())) {
            panic!("{side:?}: {why}\n{}", self.trace);
        }
    }

    /// The application of a connection does what it can.
    fn work(&mut self, side: Side, id: ConnectionId) {
        let connection = self.hosts.endpoint_mut(side).get_mut(id);
        if let (Some(connection), Some(app)) = (connection, self.apps[side.index()].get_mut(&id))
            && let Err(why) = app.work(self.now, connection, self.checks_content)
        {
            panic!("{side:?}: {why}\n{}", self.trace);
        }
    }

    /// Invariants that hold after each event.
    fn check(&self, side: Side) {
        for id in self.apps[side.index()].keys() {
            let Some(connection) = self.hosts.endpoint(side).get(*id) else {
                continue;
            };
            let stats = connection.stats(self.now);
            let mut verdict = connection.check_invariants();
            if connection.close_reason().is_none()
                && stats.bytes_in_flight > 0
                && connection.poll_timeout().is_none()
            {
                verdict = Err("data is unacknowledged, and no deadline is told");
            }
            // Each buffer may be twice its cap while it grows, and is a power of two.
            if connection.buffer_memory() > self.memory_cap {
                verdict = Err("the buffers outgrew their caps");
            }
            if let Err(why) = verdict {
                panic!("{side:?}: {why}\n{stats:?}\n{}", self.trace);
            }
        }
    }
}
