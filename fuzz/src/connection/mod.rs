//! Operation sequences on two endpoints: applications that do anything in any order, a network that
//! loses, repeats, reorders, delays and alters, and a third party that forges segments.
//!
//! Whatever happens, the invariants of both connections hold after every operation, memory stays
//! bounded and nothing spins. As long as nobody forged or altered anything, what is read is also a
//! prefix of what was written, and once the network behaves everything arrives.

mod forge;
mod operation;

use std::time::Duration;

use tack_base::Instant;
use tack_tcp::{CloseReason, Connection, ConnectionId, EndpointConfig, Event};
use tack_testkit::hosts::{PORT, SPIN};
use tack_testkit::wires::Packet;
use tack_testkit::{Hosts, Side, Wires, pattern};
use tack_wire::tack::TackOption;
use tack_wire::{Ecn, Header, Segment};

pub use operation::Run;
use operation::{Operation, Setup};

const SIDES: [Side; 2] = [Side::Client, Side::Server];
/// Where each side's stream begins in the pattern: they differ everywhere.
const ORIGINS: [u64; 2] = [0, 0x5a5a_5a5a];

struct App {
    id: Option<ConnectionId>,
    written: u64,
    read: u64,
    ended: bool,
    closed: Option<CloseReason>,
    released: bool,
}

struct World {
    now: Instant,
    hosts: Hosts,
    largest: [usize; 2],
    apps: [App; 2],
    wires: Wires,
    /// The newest header that left, by sender.
    seen: [Header; 2],
    /// The newest PKT.SEQ that left, by sender.
    numbers: [u32; 2],
    /// And when it left, as its stamp says.
    departures: [u32; 2],
    /// Number of the newest report that left, by sender.
    reports: [u32; 2],
    /// Somebody forged or altered a packet: the streams may say anything.
    hostile: bool,
    /// Somebody gave up early: not everything has to arrive.
    abrupt: bool,
    /// Somebody probes an idle connection, and gives it up when nothing comes back.
    probing: bool,
}

/// Runs it; panics on anything that must not happen.
pub fn connection_ops(run: &Run) {
    let mut world = World::new(&run.sides);
    world.settle();
    if run.connected {
        for _ in 0..3 {
            world.deliver_all();
            world.settle();
        }
    }
    let kept = |operation: &&Operation| !(run.peaceful && operation.is_violent());
    for operation in run.operations.iter().filter(kept).take(400) {
        world.perform(operation);
        world.settle();
    }
    if !world.hostile && !world.abrupt {
        world.end_well();
    }
}

impl World {
    fn new(setups: &[Setup; 2]) -> Self {
        let now = Instant::from_millis(1_000_000);
        let endpoint = |side: u8| EndpointConfig {
            max_connections: 8,
            ..EndpointConfig::new([side; 16])
        };
        let mut hosts = Hosts::new([endpoint(0), endpoint(1)]);
        let configs = setups.map(Setup::config);
        for (side, setup) in SIDES.into_iter().zip(setups) {
            hosts.set_max_batch(side, usize::from(setup.batch % 16) + 1);
        }
        hosts.listen(&configs[Side::Server as usize], 4);
        let id = hosts.connect(now, &configs[Side::Client as usize]);
        let app = |id| App {
            id,
            written: 0,
            read: 0,
            ended: false,
            closed: None,
            released: false,
        };
        Self {
            now,
            hosts,
            largest: configs.map(|config| usize::from(config.mss)),
            apps: [app(Some(id)), app(None)],
            wires: Wires::default(),
            seen: [Header::default(), Header::default()],
            numbers: [0; 2],
            departures: [0; 2],
            reports: [0; 2],
            hostile: false,
            abrupt: false,
            probing: setups.iter().any(|setup| setup.keep_alive),
        }
    }

    fn connection(&mut self, side: Side) -> Option<&mut Connection> {
        let id = self.apps[side as usize]
            .id
            .filter(|_| !self.apps[side as usize].released)?;
        self.hosts.endpoint_mut(side).get_mut(id)
    }

    fn perform(&mut self, operation: &Operation) {
        let now = self.now;
        match *operation {
            Operation::Write(who, len) => self.write(who.into(), usize::from(len)),
            Operation::Read(who, len) => self.read(who.into(), usize::from(len)),
            Operation::Finish(who) => {
                if let Some(connection) = self.connection(who.into()) {
                    connection.finish(now);
                }
            }
            Operation::StopReading(who) => {
                self.abrupt = true;
                if let Some(connection) = self.connection(who.into()) {
                    connection.stop_reading(now);
                }
            }
            Operation::Abort(who) => {
                self.abrupt = true;
                if let Some(connection) = self.connection(who.into()) {
                    connection.abort(now);
                }
            }
            Operation::Release(who) => {
                self.abrupt = true;
                let side = Side::from(who);
                if let Some(id) = self.apps[side as usize]
                    .id
                    .filter(|_| !self.apps[side as usize].released)
                {
                    self.apps[side as usize].released = true;
                    self.hosts.endpoint_mut(side).release(now, id);
                }
            }
            Operation::Deliver { to, at, late_ms } => {
                if let Some(packet) = self.wires.take(to.into(), at.into()) {
                    self.deliver(to.into(), &packet, Duration::from_millis(late_ms.into()));
                }
            }
            Operation::DeliverAll => self.deliver_all(),
            Operation::Lose { to, at } => drop(self.wires.take(to.into(), at.into())),
            Operation::Repeat { to, at } => {
                if let Some(packet) = self.wires.take(to.into(), at.into()) {
                    self.deliver(to.into(), &packet, Duration::ZERO);
                    self.wires.put_back(to.into(), packet);
                }
            }
            Operation::Mark { to, at } => {
                if let Some(packet) = self.wires.packet(to.into(), at.into()) {
                    packet.mark();
                }
            }
            Operation::Wait { micros } => {
                self.wait_until(now + Duration::from_micros(micros.into()))
            }
            Operation::Stall { millis } => self.now = now + Duration::from_millis(millis.into()),
            Operation::WaitForTimer => {
                if let Some(deadline) = self.hosts.poll_timeout() {
                    self.wait_until(deadline);
                }
            }
            Operation::PathMtu(who, mtu) => {
                if let Some(connection) = self.connection(who.into()) {
                    connection.handle_path_mtu(now, mtu);
                }
            }
            Operation::Alter { to, at, byte, xor } => {
                if let Some(packet) = self.wires.packet(to.into(), at.into()) {
                    let byte = usize::from(byte) % packet.bytes.len();
                    packet.bytes[byte] ^= xor;
                    self.hostile |= xor != 0;
                }
            }
            Operation::Forge { to, ref forged } => {
                self.hostile = true;
                let to = Side::from(to);
                let bytes = self.forge(to, forged);
                let packet = Packet {
                    sent: now,
                    bytes,
                    ecn: Ecn::from_bits(forged.ecn),
                };
                self.deliver(to, &packet, Duration::ZERO);
            }
        }
    }

    fn write(&mut self, side: Side, len: usize) {
        let (now, from) = (self.now, self.apps[side as usize].written);
        let data = pattern::bytes(ORIGINS[side as usize] + from, len);
        let Some(connection) = self.connection(side) else {
            return;
        };
        if let Ok(taken) = connection.write(now, &data) {
            assert!(
                taken <= len && (taken > 0 || len == 0),
                "{taken} of {len} bytes were taken"
            );
            self.apps[side as usize].written += taken as u64;
        }
    }

    fn read(&mut self, side: Side, len: usize) {
        let now = self.now;
        let Some(connection) = self.connection(side) else {
            return;
        };
        let readable = connection.readable();
        let mut data = vec![0; len.min(readable + 1)];
        let Ok(taken) = connection.read(now, &mut data) else {
            return;
        };
        assert_eq!(taken, readable.min(len));
        let from = self.apps[side as usize].read;
        self.apps[side as usize].read += taken as u64;
        self.apps[side as usize].ended |= taken == 0 && len > 0;
        if !self.hostile {
            let from = ORIGINS[side.other() as usize] + from;
            assert_eq!(
                pattern::mismatch(from, &data[..taken]),
                None,
                "other bytes than were written"
            );
            assert!(
                self.apps[side as usize].read <= self.apps[side.other() as usize].written,
                "more than was written"
            );
        }
    }

    fn deliver(&mut self, to: Side, packet: &Packet, late: Duration) {
        self.hosts.handle_packet(to, self.now, packet, late);
    }

    fn deliver_all(&mut self) {
        for to in SIDES {
            for packet in self.wires.take_all(to) {
                self.deliver(to, &packet, Duration::ZERO);
            }
        }
    }

    fn describe(&mut self) -> String {
        let mut text = format!("{}", self.now);
        for (side, name) in [(Side::Client, "client"), (Side::Server, "server")] {
            let state = self
                .connection(side)
                .map(|connection| (connection.state(), connection.readable()));
            let App {
                written,
                read,
                ended,
                closed,
                ..
            } = self.apps[side as usize];
            text += &format!(
                "; {name}: state and readable {state:?}, written {written}, read {read}, ended {ended}, closed {closed:?}"
            );
        }
        text
    }

    fn wait_until(&mut self, then: Instant) {
        self.now = self.now.max(then);
        for side in SIDES {
            self.hosts.endpoint_mut(side).handle_timeout(self.now);
        }
    }

    /// Lets both sides send what they want to send, hears what they have to say, checks what must
    /// hold.
    fn settle(&mut self) {
        for side in SIDES {
            self.collect(side);
            self.listen_to(side);
            // Segments forged onto other ports make connections of their own; a full endpoint takes
            // no more.
            assert!(self.hosts.endpoint(side).len() <= 8);
            let now = self.now;
            if let Some(connection) = self.connection(side) {
                connection
                    .check_invariants()
                    .unwrap_or_else(|broken| panic!("{broken}"));
                let _ = connection.stats(now);
            }
        }
    }

    fn collect(&mut self, side: Side) {
        let from = side as usize;
        let see = |_: &_, bytes: &[u8]| {
            let segment = Segment::parse(bytes).expect("what leaves is a segment");
            let options = bytes.len() - segment.payload.len() - 20;
            assert!(
                segment.payload.len() + options <= self.largest[from] + 40,
                "{segment} is too long"
            );
            match segment.header.options.tack {
                Some(TackOption::Data(stamp)) => {
                    self.numbers[from] = stamp.number;
                    self.departures[from] = stamp.departure;
                }
                Some(TackOption::Report(report)) => self.reports[from] = report.number,
                Some(TackOption::Loss(loss)) => self.reports[from] = loss.number,
                _ => {}
            }
            if !segment.header.flags.rst() {
                self.seen[from] = segment.header;
            }
        };
        self.wires.collect(&mut self.hosts, side, self.now, see);
    }

    fn listen_to(&mut self, side: Side) {
        if side == Side::Server {
            while let Some(id) = self.hosts.endpoint_mut(side).accept(PORT) {
                if self.apps[side as usize].id.is_none() {
                    self.apps[side as usize].id = Some(id);
                } else {
                    self.hosts.endpoint_mut(side).release(self.now, id);
                }
            }
        }
        let mut rounds = 0;
        while let Some(id) = self.hosts.endpoint_mut(side).poll_ready() {
            while let Some(event) = self
                .hosts
                .endpoint_mut(side)
                .get_mut(id)
                .and_then(Connection::poll_event)
            {
                if let (Event::Closed(reason), true) =
                    (event, self.apps[side as usize].id == Some(id))
                {
                    self.apps[side as usize].closed = Some(reason);
                }
                rounds += 1;
                assert!(rounds < SPIN, "{side:?} has events without end");
            }
        }
    }

    /// The network behaves from now on: both streams must arrive whole and end.
    fn end_well(&mut self) {
        for round in 0.. {
            let given_up = |app: &App| {
                app.closed
                    .is_some_and(|reason| reason != CloseReason::Graceful)
            };
            if self.apps.iter().any(given_up) {
                // Only a handshake may have been given up, or an idle connection whose probes were
                // all lost.
                let idle = self
                    .apps
                    .iter()
                    .any(|app| app.closed == Some(CloseReason::TimedOut))
                    && self.probing;
                assert!(
                    idle || self.apps.iter().all(|app| app.read == 0),
                    "a connection that worked was given up: {:?} {}",
                    self.apps
                        .iter()
                        .map(|a| (a.closed, a.read, a.ended))
                        .collect::<Vec<_>>(),
                    self.describe()
                );
                return;
            }
            assert!(
                round < SPIN,
                "the transfer does not end; {}",
                self.describe()
            );
            for side in SIDES {
                // Everything that is here, and then perhaps the end.
                self.read(side, 1_000_000);
                self.read(side, 1_000_000);
                let now = self.now;
                if let Some(connection) = self.connection(side) {
                    connection.finish(now);
                }
            }
            if self.apps.iter().all(|app| app.ended) {
                break;
            }
            self.settle();
            if self.wires.is_empty() {
                let Some(deadline) = self.hosts.poll_timeout() else {
                    panic!("nothing moves and no timer runs; {}", self.describe());
                };
                self.wait_until(deadline);
            } else {
                let next = self.now + Duration::from_millis(1);
                self.deliver_all();
                self.wait_until(next);
            }
            self.settle();
        }
        for side in SIDES {
            assert_eq!(
                self.apps[side as usize].read,
                self.apps[side.other() as usize].written,
                "bytes are missing"
            );
        }
    }
}
