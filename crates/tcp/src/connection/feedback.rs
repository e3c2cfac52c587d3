//! What the peer's acknowledgements say and promise, and what the peer has to know about our
//! sending.

use alloc::boxed::Box;

use tack_base::Instant;
use tack_wire::Segment;
use tack_wire::tack::Sync;

use super::Connection;
use crate::ack::feedback::{AckInfo, FeedbackReader, InvalidFeedback, ReadContext, SenderState};
use crate::ack::policy::AckContract;

/// The peer's acknowledgements.
#[derive(Debug)]
pub(super) struct PeerFeedback {
    reader: Box<dyn FeedbackReader>,
    /// What the acknowledgement at hand says; kept so that reading allocates nothing.
    pub(super) info: AckInfo,
    contract: AckContract,
    /// What has to leave with the next output.
    sync: Option<Sync>,
}

impl PeerFeedback {
    /// Acknowledgements are read by `reader`.
    pub(super) fn new(reader: Box<dyn FeedbackReader>) -> Self {
        Self {
            info: AckInfo::default(),
            contract: reader.contract(),
            sync: None,
            reader,
        }
    }

    /// What the peer promises, as far as known.
    #[inline]
    pub(super) fn contract(&self) -> &AckContract {
        &self.contract
    }

    /// False once what the peer reports beyond its cumulative acknowledgement has turned out to
    /// make no sense.
    #[inline]
    pub(super) fn is_intelligible(&self) -> bool {
        self.reader.is_intelligible()
    }

    /// True as long as it is of use to stamp segments.
    #[inline]
    pub(super) fn stamps(&self) -> bool {
        self.reader.stamps()
    }

    /// True when payload that comes with a feedback option is outside the sequence space.
    #[inline]
    pub(super) fn separates_lists(&self) -> bool {
        self.reader.separates_lists()
    }

    /// Heap held, bytes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.reader)
    }

    /// Gives back the heap that is kept for the next acknowledgement.
    pub(super) fn trim(&mut self) {
        self.info.trim();
    }

    /// Reads what an acknowledgement says beyond its number into [`Self::info`].
    ///
    /// # Errors
    /// [`InvalidFeedback`]: the whole segment is to be dropped.
    fn read(
        &mut self,
        context: &ReadContext<'_>,
        segment: &Segment<'_>,
        lists: &[u8],
    ) -> Result<(), InvalidFeedback> {
        self.info.clear();
        self.reader.read(context, segment, lists, &mut self.info)
    }

    /// Takes what has to leave with the next output.
    pub(super) fn take_sync(&mut self) -> Option<Sync> {
        self.sync.take()
    }
}

impl Connection {
    /// Reads what the acknowledgement says beyond its number. False when it says what cannot be:
    /// then it is dropped.
    pub(super) fn read_feedback(
        &mut self,
        arrived: Instant,
        segment: &Segment<'_>,
        lists: &[u8],
        ack: u64,
    ) -> bool {
        let context = ReadContext {
            arrived,
            ack,
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            iss: self.identity.iss,
            largest_window: self.window.largest(),
            mss: self.max_payload(),
            smoothed_rtt: self.rtt.smoothed().unwrap_or_default(),
            log: &self.log,
        };
        let valid = self.feedback.read(&context, segment, lists).is_ok();
        self.follow_contract();
        if !valid {
            self.counters.dropped_segments += 1;
            self.counters.invalid_reports += 1;
        }
        valid
    }

    /// What the peer promises decides how losses are found, and whether segments are stamped.
    fn follow_contract(&mut self) {
        let contract = self.feedback.reader.contract();
        let before = self.feedback.contract;
        if contract != before {
            if contract.interval != before.interval
                || contract.gap != before.gap
                || contract.least_segments != before.least_segments
            {
                self.cc.on_feedback_threshold(contract.least_segments);
                self.cc.on_feedback_interval(contract.interval);
                self.cc.on_feedback_gap(contract.gap);
            }
            if contract.loss_detected_by != before.loss_detected_by {
                // The peer's reports do not get through, or do again.
                let detector = contract.loss_detected_by.detector();
                self.recovery.set_detector(detector);
                self.audit.end();
            }
            self.feedback.contract = contract;
        }
        self.numbering.set(self.feedback.stamps());
    }

    /// Lets the peer know what it needs of our sending.
    pub(super) fn inform_peer(&mut self, now: Instant) {
        let (Some(min_rtt), Some(smoothed_rtt)) = (self.rtt.min(), self.rtt.smoothed()) else {
            return;
        };
        if self.counters.data_segments == 0 {
            return;
        }
        let feedback = &mut self.feedback;
        let newest = feedback.info.round_trip.map(|sample| sample.newest);
        let state = SenderState {
            now,
            min_rtt,
            smoothed_rtt,
            round_trip: newest.map_or(smoothed_rtt, |newest| newest.max(smoothed_rtt)),
            startup: self.cc.in_slow_start(),
        };
        if let Some(sync) = feedback.reader.poll_sync(&state) {
            feedback.sync = Some(sync);
        }
    }
}
