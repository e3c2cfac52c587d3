//! The timers of a connection, each with a deadline of its own.

use tack_base::timers::{TimerName, Timers};

/// Names of the timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    /// SYN or data unacknowledged for one RTO.
    Retransmit,
    /// Tail loss probe.
    Probe,
    /// The reordering window of the oldest suspect is over.
    Reorder,
    /// The peer's window is closed: ask again.
    Persist,
    /// A held-back acknowledgement is due.
    DelayedAck,
    /// The peer was silent for long.
    KeepAlive,
    /// Data unacknowledged for too long.
    User,
    /// TIME-WAIT, or FIN-WAIT-2 that nobody reads, is over.
    Lifetime,
    /// Pacing lets the next segment out.
    Pacing,
    /// What an idle connection does not need may be given back.
    Idle,
}

/// Number of timers.
pub(crate) const TIMERS: usize = 10;

/// The timers of one connection.
pub(super) type ConnectionTimers = Timers<Timer, TIMERS>;

impl TimerName for Timer {
    const ALL: &'static [Self] = &[
        Self::User,
        Self::Lifetime,
        Self::Reorder,
        Self::Probe,
        Self::Retransmit,
        Self::Persist,
        Self::DelayedAck,
        Self::KeepAlive,
        Self::Pacing,
        Self::Idle,
    ];

    #[inline]
    fn index(self) -> usize {
        self as usize
    }
}
