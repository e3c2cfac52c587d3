//! BBR version 1, as Linux runs it (and draft-cardwell-iccrg-bbr-congestion-control-00 describes
//! it).
//!
//! BBR models the path by two numbers, the bottleneck's bandwidth and the propagation RTT, and
//! paces at the first while keeping about their product in flight. Losses hardly count. As the two
//! cannot be seen at the same time, it alternates:
//!
//! * startup doubles the rate until the bandwidth stops growing, drain removes the queue of that;
//! * ProbeBW cruises, probing for more bandwidth one RTT in eight;
//! * ProbeRTT shrinks to four segments for 200 ms when the RTT floor is ten seconds old.
//!
//! Congestion marks (ECN), which version 1 ignores, bound the window as CUBIC's ([`marks`]).
//!
//! With a peer that acknowledges only every interval `T` (TACK), it is the receiver-based form: a
//! window of `(2 + T/RTTmin)` bandwidth-delay products, never less than a segment an interval, and
//! filters that count in intervals. With legacy acknowledgements (`T` = 0), and where so little
//! fits an interval that the peer counts segments instead, nothing of that applies.

mod extra_acked;
mod feedback;
mod marks;
mod model;
mod options;
mod pacing;
mod policer;
mod probe_bw;
mod probe_rtt;
mod recovery;
mod round;
mod startup;
#[cfg(test)]
mod tests;
mod window;

use core::time::Duration;

use tack_base::random::RandomStream;
use tack_base::{Instant, Rate};

use super::{
    Ack, Cause, Congestion, CongestionController, Init, MAX_MSS, MAX_WINDOW, Metrics, RateSample,
    RecoveryShaping, SendToken, Sent, for_segments,
};
pub use options::{BbrOptions, BbrProfile, ProbeRttKind};

use extra_acked::ExtraAcked;
use feedback::Feedback;
use marks::Marks;
use model::{ExpiredFloor, Freshness, Model};
use pacing::Pacing;
use policer::{Policer, Verdict};
use probe_bw::{CWND_GAIN, Cycle, PhaseView};
use probe_rtt::ProbeRtt;
use recovery::Recovery;
use round::Round;
use startup::{DRAIN_GAIN, FullPipe, HIGH_GAIN, OVERFULL, QUEUED};

/// Segments that are in flight at least, so that delayed acknowledgements flow.
const MIN_WINDOW_SEGMENTS: u64 = 4;

/// What BBR is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The BBR controller.
#[derive(Debug)]
pub struct Bbr {
    mss: u64,
    initial_window: u64,
    cwnd: u64,
    probe_rtt_kind: ProbeRttKind,
    feedback: Feedback,
    mode: Mode,
    pacing_gain: f64,
    cwnd_gain: f64,
    round: Round,
    model: Model,
    full_pipe: FullPipe,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    recovery: Recovery,
    pacing: Pacing,
    extra_acked: ExtraAcked,
    policer: Policer,
    marks: Marks,
    /// Sending resumed from idle and nothing was delivered since: the old RTT floor is not a reason
    /// to probe.
    idle_restart: bool,
    srtt: Duration,
    /// When data was last delivered.
    delivered_at: Instant,
    total_delivered: u64,
    total_lost: u64,
    random: RandomStream,
}

impl Bbr {
    /// A controller in startup.
    pub fn new(init: &Init, options: BbrOptions) -> Self {
        let mss = init.mss.clamp(1, MAX_MSS);
        let initial_window = init.initial_window.clamp(mss, MAX_WINDOW);
        Self {
            mss,
            initial_window,
            cwnd: initial_window,
            probe_rtt_kind: options.probe_rtt,
            feedback: Feedback::new(mss),
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            round: Round::default(),
            model: Model::new(init.now, init.rtt, options),
            full_pipe: FullPipe::default(),
            cycle: Cycle::new(init.now, options.profile),
            probe_rtt: ProbeRtt::default(),
            recovery: Recovery::new(),
            pacing: Pacing::new(initial_window, init.rtt, mss),
            extra_acked: ExtraAcked::new(init.now),
            policer: Policer::new(init.now),
            marks: Marks::default(),
            idle_restart: false,
            srtt: Duration::ZERO,
            delivered_at: init.now,
            total_delivered: 0,
            total_lost: 0,
            random: RandomStream::new(init.seed, "bbr", 0),
        }
    }

    /// The bandwidth to use.
    fn bandwidth(&self) -> Rate {
        self.policer
            .rate()
            .unwrap_or_else(|| self.model.max_bandwidth())
    }

    const fn min_window(&self) -> u64 {
        MIN_WINDOW_SEGMENTS * self.mss
    }

    /// Bytes in flight that `gain` asks for at `bandwidth`.
    fn inflight(&self, bandwidth: Rate, gain: f64) -> u64 {
        self.with_bursts(
            self.model
                .bdp(bandwidth, gain)
                .unwrap_or(self.initial_window),
        )
    }

    /// Adds what bursts at both ends need: three of ours (one in each queue on the way out, one in
    /// the pacer), an even number of segments for acknowledgements of every second one, and two
    /// segments to make probing felt on the shortest paths.
    fn with_bursts(&self, bytes: u64) -> u64 {
        let pair = 2 * self.mss;
        let bytes = bytes
            .min(MAX_WINDOW)
            .saturating_add(3 * self.pacing.burst(self.mss))
            .div_ceil(pair)
            .saturating_mul(pair);
        if self.mode == Mode::ProbeBw && self.cycle.probes_up() {
            bytes.saturating_add(pair)
        } else {
            bytes
        }
    }

    fn policer_view(&self, lost: bool, app_limited: bool) -> policer::View {
        policer::View {
            delivered_at: self.delivered_at,
            total_delivered: self.total_delivered,
            total_lost: self.total_lost,
            lost,
            app_limited,
            round_started: self.round.started(),
            probing_bandwidth: self.mode == Mode::ProbeBw,
        }
    }

    fn update_bandwidth(&mut self, ack: &Ack, sample: &RateSample) {
        self.round
            .on_sample(sample.prior_delivered, ack.total_delivered);
        if self.round.started() {
            self.recovery.on_round();
        }
        let view = self.policer_view(ack.lost > 0, sample.app_limited);
        if self.policer.on_ack(&view) == Verdict::ProbeAgain {
            self.enter_probe_bw();
        }
        self.model
            .on_sample(ack.now, sample, &self.round, self.feedback);
        self.feedback.on_path(self.bandwidth(), self.mss);
        self.recovery
            .set_feedback(self.feedback.is_sparse(), !self.full_pipe.reached());
    }

    fn update_extra_acked(&mut self, ack: &Ack) {
        if ack.delivered == 0 {
            return;
        }
        if self.round.started() {
            self.extra_acked.on_round();
        }
        let bandwidth = self.bandwidth();
        self.extra_acked.on_delivered(
            ack.now,
            ack.delivered,
            bandwidth,
            self.cwnd,
            self.feedback.unreported(),
            self.mss,
        );
    }

    fn update_cycle(&mut self, ack: &Ack, lost: bool) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let bandwidth = self.model.max_bandwidth();
        // Before an acknowledgement, what the peer received since its last one counts as in flight.
        let unreported = self.feedback.unreported();
        let (in_flight, target) = if self.pacing_gain > 1.0 {
            // The burst about to leave belongs to what the probe puts in flight.
            let leaving = self.pacing.burst(self.mss);
            let target = self.inflight(bandwidth, self.pacing_gain);
            (ack.prior_in_flight.saturating_add(leaving), target)
        } else {
            (ack.prior_in_flight, self.inflight(bandwidth, 1.0))
        };
        let over = self.cycle.is_over(&PhaseView {
            gain: self.pacing_gain,
            now: self.delivered_at,
            min_rtt: self.model.min_rtt(),
            rounding: self.feedback.rounding(),
            is_full: lost || self.marks.limits(self.cwnd),
            in_flight,
            target: target.saturating_add(unreported),
        });
        if over {
            self.cycle.advance(self.delivered_at);
        }
    }

    fn update_full_pipe(&mut self, ack: &Ack, sample: Option<&RateSample>) {
        let floor = self.model.min_rtt().unwrap_or_default();
        let is_queued = ack.rtt.is_some_and(|rtt| rtt > floor.mul_f64(QUEUED));
        self.full_pipe.on_ack(ack, is_queued);
        let Some(sample) = sample.filter(|_| self.round.started()) else {
            return;
        };
        let bandwidth = self.model.max_bandwidth();
        let overfull = self
            .inflight(bandwidth, OVERFULL)
            .saturating_add(self.feedback.unreported())
            .max(self.initial_window);
        self.full_pipe
            .on_round(bandwidth, sample.app_limited, overfull, self.mss);
    }

    fn check_drain(&mut self, ack: &Ack) {
        if self.mode == Mode::Startup && self.full_pipe.reached() {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain
            && ack.bytes_in_flight <= self.inflight(self.model.max_bandwidth(), 1.0)
        {
            self.enter_probe_bw();
        }
    }

    fn enter_probe_bw(&mut self) {
        self.mode = Mode::ProbeBw;
        self.cycle.start(self.delivered_at, &mut self.random);
    }

    fn update_min_rtt(&mut self, ack: &Ack) {
        // After idle time the path is empty: the first sample is as good as a probe's.
        let expired = match self.probe_rtt_kind {
            ProbeRttKind::Mild if !self.idle_restart => ExpiredFloor::Hold,
            _ => ExpiredFloor::Replace,
        };
        let freshness = self.model.on_rtt(ack, self.mss, expired);
        if freshness == Freshness::Expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.recovery.save(self.cwnd, false);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt.start();
        }
        if self.mode == Mode::ProbeRtt {
            let floor = self.probe_rtt_window();
            if self.probe_rtt.on_ack(ack, &mut self.round, floor) {
                self.leave_probe_rtt(ack.now);
            }
        }
        if ack.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// Most that may be in flight while it looks for the RTT floor.
    fn probe_rtt_window(&self) -> u64 {
        match self.probe_rtt_kind {
            ProbeRttKind::Full => self.min_window(),
            ProbeRttKind::Mild => {
                let bandwidth = self.bandwidth();
                self.inflight(bandwidth, 1.0)
                    .saturating_add(self.feedback.unreported())
                    .max(self.min_window())
            }
        }
    }

    fn leave_probe_rtt(&mut self, now: Instant) {
        let found = match self.probe_rtt_kind {
            ProbeRttKind::Full => None,
            // The window of the probe was made from the floor: a larger one must not make a larger
            // window.
            ProbeRttKind::Mild => self.probe_rtt.found(),
        };
        self.model.refresh_min_rtt(now, found);
        self.cwnd = self.cwnd.max(self.recovery.prior_cwnd());
        if self.full_pipe.reached() {
            self.enter_probe_bw();
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            // A policer would drop what probing adds.
            Mode::ProbeBw if self.policer.rate().is_some() => (1.0, CWND_GAIN),
            Mode::ProbeBw => (self.cycle.gain(), CWND_GAIN),
            Mode::ProbeRtt => (self.probe_rtt_kind.gain(), 1.0),
        };
    }

    /// A segment a round trip: no TCP whose window is open sends less. Without it a flow among many
    /// whose samples have all been small would not get another one.
    fn least_rate(&self) -> Rate {
        if self.srtt.is_zero() {
            Rate::ZERO
        } else {
            Rate::from_bytes_over(self.mss, self.srtt)
        }
    }

    fn update_pacing(&mut self, gain: f64) {
        let bandwidth = self.bandwidth();
        self.pacing.update(
            bandwidth,
            gain,
            self.full_pipe.reached(),
            self.mss,
            self.feedback.pacing_floor().max(self.least_rate()),
        );
    }

    /// The episode is over: gives the window back at once, not only with the next delivery.
    fn close_episode(&mut self) {
        self.recovery.close();
        self.cwnd = self.recovery.restore(self.cwnd);
        self.cap_window();
    }
}

impl CongestionController for Bbr {
    fn on_send(&mut self, sent: &Sent) -> SendToken {
        if sent.prior_in_flight == 0 && sent.app_limited {
            self.idle_restart = true;
            self.extra_acked.restart(sent.now);
            match self.mode {
                // The path is empty: no need to probe or drain, one RTT at the bandwidth fills it.
                Mode::ProbeBw => self.update_pacing(1.0),
                // Idle time has done what the small window was to do.
                Mode::ProbeRtt if self.probe_rtt.elapsed(sent.now) => {
                    self.leave_probe_rtt(sent.now);
                }
                _ => {}
            }
        }
        self.probe_rtt.token(self.total_delivered)
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.delivered > 0 {
            self.delivered_at = ack.now;
        }
        self.total_delivered = ack.total_delivered;
        // What a timer found lost since the last acknowledgement is lost as well.
        let lost = ack.total_lost > self.total_lost || ack.lost > 0;
        self.total_lost = ack.total_lost;
        if !ack.in_recovery {
            self.recovery.close();
        }
        let sample = ack.rate.map(|sample| RateSample {
            app_limited: sample.app_limited || ProbeRtt::limited(ack.token),
            ..sample
        });
        match &sample {
            Some(sample) => {
                self.update_bandwidth(ack, sample);
                self.update_extra_acked(ack);
            }
            None => {
                self.round.no_sample();
                self.recovery
                    .on_delivered(ProbeRtt::prior_delivered(ack.token));
            }
        }
        self.update_cycle(ack, lost);
        self.update_full_pipe(ack, sample.as_ref());
        self.check_drain(ack);
        self.update_min_rtt(ack);
        self.update_gains();
        self.srtt = ack.srtt;
        self.pacing.on_srtt(self.cwnd, ack.srtt, self.mss);
        self.update_pacing(self.pacing_gain);
        let view = self.marks_view();
        self.marks.on_ack(ack, self.round.started(), &view);
        self.update_window(ack);
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        match congestion.cause {
            Cause::Ecn => {
                let view = self.marks_view();
                self.marks.on_mark(congestion, &view, self.mss);
                self.cap_window();
            }
            Cause::Loss => {
                self.recovery.save(self.cwnd, self.mode == Mode::ProbeRtt);
                self.recovery.enter_fast_recovery();
                self.full_pipe.on_loss();
            }
            Cause::Timeout => {
                self.recovery.save(self.cwnd, self.mode == Mode::ProbeRtt);
                self.recovery.enter_timeout();
                // All in flight is presumed lost: one segment probes the path, the window returns
                // with deliveries and in full when the episode ends.
                self.cwnd = self.mss;
                self.full_pipe.on_timeout();
                self.total_lost = self.total_lost.saturating_add(congestion.prior_in_flight);
                let mut view = self.policer_view(true, false);
                // A timeout is the end of a round.
                view.round_started = true;
                if self.policer.on_ack(&view) == Verdict::ProbeAgain {
                    self.enter_probe_bw();
                }
                self.update_gains();
            }
        }
    }

    fn on_recovered(&mut self, _now: Instant) {
        self.close_episode();
    }

    fn on_spurious(&mut self, _now: Instant, cause: Cause) {
        if cause == Cause::Ecn {
            return;
        }
        self.full_pipe.on_spurious();
        self.policer.reset(&self.policer_view(false, false));
        self.close_episode();
    }

    fn on_false_marks(&mut self, _now: Instant, _window: u64) {
        // The window grows back to what the model asks for.
        self.marks.on_false_marks();
    }

    fn on_mss(&mut self, mss: u64) {
        let old = core::mem::replace(&mut self.mss, mss.clamp(1, MAX_MSS));
        self.initial_window = for_segments(self.initial_window, old, self.mss);
        self.cwnd = for_segments(self.cwnd, old, self.mss).min(MAX_WINDOW);
        self.marks.on_mss(self.mss);
        self.cap_window();
    }

    fn on_feedback_interval(&mut self, interval: Duration) {
        self.feedback.set_interval(interval);
    }

    fn on_feedback_threshold(&mut self, segments: u16) {
        self.feedback.set_segments(segments);
    }

    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    fn in_slow_start(&self) -> bool {
        self.mode == Mode::Startup
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(self.pacing.rate())
    }

    fn recovery_shaping(&self) -> RecoveryShaping {
        RecoveryShaping::Own
    }

    fn metrics(&self) -> Metrics {
        let phase = match self.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::ProbeBw => "probe_bw",
            Mode::ProbeRtt => "probe_rtt",
        };
        Metrics {
            phase,
            bandwidth: Some(self.bandwidth()),
            min_rtt: self.model.min_rtt(),
            pacing_gain: Some(self.pacing_gain),
        }
    }
}
