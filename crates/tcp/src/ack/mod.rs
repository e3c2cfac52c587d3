//! When to acknowledge: the policy, its decisions, and the contract that the rest of the stack reads.
//!
//! Nothing outside this room asks which policy runs. Loss recovery, RTO, rate measurement and
//! pacing read the [`AckContract`] instead.

mod kind;

pub use kind::{AckKind, ParseAckKindError};
