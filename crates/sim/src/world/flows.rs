//! The flows of a run: which connection belongs to which, and what their applications do.

use std::collections::BTreeMap;
use std::time::Duration;

use tack_base::Instant;
use tack_base::time::nanos;
use tack_tcp::{AckKind, CloseReason, Connection, ConnectionId, State, Stats};
use tack_wlan::AccessCategory;

use super::app::{End, Exchanges};
use super::check::WireObserver;
use super::datagram::Datagrams;
use super::event::{Broken, Event};
use super::host::Host;
use super::meter::Meter;
use super::ports::{flow_of, listen_port};
use super::progress::{Echoes, Progress, Timer};
use super::stream::Pattern;
use super::video::{Player, Source};
use crate::packet::Packet;
use crate::scenario::{App, Flow, Party, TcpFlow, Transport};

/// All flows.
#[derive(Debug)]
pub(super) struct Flows {
    pub(super) list: Vec<FlowState>,
    /// Flow by connection, for each host.
    connections: Vec<BTreeMap<ConnectionId, usize>>,
    open: usize,
    /// Flows that send as fast as they can and are not complete, by host and category.
    saturating: Vec<[usize; 4]>,
    has_udp: bool,
    /// Some flow is not of best effort.
    marks: bool,
}

/// One flow.
#[derive(Debug)]
pub(super) struct FlowState {
    /// Hosts of the connecting and the accepting side.
    pub(super) parties: [Party; 2],
    pub(super) start: Instant,
    pub(super) stop: Option<Instant>,
    pub(super) bytes: Option<u64>,
    pub(super) category: AccessCategory,
    pauses: Vec<(Instant, Instant)>,
    pub(super) kind: Kind,
    pub(super) meter: Meter,
    is_complete: bool,
}

/// State by transport.
#[derive(Debug)]
pub(super) enum Kind {
    Tcp(Box<Stream>),
    Udp(Datagrams),
}

/// A TCP connection between two applications. Index 0 is the connecting side.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) flow: TcpFlow,
    ends: [End; 2],
    pub(super) exchanges: Option<Exchanges>,
    pub(super) video: Option<(Source, Player)>,
    pub(super) ids: [Option<ConnectionId>; 2],
    /// Events since the sums of each side were added up.
    pub(super) unaudited: [usize; 2],
    /// How each side's connection ended, and its counters then.
    pub(super) closed: [Option<(CloseReason, Stats)>; 2],
    pub(super) observers: [WireObserver; 2],
    /// Progress of each side as a sender.
    pub(super) progress: [Progress; 2],
}

impl Stream {
    /// The application of one side reads what comes.
    #[inline]
    pub(super) fn is_reading(&self, side: usize) -> bool {
        !self.ends[side].paused
    }

    /// A connection that was given up has nothing to get on with.
    #[inline]
    pub(super) fn is_given_up(&self) -> bool {
        self.closed.iter().any(Option::is_some)
    }

    /// Checks the progress of one side as a sender up to `now`. Says in words what is wrong.
    #[inline]
    pub(super) fn check_progress(&mut self, side: usize, now: Instant) -> Option<String> {
        let excused = !self.is_reading(1 - side);
        let progress = &mut self.progress[side];
        if excused {
            progress.excuse(now);
        }
        progress.check(now)
    }
}

impl Flows {
    pub(super) fn new(flows: &[Flow], hosts: usize, seed: u64) -> Self {
        let pattern = Pattern::new();
        let list: Vec<_> = flows
            .iter()
            .enumerate()
            .map(|(id, flow)| FlowState::new(id, flow, &pattern, seed))
            .collect();
        let mut saturating = vec![[0; 4]; hosts];
        for flow in list.iter().filter(|flow| flow.is_saturating()) {
            saturating[flow.parties[0].index()][flow.category as usize] += 1;
        }
        Self {
            open: list.len(),
            saturating,
            has_udp: list.iter().any(|flow| matches!(flow.kind, Kind::Udp(_))),
            marks: flows
                .iter()
                .any(|flow| flow.category != AccessCategory::default()),
            list,
            connections: vec![BTreeMap::new(); hosts],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn has_udp(&self) -> bool {
        self.has_udp
    }

    /// True when no flow will send or receive anything more.
    pub(super) fn all_complete(&self) -> bool {
        self.open == 0
    }

    /// The events that flows schedule at the beginning.
    pub(super) fn agenda(&self) -> Vec<(Instant, Event)> {
        let mut agenda = Vec::new();
        for (id, flow) in self.list.iter().enumerate() {
            agenda.push((flow.start, Event::Start(id)));
            agenda.extend(flow.stop.map(|stop| (stop, Event::Stop(id))));
            for (pause, resume) in &flow.pauses {
                agenda.push((*pause, Event::Pause(id)));
                agenda.push((*resume, Event::Resume(id)));
            }
        }
        agenda
    }

    /// The flow with these ports, in either order.
    #[inline]
    pub(super) fn by_ports(&self, ports: (u16, u16)) -> Option<usize> {
        flow_of(ports).filter(|flow| *flow < self.list.len())
    }

    /// Flow and side of a connection.
    #[inline]
    pub(super) fn by_connection(&self, host: usize, id: ConnectionId) -> Option<(usize, usize)> {
        let flow = *self.connections[host].get(&id)?;
        Some((flow, self.list[flow].side_of(host)))
    }

    /// Marks a packet for the access category of its flow.
    #[inline]
    pub(super) fn mark(&self, packet: &mut Packet) {
        if !self.marks {
            return;
        }
        if let Some(flow) = self.by_ports(packet.ports()) {
            packet.set_access_category(self.list[flow].category);
        }
    }

    /// How many flows of `host` send as fast as they can in `category`.
    pub(super) fn saturating(&self, host: usize, category: AccessCategory) -> usize {
        self.saturating[host][category as usize]
    }

    /// Host of the sending (connecting) side.
    pub(super) fn sender(&self, flow: usize) -> usize {
        self.list[flow].parties[0].index()
    }

    /// Host of the receiving (accepting) side.
    pub(super) fn receiver(&self, flow: usize) -> usize {
        self.list[flow].parties[1].index()
    }

    /// Remembers the connection of one side.
    pub(super) fn connect(&mut self, flow: usize, host: usize, id: ConnectionId) {
        self.connections[host].insert(id, flow);
        let side = self.list[flow].side_of(host);
        if let Kind::Tcp(stream) = &mut self.list[flow].kind {
            stream.ids[side] = Some(id);
        }
    }

    /// A segment of `flow` was taken by connection `id` of `host`: accepts it when its handshake is
    /// complete.
    #[inline]
    pub(super) fn adopt(&mut self, flow: usize, host: usize, id: ConnectionId, hosts: &mut [Host]) {
        let side = self.list[flow].side_of(host);
        let Kind::Tcp(stream) = &self.list[flow].kind else {
            return;
        };
        if side == 1 && stream.ids[1].is_none() {
            let accepted = hosts[host].endpoint.accept(listen_port(flow));
            if accepted == Some(id) {
                self.connect(flow, host, id);
            }
        }
    }

    /// A segment with payload arrived at `host`, having been under way for `delay`.
    #[inline]
    pub(super) fn on_data(&mut self, flow: usize, host: usize, hosts: &[Host], delay: Duration) {
        let state = &mut self.list[flow];
        if state.side_of(host) != 1 {
            return;
        }
        let Kind::Tcp(stream) = &state.kind else {
            return;
        };
        let connection = stream.ids[1].and_then(|id| hosts[host].endpoint.get(id));
        state
            .meter
            .on_data(delay, connection.map_or(0, Connection::blocked_bytes));
    }

    /// Lets the application of one side read and write. Returns when it wants to act again by
    /// itself.
    pub(super) fn drive(
        &mut self,
        flow: usize,
        side: usize,
        now: Instant,
        local: Instant,
        connection: &mut Connection,
    ) -> Result<Option<Instant>, Broken> {
        let state = &mut self.list[flow];
        let broken = |what| Broken {
            flow,
            host: state.parties[side],
            what,
        };
        let Kind::Tcp(stream) = &mut state.kind else {
            return Ok(None);
        };
        let had_ended = stream.ends[side].ended;
        let read = stream.ends[side].read(local, connection).map_err(|wrong| {
            broken(format!(
                "bytes read at position {} are not those written",
                wrong.position
            ))
        })?;
        if stream.ends[side].read > stream.ends[1 - side].written {
            return Err(broken("more bytes were read than were written".into()));
        }
        if stream.ends[side].ended && stream.ends[side].read < stream.ends[1 - side].written {
            return Err(broken("the stream ended before its last byte".into()));
        }
        let mut wake = None;
        if let Some(exchanges) = &mut stream.exchanges {
            let end = &mut stream.ends[side];
            if side == 1 {
                exchanges.on_request(end);
            } else if let Some((latency, next)) = exchanges.on_response(now, end, read) {
                state.meter.latency.record(nanos(latency) / 1_000);
                wake = Some(next);
            } else if exchanges.is_fresh() && connection.state() == State::Established {
                exchanges.ask(now, end);
            }
        } else if let Some((source, player)) = &mut stream.video {
            let end = &stream.ends[side];
            if side == 1 {
                player.receive(now, end.read, end.ended);
            } else if source.is_fresh() && connection.state() == State::Established {
                wake = Some(now);
            }
        }
        if side == 1 {
            state.meter.delivered += read;
        }
        if stream.ends[side].ended && !had_ended {
            // The receiver has nothing of its own left to say, or says it and then ends too.
            stream.ends[side].ending = true;
            if side == 1 {
                state.meter.completed = Some(now);
            }
        }
        stream.ends[side].write(local, connection);
        if connection.state() == State::TimeWait && stream.closed[side].is_none() {
            let stats = connection.stats(local);
            self.on_closed(flow, side, CloseReason::Graceful, stats);
        }
        Ok(wake)
    }

    /// True when the applications of `flow` are through and only the closing of its connections is
    /// awaited.
    #[inline]
    pub(super) fn is_closing(&self, flow: usize) -> bool {
        match &self.list[flow].kind {
            Kind::Tcp(stream) => {
                stream.ends.iter().any(|end| end.ended) && !self.list[flow].is_complete
            }
            Kind::Udp(_) => false,
        }
    }

    /// The connection of one side ended, or waits only for late segments.
    pub(super) fn on_closed(
        &mut self,
        flow: usize,
        side: usize,
        reason: CloseReason,
        stats: Stats,
    ) {
        let Kind::Tcp(stream) = &mut self.list[flow].kind else {
            return;
        };
        if stream.closed[side].is_none() {
            stream.closed[side] = Some((reason, stats));
        }
        // A connection that failed before the other side existed will never have one.
        let failed = stream.closed[0]
            .as_ref()
            .is_some_and(|(reason, _)| *reason != CloseReason::Graceful);
        if stream.closed[1].is_some() && stream.closed[0].is_some()
            || failed && stream.ids[1].is_none()
        {
            self.complete(flow);
        }
    }

    /// Nothing more will happen in `flow`.
    pub(super) fn complete(&mut self, flow: usize) {
        let state = &mut self.list[flow];
        if !state.is_complete {
            state.is_complete = true;
            self.open -= 1;
            if state.is_saturating() {
                self.saturating[state.parties[0].index()][state.category as usize] -= 1;
            }
        }
    }

    /// The application of the connecting side starts, or asks again. Returns when it wants to act
    /// again by itself.
    pub(super) fn ask(&mut self, flow: usize, now: Instant) -> Option<Instant> {
        let Kind::Tcp(stream) = &mut self.list[flow].kind else {
            return None;
        };
        if let Some(exchanges) = &mut stream.exchanges {
            exchanges.ask(now, &mut stream.ends[0]);
        }
        let (source, player) = stream.video.as_mut()?;
        let (frame, next) = source.make(now);
        if let Some(bytes) = frame {
            stream.ends[0].allowance += bytes;
            player.expect(now, stream.ends[0].allowance);
        }
        next
    }

    /// The applications that send without end come to one.
    pub(super) fn stop(&mut self, flow: usize) {
        match &mut self.list[flow].kind {
            Kind::Tcp(stream) => match (&mut stream.exchanges, &mut stream.video) {
                (Some(exchanges), _) => exchanges.stop(&mut stream.ends[0]),
                (None, Some((source, _))) => {
                    // The frames made so far are still written.
                    source.stop();
                    stream.ends[0].ending = true;
                }
                (None, None) => {
                    let sides = if stream.flow.app == App::Duplex { 2 } else { 1 };
                    for end in &mut stream.ends[..sides] {
                        end.allowance = end.written;
                        end.ending = true;
                    }
                }
            },
            Kind::Udp(datagrams) => datagrams.stop(),
        }
    }

    /// The receiver of a flow stops reading at `now`, or reads again.
    pub(super) fn set_paused(&mut self, flow: usize, now: Instant, is_paused: bool) {
        if let Kind::Tcp(stream) = &mut self.list[flow].kind {
            stream.ends[1].paused = is_paused;
            stream.progress[0].excuse(now);
        }
    }
}

impl FlowState {
    fn new(id: usize, flow: &Flow, pattern: &Pattern, seed: u64) -> Self {
        let mut pauses = Vec::new();
        let kind = match &flow.transport {
            Transport::Udp(udp) => {
                let video = udp.video.map(|video| Source::new(video, seed, id));
                Kind::Udp(Datagrams::new(
                    *udp,
                    flow.bytes,
                    video,
                    pattern.stream(id, 0),
                ))
            }
            Transport::Tcp(tcp) => {
                let mut ends = [0, 1].map(|side| End::new(pattern, id, side));
                let (mut exchanges, mut video) = (None, None);
                match &tcp.app {
                    App::Bulk { pauses: given } => {
                        pauses.clone_from(given);
                        ends[0].allowance = flow.bytes.unwrap_or(u64::MAX);
                        ends[0].ending = flow.bytes.is_some();
                    }
                    App::Duplex => {
                        for end in &mut ends {
                            end.allowance = flow.bytes.unwrap_or(u64::MAX);
                            end.ending = flow.bytes.is_some();
                        }
                    }
                    App::Request {
                        request,
                        response,
                        gap,
                    } => {
                        exchanges = Some(Exchanges::new(*request, *response, *gap));
                    }
                    App::Video(given) => {
                        video = Some((Source::new(*given, seed, id), Player::new(*given)));
                    }
                }
                let timer = Timer {
                    initial: tcp.config.initial_rto,
                    least: tcp.config.min_rto,
                    echoes: match tcp.config.ack {
                        _ if !tcp.config.timestamps => Echoes::None,
                        AckKind::Tack(_) if tcp.config.ack_policy.is_none() => Echoes::Syn,
                        _ => Echoes::All,
                    },
                };
                Kind::Tcp(Box::new(Stream {
                    flow: (**tcp).clone(),
                    ends,
                    exchanges,
                    video,
                    ids: [None; 2],
                    unaudited: [0; 2],
                    closed: [None, None],
                    observers: Default::default(),
                    progress: [(); 2].map(|()| Progress::new(timer)),
                }))
            }
        };
        Self {
            parties: [flow.from, flow.to],
            category: flow.category,
            start: Instant::ZERO + flow.start,
            stop: flow.stop.map(|stop| Instant::ZERO + stop),
            bytes: flow.bytes,
            pauses,
            kind,
            meter: Meter::new(),
            is_complete: false,
        }
    }

    /// True for a flow that sends as fast as it can.
    pub(super) fn is_saturating(&self) -> bool {
        matches!(&self.kind, Kind::Udp(datagrams) if datagrams.is_saturating())
    }

    /// True when `host` is one of the two ends.
    pub(super) fn involves(&self, host: usize) -> bool {
        self.parties.iter().any(|party| party.index() == host)
    }

    #[inline]
    pub(super) fn side_of(&self, host: usize) -> usize {
        usize::from(self.parties[0].index() != host)
    }

    /// Counters of one side's connection: now, or as it ended.
    pub(super) fn stats(&self, side: usize, hosts: &[Host], now: Instant) -> Stats {
        let Kind::Tcp(stream) = &self.kind else {
            return Stats::default();
        };
        let host = &hosts[self.parties[side].index()];
        match (&stream.closed[side], stream.ids[side]) {
            (Some((_, stats)), _) => stats.clone(),
            (None, Some(id)) => host
                .endpoint
                .get(id)
                .map_or_else(Stats::default, |connection| {
                    connection.stats(host.clock.local(now))
                }),
            (None, None) => Stats::default(),
        }
    }
}
