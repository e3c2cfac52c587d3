//! `tack send`: reads files, and reports which of them the receiver confirmed.

mod attempts;
mod bad_answer;
pub(super) mod command;
pub(super) mod confirmations;
mod content;
mod directories;
pub(super) mod exclude;
mod extras;
mod mirror;
mod monitor;
pub(super) mod offer;
pub(super) mod options;
pub(super) mod progress;
pub(super) mod send;
mod walk;
