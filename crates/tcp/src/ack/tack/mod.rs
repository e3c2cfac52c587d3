//! TACK at the receiver of data: when to acknowledge, and what to say.
//!
//! A periodic acknowledgement leaves when L full-sized segments wait *and* RTTmin/beta has passed:
//! the lower of the two frequencies bw/(L·MSS) and beta/RTTmin, without having to know bw. One that
//! the beginning of a burst makes due waits for the end of the burst. Instant ones tell of loss, of
//! the window and of connection events. A remainder waits no longer than delayed acknowledgements
//! would make it, and while the sender still probes for capacity L segments are enough.

mod blocks;
mod burst;
mod carried;
mod conversation;
mod fallback;
mod frontier;
mod gaps;
mod lists;
mod path;
mod reader;
mod repeats;
mod telling;
#[cfg(test)]
mod tests;

use core::ops::Range;
use core::time::Duration;

use tack_base::filter::WindowedMax;
use tack_base::time::nanos;
use tack_base::{Instant, Rate};
use tack_wire::TackOption;
use tack_wire::tack::{DataStamp, ListsWriter, LossReport, Report, ReportKind, Sync, TackSyn};

use super::delayed::DelayedAck;
use super::kind::{LossesTold, TackParams};
use super::policy::{
    AckContract, AckDecision, AckPolicy, AckReason, Carried, DataArrival, FeedbackWriter,
    LossDetectedBy, Place, ReportContext,
};
use crate::rate::receiver::ArrivalMeter;
use crate::rtt::one_way::OneWayDelays;
use blocks::{Blocks, MAX_BLOCKS};
use burst::Burst;
use conversation::Conversation;
use gaps::{Arrival, Gaps};
use path::Run;
pub(super) use reader::TackReader;
use repeats::Repeats;

/// RTTmin before anything measured it.
const INITIAL_RTT: Duration = Duration::from_millis(100);
/// Gaps that a report lists even when both paths lose nothing: the newest losses, told once more.
const BASE_GAPS: u64 = 4;
/// How long a delivery rate once reached tells what the sender could use.
const PEAK_RATE_WINDOW: Duration = Duration::from_secs(10);
/// Growth of the delivery rate that shows a sender at probing, as BBR's own test has it.
const GROWTH: f64 = 1.25;
/// Round trips without such growth after which it is not believed any more.
const GROWTH_ROUNDS: u32 = 8;
/// Bytes in full segments after which a segment is a copy from another time: half of the sequence space, twice the largest
/// window.
const OUTDATED_BYTES: u64 = 1 << 31;
/// The same in segments, at least and at most.
const OUTDATED: Range<u64> = 1 << 14..1 << 20;
/// The receiver's policy.
#[derive(Debug)]
pub(crate) struct TackPolicy {
    params: TackParams,
    /// The sender's RTTmin, as it told or as the handshake measured.
    rtt_min: Duration,
    /// The sender says that it still probes for capacity.
    startup: bool,
    /// The largest delivery rate while it did, and when it was last larger by a good deal.
    growth: (Rate, Instant),
    /// Number of the newest [`Sync`].
    sync_number: Option<u32>,
    /// Loss rate of the ACK path, 0 to 1, as the sender told.
    ack_loss_rate: f64,
    /// Number of the next report.
    next_report: u32,
    last_report_at: Option<Instant>,
    /// Bytes since the last report, and when the first of them came.
    pending: u64,
    pending_since: Instant,
    /// Bytes since the last report, those included that data going the other way acknowledged.
    unreported: u64,
    repeats: Repeats,
    /// The last report named gaps. One that had no room for any will not have it next time, while nothing arrives.
    named_gaps: bool,
    /// Among them is the end of what the peer had to send, …
    pushed: bool,
    /// … or what filled a gap: neither should wait for L segments.
    filled: bool,
    conversation: Conversation,
    burst: Burst,
    peer_mss: u64,
    gaps: Gaps,
    /// A loss was settled and not told yet.
    loss_due: bool,
    window_closing: bool,
    /// The longest period with which the window offered last does not make the sender stand still.
    window_period: Duration,
    delays: OneWayDelays,
    meter: ArrivalMeter,
    /// Delivery rate, as last measured.
    rate: Option<Rate>,
    /// The largest of the last seconds: what the sender could use if only the window let it.
    peak_rate: WindowedMax<Rate>,
    announced_period: Duration,
    /// Data comes without stamps: something on the path strips them, or the peer sees no reports.
    fallback: Option<DelayedAck>,
    /// Segments without a stamp in a row; within a fallback, segments with one.
    run: Run,
    /// Segments in a row whose numbers seem to be from another time.
    outdated: Run,
    /// What ends here arrived without a number, and none arrived since that shows that it had left.
    unnumbered_to: u64,
    /// End of the data received.
    highest: u64,
    blocks: Blocks,
}

impl TackPolicy {
    /// A policy with these settings.
    pub(crate) fn new(params: TackParams) -> Self {
        Self {
            rtt_min: INITIAL_RTT,
            startup: true,
            growth: (Rate::ZERO, Instant::ZERO),
            sync_number: None,
            ack_loss_rate: 0.0,
            next_report: 0,
            last_report_at: None,
            pending: 0,
            pending_since: Instant::ZERO,
            unreported: 0,
            repeats: Repeats::default(),
            named_gaps: false,
            pushed: false,
            filled: false,
            conversation: Conversation::default(),
            burst: Burst::default(),
            peer_mss: 1,
            gaps: Gaps::new(params.settle),
            loss_due: false,
            window_closing: false,
            window_period: Duration::MAX,
            delays: OneWayDelays::new(params.timing),
            meter: ArrivalMeter::default(),
            rate: None,
            peak_rate: WindowedMax::new(nanos(PEAK_RATE_WINDOW)),
            announced_period: Duration::ZERO,
            fallback: None,
            run: Run::default(),
            outdated: Run::default(),
            unnumbered_to: 0,
            highest: 1,
            blocks: Blocks::default(),
            params,
        }
    }

    /// The offer for the SYN.
    pub(crate) fn offer(params: &TackParams) -> TackSyn {
        TackSyn {
            segments: params.segments,
            beta: params.beta,
        }
    }

    /// RTTmin/beta.
    fn time_period(&self) -> Duration {
        self.rtt_min / u32::from(self.params.beta)
    }

    /// The shortest time between periodic acknowledgements: RTTmin/beta, or less where the window is scarce.
    fn shortest_interval(&self) -> Duration {
        self.time_period().min(self.window_period)
    }

    /// Period in force: the longer of the shortest interval and the time that L segments take.
    fn period(&self) -> Duration {
        let count = self
            .rate
            .map_or(Duration::ZERO, |rate| rate.time_for(self.threshold()));
        self.shortest_interval().max(count.min(self.params.timer))
    }

    /// The sender probes for capacity, and finds some. A controller that stays in its startup because the application or
    /// the window limits it has no use for dense acknowledgements.
    fn is_probed(&self) -> bool {
        self.startup && self.pending_since < self.growth.1 + self.rtt_min * GROWTH_ROUNDS
    }

    /// The longest period T' with which the window offered last is not used up before an acknowledgement opens it further:
    /// what is offered beyond L segments must last for a period and a round trip, `T' = (W - L·MSS)/rate - RTTmin`, that is
    /// beta' = bdp/(W - bdp). The saving shrinks with the window, down to counting segments where it holds no more than
    /// a bdp.
    fn window_period(&self, window_left: u64) -> Duration {
        let offered = window_left + self.pending;
        let Some(rate) = self.peak_rate.get().filter(|rate| *rate > Rate::ZERO) else {
            return Duration::MAX;
        };
        rate.time_for(offered.saturating_sub(self.threshold()))
            .saturating_sub(self.rtt_min)
    }

    fn note_growth(&mut self, now: Instant, rate: Option<Rate>) {
        if let Some(rate) = rate
            && self.startup
            && rate >= self.growth.0.scale(GROWTH)
        {
            self.growth = (rate, now);
        }
    }

    /// L in force: a report must be able to tell of all that gets lost until the next one arrives, `Q / (rho·rho')` at most.
    fn segments(&self) -> u64 {
        if self.ack_loss_rate == 0.0 {
            return self.params.segments.into();
        }
        let losses = self.gaps.loss_rate() * self.ack_loss_rate;
        let told = if self.params.rich { BASE_GAPS } else { 1 };
        let most = (told as f64 / losses) as u64;
        u64::from(self.params.segments).min(most.max(1))
    }

    fn threshold(&self) -> u64 {
        self.segments() * self.peer_mss
    }

    /// Decides about what is pending.
    fn decide(&mut self, now: Instant) -> AckDecision {
        if self.loss_due && self.params.losses == LossesTold::AtOnce {
            return AckDecision::Now(self.loss_reason(now));
        }
        match self.due() {
            Some((at, reason)) if at <= now => AckDecision::Now(reason),
            due => {
                let settle = self.gaps.deadline(now, self.rtt_min);
                match due.map(|(at, _)| at).into_iter().chain(settle).min() {
                    Some(at) => AckDecision::Delayed(at),
                    None => AckDecision::Nothing,
                }
            }
        }
    }

    /// As what a loss is told: by the periodic acknowledgement, if that is due as well. Where a loss comes with every arrival
    /// there would be no other, and the sender would hear of neither rates nor round trips.
    fn loss_reason(&self, now: Instant) -> AckReason {
        match self.due() {
            Some((at, AckReason::Threshold)) if at <= now => AckReason::Threshold,
            _ => AckReason::Loss,
        }
    }

    /// When the next periodic acknowledgement is due, and as what.
    fn due(&self) -> Option<(Instant, AckReason)> {
        if self.pending == 0 {
            let wait = self.repeats.next(
                || self.period(),
                self.named_gaps && self.gaps.is_any_untold(),
            )?;
            return Some((self.last_report_at? + wait, AckReason::Timer));
        }
        let enough = self.pending >= self.threshold();
        // One period after the last one, and not sooner.
        let point = || match self.last_report_at {
            Some(last) => last + self.shortest_interval(),
            None => Instant::ZERO,
        };
        if enough {
            let at = if self.is_probed() {
                self.pending_since
            } else {
                point()
            };
            return Some((at.max(self.burst.ends()), AckReason::Threshold));
        }
        let latest = self.pending_since + self.params.timer;
        let is_answered = || self.conversation.is_answered() && self.is_lone();
        if self.filled || (self.pushed && !is_answered()) {
            // The sender has nothing more, and may wait for word.
            let at = point().max(self.pending_since + self.time_period());
            return Some((at.min(latest), AckReason::Timer));
        }
        Some((latest, AckReason::Timer))
    }

    /// A segment arrived: a burst, if it began one, goes on, unless the peer says that nothing follows.
    fn follow_burst(&mut self, arrival: &DataArrival) {
        let interval = self.shortest_interval();
        let overdue = self
            .last_report_at
            .is_some_and(|last| self.pending_since >= last + interval);
        let waits = overdue && !arrival.push && !self.is_probed();
        let begins = waits.then_some(self.pending_since);
        self.burst
            .on_data(arrival.now, arrival.arrived, interval, begins);
    }

    /// A lone remainder needs no report once data carried its cumulative acknowledgement. A stream does, though data
    /// that goes the other way acknowledges each segment of it: its sender lives on round trips and rates.
    fn is_lone(&self) -> bool {
        let threshold = self.threshold();
        self.pending < threshold && self.unreported < threshold * u64::from(self.params.beta)
    }

    /// An acknowledgement of all that is pending leaves, as a report or without one.
    fn note_report(&mut self, now: Instant) {
        self.loss_due = false;
        if self.pending > 0 && self.pending < self.threshold() {
            self.conversation
                .on_remainder(now, self.pending_since, self.params.timer);
        }
        if self.pending == 0 {
            self.repeats.on_repeated();
        } else {
            let open = self.gaps.is_any_lost() && self.params.losses != LossesTold::Never;
            self.repeats
                .on_report(self.ack_loss_rate, open, self.params.beta);
        }
        self.pending = 0;
        self.unreported = 0;
        self.pushed = false;
        self.filled = false;
        self.last_report_at = Some(now);
    }

    /// The frequency changed by a factor of two since it was last told.
    fn frequency_news(&mut self) -> bool {
        let (period, told) = (self.period(), self.announced_period);
        !told.is_zero() && (period >= told * 2 || period * 2 <= told)
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
        let interval = self.time_period();
        AckContract {
            max_delay: interval.max(self.params.timer),
            max_segments: u32::MAX,
            least_segments: u16::from(self.params.segments),
            interval,
            gap: interval,
            timeout_allowance: interval.max(self.params.timer),
            loss_detected_by: LossDetectedBy::Receiver,
        }
    }

    fn on_data(&mut self, arrival: &DataArrival) -> AckDecision {
        let end = arrival.start + arrival.len;
        let highest = self.highest.max(end);
        let before = core::mem::replace(&mut self.highest, highest);
        if arrival.place != Place::Duplicate {
            self.gaps.on_data(&(arrival.start..end));
        }
        if self.fallback.is_some() {
            return self.on_data_in_fallback(arrival, before);
        }
        let now = arrival.now;
        self.peer_mss = arrival.peer_mss;
        let number = match arrival.stamp {
            Some(stamp) => {
                self.run.end();
                if arrival.start >= self.unnumbered_to {
                    self.unnumbered_to = 0;
                }
                self.take_stamp(arrival, stamp)
            }
            None => {
                if self.run.add(arrival.arrived, self.span()) {
                    return self.fall_back(arrival);
                }
                let fin = arrival.fin || arrival.len == 0;
                self.unnumbered_to = self.unnumbered_to.max(end + u64::from(fin));
                Arrival::Ahead
            }
        };
        if arrival.start > arrival.received_to {
            self.blocks.on_data(arrival.start..end);
        }
        if self.pending == 0 {
            self.pending_since = now;
        }
        if self.growth.1 == Instant::ZERO {
            self.growth.1 = now;
        }
        self.pending += arrival.len.max(1);
        self.unreported += arrival.len.max(1);
        self.loss_due |= self.gaps.settle(now, self.rtt_min);
        self.gaps.resolve(arrival.received_to);
        if self.loss_due && self.params.losses == LossesTold::AtOnce {
            return AckDecision::Now(self.loss_reason(now));
        }
        if arrival.fin || arrival.ce_changed {
            return AckDecision::Now(AckReason::Event);
        }
        // The window is nearly used up: say so before the sender finds out the hard way.
        let closing = arrival.window_left < (2 * self.peer_mss).min(arrival.window / 8);
        if closing && !core::mem::replace(&mut self.window_closing, closing) {
            return AckDecision::Now(AckReason::Window);
        }
        self.window_closing = closing;
        // The sender's window would run dry before the period is over.
        if arrival.unacknowledged >= arrival.window / 2 {
            return AckDecision::Now(AckReason::Threshold);
        }
        self.window_period = self.window_period(arrival.window_left);
        // A probe or a needless retransmission: the sender waits for word. So it does for a filled gap.
        self.repeats
            .on_data(arrival.place == Place::Duplicate && number == Arrival::Ahead);
        if arrival.place == Place::Duplicate || number == Arrival::Seen {
            return AckDecision::Now(AckReason::Event);
        }
        // No number tells of the hole below it.
        if arrival.place == Place::OutOfOrder && arrival.stamp.is_none() {
            return AckDecision::Now(AckReason::Event);
        }
        self.pushed |= arrival.push;
        self.filled |= arrival.place == Place::FilledGap;
        self.follow_burst(arrival);
        match self.decide(now) {
            // What arrived at the same instant may not be handled yet.
            AckDecision::Now(AckReason::Threshold) if self.burst.ends() == now => {
                AckDecision::Delayed(now)
            }
            decision => decision,
        }
    }

    fn on_timer(&mut self, now: Instant) -> AckDecision {
        if let Some(fallback) = &mut self.fallback {
            return fallback.on_timer(now);
        }
        self.loss_due |= self.gaps.settle(now, self.rtt_min);
        self.decide(now)
    }

    fn on_ack_sent(&mut self, now: Instant, carried: Carried) -> Option<Instant> {
        if let Some(fallback) = &mut self.fallback {
            return fallback.on_ack_sent(now, carried);
        }
        let is_lone = self.pending > 0 && self.is_lone();
        if carried != Carried::Alone {
            if carried == Carried::OnData {
                self.conversation.on_data(now, is_lone, self.params.timer);
            }
            if is_lone {
                self.pending = 0;
                self.pushed = false;
                self.filled = false;
            }
            if self.pending == 0 {
                self.repeats.on_carried();
            }
        }
        match self.decide(now) {
            AckDecision::Delayed(at) => Some(at),
            AckDecision::Now(_) => Some(now),
            AckDecision::Nothing => None,
        }
    }

    fn on_handshake(&mut self, round_trip: Duration) {
        self.rtt_min = round_trip.max(Duration::from_micros(1));
    }
}

impl FeedbackWriter for TackPolicy {
    fn leaves_alone(&self) -> bool {
        self.fallback.is_none()
    }

    fn report(
        &mut self,
        context: &ReportContext<'_>,
        lists: &mut [u8],
    ) -> Option<(TackOption, usize)> {
        if self.fallback.is_some() {
            return None;
        }
        let now = context.now;
        if self.unnumbered_to > 0 {
            // A report says under which numbers arrived what it acknowledges. Of this it is not known.
            self.note_report(now);
            return None;
        }
        let len = self.write_lists(context, lists);
        let number = self.next_report;
        self.next_report = number.wrapping_add(1);
        let micros = |duration: Duration| u32::try_from(duration.as_micros()).unwrap_or(u32::MAX);
        let loss_rate = (self.gaps.loss_rate() * 65_535.0) as u16;
        let largest = self.gaps.largest().unwrap_or(u64::MAX) as u32;
        let largest_delay = micros(now.saturating_since(self.gaps.largest_at()));
        let above = u32::try_from(context.ahead.positions()).unwrap_or(u32::MAX);
        let newest_gap = self.gaps.newest_lost();
        if context.reason == AckReason::Loss
            && core::mem::take(&mut self.loss_due)
            && let Some((before, after)) = newest_gap
        {
            // What arrived since the last periodic one stays pending: the loss report carries no timing and no rate.
            return Some((
                TackOption::Loss(LossReport {
                    lists: len > 0,
                    loss_rate,
                    number,
                    largest,
                    largest_delay,
                    above,
                    before_gap: before as u32,
                    after_gap: after as u32,
                }),
                len,
            ));
        }
        self.note_report(now);
        let measured = self.meter.on_report(self.rtt_min);
        let sustained = measured.map(|rate| rate.sustained);
        let measured = measured.map(|rate| rate.arrived);
        self.note_growth(now, sustained);
        if let Some(rate) = sustained {
            self.peak_rate.update(now.as_nanos(), rate);
        }
        self.rate = measured.or(self.rate);
        self.announced_period = self.period();
        let report = Report {
            kind: match context.reason {
                AckReason::Threshold | AckReason::Timer | AckReason::Loss => ReportKind::Tack,
                AckReason::Window => ReportKind::Window,
                AckReason::Event => ReportKind::Event,
                AckReason::Frequency => ReportKind::Frequency,
            },
            lists: len > 0,
            sync_echo: self.sync_number.unwrap_or(0) as u8 & 0xf,
            loss_rate,
            number,
            largest,
            largest_delay,
            timing: self.delays.take_echo(now),
            rate: measured.map(Rate::bytes_per_sec),
            above,
            period: micros(self.announced_period),
        };
        Some((TackOption::Report(report), len))
    }

    fn on_sync(&mut self, now: Instant, sync: &Sync) -> Option<AckDecision> {
        let newer = self
            .sync_number
            .is_none_or(|known| (sync.number.wrapping_sub(known) as i32) > 0);
        if !newer {
            return None;
        }
        self.sync_number = Some(sync.number);
        if sync.startup && !self.startup {
            self.growth = (Rate::ZERO, now);
        }
        self.startup = sync.startup;
        self.ack_loss_rate = f64::from(sync.ack_loss_rate) / 65_536.0;
        if sync.rtt_min > 0 {
            self.rtt_min = Duration::from_micros(sync.rtt_min.into());
        }
        if self.fallback.is_some() {
            return Some(AckDecision::Nothing);
        }
        if self.frequency_news() {
            return Some(AckDecision::Now(AckReason::Frequency));
        }
        Some(self.decide(now))
    }

    fn is_outdated(&mut self, arrived: Instant, stamp: &DataStamp) -> bool {
        let largest = self.gaps.largest().filter(|_| self.fallback.is_none());
        let outdated = largest.is_some_and(|largest| {
            let behind = (largest as u32).wrapping_sub(stamp.number);
            let outdated = (OUTDATED_BYTES / self.peer_mss).clamp(OUTDATED.start, OUTDATED.end);
            behind < 1 << 31 && u64::from(behind) >= outdated
        });
        if !outdated {
            self.outdated.end();
        } else if self.outdated.add(arrived, self.span()) {
            // Copies do not come in a row with nothing genuine between them: it is the largest number that was damaged.
            self.outdated.end();
            self.gaps.restart(stamp.number, self.highest);
            return false;
        }
        outdated
    }
}
