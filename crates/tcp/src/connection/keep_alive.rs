//! Keep-alive (RFC 9293 §3.8.4): is a silent peer still there?

use tack_base::Instant;

use super::due::Due;
use super::state::State;
use super::timers::Timer;
use super::{CloseReason, Connection};

/// How long the peer has been silent, and how often it was asked.
#[derive(Debug)]
pub(super) struct KeepAlive {
    /// When the last acceptable segment arrived.
    last_heard: Instant,
    /// Probes since then.
    probes: u32,
}

impl KeepAlive {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            last_heard: now,
            probes: 0,
        }
    }

    /// An acceptable segment arrived.
    #[inline]
    pub(super) fn on_segment(&mut self, now: Instant) {
        self.last_heard = now;
        self.probes = 0;
    }

    /// When the last acceptable segment arrived.
    #[inline]
    pub(super) fn last_heard(&self) -> Instant {
        self.last_heard
    }
}

impl Connection {
    /// The peer was silent for as long as configured.
    pub(super) fn on_keep_alive_timeout(&mut self, now: Instant) {
        let Some(settings) = self.config.keep_alive else {
            return;
        };
        if !self.state.is_synchronized() || self.state == State::TimeWait {
            return;
        }
        let due = self.keep_alive.last_heard + settings.idle;
        if now < due {
            self.timers.set(Timer::KeepAlive, due);
            return;
        }
        // Unacknowledged data has the retransmission timer to watch over the peer.
        if self.log.is_empty() {
            if self.keep_alive.probes >= settings.probes {
                self.end_with_reset(CloseReason::TimedOut);
                return;
            }
            self.keep_alive.probes += 1;
            self.due.add(Due::KeepAlive);
        }
        self.timers.set(Timer::KeepAlive, now + settings.interval);
    }
}
