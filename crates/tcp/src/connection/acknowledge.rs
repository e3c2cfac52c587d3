//! An acknowledgement, in the one order: validate → mark acknowledged → measure → find losses →
//! recover → congestion control → window and timers.

use core::time::Duration;

use tack_base::{Instant, StreamOffset};
use tack_wire::{Flags, Header, Segment, SeqNum, TackOption};

use super::delivery::Delivery;
use super::limits::WindowUse;
use super::state::State;
use super::timers::Timer;
use super::{CloseReason, Connection};
use crate::ack::feedback::ReadContext;
use crate::ack::policy::LossDetectedBy;
use crate::cc::{Ack, Cause, Congestion, CongestionController, RateSample, RecoveryShaping};
use crate::recovery::LossView;
use crate::recovery::episodes::PlainAck;
use crate::trace::{AckReceived, Traced};

/// One acknowledgement on its way through the steps.
#[derive(Debug)]
struct AckEvent<'a> {
    now: Instant,
    arrived: Instant,
    header: &'a Header,
    /// Position of the cumulative acknowledgement.
    ack: StreamOffset,
    /// The segment takes no sequence space.
    pure: bool,

    // Before it.
    prior_una: StreamOffset,
    prior_in_flight: u64,
    prior_flight: u64,
    was_in_recovery: bool,

    // What it did to the scoreboard and the window.
    /// It moved SND.UNA.
    advanced: bool,
    /// It updated the peer's window.
    window_moved: bool,
    /// A fresh timestamp echo.
    echoed: Option<u32>,
    delivery: Delivery,
    /// Where something starts that arrived twice.
    duplicate: Option<StreamOffset>,

    // What was measured and found.
    rtt: Option<Duration>,
    rate: Option<RateSample>,
    /// Bytes newly lost.
    lost: u64,
    /// It showed a timeout to be false.
    undid_timeout: bool,
}

impl AckEvent<'_> {
    /// Positions by which SND.UNA advanced.
    fn acked(&self) -> u64 {
        self.ack.saturating_since(self.prior_una)
    }
}

impl Connection {
    /// Takes the acknowledgement of an acceptable segment; `ack` is its position, not beyond what
    /// was sent.
    pub(super) fn on_acknowledgement(
        &mut self,
        now: Instant,
        arrived: Instant,
        segment: &Segment<'_>,
        lists: &[u8],
        ack: StreamOffset,
    ) {
        if self.acknowledges_nothing(segment, lists, ack) {
            self.on_nothing_acknowledged(now, segment, ack);
            return;
        }
        if !self.read_feedback(arrived, segment, lists, ack) {
            return;
        }
        if self.audit.is_failed(ack, &self.feedback.info.acked) {
            self.end_with_reset(CloseReason::Dishonest);
            return;
        }
        self.audit.on_report(self.feedback.info.largest);
        let mut event = self.begin_ack(now, arrived, segment, ack);
        self.mark_acknowledged(&mut event, segment);
        self.measure(&mut event);
        self.find_losses(&mut event);
        self.recover_or_undo(&mut event);
        self.update_in_flight(&event);
        self.control_congestion(&event);
        self.trace_acknowledgement(&event);
        let newest = self.feedback.info.round_trip.map(|sample| sample.newest);
        self.inform_peer(now, newest);
        self.update_timers(&event);
        if event.advanced {
            self.offer_writable();
            if self.queue.is_finished()
                && ack == self.queue.end_with_fin()
                && self.state != State::Closed
            {
                self.on_fin_acknowledged(now);
            }
        }
    }

    /// Data of the peer, while nothing of ours is outstanding and nothing of what was waits to be
    /// settled: as each segment to a side that only receives. All steps of
    /// [`Self::on_acknowledgement`] would find nothing to do, but for those that follow in
    /// [`Self::on_nothing_acknowledged`].
    #[inline]
    fn acknowledges_nothing(&self, segment: &Segment<'_>, lists: &[u8], ack: StreamOffset) -> bool {
        let options = &segment.header.options;
        ack == self.snd.una
            && self.snd.outstanding() == 0
            && !segment.payload.is_empty()
            && lists.is_empty()
            && options.sack.is_empty()
            && matches!(options.tack, None | Some(TackOption::Data(_)))
            && self.log.is_empty()
            && self.feedback.is_settled()
            && self.recovery.is_settled()
            && self.rate.is_settled()
            && !self.telemetry.trace.is_on()
    }

    /// What is left to do where [`Self::acknowledges_nothing`]: the peer's window, its marks, and
    /// the timers.
    #[inline]
    fn on_nothing_acknowledged(&mut self, now: Instant, segment: &Segment<'_>, ack: StreamOffset) {
        let header = &segment.header;
        self.window.update(header.seq, ack, header.window, false);
        self.answer_marks(now, header.flags, 0, ack, 0);
        self.inform_peer(now, None);
        self.end_persisting();
        self.restart_timers(now, false);
    }

    /// Notes how things stood before the acknowledgement.
    #[inline]
    fn begin_ack<'a>(
        &mut self,
        now: Instant,
        arrived: Instant,
        segment: &'a Segment<'_>,
        ack: StreamOffset,
    ) -> AckEvent<'a> {
        let pure = segment.sequence_len() == 0;
        if pure {
            self.telemetry.counters.acks_received += 1;
        }
        AckEvent {
            now,
            arrived,
            header: &segment.header,
            ack,
            pure,
            prior_una: self.snd.una,
            prior_in_flight: self.bytes_in_flight(),
            prior_flight: self.flight_size(),
            was_in_recovery: !self.recovery.is_idle(),
            advanced: ack > self.snd.una,
            window_moved: false,
            echoed: None,
            delivery: Delivery::default(),
            duplicate: None,
            rtt: None,
            rate: None,
            lost: 0,
            undid_timeout: false,
        }
    }

    /// Moves SND.UNA, the scoreboard and the peer's window.
    #[inline]
    fn mark_acknowledged(&mut self, event: &mut AckEvent<'_>, segment: &Segment<'_>) {
        let ack = event.ack;
        if ack > self.snd.nxt {
            // A window probe's octet was taken: it is sent and acknowledged at once.
            self.snd.nxt = ack;
        }
        event.echoed = self.fresh_echo(segment, event.advanced);
        event.delivery = self.mark_delivered(event.arrived, ack, event.echoed);
        event.duplicate = self.take_duplicate_report().or(event.delivery.needless);
        if self.mtu.on_delivered(event.now, event.delivery.longest) {
            self.on_segment_size_changed();
        }
        if event.advanced {
            self.snd.una = ack;
            self.queue.release_to(ack);
            self.recovery.on_progress(ack);
            self.mtu.on_progress(event.now, event.delivery.longest);
        }
        // RFC 9293 §3.10.7.4: an old acknowledgement does not move the window.
        event.window_moved = ack >= event.prior_una
            && !self.feedback.info.old
            && self.window.update(
                self.window_order(event.header.seq),
                ack,
                event.header.window,
                false,
            );
    }

    /// Round trip and delivery rate.
    #[inline]
    fn measure(&mut self, event: &mut AckEvent<'_>) {
        event.rtt = self.take_rtt_sample(event.now, event.arrived, &event.delivery, event.echoed);
        event.rate = self.rate.finish_ack(
            self.rtt.min(),
            self.feedback.info.rate,
            self.cc.in_slow_start(),
        );
    }

    /// A duplicate acknowledgement as RFC 5681 §2 has it, SACK blocks or not.
    fn is_duplicate_ack(&self, event: &AckEvent<'_>) -> bool {
        !event.advanced
            && event.pure
            && !event.window_moved
            && !self.log.is_empty()
            && event.ack == event.prior_una
    }

    /// Loss detection, by SACK or by duplicate acknowledgements, and the answer to a tail loss
    /// probe.
    #[inline]
    fn find_losses(&mut self, event: &mut AckEvent<'_>) {
        let (ack, info) = (event.ack, &self.feedback.info);
        if !self.hears_sack() {
            event.lost = self.count_duplicates(&PlainAck {
                snd_una: self.snd.una,
                acked: event.acked(),
                duplicate: self.is_duplicate_ack(event),
                mss: self.mtu.mss().into(),
            });
        } else if event.delivery.bytes > 0 || event.duplicate.is_some() || info.numbered {
            let view = LossView {
                arrived: event.arrived,
                lost: &info.lost,
                largest: info.largest,
                largest_left: info.largest_left,
                largest_age: info.largest_age,
                unreported: event
                    .delivery
                    .newest_transmission()
                    .filter(|_| !info.numbered),
                complete: ack == self.snd.una
                    && match info.above {
                        Some(above) => above <= self.log.sacked_bytes(),
                        None => (1..LossView::SACK_ROOM).contains(&event.header.options.sack.len()),
                    },
            };
            self.recovery.on_report(&view);
            // Judged at the time of arrival: what waits behind this acknowledgement to be processed
            // may report what seems overdue by now.
            event.lost = self.detect_losses(event.arrived);
        }
        self.note_answer(event);
        let bare = !event.advanced
            && event.pure
            && !event.window_moved
            && event.header.options.sack.is_empty();
        if self.recovery.is_repaired_by_probe(
            ack,
            event.duplicate,
            bare,
            self.feedback.info.largest,
        ) {
            self.on_repaired_loss(event.now, event.prior_flight);
        }
    }

    /// How long a report took that was due, or that left at once as its newest segment showed a
    /// loss. What was held back as a remainder does not tell.
    #[inline]
    fn note_answer(&mut self, event: &AckEvent<'_>) {
        let left = if self.feedback.contract().loss_detected_by != LossDetectedBy::Receiver {
            None
        } else if event.lost > 0 {
            event.delivery.newest_unrepeated()
        } else if event.delivery.bytes >= self.reported_bytes() {
            event.delivery.oldest_unrepeated()
        } else {
            None
        };
        if let Some(left) = left {
            self.recovery.on_answer(event.now.nanos_since(left));
        }
    }

    /// Undoes a false episode, or begins one where something was lost.
    #[inline]
    fn recover_or_undo(&mut self, event: &mut AckEvent<'_>) {
        let late_original = event.delivery.late_original;
        let timed_out = self.recovery.is_after_timeout();
        let undid = self.try_undo(
            event.now,
            event.advanced.then_some(event.arrived),
            event.echoed,
            event.duplicate.is_some(),
            late_original,
        );
        event.undid_timeout = timed_out && undid;
        if event.lost > 0 && self.log.lost_bytes() == 0 {
            event.lost = 0;
        }
        if event.lost > 0 {
            if !self.recovery.is_idle() {
                // What the probe was to bring out is known.
                self.recovery.cancel_probe();
            }
            self.on_loss(event.now, event.prior_flight);
        }
        if self.recovery.is_after_timeout()
            && (event.advanced || event.delivery.bytes > 0 || self.is_duplicate_ack(event))
        {
            let new_data =
                self.queue.end_with_fin() > self.snd.nxt && self.window.edge() > self.snd.nxt;
            let mss = self.max_payload();
            self.recovery
                .on_ack_after_timeout(event.advanced, new_data, mss);
        }
    }

    /// What the peer holds without having listed it is not in flight.
    #[inline]
    fn update_in_flight(&mut self, event: &AckEvent<'_>) {
        if event.ack == self.snd.una
            && let Some(above) = self.feedback.info.above
        {
            self.recovery.on_received_above(above, &self.log);
        } else if event.advanced {
            self.recovery.on_received_above_unknown();
        }
    }

    /// Marks that an acknowledgement of `segments` reports, for the congestion controller; `flight`
    /// bytes from `una` on were outstanding. Returns whether the window limited that flight.
    #[inline]
    fn answer_marks(
        &mut self,
        now: Instant,
        flags: Flags,
        segments: u64,
        una: StreamOffset,
        flight: u64,
    ) -> bool {
        let cwnd_limited = self.telemetry.limits.is_cwnd_limited(una);
        let (una, nxt) = (self.snd.una, self.snd.nxt);
        let marks = self.ecn.on_ack(flags, segments, una, nxt);
        self.telemetry.counters.ce_reported += marks.counted;
        if marks.reduce {
            // Without room for what is not reported.
            let window = |cc: &dyn CongestionController| cc.cwnd().min(cc.ssthresh());
            let before = window(&*self.cc);
            let answers =
                self.recovery.is_idle() || self.cc.recovery_shaping() == RecoveryShaping::Own;
            if answers {
                self.cc.on_congestion(&Congestion {
                    now,
                    cause: Cause::Ecn,
                    prior_in_flight: flight,
                    cwnd_limited,
                    consecutive_timeouts: 0,
                    snd_nxt: nxt,
                });
            }
            let after = window(&*self.cc);
            let mss = u64::from(self.mtu.mss());
            let is_lowest = answers && after + mss > before;
            if self.ecn.on_reduced_for_marks(after, is_lowest, mss) {
                self.cc.on_false_marks(now, after);
            }
        }
        if let Some(window) = marks.restore
            && self.recovery.is_idle()
        {
            self.cc.on_false_marks(now, window);
        }
        cwnd_limited
    }

    /// Marks, the end of the episode, and the acknowledgement itself, for the congestion
    /// controller.
    #[inline]
    fn control_congestion(&mut self, event: &AckEvent<'_>) {
        let cwnd_limited = self.answer_marks(
            event.now,
            event.header.flags,
            event.delivery.segments,
            event.prior_una,
            event.prior_flight,
        );
        self.try_end_recovery(event.now);
        let delivered = event.delivery.bytes;
        // A rate may come for what earlier reports, of losses, had delivered.
        let informs = delivered > 0 || event.lost > 0;
        if !informs && event.rate.is_none() {
            if self.is_duplicate_ack(event) {
                let mss = self.mtu.mss().into();
                self.recovery.on_duplicate_ack(&self.log, mss);
            }
            return;
        }
        let in_flight = self.bytes_in_flight();
        if informs {
            let mss = self.mtu.mss().into();
            let progress = event.advanced && event.lost == 0;
            self.recovery
                .on_delivered_bytes(delivered, in_flight, mss, progress);
        }
        let smoothed = self.rtt.smoothed().unwrap_or_default();
        let cwnd = self.cc.cwnd();
        let slow_start = cwnd < self.cc.ssthresh();
        let in_use = WindowUse {
            cwnd,
            flight: event.prior_in_flight,
            is_limit: cwnd_limited,
        };
        self.cc.on_ack(&Ack {
            now: event.now,
            acked: event.acked(),
            delivered,
            lost: event.lost,
            prior_in_flight: event.prior_in_flight,
            bytes_in_flight: in_flight,
            rtt: event.rtt,
            srtt: smoothed,
            min_rtt: self.rtt.min().unwrap_or(smoothed),
            rate: event.rate,
            total_delivered: self.rate.delivered(),
            total_lost: self.recovery.total_lost(),
            snd_una: self.snd.una,
            snd_nxt: self.snd.nxt,
            in_recovery: event.was_in_recovery || !self.recovery.is_idle(),
            // A window at least half used in slow start counts as limiting: pacing spreads what it
            // allows. What arrived before a false timeout lets the window grow no further than it
            // was: a report of all of it would double it, and nothing is in flight. (RFC 4015 §3
            // allows even less: what is in flight, and an initial window.)
            cwnd_limited: !event.undid_timeout
                && (cwnd_limited || (slow_start && in_use.is_half())),
            slow_start_room: in_use.slow_start_room(self.mtu.mss().into()),
            token: event
                .delivery
                .newest
                .map(|(_, token)| token)
                .unwrap_or_default(),
        });
        self.update_pacing();
    }

    /// Persist, retransmission and user timers.
    #[inline]
    fn update_timers(&mut self, event: &AckEvent<'_>) {
        self.end_persisting();
        self.restart_timers(event.now, event.advanced);
    }

    /// The peer's window is not asked for any more once it is open.
    #[inline]
    fn end_persisting(&mut self) {
        if self.window.edge() > self.snd.nxt {
            self.persist.end();
            self.timers.stop(Timer::Persist);
        }
    }

    fn trace_acknowledgement(&mut self, event: &AckEvent<'_>) {
        if self.telemetry.counters.data_segments == 0 {
            return;
        }
        self.trace_losses(event.now);
        let bytes_in_flight = self.bytes_in_flight();
        let Self {
            telemetry,
            cc,
            pacer,
            rtt: estimator,
            ..
        } = self;
        telemetry.trace.add(event.now, || {
            let metrics = cc.metrics();
            Traced::AckReceived(AckReceived {
                ack: event.ack,
                delivered: event.delivery.bytes,
                lost: event.lost,
                rtt: event.rtt,
                rate: event.rate.map(|sample| sample.delivery_rate),
                bytes_in_flight,
                cwnd: cc.cwnd(),
                pacing: pacer.rate(),
                min_rtt: estimator.min(),
                phase: metrics.phase,
                bandwidth: metrics.bandwidth,
            })
        });
    }

    /// What orders window updates: reports have a number of their own, and start where our peer's
    /// unacknowledged data does, which says nothing about their age.
    fn window_order(&self, seq: SeqNum) -> SeqNum {
        if self.feedback.info.numbered {
            self.window.newest_update().unwrap_or(seq)
        } else {
            seq
        }
    }

    fn restart_timers(&mut self, now: Instant, advanced: bool) {
        if self.log.is_empty() {
            self.timers.stop(Timer::Retransmit);
            self.timers.stop(Timer::Probe);
            self.timers.stop(Timer::Reorder);
            self.timers.stop(Timer::User);
            return;
        }
        if advanced {
            self.arm_retransmission(now, true);
        }
        if advanced && let Some(limit) = self.config.user_timeout {
            self.timers.set(Timer::User, now + limit);
        }
    }

    /// Reads what the acknowledgement says beyond its number. False when it says what cannot be:
    /// then it is dropped.
    fn read_feedback(
        &mut self,
        arrived: Instant,
        segment: &Segment<'_>,
        lists: &[u8],
        ack: StreamOffset,
    ) -> bool {
        let context = ReadContext {
            arrived,
            ack,
            snd_una: self.snd.una,
            snd_nxt: self.snd.nxt,
            iss: self.identity.iss,
            largest_window: self.window.largest(),
            mss: self.max_payload(),
            smoothed_rtt: self.rtt.smoothed().unwrap_or_default(),
            log: &self.log,
        };
        let valid = self.feedback.read(&context, segment, lists).is_ok();
        self.follow_contract();
        if !valid {
            self.telemetry.counters.dropped_segments += 1;
            self.telemetry.counters.invalid_reports += 1;
        }
        valid
    }

    /// What the peer promises decides how losses are found, and whether segments are stamped.
    fn follow_contract(&mut self) {
        if let Some(contract) = self.feedback.new_contract() {
            let before = self.feedback.contract;
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

    /// States to the peer what it needs to know. `newest`: the round trip measured now, if any.
    #[inline]
    fn inform_peer(&mut self, now: Instant, newest: Option<Duration>) {
        if self.telemetry.counters.data_segments > 0 {
            self.state_round_trip(now, newest);
        }
    }
}
