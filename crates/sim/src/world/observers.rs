//! The observers of a run, and the packets that they get.

use std::sync::atomic::AtomicBool;

use tack_base::Instant;

use super::hash::TraceHash;
use crate::observe::{Observer, PacketEvent, Passing};
use crate::packet::Packet;
use crate::scenario::Party;

/// Whether the invariants of the stack are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// Only what costs next to nothing: delivered bytes are the bytes sent.
    #[default]
    Cheap,
    /// Every invariant, at every event. Sums over all that is outstanding take part with 16 records
    /// an event: those of larger windows are checked after as many events as that takes.
    EveryEvent,
}

/// The observers of a run, and its checks.
#[derive(Default)]
pub struct Observers<'a> {
    pub(super) list: Vec<&'a mut dyn Observer>,
    pub(super) checks: Checks,
    pub(super) stop: Option<&'a AtomicBool>,
}

impl<'a> Observers<'a> {
    /// Adds an observer.
    #[must_use]
    pub fn with(mut self, observer: &'a mut dyn Observer) -> Self {
        self.list.push(observer);
        self
    }

    /// Chooses how closely the stack is checked.
    #[must_use]
    pub fn checking(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }

    /// Ends the run with [`RunError::Stopped`](crate::RunError::Stopped) soon after `stop` becomes
    /// true: within some thousand events.
    #[must_use]
    pub fn until(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }
}

impl std::fmt::Debug for Observers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observers")
            .field("observers", &self.list.len())
            .field("checks", &self.checks)
            .finish()
    }
}

/// Adds a packet to the hash and passes it to the observers.
#[inline]
pub(super) fn observe(
    at: Instant,
    (host, party): (usize, Party),
    passing: Passing,
    packet: &Packet,
    hash: &mut TraceHash,
    observers: &mut Observers<'_>,
) {
    let transport = packet.transport();
    hash.add(at.as_nanos() << 2 | (host as u64) << 1 | u64::from(passing == Passing::In));
    hash.add_bytes(transport);
    hash.add_bytes(&transport[8..]);
    hash.add((packet.len() as u64) << 8 | u64::from(packet.head[1]));
    for observer in &mut observers.list {
        observer.on_packet(&PacketEvent {
            at,
            host: party,
            passing,
            packet,
        });
    }
}
