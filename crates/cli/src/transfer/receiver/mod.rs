//! `tack recv`: writes what arrives below one directory, and confirms it.

pub(super) mod command;
pub(super) mod committer;
pub(super) mod existing;
mod queue;
mod receive;
mod refused;
mod reserved;
pub(super) mod serve;
mod session;
mod staged;
pub(super) mod store;
