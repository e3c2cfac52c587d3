//! The two hosts.

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

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}
