//! Aggregation: how much more than expected is acknowledged at once.
//!
//! Wi-Fi, LTE and sparse acknowledgement deliver acknowledgements in clumps. The largest excess
//! over `bandwidth × time` of the last five to ten rounds is added to the window, so that data
//! keeps flowing between clumps.

use core::time::Duration;

use tack_base::{Instant, Rate};

/// Rounds of each of the two windows.
const WINDOW_ROUNDS: u32 = 5;
/// The allowance is never more than the bandwidth delivers in this time.
const MAX_TIME: Duration = Duration::from_millis(100);
/// An epoch ends after this many segments at the latest.
const EPOCH_SEGMENTS: u64 = 1 << 20;

/// The estimator.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExtraAcked {
    epoch_began: Instant,
    epoch_acked: u64,
    /// Largest excess of the present and the previous window.
    excess: [u64; 2],
    current: usize,
    rounds: u32,
}

impl ExtraAcked {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            epoch_began: now,
            epoch_acked: 0,
            excess: [0; 2],
            current: 0,
            rounds: 0,
        }
    }

    /// A round began.
    pub(super) fn on_round(&mut self) {
        self.rounds += 1;
        if self.rounds >= WINDOW_ROUNDS {
            self.rounds = 0;
            self.current ^= 1;
            self.excess[self.current] = 0;
        }
    }

    /// `delivered` bytes were acknowledged while `bandwidth` was expected; an excess beyond `cwnd`
    /// cannot be aggregation. Clumps of `regular` bytes are how the peer acknowledges, and provided
    /// for.
    pub(super) fn on_delivered(
        &mut self,
        now: Instant,
        delivered: u64,
        bandwidth: Rate,
        cwnd: u64,
        regular: u64,
        mss: u64,
    ) {
        let limit = EPOCH_SEGMENTS.saturating_mul(mss);
        let mut expected = bandwidth.bytes_in(now.saturating_since(self.epoch_began));
        if self.epoch_acked <= expected || self.epoch_acked.saturating_add(delivered) >= limit {
            self.restart(now);
            expected = 0;
        }
        self.epoch_acked = self.epoch_acked.saturating_add(delivered).min(limit - 1);
        let excess = self
            .epoch_acked
            .saturating_sub(expected)
            .saturating_sub(regular)
            .min(cwnd);
        let largest = &mut self.excess[self.current];
        *largest = (*largest).max(excess);
    }

    /// The epoch begins anew, as after idle time.
    pub(super) fn restart(&mut self, now: Instant) {
        self.epoch_began = now;
        self.epoch_acked = 0;
    }

    /// Bytes to add to the window.
    pub(super) fn allowance(&self, bandwidth: Rate) -> u64 {
        self.excess[0]
            .max(self.excess[1])
            .min(bandwidth.bytes_in(MAX_TIME))
    }
}
