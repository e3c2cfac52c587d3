//! Spans of time as channel access adds and divides them at each event: one number, where a
//! `Duration` is two.

use tack_base::time::nanos;
use tack_base::{Duration, Instant};

/// A span of time: a slot, an interframe space. Nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span(u64);

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(nanos(duration))
    }
}

impl Span {
    /// One of it after `from`.
    #[inline]
    pub(super) const fn after(self, from: Instant) -> Instant {
        Instant::from_nanos(from.as_nanos() + self.0)
    }

    /// `count` of it after `from`.
    #[inline]
    pub(super) const fn times_after(self, count: u64, from: Instant) -> Instant {
        Instant::from_nanos(from.as_nanos() + count * self.0)
    }

    /// How many whole ones lie between `from` and `to`, which is not before it.
    #[inline]
    pub(super) const fn between(self, from: Instant, to: Instant) -> u64 {
        (to.as_nanos() - from.as_nanos()) / self.0
    }
}
