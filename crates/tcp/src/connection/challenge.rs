//! Challenge ACKs (RFC 5961): the answer to segments that a blind attacker could send, and its
//! limit.

use core::time::Duration;

use tack_base::Instant;

/// Most answers in one interval (RFC 5961 §7).
const ANSWERS: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(5);

/// Counts such answers.
#[derive(Debug, Default)]
pub(crate) struct ChallengeLimit {
    since: Instant,
    sent: u32,
}

impl ChallengeLimit {
    /// True when one more may be given now; it counts.
    pub(crate) fn allow(&mut self, now: Instant) -> bool {
        if now.saturating_since(self.since) >= INTERVAL {
            self.since = now;
            self.sent = 0;
        }
        self.sent += 1;
        self.sent <= ANSWERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_in_five_seconds() {
        let mut limit = ChallengeLimit::default();
        let begin = Instant::from_millis(60_000);
        assert!((0..ANSWERS).all(|_| limit.allow(begin)));
        assert!(!limit.allow(begin + INTERVAL / 2));
        assert!(limit.allow(begin + INTERVAL));
    }
}
