//! Connections that were accepted for a peer (`tack forward -R`) and that it has not taken yet.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::tunnel::pump;

/// Connections of a peer that wait at most; a further one is reset.
const MAX_PER_PEER: usize = 256;
/// How long one waits to be taken, and how long a peer may take to hear of it.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Accepted connections, by number.
#[derive(Debug, Default)]
pub(super) struct AcceptedConnections(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    connections: BTreeMap<u64, WaitingConnection>,
}

#[derive(Debug)]
struct WaitingConnection {
    /// The number of the [`Arrivals`].
    of: u64,
    peer: [u8; 32],
    /// Where the peer asked to listen.
    at: SocketAddr,
    since: Instant,
    stream: TcpStream,
}

/// The connections that arrive where a peer listens. Those that wait are reset when it is dropped.
#[derive(Debug)]
pub(super) struct Arrivals<'a> {
    all: &'a AcceptedConnections,
    number: u64,
    peer: [u8; 32],
    at: SocketAddr,
}

impl Waiting {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Resets those that `ends` names.
    fn reset(&mut self, ends: impl Fn(&WaitingConnection) -> bool) {
        for (_, ended) in self.connections.extract_if(.., |_, it| ends(it)) {
            pump::reset(ended.stream);
        }
    }
}

impl AcceptedConnections {
    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For what arrives where `peer` asked to listen.
    pub(super) fn arrivals(&self, peer: [u8; 32], at: SocketAddr) -> Arrivals<'_> {
        let number = self.waiting().number();
        Arrivals {
            all: self,
            number,
            peer,
            at,
        }
    }

    /// Takes the connection with this number, if it is one of `peer`'s and `may` still listen
    /// where it arrived.
    pub(super) fn take(
        &self,
        peer: [u8; 32],
        number: u64,
        may: impl Fn(SocketAddr) -> bool,
    ) -> Option<TcpStream> {
        let mut waiting = self.waiting();
        let found = waiting.connections.get(&number)?;
        if found.peer != peer || !may(found.at) {
            return None;
        }
        waiting.connections.remove(&number).map(|it| it.stream)
    }
}

impl Arrivals<'_> {
    /// Keeps `stream`; its number, unless too many of this peer wait already.
    pub(super) fn add(&self, stream: TcpStream, since: Instant) -> Option<u64> {
        let mut waiting = self.all.waiting();
        let of_peer = waiting.connections.values();
        if of_peer.filter(|it| it.peer == self.peer).count() >= MAX_PER_PEER {
            pump::reset(stream);
            return None;
        }
        let number = waiting.number();
        waiting.connections.insert(
            number,
            WaitingConnection {
                of: self.number,
                peer: self.peer,
                at: self.at,
                since,
                stream,
            },
        );
        Some(number)
    }

    /// Resets those that have waited for [`PATIENCE`]; when the next one will have.
    pub(super) fn expire(&self, now: Instant) -> Option<Instant> {
        let mut waiting = self.all.waiting();
        let of = self.number;
        waiting.reset(|it| it.of == of && now.duration_since(it.since) >= PATIENCE);
        let left = waiting.connections.values();
        let since = left.filter(|it| it.of == of).map(|it| it.since).min();
        since.map(|since| since + PATIENCE)
    }
}

impl Drop for Arrivals<'_> {
    fn drop(&mut self) {
        let of = self.number;
        self.all.waiting().reset(|it| it.of == of);
    }
}
