//! What tells a connection from all others.

use tack_wire::SeqNum;

/// The ports of a connection, and the numbers that this side chose for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    /// Our initial sequence number (RFC 6528).
    pub(crate) iss: SeqNum,
    /// Feeds the connection's random choices; its upper half is where the timestamps start.
    pub(crate) seed: u64,
}
