//! Frames of the file-transfer protocol: bytes to values and back, every length bounded.
//!
//! The text for implementers of other programs is `docs/transfer-protocol.md`. A frame is one byte
//! of kind, four bytes of payload length (big-endian, as every number here) and the payload.

mod fields;
mod frame;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub(crate) use frame::{
    Entry, HEAD, Hash, Head, Kind, MAX_ASKED, MAX_CONTROL, MAX_DATA, MAX_DEPTH, MAX_EXTRAS,
    MAX_HOLE, MAX_HOLES, MAX_NAME, MAX_OFFERED, MAX_TARGET, Modified, NameRules, Refusal, Taken,
    Value, Violation,
};
pub(crate) use reply::{Kept, Reply};
pub(crate) use request::{Hello, Request, data_head};
