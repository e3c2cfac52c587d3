//! The timers of a connection, each with a deadline of its own, and what happens when one runs out.

use tack_base::Instant;
use tack_base::timers::{TimerName, Timers};

use super::due::Due;
use super::{CloseReason, Connection};
use crate::recovery::tlp::TailLossProbe;
use crate::trace::Traced;

/// Names of the timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    /// SYN or data unacknowledged for one RTO.
    Retransmit,
    /// Tail loss probe.
    Probe,
    /// The reordering window of the oldest suspect is over.
    Reorder,
    /// The peer's window is closed: ask again.
    Persist,
    /// A held-back acknowledgement is due.
    DelayedAck,
    /// The peer was silent for long.
    KeepAlive,
    /// Data unacknowledged for too long.
    User,
    /// TIME-WAIT, or FIN-WAIT-2 that nobody reads, is over.
    Lifetime,
    /// Pacing lets the next segment out.
    Pacing,
    /// What an idle connection does not need may be given back.
    Idle,
}

/// Number of timers.
pub(crate) const TIMERS: usize = 10;

/// The timers of one connection.
pub(super) type ConnectionTimers = Timers<Timer, TIMERS>;

impl TimerName for Timer {
    const ALL: &'static [Self] = &[
        Self::User,
        Self::Lifetime,
        Self::Reorder,
        Self::Probe,
        Self::Retransmit,
        Self::Persist,
        Self::DelayedAck,
        Self::KeepAlive,
        Self::Pacing,
        Self::Idle,
    ];

    #[inline]
    fn index(self) -> usize {
        self as usize
    }
}

impl Connection {
    /// Runs every timer whose deadline is not after `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_expired(now) {
            match timer {
                Timer::Retransmit if !self.state.is_synchronized() => {
                    self.on_handshake_timeout(now)
                }
                Timer::Retransmit => self.on_retransmission_timeout(now),
                Timer::Probe => self.on_probe_timeout(now),
                Timer::Reorder => self.on_reorder_timeout(now),
                Timer::Persist => self.on_persist_timeout(now),
                Timer::DelayedAck => self.acking.on_timer(now, &mut self.timers),
                Timer::KeepAlive => self.on_keep_alive_timeout(now),
                Timer::User => self.end(CloseReason::TimedOut),
                Timer::Lifetime => self.end(CloseReason::Graceful),
                Timer::Pacing => {}
                Timer::Idle => self.on_idle_timeout(now),
            }
        }
    }

    /// SYN or SYN-ACK was not acknowledged in time.
    fn on_handshake_timeout(&mut self, now: Instant) {
        self.handshake.timeouts += 1;
        if self.handshake.timeouts > self.config.syn_retries {
            self.end(CloseReason::TimedOut);
            return;
        }
        self.rtt.back_off(self.snd_una);
        self.due.add(Due::Syn);
        self.timers.set(Timer::Retransmit, now + self.rtt.rto());
    }

    /// RFC 6298 §5.4 to 5.7, RFC 8985 §6.3.
    fn on_retransmission_timeout(&mut self, now: Instant) {
        let Some(front) = self.log.front() else {
            return;
        };
        self.counters.rto_count += 1;
        self.recovery.count_timeout();
        self.trace.add(now, || Traced::Timeout("rto"));
        if self.log.is_front_sacked() {
            // The peer forgot what it had reported (RFC 2018 §8).
            self.rate.on_reneged(self.log.sacked_bytes());
            self.log.forget_sacked(now);
        }
        let prior_in_flight = self.bytes_in_flight();
        if self.mtu.on_timeout(now, front.end - front.start) {
            self.on_segment_size_changed();
        }
        self.lose_flight(now, prior_in_flight);
        self.rtt.back_off(self.snd_una);
        self.update_pacing();
        self.timers
            .set(Timer::Retransmit, now + self.retransmission_timeout());
    }

    /// RFC 8985 §7.3.
    fn on_probe_timeout(&mut self, now: Instant) {
        if self.log.is_empty() || !self.recovery.may_probe() {
            return;
        }
        self.counters.tlp_count += 1;
        self.trace.add(now, || Traced::Timeout("tlp"));
        self.due.add(Due::LossProbe);
        self.timers
            .set(Timer::Retransmit, now + self.retransmission_timeout());
    }

    fn on_reorder_timeout(&mut self, now: Instant) {
        self.trace.add(now, || Traced::Timeout("reorder"));
        let lost = self.detect_losses(now);
        if lost > 0 {
            self.on_loss(now, self.flight_size());
            let (in_flight, mss) = (self.log.in_flight(), self.mtu.mss().into());
            self.recovery.on_delivered_bytes(0, in_flight, mss, false);
            self.update_pacing();
        }
    }

    /// RTO (RFC 6298), and what the agreed way of acknowledging needs on top: it must not fire
    /// because an acknowledgement is merely late. Nothing that the peer reports enters the
    /// allowance.
    #[inline]
    pub(super) fn retransmission_timeout(&self) -> core::time::Duration {
        self.rtt.rto() + self.feedback.contract().timeout_allowance
    }

    /// (Re)starts what watches over data in flight: called when data leaves and when the cumulative
    /// acknowledgement advances. No report restarts the timeout, whoever detects losses
    /// (RFC 6298 §5.3), and recovery has no probes (RFC 8985 §7.2): a receiver that is wrong about
    /// what is missing must not keep the timeout away.
    #[inline]
    pub(super) fn arm_retransmission(&mut self, now: Instant, restart: bool) {
        if restart || !self.timers.is_armed(Timer::Retransmit) {
            self.timers
                .set(Timer::Retransmit, now + self.retransmission_timeout());
        }
        if self.recovery.may_probe() && self.hears_sack() && self.log.lost_bytes() == 0 {
            let timeout = TailLossProbe::timeout(
                self.rtt.smoothed(),
                self.log.segment_count() < self.feedback.contract().max_segments as usize,
                self.feedback.contract().max_delay,
            );
            let at = now + timeout;
            // RFC 8985 §7.2: a retransmission timeout that would come first becomes a probe.
            let rto_at = self.timers.get(Timer::Retransmit).unwrap_or(at);
            self.timers.set(Timer::Probe, at.min(rto_at));
        } else {
            self.timers.stop(Timer::Probe);
        }
    }
}
