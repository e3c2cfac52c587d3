//! Delayed acknowledgements (RFC 9293 §3.8.6.3, RFC 5681 §4.2): every L full-sized segments or when
//! the timer runs out; at once on anything that is not plain in-order data. L = 4, 8, 16 are the
//! "ACK thinning" baselines: the same rule with a larger L.

use core::time::Duration;

use tack_base::Instant;

use super::policy::{
    AckContract, AckDecision, AckPolicy, AckReason, Carried, DataArrival, FeedbackWriter,
    SegmentOrder,
};

/// The delayed policy.
#[derive(Debug)]
pub(crate) struct DelayedAck {
    segments: u8,
    timer: Duration,
    /// The timer runs for data not acknowledged yet.
    waiting: bool,
}

impl DelayedAck {
    /// One acknowledgement every `segments` full-sized segments, or `timer` after the first of
    /// them.
    pub(crate) fn new(segments: u8, timer: Duration) -> Self {
        Self {
            segments: segments.max(1),
            timer,
            waiting: false,
        }
    }
}

impl AckPolicy for DelayedAck {
    fn contract(&self) -> AckContract {
        AckContract {
            max_delay: self.timer,
            max_segments: u32::from(self.segments),
            ..AckContract::LEGACY
        }
    }

    fn on_data(&mut self, arrival: &DataArrival) -> AckDecision {
        if arrival.order != SegmentOrder::InOrder {
            return AckDecision::Now(AckReason::Loss);
        }
        if arrival.fin || arrival.ce_changed {
            return AckDecision::Now(AckReason::Event);
        }
        // Bytes, not segments: a peer of small segments gets the same acknowledgements per byte.
        if arrival.unacknowledged >= u64::from(self.segments) * arrival.peer_mss {
            return AckDecision::Now(AckReason::Threshold);
        }
        if self.waiting {
            return AckDecision::Nothing;
        }
        self.waiting = true;
        AckDecision::Delayed(arrival.now + self.timer)
    }

    fn on_ack_sent(&mut self, _now: Instant, _carried: Carried) -> Option<Instant> {
        self.waiting = false;
        None
    }
}

impl FeedbackWriter for DelayedAck {}
