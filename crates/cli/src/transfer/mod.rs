//! `tack send` and `tack recv`: files over one stream, verified and confirmed one by one.
//!
//! The protocol is described in `docs/transfer-protocol.md`. A blocking thread on each side reads
//! or writes files and hashes, with helpers where groups are compared; a task moves buffers between
//! it and the stream.

mod ahead;
#[cfg(test)]
mod any_script;
mod args;
mod arrived;
mod bars;
mod buffers;
pub(crate) mod channel;
mod current_file;
mod dialer;
mod groups;
mod holes;
mod listener;
mod names;
pub(crate) mod pace;
mod pages;
mod pause;
mod protocol;
mod receiver;
mod report;
mod sender;
mod starts;
mod summary;
#[cfg(test)]
mod tests;

pub(crate) use args::{MAX_TRANSFERS, RecvArgs, SendArgs, TransportArgs};
pub(crate) use names::printable;
pub(crate) use receiver::command::recv;
pub(crate) use receiver::existing::Existing;
pub(crate) use receiver::inbox::{Inbox, refuse_transfer};
pub(crate) use sender::command::send;
pub(crate) use sender::offer::offer;
