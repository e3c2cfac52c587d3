//! CUBIC (RFC 9438), with HyStart++ (RFC 9406) in the first slow start.
//!
//! After a reduction the window follows `W(t) = C·(t − K)³ + W_max`: steeply back towards the
//! window that lost, flat around it, then steeply on. Where Reno would be faster (short RTT, small
//! window), it follows an estimate of Reno's window instead. Symbols as in the RFC, windows in
//! bytes (the RFC counts segments), `t` is the time spent in congestion avoidance *with the window
//! in use*.

mod linux;
#[cfg(test)]
mod tests;

use core::time::Duration;

use tack_base::Instant;

use super::hystart::{HyStart, Step};
use super::undo::{Episode, Undo};
use super::unreported::Unreported;
use super::{
    Ack, Cause, Congestion, CongestionController, Init, MAX_MSS, MAX_WINDOW, Metrics, for_segments,
};

/// Multiplicative decrease factor β (RFC 9438 §4.6).
const BETA: f64 = 0.7;
/// Aggressiveness `C`, segments per cubic second (RFC 9438 §5.1).
const C: f64 = 0.4;
/// The same where it responds to nothing but congestion marks (RFC 8511 §3): they come from short
/// queues.
pub(super) const BETA_OF_MARKS: f64 = 0.85;

/// By which rules CUBIC computes its window in congestion avoidance and after a loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[non_exhaustive]
pub enum CubicProfile {
    /// RFC 9438, in bytes.
    #[default]
    Default,
    /// As Linux does, in whole segments: to tell how much of a difference to its TCP that makes.
    /// With a window of few segments it is slower.
    Linux,
}

/// A stage of congestion avoidance: begins after a reduction or slow start.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// Time in the stage without the periods limited by the application (RFC 9438 §5.8), seconds.
    t: f64,
    /// Up to when `t` counts.
    counted: Instant,
    /// Time until the plateau, seconds (`K`).
    k: f64,
    /// Height of the plateau (`W_max`, or the first window where that is higher).
    origin: f64,
    /// Reno's window (`W_est`).
    w_est: f64,
    /// Where whole segments are counted.
    towards: linux::Towards,
}

/// Everything an undone episode restores (RFC 9438 §4.9).
#[derive(Clone, Copy, Debug)]
struct State {
    cwnd: u64,
    ssthresh: u64,
    /// Growth below one byte.
    fraction: f64,
    /// Window before the last reduction, less when fast convergence gives way (`W_max`).
    w_max: f64,
    /// Window before the last reduction (`cwnd_prior`).
    cwnd_prior: f64,
    stage: Option<Stage>,
    /// The next stage is the first after a timeout: it begins at its own plateau (RFC 9438 §4.8).
    after_timeout: bool,
    episode: Episode,
    /// Present while it watches the first slow start.
    hystart: Option<HyStart>,
}

/// The CUBIC controller.
#[derive(Debug)]
pub struct Cubic {
    mss: u64,
    restart_window: u64,
    /// Multiplicative decrease factor.
    beta: f64,
    profile: CubicProfile,
    state: State,
    undo: Undo<State>,
    unreported: Unreported,
}

impl Cubic {
    /// A controller in its first slow start.
    pub fn new(init: &Init, profile: CubicProfile) -> Self {
        let mss = init.mss.clamp(1, MAX_MSS);
        let initial_window = init.initial_window.clamp(mss, MAX_WINDOW);
        Self {
            mss,
            restart_window: init.restart_window.clamp(mss, MAX_WINDOW),
            beta: match profile {
                CubicProfile::Default => BETA,
                CubicProfile::Linux => linux::BETA,
            },
            profile,
            state: State {
                cwnd: initial_window,
                ssthresh: u64::MAX,
                fraction: 0.0,
                w_max: 0.0,
                cwnd_prior: 0.0,
                stage: None,
                after_timeout: false,
                episode: Episode::Open,
                hystart: Some(HyStart::default()),
            },
            undo: Undo::new(),
            unreported: Unreported::default(),
        }
    }

    /// A controller in congestion avoidance that responds to congestion marks alone: the part that
    /// a model-based controller lacks.
    pub(super) fn of_marks(init: &Init) -> Self {
        let mut cubic = Self::new(init, CubicProfile::Default);
        cubic.beta = BETA_OF_MARKS;
        cubic.state.ssthresh = cubic.state.cwnd;
        cubic.state.hystart = None;
        cubic
    }

    /// The window is `window` bytes at least.
    pub(super) fn raise(&mut self, window: u64) {
        let (state, window) = (&mut self.state, window.min(MAX_WINDOW));
        if state.cwnd >= window {
            return;
        }
        state.cwnd = window;
        state.ssthresh = state.ssthresh.max(window);
        state.fraction = 0.0;
        // Its maximum was that of a smaller window.
        state.stage = None;
    }

    /// RFC 9438 §4.10. Returns the bytes that lie beyond `ssthresh`.
    fn slow_start(&mut self, ack: &Ack) -> u64 {
        let mut growth = ack.delivered;
        if let Some(hystart) = &mut self.state.hystart {
            match hystart.on_ack(ack, growth, self.unreported.interval()) {
                Step::Grow(bytes) => growth = bytes,
                Step::Exit => {
                    self.state.hystart = None;
                    self.state.ssthresh = self.state.cwnd;
                    return 0;
                }
            }
        }
        if !ack.cwnd_limited {
            return 0;
        }
        let growth = growth.min(ack.slow_start_room);
        let state = &mut self.state;
        let grown = state
            .cwnd
            .saturating_add(growth)
            .min(state.ssthresh)
            .min(MAX_WINDOW);
        let used = grown - state.cwnd;
        state.cwnd = grown;
        growth.saturating_sub(used)
    }

    fn begin_stage(&mut self, now: Instant) -> Stage {
        let state = &mut self.state;
        let cwnd = state.cwnd as f64;
        if state.after_timeout || state.w_max <= cwnd {
            // RFC 9438 §4.8 after a timeout; §4.2 where no reduction was, or the window is beyond
            // it.
            state.w_max = cwnd;
            state.after_timeout = false;
        }
        if state.cwnd_prior == 0.0 {
            state.cwnd_prior = cwnd;
        }
        let k = libm::cbrt((state.w_max - cwnd) / (C * self.mss as f64));
        Stage {
            t: 0.0,
            counted: now,
            k,
            origin: state.w_max,
            w_est: cwnd,
            towards: linux::Towards::default(),
        }
    }

    /// RFC 9438 §4.2 to §4.5 for `bytes` newly delivered.
    fn congestion_avoidance(&mut self, ack: &Ack, bytes: u64) {
        let mut stage = match self.state.stage.take() {
            Some(stage) => stage,
            None => self.begin_stage(ack.now),
        };
        if ack.cwnd_limited {
            stage.t += ack.now.saturating_since(stage.counted).as_secs_f64();
            match self.profile {
                CubicProfile::Default => self.grow(&mut stage, ack.srtt, bytes),
                CubicProfile::Linux => self.grow_in_segments(&mut stage, ack.min_rtt, bytes),
            }
        }
        stage.counted = ack.now;
        self.state.stage = Some(stage);
    }

    fn grow(&mut self, stage: &mut Stage, srtt: Duration, bytes: u64) {
        let mss = self.mss as f64;
        let state = &mut self.state;
        let cwnd = state.cwnd as f64 + state.fraction;
        // More than a window cannot be delivered by what the window let out in a round trip; data
        // in flight from before a reduction must not count twice.
        let share = (bytes as f64 / cwnd).min(1.0);
        let w_cubic = |t: f64| {
            let distance = t - stage.k;
            C * mss * distance * distance * distance + stage.origin
        };

        let alpha = if stage.w_est >= state.cwnd_prior {
            1.0
        } else {
            fair_to_reno(self.beta)
        };
        stage.w_est += alpha * share * mss;
        let new = if w_cubic(stage.t) < stage.w_est {
            // §4.3: Reno-friendly region.
            cwnd.max(stage.w_est)
        } else {
            // §4.4 and §4.5: on towards where the curve will be in one RTT, at most half as much
            // again.
            let target = w_cubic(stage.t + srtt.as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
            cwnd + (target - cwnd) * share
        };
        let new = new.min(MAX_WINDOW as f64);
        state.cwnd = (new as u64).max(state.cwnd);
        state.fraction = (new - state.cwnd as f64).clamp(0.0, 1.0);
    }

    /// The same as Linux does it.
    fn grow_in_segments(&mut self, stage: &mut Stage, min_rtt: Duration, bytes: u64) {
        let distance = stage.t + min_rtt.as_secs_f64() - stage.k;
        let curve = linux::Curve {
            mss: self.mss,
            cwnd: self.state.cwnd,
            origin: stage.origin as u64,
            rise: C * distance * distance * distance,
        };
        let (cwnd, w_est) = stage.towards.grow(bytes, stage.w_est as u64, &curve);
        self.state.cwnd = cwnd.min(MAX_WINDOW);
        stage.w_est = w_est as f64;
    }

    /// Rounds down to whole segments, where these are counted.
    fn counted(&self, window: f64) -> f64 {
        let mss = self.mss as f64;
        match self.profile {
            CubicProfile::Default => window,
            CubicProfile::Linux => libm::floor(window / mss) * mss,
        }
    }

    /// RFC 9438 §4.6 and §4.7. The new `ssthresh` is returned before its floor of two segments.
    fn reduce(&mut self, flight: u64) -> u64 {
        let cwnd = self.counted(self.state.cwnd as f64);
        let converged = self.counted(cwnd * (1.0 + self.beta) / 2.0);
        let reduced = self.counted(flight.min(MAX_WINDOW) as f64 * self.beta);
        let reduced = libm::round(reduced) as u64;
        let state = &mut self.state;
        state.w_max = if cwnd < state.w_max { converged } else { cwnd };
        state.cwnd_prior = cwnd;
        state.ssthresh = reduced.max(2 * self.mss);
        reduced
    }
}

/// Growth of Reno's window in segments for each window delivered that is fair to it with a decrease
/// factor of `beta` (RFC 9438 §4.3).
fn fair_to_reno(beta: f64) -> f64 {
    3.0 * (1.0 - beta) / (1.0 + beta)
}

impl CongestionController for Cubic {
    fn on_send(&mut self, sent: &super::Sent) -> super::SendToken {
        // Silence is not time in congestion avoidance (RFC 9438 §5.8).
        if sent.prior_in_flight == 0
            && let Some(stage) = &mut self.state.stage
        {
            stage.counted = sent.now;
        }
        super::SendToken::default()
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.unreported.on_ack(ack, self.in_slow_start());
        if !ack.in_recovery {
            self.state.episode = Episode::Open;
        }
        // RFC 5681 §3.2: duplicate acknowledgements do not open the window.
        if self.state.episode == Episode::FastRecovery || ack.acked == 0 {
            return;
        }
        let bytes = if self.in_slow_start() {
            self.slow_start(ack)
        } else {
            ack.delivered
        };
        if !self.in_slow_start() {
            self.congestion_avoidance(ack, bytes);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        // RFC 5681 §3.1: a timeout of a segment that already timed out leaves ssthresh alone.
        let first = congestion.cause != Cause::Timeout || congestion.consecutive_timeouts <= 1;
        let mut reduced = self.state.ssthresh;
        if first {
            self.undo
                .save(congestion.cause, self.state.episode, self.state);
            let flight = match (congestion.cause, self.state.episode) {
                // RFC 5681 §4.3: the loss of a retransmission lowers the window a second time. What
                // is in flight says little here, as losses are off it already.
                (Cause::Timeout, Episode::FastRecovery) => self.state.cwnd,
                _ if self.profile == CubicProfile::Linux => self.state.cwnd,
                _ if self.in_slow_start() => self.state.cwnd.min(congestion.prior_in_flight),
                _ => self.unreported.used(congestion, self.state.cwnd, self.mss),
            };
            reduced = self.reduce(flight);
        }
        let state = &mut self.state;
        match congestion.cause {
            Cause::Loss => {
                state.episode = Episode::FastRecovery;
                state.cwnd = state.cwnd.min(state.ssthresh);
            }
            // §4.6: a mark may bring the window down to one segment.
            Cause::Ecn => state.cwnd = state.cwnd.min(reduced).max(self.mss),
            Cause::Timeout => {
                state.episode = Episode::Timeout;
                state.cwnd = self.mss;
                state.after_timeout = true;
            }
        }
        state.fraction = 0.0;
        state.stage = None;
        state.hystart = None;
    }

    fn on_recovered(&mut self, _now: Instant) {
        self.state.episode = Episode::Open;
    }

    fn on_spurious(&mut self, now: Instant, cause: Cause) {
        let Some(saved) = self.undo.take(cause) else {
            return;
        };
        let current = self.state;
        self.state = State {
            // What was reached meanwhile was reached under a lower threshold: it stands.
            cwnd: current.cwnd.max(saved.cwnd),
            ssthresh: current.ssthresh.max(saved.ssthresh),
            episode: current.episode.back_to(saved.episode),
            ..saved
        };
        if let Some(stage) = &mut self.state.stage {
            stage.counted = now;
        }
    }

    fn on_false_marks(&mut self, _now: Instant, window: u64) {
        let window = window.min(MAX_WINDOW);
        let state = &mut self.state;
        state.ssthresh = state.ssthresh.max(window);
        state.stage = None;
        self.raise(window);
    }

    fn on_idle_restart(&mut self, _now: Instant, _idle: Duration) {
        let state = &mut self.state;
        // RFC 2861 §2: remember most of the old window as threshold, so that slow start returns to
        // it.
        state.ssthresh = state.ssthresh.max(state.cwnd / 4 * 3);
        // RFC 5681 §4.1: the restart window.
        state.cwnd = state.cwnd.min(self.restart_window);
        state.fraction = 0.0;
        state.stage = None;
    }

    fn on_mss(&mut self, mss: u64) {
        let old = core::mem::replace(&mut self.mss, mss.clamp(1, MAX_MSS));
        self.restart_window = for_segments(self.restart_window, old, self.mss);
        self.state.cwnd = for_segments(self.state.cwnd, old, self.mss);
        // K is measured in the old segments.
        self.state.stage = None;
    }

    fn on_feedback_threshold(&mut self, segments: u16) {
        self.unreported.on_feedback_threshold(segments);
    }

    fn on_feedback_gap(&mut self, gap: Duration) {
        self.unreported.on_feedback_gap(gap);
    }

    fn on_feedback_interval(&mut self, interval: Duration) {
        self.unreported.on_feedback_interval(interval);
    }

    fn cwnd(&self) -> u64 {
        if self.in_slow_start() {
            self.state.cwnd
        } else {
            self.unreported.widen(self.state.cwnd, self.mss)
        }
    }

    fn in_slow_start(&self) -> bool {
        self.state.cwnd < self.state.ssthresh
    }

    fn pacing_gain(&self) -> f64 {
        // Of the window in force, what makes the standard gain of the window.
        if self.in_slow_start() {
            2.0
        } else {
            1.2 / self.unreported.ratio(self.state.cwnd, self.mss)
        }
    }

    fn ssthresh(&self) -> u64 {
        self.state.ssthresh
    }

    fn metrics(&self) -> Metrics {
        let phase = match self.state.episode {
            Episode::FastRecovery => "recovery",
            _ if !self.in_slow_start() => "congestion_avoidance",
            _ if self
                .state
                .hystart
                .is_some_and(|hystart| hystart.is_conservative()) =>
            {
                "conservative_slow_start"
            }
            _ => "slow_start",
        };
        Metrics {
            phase,
            ..Metrics::default()
        }
    }
}
