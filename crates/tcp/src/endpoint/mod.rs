//! Many connections behind one carrier: demultiplexing, listeners, initial sequence numbers,
//! strays.

mod config;
mod cookies;
mod deadlines;
mod error;
mod half_open;
mod id;
mod isn;
mod listener;
mod listeners;
mod memory;
mod outcome;
mod passive;
mod plain_peers;
mod records;
mod stats;
mod strays;
mod table;

use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use tack_base::Instant;
use tack_wire::{Ecn, Segment, SeqNum};

pub use self::config::EndpointConfig;
pub use self::error::{ConnectError, ListenError};
use self::half_open::HalfOpens;
pub use self::id::ConnectionId;
use self::isn::Secrets;
use self::listener::Listener;
pub use self::listener::{Incoming, SynFilter, Verdict};
use self::listeners::Listeners;
use self::memory::{LOOKED_AT, Memory};
use self::outcome::Outcome;
use self::plain_peers::PlainPeers;
use self::records::Records;
pub use self::stats::EndpointStats;
use self::strays::Strays;
pub use self::table::Tuple;
use self::table::{MAX_CONNECTIONS, Owner, Table};
use crate::config::Config;
use crate::connection::pressure::Pressure;
use crate::connection::time_wait::TimeWait;
use crate::connection::{Connection, PathError, State};
use crate::trace::{TraceDetail, TraceEvent};
use crate::transmit::{Batch, Transmit};

/// Many connections behind one carrier.
///
/// A peer is named by its carrier address: the UDP address, or the IP address with port zero.
/// Together with the two TCP ports it names a connection.
///
/// The driver's loop: feed [`handle_segment`](Self::handle_segment) and
/// [`handle_timeout`](Self::handle_timeout), use the verbs of connections, then drain
/// [`poll_transmit`](Self::poll_transmit), then [`poll_ready`](Self::poll_ready) and
/// [`accept`](Self::accept), and sleep until [`poll_timeout`](Self::poll_timeout). What costs time
/// grows with the number of connections that have something to do, not with the number of
/// connections.
#[derive(Debug)]
pub struct Endpoint {
    max_connections: usize,
    max_time_wait: usize,
    memory: Memory,
    secrets: Secrets,
    table: Table,
    /// Connections whose handshake is not complete.
    half_open: HalfOpens,
    /// Released connections in TIME-WAIT.
    time_wait: Records<TimeWait>,
    /// Until when a peer may ask again for the last acknowledgement of one of those, going by
    /// round trips.
    lingers_until: Option<Instant>,
    listeners: Listeners,
    plain_peers: PlainPeers,
    strays: Strays,
    stats: EndpointStats,
}

impl Endpoint {
    /// An endpoint without connections.
    pub fn new(config: EndpointConfig) -> Self {
        Self {
            max_connections: config.max_connections.min(MAX_CONNECTIONS),
            max_time_wait: config.max_time_wait,
            memory: Memory::new(config.memory),
            secrets: Secrets::new(config.secret),
            table: Table::default(),
            half_open: HalfOpens::new(),
            time_wait: Records::new(),
            lingers_until: None,
            listeners: Listeners::default(),
            plain_peers: PlainPeers::default(),
            strays: Strays::new(),
            stats: EndpointStats::default(),
        }
    }

    /// Accepts connections to `port` with `config`; at most `backlog` (at least one) wait for
    /// [`Endpoint::accept`].
    ///
    /// A SYN makes no connection, but a record of some 300 bytes; the connection is made once the
    /// peer has acknowledged our SYN. When records and waiting connections fill the backlog,
    /// SYNs are answered with cookies (RFC 4987 §3.6): such a connection has everything that
    /// was agreed, but the segment size may be rounded down, and parameters of TACK other
    /// than the default ones mean that it does without. SYNs are ignored while waiting connections
    /// alone fill the backlog.
    ///
    /// # Errors
    /// [`ListenError::InUse`] when somebody listens on `port`.
    pub fn listen(&mut self, port: u16, config: Config, backlog: usize) -> Result<(), ListenError> {
        self.listen_filtered(port, config, backlog, None)
    }

    /// As [`Endpoint::listen`], where `filter` decides about each SYN before anything is kept of
    /// it.
    ///
    /// # Errors
    /// As [`Endpoint::listen`].
    pub fn listen_filtered(
        &mut self,
        port: u16,
        config: Config,
        backlog: usize,
        filter: Option<SynFilter>,
    ) -> Result<(), ListenError> {
        self.start_listening(Some(port), Listener::new(config, backlog, filter))
    }

    /// As [`Endpoint::listen_filtered`], for all ports that have no listener of their own: what a
    /// gateway needs that stands for other hosts. No port is free for [`Endpoint::connect`] to
    /// pick then.
    ///
    /// # Errors
    /// [`ListenError::InUse`] when somebody listens on all ports already.
    pub fn listen_everywhere(
        &mut self,
        config: Config,
        backlog: usize,
        filter: Option<SynFilter>,
    ) -> Result<(), ListenError> {
        self.start_listening(None, Listener::new(config, backlog, filter))
    }

    fn start_listening(
        &mut self,
        port: Option<u16>,
        listener: Listener,
    ) -> Result<(), ListenError> {
        if self.listeners.of(port).is_some() {
            return Err(ListenError::InUse);
        }
        self.listeners.insert(port, listener);
        Ok(())
    }

    /// Stops listening; connections not yet accepted are reset.
    pub fn unlisten(&mut self, now: Instant, port: u16) {
        if let Some(listener) = self.listeners.remove(Some(port)) {
            for (name, record) in self.half_open.records.remove_port(port) {
                self.strays.send(name.peer, record.reset(&name));
            }
            self.abandon(now, listener);
        }
    }

    /// Ends [`Endpoint::listen_everywhere`]; connections not yet accepted are reset.
    pub fn unlisten_everywhere(&mut self, now: Instant) {
        if let Some(listener) = self.listeners.remove(None) {
            let listeners = &self.listeners;
            let orphans = self.half_open.records.names();
            let orphans = orphans.filter(|name| !listeners.contains(name.local_port));
            for name in orphans.collect::<Vec<_>>() {
                if let Some(record) = self.half_open.records.remove(&name) {
                    self.strays.send(name.peer, record.reset(&name));
                }
            }
            self.abandon(now, listener);
        }
    }

    fn abandon(&mut self, now: Instant, listener: Listener) {
        for id in listener.into_connections() {
            if let Some(entry) = self.table.get_mut(id) {
                entry.owner = Owner::Released;
                entry.connection.abort(now);
                self.table.activate(id);
            }
        }
    }

    /// Opens a connection. `local_port` zero picks a free one (RFC 6056), one that nobody listens
    /// on.
    ///
    /// # Errors
    /// [`ConnectError::InUse`] when a connection with this peer and these ports exists, TIME-WAIT
    /// included; [`ConnectError::Exhausted`] when no port is free or the endpoint is full.
    pub fn connect(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        remote_port: u16,
        local_port: u16,
        config: &Config,
    ) -> Result<ConnectionId, ConnectError> {
        if self.is_full() {
            return Err(ConnectError::Exhausted);
        }
        let (table, listeners) = (&self.table, &self.listeners);
        let (half_open, time_wait) = (&self.half_open.records, &self.time_wait);
        let is_free = |local_port| {
            let name = Tuple {
                local_port,
                remote_port,
                peer,
            };
            !table.is_routed(&name) && !half_open.contains(&name) && !time_wait.contains(&name)
        };
        let local_port = if local_port == 0 {
            self.secrets
                .port(peer, remote_port, |port| {
                    !listeners.contains(port) && is_free(port)
                })
                .ok_or(ConnectError::Exhausted)?
        } else if is_free(local_port) {
            local_port
        } else {
            return Err(ConnectError::InUse);
        };
        let tuple = Tuple {
            local_port,
            remote_port,
            peer,
        };
        let iss = self.secrets.isn(now, &tuple);
        let seed = self.secrets.seed(&tuple, self.table.serial());
        let mut connection = Connection::connect(config, local_port, remote_port, iss, seed, now);
        connection.assume_mss(tuple.default_mss());
        if self.plain_peers.contains(now, peer.ip()) {
            connection.withhold_offer();
        }
        Ok(self.table.insert(tuple, connection, Owner::Application))
    }

    /// The next established connection of the listener on `port`. It has the events of its life so
    /// far.
    pub fn accept(&mut self, port: u16) -> Option<ConnectionId> {
        self.take_waiting(Some(port))
    }

    /// The next established connection of the listener on all other ports
    /// ([`Endpoint::listen_everywhere`]).
    pub fn accept_everywhere(&mut self) -> Option<ConnectionId> {
        self.take_waiting(None)
    }

    fn take_waiting(&mut self, port: Option<u16>) -> Option<ConnectionId> {
        loop {
            let id = self.listeners.of_mut(port)?.accept()?;
            let Some(entry) = self.table.get_mut(id) else {
                continue;
            };
            if entry.is_closed() {
                // Reset before anybody saw it.
                self.table.remove(id);
                continue;
            }
            entry.owner = Owner::Application;
            self.table.announce(id);
            self.table.activate(id);
            return Some(id);
        }
    }

    /// True when [`Endpoint::accept`] on `port` may have a connection to hand out: what a driver
    /// asks before it wakes the task that waits for one.
    pub fn is_acceptable(&self, port: u16) -> bool {
        self.listeners
            .of(Some(port))
            .is_some_and(Listener::has_waiting)
    }

    /// A segment arrived from `peer` (at `arrived`, and is processed `now`). Says which connection
    /// took it.
    pub fn handle_segment(
        &mut self,
        now: Instant,
        arrived: Instant,
        peer: SocketAddr,
        segment: &Segment<'_>,
        ecn: Ecn,
    ) -> Option<ConnectionId> {
        let header = &segment.header;
        let tuple = Tuple {
            local_port: header.dst_port,
            remote_port: header.src_port,
            peer,
        };
        let opens =
            header.flags.syn() && !header.flags.ack() && !header.flags.rst() && !header.flags.fin();
        let mut iss_floor = None;
        let pressure = self.pressure();
        if let Some(id) = self.table.route(&tuple)
            && let Some(entry) = self.table.get_mut(id)
        {
            if !entry.is_closed() {
                // RFC 9293 §3.10.7.4: a listener may open anew what is in TIME-WAIT.
                if opens
                    && entry.connection.state() == State::TimeWait
                    && self.listeners.contains(header.dst_port)
                {
                    iss_floor = entry.connection.reopen(segment);
                }
                if iss_floor.is_none() {
                    entry.connection.set_pressure(pressure);
                    let opening = entry.connection.state() == State::SynSent;
                    entry.connection.handle_segment(now, arrived, segment, ecn);
                    if opening && entry.connection.opened_without_offer() {
                        self.plain_peers.remember(now, peer.ip());
                    }
                    self.table.activate(id);
                    return Some(id);
                }
            }
            // What the path said was wrong, or is no more: the peer lives, and is not told that
            // this side has stopped before the application lets go.
            if entry.connection.is_cut_off() && !opens {
                self.stats.strays += 1;
                return None;
            }
            // Its name is free for the segment's sake; what the application has not read yet stays
            // readable.
            self.table.unroute(id);
            self.table.activate(id);
        } else {
            match self.without_connection(now, arrived, &tuple, segment, ecn) {
                Outcome::Taken(id) => return id,
                Outcome::Reopen(floor) => iss_floor = Some(floor),
                Outcome::Stray => {}
            }
        }
        if opens && let Some(listener) = self.listeners.get_mut(header.dst_port) {
            let verdict = listener.screen(&Incoming {
                peer,
                remote_port: header.src_port,
                local_port: header.dst_port,
            });
            if verdict == Verdict::Accept {
                self.open_passively(now, tuple, (segment, ecn), iss_floor);
                return None;
            }
            self.stats.syns_refused += 1;
            if verdict == Verdict::Refuse && self.strays.answer(now, peer, segment) {
                self.stats.resets += 1;
            }
            return None;
        }
        self.stats.strays += 1;
        // RFC 9293 §3.10.7.2: a listener answers what acknowledges something, and ignores the rest.
        if (header.flags.ack() || !self.listeners.contains(header.dst_port))
            && self.strays.answer(now, peer, segment)
        {
            self.stats.resets += 1;
        }
        None
    }

    /// A router or a host said (by ICMP) that a segment to `peer` with sequence number `seq` did
    /// not arrive. Returns whether a connection believed it; see [`Connection::handle_path_error`].
    ///
    /// A half-open connection of a listener takes no notice: its record says too little to check
    /// the error.
    pub fn handle_path_error(
        &mut self,
        now: Instant,
        tuple: &Tuple,
        seq: SeqNum,
        error: PathError,
    ) -> bool {
        let believed = match self.table.route(tuple) {
            Some(id) => {
                self.table.activate(id);
                self.table
                    .get_mut(id)
                    .is_some_and(|entry| entry.connection.handle_path_error(now, seq, error))
            }
            None => false,
        };
        if believed {
            self.stats.path_errors += 1;
        } else {
            self.stats.path_errors_ignored += 1;
        }
        believed
    }

    /// What names a connection on this endpoint.
    pub fn tuple(&self, id: ConnectionId) -> Option<Tuple> {
        self.table.get(id).map(|entry| entry.tuple)
    }

    /// A connection to read its state. `None` once it was released and has ended.
    pub fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.table.get(id).map(|entry| &*entry.connection)
    }

    /// A connection to use its verbs; it is polled again afterwards.
    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let pressure = self.pressure();
        self.table.activate(id);
        let entry = self.table.get_mut(id)?;
        entry.connection.set_pressure(pressure);
        Some(&mut entry.connection)
    }

    /// What a connection traced that was not polled yet, the oldest first; from the first call on
    /// it traces with this detail. Watching changes nothing: the connection is not polled again,
    /// as after [`Self::get_mut`].
    pub fn poll_trace(&mut self, id: ConnectionId, detail: TraceDetail) -> Option<TraceEvent> {
        let connection = &mut self.table.get_mut(id)?.connection;
        connection.enable_trace(detail);
        connection.poll_trace()
    }

    /// The application lets go: the connection closes gracefully on its own and is then forgotten.
    pub fn release(&mut self, now: Instant, id: ConnectionId) {
        let Some(entry) = self.table.get_mut(id) else {
            return;
        };
        entry.owner = Owner::Released;
        entry.connection.finish(now);
        entry.connection.stop_reading(now);
        self.table.activate(id);
    }

    /// The next batch to leave, of any connection (fairly in turn), or a reset for a stray. Call
    /// until it says `None`.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        batch: &mut Batch<'_>,
    ) -> Option<(SocketAddr, Transmit)> {
        if let Some(answer) = self.strays.poll_transmit(now, batch) {
            return Some(answer);
        }
        if self.half_open.is_due() {
            let config = |port| {
                self.listeners
                    .get(port)
                    .map(|listener: &Listener| &listener.config)
            };
            if let Some(syn_ack) = self.half_open.poll_transmit(now, batch, config) {
                return Some(syn_ack);
            }
        }
        while let Some((id, entry)) = self.table.first_active() {
            if let Some(transmit) = entry.connection.poll_transmit(now, batch) {
                let peer = entry.tuple.peer;
                self.table.pass_turn();
                return Some((peer, transmit));
            }
            self.table.deactivate_first();
            self.settle(now, id);
        }
        None
    }

    /// A connection has nothing more to send: look at what became of it.
    fn settle(&mut self, now: Instant, id: ConnectionId) {
        let Some(entry) = self.table.get_mut(id) else {
            return;
        };
        if entry.owner == Owner::Released
            && let Some(record) = entry.connection.time_wait()
        {
            self.keep_in_time_wait(now, id, record);
            return;
        }
        if !entry.is_closed() {
            self.table.settle(now, id);
            if self.pressure() == Pressure::Exhausted {
                self.relieve();
            }
            return;
        }
        match entry.owner {
            Owner::Application => {
                let is_cut_off = entry.connection.is_cut_off();
                self.table.charge(id);
                if !is_cut_off {
                    self.table.unroute(id);
                }
                self.table.announce(id);
                return;
            }
            Owner::Waiting => {
                if let Some(listener) = self.listeners.get_mut(entry.tuple.local_port) {
                    listener.forget(id);
                }
            }
            Owner::Released => {}
        }
        self.table.remove(id);
    }

    /// A connection of the application that has events; drain it with `get_mut(id).poll_event()`,
    /// or it is named again.
    pub fn poll_ready(&mut self) -> Option<ConnectionId> {
        self.table.next_ready()
    }

    /// When to call `handle_timeout` and then `poll_transmit`.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        let half_open = self.half_open.records.first().map(|(at, _)| at);
        let time_wait = self.time_wait.first().map(|(at, _)| at);
        let earlier = |one: Option<Instant>, other: Option<Instant>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let connections = self.table.next_deadline();
        earlier(earlier(connections, half_open), time_wait)
    }

    /// Runs the timers of every connection whose deadline is not after `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(id) = self.table.next_expired(now) {
            let pressure = self.pressure();
            if let Some(entry) = self.table.get_mut(id) {
                entry.connection.set_pressure(pressure);
                entry.connection.handle_timeout(now);
                if entry.is_closed() {
                    // What it held is there for the next one.
                    self.table.charge(id);
                }
                self.table.activate(id);
            }
        }
        self.expire_half_open(now);
        while let Some((_, name)) = self.time_wait.first().filter(|(at, _)| *at <= now) {
            self.time_wait.remove(&name);
        }
    }

    /// How many connections there are, TIME-WAIT and half-open ones included.
    pub fn len(&self) -> usize {
        self.table.len() + self.half_open.records.len() + self.time_wait.len()
    }

    /// Bytes of heap that all connections hold, and the records of half-open and finished ones.
    pub fn memory(&self) -> usize {
        self.table.memory() + self.records_memory()
    }

    /// Until when a peer may ask again for the last acknowledgement of a released connection in
    /// TIME-WAIT, going by round trips: how long a driver that ends should go on for good
    /// manners. `None` when no connection is in TIME-WAIT.
    pub fn lingers_until(&self) -> Option<Instant> {
        self.lingers_until.filter(|_| self.time_wait.len() > 0)
    }

    /// True when there is no connection.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the endpoint counted besides its connections.
    pub fn stats(&self) -> EndpointStats {
        self.stats
    }
}
