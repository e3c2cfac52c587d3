//! Times and sizes that nothing gets through: blackouts, suspensions, MTU black holes.

use std::time::Duration;

use tack_base::Instant;
use tack_base::random::RandomStream;
use tack_base::time::nanos;

/// A time in which every packet that enters the direction is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blackout {
    /// When it begins.
    pub start: Instant,
    /// How long it lasts.
    pub duration: Duration,
}

impl Blackout {
    /// True when a packet that enters at `now` is lost.
    pub fn covers(&self, now: Instant) -> bool {
        self.start <= now && now < self.start + self.duration
    }
}

/// Settings of a direction that stops delivering again and again, and then delivers what it held in
/// one burst, in order: what roaming, scanning and power saving do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspensionConfig {
    /// When the first suspension begins.
    pub start: Instant,
    /// From the beginning of one to the beginning of the next.
    pub period: Duration,
    /// Shortest suspension.
    pub shortest: Duration,
    /// Longest suspension; the lengths are uniformly distributed. Must be shorter than the period.
    pub longest: Duration,
}

/// Suspensions of one direction.
#[derive(Clone, Debug)]
pub struct Suspension {
    config: SuspensionConfig,
    seed: u64,
    direction: u64,
    /// Length of the suspension looked at last, by its number.
    last: Option<(u64, Duration)>,
}

impl Suspension {
    /// Suspensions of direction `direction`.
    pub fn new(config: SuspensionConfig, seed: u64, direction: u64) -> Self {
        Self {
            config,
            seed,
            direction,
            last: None,
        }
    }

    /// When a packet that would be delivered at `at` is delivered.
    pub fn hold(&mut self, at: Instant) -> Instant {
        if at < self.config.start {
            return at;
        }
        let period = nanos(self.config.period);
        let number = (at.as_nanos() - self.config.start.as_nanos()) / period;
        let begin = self.config.start + Duration::from_nanos(number * period);
        at.max(begin + self.length_of(number))
    }

    /// Every suspension has a stream of its own: packets may ask about them in any order.
    fn length_of(&mut self, number: u64) -> Duration {
        if let Some((known, length)) = self.last
            && known == number
        {
            return length;
        }
        let spread = nanos(self.config.longest.saturating_sub(self.config.shortest));
        let mut stream = RandomStream::new(self.seed, "suspension", number << 1 | self.direction);
        let length = self.config.shortest + Duration::from_nanos(stream.below(spread + 1));
        self.last = Some((number, length));
        length
    }
}
