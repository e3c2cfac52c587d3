//! Compound TCP (draft-sridharan-tcpm-ctcp-02; K. Tan et al., INFOCOM 2006): NewReno's window plus
//! one that delay governs.
//!
//! The loss window grows by a segment a round trip. The delay window takes what the path has to
//! spare: it grows such that both together follow `Win + α·Win^k` while little of the flow waits in
//! queues, and gives way when more does. A loss halves both together. After the symbols of the
//! draft: `Win` is the sum, in segments here where the draft has segments.

#[cfg(test)]
mod tests;

use core::time::Duration;

use tack_base::Instant;

use super::delay::{DelayMeter, Round};
use super::undo::Undo;
use super::{Ack, Cause, Congestion, CongestionController, Init, Metrics, NewReno};

/// Scale and exponent of the growth of both windows (α, k): the draft's, which make it as fast as
/// HighSpeed TCP.
const ALPHA: f64 = 0.125;
const K: f64 = 0.75;
/// How fast the delay window gives way, in segments for each one that waits (ζ).
const ZETA: f64 = 1.0;
/// Segments waiting above which the path counts as congested (γ): at first, at least and at most.
const GAMMA: f64 = 30.0;
const GAMMA_LOW: f64 = 5.0;
const GAMMA_HIGH: f64 = 30.0;
/// Part of the backlog that NewReno alone had before a loss which becomes the new γ, so that
/// under-buffered paths are shared with it fairly.
const GAMMA_OF_BACKLOG: f64 = 0.75;
/// Weight of a new sample in γ (λ).
const LAMBDA: f64 = 0.8;

/// The Compound controller.
#[derive(Debug)]
pub struct Compound {
    /// Its window is the sum of both; slow start, reductions and the segment a round trip are its
    /// own.
    reno: NewReno,
    /// The delay window, bytes: part of that sum.
    dwnd: u64,
    undo: Undo<u64>,
    meter: DelayMeter,
    /// Segments.
    gamma: f64,
    /// Backlog of the loss window alone in the last round, segments; taken by the first loss after
    /// it.
    reno_backlog: Option<f64>,
    srtt: Option<Duration>,
}

impl Compound {
    /// A controller in its first slow start.
    pub fn new(init: &Init) -> Self {
        Self {
            reno: NewReno::new(init),
            dwnd: 0,
            undo: Undo::new(),
            meter: DelayMeter::default(),
            gamma: GAMMA,
            reno_backlog: None,
            srtt: None,
        }
    }

    fn segments(&self, bytes: f64) -> f64 {
        bytes / self.reno.mss() as f64
    }

    const fn loss_window(&self) -> u64 {
        self.reno.window().saturating_sub(self.dwnd)
    }

    /// The delay window's turn, once a round.
    fn on_round(&mut self, ack: &Ack, round: Round) {
        let Some(delay) = round.delay else {
            return;
        };
        let mss = self.reno.mss();
        let window = self.reno.window();
        let waiting = self.segments(delay.backlog(window));
        self.reno_backlog = Some(self.segments(delay.backlog(self.loss_window())));
        if waiting < self.gamma {
            // The loss window adds a segment of this itself.
            let wanted = ALPHA * libm::pow(self.segments(window as f64), K) - 1.0;
            if ack.cwnd_limited && wanted > 0.0 {
                self.reno.grow((wanted * mss as f64) as u64);
                self.dwnd = self.dwnd.saturating_add(self.reno.window() - window);
            }
        } else if round.in_use {
            // A window that was not in use queued nothing, whatever the RTT.
            let less = ((ZETA * waiting * mss as f64) as u64).min(self.dwnd);
            self.reno.come_down_to(window - less);
            self.dwnd -= window - self.reno.window();
        }
    }

    /// γ after the backlog that NewReno would have had at a loss.
    fn tune_gamma(&mut self) {
        if let Some(backlog) = self.reno_backlog.take() {
            let sample = GAMMA_OF_BACKLOG * backlog;
            self.gamma = (self.gamma + LAMBDA * (sample - self.gamma)).clamp(GAMMA_LOW, GAMMA_HIGH);
        }
    }
}

impl CongestionController for Compound {
    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = Some(ack.srtt);
        let open = self.reno.settle(ack);
        if !open {
            self.meter.restart();
        }
        let avoidance = open && !self.in_slow_start();
        self.reno.on_ack(ack);
        if !open || ack.acked == 0 {
            return;
        }
        let round = self.meter.on_ack(ack);
        if let Some(round) = round.filter(|_| avoidance) {
            self.on_round(ack, round);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let loss_window = self.loss_window();
        if congestion.cause != Cause::Timeout || congestion.consecutive_timeouts <= 1 {
            self.undo
                .save(congestion.cause, self.reno.episode(), self.dwnd);
        }
        self.reno.on_congestion(congestion);
        self.meter.restart();
        match congestion.cause {
            Cause::Loss => {
                self.tune_gamma();
                self.dwnd = self.reno.window().saturating_sub(loss_window / 2);
            }
            Cause::Ecn => self.dwnd = self.reno.window().saturating_sub(loss_window / 2),
            Cause::Timeout => {
                // All that was known about the path is in doubt.
                self.dwnd = 0;
                self.gamma = GAMMA;
                self.reno_backlog = None;
                self.meter.reset_base(self.srtt);
            }
        }
    }

    fn on_recovered(&mut self, now: Instant) {
        self.reno.on_recovered(now);
    }

    fn on_spurious(&mut self, now: Instant, cause: Cause) {
        self.reno.on_spurious(now, cause);
        self.meter.restart();
        if let Some(dwnd) = self.undo.take(cause) {
            self.dwnd = dwnd.min(self.reno.window());
        }
    }

    fn on_false_marks(&mut self, now: Instant, window: u64) {
        self.reno.on_false_marks(now, window);
        self.meter.restart();
    }

    fn on_idle_restart(&mut self, now: Instant, idle: Duration) {
        self.reno.on_idle_restart(now, idle);
        self.dwnd = 0;
        self.meter.reset_base(None);
        self.meter.restart();
    }

    fn on_mss(&mut self, mss: u64) {
        self.reno.on_mss(mss);
    }

    fn on_feedback_threshold(&mut self, segments: u16) {
        self.reno.on_feedback_threshold(segments);
    }

    fn on_feedback_gap(&mut self, gap: Duration) {
        self.reno.on_feedback_gap(gap);
    }

    fn on_feedback_interval(&mut self, interval: Duration) {
        self.reno.on_feedback_interval(interval);
        self.meter.on_feedback_interval(interval);
    }

    fn cwnd(&self) -> u64 {
        self.reno.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.reno.ssthresh()
    }

    fn in_slow_start(&self) -> bool {
        self.reno.in_slow_start()
    }

    fn pacing_gain(&self) -> f64 {
        self.reno.pacing_gain()
    }

    fn metrics(&self) -> Metrics {
        Metrics {
            min_rtt: self.meter.base(),
            ..self.reno.metrics()
        }
    }
}
