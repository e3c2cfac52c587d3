//! Acknowledge every data segment at once (Linux TCP_QUICKACK).

use core::time::Duration;

use super::policy::{
    AckContract, AckDecision, AckPolicy, AckReason, DataArrival, FeedbackWriter, SegmentOrder,
};

/// The per-packet policy.
#[derive(Debug)]
pub(crate) struct Every;

impl AckPolicy for Every {
    fn contract(&self) -> AckContract {
        AckContract {
            max_delay: Duration::ZERO,
            max_segments: 1,
            ..AckContract::LEGACY
        }
    }

    fn on_data(&mut self, arrival: &DataArrival) -> AckDecision {
        AckDecision::Now(if arrival.order == SegmentOrder::InOrder {
            AckReason::Threshold
        } else {
            AckReason::Loss
        })
    }
}

impl FeedbackWriter for Every {}
