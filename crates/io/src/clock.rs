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

    /// The wall clock, as the time since 1970; pair it with [`Clock::now`] for [`arrival`].
    #[expect(clippy::disallowed_methods, reason = "the carrier owns the clock")]
    pub(crate) fn wall() -> Option<Duration> {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .ok()
    }
}

/// How far back a receive timestamp is believed. A datagram that waited longer in the socket's queue, or a wall clock
/// that was stepped, must not turn into an RTT sample from the distant past.
const OLDEST_ARRIVAL: Duration = Duration::from_secs(10);

/// When a datagram arrived, from its wall-clock `stamp`, both clocks having been read together as `now` and `wall`.
///
/// A stamp from the future (the wall clock was set back) or an implausibly old one counts as "just now".
pub(crate) fn arrival(now: Instant, wall: Option<Duration>, stamp: Option<Duration>) -> Instant {
    match (wall, stamp) {
        (Some(wall), Some(stamp)) => match wall.checked_sub(stamp) {
            Some(age) if age <= OLDEST_ARRIVAL => now - age,
            _ => now,
        },
        _ => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrival_is_placed_on_the_monotonic_clock() {
        let now = Instant::from_millis(5_000);
        let wall = Some(Duration::from_secs(1_000));
        let stamp = |millis| Some(Duration::from_millis(millis));
        assert_eq!(
            arrival(now, wall, stamp(999_990)),
            Instant::from_millis(4_990)
        );
        assert_eq!(arrival(now, wall, stamp(1_000_001)), now, "stepped back");
        assert_eq!(arrival(now, wall, stamp(900_000)), now, "stepped forward");
        assert_eq!(arrival(now, wall, None), now);
        assert_eq!(arrival(now, None, stamp(1)), now);
    }

    #[test]
    fn time_never_goes_back() {
        let clock = Clock::new();
        let first = clock.now();
        assert!(clock.now() >= first);
    }
}
