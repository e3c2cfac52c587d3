//! What happens when a timer of a connection runs out.

use core::time::Duration;

use tack_base::time::Nanos;
use tack_base::{Instant, StreamOffset};

use super::due::Due;
use super::keep_alive::Silence;
use super::state::State;
use super::timers::Timer;
use super::{CloseReason, Connection};
use crate::ack::policy::LossDetectedBy;
use crate::recovery::tlp::HeldBack;
use crate::trace::Traced;

/// How long a peer may keep its window closed while the endpoint's memory is used up.
const LONGEST_CLOSED: Duration = Duration::from_secs(60);

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
        // What a timer found lost leaves again before the next acknowledgement.
        self.trace_losses(now);
    }

    /// SYN or SYN-ACK was not acknowledged in time.
    fn on_handshake_timeout(&mut self, now: Instant) {
        self.handshake.timeouts += 1;
        if self.handshake.timeouts > self.config.syn_retries {
            self.end(CloseReason::TimedOut);
            return;
        }
        self.rtt.back_off(self.snd.una);
        self.due.add(Due::Syn);
        self.timers.set(Timer::Retransmit, now + self.rtt.rto());
    }

    /// RFC 6298 §5.4 to 5.7, RFC 8985 §6.3.
    fn on_retransmission_timeout(&mut self, now: Instant) {
        let Some(front) = self.log.front() else {
            return;
        };
        self.telemetry.counters.rto_count += 1;
        self.recovery.count_timeout();
        self.telemetry.trace.add(now, || Traced::Timeout("rto"));
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
        self.rtt.back_off(self.snd.una);
        self.update_pacing();
        self.timers
            .set(Timer::Retransmit, now + self.retransmission_timeout());
    }

    /// RFC 8985 §7.3.
    fn on_probe_timeout(&mut self, now: Instant) {
        if self.log.is_empty() || !self.recovery.may_probe() {
            return;
        }
        self.telemetry.counters.tlp_count += 1;
        self.telemetry.trace.add(now, || Traced::Timeout("tlp"));
        self.due.add(Due::LossProbe);
        self.timers
            .set(Timer::Retransmit, now + self.retransmission_timeout());
    }

    fn on_reorder_timeout(&mut self, now: Instant) {
        self.telemetry.trace.add(now, || Traced::Timeout("reorder"));
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
    ///
    /// Until the first data is acknowledged the least timeout has room for it: in a black hole each
    /// timeout would be later than that of a plain sender. From then on samples leave out what the
    /// hosts add to a round trip, and the allowance is all that there is for a host that sleeps.
    /// The FIN is acknowledged at once, so that it is as before the first data.
    #[inline]
    pub(super) fn retransmission_timeout(&self) -> Nanos {
        let held_back = self.feedback.contract().timeout_allowance.into();
        if self.snd.una <= StreamOffset::FIRST_BYTE || self.has_sent_fin() {
            self.rtt.timeout(held_back)
        } else {
            self.rtt.timeout(Nanos::ZERO) + held_back
        }
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
            let at = now
                + self
                    .recovery
                    .probe_timeout(self.rtt.smoothed_nanos(), self.held_back());
            // RFC 8985 §7.2: a retransmission timeout that would come first becomes a probe.
            let rto_at = self.timers.get(Timer::Retransmit).unwrap_or(at);
            self.timers.set(Timer::Probe, at.min(rto_at));
        } else {
            self.timers.stop(Timer::Probe);
        }
    }

    /// The timeout became shorter: what is in flight waits for no longer than that from now on.
    pub(super) fn hasten_retransmission(&mut self, now: Instant) {
        let at = now + self.retransmission_timeout();
        if self
            .timers
            .get(Timer::Retransmit)
            .is_some_and(|set| at < set)
        {
            self.timers.set(Timer::Retransmit, at);
        }
    }

    /// How long the peer may hold back the acknowledgement of what is in flight. Only a remainder,
    /// for which it waits for more, is held back as long as delayed acknowledgements would be:
    /// fewer segments than it counts, or with TACK, whose reports follow the clock once they are
    /// due, fewer bytes than L segments, of which none has the FIN.
    #[inline]
    fn held_back(&self) -> HeldBack {
        let contract = self.feedback.contract();
        match contract.loss_detected_by {
            LossDetectedBy::Sender if self.log.segment_count() < contract.max_segments as usize => {
                HeldBack::Remainder(contract.max_delay)
            }
            LossDetectedBy::Sender => HeldBack::No,
            // Its FIN is reported at once, whatever is missing before it.
            LossDetectedBy::Receiver if self.has_sent_fin() => HeldBack::Period {
                period: Duration::ZERO,
                longest: contract.max_delay,
            },
            LossDetectedBy::Receiver if self.log.in_flight() < self.reported_bytes() => {
                HeldBack::Remainder(contract.max_delay)
            }
            LossDetectedBy::Receiver => HeldBack::Period {
                period: contract.interval,
                longest: contract.max_delay,
            },
        }
    }

    /// The FIN left.
    fn has_sent_fin(&self) -> bool {
        self.queue.is_finished() && self.snd.nxt >= self.queue.end_with_fin()
    }

    /// Bytes that a peer which reports by the clock waits for: L segments.
    #[inline]
    pub(super) fn reported_bytes(&self) -> u64 {
        u64::from(self.feedback.contract().least_segments) * self.max_payload()
    }

    /// The peer's window is closed; one octet asks whether it still is.
    pub(super) fn on_persist_timeout(&mut self, now: Instant) {
        if !self.log.is_empty() || self.snd.nxt >= self.queue.end() {
            return;
        }
        let since = self.persist.since();
        if let Some(limit) = self.config.user_timeout
            // Silence counts from when there was something to ask: before that the peer had no
            // reason to speak.
            && now.saturating_since(self.keep_alive.last_heard().max(since)) >= limit
        {
            self.end(CloseReason::TimedOut);
            return;
        }
        // A peer that answers probes may keep its window closed forever (RFC 9293 MUST-37 leaves
        // the decision to the application); when that has let go, nobody is left to decide. Nor may
        // such peers keep others out: where the endpoint has no memory left, their queues go.
        let held = now.saturating_since(since);
        if self.is_out_of_memory() && held >= LONGEST_CLOSED {
            self.end_with_reset(CloseReason::NoMemory);
            return;
        }
        if !self.receiver.reading && held >= self.config.fin_wait {
            self.end_with_reset(CloseReason::TimedOut);
            return;
        }
        self.telemetry.trace.add(now, || Traced::Timeout("persist"));
        self.persist.back_off();
        self.due.add(Due::WindowProbe);
        self.arm_persist(now);
    }

    /// Arms the persist timer.
    pub(super) fn arm_persist(&mut self, now: Instant) {
        let is_open = self.window.edge() > self.snd.nxt;
        let wait = self
            .persist
            .wait(self.rtt.base_rto(), self.config.max_rto, is_open);
        self.timers.set(Timer::Persist, now + wait);
    }

    /// The peer was silent for as long as configured.
    pub(super) fn on_keep_alive_timeout(&mut self, now: Instant) {
        let Some(settings) = self.config.keep_alive else {
            return;
        };
        if !self.state.is_synchronized() || self.state == State::TimeWait {
            return;
        }
        let awaits_ack = !self.log.is_empty();
        let at = match self.keep_alive.on_timeout(now, &settings, awaits_ack) {
            Silence::Wait(at) => at,
            Silence::Probe(at) => {
                self.due.add(Due::KeepAlive);
                at
            }
            Silence::GiveUp => {
                self.end_with_reset(CloseReason::TimedOut);
                return;
            }
        };
        self.timers.set(Timer::KeepAlive, at);
    }
}
