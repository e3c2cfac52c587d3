//! When segments of the subject left, by its own clock: on a loaded machine the player sees them
//! late.

use std::time::Duration;

use tack_base::Instant;

/// When a segment of the subject left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    /// When the player saw it.
    pub(super) seen: Instant,
    /// What its timestamp says. Both subjects have ticks of a millisecond.
    pub(super) stamp: Option<u32>,
}

impl Departure {
    /// How much later than `earlier` it left. The sender's clock knows nothing of how late the
    /// player gets its turn.
    pub(super) fn since(self, earlier: Self) -> Duration {
        match (self.stamp, earlier.stamp) {
            (Some(now), Some(then)) => Duration::from_millis(now.wrapping_sub(then).into()),
            _ => self.seen.saturating_since(earlier.seen),
        }
    }
}

/// The subject's clock, which its timestamps show, beside the player's.
#[derive(Debug, Default)]
pub(super) struct SubjectClock {
    /// By how many milliseconds, modulo 2^32, the player's clock is ahead of timestamps: the least
    /// of all segments, of which one was seen soonest.
    ahead: Option<u32>,
}

impl SubjectClock {
    /// The player saw a segment.
    pub(super) fn learn(&mut self, departure: Departure) {
        let Some(ahead) = Self::ahead_of(departure) else {
            return;
        };
        // Either may have wrapped: what is less is at most half of the numbers behind.
        if self
            .ahead
            .is_none_or(|least| ahead.wrapping_sub(least) > u32::MAX / 2)
        {
            self.ahead = Some(ahead);
        }
    }

    /// When a segment that was learnt of left, by the player's clock: as much sooner than it was
    /// seen as it was seen later than the one that was seen soonest. Without timestamps: when it
    /// was seen.
    pub(super) fn left(&self, departure: Departure) -> Instant {
        let late = match (Self::ahead_of(departure), self.ahead) {
            (Some(ahead), Some(least)) => ahead.wrapping_sub(least),
            _ => 0,
        };
        departure.seen - Duration::from_millis(late.into())
    }

    fn ahead_of(departure: Departure) -> Option<u32> {
        let seen = departure.seen.as_millis() as u32;
        departure.stamp.map(|stamp| seen.wrapping_sub(stamp))
    }
}

#[test]
fn what_is_seen_late_left_when_its_timestamp_says() {
    // Stamps wrap between the first two.
    let first = u32::MAX - 5;
    let departures = [(100, 0), (130, 10), (400, 200), (305, 205)].map(|(seen, later)| Departure {
        seen: Instant::from_millis(seen),
        stamp: Some(first.wrapping_add(later)),
    });
    let mut clock = SubjectClock::default();
    for departure in departures {
        clock.learn(departure);
    }
    let left = departures.map(|departure| clock.left(departure).as_millis());
    assert_eq!(left, [100, 110, 300, 305]);
    let unstamped = Departure {
        stamp: None,
        ..departures[2]
    };
    assert_eq!(clock.left(unstamped), unstamped.seen);
}
