//! A point in time, without a clock.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::time::Duration;

/// Nanoseconds since an arbitrary zero chosen by whoever owns the clock.
///
/// The simulator's zero is the start of the run, a carrier's zero the moment it was opened. Two
/// instants compare only when they come from the same owner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The owner's zero.
    pub const ZERO: Self = Self(0);
    /// Later than every instant that occurs (584 years after zero).
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after zero.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `micros` microseconds after zero.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// The instant `millis` milliseconds after zero.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// Nanoseconds since zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds since zero.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds since zero.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Seconds since zero, for printing and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Time from `earlier` to `self`, zero when `earlier` is later.
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// As [`Instant::saturating_since`], for arithmetic on the per-segment path.
    #[inline]
    pub const fn nanos_since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A span of time for arithmetic on the per-segment path: whole nanoseconds in 64 bits, up to 584
/// years. [`Duration`] keeps seconds apart, which takes several times the instructions; both round
/// down in the same way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest one.
    pub const MAX: Self = Self(u64::MAX);

    /// What is left of it without `other`, zero when that is longer.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl From<Duration> for Nanos {
    #[inline]
    fn from(duration: Duration) -> Self {
        Self(nanos(duration))
    }
}

impl From<Nanos> for Duration {
    #[inline]
    fn from(span: Nanos) -> Self {
        Self::from_nanos(span.0)
    }
}

impl Add for Nanos {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;
    #[inline]
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Nanos {
    type Output = Self;
    #[inline]
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

/// Nanoseconds of a duration, saturating at 584 years.
#[inline]
pub const fn nanos(duration: Duration) -> u64 {
    // as_nanos() is u128; this stays in 64 bits because it is on the per-segment path.
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(duration.subsec_nanos() as u64)
}

impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(nanos(rhs)))
    }
}

impl Add<Nanos> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, rhs: Nanos) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign<Nanos> for Instant {
    #[inline]
    fn add_assign(&mut self, rhs: Nanos) {
        *self = *self + rhs;
    }
}

impl Sub<Nanos> for Instant {
    type Output = Self;
    #[inline]
    fn sub(self, rhs: Nanos) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}

impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(rhs)))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:09}s",
            self.0 / 1_000_000_000,
            self.0 % 1_000_000_000
        )
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_round_as_durations_do() {
        for (duration, factor, divisor) in [(1_999_999_999, 7, 8), (3, 5, 4), (4_000_000_007, 1, 3)]
        {
            let long = Duration::from_nanos(duration);
            let span = Nanos::from(long) * u64::from(factor) / u64::from(divisor);
            assert_eq!(Duration::from(span), long * factor / divisor);
        }
        assert_eq!(Nanos::from(Duration::MAX), Nanos::MAX);
        assert_eq!(Nanos::MAX * 2 + Nanos(1), Nanos::MAX);
        assert_eq!(Nanos(1).saturating_sub(Nanos(2)), Nanos::ZERO);
        let at = Instant::from_nanos(5);
        assert_eq!(
            (at - Nanos(9), at + Nanos(2)),
            (Instant::ZERO, Instant::from_nanos(7))
        );
        assert_eq!(at.nanos_since(Instant::from_nanos(1)), Nanos(4));
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(
            Instant::from_millis(1) + Duration::from_micros(5),
            Instant::from_micros(1_005)
        );
        assert_eq!(Instant::ZERO - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(
            Instant::FAR_FUTURE + Duration::from_secs(1),
            Instant::FAR_FUTURE
        );
        assert_eq!(
            Instant::ZERO.saturating_since(Instant::from_millis(3)),
            Duration::ZERO
        );
    }
}
