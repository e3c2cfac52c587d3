//! What becomes of a segment that belongs to no connection.

use tack_wire::SeqNum;

use super::id::ConnectionId;

/// Whose a segment is that no connection takes.
pub(super) enum Outcome {
    /// It was dealt with, and made this connection.
    Taken(Option<ConnectionId>),
    /// It may open a new incarnation of a connection in TIME-WAIT, whose initial sequence number
    /// comes after this one.
    Reopen(SeqNum),
    /// No connection and no listener wants it.
    Stray,
}
