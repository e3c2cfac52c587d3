//! Who talks to whom: keys, tickets, codes, and the conversation in which two programs prove them
//! to each other.
//!
//! Everything here is pure: no socket, no clock, no file. The program brings an encrypted stream
//! (TLS 1.3, whose keys and exporter are a [`Channel`]), and carries the messages of [`meeting`]
//! over it. What is promised against whom is in `docs/security.md`.
#![forbid(unsafe_code)]

pub mod code;
pub mod meeting;
mod rotation;
mod secret;
mod short;
#[cfg(test)]
mod testing;
pub mod ticket;

pub use code::Code;
pub use meeting::Channel;
pub use rotation::{MAX_ROTATIONS, Rotation, leads};
pub use secret::Secret;
pub use short::short;
pub use tack::secure::{Identity, PublicKey};
pub use ticket::Ticket;
