//! What arrives for a name without a connection: SYNs, the ends of handshakes, and stragglers in
//! TIME-WAIT.

use super::*;
use crate::connection::identity::Identity;
use crate::connection::offer::{Offer, Progress, Resumption};
use crate::connection::time_wait::Verdict;
use half_open::{HalfOpen, Step};
use listener::Admission;
use tack_wire::SeqNum;

/// How long a driver lingers for the peer's sake: a repeated FIN comes after two or three round
/// trips.
const LINGER: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

impl Endpoint {
    /// A segment for a name that no connection has.
    pub(super) fn without_connection(
        &mut self,
        now: Instant,
        arrived: Instant,
        name: &Tuple,
        segment: &Segment<'_>,
        ecn: Ecn,
    ) -> Outcome {
        if let Some(record) = self.time_wait.get_mut(name) {
            let listening = self.listeners.contains(name.local_port);
            let verdict = record.on_segment(now, segment, listening);
            // A FIN that came again begins the wait anew, answered or not.
            let end = record.end;
            self.time_wait.postpone(name, end);
            return match verdict {
                Verdict::Ignore => Outcome::Taken(None),
                Verdict::Answer(header) => {
                    self.strays.send(name.peer, header);
                    Outcome::Taken(None)
                }
                Verdict::Reopen(floor) => {
                    self.time_wait.remove(name);
                    Outcome::Reopen(floor)
                }
            };
        }
        let Some(listener) = self.listeners.get_mut(name.local_port) else {
            return Outcome::Stray;
        };
        if let Some(record) = self.half_open.records.get_mut(name) {
            match record.on_segment(now, name, segment, &listener.config) {
                Step::Ignore => {}
                Step::Repeat => self.half_open.answer(name),
                Step::Answer(header) => self.strays.send(name.peer, header),
                Step::Forget => {
                    self.half_open.records.remove(name);
                    listener.forgot_half_open();
                }
                Step::Complete => {
                    let parts = record.parts(name);
                    let id = self.complete(now, arrived, name, &parts, segment, ecn);
                    self.forget_half_open(name, id);
                    return Outcome::Taken(id);
                }
                Step::Unknown => {
                    if let Some(parts) = self.cookie(now, name, segment) {
                        let id = self.complete(now, arrived, name, &parts, segment, ecn);
                        self.stats.cookies_accepted += u64::from(id.is_some());
                        self.forget_half_open(name, id);
                        return Outcome::Taken(id);
                    }
                    if let Some(record) = self.half_open.records.get_mut(name)
                        && let Some(reset) = record.refuse(now, name, segment.header.ack)
                    {
                        self.strays.send(name.peer, reset);
                    }
                }
            }
            return Outcome::Taken(None);
        }
        let Some(parts) = self.cookie(now, name, segment) else {
            return Outcome::Stray;
        };
        let id = self.complete(now, arrived, name, &parts, segment, ecn);
        self.stats.cookies_accepted += u64::from(id.is_some());
        Outcome::Taken(id)
    }

    /// A connection took the place of its record.
    fn forget_half_open(&mut self, name: &Tuple, id: Option<ConnectionId>) {
        if id.is_some()
            && self.half_open.records.remove(name).is_some()
            && let Some(listener) = self.listeners.get_mut(name.local_port)
        {
            listener.forgot_half_open();
        }
    }

    /// What the connection is made of whose cookie `segment` brings back, if it does.
    fn cookie(&self, now: Instant, name: &Tuple, segment: &Segment<'_>) -> Option<Resumption> {
        let flags = segment.header.flags;
        let listener = self.listeners.get(name.local_port)?;
        if !flags.ack() || flags.syn() || flags.rst() || !listener.expects_cookies(now) {
            return None;
        }
        let offer = cookies::read(&self.secrets, now, name, &segment.header)?;
        let iss = segment.header.ack - 1;
        let identity = self.identity(name, iss, self.secrets.seed(name, u64::from(iss.0)));
        let progress = Progress {
            transmissions: 1,
            ..Progress::default()
        };
        Some(Resumption {
            offer,
            identity,
            progress,
        })
    }

    fn identity(&self, name: &Tuple, iss: SeqNum, seed: u64) -> Identity {
        Identity {
            local_port: name.local_port,
            remote_port: name.remote_port,
            iss,
            seed,
        }
    }

    /// A SYN for a listener.
    pub(super) fn open_passively(
        &mut self,
        now: Instant,
        name: Tuple,
        (syn, ecn): (&Segment<'_>, Ecn),
        iss_floor: Option<SeqNum>,
    ) {
        let is_full = self.is_full();
        let Some(listener) = self.listeners.get_mut(name.local_port) else {
            return;
        };
        let admission = match listener.admit() {
            _ if is_full => Admission::Drop,
            // A peer that was connected lately is not spoofed, and leaves the room of a record in
            // TIME-WAIT. A cookie could not keep to the order of sequence numbers.
            Admission::Cookie if iss_floor.is_some() => Admission::Record,
            admission => admission,
        };
        let mut offer = Offer::of(syn, ecn, &listener.config);
        offer.mss.get_or_insert(name.default_mss());
        match admission {
            Admission::Drop => self.stats.syns_dropped += 1,
            Admission::Record => {
                let iss = self.secrets.isn(now, &name);
                let iss = iss_floor.filter(|floor| iss.before(*floor)).unwrap_or(iss);
                let seed = self.secrets.seed(&name, self.table.serial());
                listener.opened();
                let record = HalfOpen::new(offer, iss, seed);
                self.half_open.insert(now, name, record, &listener.config);
            }
            Admission::Cookie => {
                let offer = Offer {
                    ecn: offer.ecn.at_most_classic(),
                    ..offer
                };
                let Some(iss) = cookies::make(&self.secrets, now, &name, &offer) else {
                    self.stats.syns_dropped += 1;
                    return;
                };
                let seed = self.secrets.seed(&name, u64::from(iss.0));
                let answered = self.half_open.answer_with_cookie(
                    now,
                    &name,
                    &offer,
                    (iss, seed),
                    &listener.config,
                );
                if answered {
                    listener.baked(now + cookies::LIFETIME);
                    self.stats.cookies_sent += 1;
                } else {
                    self.stats.syns_dropped += 1;
                }
            }
        }
    }

    /// Makes the connection whose handshake `segment` completes, if there is room for it. Otherwise
    /// the peer will send again, or we our SYN-ACK.
    fn complete(
        &mut self,
        now: Instant,
        arrived: Instant,
        name: &Tuple,
        resumption: &Resumption,
        segment: &Segment<'_>,
        ecn: Ecn,
    ) -> Option<ConnectionId> {
        let is_full = self.is_full();
        let listener = self.listeners.get_mut(name.local_port)?;
        if is_full || !listener.has_room() {
            return None;
        }
        let mut connection = Connection::resume(&listener.config, resumption, now);
        connection.handle_segment(now, arrived, segment, ecn);
        if matches!(connection.state(), State::SynReceived | State::Closed) {
            return None;
        }
        let id = self.table.insert(*name, connection, Owner::Waiting);
        listener.established(id);
        Some(id)
    }

    /// SYN-ACKs that were not acknowledged in time leave again, or their records are given up.
    pub(super) fn expire_half_open(&mut self, now: Instant) {
        loop {
            let config = |port| {
                self.listeners
                    .get(port)
                    .map(|listener: &Listener| &listener.config)
            };
            match self.half_open.expire(now, config) {
                None => return,
                Some(Ok(())) => {}
                Some(Err(name)) => {
                    if let Some(listener) = self.listeners.get_mut(name.local_port) {
                        listener.forgot_half_open();
                    }
                }
            }
        }
    }

    /// A record takes the place of a released connection in TIME-WAIT.
    pub(super) fn keep_in_time_wait(&mut self, now: Instant, id: ConnectionId, record: TimeWait) {
        let Some(entry) = self.table.get(id) else {
            return;
        };
        let (name, routed) = (entry.tuple, entry.is_routed());
        let linger = now + (entry.connection.round_trip() * 4).clamp(LINGER.0, LINGER.1);
        self.table.remove(id);
        // A new incarnation may have its name already.
        if !routed || self.max_time_wait == 0 {
            return;
        }
        // Neither their number nor the memory that they take may keep new connections out.
        while (self.time_wait.len() >= self.max_time_wait || self.pressure() == Pressure::Exhausted)
            && let Some((_, oldest)) = self.time_wait.first()
        {
            self.time_wait.remove(&oldest);
            self.stats.time_wait_evicted += 1;
        }
        self.lingers_until = self.lingers_until.max(Some(linger));
        self.time_wait.insert(name, record.end, record);
    }

    /// No more connections.
    pub(super) fn is_full(&self) -> bool {
        self.table.len() >= self.max_connections || self.pressure() == Pressure::Exhausted
    }

    pub(super) fn records_memory(&self) -> usize {
        self.half_open.records.memory() + self.time_wait.memory()
    }

    #[inline]
    pub(super) fn pressure(&self) -> Pressure {
        self.memory.pressure(self.memory())
    }

    /// Takes memory back that connections can do without, from the next few in turn.
    pub(super) fn relieve(&mut self) {
        for _ in 0..LOOKED_AT {
            let place = self.table.taken_from(self.memory.hand);
            let Some((place, id)) = place.or_else(|| self.table.taken_from(0)) else {
                return;
            };
            self.memory.hand = place + 1;
            if let Some(entry) = self.table.get_mut(id) {
                entry.connection.set_pressure(Pressure::Exhausted);
                entry.connection.prune();
                self.table.charge(id);
            }
            if self.pressure() != Pressure::Exhausted {
                return;
            }
        }
    }
}
