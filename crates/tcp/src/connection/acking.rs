//! Acknowledging what the peer sends: from the policy's decision to the segment that leaves.
//!
//! An arrival is judged in `input.rs`; here the policy decides about it, and the acknowledgement
//! that it leads to is written; `output.rs` asks for it in its turn.

use alloc::boxed::Box;
use core::ops::Range;
use core::time::Duration;

use tack_base::range_set::RangeSet;
use tack_base::{Instant, StreamOffset};
use tack_wire::tack::{DataStamp, Sync};
use tack_wire::{Header, SeqNum};

use super::challenge::ChallengeLimit;
use super::repetitions::RepetitionLimit;
use super::timers::{ConnectionTimers, Timer};
use crate::ack::policy::{
    AckContract, AckDecision, AckReason, Carried, DataArrival, FeedbackWriter, ReportContext,
    SegmentOrder,
};
use crate::recv::duplicates::Reports;

/// Most received payload that lists may still answer, bytes.
const UNANSWERED: usize = 64 << 10;

/// What was received, as an acknowledgement reports it.
#[derive(Debug)]
pub(super) struct Received<'a> {
    /// Everything below this stream position is here.
    pub(super) next: StreamOffset,
    /// What is here above it.
    pub(super) ahead: &'a RangeSet<StreamOffset>,
    /// The peer's initial sequence number.
    pub(super) irs: SeqNum,
    /// SACK was agreed on.
    pub(super) sack: bool,
}

/// When this side acknowledges, and what its acknowledgements say.
#[derive(Debug)]
pub(super) struct Acking {
    policy: Box<dyn FeedbackWriter>,
    reports: Reports,
    /// An acknowledgement has to leave with the next output.
    pending: Option<AckReason>,
    /// It has to because the application read, and for no other reason.
    only_read: bool,
    /// Payload that arrived and that no lists of ours match yet in length, bytes.
    unanswered: usize,
    /// The position that the last segment acknowledged.
    last_sent: StreamOffset,
    repetitions: RepetitionLimit,
    lists: RepetitionLimit,
    challenges: ChallengeLimit,
}

impl Acking {
    /// Acknowledges as `policy` decides.
    pub(super) fn new(policy: Box<dyn FeedbackWriter>) -> Self {
        Self {
            policy,
            reports: Reports::default(),
            pending: None,
            only_read: false,
            unanswered: 0,
            last_sent: StreamOffset::SYN,
            repetitions: RepetitionLimit::of_data(),
            lists: RepetitionLimit::of_lists(),
            challenges: ChallengeLimit::default(),
        }
    }

    /// `policy` decides from now on.
    pub(super) fn set_policy(&mut self, policy: Box<dyn FeedbackWriter>) {
        self.policy = policy;
    }

    /// What the policy promises.
    pub(super) fn contract(&self) -> AckContract {
        self.policy.contract()
    }

    /// Heap held, bytes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.policy) + self.policy.memory()
    }

    /// The position that the last segment acknowledged (Last.ACK.sent of RFC 7323).
    #[inline]
    pub(super) fn last_sent(&self) -> StreamOffset {
        self.last_sent
    }

    /// The SYN-ACK left: it acknowledges the peer's SYN.
    pub(super) fn on_syn_ack_sent(&mut self) {
        self.last_sent = StreamOffset::FIRST_BYTE;
    }

    /// An acknowledgement has to leave.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// One has to leave that says more than fits beside a full payload. Each segment has the window
    /// and the cumulative number: where the application made room and nothing else is to be said,
    /// data that leaves now says it.
    #[inline]
    pub(super) fn is_pending_alone(&self, ahead: &RangeSet<StreamOffset>) -> bool {
        let says_more = || {
            let is_carried = self.only_read && self.policy.is_carried();
            self.policy.leaves_alone() && !is_carried || !self.reports.is_empty(ahead)
        };
        self.pending.is_some() && says_more()
    }

    // Decide.

    /// An acknowledgement has to leave with the next output. The strongest reason stays.
    pub(super) fn request(&mut self, reason: AckReason) {
        self.only_read = false;
        if self.pending != Some(AckReason::Loss) {
            self.pending = Some(reason);
        }
    }

    /// The application read, and the peer has to know at once how much more it may send, unless it
    /// `has_room` for a segment and the application is about to answer.
    pub(super) fn request_for_read(&mut self, has_room: bool) {
        if has_room && self.policy.awaits_answer() {
            return;
        }
        let only_read = self.pending.is_none() || self.only_read;
        self.request(AckReason::Window);
        self.only_read = only_read;
    }

    /// No acknowledgement leaves any more.
    pub(super) fn end(&mut self) {
        self.pending = None;
    }

    /// Does what the policy decided.
    fn follow(&mut self, decision: AckDecision, timers: &mut ConnectionTimers) {
        match decision {
            AckDecision::Nothing => {}
            AckDecision::Delayed(at) => {
                if self.pending.is_none()
                    && timers.get(Timer::DelayedAck).is_none_or(|set| at < set)
                {
                    timers.set(Timer::DelayedAck, at);
                }
            }
            AckDecision::Now(reason) => self.request(reason),
        }
    }

    /// Acknowledges what brings nothing new: at once, or a little later when there is much of it.
    pub(super) fn answer_repetition(
        &mut self,
        now: Instant,
        reason: AckReason,
        timers: &mut ConnectionTimers,
    ) {
        match self.repetitions.take(now) {
            Ok(()) => self.request(reason),
            Err(at) => self.follow(AckDecision::Delayed(at), timers),
        }
    }

    /// Acknowledges what looks like the lists of a report that lost its option, but seldom.
    pub(super) fn answer_lists(&mut self, now: Instant) {
        if self.lists.take(now).is_ok() {
            self.request(AckReason::Event);
        }
    }

    /// Answers a suspicious segment with an acknowledgement (RFC 5961), but not without limit.
    pub(super) fn challenge(&mut self, now: Instant) {
        if self.challenges.allow(now) {
            self.request(AckReason::Event);
        }
    }

    /// A segment with `len` bytes of payload arrived.
    #[inline]
    pub(super) fn on_segment(&mut self, len: usize) {
        self.unanswered = (self.unanswered + len).min(UNANSWERED);
    }

    /// The number of a segment lies far behind the largest one.
    pub(super) fn is_behind(&self, stamp: &DataStamp) -> bool {
        self.policy.is_behind(stamp)
    }

    /// A segment with this stamp left so long ago that its sequence number may mean something else
    /// by now.
    pub(super) fn is_outdated(&mut self, arrived: Instant, stamp: &DataStamp) -> bool {
        self.policy.is_outdated(arrived, stamp)
    }

    /// Data arrived and was taken, or was here already.
    #[inline]
    pub(super) fn on_data(&mut self, arrival: &DataArrival, timers: &mut ConnectionTimers) {
        match self.policy.on_data(arrival) {
            AckDecision::Now(reason) if arrival.order == SegmentOrder::Duplicate => {
                self.answer_repetition(arrival.now, reason, timers);
            }
            decision => self.follow(decision, timers),
        }
    }

    /// Data or a FIN arrived that is answered in any case: the policy only learns of it.
    pub(super) fn on_answered_data(
        &mut self,
        arrival: &DataArrival,
        timers: &mut ConnectionTimers,
    ) {
        let decision = self.policy.on_data(arrival);
        if !matches!(decision, AckDecision::Now(_)) {
            self.follow(decision, timers);
        }
    }

    /// The FIN was reached with this segment, which has no payload.
    pub(super) fn on_fin(&mut self, arrival: &DataArrival) {
        self.policy.on_data(arrival);
        self.request(AckReason::Event);
    }

    /// Data at `position` arrived above a hole.
    pub(super) fn on_out_of_order(&mut self, position: StreamOffset) {
        self.reports.on_out_of_order(position);
    }

    /// Data arrived that was here already.
    pub(super) fn on_duplicate(&mut self, range: Range<StreamOffset>) {
        self.reports.on_duplicate(range);
    }

    /// The deadline of the policy is reached.
    pub(super) fn on_timer(&mut self, now: Instant, timers: &mut ConnectionTimers) {
        let decision = self.policy.on_timer(now);
        self.follow(decision, timers);
    }

    /// The handshake measured a round trip.
    pub(super) fn on_handshake(&mut self, round_trip: Duration) {
        self.policy.on_handshake(round_trip);
    }

    /// The peer, as a sender of data, states what it measures. True when that is newer than what it
    /// stated before.
    pub(super) fn on_sync(
        &mut self,
        now: Instant,
        sync: &Sync,
        timers: &mut ConnectionTimers,
    ) -> bool {
        let Some(decision) = self.policy.on_sync(now, sync) else {
            return false;
        };
        self.follow(decision, timers);
        true
    }

    // Write.

    /// Pure acknowledgements may have lists behind their headers.
    #[inline]
    pub(super) fn has_lists(&self) -> bool {
        self.policy.leaves_alone()
    }

    /// Writes into `header` and `lists` what a pure acknowledgement reports. Returns the length of
    /// the lists.
    pub(super) fn write(
        &mut self,
        now: Instant,
        received: &Received<'_>,
        header: &mut Header,
        lists: &mut [u8],
    ) -> usize {
        // All lists together are not longer than the payload that came: nobody's traffic can be
        // multiplied here.
        let room = lists.len().min(self.unanswered.max(4));
        let context = ReportContext {
            now,
            reason: self.reason(),
            received_to: received.next,
            ahead: received.ahead,
        };
        let Some((option, len)) = self.policy.report(&context, &mut lists[..room]) else {
            if received.sack {
                let capacity = header.options.sack_capacity();
                header.options.sack = self.reports.take(received.ahead, received.irs, capacity);
            } else {
                self.reports = Reports::default();
            }
            return 0;
        };
        self.unanswered = self.unanswered.saturating_sub(len);
        header.options.tack = Some(option);
        // They are taken up before the policy gave the peer up: a report leaves no room.
        header.options.timestamps = None;
        self.reports = Reports::default();
        len
    }

    /// Why the acknowledgement leaves that is written now.
    pub(super) fn reason(&self) -> AckReason {
        self.pending.unwrap_or(AckReason::Event)
    }

    /// A segment left that acknowledges everything below `rcv_nxt`.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        carried: Carried,
        rcv_nxt: StreamOffset,
        timers: &mut ConnectionTimers,
    ) {
        self.pending = None;
        timers.stop(Timer::DelayedAck);
        self.last_sent = rcv_nxt;
        if let Some(at) = self.policy.on_ack_sent(now, carried) {
            timers.set(Timer::DelayedAck, at);
        }
    }
}
