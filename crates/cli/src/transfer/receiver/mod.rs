//! `tack recv`: writes what arrives below one directory, and confirms it.

pub(super) mod admission;
pub(super) mod command;
pub(super) mod committer;
mod content;
mod cursor;
pub(super) mod existing;
pub(super) mod holder;
mod left;
mod offer;
mod part;
mod queue;
mod receive;
mod refused;
mod reserved;
pub(super) mod serve;
mod session;
mod staged;
pub(super) mod store;
