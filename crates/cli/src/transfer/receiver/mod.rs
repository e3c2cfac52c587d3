//! `tack recv`: writes what arrives below one directory, and confirms it.

pub(super) mod admission;
pub(super) mod command;
pub(super) mod committer;
mod content;
mod cursor;
pub(super) mod existing;
mod flusher;
mod hard_links;
pub(super) mod holder;
pub(super) mod inbox;
mod mirror;
mod naming;
mod offer;
mod output;
pub(super) mod part;
mod pending_directories;
pub(super) mod progress;
mod queue;
mod receive;
mod receive_error;
mod refused;
mod removal;
mod reserved;
pub(super) mod serve;
mod session;
mod staged;
pub(super) mod store;
