//! The two hosts.

use std::net::SocketAddr;

/// One of the two hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Side {
    /// The one that connects.
    Client,
    /// The one that listens.
    Server,
}

impl Side {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    pub(super) const fn index(self) -> usize {
        self as usize
    }

    pub(super) fn address(self) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1 + self.index() as u8], 0))
    }
}
