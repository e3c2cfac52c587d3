//! An acknowledgement, in the one order: validate → mark acknowledged → RTT → rate sample → loss detection → undo →
//! congestion control → window → timers.

use tack_base::Instant;
use tack_wire::{Segment, SeqNum};

use super::state::State;
use super::timers::Timer;
use super::{CloseReason, Connection};
use crate::ack::feedback::{Measured, ReadContext, RoundTrip, SenderState};
use crate::cc::{Ack, Cause, Congestion, RateSample, RecoveryShaping, SendToken};
use crate::recovery::frto::Verdict;
use crate::recovery::tlp::ProbeOutcome;
use crate::recovery::{DetectionContext, LossView, Phase};
use crate::send::sent::Delivered;
use crate::trace::{AckReceived, Traced};

/// What an acknowledgement delivered, collected while the log is walked.
#[derive(Debug, Default)]
struct Delivery {
    /// Positions newly delivered.
    bytes: u64,
    /// Departures of the oldest and the newest segment free of retransmission ambiguity.
    oldest_sent_at: Option<Instant>,
    newest_sent_at: Option<Instant>,
    /// A retransmission was among them. What was sent after it may have waited for it at the receiver, without a SACK
    /// block to tell: its age is then no round-trip time.
    repaired: bool,
    /// Last departure of what was oldest, if it left more than once.
    oldest_repaired_at: Option<Instant>,
    /// Token of the newest transmission.
    newest: Option<(u64, SendToken)>,
    /// Retransmissions that turn out to have been needless.
    spurious: u64,
    /// Where the last of these starts.
    needless: Option<u64>,
    /// Bytes of the longest segment.
    longest: u64,
    /// A segment presumed lost by a timeout, and not retransmitted, arrived.
    late_original: bool,
}

impl Delivery {
    #[inline]
    fn note(&mut self, delivered: &Delivered, snd_una: u64) {
        self.longest = self.longest.max(delivered.transmission.len());
        if !delivered.retransmitted {
            let at = delivered.transmission.sent_at;
            self.oldest_sent_at = Some(self.oldest_sent_at.map_or(at, |oldest| oldest.min(at)));
            self.newest_sent_at = Some(self.newest_sent_at.map_or(at, |newest| newest.max(at)));
            self.late_original |= delivered.was_lost;
        } else {
            self.repaired = true;
            if delivered.transmission.start == snd_una {
                self.oldest_repaired_at = Some(delivered.transmission.sent_at);
            }
        }
        if self
            .newest
            .is_none_or(|(number, _)| delivered.number > number)
        {
            self.newest = Some((delivered.number, delivered.transmission.token));
        }
    }
}

impl Connection {
    /// Takes the acknowledgement of an acceptable segment; `ack` is its position, not beyond what was sent.
    pub(super) fn on_acknowledgement(
        &mut self,
        now: Instant,
        arrived: Instant,
        segment: &Segment<'_>,
        lists: &[u8],
        ack: u64,
    ) {
        if !self.read_news(arrived, segment, lists, ack) {
            return;
        }
        if self.audit.is_failed(ack, &self.news.acked) {
            self.end_with_reset(CloseReason::Dishonest);
            return;
        }
        self.audit.on_report(self.news.largest);
        let header = &segment.header;
        let pure = segment.sequence_len() == 0;
        if pure {
            self.counters.acks_received += 1;
        }
        let prior_una = self.snd_una;
        let prior_in_flight = self.bytes_in_flight();
        let prior_flight = self.flight_size();
        let advanced = ack > prior_una;

        // Mark acknowledged.
        if ack > self.snd_nxt {
            // A window probe's octet was taken: it is sent and acknowledged at once.
            self.snd_nxt = ack;
        }
        let echoed = self.fresh_echo(segment, advanced);
        let delivery = self.mark_delivered(arrived, ack, echoed);
        let duplicate = self.take_duplicate_report().or(delivery.needless);
        if advanced {
            self.snd_una = ack;
            self.queue.release_to(ack);
            self.timeouts_in_a_row = 0;
            self.head_retransmissions = 0;
            if self.mtu.on_progress(now, delivery.longest) {
                self.on_segment_size_changed();
            }
        }
        // RFC 9293 §3.10.7.4: an old acknowledgement does not move the window.
        let window_moved = ack >= prior_una
            && !self.news.old
            && self
                .window
                .update(self.window_order(header.seq), ack, header.window, false);

        // RTT.
        let rtt_sample = self.take_rtt_sample(now, arrived, &delivery, echoed);
        // Rate.
        let rate = self
            .rate
            .finish_ack(self.rtt.min(), self.news.rate, self.cc.in_slow_start());

        // Loss detection.
        let in_recovery_before = self.phase != Phase::Open;
        let plain_duplicate =
            !advanced && pure && !window_moved && !self.log.is_empty() && ack == prior_una;
        let mut lost = if self.hears_sack() {
            if delivery.bytes > 0 || duplicate.is_some() || self.news.numbered {
                let view = LossView {
                    arrived,
                    lost: &self.news.lost,
                    largest: self.news.largest,
                    complete: ack == self.snd_una
                        && self
                            .news
                            .above
                            .is_some_and(|above| above <= self.log.sacked_bytes()),
                };
                self.detector.on_report(&view, &self.log);
                // Judged at the time of arrival: what waits behind this acknowledgement to be processed may be the word of
                // what seems overdue by now.
                self.detect_losses(arrived)
            } else {
                0
            }
        } else {
            self.count_duplicates(advanced, plain_duplicate, ack.saturating_sub(prior_una))
        };
        let bare = !advanced && pure && !window_moved && header.options.sack.is_empty();
        if self.tlp.on_ack(ack, duplicate, bare) == ProbeOutcome::RepairedLoss
            && self.phase == Phase::Open
        {
            self.on_repaired_loss(now, prior_flight);
        }

        // Undo.
        self.try_undo(echoed, duplicate.is_some(), delivery.late_original, now);
        if lost > 0 && self.log.lost_bytes() == 0 {
            lost = 0;
        }
        if lost > 0 {
            if self.phase != Phase::Open {
                // What the probe was to bring out is known.
                self.tlp.cancel();
            }
            self.on_loss(now, prior_flight);
        }
        if matches!(self.phase, Phase::Timeout { .. }) {
            let new_data =
                self.queue.end_with_fin() > self.snd_nxt && self.window.edge() > self.snd_nxt;
            if (advanced || plain_duplicate || delivery.bytes > 0)
                && self.frto.on_ack(advanced, new_data, self.max_payload()) == Verdict::Genuine
            {
                self.undo.dismiss_originals();
            }
        }

        // In flight. Of what the peer has and did not name, for want of room in its lists, what is presumed lost is not in
        // flight anyway.
        if ack == self.snd_una
            && let Some(above) = self.news.above
        {
            self.unnamed = above.saturating_sub(self.log.sacked_bytes() + self.log.lost_bytes());
        } else if advanced {
            self.unnamed = 0;
        }

        // Congestion control.
        if self.ecn.on_ack(header.flags, self.snd_una, self.snd_nxt)
            && (self.phase == Phase::Open || self.cc.recovery_shaping() == RecoveryShaping::Own)
        {
            self.cc.on_congestion(&Congestion {
                now,
                cause: Cause::Ecn,
                prior_in_flight: prior_flight,
                cwnd_limited: self.is_cwnd_limited(prior_una),
                consecutive_timeouts: 0,
                snd_nxt: self.snd_nxt,
            });
        }
        self.leave_recovery_at(now);
        // A rate may come for what earlier reports, of losses, had delivered.
        let told = delivery.bytes > 0 || lost > 0;
        if told || rate.is_some() {
            let in_flight = self.bytes_in_flight();
            if told && let Some(prr) = &mut self.prr {
                prr.on_ack(
                    delivery.bytes,
                    in_flight,
                    self.mtu.mss().into(),
                    advanced && lost == 0,
                );
            }
            let smoothed = self.rtt.smoothed().unwrap_or_default();
            let cwnd = self.cc.cwnd();
            let slow_start = cwnd < self.cc.ssthresh();
            self.cc.on_ack(&Ack {
                now,
                acked: ack.saturating_sub(prior_una),
                delivered: delivery.bytes,
                lost,
                prior_in_flight,
                bytes_in_flight: in_flight,
                rtt: rtt_sample,
                srtt: smoothed,
                min_rtt: self.rtt.min().unwrap_or(smoothed),
                rate,
                total_delivered: self.rate.delivered(),
                total_lost: self.total_lost,
                snd_una: self.snd_una,
                snd_nxt: self.snd_nxt,
                in_recovery: in_recovery_before || self.phase != Phase::Open,
                // A window at least half used in slow start counts as limiting: pacing spreads what it allows.
                cwnd_limited: self.is_cwnd_limited(prior_una)
                    || (slow_start && cwnd <= 2 * prior_in_flight),
                token: delivery.newest.map(|(_, token)| token).unwrap_or_default(),
            });
            self.update_pacing();
        } else if plain_duplicate && let Some(prr) = &mut self.prr {
            let mss = u64::from(self.mtu.mss());
            let in_flight =
                self.log.in_flight() - self.dup_acks.departed(mss, self.log.in_flight());
            prr.on_ack(mss, in_flight, mss, false);
        }

        self.trace_acknowledgement(now, ack, delivery.bytes, lost, rtt_sample, rate);
        self.tell_peer(now);

        // Window and timers.
        if self.window.edge() > self.snd_nxt {
            self.persist_backoff = 0;
            self.timers.stop(Timer::Persist);
        }
        self.restart_timers(now, advanced);
        if advanced {
            self.offer_writable();
            if self.queue.is_finished()
                && ack == self.queue.end_with_fin()
                && self.state != State::Closed
            {
                self.on_fin_acknowledged(now);
            }
        }
    }

    fn trace_acknowledgement(
        &mut self,
        now: Instant,
        ack: u64,
        delivered: u64,
        lost: u64,
        rtt: Option<core::time::Duration>,
        rate: Option<RateSample>,
    ) {
        if self.counters.data_segments == 0 {
            return;
        }
        let bytes_in_flight = self.bytes_in_flight();
        let Self {
            trace,
            cc,
            pacer,
            rtt: estimator,
            ..
        } = self;
        trace.add(now, || {
            let metrics = cc.metrics();
            Traced::AckReceived(AckReceived {
                ack,
                delivered,
                lost,
                rtt,
                rate: rate.map(|sample| sample.delivery_rate),
                bytes_in_flight,
                cwnd: cc.cwnd(),
                pacing: pacer.rate(),
                min_rtt: estimator.min(),
                phase: metrics.phase,
                bandwidth: metrics.bandwidth,
            })
        });
    }

    /// What orders window updates: reports have a number of their own, and start where our peer's unacknowledged data
    /// does, which says nothing about their age.
    fn window_order(&self, seq: SeqNum) -> SeqNum {
        if self.news.numbered {
            self.window.newest_update().unwrap_or(seq)
        } else {
            seq
        }
    }

    /// Has the peer told what it needs to know about our sending.
    fn tell_peer(&mut self, now: Instant) {
        let (Some(min_rtt), Some(smoothed_rtt)) = (self.rtt.min(), self.rtt.smoothed()) else {
            return;
        };
        if self.counters.data_segments == 0 {
            return;
        }
        let state = SenderState {
            now,
            min_rtt,
            smoothed_rtt,
            round_trip: self
                .news
                .round_trip
                .map_or(smoothed_rtt, |sample| sample.newest.max(smoothed_rtt)),
            startup: self.cc.in_slow_start(),
        };
        if let Some(sync) = self.reader.poll_sync(&state) {
            self.sync_due = Some(sync);
        }
    }

    /// Reads what the acknowledgement says beyond its number. False when it says what cannot be: then it is dropped.
    fn read_news(
        &mut self,
        arrived: Instant,
        segment: &Segment<'_>,
        lists: &[u8],
        ack: u64,
    ) -> bool {
        self.news.clear();
        let context = ReadContext {
            arrived,
            ack,
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            iss: self.iss,
            largest_window: self.window.largest(),
            mss: self.max_payload(),
            smoothed_rtt: self.rtt.smoothed().unwrap_or_default(),
            log: &self.log,
        };
        let sound = self
            .reader
            .read(&context, segment, lists, &mut self.news)
            .is_ok();
        self.follow_reader();
        if !sound {
            self.counters.dropped_segments += 1;
            self.counters.invalid_reports += 1;
        }
        sound
    }

    /// What the reader makes of the peer's acknowledgements decides how losses are found, and whether segments are stamped.
    fn follow_reader(&mut self) {
        let contract = self.reader.contract();
        if contract != self.peer_contract {
            if contract.interval != self.peer_contract.interval
                || contract.gap != self.peer_contract.gap
                || contract.least_segments != self.peer_contract.least_segments
            {
                self.cc.on_feedback_threshold(contract.least_segments);
                self.cc.on_feedback_interval(contract.interval);
                self.cc.on_feedback_gap(contract.gap);
            }
            if contract.loss_detected_by != self.peer_contract.loss_detected_by {
                // The peer's reports do not get through, or do again.
                self.detector = contract.loss_detected_by.detector();
                self.audit.end();
            }
            self.peer_contract = contract;
        }
        self.numbering.set(self.reader.stamps());
    }

    /// The peer received something twice that had left twice: one transmission was for nothing.
    fn take_duplicate_report(&mut self) -> Option<u64> {
        let start = self.news.duplicate?;
        // The network duplicates too, which says nothing about our retransmissions (RFC 3708 §2).
        if !self.retransmitted.take(start) {
            return None;
        }
        self.detector
            .on_duplicate_report(self.snd_una, self.snd_nxt);
        self.undo.on_duplicate(start);
        self.counters.spurious_retransmissions += 1;
        Some(start)
    }

    /// The timestamp that an acknowledgement of new data echoes (RFC 7323 §4). The segment that brought it about is the
    /// first one unacknowledged so far, or a later one: an older echo is stale, because a box took the option off, or a
    /// lie, to have window cuts taken back.
    fn fresh_echo(&self, segment: &Segment<'_>, advanced: bool) -> Option<u32> {
        let timestamps = segment.header.options.timestamps?;
        let oldest = self.log.front_first_sent_at()?;
        let usable = advanced && self.timestamps.is_agreed() && timestamps.echo != 0;
        (usable && !self.timestamps.is_before(timestamps.echo, oldest)).then_some(timestamps.echo)
    }

    /// Walks the log along the cumulative acknowledgement and the blocks received above it.
    fn mark_delivered(&mut self, arrived: Instant, ack: u64, echoed: Option<u32>) -> Delivery {
        let mut delivery = Delivery::default();
        let echoed_departure =
            echoed.and_then(|echo| self.timestamps.latest_departure(arrived, echo));
        let mut context = self.detection_context(arrived);
        let snd_una = self.snd_una;
        let Self {
            log,
            rate,
            detector,
            undo,
            news,
            ..
        } = self;
        let largest = news.largest;
        let mut each = |context: &DetectionContext, delivered: &Delivered| {
            delivery.note(delivered, snd_una);
            // Delivered although its newest transmission has not arrived: an earlier one did.
            if delivered.transmission.retransmission
                && largest.is_some_and(|largest| delivered.number > largest)
            {
                rate.on_delivered_earlier(arrived, delivered);
                delivery.spurious += 1;
                delivery.needless = Some(delivered.transmission.start);
                undo.on_duplicate(delivered.transmission.start);
                return;
            }
            rate.on_delivered(arrived, delivered);
            detector.on_delivered(context, delivered);
        };
        let mut bytes = 0;
        if ack > self.snd_una {
            context.echoed_departure = echoed_departure;
            bytes += log.acknowledge(ack, |delivered| each(&context, delivered));
        }
        // What arrived above a hole is not echoed: the timestamp tells nothing about it (RFC 7323 §4.3).
        context.echoed_departure = None;
        for block in news.acked.drain(..) {
            bytes += log.acknowledge_selectively(block, |delivered| each(&context, delivered));
        }
        delivery.bytes = bytes;
        self.counters.spurious_retransmissions += delivery.spurious;
        delivery
    }

    /// RFC 6298 §3 (Karn) with RFC 7323 §4.1: from departures where they are unambiguous, else from the echo.
    fn take_rtt_sample(
        &mut self,
        now: Instant,
        arrived: Instant,
        delivery: &Delivery,
        echoed: Option<u32>,
    ) -> Option<core::time::Duration> {
        if let Some(RoundTrip { newest, fastest }) = self.news.round_trip {
            self.rtt
                .sample(now, newest, fastest, self.snd_una, self.snd_nxt);
            return Some(fastest);
        }
        if self.news.rate != Measured::BySender {
            // The acknowledgement may have been held back, and does not say for how long. That is good enough for the timeout
            // where data carries it, as requests and answers do: reports are rare there.
            if !self.news.numbered
                && !delivery.repaired
                && let Some(newest) = delivery.newest_sent_at
                && arrived >= newest
            {
                self.sample_coarsely(now, arrived.saturating_since(newest));
            }
            return None;
        }
        if let (Some(oldest), Some(newest)) = (delivery.oldest_sent_at, delivery.newest_sent_at)
            && !delivery.repaired
            // A carrier whose arrival stamps jump must not make round trips of nothing.
            && arrived >= newest
        {
            let smooth = arrived.saturating_since(oldest);
            let fastest = arrived.saturating_since(newest);
            self.rtt
                .sample_departures(now, smooth, fastest, self.snd_una, self.snd_nxt);
            return Some(fastest);
        }
        // The echo ticks in milliseconds: good enough for the timeout.
        let Some(age) = echoed.and_then(|echo| self.timestamps.age(arrived, echo)) else {
            if let Some(sent_at) = delivery.oldest_repaired_at {
                self.rtt.on_repair(arrived.saturating_since(sent_at));
            }
            if let Some(newest) = delivery.newest_sent_at.filter(|at| *at <= arrived) {
                self.rtt
                    .on_bound(arrived.saturating_since(newest), self.snd_una);
            }
            return None;
        };
        // A segment that the receiver has already leaves TS.Recent alone (RFC 7323 §5.3 R2): where the first acknowledgement
        // got lost, the echo is as old as all timeouts since. Twice the timeout still lets it grow if round trips have.
        self.sample_coarsely(now, age.min(self.rtt.base_rto() * 2));
        None
    }

    /// Takes a round trip that is good enough for the timeout. The minimum takes it only for want of a better one.
    fn sample_coarsely(&mut self, now: Instant, age: core::time::Duration) {
        let (una, nxt) = (self.snd_una, self.snd_nxt);
        match self.rtt.min() {
            None => self.rtt.sample(now, age, age, una, nxt),
            Some(floor) => self.rtt.sample_smooth(age.max(floor), una, nxt),
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
}
