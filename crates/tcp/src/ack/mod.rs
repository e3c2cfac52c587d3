//! When to acknowledge: the policy, its decisions, and the contract that the rest of the stack
//! reads.
//!
//! Nothing outside this room asks which policy runs. Loss recovery, RTO, rate measurement and
//! pacing read the `AckContract` instead.

mod custom;
mod delayed;
mod every;
pub(crate) mod feedback;
mod kind;
pub(crate) mod policy;
mod tack;

use alloc::boxed::Box;

pub use custom::AckPolicyFactory;
pub use kind::{AckKind, LossReporting, ParseAckKindError, Settle, TackParams, Timing};
pub use policy::{
    AckContract, AckDecision, AckPolicy, AckReason, Carried, DataArrival, SegmentOrder,
};

use tack_wire::TackOption;
use tack_wire::tack::TackSyn;

use crate::recovery::LossDetector;
use crate::recovery::rack::Rack;
use crate::recovery::reported::Reported;
use crate::send::numbering::Numbering;
use feedback::FeedbackReader;
use policy::{FeedbackWriter, LossDetectedBy};

/// The parts of a connection that an acknowledgement mechanism provides, as one.
#[derive(Debug)]
pub(crate) struct Mechanism {
    /// The receiver's half.
    pub(crate) policy: Box<dyn FeedbackWriter>,
    /// The sender's half.
    pub(crate) reader: Box<dyn FeedbackReader>,
    /// Who finds losses.
    pub(crate) detector: Box<dyn LossDetector>,
    /// What data segments are stamped with.
    pub(crate) numbering: Numbering,
}

impl LossDetectedBy {
    /// The sender's detector, where losses are found like this.
    pub(crate) fn detector(self) -> Box<dyn LossDetector> {
        match self {
            Self::Sender => Box::new(Rack::new()),
            Self::Receiver => Box::<Reported>::default(),
        }
    }
}

impl AckKind {
    /// The policy towards a peer that agreed on nothing.
    pub(crate) fn build(self) -> Box<dyn FeedbackWriter> {
        match self {
            Self::Every => Box::new(every::Every),
            Self::Delayed { segments, timer } => {
                Box::new(delayed::DelayedAck::new(segments, timer))
            }
            Self::Tack(params) => Box::new(delayed::DelayedAck::new(2, params.timer)),
        }
    }

    /// What a SYN offers for this policy.
    pub(crate) fn offer(self) -> Option<TackOption> {
        match self {
            Self::Tack(params) => Some(TackOption::Syn(tack::TackPolicy::offer(&params))),
            _ => None,
        }
    }

    /// The mechanism that both sides want, where the peer offered `peer`. `sack` says that SACK was
    /// agreed.
    pub(crate) fn agree(self, peer: TackSyn, sack: bool) -> Option<Mechanism> {
        let Self::Tack(params) = self else {
            return None;
        };
        Some(Mechanism {
            policy: Box::new(tack::TackPolicy::new(params)),
            reader: Box::new(tack::TackReader::new(peer, sack)),
            detector: LossDetectedBy::Receiver.detector(),
            numbering: Numbering::on(),
        })
    }
}
