//! Startup: double the rate each round until the pipe is full; then drain, in about a round, the queue
//! that this built.

use tack_base::Rate;

/// The smallest gain that doubles the delivery rate each round: 2/ln 2.
pub(super) const HIGH_GAIN: f64 = 2.885;
/// Drain's gain: its inverse.
pub(super) const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;

/// Growth of the bandwidth estimate within [`FULL_ROUNDS`] that shows there is more to have.
const GROWTH: f64 = 1.25;
/// Rounds without such growth after which the pipe is full: three, so that receive windows can open.
const FULL_ROUNDS: u32 = 3;

/// Watches whether the pipe is full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// Bandwidth at the last growth.
    bandwidth: Rate,
    rounds: u32,
    reached: bool,
}

impl FullPipe {
    /// The bandwidth estimate once stopped growing: it is of the bottleneck.
    pub(super) const fn reached(&self) -> bool {
        self.reached
    }

    /// A round began, not limited by the application, with this bandwidth estimate.
    pub(super) fn on_round(&mut self, bandwidth: Rate) {
        if self.reached {
            return;
        }
        if bandwidth >= self.bandwidth.scale(GROWTH) {
            self.bandwidth = bandwidth;
            self.rounds = 0;
            return;
        }
        self.rounds += 1;
        self.reached = self.rounds >= FULL_ROUNDS;
    }

    /// A timeout: growth is measured anew.
    pub(super) fn on_timeout(&mut self) {
        self.bandwidth = Rate::ZERO;
    }

    /// A loss episode was false: what it did to the bandwidth says nothing about the pipe.
    pub(super) fn on_spurious(&mut self) {
        self.bandwidth = Rate::ZERO;
        self.rounds = 0;
    }
}
