//! Startup: double the rate each round until the pipe is full; then drain, in about a round, the
//! queue that this built.

use tack_base::Rate;

/// The smallest gain that doubles the delivery rate each round: 2/ln 2.
pub(super) const HIGH_GAIN: f64 = 2.885;
/// Drain's gain: its inverse.
pub(super) const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;

/// Growth of the bandwidth estimate within [`FULL_ROUNDS`] that shows there is more to have.
const GROWTH: f64 = 1.25;
/// Rounds without such growth after which the pipe is full: three, so that receive windows can
/// open.
const FULL_ROUNDS: u32 = 3;
/// So many times what the path holds at the bandwidth estimate were in flight: a queue stands, and
/// whatever keeps the sender from sending more, the pipe is full.
pub(super) const OVERFULL: f64 = 1.5;

/// Watches whether the pipe is full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// Bandwidth at the last growth.
    bandwidth: Rate,
    rounds: u32,
    reached: bool,
    /// The most in flight since the round began, bytes.
    in_flight: u64,
}

impl FullPipe {
    /// The bandwidth estimate once stopped growing: it is of the bottleneck.
    pub(super) const fn reached(&self) -> bool {
        self.reached
    }

    /// An acknowledgement arrived while so many bytes were in flight.
    pub(super) fn on_ack(&mut self, in_flight: u64) {
        self.in_flight = self.in_flight.max(in_flight);
    }

    /// A round began with this bandwidth estimate. A round that the application limited says
    /// nothing about the pipe, unless more than `overfull` bytes were in flight: an application
    /// that fills a path with less than the windows allow would keep the gain of startup
    /// forever, and with it a queue that overflows.
    pub(super) fn on_round(&mut self, bandwidth: Rate, app_limited: bool, overfull: u64) {
        let in_flight = core::mem::take(&mut self.in_flight);
        if self.reached || app_limited && in_flight <= overfull {
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
