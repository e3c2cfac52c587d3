//! When to acknowledge: the policy, its decisions, and the contract that the rest of the stack reads.
//!
//! Nothing outside this room asks which policy runs. Loss recovery, RTO, rate measurement and
//! pacing read the `AckContract` instead.

mod delayed;
mod every;
mod kind;
pub(crate) mod policy;

use alloc::boxed::Box;

pub use kind::{AckKind, ParseAckKindError};

impl AckKind {
    /// The policy of this kind, fresh.
    pub(crate) fn build(self) -> Box<dyn policy::AckPolicy> {
        match self {
            Self::Every => Box::new(every::Every),
            Self::Delayed { segments, timer } => {
                Box::new(delayed::DelayedAck::new(segments, timer))
            }
        }
    }
}
