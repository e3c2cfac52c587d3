//! Whether a sender waits for the report of what it pushed.
//!
//! What empties the sender's queue is pushed. A sender that has more to send and no room for it
//! waits for the report, and goes on a round trip after it: then a remainder of less than L
//! segments should be reported soon. One whose application writes a message now and then does not
//! wait: the report brings it nothing that the one of the next message would not bring as well. So
//! once several reports were followed by data that came too late to be their consequence, and soon
//! enough to have been reported along, remainders wait for more, until that is not so any more.

use core::time::Duration;

use tack_base::Instant;

/// So many needless reports in a row show that nobody waits.
const NEEDLESS: u8 = 4;
/// What comes later than so many RTTmin after a report is not its consequence.
const ROUND_TRIPS: u32 = 2;

/// What followed the reports of pushed remainders.
#[derive(Debug)]
pub(super) struct Awaited {
    /// When the newest data arrived.
    newest: Instant,
    /// When it was reported, if it was a pushed remainder.
    reported: Option<Instant>,
    needless: u8,
}

impl Default for Awaited {
    fn default() -> Self {
        Self {
            newest: Instant::ZERO,
            reported: None,
            needless: 0,
        }
    }
}

impl Awaited {
    /// The sender is likely to wait for the report of what it pushed.
    pub(super) fn is_likely(&self) -> bool {
        self.needless < NEEDLESS
    }

    /// A pushed remainder is reported.
    pub(super) fn on_report(&mut self, now: Instant) {
        self.reported = Some(now);
    }

    /// Data arrived. A remainder waits for `longest` at most.
    pub(super) fn on_data(&mut self, now: Instant, rtt_min: Duration, longest: Duration) {
        let before = core::mem::replace(&mut self.newest, now);
        let Some(reported) = self.reported.take() else {
            return;
        };
        if now < reported + rtt_min {
            // It had left before. That says nothing about what the sender does now.
            return;
        }
        let is_consequence = now <= reported + rtt_min * ROUND_TRIPS;
        if is_consequence || now > before + longest {
            self.needless = 0;
        } else {
            self.needless = self.needless.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(4);
    const LONGEST: Duration = Duration::from_millis(40);

    /// Messages that arrive this far apart, milliseconds, each reported after one.
    fn messages(awaited: &mut Awaited, begin: u64, apart: u64, count: u64) -> u64 {
        for message in 0..count {
            let at = Instant::from_millis(begin + message * apart);
            awaited.on_data(at, RTT, LONGEST);
            awaited.on_report(at + Duration::from_millis(1));
        }
        begin + count * apart
    }

    #[test]
    fn messages_between_which_the_sender_is_silent_are_not_waited_for() {
        let mut awaited = Awaited::default();
        let next = messages(&mut awaited, 0, 30, 4);
        assert!(awaited.is_likely());
        let next = messages(&mut awaited, next, 30, 1);
        assert!(!awaited.is_likely());
        // The sender goes on a round trip after the report.
        messages(&mut awaited, next - 30 + 5, 5, 1);
        assert!(awaited.is_likely());
    }

    #[test]
    fn messages_too_far_apart_to_be_reported_together_are_reported_soon() {
        let mut awaited = Awaited::default();
        messages(&mut awaited, 0, 50, 20);
        assert!(awaited.is_likely());
        let next = messages(&mut awaited, 2_000, 30, 20);
        assert!(!awaited.is_likely());
        messages(&mut awaited, next + 50, 50, 1);
        assert!(awaited.is_likely());
    }

    #[test]
    fn a_stream_shows_nothing() {
        let mut awaited = Awaited::default();
        messages(&mut awaited, 0, 3, 100);
        assert!(awaited.is_likely());
    }
}
