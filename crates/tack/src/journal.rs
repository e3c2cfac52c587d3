//! What an endpoint keeps for who looks at it from beside: the connections that ended between two
//! looks.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tack_tcp::trace::{TraceDetail, TraceEvent};
use tack_tcp::{ConnectionId, Stats};

/// Connections that ended between two looks and are kept for the next one; of further ones only
/// their number.
const MAX_DEPARTED: usize = 65_536;

/// One look at a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionView {
    /// Tells it from all others of its endpoint, before and after.
    pub id: ConnectionId,
    /// The peer's UDP address.
    pub peer: SocketAddr,
    /// The TCP port of this side.
    pub local_port: u16,
    /// The TCP port of the peer.
    pub remote_port: u16,
    /// The peer opened it; known until the program lets go of it.
    pub accepted: bool,
    /// What has become of it.
    pub phase: Phase,
    /// Counters and estimates since its beginning.
    pub stats: Stats,
    /// What happened since the last look, where traces are [wanted](crate::Watching::Traces), with
    /// times on the endpoint's clock.
    pub events: Vec<TraceEvent>,
    /// Events of its life that are missing because they were too many between two looks.
    pub events_forgotten: u64,
}

/// How far a connection's life has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Phase {
    /// Its handshake is under way.
    Opening,
    /// Data may flow.
    Open,
    /// At least one side has ended its stream, or both have.
    Closing,
    /// It is over, or the program let go of it. If it has bytes to deliver still, it comes again.
    Departed,
}

/// Connections that ended since the last look.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub(crate) departed: Vec<ConnectionView>,
    pub(crate) missed: u64,
}

impl Journal {
    pub(crate) fn add(&mut self, view: ConnectionView) {
        if self.departed.len() < MAX_DEPARTED {
            self.departed.push(view);
        } else {
            self.missed += 1;
        }
    }
}

pub(crate) fn locked(journal: &Mutex<Journal>) -> MutexGuard<'_, Journal> {
    journal.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an endpoint keeps for its monitors.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) journal: Arc<Mutex<Journal>>,
    /// Of what connections keep a trace, if they do.
    pub(crate) traces: Option<TraceDetail>,
}
