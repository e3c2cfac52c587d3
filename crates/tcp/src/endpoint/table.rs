//! The connections of an endpoint: by identifier, by ports, by deadline, and those with something
//! to do.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use core::net::{IpAddr, SocketAddr};

use slab::Slab;
use tack_base::Instant;

use super::deadlines::{Deadlines, Key};
use super::id::ConnectionId;
use crate::connection::{Connection, State};

/// What names a connection on an endpoint: carrier address of the peer and both TCP ports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tuple {
    /// TCP port of this side.
    pub local_port: u16,
    /// TCP port of the peer.
    pub remote_port: u16,
    /// Where the carrier reaches the peer.
    pub peer: SocketAddr,
}

impl Tuple {
    /// Segment size of a peer that announces none, bytes: 536 over IPv4, 1220 over IPv6 (RFC 9293
    /// MUST-15).
    pub(crate) fn default_mss(&self) -> u16 {
        match self.peer.ip().to_canonical() {
            IpAddr::V4(_) => 536,
            IpAddr::V6(_) => 1220,
        }
    }
}

/// Who a connection belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// A listener, until the application accepts it.
    Waiting,
    /// The application.
    Application,
    /// Nobody: it disappears once it is closed.
    Released,
}

/// Bits of an identifier that name the slot; the others count connections, so identifiers grow with
/// time and none is used twice within 2^40 connections.
const SLOT_BITS: u32 = 24;
/// Most connections a table can hold.
pub(super) const MAX_CONNECTIONS: usize = 1 << SLOT_BITS;

#[derive(Debug)]
pub(super) struct Entry {
    id: ConnectionId,
    pub(super) tuple: Tuple,
    pub(super) connection: Box<Connection>,
    pub(super) owner: Owner,
    /// Segments are routed here. False once it is closed: its name is then free again.
    routed: bool,
    /// It is in `active`.
    active: bool,
    /// It is in `ready`.
    ready: bool,
    /// Its key in `deadlines`: not after its real deadline.
    armed: Option<Instant>,
    /// Its real deadline, unless it is in `active`.
    deadline: Option<Instant>,
    /// What it was found to hold when it was last looked at, bytes.
    charged: usize,
}

/// All connections, with an index for each way to find one.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: Slab<Entry>,
    serial: u64,
    /// A tree: no peer can degrade it, and there is no hash order to depend on.
    routes: BTreeMap<Tuple, ConnectionId>,
    /// Segments come in trains: the route used last is tried first.
    last_route: Option<(Tuple, ConnectionId)>,
    /// One key per connection that has a deadline. A deadline that moves later (an RTO, at each
    /// acknowledgement) leaves its key alone; the key is corrected when it comes up.
    deadlines: Deadlines,
    /// Connections that may have something to send, in turn.
    active: VecDeque<ConnectionId>,
    /// Connections that have events.
    ready: VecDeque<ConnectionId>,
    /// What all connections hold, bytes.
    memory: usize,
}

/// What an entry takes besides its connection: its place in the slab, with those that are free, and
/// in the trees.
const OVERHEAD: usize =
    2 * size_of::<Entry>() + 2 * size_of::<(Tuple, ConnectionId)>() + 2 * size_of::<Key>();

impl Table {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many connections were ever made.
    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    #[inline]
    pub(super) fn get(&self, id: ConnectionId) -> Option<&Entry> {
        self.entries.get(slot(id)).filter(|entry| entry.id == id)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Entry> {
        self.entries
            .get_mut(slot(id))
            .filter(|entry| entry.id == id)
    }

    /// Adds a connection whose name is free, and makes it active.
    pub(super) fn insert(
        &mut self,
        tuple: Tuple,
        connection: Connection,
        owner: Owner,
    ) -> ConnectionId {
        let vacant = self.entries.vacant_entry();
        debug_assert!(
            vacant.key() < MAX_CONNECTIONS,
            "the caller bounds the number of connections"
        );
        let id = ConnectionId((self.serial << SLOT_BITS) | vacant.key() as u64);
        self.serial += 1;
        let connection = Box::new(connection);
        vacant.insert(Entry {
            id,
            tuple,
            connection,
            owner,
            routed: true,
            active: false,
            ready: false,
            armed: None,
            deadline: None,
            charged: 0,
        });
        let previous = self.routes.insert(tuple, id);
        debug_assert_eq!(previous, None, "the caller checks that the name is free");
        self.charge(id);
        self.activate(id);
        id
    }

    /// Takes account of what a connection holds now, and of its deadline.
    #[inline]
    pub(super) fn charge(&mut self, id: ConnectionId) {
        let Some(entry) = self.get_mut(id) else {
            return;
        };
        let (before, now) = (entry.charged, entry.connection.memory() + OVERHEAD);
        entry.charged = now;
        entry.deadline = entry.connection.poll_timeout();
        self.memory = self.memory - before + now;
    }

    /// An open connection has nothing more to send: takes account of what it holds, names it to its
    /// application where it has events, and brings its key in line with its deadline.
    #[inline]
    pub(super) fn settle(&mut self, now: Instant, id: ConnectionId) {
        let Some(entry) = self
            .entries
            .get_mut(slot(id))
            .filter(|entry| entry.id == id)
        else {
            return;
        };
        let held = entry.connection.memory();
        entry.connection.watch_idleness(now, held);
        let before = core::mem::replace(&mut entry.charged, held + OVERHEAD);
        self.memory = self.memory - before + entry.charged;
        if entry.is_to_announce() {
            entry.ready = true;
            self.ready.push_back(id);
        }
        if let Some((from, to)) = entry.moved_deadline() {
            self.rearm(id, from, to);
        }
    }

    /// What all connections hold, bytes.
    #[inline]
    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// The connection in the first place from `place` on that is taken, and that place.
    pub(super) fn taken_from(&self, place: usize) -> Option<(usize, ConnectionId)> {
        (place..self.entries.capacity())
            .find_map(|place| Some((place, self.entries.get(place)?.id)))
    }

    /// Forgets a connection. A place in `active` is skipped when it comes up.
    pub(super) fn remove(&mut self, id: ConnectionId) {
        self.unroute(id);
        let Some(entry) = self.get(id) else { return };
        let (armed, ready, charged) = (entry.armed, entry.ready, entry.charged);
        self.memory -= charged;
        if let Some(armed) = armed {
            self.deadlines.remove((armed, id));
        }
        if ready {
            // `active` is drained all the time; nobody is obliged to drain this one.
            self.ready.retain(|ready| *ready != id);
        }
        self.entries.remove(slot(id));
    }

    /// The connection that segments with this name belong to.
    #[inline]
    pub(super) fn route(&mut self, tuple: &Tuple) -> Option<ConnectionId> {
        if let Some((last, id)) = &self.last_route
            && last == tuple
        {
            return Some(*id);
        }
        let id = *self.routes.get(tuple)?;
        self.last_route = Some((*tuple, id));
        Some(id)
    }

    pub(super) fn is_routed(&self, tuple: &Tuple) -> bool {
        self.routes.contains_key(tuple)
    }

    /// Frees the name of a connection.
    pub(super) fn unroute(&mut self, id: ConnectionId) {
        let Some(entry) = self.get_mut(id) else {
            return;
        };
        if !core::mem::take(&mut entry.routed) {
            return;
        }
        let tuple = entry.tuple;
        self.routes.remove(&tuple);
        self.last_route = None;
    }

    /// The connection may have something to send, or its deadline or events may have changed.
    #[inline]
    pub(super) fn activate(&mut self, id: ConnectionId) {
        if let Some(entry) = self.get_mut(id)
            && !core::mem::replace(&mut entry.active, true)
        {
            self.active.push_back(id);
        }
    }

    /// The connection whose turn it is. It stays active until [`Table::deactivate_first`].
    #[inline]
    pub(super) fn first_active(&mut self) -> Option<(ConnectionId, &mut Entry)> {
        while let Some(first) = self.active.front()
            && self.get(*first).is_none()
        {
            self.active.pop_front();
        }
        let id = *self.active.front()?;
        self.get_mut(id).map(|entry| (id, entry))
    }

    /// The connection whose turn it was has sent: the others come first now.
    #[inline]
    pub(super) fn pass_turn(&mut self) {
        if self.active.len() > 1 {
            self.active.rotate_left(1);
        }
    }

    /// The connection whose turn it is has nothing more to send.
    #[inline]
    pub(super) fn deactivate_first(&mut self) {
        if let Some(id) = self.active.pop_front()
            && let Some(entry) = self.get_mut(id)
        {
            entry.active = false;
        }
    }

    /// Tells the application of the connection at the next [`Table::next_ready`], if it has events
    /// and an application.
    #[inline]
    pub(super) fn announce(&mut self, id: ConnectionId) {
        if let Some(entry) = self.get_mut(id)
            && entry.is_to_announce()
        {
            entry.ready = true;
            self.ready.push_back(id);
        }
    }

    /// The next connection that has events.
    #[inline]
    pub(super) fn next_ready(&mut self) -> Option<ConnectionId> {
        loop {
            let id = self.ready.pop_front()?;
            let Some(entry) = self.get_mut(id) else {
                continue;
            };
            entry.ready = false;
            if entry.owner == Owner::Application && entry.connection.has_events() {
                return Some(id);
            }
        }
    }

    /// Brings the key of a connection in line with its deadline, where that must be done now.
    pub(super) fn arm(&mut self, id: ConnectionId) {
        let Some(entry) = self.get_mut(id) else {
            return;
        };
        if let Some((from, to)) = entry.moved_deadline() {
            self.rearm(id, from, to);
        }
    }

    /// The earliest deadline of all.
    #[inline]
    pub(super) fn next_deadline(&mut self) -> Option<Instant> {
        // Connections that were touched and not polled since have no up-to-date key. There are none
        // in a loop that drains `poll_transmit` first.
        for index in 0..self.active.len() {
            self.arm(self.active[index]);
        }
        loop {
            let (armed, id) = self.deadlines.first()?;
            let deadline = self.get(id).and_then(Entry::settled_deadline);
            if deadline == Some(armed) {
                return deadline;
            }
            self.rearm(id, Some(armed), deadline);
        }
    }

    /// Takes one connection whose deadline is not after `now`; its key is gone until it is armed
    /// again.
    #[inline]
    pub(super) fn next_expired(&mut self, now: Instant) -> Option<ConnectionId> {
        loop {
            let (armed, id) = self.deadlines.first()?;
            if armed > now {
                return None;
            }
            let deadline = self
                .get(id)
                .and_then(|entry| entry.connection.poll_timeout());
            if deadline.is_some_and(|deadline| deadline <= now) {
                self.rearm(id, Some(armed), None);
                return Some(id);
            }
            self.rearm(id, Some(armed), deadline);
        }
    }

    #[inline]
    fn rearm(&mut self, id: ConnectionId, from: Option<Instant>, to: Option<Instant>) {
        let key = |at| (at, id);
        self.deadlines.replace(from.map(key), to.map(key));
        if let Some(entry) = self.get_mut(id) {
            entry.armed = to;
        }
    }
}

impl Entry {
    pub(super) fn is_routed(&self) -> bool {
        self.routed
    }

    pub(super) fn is_closed(&self) -> bool {
        self.connection.state() == State::Closed
    }

    /// When its timers want to run, as was found when it was looked at last.
    #[inline]
    fn settled_deadline(&self) -> Option<Instant> {
        debug_assert_eq!(
            self.deadline,
            self.connection.poll_timeout(),
            "a connection that was used is active"
        );
        self.deadline
    }

    /// It has an application, and events that this does not know of.
    #[inline]
    fn is_to_announce(&self) -> bool {
        self.owner == Owner::Application && !self.ready && self.connection.has_events()
    }

    /// Its key among the deadlines and what the key has to be, where that must be changed now.
    #[inline]
    fn moved_deadline(&mut self) -> Option<(Option<Instant>, Option<Instant>)> {
        self.deadline = self.connection.poll_timeout();
        let (armed, deadline) = (self.armed, self.deadline);
        let moved = match (armed, deadline) {
            (Some(armed), Some(deadline)) => deadline < armed,
            (None, Some(_)) => true,
            // A key without a deadline is found out when it comes up.
            (_, None) => false,
        };
        moved.then_some((armed, deadline))
    }
}

fn slot(id: ConnectionId) -> usize {
    (id.0 & (MAX_CONNECTIONS as u64 - 1)) as usize
}
