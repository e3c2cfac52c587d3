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

/// A round trip of more than so many times the floor has waited in a queue.
pub(super) const QUEUED: f64 = 1.125;
/// How many more rounds with a queue must have lost something, each counted twice, than have not,
/// for the bursts of an application to count as overflowing that queue.
const OVERFLOWS: u32 = 16;

/// Watches whether the pipe is full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// Bandwidth at the last growth.
    bandwidth: Rate,
    rounds: u32,
    reached: bool,
    /// The most in flight since the round began, bytes.
    in_flight: u64,
    /// Something got lost since the round began, …
    lost: bool,
    /// … or was being repaired.
    in_recovery: bool,
    /// A round trip showed a queue since the round began.
    is_queued: bool,
    /// Rounds that the application limited and that lost something, counted twice, less those that
    /// lost nothing.
    lossy: u32,
}

impl FullPipe {
    /// The bandwidth estimate once stopped growing: it is of the bottleneck.
    pub(super) const fn reached(&self) -> bool {
        self.reached
    }

    /// An acknowledgement arrived while so many bytes were in flight.
    pub(super) fn on_ack(&mut self, in_flight: u64, in_recovery: bool, is_queued: bool) {
        self.in_flight = self.in_flight.max(in_flight);
        self.in_recovery |= in_recovery;
        self.is_queued |= is_queued;
    }

    /// A loss episode begins, or a tail loss probe has repaired a loss.
    pub(super) fn on_loss(&mut self) {
        self.lost = true;
    }

    /// A round began with this bandwidth estimate. A round that the application limited says
    /// nothing about the pipe, unless more than `overfull` bytes were in flight: an application
    /// that fills a path with less than the windows allow would keep the gain of startup
    /// forever, and with it a queue that overflows.
    pub(super) fn on_round(&mut self, bandwidth: Rate, app_limited: bool, overfull: u64) {
        let in_flight = core::mem::take(&mut self.in_flight);
        let lost = core::mem::take(&mut self.lost);
        let in_recovery = core::mem::take(&mut self.in_recovery);
        let is_queued = core::mem::take(&mut self.is_queued);
        if self.reached {
            return;
        }
        if app_limited && lost && is_queued {
            self.lossy += 2;
        } else if !in_recovery {
            self.lossy = self.lossy.saturating_sub(1);
        }
        if self.lossy >= OVERFLOWS {
            self.reached = true;
            return;
        }
        if app_limited && in_flight <= overfull {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether rounds that the application limits end startup; `is_lossy` and `is_queued` say of
    /// each whether it lost something, and whether round trips showed a queue.
    fn ends(rounds: u32, is_lossy: impl Fn(u32) -> bool, is_queued: impl Fn(u32) -> bool) -> bool {
        let mut pipe = FullPipe::default();
        (0..rounds).any(|round| {
            pipe.on_ack(10_000, false, is_queued(round));
            if is_lossy(round) {
                pipe.on_loss();
            }
            pipe.on_round(Rate::from_bits_per_sec(1_000_000), true, 50_000);
            pipe.reached()
        })
    }

    #[test]
    fn losses_out_of_a_queue_end_startup_and_random_ones_do_not() {
        // Each answer, or one of its two rounds, overflows a queue.
        assert!(ends(10, |_| true, |_| true));
        assert!(ends(100, |round| round % 2 == 0, |_| true));
        // Nothing waits in a queue; a queue is there, and little gets lost; nothing gets lost.
        assert!(!ends(1_000, |_| true, |_| false));
        assert!(!ends(1_000, |round| round % 4 == 0, |_| true));
        assert!(!ends(1_000, |_| false, |_| true));
    }
}
