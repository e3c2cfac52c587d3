//! When a periodic acknowledgement is due: the period, L, and the sender's startup.

use core::time::Duration;

use tack_base::filter::WindowedMax;
use tack_base::time::{Nanos, nanos};
use tack_base::{Instant, Rate};
use tack_wire::tack::Sync;

use super::awaited::Awaited;
use super::back_queue::{BackQueue, DENSE};
use super::burst::Burst;
use super::conversation::Conversation;
use super::gaps::Gaps;
use super::offered::Offered;
use super::repeats::{Repeats, backed_off};
use crate::ack::kind::{LossReporting, TackParams};
use crate::ack::policy::{AckReason, Carried, DataArrival, SegmentOrder};

/// RTTmin before anything measured it.
const INITIAL_RTT: Duration = Duration::from_millis(100);
/// Gaps that a report lists even when both paths lose nothing: the newest losses, reported once
/// more.
pub(super) const BASE_GAPS: u64 = 4;
/// How long a delivery rate once reached shows what the sender could use.
const PEAK_RATE_WINDOW: Duration = Duration::from_secs(10);
/// For so long data that acknowledges what arrived is believed to arrive itself soon.
const SOON_TOLD: Duration = Duration::from_secs(4);
/// Round trips after which the repair of a loss that was reported has come, or got lost itself.
const ROUND_TRIPS: u32 = 4;
/// Segments that arrive between two reports of losses, where many get lost.
const SEGMENTS_OF_LOSSES: u64 = 16;
/// Growth of the delivery rate that shows a sender at probing, as BBR's own test has it.
const GROWTH: f64 = 1.25;
/// Round trips without such growth after which it is not believed any more.
const GROWTH_ROUNDS: u64 = 8;

/// The growth of the delivery rate in the sender's startup.
#[derive(Clone, Copy, Debug)]
struct Growth {
    /// The largest rate.
    rate: Rate,
    /// When it was last larger by a good deal.
    at: Instant,
}

/// A periodic acknowledgement that will be due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DueReport {
    pub(super) at: Instant,
    pub(super) reason: AckReason,
}

impl DueReport {
    fn new(at: Instant, reason: AckReason) -> Self {
        Self { at, reason }
    }
}

/// When to report what arrived.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) params: TackParams,
    /// The sender's RTTmin, as it said or as the handshake measured.
    rtt_min: Duration,
    /// RTTmin/beta.
    time_period: Nanos,
    back_queue: BackQueue,
    /// The sender says that it still probes for capacity.
    startup: bool,
    growth: Growth,
    /// Loss rate of the ACK path, 0 to 1, as the sender said.
    pub(super) ack_loss_rate: f64,
    pub(super) peer_mss: u64,
    /// Delivery rate, as last measured.
    rate: Option<Rate>,
    /// The largest of the last seconds: what the sender could use if only the window let it.
    peak_rate: WindowedMax<Rate>,
    /// What limits the period by the window; `None` before any rate was measured.
    offered: Option<Offered>,
    last_report_at: Option<Instant>,
    /// When the last report of new arrivals left.
    told_at: Option<Instant>,
    /// When the answer to the report before that should be here.
    answer_due: Instant,
    /// Bytes that the sender may send beyond the newest that arrived.
    window_left: u64,
    /// Bytes since the last report, and when the first of them came.
    pending: u64,
    pending_since: Instant,
    /// Not all of them are copies that the path made.
    is_news: bool,
    /// Bytes since the last report, those included that data going the other way acknowledged.
    unreported: u64,
    /// Among them is the end of what the peer had to send, …
    pushed: bool,
    /// … or what filled a gap: neither should wait for L segments.
    filled: bool,
    /// When data first went the other way that acknowledged all that arrived. It is repeated until
    /// it arrives.
    answered_at: Option<Instant>,
    conversation: Conversation,
    awaited: Awaited,
    burst: Burst,
    repeats: Repeats,
    announced_period: Duration,
}

impl Schedule {
    /// Nothing arrived.
    pub(super) fn new(params: TackParams) -> Self {
        Self {
            rtt_min: INITIAL_RTT,
            time_period: Nanos::from(INITIAL_RTT) / u64::from(params.beta),
            back_queue: BackQueue::default(),
            startup: true,
            growth: Growth {
                rate: Rate::ZERO,
                at: Instant::ZERO,
            },
            ack_loss_rate: 0.0,
            peer_mss: 1,
            rate: None,
            peak_rate: WindowedMax::new(nanos(PEAK_RATE_WINDOW)),
            offered: None,
            last_report_at: None,
            told_at: None,
            answer_due: Instant::ZERO,
            window_left: 0,
            pending: 0,
            pending_since: Instant::ZERO,
            is_news: false,
            unreported: 0,
            pushed: false,
            filled: false,
            answered_at: None,
            conversation: Conversation::default(),
            awaited: Awaited::default(),
            burst: Burst::default(),
            repeats: Repeats::default(),
            announced_period: Duration::ZERO,
            params,
        }
    }

    // Period and L.

    /// RTTmin in force.
    #[inline]
    pub(super) fn rtt_min(&self) -> Duration {
        self.rtt_min
    }

    /// RTTmin is `rtt_min` from now on.
    pub(super) fn set_rtt_min(&mut self, rtt_min: Duration) {
        self.rtt_min = rtt_min;
        self.time_period = Nanos::from(rtt_min) / u64::from(self.params.beta);
    }

    /// RTTmin/beta.
    pub(super) fn time_period(&self) -> Duration {
        self.time_period.into()
    }

    /// The shortest time between periodic acknowledgements: RTTmin/beta, or less where the window
    /// is scarce, or more where acknowledgements wait in a queue longer than RTTmin.
    #[inline]
    fn shortest_interval(&self) -> Nanos {
        self.offered
            .map_or(self.time_period, |offered| offered.period(self.time_period))
            .max(self.back_queue.clogged_interval())
    }

    /// Period in force: the longer of the shortest interval and the time that L segments take.
    fn period(&self, gaps: &Gaps) -> Duration {
        let count = self
            .rate
            .map_or(Duration::ZERO, |rate| rate.time_for(self.threshold(gaps)));
        Duration::from(self.shortest_interval()).max(count.min(self.params.timer))
    }

    /// The period of repeats. Where segments are counted it may end just before the answer to the
    /// last report can be here, which a report with room for all (not `unreported`) waits for.
    fn repeat_period(&self, gaps: &Gaps, unreported: bool) -> Duration {
        let period = self.period(gaps);
        if unreported || period <= self.time_period() || self.ack_loss_rate > 0.0 {
            return period;
        }
        period.max(self.rtt_min + self.time_period())
    }

    /// The period, which the report that leaves announces.
    pub(super) fn announce_period(&mut self, gaps: &Gaps) -> Duration {
        self.announced_period = self.period(gaps);
        self.announced_period
    }

    /// The period changed by a factor of two since it was last announced.
    pub(super) fn is_period_outdated(&self, gaps: &Gaps) -> bool {
        let (period, announced) = (self.period(gaps), self.announced_period);
        !announced.is_zero() && (period >= announced * 2 || period * 2 <= announced)
    }

    /// L in force: a report must be able to list all that gets lost until the next one arrives, `Q
    /// / (rho·rho')` at most.
    #[inline]
    pub(super) fn segments(&self, gaps: &Gaps) -> u64 {
        if self.ack_loss_rate == 0.0 {
            return self.wanted_segments();
        }
        let losses = gaps.loss_rate() * self.ack_loss_rate;
        let listed = if self.params.rich { BASE_GAPS } else { 1 };
        let most = (listed as f64 / losses) as u64;
        self.wanted_segments().min(most.max(1))
    }

    /// L, and twice as many where the window makes reports more frequent than beta in RTTmin,
    /// acknowledgements wait in a queue on their way, and so many segments arrive in RTTmin/beta: a
    /// report for four segments takes less room than plain acknowledgements for two each.
    fn wanted_segments(&self) -> u64 {
        let segments = u64::from(self.params.segments);
        if !self.back_queue.is_sparse(self.pending_since)
            || self.shortest_interval() >= self.time_period
        {
            return segments;
        }
        let arrive = self.rate.unwrap_or_default().bytes_in(self.time_period());
        if arrive >= 2 * segments * self.peer_mss {
            2 * segments
        } else {
            segments
        }
    }

    /// When a loss may be reported; `None` leaves it to periodic reports.
    pub(super) fn loss_report_at(&self, now: Instant) -> Option<Instant> {
        (self.params.losses == LossReporting::AtOnce).then(|| {
            let interval = self.loss_interval();
            self.back_queue
                .loss_report_at(now, self.params.beta, self.time_period, interval)
        })
    }

    /// The time between reports of many losses: that in which [`SEGMENTS_OF_LOSSES`] arrive, or a
    /// quarter of RTTmin/beta if that is less. A report for each lost segment would fill a narrow
    /// way back. Reports with a single gap (TACK-poor) do not wait: the next one would not list
    /// the gaps that this one left out.
    fn loss_interval(&self) -> Nanos {
        if !self.params.rich {
            return Nanos::ZERO;
        }
        let rate = self.rate.unwrap_or_default();
        let quarter = self.time_period / DENSE;
        if rate.takes(SEGMENTS_OF_LOSSES * self.peer_mss, quarter) {
            return quarter;
        }
        rate.nanos_for(SEGMENTS_OF_LOSSES * self.peer_mss)
    }

    /// Acknowledgements have lately waited in a queue longer than RTTmin.
    pub(super) fn is_clogged(&self, now: Instant) -> bool {
        self.back_queue.is_clogged(now)
    }

    /// A report of a loss leaves.
    pub(super) fn on_loss_report(&mut self, now: Instant) {
        let interval = self.loss_interval();
        self.back_queue
            .on_loss_report(now, self.time_period, interval);
    }

    /// L in force, bytes.
    pub(super) fn threshold(&self, gaps: &Gaps) -> u64 {
        self.segments(gaps) * self.peer_mss
    }

    /// The longest period T' with which the window offered last is not used up before an
    /// acknowledgement opens it further: what is offered beyond L segments must last for a period
    /// and a round trip, `T' = (W - L·MSS)/rate - RTTmin`, that is beta' = bdp/(W - bdp). The
    /// saving shrinks with the window, down to counting segments where it holds no more than a bdp.
    /// `None` says that a report would not open it.
    pub(super) fn on_window(&mut self, window_left: Option<u64>, gaps: &Gaps) {
        let rate = self.peak_rate.get().filter(|rate| *rate > Rate::ZERO);
        self.offered = window_left.zip(rate).map(|(window_left, rate)| Offered {
            bytes: (window_left + self.pending).saturating_sub(self.threshold(gaps)),
            rate,
            rtt_min: self.rtt_min.into(),
        });
    }

    /// Bytes that arrive within RTTmin.
    pub(super) fn bdp(&self) -> u64 {
        self.rate.map_or(0, |rate| rate.bytes_in(self.rtt_min))
    }

    // Startup.

    /// The sender probes for capacity, and finds some. A controller that stays in its startup
    /// because the application or the window limits it has no use for dense acknowledgements.
    fn is_probed(&self) -> bool {
        self.startup
            && self.pending_since < self.growth.at + Nanos::from(self.rtt_min) * GROWTH_ROUNDS
    }

    /// Data arrived at `arrived`, `sustained` being what the path is shown to carry.
    pub(super) fn on_rate(&mut self, now: Instant, rate: Option<Rate>, sustained: Option<Rate>) {
        if let Some(rate) = sustained {
            if self.startup && rate >= self.growth.rate.scale(GROWTH) {
                self.growth = Growth { rate, at: now };
            }
            self.peak_rate.update(now.as_nanos(), rate);
        }
        self.rate = rate.or(self.rate);
    }

    /// The sender said what it measures. `forward` is the time that segments spend in queues on
    /// their way here: what its round trip is longer beyond that, acknowledgements spend on theirs.
    pub(super) fn on_sync(&mut self, now: Instant, sync: &Sync, forward: Duration) {
        if sync.startup && !self.startup {
            self.growth = Growth {
                rate: Rate::ZERO,
                at: now,
            };
        }
        self.startup = sync.startup;
        self.ack_loss_rate = f64::from(sync.ack_loss_rate) / 65_536.0;
        if sync.rtt_min > 0 {
            self.set_rtt_min(Duration::from_micros(sync.rtt_min.into()));
        }
        self.back_queue
            .on_sync(now, sync, forward, self.rtt_min, self.time_period);
    }

    // What is pending.

    /// Nothing arrived since the last report.
    pub(super) fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// What arrived since the last report is not all copies that the path made.
    pub(super) fn is_news(&self) -> bool {
        self.is_news
    }

    /// Data arrived at `now`, and so many bytes of it are `new`; `None` where all came before. The
    /// peer may send `window_left` more.
    #[inline]
    pub(super) fn on_data(&mut self, now: Instant, new: Option<u64>, window_left: u64) {
        self.window_left = window_left;
        self.awaited.on_data(now, self.rtt_min, self.params.timer);
        if self.pending == 0 {
            self.pending_since = now;
        }
        if self.growth.at == Instant::ZERO {
            self.growth.at = now;
        }
        let len = new.unwrap_or_default().max(1);
        self.pending += len;
        self.is_news |= new.is_some();
        if new.is_some() {
            self.answered_at = None;
        }
        self.unreported += len;
    }

    /// When the first of the data came that no acknowledgement has answered; `None` if there is
    /// none.
    pub(super) fn pending_since(&self) -> Option<Instant> {
        (self.pending > 0).then_some(self.pending_since)
    }

    /// What ends with the data that arrived: a message, a gap.
    #[inline]
    pub(super) fn on_end(&mut self, arrival: &DataArrival) {
        self.pushed |= arrival.push;
        self.filled |= arrival.order == SegmentOrder::FilledGap;
    }

    /// The data that arrived waits for a periodic report.
    #[inline]
    pub(super) fn on_waiting(&mut self, arrival: &DataArrival) {
        self.on_end(arrival);
        // A burst, if it began one, goes on, unless the peer says that nothing follows.
        let interval = self.shortest_interval();
        let overdue = self
            .last_report_at
            .is_some_and(|last| self.pending_since >= last + interval);
        let waits = overdue && !arrival.push && !self.is_probed();
        let begins = waits.then_some(self.pending_since);
        self.burst
            .on_data(arrival.now, arrival.arrived, interval, begins);
    }

    /// When the burst ends that a report waits for; in the past if none is waited for.
    pub(super) fn burst_ends(&self) -> Instant {
        self.burst.ends()
    }

    /// The data that arrived came before, under another number, if `again`.
    pub(super) fn on_repetition(&mut self, again: bool) {
        self.repeats.on_data(again);
    }

    /// There is something to report that no report said before, besides new data: a loss, or a
    /// number whose data came before.
    #[inline]
    pub(super) fn on_news(&mut self) {
        self.is_news = true;
    }

    /// Reports begin again with this arrival.
    pub(super) fn restart(&mut self, arrival: &DataArrival) {
        self.peer_mss = arrival.peer_mss;
        self.pending = arrival.len.max(1);
        self.pending_since = arrival.now;
        self.is_news = true;
        self.unreported = self.pending;
        self.pushed = false;
        self.filled = false;
        self.answered_at = None;
        self.repeats = Repeats::default();
        self.last_report_at = None;
        self.told_at = None;
        self.answer_due = Instant::ZERO;
        self.growth = Growth {
            rate: Rate::ZERO,
            at: arrival.now,
        };
    }

    /// When the next periodic acknowledgement is due, and as what. `listed_gaps` tells whether the
    /// last one listed gaps: one that had no room for any will not have it next time, while nothing
    /// arrives.
    #[inline]
    pub(super) fn due(&self, gaps: &Gaps, listed_gaps: bool) -> Option<DueReport> {
        if self.pending == 0 {
            let unreported = listed_gaps && gaps.is_any_unreported();
            // Where a queue is longer than the path, the answer to the last one waits in it, and
            // copies would make it longer.
            let queueing = if unreported {
                Duration::ZERO
            } else {
                self.back_queue.queueing()
            };
            let wait = || self.repeat_period(gaps, unreported) + queueing;
            let mut at = self.last_report_at? + self.repeats.next(wait, unreported)?;
            if self.repeats.is_for_chance() {
                at = at.max(self.answer_due);
            }
            return Some(DueReport::new(at, AckReason::Timer));
        }
        let enough = self.pending >= self.threshold(gaps);
        // One interval after the last one, and not sooner.
        let after = |interval: Nanos| match self.last_report_at {
            Some(last) => last + interval,
            None => Instant::ZERO,
        };
        let interval = self.shortest_interval();
        if enough {
            let is_clogged = self.back_queue.clogged_interval() > self.time_period;
            let at = if self.is_probed() && !is_clogged {
                after(interval.min(self.time_period / DENSE))
            } else {
                after(interval)
            };
            let at = at.max(self.burst.ends());
            return Some(DueReport::new(at, AckReason::Threshold));
        }
        let latest = self.pending_since + self.params.timer;
        // An answer carries the acknowledgement, but not all that the sender of a stream lives on.
        let is_waited_for = || match self.conversation.is_answered() {
            true => !self.is_lone(gaps),
            false => self.awaited.is_likely(),
        };
        // A sender that repairs what the last report told of pushes what fills its small window.
        if self.filled || (self.pushed && (listed_gaps || is_waited_for())) {
            // The sender has nothing more, and may wait for an acknowledgement.
            let at = after(interval).max(self.pending_since + self.time_period);
            return Some(DueReport::new(at.min(latest), AckReason::Timer));
        }
        Some(DueReport::new(latest, AckReason::Timer))
    }

    /// An answer that carries the acknowledgement of a remainder is likely to come soon.
    pub(super) fn is_answered(&self) -> bool {
        self.conversation.is_answered()
    }

    /// The same, and a report is due for what arrived, should no answer come.
    pub(super) fn awaits_answer(&self) -> bool {
        self.pending > 0 && self.is_answered()
    }

    /// A lone remainder needs no report once data carried its cumulative acknowledgement. A stream
    /// does, though data that goes the other way acknowledges each segment of it: its sender lives
    /// on round trips and rates.
    pub(super) fn is_lone(&self, gaps: &Gaps) -> bool {
        let threshold = self.threshold(gaps);
        self.pending < threshold && self.unreported < threshold * u64::from(self.params.beta)
    }

    /// The report before the one that leaves now lets a sender go on that has used up its window:
    /// it left room for a full segment, and left less than RTTmin ago, so that its answer is to
    /// come.
    fn is_told_before(&self, now: Instant) -> bool {
        self.window_left >= self.peer_mss
            && self.told_at.is_some_and(|told| now < told + self.rtt_min)
            && self.shortest_interval() < self.time_period
    }

    /// Something is lost, and its repair may be under way.
    fn is_open(&self, now: Instant, gaps: &Gaps) -> bool {
        let patience = || gaps.round_trip(self.rtt_min) * ROUND_TRIPS + self.time_period();
        gaps.lost() > 0 && gaps.is_repair_awaited(now, patience())
    }

    /// An acknowledgement of all that is pending leaves, as a report or without one.
    pub(super) fn on_report(&mut self, now: Instant, gaps: &Gaps) {
        if self.pending > 0 && self.pending < self.threshold(gaps) {
            self.conversation
                .on_remainder(now, self.pending_since, self.params.timer);
            if self.pushed {
                self.awaited.on_report(now);
            }
        }
        if self.pending == 0 || !self.is_news {
            // Of a copy that the path made there is nothing to say but what the last one said.
            self.repeats.on_repeated();
        } else {
            let open = self.is_open(now, gaps) && self.params.losses != LossReporting::Never;
            let told_before = self.is_told_before(now);
            let backed_off = match self.told_at {
                Some(told) if self.repeats.is_unheard() => backed_off(
                    now.saturating_since(told),
                    self.period(gaps) + self.back_queue.queueing(),
                ),
                _ => 0,
            };
            // Our data tells it soon, as it is repeated until it arrives. After a long silence both
            // sides have backed off, and the way back may not have carried that data either.
            let soon_told = self.answered_at.is_some_and(|at| now <= at + SOON_TOLD);
            if soon_told {
                self.repeats.on_data(false);
            }
            // The report before this one lets the sender go on as well: what it sends then is
            // reported in its turn. Copies are for the case that it does not come.
            self.answer_due = match self.told_at {
                Some(told) => told + gaps.round_trip(self.rtt_min) + self.time_period(),
                None => Instant::ZERO,
            };
            self.repeats.on_report(
                if soon_told { 0.0 } else { self.ack_loss_rate },
                open,
                self.params.beta,
                told_before,
                backed_off,
            );
            self.told_at = Some(now);
        }
        self.pending = 0;
        self.is_news = false;
        self.unreported = 0;
        self.pushed = false;
        self.filled = false;
        self.last_report_at = Some(now);
    }

    /// A segment that carries the cumulative acknowledgement left.
    #[inline]
    pub(super) fn on_ack_sent(&mut self, now: Instant, carried: Carried, gaps: &Gaps) {
        self.back_queue.on_sent(carried);
        if carried == Carried::Alone {
            return;
        }
        let is_lone = self.pending > 0 && self.is_lone(gaps);
        if carried == Carried::OnData {
            if !self.is_open(now, gaps) {
                self.answered_at.get_or_insert(now);
            }
            self.conversation.on_data(now, is_lone, self.params.timer);
        }
        let answers = is_lone && self.pushed && carried == Carried::OnData;
        if is_lone {
            self.pending = 0;
            self.is_news = false;
            self.pushed = false;
            self.filled = false;
        }
        if answers {
            self.repeats.on_answered();
        } else if self.pending == 0 {
            self.repeats.on_carried();
        }
    }
}

#[cfg(test)]
mod tests;
