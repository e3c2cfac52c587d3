//! Connections that were accepted for a peer (`tack forward -R`) and that it has not taken yet.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use crate::tunnel::pump;

/// Connections of a peer that wait at most; a further one is reset.
const MAX_PER_PEER: usize = 256;
/// How long one waits to be taken.
const PATIENCE: Duration = Duration::from_secs(30);

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
    peer: [u8; 32],
    since: Instant,
    stream: TcpStream,
}

impl AcceptedConnections {
    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps `stream` for `peer`; its number, unless too many wait already.
    pub(super) fn add(&self, peer: [u8; 32], stream: TcpStream, now: Instant) -> Option<u64> {
        let mut waiting = self.waiting();
        let stale: Vec<u64> = waiting
            .connections
            .iter()
            .filter(|(_, it)| now.duration_since(it.since) > PATIENCE)
            .map(|(number, _)| *number)
            .collect();
        for number in stale {
            if let Some(gone) = waiting.connections.remove(&number) {
                pump::reset(gone.stream);
            }
        }
        let of_peer = waiting.connections.values().filter(|it| it.peer == peer);
        if of_peer.count() >= MAX_PER_PEER {
            pump::reset(stream);
            return None;
        }
        let number = waiting.next;
        waiting.next += 1;
        let since = now;
        waiting.connections.insert(
            number,
            WaitingConnection {
                peer,
                since,
                stream,
            },
        );
        Some(number)
    }

    /// Takes the connection with this number, if it is one of `peer`'s.
    pub(super) fn take(&self, peer: [u8; 32], number: u64) -> Option<TcpStream> {
        let mut waiting = self.waiting();
        let is_own = waiting.connections.get(&number)?.peer == peer;
        let taken = is_own.then(|| waiting.connections.remove(&number));
        taken.flatten().map(|it| it.stream)
    }
}
