//! Errors of the verbs of an endpoint.

/// Why a connection cannot be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The four-tuple is in use.
    #[error("a connection with these ports exists")]
    InUse,
    /// All local ports towards this peer are in use, or the endpoint holds its maximum of
    /// connections or memory.
    #[error("no local port is free")]
    Exhausted,
}

/// Why a port cannot be listened on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Somebody listens on it.
    #[error("the port is in use")]
    InUse,
}
