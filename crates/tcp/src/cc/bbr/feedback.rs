//! Sparse feedback: what a peer that acknowledges a few times a round trip asks for.
//!
//! What it received since its last acknowledgement still counts as in flight here, up to one interval's
//! worth; the window, and what is compared with it, has room for that. Zero: acknowledgements follow the data.

use core::time::Duration;

use tack_base::{Instant, Rate};

/// Longer intervals are taken as this: the window's room must not become a licence to flood.
const MAX_INTERVAL: Duration = Duration::from_secs(1);

/// The regular interval between acknowledgements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Feedback {
    interval: Duration,
}

impl Feedback {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval: interval.min(MAX_INTERVAL),
        }
    }

    /// The peer acknowledges by the clock.
    pub(super) const fn is_sparse(self) -> bool {
        !self.interval.is_zero()
    }

    /// What arrives within an interval at `bandwidth`, bytes: the window's `T/RTTmin` bandwidth-delay products.
    pub(super) fn unreported(self, bandwidth: Rate) -> u64 {
        bandwidth.bytes_in(self.interval)
    }

    /// A segment an interval: each acknowledgement is to have something to report.
    pub(super) fn pacing_floor(self, mss: u64) -> Rate {
        if self.is_sparse() {
            Rate::from_bytes_over(mss, self.interval)
        } else {
            Rate::ZERO
        }
    }

    /// By how much a time that is to last may be cut short: it ends at the acknowledgement next to its end, not
    /// at the first one after it.
    pub(super) fn rounding(self) -> Duration {
        self.interval / 2
    }
}

/// Time as the bandwidth filter counts it, in parts of a round.
///
/// Legacy feedback: packet-timed rounds. Sparse feedback: RTT floors, as the peer's acknowledgement
/// intervals are parts of those; rounds would grow with the very queue that a fall in bandwidth builds, and the old
/// estimate would live the longer the more harm it does. Only time with samples of the path counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilterClock {
    position: u64,
    sampled_at: Instant,
}

impl FilterClock {
    /// Parts of a round.
    pub(super) const ROUND: u64 = 1 << 10;

    pub(super) const fn new(now: Instant) -> Self {
        Self {
            position: 0,
            sampled_at: now,
        }
    }

    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// A round began with legacy feedback.
    pub(super) fn on_round(&mut self) {
        self.position = self.position.saturating_add(Self::ROUND);
    }

    /// A sample came at `now` with sparse feedback. One that was limited by the application does not count as
    /// time, and a gap counts as a round trip at most: nothing was to be seen then.
    pub(super) fn on_sample(&mut self, now: Instant, min_rtt: Duration, app_limited: bool) {
        let elapsed = now.saturating_since(self.sampled_at).as_nanos();
        self.sampled_at = now;
        if !app_limited {
            let parts = elapsed * u128::from(Self::ROUND) / min_rtt.as_nanos().max(1);
            let parts = u64::try_from(parts).unwrap_or(u64::MAX).min(Self::ROUND);
            self.position = self.position.saturating_add(parts);
        }
    }
}
