//! Bounds on handshakes.

use std::time::Duration;

/// How long a handshake may take unless told otherwise: several retransmissions on a bad path.
pub(super) const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

/// How many handshakes a listener has under way, and for how long.
///
/// A handshake takes some 20 KiB at most besides the connection below: what rustls keeps, and 16
/// KiB of what the peer sends. When a limit is reached, the oldest handshake of the network that
/// has the most is given up for the new one, so that a flood of peers that never finish keeps no
/// others out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HandshakeLimits {
    /// From the first byte that may arrive to the end of the handshake. Default 10 s.
    pub deadline: Duration,
    /// Most at a time. Default 1024.
    pub total: usize,
    /// Most at a time of one IPv4 /24 or IPv6 /64. Default 256.
    pub per_network: usize,
    /// Most connections that are complete and wait for `accept`. Default 128.
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
    /// Sets the deadline.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the most at a time, in all and of one network.
    #[must_use]
    pub fn at_most(mut self, total: usize, per_network: usize) -> Self {
        self.total = total;
        self.per_network = per_network;
        self
    }
}
