//! The rate at which segments that bring nothing new are answered.
//!
//! A copy of what is here, data outside the window, and data that would open one hole too many each
//! deserve an acknowledgement: the peer missed an acknowledgement, or retransmitted needlessly and
//! learns so (RFC 2883, RFC 3708). A flood of them does not deserve one each (as RFC 5961 §7 has it
//! for challenges).

use core::time::Duration;

use tack_base::Instant;

/// So many are answered at once: the needless retransmissions of an episode, one by one, so that
/// the peer can take it back.
const AT_ONCE: u32 = 64;
/// From then on one in this time, and one for what still waits when it is over.
const INTERVAL: Duration = Duration::from_millis(5);
/// What looks like the lists of a report that lost its option wants no answer. Data may look so,
/// though hardly ever, and whose sender has no answer repeats it: one of them in this time.
const LISTS_INTERVAL: Duration = Duration::from_secs(1);

/// Limits the rate of such answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RepetitionLimit {
    at_once: u32,
    interval: Duration,
    /// When all those given would be due, were there one in each interval.
    used_to: Instant,
}

impl RepetitionLimit {
    /// For data. None given.
    pub(super) const fn of_data() -> Self {
        Self {
            at_once: AT_ONCE,
            interval: INTERVAL,
            used_to: Instant::ZERO,
        }
    }

    /// For what looks like lists. None given.
    pub(super) const fn of_lists() -> Self {
        Self {
            at_once: 1,
            interval: LISTS_INTERVAL,
            used_to: Instant::ZERO,
        }
    }

    /// Takes one.
    ///
    /// # Errors
    /// Says when the next one may be given, if not now.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let used_to = self.used_to.max(now);
        let ahead = self.interval * (self.at_once - 1);
        if used_to > now + ahead {
            return Err(used_to - ahead);
        }
        self.used_to = used_to + self.interval;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_given_at_once_and_then_one_each_interval() {
        let mut limit = RepetitionLimit::of_data();
        let begin = Instant::from_millis(1000);
        assert!((0..AT_ONCE).all(|_| limit.take(begin).is_ok()));
        assert_eq!(limit.take(begin), Err(begin + INTERVAL));
        let later = begin + INTERVAL;
        assert_eq!(limit.take(later), Ok(()));
        assert_eq!(limit.take(later), Err(later + INTERVAL));
        // A quiet moment, and the first ones are given at once again.
        let quiet = later + INTERVAL * AT_ONCE;
        assert!((0..AT_ONCE).all(|_| limit.take(quiet).is_ok()));
        assert!(limit.take(quiet).is_err());
    }

    #[test]
    fn what_looks_like_lists_is_seldom_answered() {
        let mut limit = RepetitionLimit::of_lists();
        let begin = Instant::from_millis(1000);
        assert_eq!(limit.take(begin), Ok(()));
        assert!((0..100).all(|millis| limit.take(begin + Duration::from_millis(millis)).is_err()));
        assert_eq!(limit.take(begin + LISTS_INTERVAL), Ok(()));
    }
}
