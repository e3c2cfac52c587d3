//! The meeting: the first messages inside an encrypted stream, in which both sides prove who they
//! are.
//!
//! One side waits, the other connects; either may be the one that sends files. TLS 1.3 has
//! authenticated the keys of both sides to each other, and nothing more: whether the key is the
//! right one is decided here. The connecting side proves a ticket, a code, or that the other side
//! knows its key, and the waiting side answers with a welcome, or with the reason why not, which
//! TLS could not say.
//!
//! [`Connecting`] and [`Waiting`] are the two state machines. They neither wait nor read a clock:
//! the caller carries each message over the stream behind its length (two bytes, at most
//! [`MAX_MESSAGE`]), and gives up a peer that is silent. `docs/meeting-protocol.md` describes the
//! messages.

mod connecting;
mod message;
mod outcome;
mod proof;
#[cfg(test)]
mod tests;
mod waiting;

use tack::secure::PublicKey;

pub use connecting::{Connecting, Credential};
pub use message::{MAX_MESSAGE, Malformed, Message};
pub use outcome::{Authenticated, Failed, Intent, ProofMethod, Refusal, Step};
pub use waiting::{Host, Waiting};

/// Label of the TLS exporter (RFC 8446 §7.5) whose 32 bytes bind the proofs to the stream; its
/// context is empty.
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER-tack-meeting-1";

/// The properties of an encrypted stream that proofs are bound to.
#[derive(Clone, Debug)]
pub struct Channel {
    /// 32 bytes of the TLS exporter under [`EXPORTER_LABEL`].
    pub exporter: [u8; 32],
    /// The key that this side showed in TLS.
    pub own_key: PublicKey,
    /// The key that the other side showed.
    pub peer_key: PublicKey,
}
