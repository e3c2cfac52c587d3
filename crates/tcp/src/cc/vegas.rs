//! Vegas (L. Brakmo and L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
//! Internet", IEEE JSAC 13(8), 1995): keep between two and four segments of one's own waiting in
//! the path's queues.
//!
//! Once a round trip the backlog is estimated from how much the RTT exceeds its smallest value, and
//! the window moves by a segment towards the corridor. Slow start doubles only every other round
//! trip, so that a round of constant window shows what the last doubling queued, and ends with more
//! than a segment waiting.
//!
//! Losses are answered as NewReno does (so does Linux; the original gives up a quarter),
//! retransmission is the sender's. Growth on account of few samples is NewReno's too.

#[cfg(test)]
mod tests;

use core::time::Duration;

use tack_base::Instant;

use super::delay::{DelayMeter, Round};
use super::{Ack, Cause, Congestion, CongestionController, Init, Metrics, NewReno};

/// Fewer segments waiting than this, and the window grows (α).
const ALPHA: f64 = 2.0;
/// More segments waiting than this, and it shrinks (β).
const BETA: f64 = 4.0;
/// More segments waiting than this end slow start (γ).
const GAMMA: f64 = 1.0;

/// Segments of a window below which slow start is not judged by their delay (Linux' Vegas wants as
/// many samples).
const LEAST_SEGMENTS: u64 = 3;

/// The pacing gain where the peer reports by the clock: as small as leaves the window in use.
const SPARSE_GAIN: f64 = 1.02;

/// A round that doubles the window sends it twice over, and paces by a little more than that.
const GROWTH_GAIN: f64 = 1.1;

/// What slow start does in the present round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SlowStartRound {
    /// Double the window.
    Grow,
    /// Leave it, to see what it does.
    Look,
}

/// The Vegas controller.
#[derive(Debug)]
pub struct Vegas {
    reno: NewReno,
    meter: DelayMeter,
    slow_start: SlowStartRound,
    /// The window with which the round began: what is acknowledged in it was sent within that.
    round_window: u64,
}

impl Vegas {
    /// A controller in its first slow start.
    pub fn new(init: &Init) -> Self {
        Self {
            reno: NewReno::new(init),
            meter: DelayMeter::default(),
            slow_start: SlowStartRound::Grow,
            round_window: init.initial_window,
        }
    }

    fn segments(&self, bytes: f64) -> f64 {
        bytes / self.reno.mss() as f64
    }

    /// The window changed for another reason than delay.
    fn restart_round(&mut self) {
        self.meter.restart();
        self.slow_start = SlowStartRound::Grow;
        self.round_window = self.reno.window();
    }

    fn slow_start(&mut self, ack: &Ack, round: Option<Round>) {
        // The acknowledgement that ends a round belongs to it.
        let present = self.slow_start;
        // What is acknowledged while it doubles was sent while it looked: only that shows what a
        // window queues. Before the round is over, few samples are enough where congestion
        // avoidance would shrink the window at once.
        // Neither does a window of so few segments that all of them may have met with what delays
        // a single packet, as a host that sleeps: legacy acknowledgements bring no more samples.
        let is_few = self.round_window < LEAST_SEGMENTS * self.reno.mss();
        let (delay, limit) = match (present, round) {
            (SlowStartRound::Look, _) => (None, GAMMA),
            (SlowStartRound::Grow, _) if is_few => (None, GAMMA),
            (SlowStartRound::Grow, Some(round)) => (round.delay, GAMMA),
            (SlowStartRound::Grow, None) => (self.meter.so_far(), BETA),
        };
        let backlog = delay.map_or(0.0, |delay| delay.backlog(self.round_window));
        if self.segments(backlog) > limit {
            // What the path holds, and a segment.
            let path = self.round_window.saturating_sub(backlog as u64);
            self.reno.come_down_to(path.saturating_add(self.reno.mss()));
            return;
        }
        if round.is_some() {
            self.slow_start = match present {
                SlowStartRound::Grow => SlowStartRound::Look,
                SlowStartRound::Look => SlowStartRound::Grow,
            };
        }
        if present == SlowStartRound::Grow {
            self.reno.on_ack(ack);
        }
        if round.is_some() {
            self.round_window = self.reno.window();
        }
    }

    fn congestion_avoidance(&mut self, ack: &Ack, round: Round) {
        let mss = self.reno.mss();
        let waiting = round
            .delay
            .map(|delay| self.segments(delay.backlog(self.reno.window())));
        match waiting {
            // A window that was not in use queued nothing, whatever the RTT.
            Some(waiting) if waiting > BETA && round.in_use => {
                self.reno
                    .come_down_to(self.reno.window().saturating_sub(mss));
            }
            Some(waiting) if waiting >= ALPHA => {}
            _ if ack.cwnd_limited => self.reno.grow(mss),
            _ => {}
        }
    }
}

impl CongestionController for Vegas {
    fn on_ack(&mut self, ack: &Ack) {
        if !self.reno.settle(ack) {
            self.reno.on_ack(ack);
            self.restart_round();
            return;
        }
        if ack.acked == 0 {
            return;
        }
        let round = self.meter.on_ack(ack);
        if self.in_slow_start() {
            self.slow_start(ack, round);
        } else if let Some(round) = round {
            self.congestion_avoidance(ack, round);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.reno.on_congestion(congestion);
        self.restart_round();
    }

    fn on_recovered(&mut self, now: Instant) {
        self.reno.on_recovered(now);
    }

    fn on_spurious(&mut self, now: Instant, cause: Cause) {
        self.reno.on_spurious(now, cause);
        self.restart_round();
    }

    fn on_false_marks(&mut self, now: Instant, window: u64) {
        self.reno.on_false_marks(now, window);
        self.restart_round();
    }

    fn on_idle_restart(&mut self, now: Instant, idle: Duration) {
        self.reno.on_idle_restart(now, idle);
        // The route may have changed: a floor that is too low would hold the window down for good.
        self.meter.reset_base(None);
        self.restart_round();
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
        // Twice the window that the round began with, not twice the present one: towards its end
        // that would be twice too fast, and what a report frees would overflow a short queue.
        if self.in_slow_start() && self.slow_start == SlowStartRound::Grow {
            let began = self.round_window as f64 / self.reno.window().max(1) as f64;
            return GROWTH_GAIN * (2.0 * began).max(1.0);
        }
        // A round that looks is to send evenly: bursts would queue by themselves.
        match self.reno.widening() {
            // No acknowledgements between the peer's reports spread what a report frees. At 1.2 an
            // interval's segments would queue for a sixth of it, more than β on most
            // paths, and the flow would give way to itself.
            widening if widening > 1.0 => SPARSE_GAIN / widening,
            _ => 1.2,
        }
    }

    fn metrics(&self) -> Metrics {
        Metrics {
            min_rtt: self.meter.base(),
            ..self.reno.metrics()
        }
    }
}
