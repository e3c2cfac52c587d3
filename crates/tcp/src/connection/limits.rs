//! What kept the sender from sending more: the first question about any throughput figure.

use core::time::Duration;

use tack_base::{Instant, StreamOffset};

use crate::stats::Stats;

/// What limits sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Limit {
    /// The congestion window is full.
    Cwnd,
    /// The peer's window is full.
    Rwnd,
    /// The next segment waits for its departure time.
    Pacing,
    /// There is nothing to send.
    App,
}

/// Time spent under each limit.
#[derive(Debug)]
pub(super) struct Limits {
    current: Limit,
    since: Instant,
    spent: [Duration; 4],
    /// The congestion window limits until this position is acknowledged.
    cwnd_limited_until: StreamOffset,
}

impl Limits {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            current: Limit::App,
            since: now,
            spent: [Duration::ZERO; 4],
            cwnd_limited_until: StreamOffset::SYN,
        }
    }

    /// From now on `limit` is what holds sending back.
    #[inline]
    pub(super) fn set(&mut self, now: Instant, limit: Limit) {
        if limit != self.current {
            self.spent[self.current as usize] += now.saturating_since(self.since);
            self.current = limit;
            self.since = now;
        }
    }

    /// The congestion window holds back what follows `snd_nxt`.
    #[inline]
    pub(super) fn on_cwnd_full(&mut self, snd_nxt: StreamOffset) {
        self.cwnd_limited_until = snd_nxt;
    }

    /// The congestion window limited sending at some time within the flight that begins at `una`.
    #[inline]
    pub(super) fn is_cwnd_limited(&self, una: StreamOffset) -> bool {
        una <= self.cwnd_limited_until
    }

    pub(super) fn report(&self, now: Instant, stats: &mut Stats) {
        let mut spent = self.spent;
        spent[self.current as usize] += now.saturating_since(self.since);
        stats.limited_by_cwnd = spent[Limit::Cwnd as usize];
        stats.limited_by_rwnd = spent[Limit::Rwnd as usize];
        stats.limited_by_pacing = spent[Limit::Pacing as usize];
        stats.limited_by_app = spent[Limit::App as usize];
    }
}

/// How much of the congestion window a flight used.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowUse {
    pub(super) cwnd: u64,
    /// Bytes in flight before the acknowledgement.
    pub(super) flight: u64,
    /// The window limited sending within the flight.
    pub(super) is_limit: bool,
}

impl WindowUse {
    /// At least half of the window was in use.
    #[inline]
    pub(super) fn is_half(&self) -> bool {
        self.cwnd <= 2 * self.flight
    }

    /// Bytes by which slow start may widen the window (see
    /// [`Ack::slow_start_room`](crate::cc::Ack::slow_start_room)).
    #[inline]
    pub(super) fn slow_start_room(&self, mss: u64) -> u64 {
        if self.is_limit {
            return u64::MAX;
        }
        // An acknowledgement of two segments counts in full.
        (2 * self.flight + 2 * mss).saturating_sub(self.cwnd)
    }
}
