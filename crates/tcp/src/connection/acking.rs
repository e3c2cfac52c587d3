//! Acknowledging what the peer sends: from the policy's decision to the segment that leaves.
//!
//! An arrival is judged in `input.rs`; here the policy decides about it, and the acknowledgement
//! that it leads to is written; `output.rs` asks for it in its turn.

use alloc::boxed::Box;
use core::ops::Range;
use core::time::Duration;

use tack_base::range_set::RangeSet;
use tack_base::{Instant, Rate};
use tack_wire::tack::{DataStamp, Lists, ReportKind, Sync};
use tack_wire::{Ecn, Flags, Header, SeqNum, TackOption};

use super::Connection;
use super::output::{Filled, append, single};
use super::repetitions::RepetitionLimit;
use super::timers::{ConnectionTimers, Timer};
use crate::ack::policy::{
    AckContract, AckDecision, AckReason, Carried, DataArrival, FeedbackWriter, ReportContext,
    SegmentOrder,
};
use crate::recv::duplicates::Reports;
use crate::stats::Stats;
use crate::trace::{AckSent, Traced};
use crate::transmit::Batch;

/// Longest data field of a report, bytes.
const MAX_LISTS: usize = 1400;
/// Most received payload that lists may still answer, bytes.
const UNANSWERED: usize = 64 << 10;

/// What was received, as an acknowledgement reports it.
#[derive(Debug)]
pub(super) struct Received<'a> {
    /// Everything below this stream position is here.
    pub(super) next: u64,
    /// What is here above it.
    pub(super) ahead: &'a RangeSet,
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
    /// Payload that arrived and that no lists of ours match yet in length, bytes.
    unanswered: usize,
    /// The position that the last segment acknowledged.
    last_sent: u64,
    repetitions: RepetitionLimit,
}

impl Acking {
    /// Acknowledges as `policy` decides.
    pub(super) fn new(policy: Box<dyn FeedbackWriter>) -> Self {
        Self {
            policy,
            reports: Reports::default(),
            pending: None,
            unanswered: 0,
            last_sent: 0,
            repetitions: RepetitionLimit::new(),
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
    pub(super) fn last_sent(&self) -> u64 {
        self.last_sent
    }

    /// The SYN-ACK left: it acknowledges the peer's SYN.
    pub(super) fn on_syn_ack_sent(&mut self) {
        self.last_sent = 1;
    }

    /// An acknowledgement has to leave.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// One has to leave that says more than fits beside a full payload.
    #[inline]
    pub(super) fn is_pending_alone(&self, ahead: &RangeSet) -> bool {
        self.pending.is_some() && (self.policy.leaves_alone() || !self.reports.is_empty(ahead))
    }

    // Decide.

    /// An acknowledgement has to leave with the next output. The strongest reason stays.
    pub(super) fn request(&mut self, reason: AckReason) {
        if self.pending != Some(AckReason::Loss) {
            self.pending = Some(reason);
        }
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

    /// A segment with `len` bytes of payload arrived.
    #[inline]
    pub(super) fn on_segment(&mut self, len: usize) {
        self.unanswered = (self.unanswered + len).min(UNANSWERED);
    }

    /// A segment with this stamp left so long ago that its sequence number may mean something else
    /// by now.
    pub(super) fn is_outdated(&mut self, arrived: Instant, stamp: &DataStamp) -> bool {
        self.policy.is_outdated(arrived, stamp)
    }

    /// Data arrived and was taken, or was here already.
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
    pub(super) fn on_out_of_order(&mut self, position: u64) {
        self.reports.on_out_of_order(position);
    }

    /// Data arrived that was here already.
    pub(super) fn on_duplicate(&mut self, range: Range<u64>) {
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

    /// Writes into `header` and `lists` what a pure acknowledgement reports. Returns the length of
    /// the lists.
    fn write(
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
    fn reason(&self) -> AckReason {
        self.pending.unwrap_or(AckReason::Event)
    }

    /// A segment left that acknowledges everything below `rcv_nxt`.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        carried: Carried,
        rcv_nxt: u64,
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

impl Connection {
    /// A segment left that acknowledges everything received in order.
    pub(super) fn on_ack_sent(&mut self, now: Instant, carried: Carried) {
        let rcv_nxt = self.rcv_nxt();
        self.acking.on_sent(now, carried, rcv_nxt, &mut self.timers);
    }

    /// Appends the acknowledgement that is pending, without payload.
    pub(super) fn emit_pure_ack(&mut self, now: Instant, batch: &mut Batch<'_>) -> Filled {
        let flags = Flags::ACK.with(self.ecn.flags(false));
        let mut header = self.header(now, flags);
        let mut lists = [0; MAX_LISTS];
        // The option may take all of the option area: the rest of a full segment is for the lists.
        let room = usize::from(self.mtu.mss())
            .saturating_sub(40)
            .clamp(4, MAX_LISTS);
        let received = Received {
            next: self.reassembly.next(),
            ahead: self.reassembly.ahead(),
            irs: self.irs,
            sack: self.handshake.sack,
        };
        let reason = self.acking.reason();
        let len = self
            .acking
            .write(now, &received, &mut header, &mut lists[..room]);
        if len > 0 {
            // Should the option get lost on the way, the lists must not pass for data: they come in
            // the place of bytes that the peer has acknowledged.
            header.seq = SeqNum::at(self.identity.iss, self.snd_una) - len as u32;
        }
        self.on_ack_sent(now, Carried::Alone);
        count(&mut self.counters, &header, reason, len);
        self.trace_ack(now, &header, reason, &lists[..len]);
        let start = batch.buf.len();
        append(batch, &header, &lists[..len], &[]);
        Filled::one(batch.buf.len() - start, Ecn::NotEct)
    }

    /// Appends what the peer has to know about our sending.
    pub(super) fn emit_sync(&mut self, now: Instant, sync: Sync, batch: &mut Batch<'_>) -> Filled {
        let flags = Flags::ACK.with(self.ecn.flags(false));
        let mut header = self.header(now, flags);
        header.options.tack = Some(TackOption::Sync(sync));
        self.on_ack_sent(now, Carried::OnSync);
        self.counters.syncs += 1;
        self.trace.add(now, || Traced::SyncSent {
            min_rtt: Duration::from_micros(sync.rtt_min.into()),
            ack_loss_rate: f64::from(sync.ack_loss_rate) / 65_536.0,
            startup: sync.startup,
        });
        single(batch, &header, Ecn::NotEct)
    }

    fn trace_ack(&mut self, now: Instant, header: &Header, reason: AckReason, lists: &[u8]) {
        let (ack, above) = (self.rcv_nxt(), self.reassembly.ahead().positions());
        let window = u64::from(header.window) << self.receive_window.shift();
        self.trace.add(now, || {
            let (form, number, rate, period) = match &header.options.tack {
                Some(TackOption::Report(report)) => (
                    if report.kind == ReportKind::Tack {
                        "tack"
                    } else {
                        "iack"
                    },
                    Some(report.number),
                    report.rate.map(Rate::from_bytes_per_sec),
                    Some(Duration::from_micros(report.period.into())),
                ),
                Some(TackOption::Loss(report)) => ("iack", Some(report.number), None, None),
                _ if header.options.sack.is_empty() => ("ack", None, None, None),
                _ => ("sack", None, None, None),
            };
            let listed = Lists::parse(lists).ok();
            let sacked = header.options.sack.len();
            Traced::AckSent(AckSent {
                reason: reason.name(),
                form,
                number,
                ack,
                above,
                blocks: listed.map_or(sacked, |lists| lists.blocks().count()) as u16,
                gaps: listed.map_or(0, |lists| lists.gaps().count()) as u16,
                rate,
                period,
                window,
            })
        });
    }
}

/// Counts a pure acknowledgement with `listed` bytes of lists.
fn count(counters: &mut Stats, header: &Header, reason: AckReason, listed: usize) {
    counters.acks += 1;
    counters.ack_bytes += (header.encoded_len() + listed) as u64;
    let periodic = matches!(
        header.options.tack,
        Some(TackOption::Report(report)) if report.kind == ReportKind::Tack
    );
    counters.acks_by_timer += u64::from(reason == AckReason::Timer);
    match reason {
        AckReason::Loss | AckReason::Threshold | AckReason::Timer if periodic => {
            counters.acks_tack += 1
        }
        AckReason::Threshold | AckReason::Timer => counters.acks_delayed += 1,
        AckReason::Loss => counters.acks_loss += 1,
        AckReason::Window => counters.acks_window += 1,
        AckReason::Frequency => counters.acks_sync += 1,
        AckReason::Event => counters.acks_event += 1,
    }
}
