//! `tack send`: reads files, and reports which of them the receiver confirmed.

pub(super) mod command;
pub(super) mod confirmations;
pub(super) mod send;
pub(super) mod source;
