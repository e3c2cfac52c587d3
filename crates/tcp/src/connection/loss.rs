//! What follows from losses for the rest of the connection: timers, counters, audits and the trace.

use tack_base::{Instant, StreamOffset};

use super::Connection;
use super::due::Due;
use super::timers::Timer;
use crate::recovery::DetectionContext;
use crate::recovery::episodes::{LossRecovery, PlainAck, PlainLoss, Sending};
use crate::recovery::undo::Evidence;
use crate::trace::Traced;

impl Connection {
    /// What loss detection needs to know about the moment.
    pub(super) fn detection_context(&self, now: Instant) -> DetectionContext {
        let ack_delay = self.feedback.contract().timeout_allowance;
        self.recovery.context(now, &self.rtt, ack_delay)
    }

    /// FlightSize of RFC 5681 §2: sent and not cumulatively acknowledged, whatever was reported
    /// selectively. How much of it reports arrived before a loss was seen must make no difference
    /// to the reduction of a window that was not in use.
    pub(super) fn flight_size(&self) -> u64 {
        self.snd.outstanding()
    }

    /// The congestion window limited sending at some time within the flight that begins at `una`.
    pub(super) fn is_cwnd_limited(&self, una: StreamOffset) -> bool {
        self.telemetry.limits.is_cwnd_limited(una)
    }

    /// One step of loss recovery, about the flight that begins at `flight_start`.
    fn recover<R>(
        &mut self,
        now: Instant,
        flight_start: StreamOffset,
        step: impl FnOnce(&mut LossRecovery, &mut Sending<'_>) -> R,
    ) -> R {
        let mut sending = Sending {
            now,
            snd_una: self.snd.una,
            snd_nxt: self.snd.nxt,
            cwnd_limited: self.is_cwnd_limited(flight_start),
            log: &mut self.log,
            cc: &mut *self.cc,
            ecn: &mut self.ecn,
        };
        step(&mut self.recovery, &mut sending)
    }

    /// Runs the detector; arms the reordering timer; returns the bytes newly lost.
    pub(super) fn detect_losses(&mut self, now: Instant) -> u64 {
        let context = self.detection_context(now);
        let detection = self.recovery.detect(&context, &mut self.log);
        match detection.look_again {
            Some(at) => self.timers.set(Timer::Reorder, at),
            None => self.timers.stop(Timer::Reorder),
        }
        if detection.asks {
            self.due.add(Due::Retransmission);
        }
        detection.lost - self.take_lost_probe(now, detection.lost)
    }

    /// Bytes of the probe of a larger segment size, if it is among the `lost` bytes newly lost, and
    /// alone: then its size is what kept it, and nothing is said of congestion (RFC 8899 §3, item
    /// 7).
    fn take_lost_probe(&mut self, now: Instant, lost: u64) -> u64 {
        let Some(probe) = self.mtu.probe().filter(|probe| self.log.is_lost(probe)) else {
            return 0;
        };
        let len = probe.end - probe.start;
        let alone = lost == len && self.log.lost_bytes() == len && self.recovery.is_idle();
        self.mtu.on_probe_lost(now, alone);
        if !alone {
            return 0;
        }
        self.recovery.excuse(len);
        len
    }

    /// Loss detection for a peer without SACK. Returns the bytes newly lost.
    pub(super) fn count_duplicates(&mut self, ack: &PlainAck) -> u64 {
        match self.recovery.on_plain_ack(ack, &mut self.log) {
            PlainLoss::Counted(lost) => lost,
            PlainLoss::Partial(lost) => {
                self.due.set(Due::Retransmission, lost > 0);
                lost
            }
        }
    }

    /// Something was lost: fast recovery begins, unless an episode is open already. `flight` is the
    /// flight size before.
    pub(super) fn on_loss(&mut self, now: Instant, flight: u64) {
        let start = self.snd.nxt.saturating_sub(flight);
        if self.recover(now, start, |recovery, sending| {
            recovery.on_loss(sending, flight)
        }) {
            self.telemetry.counters.fast_recoveries += 1;
            self.audit.end();
            self.telemetry.trace.add(now, || Traced::Recovery("begins"));
            self.timers.stop(Timer::Probe);
        }
    }

    /// Tells the trace what was marked lost since the last time.
    pub(super) fn trace_losses(&mut self, now: Instant) {
        while let Some(lost) = self.log.pop_newly_lost() {
            self.telemetry.trace.add(now, || Traced::Lost {
                start: lost.range.start,
                end: lost.range.end,
                number: lost.number,
                sign: lost.sign,
            });
        }
    }

    /// A tail loss probe repaired a loss.
    pub(super) fn on_repaired_loss(&mut self, now: Instant, flight: u64) {
        let start = self.snd.nxt.saturating_sub(flight);
        self.recover(now, start, |recovery, sending| {
            recovery.on_repaired_loss(sending, flight);
        });
    }

    /// The retransmission timer ran out with `in_flight` bytes in flight.
    pub(super) fn lose_flight(&mut self, now: Instant, in_flight: u64) {
        let context = self.detection_context(now);
        self.audit.end();
        self.recover(now, self.snd.una, |recovery, sending| {
            recovery.on_timeout(&context, sending, in_flight);
        });
        self.timers.stop(Timer::Probe);
        self.timers.stop(Timer::Reorder);
        self.due.add(Due::Retransmission);
    }

    /// Undoes a false episode where there is proof, and says whether there was. `echoed` is a fresh
    /// timestamp echo, `advanced` is when an acknowledgement arrived that moved SND.UNA.
    pub(super) fn try_undo(
        &mut self,
        now: Instant,
        advanced: Option<Instant>,
        echoed: Option<u32>,
        duplicate: bool,
        late_original: bool,
    ) -> bool {
        // Eifel (RFC 3522 §3.2): did the original bring this acknowledgement about, or its
        // retransmission? One that reports a duplicate is not asked (step 6).
        let echoes_original = echoed
            .filter(|_| self.feedback.info.duplicate.is_none())
            .zip(self.recovery.first_retransmission())
            .map(|(echo, instant)| self.timestamps.is_before(echo, instant));
        // Without an echo and without a report only time tells them apart.
        let silent = echoed.is_none() && !self.feedback.info.numbered;
        let too_soon = advanced
            .filter(|_| silent)
            .zip(self.recovery.oldest_retransmission())
            .zip(self.rtt.least())
            .is_some_and(|((arrived, left), least)| arrived < left + least);
        let evidence = Evidence {
            echoes_original,
            duplicate,
            late_original,
            too_soon,
        };
        let undone = self.recover(now, self.snd.una, |recovery, sending| {
            recovery.try_undo(&evidence, sending)
        });
        if undone {
            self.telemetry.counters.undone_episodes += 1;
            self.telemetry.trace.add(now, || Traced::Recovery("undone"));
            self.due.set(Due::Retransmission, false);
            self.update_pacing();
        }
        undone
    }

    /// Ends the episode when everything sent before it is acknowledged.
    pub(super) fn try_end_recovery(&mut self, now: Instant) {
        if self.recovery.try_end(self.snd.una, self.snd.nxt) {
            self.telemetry.trace.add(now, || Traced::Recovery("ends"));
            self.cc.on_recovered(now);
        }
    }
}
