//! Bounds on handshakes.

use std::time::Duration;

/// How long a handshake may take unless told otherwise: several retransmissions on a bad path.
pub(super) const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

/// Limits on the handshakes of a listener.
///
/// A handshake takes some 20 KiB at most besides the connection below: what rustls keeps, and 16
/// KiB of what the peer sends. When a limit is reached, the oldest handshake of the network that
/// has the most is given up for the new one, so that a flood of peers that never finish keeps no
/// others out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HandshakeLimits {
    /// Time limit of a handshake, from the accepted transport connection to its end. Default 10 s.
    pub deadline: Duration,
    /// Maximum number of handshakes at a time. Default 1024.
    pub total: usize,
    /// Maximum number of handshakes at a time from one IPv4 /24 or IPv6 /64. Default 256.
    pub per_network: usize,
    /// Maximum number of complete connections that wait for `accept`. Default 128.
    pub waiting: usize,
}

impl Default for HandshakeLimits {
    fn default() -> Self {
        Self {
            deadline: HANDSHAKE_DEADLINE,
            total: 1024,
            per_network: 256,
            waiting: 128,
        }
    }
}

impl HandshakeLimits {
    /// Sets the time limit of a handshake.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the maximum number of handshakes at a time, in total and per network.
    #[must_use]
    pub fn at_most(mut self, total: usize, per_network: usize) -> Self {
        self.total = total;
        self.per_network = per_network;
        self
    }
}
