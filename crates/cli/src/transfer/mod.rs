//! `tack send` and `tack recv`: files over one stream, verified and confirmed one by one.
//!
//! The protocol is described in `docs/transfer-protocol.md`. A blocking thread on each side reads or
//! writes files and hashes; a task moves buffers between it and the stream.

mod args;
mod buffers;
mod finisher;
mod holes;
pub(crate) mod inbound;
mod names;
pub(crate) mod outbound;
mod protocol;
mod queue;
mod receive;
mod report;
mod reserved;
mod send;
mod serve;
mod source;
mod staged;
mod store;
mod summary;
mod tally;
#[cfg(test)]
mod tests;

pub(crate) use args::{MAX_TRANSFERS, RecvArgs, SendArgs};
pub(crate) use names::printable;
