//! TACK at the receiver of data: when to acknowledge, and what to say.
//!
//! A periodic acknowledgement leaves when L full-sized segments wait *and* RTTmin/beta has passed:
//! the lower of the two frequencies bw/(L·MSS) and beta/RTTmin, without having to know bw. One that
//! the beginning of a burst makes due waits for the end of the burst. Instant ones report loss, the
//! window and connection events. A remainder waits no longer than delayed acknowledgements would
//! make it, and while the sender still probes for capacity a quarter of RTTmin/beta
//! is enough.

mod arrival_rate;
mod awaited;
mod back_queue;
mod blocks;
mod burst;
mod carried;
mod conversation;
mod fallback;
mod frontier;
mod gaps;
mod hearing;
mod lists;
mod offered;
mod one_way;
mod path;
mod reader;
mod repeats;
mod report;
mod report_order;
mod report_size;
mod report_work;
mod schedule;
#[cfg(test)]
mod tests;

use core::ops::Range;
use core::time::Duration;

use tack_base::{Instant, StreamOffset};
use tack_wire::TackOption;
use tack_wire::tack::{DataStamp, Sync, TackSyn};

use super::delayed::DelayedAck;
use super::kind::TackParams;
use super::policy::{
    AckContract, AckDecision, AckPolicy, AckReason, Carried, DataArrival, FeedbackWriter,
    LossDetectedBy, ReportContext, SegmentOrder,
};
use arrival_rate::ArrivalMeter;
use blocks::Blocks;
use gaps::{Arrival, Gaps};
use one_way::OneWayDelays;
use path::{Absence, Return, Run};
pub(super) use reader::TackReader;
use report_size::ReportSize;
use report_work::ReportWork;
use schedule::{DueReport, Schedule};

/// Bytes in full segments after which a segment is a copy from another time: half of the sequence
/// space, twice the largest window.
const OUTDATED_BYTES: u64 = 1 << 31;
/// The same in segments, at least and at most.
const OUTDATED: Range<u64> = 1 << 14..1 << 20;
/// The receiver's policy.
#[derive(Debug)]
pub(crate) struct TackPolicy {
    schedule: Schedule,
    /// Number of the newest [`Sync`].
    sync_number: Option<u32>,
    /// Number of the next report.
    next_report: u32,
    /// The last report listed gaps.
    listed_gaps: bool,
    /// When the last report left that told of something new.
    last_arrivals: Option<Instant>,
    gaps: Gaps,
    /// A loss was settled and not reported yet.
    loss_due: bool,
    /// The segment with the largest number brought nothing new.
    repeated: bool,
    window_closing: bool,
    /// A report is due because the window is nearly used up, or full and at least half of it is
    /// not acknowledged.
    window_used: Option<AckReason>,
    delays: OneWayDelays,
    meter: ArrivalMeter,
    /// Data comes without stamps: something on the path strips them, or the peer sees no reports.
    fallback: Option<DelayedAck>,
    /// Segments without a stamp.
    absence: Absence,
    /// Segments with one within a fallback.
    again: Return,
    /// Segments in a row whose numbers seem to be from another time.
    outdated: Run,
    /// What ends here arrived without a number, and none arrived since that shows that it had
    /// left.
    unnumbered_to: StreamOffset,
    /// When the first of that arrived.
    unnumbered_since: Instant,
    /// End of the data received.
    highest: StreamOffset,
    blocks: Blocks,
    report_size: ReportSize,
    report_work: ReportWork,
}

impl TackPolicy {
    /// A policy with these settings.
    pub(crate) fn new(params: TackParams) -> Self {
        Self {
            schedule: Schedule::new(params),
            sync_number: None,
            next_report: 0,
            listed_gaps: false,
            last_arrivals: None,
            gaps: Gaps::new(params.settle),
            loss_due: false,
            repeated: false,
            window_closing: false,
            window_used: None,
            delays: OneWayDelays::new(params.timing),
            meter: ArrivalMeter::default(),
            fallback: None,
            absence: Absence::new(),
            again: Return::default(),
            outdated: Run::default(),
            unnumbered_to: StreamOffset::SYN,
            unnumbered_since: Instant::ZERO,
            highest: StreamOffset::FIRST_BYTE,
            blocks: Blocks::default(),
            report_size: ReportSize::default(),
            report_work: ReportWork::default(),
        }
    }

    /// The offer for the SYN.
    pub(crate) fn offer(params: &TackParams) -> TackSyn {
        TackSyn {
            segments: params.segments,
            beta: params.beta,
        }
    }

    /// Decides about what is pending.
    fn decide(&mut self, now: Instant) -> AckDecision {
        if let Some(at) = self.number_awaited_until(now) {
            return AckDecision::Delayed(at);
        }
        let loss = self.loss_report_at(now);
        if loss.is_some_and(|at| at <= now) {
            return AckDecision::Now(self.loss_reason(now));
        }
        if let Some(reason @ AckReason::Window) = self.window_used {
            return AckDecision::Now(reason);
        }
        match (self.due(), self.window_used) {
            (Some(due), _) if due.at <= now => AckDecision::Now(due.reason),
            (_, Some(reason)) => AckDecision::Now(reason),
            (due, None) => {
                let settle = self.gaps.deadline(now, self.schedule.rtt_min());
                let next = due.map(|due| due.at).into_iter().chain(settle).chain(loss);
                match next.min() {
                    Some(at) => AckDecision::Delayed(at),
                    None => AckDecision::Nothing,
                }
            }
        }
    }

    /// What is missing for long enough counts as lost, and has to be reported.
    #[inline]
    fn settle(&mut self, now: Instant) {
        if self.gaps.settle(now, self.schedule.rtt_min()) {
            self.loss_due = true;
            self.schedule.on_news();
        }
    }

    /// When a loss that was settled and not reported yet may be.
    fn loss_report_at(&self, now: Instant) -> Option<Instant> {
        self.loss_due
            .then(|| self.schedule.loss_report_at(now))
            .flatten()
    }

    /// The reason with which a loss is reported: that of the periodic acknowledgement, if that is
    /// due as well. Where a loss comes with every arrival there would be no other, and the sender
    /// would get neither rates nor round trips.
    fn loss_reason(&self, now: Instant) -> AckReason {
        match self.due() {
            Some(due) if due.at <= now && due.reason == AckReason::Threshold => due.reason,
            _ => AckReason::Loss,
        }
    }

    /// When the next periodic acknowledgement is due, and as what.
    fn due(&self) -> Option<DueReport> {
        self.schedule.due(&self.gaps, self.listed_gaps)
    }
}

impl AckPolicy for TackPolicy {
    fn memory(&self) -> usize {
        self.gaps.memory()
    }

    fn contract(&self) -> AckContract {
        if let Some(fallback) = &self.fallback {
            return fallback.contract();
        }
        let interval = self.schedule.time_period();
        AckContract {
            max_delay: interval.max(self.schedule.params.timer),
            max_segments: u32::MAX,
            least_segments: u16::from(self.schedule.params.segments),
            interval,
            gap: interval,
            timeout_allowance: interval.max(self.schedule.params.timer),
            loss_detected_by: LossDetectedBy::Receiver,
        }
    }

    fn on_data(&mut self, arrival: &DataArrival) -> AckDecision {
        let end = arrival.start + arrival.len;
        let highest = self.highest.max(end);
        let before = core::mem::replace(&mut self.highest, highest);
        if arrival.order != SegmentOrder::Duplicate {
            self.gaps.on_data(&(arrival.start..end));
        }
        if self.fallback.is_some() {
            return self.on_data_in_fallback(arrival, before);
        }
        self.report_work.on_segment();
        let now = arrival.now;
        let before_mss = core::mem::replace(&mut self.schedule.peer_mss, arrival.peer_mss);
        let is_longer = before_mss > 1 && arrival.peer_mss > before_mss + before_mss / 8;
        let number = match arrival.stamp {
            Some(stamp) => {
                self.absence.on_option();
                if arrival.start >= self.unnumbered_to {
                    self.unnumbered_to = StreamOffset::SYN;
                }
                let number = self.take_stamp(arrival, stamp);
                if number == Arrival::Ahead {
                    self.repeated = arrival.order == SegmentOrder::Duplicate;
                }
                number
            }
            None => {
                if self.absence.on_bare(arrival.arrived, self.span()) {
                    return self.fall_back(arrival);
                }
                self.count_undated(arrival);
                if self.unnumbered_to == StreamOffset::SYN {
                    self.unnumbered_since = now;
                }
                let fin = arrival.fin || arrival.len == 0;
                self.unnumbered_to = self.unnumbered_to.max(end + u64::from(fin));
                Arrival::Ahead
            }
        };
        if arrival.start > arrival.received_to {
            self.blocks.on_data(arrival.start..end);
        }
        // What brings nothing new does not count towards L: a path that copies each segment would
        // draw twice the reports.
        let new = (arrival.order != SegmentOrder::Duplicate).then_some(arrival.len);
        self.schedule.on_data(now, new, arrival.window_left);
        let is_copy = new.is_none() && number == Arrival::Seen;
        let is_repetition = new.is_none() && number == Arrival::Ahead;
        if is_repetition {
            self.schedule.on_news();
        }
        // Before what is missing counts as lost: the data of a number that did not come may be
        // here.
        self.gaps.resolve(arrival.received_to);
        self.settle(now);
        let is_loss_due = self.loss_report_at(now).is_some_and(|at| at <= now);
        if is_loss_due && self.number_awaited_until(now).is_none() {
            return AckDecision::Now(self.loss_reason(now));
        }
        // A search for the path's packet size found a larger one (RFC 8899). The sender's window
        // still counts the smaller ones, and may hold fewer than L of these. Growth by a few bytes
        // draws nothing: a peer could go on with it.
        if arrival.fin || arrival.ce_changed || is_longer {
            return AckDecision::Now(AckReason::Event);
        }
        // A probe or a needless retransmission: the sender waits for word. So it does for a filled
        // gap.
        self.schedule.on_repetition(is_repetition);
        // The path made a copy: its sender waits for nothing, and a report that is due for new
        // data says all that there is to say.
        if is_copy && self.schedule.is_news() {
            return self.decide(now);
        }
        if new.is_none() || number == Arrival::Seen {
            return AckDecision::Now(AckReason::Event);
        }
        // The window is nearly used up: say so before the sender finds out the hard way. The
        // application may be about to read what arrived: then one acknowledgement says both.
        let closing = arrival.window_left < (2 * arrival.peer_mss).min(arrival.window / 8);
        if closing && !core::mem::replace(&mut self.window_closing, closing) {
            self.window_used = Some(AckReason::Window);
            self.schedule.on_end(arrival);
            return AckDecision::Delayed(now);
        }
        self.window_closing = closing;
        // The sender's window would run dry before the period is over. If nothing more fits into
        // it, the report waits for the application in the same way. If a full segment fits, and the
        // answer to the message that ends here is likely to come soon, that says both.
        let has_room = arrival.window_left >= arrival.peer_mss;
        let is_carried = || arrival.push && self.schedule.is_answered() && self.is_carried();
        if arrival.unacknowledged >= arrival.window / 2 && !(has_room && is_carried()) {
            if has_room {
                return AckDecision::Now(AckReason::Threshold);
            }
            self.window_used = Some(AckReason::Threshold);
            self.schedule.on_end(arrival);
            return AckDecision::Delayed(now);
        }
        // Above a hole a report opens nothing, unless the buffer grows or the application reads.
        let opens = arrival.unacknowledged > 0 || arrival.window_moves;
        let window_left = opens.then_some(arrival.window_left);
        self.schedule.on_window(window_left, &self.gaps);
        // No number shows the hole below it, and none is about to.
        if arrival.order == SegmentOrder::OutOfOrder
            && arrival.stamp.is_none()
            && !self.absence.is_usual()
        {
            return AckDecision::Now(AckReason::Event);
        }
        self.schedule.on_waiting(arrival);
        match self.decide(now) {
            // What arrived at the same instant may not be handled yet.
            AckDecision::Now(AckReason::Threshold) if self.schedule.burst_ends() == now => {
                AckDecision::Delayed(now)
            }
            decision => decision,
        }
    }

    fn on_timer(&mut self, now: Instant) -> AckDecision {
        if let Some(fallback) = &mut self.fallback {
            return fallback.on_timer(now);
        }
        self.settle(now);
        self.decide(now)
    }

    fn on_ack_sent(&mut self, now: Instant, carried: Carried) -> Option<Instant> {
        if let Some(fallback) = &mut self.fallback {
            return fallback.on_ack_sent(now, carried);
        }
        self.window_used = None;
        self.schedule.on_ack_sent(now, carried, &self.gaps);
        match self.decide(now) {
            AckDecision::Delayed(at) => Some(at),
            AckDecision::Now(_) => Some(now),
            AckDecision::Nothing => None,
        }
    }

    fn on_handshake(&mut self, round_trip: Duration) {
        self.schedule
            .set_rtt_min(round_trip.max(Duration::from_micros(1)));
    }
}

impl FeedbackWriter for TackPolicy {
    fn leaves_alone(&self) -> bool {
        self.fallback.is_none()
    }

    fn is_carried(&self) -> bool {
        self.fallback.is_some() || self.schedule.is_lone(&self.gaps)
    }

    fn awaits_answer(&self) -> bool {
        self.fallback.is_none() && self.schedule.awaits_answer()
    }

    fn report(
        &mut self,
        context: &ReportContext<'_>,
        lists: &mut [u8],
    ) -> Option<(TackOption, usize)> {
        self.write_report(context, lists)
    }

    fn on_sync(&mut self, now: Instant, sync: &Sync) -> Option<AckDecision> {
        let newer = self
            .sync_number
            .is_none_or(|known| (sync.number.wrapping_sub(known) as i32) > 0);
        if !newer {
            return None;
        }
        self.sync_number = Some(sync.number);
        self.schedule
            .on_sync(now, sync, self.delays.take_queueing());
        self.gaps
            .set_round_trip(Duration::from_micros(sync.rtt.into()));
        if self.fallback.is_some() {
            return Some(AckDecision::Nothing);
        }
        if self.schedule.is_period_outdated(&self.gaps) {
            return Some(AckDecision::Now(AckReason::Frequency));
        }
        Some(self.decide(now))
    }

    fn is_behind(&self, stamp: &DataStamp) -> bool {
        let largest = self.gaps.largest().filter(|_| self.fallback.is_none());
        largest.is_some_and(|largest| {
            let behind = largest.low().wrapping_sub(stamp.number);
            let behind = u64::from(behind);
            // The comparison spares almost every segment the division.
            (OUTDATED.start..1 << 31).contains(&behind)
                && behind
                    >= (OUTDATED_BYTES / self.schedule.peer_mss).clamp(OUTDATED.start, OUTDATED.end)
        })
    }

    fn is_outdated(&mut self, arrived: Instant, stamp: &DataStamp) -> bool {
        let outdated = self.is_behind(stamp);
        if !outdated {
            self.outdated.end();
        } else if self.outdated.add(arrived, self.span()) {
            // Copies do not come in a row with nothing genuine between them: it is the largest
            // number that was damaged.
            self.outdated.end();
            self.gaps.restart(stamp.number, self.highest);
            return false;
        }
        outdated
    }
}
