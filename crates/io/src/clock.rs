//! The carrier's clock: monotonic, and able to place the kernel's wall-clock receive timestamps.

use std::time::{Duration, SystemTime};

use tack_base::Instant;

/// Nanoseconds since the clock was made, from the system's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: std::time::Instant,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// A clock whose [`Instant::ZERO`] is now.
    #[expect(clippy::disallowed_methods, reason = "the carrier owns the clock")]
    pub fn new() -> Self {
        Self {
            zero: std::time::Instant::now(),
        }
    }

    /// The time now.
    #[inline]
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.zero.elapsed()
    }

    /// The wall clock, as the time since 1970; half of a [`Reading`].
    #[expect(clippy::disallowed_methods, reason = "the carrier owns the clock")]
    fn wall() -> Option<Duration> {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .ok()
    }
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) now: Instant,
    /// Time since 1970.
    pub(crate) wall: Option<Duration>,
}

impl Reading {
    pub(crate) fn take(clock: &Clock) -> Self {
        // In this order: should the process lose the processor in between, arrivals look late (an
        // RTT too long, once) rather than early (a minimum RTT too short, for long).
        let wall = Clock::wall();
        let now = clock.now();
        Self { now, wall }
    }

    /// True when the wall clock was set between `earlier` and this reading.
    ///
    /// Linux disciplines the rate of both clocks alike, so that only a step (or the machine's
    /// sleep) parts them. The allowance is for the time between the two halves of a reading.
    fn is_stepped_since(&self, earlier: &Self) -> bool {
        const ALLOWANCE: Duration = Duration::from_micros(100);
        let (Some(wall), Some(wall_before)) = (self.wall, earlier.wall) else {
            return true;
        };
        let elapsed = self.now.saturating_since(earlier.now);
        wall.checked_sub(wall_before)
            .is_none_or(|by_wall| by_wall.abs_diff(elapsed) > ALLOWANCE)
    }
}

/// How far back a receive timestamp is believed.
const OLDEST_ARRIVAL: Duration = Duration::from_secs(1);

/// When a datagram arrived, from its wall-clock `stamp`, read from the socket at `read`. The socket
/// was seen empty at `emptied`, so nothing that is in it now came before.
///
/// A stamp counts as "just now" when the wall clock was set since then, or when it is from the
/// future or older than [`OLDEST_ARRIVAL`]: an arrival too late spoils one RTT sample, one that
/// precedes the departure of what it answers spoils the minimum RTT. Steps below a tenth of a
/// millisecond go unnoticed.
pub(crate) fn arrival(
    read: &Reading,
    emptied: Option<&Reading>,
    stamp: Option<Duration>,
) -> Instant {
    let age = match (read.wall, stamp) {
        (Some(wall), Some(stamp)) => wall.checked_sub(stamp),
        _ => None,
    };
    let Some(age) = age.filter(|age| *age <= OLDEST_ARRIVAL) else {
        return read.now;
    };
    let arrived = read.now - age;
    match emptied {
        Some(emptied) if read.is_stepped_since(emptied) => read.now,
        Some(emptied) => arrived.max(emptied.now),
        None => arrived,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The monotonic clock at `now` milliseconds, the wall clock at `wall`.
    fn reading(now: u64, wall: u64) -> Reading {
        Reading {
            now: Instant::from_millis(now),
            wall: Some(Duration::from_millis(wall)),
        }
    }

    fn stamp(millis: u64) -> Option<Duration> {
        Some(Duration::from_millis(millis))
    }

    #[test]
    fn arrival_is_placed_on_the_monotonic_clock() {
        let read = reading(5_000, 1_000_000);
        let at = |stamp| arrival(&read, None, stamp);
        assert_eq!(at(stamp(999_990)), Instant::from_millis(4_990));
        assert_eq!(at(stamp(1_000_001)), read.now, "from the future");
        assert_eq!(at(stamp(998_000)), read.now, "too old");
        assert_eq!(at(None), read.now);
        let blind = Reading { wall: None, ..read };
        assert_eq!(arrival(&blind, None, stamp(1)), read.now);
    }

    #[test]
    fn nothing_arrived_before_the_socket_was_empty() {
        let emptied = reading(4_000, 999_000);
        let read = reading(4_500, 999_500);
        let at = |stamp| arrival(&read, Some(&emptied), stamp);
        assert_eq!(at(stamp(999_200)), Instant::from_millis(4_200));
        assert_eq!(at(stamp(998_999)), emptied.now);
    }

    #[test]
    fn a_step_of_the_wall_clock_makes_no_early_arrival() {
        // A segment left at 4.4 s, its answer was stamped at 4.45 s, and then the clock was set,
        // either way.
        let emptied = reading(4_300, 999_300);
        for wall in [999_700, 999_501, 999_499, 999_000] {
            let read = reading(4_500, wall);
            let arrived = arrival(&read, Some(&emptied), stamp(999_450));
            assert_eq!(arrived, read.now, "{wall}");
        }
        // The step came before the socket was last empty: stamps are good again.
        let emptied = reading(4_300, 1_200_300);
        let read = reading(4_500, 1_200_500);
        let arrived = arrival(&read, Some(&emptied), stamp(1_200_450));
        assert_eq!(arrived, Instant::from_millis(4_450));
    }

    #[test]
    fn time_never_goes_back() {
        let clock = Clock::new();
        let first = clock.now();
        assert!(clock.now() >= first);
    }
}
