//! One connection, and a peer driven by hand.

mod run;
mod segment;

use std::collections::VecDeque;
use std::time::Duration;

use tack_base::{Instant, StreamOffset};
use tack_tcp::{Batch, Config, Connection, Event, ReadError};
use tack_wire::{Ecn, Header, Segment, SeqNum, Timestamps};

pub use self::segment::Output;
use self::segment::{LOCAL_PORT, REMOTE_PORT, encode};
use crate::pattern;
use crate::script::{self, SegmentSpec};
use crate::trace::{Origins, Trace, describe};

/// Time at which every test begins: not zero, so that nothing takes "zero" for "never".
const BEGIN: Instant = Instant::from_millis(1_000_000);
/// Timestamp of the peer at the beginning.
const PEER_CLOCK: u32 = 5_000_000;
/// More timer events than any test needs at one instant: a timer that fires without end.
const SPIN: usize = 10_000;

/// A connection under test and its peer, in virtual time. What fails panics with the segments that
/// led there.
#[derive(Debug)]
pub struct Peer {
    config: Config,
    connection: Option<Connection>,
    now: Instant,
    last: Instant,
    iss: SeqNum,
    peer_iss: SeqNum,
    output: VecDeque<Output>,
    trace: Trace,
    written: u64,
    read: u64,
    /// Where 32-bit numbers are taken to be, in bytes behind the SYN: sent by the connection, and
    /// by the peer.
    near: (u64, u64),
    offered_timestamps: (bool, bool),
    /// Shifts that the connection and the peer offered.
    offered_shifts: (Option<u8>, Option<u8>),
    newest_timestamp: u32,
}

impl Peer {
    fn new(config: Config) -> Self {
        Self {
            config,
            connection: None,
            now: BEGIN,
            last: BEGIN,
            iss: SeqNum(1_000_000),
            peer_iss: SeqNum(2_000_000),
            output: VecDeque::new(),
            trace: Trace::new(200),
            written: 0,
            read: 0,
            near: (0, 0),
            offered_timestamps: (false, false),
            offered_shifts: (None, None),
            newest_timestamp: 0,
        }
    }

    /// The connection opens actively: its SYN waits to be expected.
    pub fn connecting(config: Config) -> Self {
        Self::new(config)
            .with_sequence_numbers(SeqNum(1_000_000), SeqNum(2_000_000))
            .open()
    }

    /// The same with given initial sequence numbers (`iss` of the connection,
    /// `peer_iss` of the peer).
    pub fn connecting_with(config: Config, iss: SeqNum, peer_iss: SeqNum) -> Self {
        Self::new(config)
            .with_sequence_numbers(iss, peer_iss)
            .open()
    }

    /// A listener: the connection is born by the first SYN that arrives.
    pub fn listening(config: Config) -> Self {
        Self::new(config)
    }

    /// The same with given initial sequence numbers (`iss` of the connection,
    /// `peer_iss` of the peer).
    pub fn listening_with(config: Config, iss: SeqNum, peer_iss: SeqNum) -> Self {
        Self::new(config).with_sequence_numbers(iss, peer_iss)
    }

    /// A connection that the peer opened with these SYN `options` (as in a script), established 10
    /// ms after the beginning, `Connected` event taken.
    pub fn accepted(config: Config, options: &str) -> Self {
        let mut peer = Self::listening(config);
        peer.run(&format!(
            "+0 < S 0:0(0) win 65535 <{options}>
             +0 > S. 0:0(0) ack 1
             +10ms < . 1:1(0) ack 1 win 65535
             event Connected"
        ));
        peer
    }

    /// A connection that opened towards a peer which answered with these SYN `options` (as in a
    /// script), established 10 ms after the beginning, `Connected` event taken.
    pub fn connected(config: Config, options: &str) -> Self {
        let mut peer = Self::connecting(config);
        peer.run(&format!(
            "+0 > S 0:0(0)
             +10ms < S. 0:0(0) ack 1 win 65535 <{options}>
             +0 > . 1:1(0) ack 1
             event Connected"
        ));
        peer
    }

    fn with_sequence_numbers(mut self, iss: SeqNum, peer_iss: SeqNum) -> Self {
        (self.iss, self.peer_iss) = (iss, peer_iss);
        self
    }

    fn open(mut self) -> Self {
        self.connection = Some(Connection::connect(
            &self.config,
            LOCAL_PORT,
            REMOTE_PORT,
            self.iss,
            1,
            self.now,
        ));
        self.drain();
        self
    }

    /// The connection under test.
    ///
    /// # Panics
    /// When a listener has not seen a SYN yet.
    pub fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("a SYN has arrived")
    }

    /// Uses a verb of the connection; what leaves because of it waits to be expected.
    pub fn with<T>(&mut self, verb: impl FnOnce(&mut Connection, Instant) -> T) -> T {
        let now = self.now;
        let result = verb(self.connection.as_mut().expect("a SYN has arrived"), now);
        self.drain();
        result
    }

    /// Time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.now.saturating_since(BEGIN)
    }

    /// The current instant, as the connection sees it.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Lets time pass; what leaves waits to be expected.
    pub fn wait(&mut self, time: Duration) {
        self.advance(self.now + time);
        self.last = self.now;
    }

    /// Takes everything that left and was not expected yet.
    pub fn take_output(&mut self) -> Vec<Output> {
        self.output.drain(..).collect()
    }

    /// A segment (as in a script) arrives now; returns what leaves because of it.
    pub fn arrives(&mut self, segment: &str) -> Vec<Output> {
        let lines = script::parse(&format!("< {segment}")).unwrap_or_else(|why| panic!("{why}"));
        for line in &lines {
            self.act(&line.action, segment);
        }
        self.last = self.now;
        self.take_output()
    }

    /// Lets time pass until something leaves, and returns it.
    ///
    /// # Panics
    /// When nothing leaves any more.
    pub fn next_output(&mut self) -> Output {
        self.run_timers_until_output();
        let output = self.output.pop_front();
        self.last = self.now;
        output.unwrap_or_else(|| self.fail("next_output", "nothing leaves any more"))
    }

    fn run_timers_until_output(&mut self) {
        let mut steps = 0;
        while self.output.is_empty() && steps < SPIN {
            let Some(deadline) = self.connection().poll_timeout() else {
                break;
            };
            self.advance(deadline.max(self.now));
            steps += 1;
        }
    }

    /// When the next timer fires, since the beginning.
    pub fn next_timer(&self) -> Option<Duration> {
        self.connection()
            .poll_timeout()
            .map(|deadline| deadline.saturating_since(BEGIN))
    }

    /// Timestamp that the peer's clock shows now.
    pub fn peer_timestamp(&self) -> u32 {
        PEER_CLOCK.wrapping_add(self.elapsed().as_millis() as u32)
    }

    /// The newest timestamp value that came from the connection.
    pub fn newest_timestamp(&self) -> u32 {
        self.newest_timestamp
    }

    /// The next event of the connection.
    pub fn next_event(&mut self) -> Option<Event> {
        self.connection.as_mut().and_then(Connection::poll_event)
    }

    fn read_all(&mut self, place: &str) -> usize {
        let mut total = 0;
        loop {
            let mut buf = [0; 65_536];
            match self.with(|connection, now| connection.read(now, &mut buf)) {
                Ok(0) | Err(ReadError::Blocked) => return total,
                // What arrived before the end comes first.
                Err(ReadError::Closed(_)) if total > 0 => return total,
                Err(why) => self.fail(place, &format!("read: {why}")),
                Ok(len) => {
                    if let Some(at) = pattern::mismatch(self.read, &buf[..len]) {
                        self.fail(place, &format!("byte {at} of the peer's stream is wrong"));
                    }
                    self.read += len as u64;
                    total += len;
                }
            }
        }
    }

    fn arrive(&mut self, spec: &SegmentSpec) {
        let header = self.header_of(spec);
        // Where the bytes of the stream are: behind the SYN, near what was sent before.
        let first = header.seq + u32::from(spec.flags.syn());
        let position = first
            .position(self.peer_iss + 1, StreamOffset(self.near.1))
            .map(|position| position.0);
        let payload = pattern::bytes(position.unwrap_or_default(), spec.len as usize);
        if let Some(position) = position.filter(|at| at.abs_diff(self.near.1) < 1 << 30) {
            self.near.1 = self.near.1.max(position + payload.len() as u64);
        }
        let unknown = spec
            .options
            .as_ref()
            .map(|options| &options.unknown[..])
            .unwrap_or_default();
        let bytes = encode(&header, unknown, &payload);
        self.inject(&bytes, spec.ecn.unwrap_or_default());
    }

    /// Hands the bytes of a segment to the connection (or, with a SYN, to the listener).
    ///
    /// # Panics
    /// When the bytes are not a valid segment.
    pub fn inject(&mut self, bytes: &[u8], ecn: Ecn) {
        let segment = Segment::parse(bytes).expect("a segment");
        let header = &segment.header;
        let origins = Origins {
            seq: self.peer_iss,
            ack: self.iss,
        };
        self.note(&format!(
            "< {}",
            describe(header, segment.payload.len(), ecn, origins)
        ));
        if header.flags.syn() {
            self.offered_timestamps.1 = header.options.timestamps.is_some();
            self.offered_shifts.1 = header.options.window_scale;
        }
        let now = self.now;
        match &mut self.connection {
            Some(connection) => connection.handle_segment(now, now, &segment, ecn),
            None => {
                assert!(
                    header.flags.syn() && !header.flags.ack(),
                    "a listener takes a SYN"
                );
                self.connection = Some(Connection::accept(
                    &self.config,
                    &segment,
                    ecn,
                    self.iss,
                    1,
                    now,
                ));
            }
        }
        self.drain();
    }

    fn header_of(&self, spec: &SegmentSpec) -> Header {
        let origins = Origins {
            seq: self.peer_iss,
            ack: self.iss,
        };
        let clock = Timestamps {
            value: self.peer_timestamp(),
            echo: self.newest_timestamp,
        };
        let stamps = self.offered_timestamps == (true, true);
        spec.header((REMOTE_PORT, LOCAL_PORT), origins, clock, stamps)
    }

    /// By how much the connection shifts its window fields.
    fn shift(&self) -> u8 {
        let (own, other) = self.offered_shifts;
        other.and(own).unwrap_or(0)
    }

    fn advance(&mut self, to: Instant) {
        for _ in 0..SPIN {
            let Some(connection) = &mut self.connection else {
                break;
            };
            match connection.poll_timeout() {
                Some(deadline) if deadline <= to => {
                    self.now = self.now.max(deadline);
                    connection.handle_timeout(self.now);
                    self.drain();
                }
                _ => {
                    self.now = self.now.max(to);
                    return;
                }
            }
        }
        assert!(
            self.connection.is_none(),
            "timers fire without end\n{}",
            self.trace
        );
        self.now = self.now.max(to);
    }

    fn drain(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        let mut buf = Vec::new();
        let mut batches = Vec::new();
        while let Some(transmit) = connection.poll_transmit(
            self.now,
            &mut Batch::new(&mut buf, 0, self.config.carrier.max_batch),
        ) {
            assert_eq!(transmit.len, buf.len(), "the batch is as long as it says");
            assert_eq!(
                buf.len().div_ceil(transmit.segment_size),
                transmit.segments,
                "{transmit:?}"
            );
            batches.push((transmit, std::mem::take(&mut buf)));
        }
        if let Err(why) = connection.check_invariants() {
            panic!("{why}\n{}", self.trace);
        }
        for (transmit, buf) in batches {
            for bytes in buf.chunks(transmit.segment_size) {
                let segment = Segment::parse(bytes).expect("what leaves is a segment");
                self.take(&segment, transmit.ecn, transmit.departure.max(self.now));
            }
        }
    }

    fn take(&mut self, segment: &Segment<'_>, ecn: Ecn, at: Instant) {
        let header = segment.header.clone();
        let text = describe(&header, segment.payload.len(), ecn, self.origins());
        self.trace.note(
            Instant::ZERO + at.saturating_since(BEGIN),
            format!("> {text}"),
        );
        if header.flags.syn() {
            self.offered_timestamps.0 = header.options.timestamps.is_some();
            self.offered_shifts.0 = header.options.window_scale;
        }
        if let Some(timestamps) = header.options.timestamps {
            self.newest_timestamp = timestamps.value;
        }
        // The lists of a report are not part of the stream.
        let lists = header.options.tack.is_some_and(|option| option.has_lists());
        if !segment.payload.is_empty() && !lists {
            let position = header
                .seq
                .position(self.iss + 1, StreamOffset(self.near.0))
                .expect("data begins behind the SYN")
                .0;
            if let Some(at) = pattern::mismatch(position, segment.payload) {
                panic!("byte {at} of the stream left wrong\n{}", self.trace);
            }
            self.near.0 = self.near.0.max(position + segment.payload.len() as u64);
        }
        let at = at.saturating_since(BEGIN);
        self.output.push_back(Output {
            at,
            header,
            payload: segment.payload.to_vec(),
            ecn,
        });
    }

    fn origins(&self) -> Origins {
        Origins {
            seq: self.iss,
            ack: self.peer_iss,
        }
    }

    fn note(&mut self, what: &str) {
        self.trace
            .note(Instant::ZERO + self.now.saturating_since(BEGIN), what);
    }

    fn fail(&self, place: &str, why: &str) -> ! {
        let state = self.connection.as_ref().map(Connection::state);
        panic!(
            "{place}: {why}\nstate {state:?}, now {:?}, segments so far:\n{}",
            self.elapsed(),
            self.trace
        )
    }
}
