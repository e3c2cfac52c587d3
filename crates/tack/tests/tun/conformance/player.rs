//! The player: a host of raw packets behind a TUN device, which sends what a script says and
//! compares what comes.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use tack_io::tun::{PREFIX, Packets};
use tack_io::{Clock, TunOptions, TunReceiver, TunSender};
use tack_testkit::script::{self, Action, SegmentSpec, When, scaled_window};
use tack_testkit::trace::Origins;
use tack_wire::checksum::{self, PROTOCOL_TCP, Sum};
use tack_wire::{Ecn, Flags, Header, Segment, SeqNum, TcpOptions, Timestamps, icmp, ip};

use super::departure::{Departure, SubjectClock};
use super::subject::{Family, Opening, PORT, Settings, Subject, Who};
use crate::world::sysctl;

/// The player's port.
const PLAYER_PORT: u16 = 2000;
/// Where a flood of SYNs comes from.
const FLOOD: Range<u16> = 3000..3200;
/// How long a segment is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// After so long without a segment the answer is complete.
const QUIET: Duration = Duration::from_millis(100);
/// More than any subject's buffer, bytes.
const MOST_FILLED: u32 = 1 << 20;
/// How long an answer to an echo request takes at most.
const ECHO: Duration = Duration::from_millis(20);
/// The initial sequence number of the player: numbers wrap in each script.
const ISS: SeqNum = SeqNum(u32::MAX - 700);

pub(crate) struct Player {
    sender: TunSender,
    receiver: TunReceiver,
    clock: Clock,
    family: Family,
    subject: Subject,
    who: Who,
    inbox: VecDeque<Arrival>,
    /// What came, to tell copies: the header and the length of the payload.
    seen: Vec<(Header, usize)>,
    /// When the newest segment of the subject left.
    left: Departure,
    subject_clock: SubjectClock,
    /// When the player, or the subject's application, last began to do something.
    acted: tack_base::Instant,
    /// What it acknowledges, and the window that it offers, bytes.
    offered: (u32, u32),
    ports: Option<u16>,
    iss: Option<SeqNum>,
    /// Whether the player and the subject offered timestamps.
    timestamps: (bool, bool),
    /// Shifts of the window that the player and the subject offered.
    shifts: (Option<u8>, Option<u8>),
    newest: u32,
    written: u64,
    read: u64,
    began: tack_base::Instant,
    trace: String,
}

/// A segment that came.
#[derive(Clone, Debug)]
struct Arrival {
    header: Header,
    payload: Vec<u8>,
    ecn: Ecn,
    left: Departure,
}

/// Byte number `position` of either stream.
fn byte(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Player {
    /// A player of the settings' family against a TCP with these settings.
    pub(crate) async fn new(who: Who, opening: Opening, settings: Settings) -> Self {
        let network = settings.family.player();
        let mut options = TunOptions::new(network);
        options.offload = false;
        // A new address of IPv6 is not looked for on the link, where nobody else is.
        sysctl("ipv6/conf/default/accept_dad", "0");
        let (sender, receiver) = options.open().unwrap();
        let clock = Clock::new();
        let mut player = Self {
            sender,
            receiver,
            began: clock.now(),
            clock,
            family: settings.family,
            subject: Subject::new(
                who,
                opening,
                SocketAddr::new(network.stack, PLAYER_PORT),
                settings,
            ),
            who,
            inbox: VecDeque::new(),
            seen: Vec::new(),
            left: Departure {
                seen: clock.now(),
                stamp: None,
            },
            subject_clock: SubjectClock::default(),
            acted: clock.now(),
            offered: (0, 0),
            ports: (opening == Opening::Passive).then_some(PORT),
            iss: None,
            timestamps: (false, false),
            shifts: (None, None),
            newest: 0,
            written: 0,
            read: 0,
            trace: String::new(),
        };
        player.find_subject().await;
        player
    }

    /// Waits until the subject answers: the kernel takes a moment to know a new address of IPv6,
    /// and drops what arrives before.
    async fn find_subject(&mut self) {
        let (from, to) = (self.family.player().stack, self.subject.address);
        let (protocol, request) = match self.family {
            Family::V4 => (icmp::PROTOCOL_ICMP, 8),
            Family::V6 => (icmp::PROTOCOL_ICMPV6, 128),
        };
        let message = [request, 0, 0, 0, 0, 1, 0, 1];
        for _ in 0..PATIENCE.as_millis() / ECHO.as_millis() {
            self.send_icmp(protocol, message.to_vec()).await;
            let answered = async { while !self.receive().await.contains(&protocol) {} };
            if tokio::time::timeout(ECHO, answered).await.is_ok() {
                return;
            }
        }
        panic!("{from} hears nothing of {to}");
    }

    /// Plays a script. Everything that leaves must be expected, except for copies of what left
    /// before.
    pub(crate) async fn run(&mut self, text: &str) {
        let lines = script::parse(text).unwrap_or_else(|why| panic!("{why}"));
        for line in &lines {
            let place = format!("line {} against {:?}", line.number, self.who);
            if let Action::Silence = line.action {
                let When::After(time) = line.when else {
                    panic!("{place}: silence lasts for a time");
                };
                self.demand_silence(time, &place).await;
                continue;
            }
            if let When::After(time) = line.when
                && !time.is_zero()
            {
                tokio::time::sleep(time).await;
            }
            if !matches!(line.action, Action::Leave(_) | Action::Event(_)) {
                self.acted = self.clock.now();
            }
            let before = self.left;
            self.step(&line.action, &place).await;
            if let When::Within(least, most) = line.when {
                let after = self.left.since(before);
                assert!(
                    (least..=most).contains(&after),
                    "{place}: it left {after:?} after the segment before, not {least:?} to {most:?}\n{}",
                    self.trace
                );
            }
        }
    }

    async fn step(&mut self, action: &Action, place: &str) {
        match action {
            Action::Arrive(spec) => {
                for spec in spec.train() {
                    self.send(&spec).await;
                }
            }
            Action::Leave(spec) => {
                for spec in spec.train() {
                    self.expect(&spec, place).await;
                }
            }
            Action::Write(len) => {
                let from = self.written;
                self.written += *len as u64;
                let bytes: Vec<u8> = (from..self.written).map(byte).collect();
                self.subject.write(&bytes).await;
            }
            Action::Read(len) => {
                let from = self.read;
                self.read += *len as u64;
                let bytes: Vec<u8> = (from..self.read).map(byte).collect();
                let read = self.subject.read(*len).await;
                assert!(read == bytes, "{place}: other bytes\n{}", self.trace);
            }
            Action::Eof => {
                let end = self.subject.read_some().await;
                assert!(matches!(end, Ok(0)), "{place}: {end:?}\n{}", self.trace);
            }
            Action::Finish => self.subject.finish().await,
            Action::Abort => self.subject.abort().await,
            Action::PathMtu(mtu) => self.narrow(*mtu).await,
            Action::Event(Some(tack_tcp_event)) => {
                let wanted = match format!("{tack_tcp_event:?}").as_str() {
                    "Connected" => {
                        self.subject.opened().await.unwrap();
                        return;
                    }
                    "Closed(Refused)" => {
                        let error = self.subject.opened().await.unwrap_err();
                        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
                        return;
                    }
                    "Closed(Reset)" => std::io::ErrorKind::ConnectionReset,
                    other => panic!("{place}: the player knows no event {other}"),
                };
                let end = self.subject.read_some().await;
                let kind = end.as_ref().map_err(std::io::Error::kind);
                assert_eq!(kind, Err(wanted), "{place}\n{}", self.trace);
            }
            other => panic!("{place}: the player cannot do {other:?}"),
        }
    }

    /// By how much the subject shifts its window fields.
    fn shift(&self) -> u8 {
        let (own, other) = self.shifts;
        own.and(other).unwrap_or(0)
    }

    /// The first number that the subject does not accept, by the newest segment.
    pub(crate) fn edge(&self) -> u32 {
        let (acknowledged, window) = self.offered;
        acknowledged + window
    }

    /// Sends segments of `each` bytes that the window lets through until it is closed. Returns the
    /// number that is acknowledged then: the kernel takes back a part of the window where many
    /// small segments take more memory than it thought.
    pub(crate) async fn fill(&mut self, each: u32) -> u32 {
        loop {
            let (from, len) = self.offered;
            if len == 0 {
                return from;
            }
            let trace = &self.trace;
            assert!(from < MOST_FILLED, "the window does not close\n{trace}");
            let burst = SegmentSpec {
                flags: Flags::ACK,
                seq: from,
                len,
                ack: Some(1),
                each: Some(each),
                ..SegmentSpec::default()
            };
            for spec in burst.train() {
                self.send(&spec).await;
            }
            loop {
                let is_answered = self.offered.0 == from + len || self.offered.1 == 0;
                let limit = if is_answered { QUIET } else { PATIENCE };
                let Some(answer) = self.next(limit).await else {
                    let trace = &self.trace;
                    assert!(
                        is_answered,
                        "what fits the window was not acknowledged\n{trace}"
                    );
                    break;
                };
                assert!(answer.payload.is_empty(), "{answer:?}\n{}", self.trace);
                self.remember(&answer);
            }
        }
    }

    fn subject_iss(&self) -> SeqNum {
        self.iss.unwrap_or(SeqNum(0))
    }

    fn timestamp(&self) -> u32 {
        let millis = self.clock.now().saturating_since(self.began).as_millis();
        1_000_000 + millis as u32
    }

    async fn send(&mut self, spec: &SegmentSpec) {
        let origins = Origins {
            seq: ISS,
            ack: self.subject_iss(),
        };
        let clock = Timestamps {
            value: self.timestamp(),
            echo: self.newest,
        };
        let stamps = self.timestamps == (true, true);
        let ports = (
            PLAYER_PORT,
            self.ports.expect("the subject's port is known"),
        );
        let header = spec.header(ports, origins, clock, stamps);
        if spec.flags.syn() {
            self.timestamps.0 = header.options.timestamps.is_some();
            self.shifts.0 = header.options.window_scale;
        }
        let payload: Vec<u8> = (0..spec.len)
            .map(|at| byte(u64::from(spec.seq + at) - 1))
            .collect();
        self.note("<", &header, payload.len());
        let ecn = spec.ecn.unwrap_or_default();
        self.emit(&header, &payload, ecn).await;
    }

    /// When the next segment of the subject left by the player's clock, if it comes within `limit`.
    async fn next_departure(&mut self, limit: Duration) -> Option<tack_base::Instant> {
        let wait = async {
            while self.inbox.is_empty() {
                self.receive().await;
            }
        };
        tokio::time::timeout(limit, wait).await.ok()?;
        let next = self.inbox.front()?;
        Some(self.subject_clock.left(next.left))
    }

    /// The next segment of the subject, within `limit`.
    async fn next(&mut self, limit: Duration) -> Option<Arrival> {
        self.next_departure(limit).await?;
        let arrival = self.inbox.pop_front()?;
        self.learn(&arrival);
        Some(arrival)
    }

    /// Waits for packets, and keeps the segments among them. Returns the protocols of what the
    /// subject sent.
    async fn receive(&mut self) -> Vec<u8> {
        poll_fn(|cx| self.receiver.poll_readable(cx)).await.unwrap();
        let Ok(packets) = self.receiver.receive(&self.clock) else {
            return Vec::new();
        };
        let mut protocols = Vec::new();
        for packet in packets {
            let Ok(outer) = ip::parse(packet.bytes) else {
                continue;
            };
            if outer.src != self.subject.address {
                continue;
            }
            protocols.push(outer.protocol);
            if outer.protocol != PROTOCOL_TCP {
                continue;
            }
            let is_right = checksum::verify_tcp(outer.src, outer.dst, outer.payload);
            assert!(is_right, "the checksum of what leaves is right");
            let segment = Segment::parse(outer.payload).unwrap();
            if FLOOD.contains(&segment.header.dst_port) {
                continue;
            }
            let left = Departure {
                seen: self.clock.now(),
                stamp: segment.header.options.timestamps.map(|stamps| stamps.value),
            };
            self.subject_clock.learn(left);
            self.inbox.push_back(Arrival {
                header: segment.header,
                payload: segment.payload.to_vec(),
                ecn: outer.ecn,
                left,
            });
        }
        protocols
    }

    fn learn(&mut self, arrival: &Arrival) {
        let header = &arrival.header;
        if header.flags.syn() {
            self.iss = Some(header.seq);
            self.ports = Some(header.src_port);
            self.timestamps.1 = header.options.timestamps.is_some();
            self.shifts.1 = header.options.window_scale;
        }
        self.left = arrival.left;
        let acknowledged = header.ack.0.wrapping_sub(ISS.0);
        self.offered = (acknowledged, scaled_window(header, self.shift()));
        if let Some(timestamps) = header.options.timestamps {
            self.newest = timestamps.value;
        }
        self.note(">", header, arrival.payload.len());
        let position = u64::from(header.seq.0.wrapping_sub(self.subject_iss().0)).wrapping_sub(1);
        for (number, found) in arrival.payload.iter().enumerate() {
            let at = position.wrapping_add(number as u64);
            assert_eq!(*found, byte(at), "byte {at} of the stream\n{}", self.trace);
        }
    }

    async fn expect(&mut self, spec: &SegmentSpec, place: &str) {
        loop {
            let Some(arrival) = self.next(PATIENCE).await else {
                panic!(
                    "{place}: expected {spec:?}, but nothing came\n{}",
                    self.trace
                );
            };
            let difference = self.difference(&arrival, spec);
            let is_copy = self.is_copy(&arrival);
            self.remember(&arrival);
            if difference.is_empty() {
                return;
            }
            assert!(
                is_copy,
                "{place}: not what was expected:\n{difference}\n{}",
                self.trace
            );
        }
    }

    fn remember(&mut self, arrival: &Arrival) {
        self.seen
            .push((arrival.header.clone(), arrival.payload.len()));
    }

    /// A copy of what came before, whatever its window and its time.
    fn is_copy(&self, arrival: &Arrival) -> bool {
        let (header, len) = (&arrival.header, arrival.payload.len());
        self.seen.iter().any(|(seen, seen_len)| {
            let push = |flags: Flags| flags.0 & !Flags::PSH.0;
            (seen.seq, seen.ack, push(seen.flags)) == (header.seq, header.ack, push(header.flags))
                && seen.options.sack == header.options.sack
                && *seen_len == len
        })
    }

    /// It offers another window than all segments like it, and has no other content.
    fn is_window_update(&self, arrival: &Arrival) -> bool {
        let header = &arrival.header;
        let seen = self.seen.iter().map(|(seen, _)| seen);
        let mut like = seen.filter(|seen| (seen.seq, seen.ack) == (header.seq, header.ack));
        arrival.payload.is_empty()
            && header.flags == Flags::ACK
            && like.all(|seen| seen.window != header.window)
    }

    /// Nothing leaves for `time` after the newest segment, or after what was done since. What left
    /// later, which a player that gets its turn late may see as well, is for the lines that follow.
    async fn demand_silence(&mut self, time: Duration, place: &str) {
        let end = self.subject_clock.left(self.left).max(self.acted) + time;
        let until = self.clock.now() + time;
        self.acted = end;
        loop {
            let limit = until.saturating_since(self.clock.now());
            let left = self.next_departure(limit).await;
            if left.is_none_or(|left| left > end) {
                return;
            }
            let arrival = self.next(limit).await.expect("it is there");
            let is_copy = self.is_copy(&arrival) && !self.is_window_update(&arrival);
            assert!(
                is_copy,
                "{place}: this was not expected: {:?}\n{}",
                arrival.header, self.trace
            );
        }
    }

    /// SYNs from many ports that are never followed by anything.
    pub(crate) async fn flood(&mut self) {
        for port in FLOOD {
            let header = Header {
                src_port: port,
                dst_port: PORT,
                seq: SeqNum(u32::from(port) << 8),
                flags: Flags::SYN,
                window: 1000,
                options: TcpOptions {
                    mss: Some(1460),
                    ..TcpOptions::default()
                },
                ..Header::default()
            };
            self.emit(&header, &[], Ecn::NotEct).await;
            if port % 16 == 0 {
                // The subject gets its turn.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    /// SYN cookies that the subject sent, and took back.
    pub(crate) fn cookies(&self) -> (u64, u64) {
        self.subject.cookies()
    }

    async fn emit(&mut self, header: &Header, payload: &[u8], ecn: Ecn) {
        self.acted = self.clock.now();
        let mut contents = vec![0; PREFIX + header.encoded_len()];
        header.emit(&mut contents[PREFIX..]);
        contents.extend(payload);
        let packet_size = contents.len();
        poll_fn(|cx| self.sender.poll_writable(cx)).await.unwrap();
        self.sender
            .send(&mut Packets {
                peer: self.subject.address,
                ecn,
                contents: &mut contents,
                packet_size,
            })
            .unwrap();
    }

    /// Anything that asks whether a window is still closed: one byte of the stream at most.
    pub(crate) async fn expect_probe(&mut self) {
        let probe = self.next(PATIENCE).await.expect("a probe");
        assert!(probe.payload.len() <= 1, "{probe:?}\n{}", self.trace);
        self.remember(&probe);
    }

    /// A router says that the first segment in flight was too long.
    async fn narrow(&mut self, mtu: u16) {
        let (last, _) = self.seen.last().expect("something left").clone();
        let (from, to) = (self.family.player().stack, self.subject.address);
        let (protocol, kind, code) = match self.family {
            Family::V4 => (icmp::PROTOCOL_ICMP, 3, 4),
            Family::V6 => (icmp::PROTOCOL_ICMPV6, 2, 0),
        };
        let mut message = vec![kind, code, 0, 0, 0, 0];
        message.extend(mtu.to_be_bytes());
        // All of the packet's headers, as the kernel wants of IPv6.
        let quoted = message.len();
        let inner = ip::header_len(from);
        message.resize(quoted + inner + last.encoded_len(), 0);
        let head = ip::Emit::new(to, from, PROTOCOL_TCP, 1440);
        ip::emit_header(&mut message[quoted..], &head);
        last.emit(&mut message[quoted + inner..]);
        self.send_icmp(protocol, message).await;
    }

    /// Sends a message of ICMP, whose checksum is filled in.
    async fn send_icmp(&mut self, protocol: u8, mut message: Vec<u8>) {
        let (from, to) = (self.family.player().stack, self.subject.address);
        let sum = match self.family {
            Family::V4 => checksum::internet(&message),
            Family::V6 => {
                let mut sum = Sum::pseudo_header(from, to, protocol, message.len());
                sum.add(&message);
                sum.finish()
            }
        };
        message[2..4].copy_from_slice(&sum);
        let head = ip::Emit::new(from, to, protocol, message.len());
        let mut packet = vec![0; ip::header_len(from)];
        ip::emit_header(&mut packet, &head);
        packet.extend(message);
        poll_fn(|cx| self.sender.poll_writable(cx)).await.unwrap();
        self.sender.send_packet(&packet).unwrap();
    }

    /// Where a segment is not as a line has it; empty when it is. The values of timestamps are
    /// those of the subject.
    fn difference(&self, arrival: &Arrival, spec: &SegmentSpec) -> String {
        let mut spec = spec.clone();
        if let Some(options) = &mut spec.options {
            options.timestamps = options.timestamps.map(|(_, echo)| (None, echo));
        }
        let origins = Origins {
            seq: self.subject_iss(),
            ack: ISS,
        };
        let port = arrival.header.dst_port;
        let wrong = (port != PLAYER_PORT).then(|| format!("    port: {port}\n"));
        let (header, len) = (&arrival.header, arrival.payload.len());
        wrong.unwrap_or_default()
            + &spec.difference(header, len, arrival.ecn, origins, self.shift())
    }

    fn note(&mut self, direction: &str, header: &Header, len: usize) {
        let at = self.clock.now().saturating_since(self.began);
        let (own, other) = match direction {
            "<" => (ISS, self.subject_iss()),
            _ => (self.subject_iss(), ISS),
        };
        let seq = header.seq.0.wrapping_sub(own.0);
        let ack = header.ack.0.wrapping_sub(other.0);
        let (flags, window) = (header.flags, header.window);
        writeln!(
            self.trace,
            "{at:?} {direction} {flags:?} {seq}({len}) ack {ack} win {window} <{}>",
            header.options
        )
        .unwrap();
    }
}
