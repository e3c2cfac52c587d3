//! How a connection ended, and the reset that may go with it.

use core::fmt;

use tack_wire::SeqNum;

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum CloseReason {
    /// Both streams ended and were acknowledged.
    Graceful,
    /// The peer reset it.
    Reset,
    /// The peer answered the SYN with a reset.
    Refused,
    /// No acknowledgement within the user timeout, the SYN retries, or the keep-alive probes.
    TimedOut,
    /// The network says that nobody has the peer's address or port, and can be trusted in it.
    Unreachable,
    /// This side has no route to the peer any more.
    NoRoute,
    /// This side aborted it.
    Aborted,
    /// The peer acknowledged what had not been sent.
    Dishonest,
    /// The endpoint's memory was used up, and the peer's window had been closed for a minute.
    NoMemory,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Graceful => "the connection is closed",
            Self::Reset => "the peer reset the connection",
            Self::Refused => "the peer refused the connection",
            Self::TimedOut => "the peer does not answer",
            Self::Unreachable => "nobody has the peer's port any more",
            Self::NoRoute => "there is no route to the peer",
            Self::Aborted => "the connection was aborted",
            Self::Dishonest => "the peer acknowledged what it was not sent",
            Self::NoMemory => "no memory is left for a peer that takes nothing",
        })
    }
}

/// Whether the connection is over.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// How, once it is.
    pub(super) reason: Option<CloseReason>,
    pub(super) reset: Option<PendingReset>,
}

/// A reset that has to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PendingReset {
    pub(super) seq: SeqNum,
    /// It acknowledges what was received.
    pub(super) acknowledges: bool,
}
