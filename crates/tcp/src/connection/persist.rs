//! Probing a closed window (RFC 9293 §3.8.6.1).

use core::time::Duration;

use tack_base::{Instant, StreamOffset};

/// Longest wait for a window worth a segment (RFC 9293 §3.8.6.2.1).
const MAX_OVERRIDE: Duration = Duration::from_secs(1);
/// Most doublings of the interval between two probes.
const MAX_BACKOFF: u32 = 16;

/// What is known of a window that holds everything back.
#[derive(Debug)]
pub(super) struct Persist {
    /// Doublings of the interval.
    backoff: u32,
    /// When the window began to hold everything back, and the position from which on it did. A
    /// window that opened since for less than a segment in all changes nothing.
    since: Instant,
    from: Option<StreamOffset>,
    /// A window probe left with the octet below this position.
    probed: StreamOffset,
}

impl Persist {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            backoff: 0,
            since: now,
            from: None,
            probed: StreamOffset::FIRST_BYTE,
        }
    }

    /// The window begins to hold back everything from `una` on, segments of `mss` bytes.
    pub(super) fn begin(&mut self, now: Instant, una: StreamOffset, mss: u64) {
        if self
            .from
            .is_none_or(|from| una.saturating_since(from) >= mss)
        {
            self.since = now;
            self.from = Some(una);
        }
    }

    /// When the window began to hold everything back.
    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// A probe is due: the next one comes after twice the time.
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }

    /// The window opened.
    #[inline]
    pub(super) fn end(&mut self) {
        self.backoff = 0;
    }

    /// What is below this position left, in a segment or in a window probe.
    #[inline]
    pub(super) fn on_sent(&mut self, position: StreamOffset) {
        self.probed = self.probed.max(position);
    }

    /// The highest position that a peer can acknowledge.
    #[inline]
    pub(super) fn highest_sent(&self, snd_nxt: StreamOffset) -> StreamOffset {
        snd_nxt.max(self.probed)
    }

    /// How long to wait for the next probe: backs off like the retransmission timer (RFC 9293
    /// SHLD-29, SHLD-30).
    pub(super) fn wait(&self, rto: Duration, max_rto: Duration, is_open: bool) -> Duration {
        let wait = rto.saturating_mul(1 << self.backoff).min(max_rto);
        // A window that is open, but too small to be worth a segment: RFC 9293 §3.8.6.2.1 waits 0.1
        // to 1 s for more.
        if is_open {
            wait.min(MAX_OVERRIDE)
        } else {
            wait
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_back_off_and_an_open_window_is_asked_within_a_second() {
        let (rto, max) = (Duration::from_millis(300), Duration::from_secs(60));
        let mut persist = Persist::new(Instant::ZERO);
        let mut waits = [Duration::ZERO; 3];
        for wait in &mut waits {
            *wait = persist.wait(rto, max, false);
            persist.backoff += 1;
        }
        assert_eq!(waits, [rto, rto * 2, rto * 4]);
        assert_eq!(persist.wait(rto, max, true), MAX_OVERRIDE);
        persist.backoff = MAX_BACKOFF;
        assert_eq!(persist.wait(rto, max, false), max);
        persist.end();
        assert_eq!(persist.wait(rto, max, true), rto);
    }

    #[test]
    fn a_window_that_opens_for_a_byte_now_and_then_is_closed() {
        let mut persist = Persist::new(Instant::ZERO);
        let at = Instant::from_millis;
        for (time, una, since) in [
            (10, 5_000, 10),
            (20, 5_001, 10),
            (30, 5_999, 10),
            (40, 6_000, 40),
            (50, 6_001, 40),
        ] {
            persist.begin(at(time), StreamOffset(una), 1_000);
            assert_eq!(persist.since(), at(since), "{una}");
        }
    }
}
