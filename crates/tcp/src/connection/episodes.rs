//! Episodes of loss recovery: how one begins, what takes it back, and when it is over.

use tack_base::Instant;

use super::Connection;
use super::timers::Timer;
use crate::cc::{Cause, Congestion, RecoveryShaping};
use crate::recovery::Phase;
use crate::recovery::prr::Prr;
use crate::trace::Traced;

impl Connection {
    /// Runs the detector; arms the reordering timer; returns the bytes newly lost.
    pub(super) fn detect_losses(&mut self, now: Instant) -> u64 {
        let context = self.detection_context(now);
        let detection = self.detector.detect(&context, &mut self.log);
        match detection.look_again {
            Some(at) => self.timers.set(Timer::Reorder, at),
            None => self.timers.stop(Timer::Reorder),
        }
        self.total_lost += detection.lost;
        detection.lost
    }

    /// Loss detection for a peer without SACK (RFC 5681 §3.2, RFC 6582 §3.2). Returns the bytes newly lost.
    pub(super) fn count_duplicates(&mut self, advanced: bool, duplicate: bool, acked: u64) -> u64 {
        let mss = u64::from(self.mtu.mss());
        let mut lost = 0;
        if advanced {
            let recovering =
                matches!(self.phase, Phase::Recovery { until } if self.snd_una < until);
            self.dup_acks.on_advance(acked, mss, recovering);
            if recovering {
                // A partial acknowledgement: the next hole starts where it stopped, and is repaired at once.
                lost = self.log.mark_front_lost();
                self.force_retransmission = lost > 0;
            }
        } else if duplicate && self.dup_acks.on_duplicate() && self.phase == Phase::Open {
            lost = self.log.mark_front_lost();
        }
        self.total_lost += lost;
        lost
    }

    /// FlightSize of RFC 5681 §2: sent and not cumulatively acknowledged, whatever was reported selectively. How much
    /// of it reports arrived before a loss was seen must make no difference to the reduction of a window that was not in
    /// use.
    pub(super) fn flight_size(&self) -> u64 {
        self.snd_nxt - self.snd_una
    }

    /// The congestion window limited sending at some time within the flight that begins at `una`.
    pub(super) fn is_cwnd_limited(&self, una: u64) -> bool {
        una <= self.cwnd_limited_until
    }

    /// Something was lost: fast recovery begins, unless an episode is open already. `flight` is the flight size
    /// before.
    pub(super) fn on_loss(&mut self, now: Instant, flight: u64) {
        if self.phase != Phase::Open {
            return;
        }
        self.counters.fast_recoveries += 1;
        self.audit.end();
        self.trace.add(now, || Traced::Recovery("begins"));
        let window = self.cc.cwnd();
        self.begin_reduction(now, flight);
        self.begin_evidence(false);
        self.phase = Phase::Recovery {
            until: self.snd_nxt,
        };
        self.tlp.cancel();
        self.timers.stop(Timer::Probe);
        if self.cc.recovery_shaping() == RecoveryShaping::Prr {
            // RFC 9937 §6 leaves out what was reported selectively before: after a long recovery that is windows of it.
            self.prr = Some(Prr::new(flight.min(window), self.cc.cwnd()));
        }
    }

    /// A tail loss probe repaired a loss: congestion control hears of it, nothing needs repair (RFC 8985 §7.4.2).
    pub(super) fn on_repaired_loss(&mut self, now: Instant, flight: u64) {
        self.begin_reduction(now, flight);
        self.cc.on_recovered(now);
    }

    fn begin_reduction(&mut self, now: Instant, flight: u64) {
        self.episode_cause = Cause::Loss;
        self.cc.on_congestion(&Congestion {
            now,
            cause: Cause::Loss,
            prior_in_flight: flight,
            cwnd_limited: self.is_cwnd_limited(self.snd_nxt.saturating_sub(flight)),
            consecutive_timeouts: 0,
            snd_nxt: self.snd_nxt,
        });
        // A controller with recovery of its own answers losses and marks apart.
        if self.cc.recovery_shaping() == RecoveryShaping::Prr {
            self.ecn.on_reduction(self.snd_nxt);
        }
    }

    /// Evidence about an episode that begins is collected from here on.
    pub(super) fn begin_evidence(&mut self, originals_count: bool) {
        let probe = self.tlp.repeated_at();
        let confused = self.log.retransmitted_segments() > usize::from(probe.is_some());
        self.undo
            .begin(self.snd_una..self.snd_nxt, probe, confused, originals_count);
    }

    /// Takes a false episode back where there is proof.
    pub(super) fn try_undo(
        &mut self,
        echoed: Option<u32>,
        duplicate: bool,
        late_original: bool,
        now: Instant,
    ) {
        if !self.undo.is_open() || self.phase == Phase::Open {
            return;
        }
        // Eifel (RFC 3522 §3.2): did the original bring this acknowledgement about, or its retransmission? One that
        // reports a duplicate is not asked (step 6).
        let original_echoed = echoed
            .filter(|_| self.news.duplicate.is_none())
            .zip(self.undo.first_retransmission())
            .map(|(echo, instant)| self.timestamps.is_before(echo, instant));
        let by_echo = original_echoed == Some(true);
        if original_echoed == Some(false) {
            self.undo.dismiss_originals();
        }
        // RFC 5682 §2.1, §3.1 step 2: what the first acknowledgement after the timeout covers may have arrived long before, and
        // its acknowledgements got lost.
        let by_original =
            late_original && self.undo.originals_count() && !self.frto.awaits_first_ack();
        let by_duplicates = duplicate && self.undo.is_every_retransmission_duplicate();
        // Everything deemed lost arrived before any of it left again: it was late, nothing else.
        let by_arrival = matches!(self.phase, Phase::Recovery { .. })
            && self.undo.is_untouched()
            && self.log.lost_bytes() == 0;
        if !(by_original || by_duplicates || by_echo || by_arrival) {
            return;
        }
        self.counters.undone_episodes += 1;
        self.trace.add(now, || Traced::Recovery("undone"));
        self.log.unmark_lost();
        self.detector.on_undone();
        self.undo.end();
        self.frto.end();
        self.prr = None;
        self.phase = Phase::Open;
        self.force_retransmission = false;
        self.cc.on_spurious(now, self.episode_cause);
        self.update_pacing();
    }

    /// The episode ends when everything sent before it is acknowledged.
    pub(super) fn leave_recovery_at(&mut self, now: Instant) {
        let Some(until) = self.phase.until() else {
            return;
        };
        if self.snd_una < until {
            return;
        }
        self.trace.add(now, || Traced::Recovery("ends"));
        self.phase = Phase::Open;
        self.prr = None;
        self.undo.end();
        self.frto.end();
        self.dup_acks.reset();
        self.detector.on_recovered();
        self.cc.on_recovered(now);
    }
}
