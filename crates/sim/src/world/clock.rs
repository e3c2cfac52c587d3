//! A host's own clock, which may run faster or slower than the run's time.

use std::time::Duration;

use tack_base::Instant;
use tack_base::time::nanos;

/// Converts between the run's time and a host's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    skew_ppm: i64,
}

impl Clock {
    pub(super) fn new(skew_ppm: i64) -> Self {
        Self { skew_ppm }
    }

    /// What the host's clock shows at `at`.
    #[inline]
    pub(super) fn local(&self, at: Instant) -> Instant {
        if self.skew_ppm == 0 {
            return at;
        }
        let ns = i128::from(at.as_nanos());
        let shown = ns + ns * i128::from(self.skew_ppm) / 1_000_000;
        Instant::from_nanos(u64::try_from(shown).unwrap_or(u64::MAX))
    }

    /// The first instant of the run at which the host's clock shows `local` or more.
    #[inline]
    pub(super) fn global(&self, local: Instant) -> Instant {
        if self.skew_ppm == 0 || local == Instant::FAR_FUTURE {
            return local;
        }
        let ns = i128::from(local.as_nanos());
        let estimate = ns * 1_000_000 / (1_000_000 + i128::from(self.skew_ppm));
        let mut at = Instant::from_nanos(u64::try_from(estimate).unwrap_or(u64::MAX - 1));
        // Two roundings are off by a nanosecond or two at most.
        while self.local(at) < local {
            at += Duration::from_nanos(1);
        }
        while at > Instant::ZERO && self.local(at - Duration::from_nanos(1)) >= local {
            at = Instant::from_nanos(nanos(at.saturating_since(Instant::from_nanos(1))));
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_met_exactly() {
        for skew in [-10_000, -100, -1, 0, 1, 100, 10_000] {
            let clock = Clock::new(skew);
            for ns in [
                0,
                1,
                7,
                999_999,
                1_000_000,
                123_456_789_012,
                40_000_000_000_001,
            ] {
                let local = Instant::from_nanos(ns);
                let at = clock.global(local);
                assert!(clock.local(at) >= local, "{skew} ppm, {ns} ns: early");
                if at > Instant::ZERO {
                    assert!(
                        clock.local(at - Duration::from_nanos(1)) < local,
                        "{skew} ppm, {ns} ns: late"
                    );
                }
            }
        }
        assert_eq!(
            Clock::new(100).local(Instant::from_nanos(10_000_000)),
            Instant::from_nanos(10_001_000)
        );
    }
}
