//! A listening port: which connections are half-open, which wait to be accepted.

use alloc::collections::{BTreeSet, VecDeque};

use super::ConnectionId;
use crate::config::Config;

/// A listening port (state LISTEN of RFC 9293).
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) config: Config,
    backlog: usize,
    /// In SYN-RECEIVED. Identifiers grow with time: the first is the oldest.
    half_open: BTreeSet<ConnectionId>,
    /// Established and not accepted yet, oldest first.
    waiting: VecDeque<ConnectionId>,
}

/// What to do with a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Admission {
    /// There is room.
    Open,
    /// There is room once this half-open connection is forgotten.
    Recycle(ConnectionId),
    /// Ignore it; the peer will ask again.
    Drop,
}

impl Listener {
    pub(super) fn new(config: Config, backlog: usize) -> Self {
        Self {
            config,
            backlog: backlog.max(1),
            half_open: BTreeSet::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Decides on a SYN when the backlog may be full.
    ///
    /// Of the defences of RFC 4987 this is §3.4, recycling the oldest half-open connection: a flood then has to refill the
    /// whole backlog within one round trip of an honest peer to lock it out, whereas dropping new SYNs would let one
    /// backlog of forged SYNs lock out everybody until the SYN-ACK retries end. Connections that completed the handshake are
    /// never thrown away: when they alone fill the backlog, the application is slow and new peers wait.
    pub(super) fn admit(&self) -> Admission {
        if self.half_open.len() + self.waiting.len() < self.backlog {
            Admission::Open
        } else {
            self.oldest_half_open()
                .map_or(Admission::Drop, Admission::Recycle)
        }
    }

    /// The half-open connection that has waited longest.
    pub(super) fn oldest_half_open(&self) -> Option<ConnectionId> {
        self.half_open.first().copied()
    }

    /// A connection was born from a SYN.
    pub(super) fn opened(&mut self, id: ConnectionId) {
        self.half_open.insert(id);
    }

    /// Its handshake is complete.
    pub(super) fn established(&mut self, id: ConnectionId) {
        self.half_open.remove(&id);
        self.waiting.push_back(id);
    }

    /// It ended before it was accepted.
    pub(super) fn forget(&mut self, id: ConnectionId) {
        if !self.half_open.remove(&id) {
            self.waiting.retain(|waiting| *waiting != id);
        }
    }

    /// Hands out the oldest connection that waits.
    pub(super) fn accept(&mut self) -> Option<ConnectionId> {
        self.waiting.pop_front()
    }

    /// True when a connection waits.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Every connection that was not accepted.
    pub(super) fn into_connections(self) -> impl Iterator<Item = ConnectionId> {
        self.half_open.into_iter().chain(self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backlog_counts_half_open_and_waiting_connections() {
        let mut listener = Listener::new(Config::default(), 2);
        assert_eq!(listener.admit(), Admission::Open);
        listener.opened(ConnectionId(1));
        listener.opened(ConnectionId(2));
        assert_eq!(listener.admit(), Admission::Recycle(ConnectionId(1)));
        listener.established(ConnectionId(1));
        assert_eq!(listener.admit(), Admission::Recycle(ConnectionId(2)));
        listener.established(ConnectionId(2));
        assert_eq!(listener.admit(), Admission::Drop);
        assert_eq!(listener.accept(), Some(ConnectionId(1)));
        assert_eq!(listener.admit(), Admission::Open);
        listener.forget(ConnectionId(2));
        assert_eq!(listener.accept(), None);
    }
}
