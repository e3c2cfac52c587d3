//! A listening port: what it accepts, and which connections wait to be accepted.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::fmt;
use core::net::SocketAddr;

use tack_base::Instant;

use super::id::ConnectionId;
use crate::config::Config;

/// Somebody wants to connect to a listener: what is known when the SYN arrives.
///
/// Nothing of it is proven: a host that can send packets with any source address can make up a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Incoming {
    /// The carrier address that the SYN claims to come from: the UDP address, or the IP address
    /// with port zero.
    pub peer: SocketAddr,
    /// The peer's TCP port.
    pub remote_port: u16,
    /// The TCP port that is listened on.
    pub local_port: u16,
}

/// What becomes of a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// The handshake goes on.
    Accept,
    /// A reset answers it: the peer learns at once. Resets are limited in rate.
    Refuse,
    /// Nothing answers it: the peer sends again until it gives up, and learns nothing.
    Ignore,
}

/// Decides about each SYN for a listener, before anything is kept of it.
///
/// The filter sees every SYN that would open a connection, those that SYN cookies answer included.
/// A cookie is bound to the address and the ports whose SYN it answered, so that the
/// acknowledgement which brings it back needs no second look. A SYN that comes again while its
/// handshake is under way is not shown again; one that was not accepted is.
pub struct SynFilter(Box<Filter>);

type Filter = dyn FnMut(&Incoming) -> Verdict + Send;

impl SynFilter {
    /// A filter that asks `decide`, which must not block and must not use the endpoint.
    pub fn new(decide: impl FnMut(&Incoming) -> Verdict + Send + 'static) -> Self {
        Self(Box::new(decide))
    }
}

impl fmt::Debug for SynFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SynFilter")
    }
}

/// A listening port (state LISTEN of RFC 9293).
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) config: Config,
    backlog: usize,
    filter: Option<SynFilter>,
    /// How many records of half-open connections there are.
    half_open: usize,
    /// Established and not accepted yet, oldest first.
    waiting: VecDeque<ConnectionId>,
    /// When the last cookie loses its validity; an acknowledgement out of nowhere is not looked at
    /// after that.
    cookies_until: Option<Instant>,
}

/// What to do with a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Admission {
    /// There is room for a record.
    Record,
    /// There is none: it is answered with a cookie.
    Cookie,
    /// Ignore it; the peer will ask again.
    Drop,
}

impl Listener {
    pub(super) fn new(config: Config, backlog: usize, filter: Option<SynFilter>) -> Self {
        Self {
            config,
            backlog: backlog.max(1),
            filter,
            half_open: 0,
            waiting: VecDeque::new(),
            cookies_until: None,
        }
    }

    /// What the application says of a SYN.
    pub(super) fn screen(&mut self, incoming: &Incoming) -> Verdict {
        self.filter
            .as_mut()
            .map_or(Verdict::Accept, |filter| (filter.0)(incoming))
    }

    /// Decides on a SYN. Connections that completed the handshake are never thrown away: when they
    /// alone fill the backlog, the application is slow and new peers wait.
    pub(super) fn admit(&self) -> Admission {
        if !self.has_room() {
            Admission::Drop
        } else if self.half_open + self.waiting.len() < self.backlog {
            Admission::Record
        } else {
            Admission::Cookie
        }
    }

    /// One more connection may wait to be accepted.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < self.backlog
    }

    /// A record was made.
    pub(super) fn opened(&mut self) {
        self.half_open += 1;
    }

    /// A record is gone.
    pub(super) fn forgot_half_open(&mut self) {
        // A port may have got a listener of its own after the record was made.
        self.half_open = self.half_open.saturating_sub(1);
    }

    /// A cookie left which is valid until `until`.
    pub(super) fn baked(&mut self, until: Instant) {
        self.cookies_until = Some(until);
    }

    /// A cookie may come back.
    pub(super) fn expects_cookies(&self, now: Instant) -> bool {
        self.cookies_until.is_some_and(|until| now < until)
    }

    /// A handshake is complete.
    pub(super) fn established(&mut self, id: ConnectionId) {
        self.waiting.push_back(id);
    }

    /// A connection ended before it was accepted.
    pub(super) fn forget(&mut self, id: ConnectionId) {
        self.waiting.retain(|waiting| *waiting != id);
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
        self.waiting.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backlog_counts_half_open_and_waiting_connections() {
        let mut listener = Listener::new(Config::default(), 2, None);
        assert_eq!(listener.admit(), Admission::Record);
        listener.opened();
        listener.opened();
        assert_eq!(listener.admit(), Admission::Cookie);
        listener.forgot_half_open();
        listener.established(ConnectionId(1));
        assert_eq!(listener.admit(), Admission::Cookie);
        listener.forgot_half_open();
        listener.established(ConnectionId(2));
        assert_eq!(listener.admit(), Admission::Drop);
        assert_eq!(listener.accept(), Some(ConnectionId(1)));
        assert_eq!(listener.admit(), Admission::Record);
        listener.forget(ConnectionId(2));
        assert_eq!(listener.accept(), None);
    }

    #[test]
    fn cookies_are_expected_as_long_as_they_are_valid() {
        let mut listener = Listener::new(Config::default(), 2, None);
        let at = Instant::from_millis;
        assert!(!listener.expects_cookies(at(1)));
        listener.baked(at(10));
        assert!(listener.expects_cookies(at(9)) && !listener.expects_cookies(at(10)));
    }
}
