//! Sparse feedback: what a peer that acknowledges a few times a round trip asks for.
//!
//! What it received since its last acknowledgement still counts as in flight here, up to one
//! interval's worth; the window, and what is compared with it, has room for that. Where an interval
//! carries less than the segments that the peer waits for, it counts those instead, and its
//! acknowledgements follow the data as a legacy peer's do: then nothing of this applies.

use core::time::Duration;

use tack_base::{Instant, Rate};

/// Longer intervals are taken as this: the window's room must not become a licence to flood.
const MAX_INTERVAL: Duration = Duration::from_secs(1);

/// What the peer promises, and at which bandwidth that is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feedback {
    /// Regular interval between acknowledgements; zero for a legacy peer.
    interval: Duration,
    /// Segments that an acknowledgement waits for (`L`).
    segments: u16,
    bandwidth: Rate,
    mss: u64,
}

impl Feedback {
    /// A legacy peer.
    pub(super) const fn new(mss: u64) -> Self {
        Self {
            interval: Duration::ZERO,
            segments: 1,
            bandwidth: Rate::ZERO,
            mss,
        }
    }

    pub(super) fn set_interval(&mut self, interval: Duration) {
        self.interval = interval.min(MAX_INTERVAL);
    }

    pub(super) fn set_segments(&mut self, segments: u16) {
        self.segments = segments.max(1);
    }

    /// What the path carries, and in which segments.
    pub(super) fn on_path(&mut self, bandwidth: Rate, mss: u64) {
        self.bandwidth = bandwidth;
        self.mss = mss;
    }

    /// The peer acknowledges by the clock: `β/RTTmin` is the lower one of its two frequencies.
    pub(super) fn is_sparse(self) -> bool {
        !self.interval.is_zero()
            && self.bandwidth.bytes_in(self.interval) >= u64::from(self.segments) * self.mss
    }

    /// What arrives within an interval, bytes: the window's `T/RTTmin` bandwidth-delay products.
    pub(super) fn unreported(self) -> u64 {
        if self.is_sparse() {
            self.bandwidth.bytes_in(self.interval)
        } else {
            0
        }
    }

    /// `MSS·f`, a segment for each acknowledgement to report; `f` is the lower one of the peer's
    /// two frequencies.
    pub(super) fn pacing_floor(self) -> Rate {
        if self.is_sparse() {
            Rate::from_bytes_over(self.mss, self.interval)
        } else if self.interval.is_zero() {
            Rate::ZERO
        } else {
            self.bandwidth.scale(1.0 / f64::from(self.segments))
        }
    }

    /// By how much a time that is to last may be cut short: it ends at the acknowledgement next to
    /// its end, not at the first one after it.
    pub(super) fn rounding(self) -> Duration {
        if self.is_sparse() {
            self.interval / 2
        } else {
            Duration::ZERO
        }
    }
}

/// Time as the bandwidth filter counts it, in parts of a round.
///
/// Legacy feedback: packet-timed rounds. Sparse feedback: RTT floors, as the peer's acknowledgement
/// intervals are parts of those; rounds would grow with the very queue that a fall in bandwidth
/// builds, and the old estimate would live the longer the more harm it does. Only time with samples
/// of the path counts.
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

    /// A sample came at `now` with sparse feedback. One that was limited by the application does
    /// not count as time, and a gap counts as a round trip at most: nothing was to be seen
    /// then.
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

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    /// Four acknowledgements a round trip of 40 ms, each for two segments at least, at this many
    /// segments a second.
    fn feedback(segments_per_second: u64) -> Feedback {
        let mut feedback = Feedback::new(MSS);
        feedback.set_interval(Duration::from_millis(10));
        feedback.set_segments(2);
        feedback.on_path(Rate::from_bytes_per_sec(segments_per_second * MSS), MSS);
        feedback
    }

    #[test]
    fn the_lower_one_of_two_frequencies_is_in_force() {
        // By the clock: at 400 segments a second, four arrive in an interval.
        let fast = feedback(400);
        assert!(fast.is_sparse());
        assert_eq!(fast.unreported(), 4 * MSS);
        assert_eq!(fast.pacing_floor(), Rate::from_bytes_per_sec(100 * MSS));
        assert_eq!(fast.rounding(), Duration::from_millis(5));
        // By count: at 100, two take longer than the interval.
        let slow = feedback(100);
        assert!(!slow.is_sparse());
        assert_eq!(slow.unreported(), 0);
        assert_eq!(slow.pacing_floor(), Rate::from_bytes_per_sec(50 * MSS));
        assert_eq!(slow.rounding(), Duration::ZERO);
    }

    #[test]
    fn a_legacy_peer_asks_for_nothing() {
        let mut legacy = Feedback::new(MSS);
        legacy.on_path(Rate::from_bytes_per_sec(400 * MSS), MSS);
        assert!(!legacy.is_sparse());
        assert_eq!(
            (legacy.unreported(), legacy.pacing_floor()),
            (0, Rate::ZERO)
        );
    }
}
