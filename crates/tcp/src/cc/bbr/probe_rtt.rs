//! ProbeRTT: when the RTT floor is ten seconds old, empty the path for a moment to see it again.

use core::time::Duration;

use tack_base::Instant;

use super::super::{Ack, SendToken};
use super::round::Round;

/// How long the window stays small, at least.
const DURATION: Duration = Duration::from_millis(200);
/// Set in the token of transmissions whose rate samples are limited by ProbeRTT itself; the rest of
/// a token is the total of bytes delivered when the transmission left.
const LIMITED: u64 = 1;

/// The state of a probe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// The probe may end from here on; set once few enough bytes are in flight.
    done_at: Option<Instant>,
    /// A round has passed since.
    round_done: bool,
    /// Smallest RTT since then.
    smallest: Option<Duration>,
    /// Samples of what is sent before this many bytes are delivered are limited by the probe.
    limited_until: u64,
}

impl ProbeRtt {
    pub(super) fn start(&mut self) {
        self.done_at = None;
        self.smallest = None;
    }

    /// The smallest RTT of the probe, once few enough bytes were in flight.
    pub(super) const fn found(&self) -> Option<Duration> {
        self.smallest
    }

    /// Marks a transmission, given the total of bytes delivered.
    pub(super) fn token(&self, total_delivered: u64) -> SendToken {
        let limited = total_delivered < self.limited_until;
        let mark = if limited { LIMITED } else { 0 };
        SendToken((total_delivered << 1) | mark)
    }

    /// Bytes that had been delivered when this transmission left.
    pub(super) const fn prior_delivered(token: SendToken) -> u64 {
        token.0 >> 1
    }

    /// The sample of this transmission shows ProbeRTT's small window, not the path.
    pub(super) fn limited(token: SendToken) -> bool {
        token.0 & LIMITED != 0
    }

    /// An acknowledgement during the probe; `floor` is the window of the probe. True when it is
    /// over.
    pub(super) fn on_ack(&mut self, ack: &Ack, round: &mut Round, floor: u64) -> bool {
        self.limited_until = ack.total_delivered.saturating_add(ack.bytes_in_flight);
        match self.done_at {
            None => {
                if ack.bytes_in_flight <= floor {
                    self.done_at = Some(ack.now + DURATION);
                    self.round_done = false;
                    round.restart(ack.total_delivered);
                }
                false
            }
            Some(_) => {
                self.smallest = self.smallest.into_iter().chain(ack.rtt).min();
                self.round_done |= round.started();
                self.round_done && self.elapsed(ack.now)
            }
        }
    }

    /// The small window has lasted long enough.
    pub(super) fn elapsed(&self, now: Instant) -> bool {
        self.done_at.is_some_and(|done_at| now > done_at)
    }
}
