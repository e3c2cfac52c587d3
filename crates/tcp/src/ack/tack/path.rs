//! What it takes to believe that a path takes TACK's option off segments, and that it does so no
//! more.

use core::time::Duration;

use tack_base::Instant;

/// Segments in a row that show what the path does: fewer are damage to some segments.
const IN_A_ROW: u32 = 3;

/// Segments in a row that have something in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Run {
    count: u32,
    since: Option<Instant>,
}

impl Run {
    /// One more arrived at `at`. True when they are enough, and `round_trip` has passed since the
    /// first: a burst that a box damaged at one moment shows nothing.
    pub(super) fn add(&mut self, at: Instant, round_trip: Duration) -> bool {
        self.count = self.count.saturating_add(1);
        let since = *self.since.get_or_insert(at);
        self.count >= IN_A_ROW && at >= since + round_trip
    }

    /// How long before `at` the first one arrived; nothing where none did.
    pub(super) fn age(&self, at: Instant) -> Duration {
        self.since
            .map_or(Duration::ZERO, |since| at.saturating_since(since))
    }

    /// Something else came.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// None so far.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_in_a_row_over_a_round_trip_are_enough() {
        let rtt = Duration::from_millis(10);
        let mut run = Run::default();
        let at = Instant::from_millis;
        assert!(!run.add(at(100), rtt) && !run.add(at(120), rtt), "two");
        assert!(run.add(at(121), rtt));
        run.end();
        for _ in 0..100 {
            assert!(!run.add(at(200), rtt), "a burst");
        }
        assert!(run.add(at(210), rtt));
    }
}
