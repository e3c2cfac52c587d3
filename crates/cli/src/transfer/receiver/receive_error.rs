//! Why a transfer ended before its end.

use std::io;

use crate::transfer::protocol::Violation;

/// Why a transfer ended before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReceiveError {
    #[error(transparent)]
    Violation(#[from] Violation),
    /// An `UnexpectedEof`: the sender closed the connection, as it does when it is stopped.
    #[error("the connection to the sender was lost: {0}")]
    Stream(io::Error),
    #[error("timed out waiting for the sender's greeting")]
    NoGreeting,
    #[error("this receiver was stopped")]
    Stopped,
    #[error("the sender goes on over another connection")]
    Superseded,
    #[error("the transfer is not taken: {0}")]
    Declined(String),
    #[error("the receiving directory failed: {0}")]
    Storage(io::Error),
}

impl From<io::Error> for ReceiveError {
    fn from(error: io::Error) -> Self {
        Self::Stream(match error.kind() {
            // What `read_exact` says of it is about our buffers.
            io::ErrorKind::UnexpectedEof => io::Error::new(
                error.kind(),
                "the sender closed it before the end of the transfer",
            ),
            _ => error,
        })
    }
}
