//! Operation sequences on two endpoints: applications that do anything in any order, a network that
//! loses, repeats, reorders, delays and alters, and a third party that forges segments.
//!
//! Whatever happens, the invariants of both connections hold after every operation, memory stays
//! bounded and nothing spins. As long as nobody forged or altered anything, what is read is also a
//! prefix of what was written, and once the network behaves everything arrives.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use arbitrary::Arbitrary;
use tack_base::Instant;
use tack_tcp::config::Audits;
use tack_tcp::{
    AckKind, Algorithm, Batch, CloseReason, Config, Connection, ConnectionId, Endpoint,
    EndpointConfig, Event,
};
use tack_wire::options::MAX_OPTIONS_LEN;
use tack_wire::tack::{
    DataStamp, ListsWriter, LossReport, Report, ReportKind, Sync, TackOption, TackSyn, TimingEcho,
};
use tack_wire::{Ecn, Flags, Header, SackBlock, Segment, TcpOptions, Timestamps};

const PORT: u16 = 7000;
const CLIENT: usize = 0;
const SERVER: usize = 1;
/// Packets in flight one way; more are lost, as at a full queue.
const QUEUE: usize = 512;
/// No single operation makes an endpoint send this many batches, or needs as many timeouts.
const SPIN: usize = 20_000;

/// One run: how the two sides are set up, and what happens.
#[derive(Arbitrary, Debug, Clone)]
pub struct Run {
    sides: [Side; 2],
    /// Nobody forges, alters or gives up: operations that do are left out, and everything must
    /// arrive.
    peaceful: bool,
    /// The handshake is done before anything else happens.
    connected: bool,
    operations: Vec<Operation>,
}

/// Configuration of one side.
#[derive(Arbitrary, Debug, Clone, Copy)]
struct Side {
    congestion: u8,
    ack: u8,
    timestamps: bool,
    sack: bool,
    window_scaling: bool,
    ecn: bool,
    nagle: bool,
    keep_alive: bool,
    mss: u16,
    batch: u8,
    receive_buffer: u16,
    send_buffer: u16,
}

impl Side {
    fn ack(self) -> AckKind {
        let texts = [
            "every",
            "delayed:1",
            "delayed:2",
            "delayed:16",
            "tack",
            "tack:l=1,beta=2",
            "tack:rich=off",
            "tack:iack=off,timing=sampled",
            "tack:settle=0.25",
        ];
        texts[usize::from(self.ack) % texts.len()]
            .parse()
            .expect("a policy's text")
    }

    fn config(self) -> Config {
        Config {
            congestion: Algorithm::ALL[usize::from(self.congestion) % Algorithm::ALL.len()],
            ack: self.ack(),
            timestamps: self.timestamps,
            sack: self.sack,
            window_scaling: self.window_scaling,
            ecn: self.ecn,
            nagle: self.nagle,
            keep_alive: self.keep_alive.then(Default::default),
            mss: self.mss.clamp(88, 9_000),
            receive_buffer: usize::from(self.receive_buffer).max(4) * 64,
            send_buffer: usize::from(self.send_buffer).max(4) * 64,
            user_timeout: None,
            audit: if self.batch >= 128 {
                Audits::Every(u32::from(self.batch % 64) + 1)
            } else {
                Audits::Never
            },
            ..Config::default()
        }
    }
}

/// Which of the two.
#[derive(Arbitrary, Debug, Clone, Copy)]
enum Who {
    Client,
    Server,
}

#[derive(Arbitrary, Debug, Clone)]
enum Operation {
    Write(Who, u16),
    Read(Who, u16),
    Finish(Who),
    StopReading(Who),
    Abort(Who),
    Release(Who),
    /// The network hands over the packet at this place of its queue to the receiver, who had it
    /// lying around for some milliseconds.
    Deliver {
        to: Who,
        at: u8,
        late_ms: u8,
    },
    DeliverAll,
    Lose {
        to: Who,
        at: u8,
    },
    Repeat {
        to: Who,
        at: u8,
    },
    Mark {
        to: Who,
        at: u8,
    },
    /// Time passes and timers run.
    Wait {
        micros: u16,
    },
    /// Time passes, and the timers are looked at only later.
    Stall {
        millis: u16,
    },
    /// Time passes until the next deadline.
    WaitForTimer,
    PathMtu(Who, u16),
    /// One byte of a packet on its way becomes another one.
    Alter {
        to: Who,
        at: u8,
        byte: u8,
        xor: u8,
    },
    Forge {
        to: Who,
        forged: Forged,
    },
}

impl Operation {
    /// After it, not everything has to arrive, or not unchanged.
    const fn is_violent(&self) -> bool {
        matches!(
            self,
            Self::StopReading(_)
                | Self::Abort(_)
                | Self::Release(_)
                | Self::Alter { .. }
                | Self::Forge { .. }
        )
    }
}

/// A segment nobody sent, near what the connection expects.
#[derive(Arbitrary, Debug, Clone)]
struct Forged {
    flags: u8,
    seq_offset: i32,
    ack_offset: i16,
    window: u16,
    urgent: u16,
    len: u16,
    mss: Option<u16>,
    window_scale: Option<u8>,
    sack_permitted: bool,
    timestamps: Option<(i16, i16)>,
    sack: Vec<(i32, u16)>,
    tack: Option<ForgedTack>,
    other_port: bool,
    ecn: u8,
}

/// A TACK option near what the connection expects; lists come from the payload.
#[derive(Arbitrary, Debug, Clone, Copy)]
struct ForgedTack {
    shape: u8,
    number: i16,
    largest: i16,
    delay: u32,
    lists: bool,
    timing: bool,
    rate: Option<u64>,
    above: u32,
    gap: (i16, i16),
}

struct Packet {
    sent: Instant,
    bytes: Vec<u8>,
    ecn: Ecn,
}

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
    endpoints: [Endpoint; 2],
    batches: [usize; 2],
    largest: [usize; 2],
    apps: [App; 2],
    /// Packets on their way, by receiver.
    wires: [VecDeque<Packet>; 2],
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

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, side as u8 + 1], 0))
}

/// The byte that `side` writes at `position`.
fn pattern(side: usize, position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ side as u8
}

impl World {
    fn new(sides: &[Side; 2]) -> Self {
        let now = Instant::from_millis(1_000_000);
        let endpoint = |side: u8| {
            Endpoint::new(EndpointConfig {
                max_connections: 8,
                ..EndpointConfig::new([side; 16])
            })
        };
        let mut endpoints = [endpoint(0), endpoint(1)];
        let configs = sides.map(Side::config);
        endpoints[SERVER]
            .listen(PORT, configs[SERVER].clone(), 4)
            .expect("the port is free");
        let id = endpoints[CLIENT].connect(now, address(SERVER), PORT, 0, &configs[CLIENT]);
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
            endpoints,
            batches: sides.map(|side| usize::from(side.batch % 16) + 1),
            largest: configs.map(|config| usize::from(config.mss)),
            apps: [app(Some(id.expect("nothing is connected yet"))), app(None)],
            wires: [VecDeque::new(), VecDeque::new()],
            seen: [Header::default(), Header::default()],
            numbers: [0; 2],
            departures: [0; 2],
            reports: [0; 2],
            hostile: false,
            abrupt: false,
            probing: sides.iter().any(|side| side.keep_alive),
        }
    }

    fn connection(&mut self, side: usize) -> Option<&mut Connection> {
        let id = self.apps[side].id.filter(|_| !self.apps[side].released)?;
        self.endpoints[side].get_mut(id)
    }

    fn perform(&mut self, operation: &Operation) {
        let now = self.now;
        match *operation {
            Operation::Write(who, len) => self.write(who as usize, usize::from(len)),
            Operation::Read(who, len) => self.read(who as usize, usize::from(len)),
            Operation::Finish(who) => {
                if let Some(connection) = self.connection(who as usize) {
                    connection.finish(now);
                }
            }
            Operation::StopReading(who) => {
                self.abrupt = true;
                if let Some(connection) = self.connection(who as usize) {
                    connection.stop_reading(now);
                }
            }
            Operation::Abort(who) => {
                self.abrupt = true;
                if let Some(connection) = self.connection(who as usize) {
                    connection.abort(now);
                }
            }
            Operation::Release(who) => {
                self.abrupt = true;
                let side = who as usize;
                if let Some(id) = self.apps[side].id.filter(|_| !self.apps[side].released) {
                    self.apps[side].released = true;
                    self.endpoints[side].release(now, id);
                }
            }
            Operation::Deliver { to, at, late_ms } => {
                if let Some(packet) = self.take(to as usize, at) {
                    self.deliver(to as usize, &packet, Duration::from_millis(late_ms.into()));
                }
            }
            Operation::DeliverAll => self.deliver_all(),
            Operation::Lose { to, at } => drop(self.take(to as usize, at)),
            Operation::Repeat { to, at } => {
                if let Some(packet) = self.take(to as usize, at) {
                    self.deliver(to as usize, &packet, Duration::ZERO);
                    self.wires[to as usize].push_back(packet);
                }
            }
            Operation::Mark { to, at } => {
                if let Some(packet) = self
                    .at(to as usize, at)
                    .filter(|packet| packet.ecn != Ecn::NotEct)
                {
                    packet.ecn = Ecn::Ce;
                }
            }
            Operation::Wait { micros } => {
                self.wait_until(now + Duration::from_micros(micros.into()))
            }
            Operation::Stall { millis } => self.now = now + Duration::from_millis(millis.into()),
            Operation::WaitForTimer => {
                if let Some(deadline) = self.next_deadline() {
                    self.wait_until(deadline);
                }
            }
            Operation::PathMtu(who, mtu) => {
                if let Some(connection) = self.connection(who as usize) {
                    connection.handle_path_mtu(now, mtu);
                }
            }
            Operation::Alter { to, at, byte, xor } => {
                if let Some(packet) = self.at(to as usize, at) {
                    let byte = usize::from(byte) % packet.bytes.len();
                    packet.bytes[byte] ^= xor;
                    self.hostile |= xor != 0;
                }
            }
            Operation::Forge { to, ref forged } => {
                self.hostile = true;
                let to = to as usize;
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

    fn write(&mut self, side: usize, len: usize) {
        let (now, from) = (self.now, self.apps[side].written);
        let data: Vec<u8> = (from..from + len as u64)
            .map(|position| pattern(side, position))
            .collect();
        let Some(connection) = self.connection(side) else {
            return;
        };
        if let Ok(taken) = connection.write(now, &data) {
            assert!(
                taken <= len && (taken > 0 || len == 0),
                "{taken} of {len} bytes were taken"
            );
            self.apps[side].written += taken as u64;
        }
    }

    fn read(&mut self, side: usize, len: usize) {
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
        let from = self.apps[side].read;
        self.apps[side].read += taken as u64;
        self.apps[side].ended |= taken == 0 && len > 0;
        if !self.hostile {
            let expected = (from..).map(|position| pattern(1 - side, position));
            assert!(
                data[..taken].iter().copied().eq(expected.take(taken)),
                "other bytes than were written"
            );
            assert!(
                self.apps[side].read <= self.apps[1 - side].written,
                "more than was written"
            );
        }
    }

    fn at(&mut self, to: usize, at: u8) -> Option<&mut Packet> {
        let len = self.wires[to].len();
        self.wires[to].get_mut(usize::from(at) % len.max(1))
    }

    fn take(&mut self, to: usize, at: u8) -> Option<Packet> {
        let len = self.wires[to].len();
        self.wires[to].remove(usize::from(at) % len.max(1))
    }

    fn deliver(&mut self, to: usize, packet: &Packet, late: Duration) {
        let arrived = (self.now - late).max(packet.sent);
        if let Ok(segment) = Segment::parse(&packet.bytes) {
            self.endpoints[to].handle_segment(
                self.now,
                arrived,
                address(1 - to),
                &segment,
                packet.ecn,
            );
        }
    }

    fn deliver_all(&mut self) {
        for to in [CLIENT, SERVER] {
            for packet in std::mem::take(&mut self.wires[to]) {
                self.deliver(to, &packet, Duration::ZERO);
            }
        }
    }

    fn forge(&self, to: usize, forged: &Forged) -> Vec<u8> {
        // What the receiver saw last from the other side, and what it sent last, are where it
        // hurts.
        let (theirs, own) = (&self.seen[1 - to], &self.seen[to]);
        let clock = |header: &Header, offset: i16| {
            header
                .options
                .timestamps
                .map_or(0, |timestamps| timestamps.value)
                .wrapping_add_signed(offset.into())
        };
        let mut options = TcpOptions {
            mss: forged.mss,
            window_scale: forged.window_scale,
            sack_permitted: forged.sack_permitted,
            tack: forged.tack.map(|tack| self.forge_tack(to, tack)),
            timestamps: forged.timestamps.map(|(value, echo)| Timestamps {
                value: clock(theirs, value),
                echo: clock(own, echo),
            }),
            ..TcpOptions::default()
        };
        for &(offset, len) in forged.sack.iter().take(options.sack_capacity()) {
            let start = own.seq + offset as u32;
            options.sack.push(SackBlock {
                start,
                end: start + u32::from(len),
            });
        }
        if options.encoded_len() > MAX_OPTIONS_LEN {
            options = TcpOptions {
                tack: options.tack,
                ..TcpOptions::default()
            };
        }
        let mut payload = vec![0x66; usize::from(forged.len % 2_000)];
        if options.tack.is_some_and(|option| option.has_lists()) {
            payload.resize(payload.len().max(16), 0);
            let mut lists = ListsWriter::new(&mut payload);
            // Small offsets are within what is in flight, and sometimes in order.
            for &(start, len) in &forged.sack {
                let start = u64::from(start.unsigned_abs() % 65_536);
                lists.block(start..start + u64::from(len));
            }
            lists.gap((forged.window % 128).into(), (forged.urgent % 32).into());
            lists.gap((forged.window / 128 % 32).into(), 1);
            let len = lists.finish();
            payload.truncate(len);
        }
        let header = Header {
            src_port: if forged.other_port {
                own.dst_port.wrapping_add(forged.urgent % 8)
            } else {
                own.dst_port
            },
            dst_port: if to == SERVER { PORT } else { own.src_port },
            seq: theirs.seq + forged.seq_offset as u32,
            ack: own.seq + i32::from(forged.ack_offset) as u32,
            flags: Flags(forged.flags),
            window: forged.window,
            urgent: forged.urgent,
            options,
        };
        let mut bytes = vec![0; header.encoded_len()];
        header.emit(&mut bytes);
        bytes.extend_from_slice(&payload);
        bytes
    }

    fn describe(&mut self) -> String {
        let mut text = format!("{}", self.now);
        for (side, name) in [(CLIENT, "client"), (SERVER, "server")] {
            let state = self
                .connection(side)
                .map(|connection| (connection.state(), connection.readable()));
            let App {
                written,
                read,
                ended,
                closed,
                ..
            } = self.apps[side];
            text += &format!(
                "; {name}: state and readable {state:?}, written {written}, read {read}, ended {ended}, closed {closed:?}"
            );
        }
        text
    }

    fn forge_tack(&self, to: usize, forged: ForgedTack) -> TackOption {
        let near = |number: u32, offset: i16| number.wrapping_add_signed(offset.into());
        // Mostly what may be in flight, sometimes just beyond, now and then nonsense.
        let sent = |number: u32, offset: i16| match offset % 16 {
            0 => near(number, offset),
            _ => near(number, 1 - (offset & 63)),
        };
        let (own, theirs) = (self.numbers[to], self.numbers[1 - to]);
        let (loss_rate, largest) = (forged.above as u16, sent(own, forged.largest));
        // What the other side reported last is what a liar has to outdo.
        let report = near(self.reports[1 - to], forged.number);
        match forged.shape % 8 {
            0 => TackOption::Syn(TackSyn {
                segments: forged.lists.into(),
                beta: forged.delay as u8,
            }),
            1 => TackOption::Data(DataStamp {
                number: near(theirs, forged.number),
                departure: forged.delay,
            }),
            2 => TackOption::Sync(Sync {
                startup: forged.timing,
                ack_loss_rate: loss_rate,
                number: forged.above,
                rtt_min: forged.delay,
                rtt: forged.above,
            }),
            3 => TackOption::Loss(LossReport {
                lists: forged.lists,
                loss_rate,
                number: report,
                largest,
                largest_delay: forged.delay,
                above: forged.above,
                before_gap: sent(own, forged.gap.0),
                after_gap: sent(own, forged.gap.1),
            }),
            shape => TackOption::Report(Report {
                kind: match shape {
                    4 => ReportKind::Tack,
                    5 => ReportKind::Window,
                    6 => ReportKind::Event,
                    _ => ReportKind::Frequency,
                },
                lists: forged.lists,
                sync_echo: shape,
                loss_rate,
                number: report,
                largest,
                largest_delay: forged.delay,
                timing: forged.timing.then_some(TimingEcho {
                    departure: sent(self.departures[to], forged.gap.0),
                    delay: forged.delay,
                }),
                rate: forged.rate,
                above: forged.above,
                period: forged.delay,
            }),
        }
    }

    fn next_deadline(&mut self) -> Option<Instant> {
        let [client, server] = &mut self.endpoints;
        [client.poll_timeout(), server.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    fn wait_until(&mut self, then: Instant) {
        self.now = self.now.max(then);
        for endpoint in &mut self.endpoints {
            endpoint.handle_timeout(self.now);
        }
    }

    /// Lets both sides send what they want to send, hears what they have to say, checks what must
    /// hold.
    fn settle(&mut self) {
        for side in [CLIENT, SERVER] {
            self.collect(side);
            self.listen_to(side);
            // Segments forged onto other ports make connections of their own; a full endpoint takes
            // no more.
            assert!(self.endpoints[side].len() <= 8);
            let now = self.now;
            if let Some(connection) = self.connection(side) {
                connection
                    .check_invariants()
                    .unwrap_or_else(|broken| panic!("{broken}"));
                let _ = connection.stats(now);
            }
        }
    }

    fn collect(&mut self, side: usize) {
        let mut buffer = Vec::new();
        for round in 0.. {
            assert!(round < SPIN, "side {side} sends without end");
            buffer.clear();
            let mut batch = Batch::new(&mut buffer, 0, self.batches[side]);
            let Some((peer, transmit)) = self.endpoints[side].poll_transmit(self.now, &mut batch)
            else {
                break;
            };
            assert_eq!(peer, address(1 - side));
            assert_eq!(transmit.len, buffer.len());
            let segments = buffer.chunks(transmit.segment_size);
            assert_eq!(segments.len(), transmit.segments);
            for bytes in segments {
                let segment = Segment::parse(bytes).expect("what leaves is a segment");
                let options = bytes.len() - segment.payload.len() - 20;
                assert!(
                    segment.payload.len() + options <= self.largest[side] + 40,
                    "{segment} is too long"
                );
                match segment.header.options.tack {
                    Some(TackOption::Data(stamp)) => {
                        self.numbers[side] = stamp.number;
                        self.departures[side] = stamp.departure;
                    }
                    Some(TackOption::Report(report)) => self.reports[side] = report.number,
                    Some(TackOption::Loss(loss)) => self.reports[side] = loss.number,
                    _ => {}
                }
                if !segment.header.flags.rst() {
                    self.seen[side] = segment.header.clone();
                }
                if self.wires[1 - side].len() < QUEUE {
                    let packet = Packet {
                        sent: self.now,
                        bytes: bytes.to_vec(),
                        ecn: transmit.ecn,
                    };
                    self.wires[1 - side].push_back(packet);
                }
            }
        }
    }

    fn listen_to(&mut self, side: usize) {
        if side == SERVER {
            while let Some(id) = self.endpoints[SERVER].accept(PORT) {
                if self.apps[SERVER].id.is_none() {
                    self.apps[SERVER].id = Some(id);
                } else {
                    self.endpoints[SERVER].release(self.now, id);
                }
            }
        }
        let mut rounds = 0;
        while let Some(id) = self.endpoints[side].poll_ready() {
            while let Some(event) = self.endpoints[side]
                .get_mut(id)
                .and_then(Connection::poll_event)
            {
                if let (Event::Closed(reason), true) = (event, self.apps[side].id == Some(id)) {
                    self.apps[side].closed = Some(reason);
                }
                rounds += 1;
                assert!(rounds < SPIN, "side {side} tells without end");
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
                    "a connection that worked was given up"
                );
                return;
            }
            assert!(
                round < 4 * SPIN,
                "the transfer does not end; {}",
                self.describe()
            );
            for side in [CLIENT, SERVER] {
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
            if self.wires.iter().all(VecDeque::is_empty) {
                let Some(deadline) = self.next_deadline() else {
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
        for side in [CLIENT, SERVER] {
            assert_eq!(
                self.apps[side].read,
                self.apps[1 - side].written,
                "bytes are missing"
            );
        }
    }
}
