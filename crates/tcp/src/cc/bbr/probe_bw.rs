//! ProbeBW: cruise at the estimated bandwidth, look for more for one RTT of a cycle (eight, or four
//! in the real-time profile), and give back what that queued in the next.

use core::time::Duration;

use tack_base::Instant;
use tack_base::random::RandomStream;

use super::BbrProfile;

/// Pacing gains of the phases, each lasting about one RTT floor; a short cycle ends early.
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Gain of the window over the bandwidth-delay product: room for delayed and aggregated
/// acknowledgements.
pub(super) const CWND_GAIN: f64 = 2.0;

/// Where in the gain cycle the flow is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    /// How many of [`GAINS`] there are: at least three.
    phases: usize,
    index: usize,
    began: Instant,
}

/// What decides about the end of a phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseView {
    /// Pacing gain in force: the phase's, unless a policer holds it at one.
    pub(super) gain: f64,
    pub(super) now: Instant,
    pub(super) min_rtt: Option<Duration>,
    /// By how much a phase may fall short.
    pub(super) rounding: Duration,
    /// The acknowledgement revealed losses, or marks hold the window down: what a probe puts into
    /// a queue does not fit.
    pub(super) is_full: bool,
    /// Bytes in flight before the acknowledgement.
    pub(super) in_flight: u64,
    /// Bytes that the phase's gain wants in flight.
    pub(super) target: u64,
}

impl Cycle {
    pub(super) const fn new(now: Instant, profile: BbrProfile) -> Self {
        Self {
            phases: profile.phases(),
            index: 0,
            began: now,
        }
    }

    /// The present phase's pacing gain.
    pub(super) fn gain(&self) -> f64 {
        GAINS[self.index]
    }

    /// True in the phase that probes for more bandwidth.
    pub(super) const fn probes_up(&self) -> bool {
        self.index == 0
    }

    /// Begins the cycle at a random phase, so that flows do not probe together; never at the one
    /// that drains, as there was no probe before it.
    pub(super) fn start(&mut self, now: Instant, random: &mut RandomStream) {
        self.index = self.phases - 1 - random.below(self.phases as u64 - 1) as usize;
        self.advance(now);
    }

    pub(super) fn advance(&mut self, now: Instant) {
        self.index = (self.index + 1) % self.phases;
        self.began = now;
    }

    /// Whether the phase is over.
    pub(super) fn is_over(&self, view: &PhaseView) -> bool {
        let elapsed = view
            .min_rtt
            .is_some_and(|rtt| view.now.saturating_since(self.began) + view.rounding > rtt);
        if view.gain > 1.0 {
            // Long enough, and the queue was asked for: unless it does not fit, until it is there.
            elapsed && (view.is_full || view.in_flight >= view.target)
        } else if view.gain < 1.0 {
            elapsed || view.in_flight <= view.target
        } else {
            elapsed
        }
    }
}
