//! Round trips from relative one-way delays (TACK §4.4).
//!
//! The receiver knows how long each segment took, up to the unknown offset between the clocks,
//! which cancels when segments are compared. Of those since the last acknowledgement it names one,
//! the one that took least, and how long ago that arrived. The sender subtracts: what remains is
//! the round trip of that segment as if it had been acknowledged at once. The clocks only ever
//! measure short intervals, so their drift does not add up.

use alloc::vec::Vec;
use core::time::Duration;

use tack_base::Instant;
use tack_wire::tack::TimingEcho;

use super::super::kind::Timing;

/// Most segments remembered between two acknowledgements; when more come, every other one is
/// forgotten.
const MAX_SAMPLES: usize = 128;

#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Smoothed relative delay, microseconds.
    delay: i64,
    departure: u32,
    arrived: Instant,
}

/// The receiver's half.
#[derive(Debug)]
pub(crate) struct OneWayDelays {
    timing: Timing,
    /// Relative delay of the first segment: all others are compared to it.
    origin: Option<u32>,
    /// Smoothed relative delay in 1/8 microseconds, the least of all, and the most since it was
    /// asked for.
    smoothed: i64,
    least: i64,
    most: i64,
    /// The sample to echo, where one is enough.
    chosen: Option<Sample>,
    /// All of them, where a percentile is asked for.
    samples: Vec<Sample>,
    /// Of how many segments one is sampled.
    stride: u32,
    skipped: u32,
}

impl OneWayDelays {
    /// Nothing measured yet.
    pub(crate) fn new(timing: Timing) -> Self {
        Self {
            timing,
            origin: None,
            smoothed: 0,
            least: i64::MAX,
            most: i64::MIN,
            chosen: None,
            samples: Vec::new(),
            stride: 1,
            skipped: 0,
        }
    }

    /// A segment that left at `departure` (microseconds on the sender's clock) arrived.
    pub(crate) fn on_segment(&mut self, arrived: Instant, departure: u32) {
        let raw = (arrived.as_micros() as u32).wrapping_sub(departure);
        let origin = *self.origin.get_or_insert(raw);
        let relative = i64::from(raw.wrapping_sub(origin) as i32);
        if self.chosen.is_none() && self.smoothed == 0 {
            self.smoothed = relative * 8;
        }
        self.smoothed += relative - self.smoothed / 8;
        self.least = self.least.min(self.smoothed);
        self.most = self.most.max(self.smoothed);
        let sample = Sample {
            delay: self.smoothed,
            departure,
            arrived,
        };
        match self.timing {
            Timing::Sampled => {
                self.chosen.get_or_insert(sample);
            }
            Timing::OneWay { percentile: 0 } => {
                if self
                    .chosen
                    .is_none_or(|chosen| sample.delay <= chosen.delay)
                {
                    self.chosen = Some(sample);
                }
            }
            Timing::OneWay { .. } => self.keep(sample),
        }
    }

    /// By how much segments took longer at most since this was last asked for than the fastest one
    /// did: the time in queues on their way. Clocks that drift apart add to it.
    pub(crate) fn take_queueing(&mut self) -> Duration {
        let most = core::mem::replace(&mut self.most, i64::MIN).max(self.smoothed);
        let longer = most.checked_sub(self.least).unwrap_or(0);
        Duration::from_micros(u64::try_from(longer / 8).unwrap_or(0))
    }

    fn keep(&mut self, sample: Sample) {
        self.skipped += 1;
        if self.skipped < self.stride {
            return;
        }
        self.skipped = 0;
        if self.samples.len() == MAX_SAMPLES {
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.stride *= 2;
        }
        self.samples.push(sample);
    }

    /// The echo for an acknowledgement that leaves now.
    pub(crate) fn take_echo(&mut self, now: Instant) -> Option<TimingEcho> {
        let sample = match self.timing {
            Timing::OneWay { percentile: 1.. } if !self.samples.is_empty() => {
                let Timing::OneWay { percentile } = self.timing else {
                    return None;
                };
                let index = (self.samples.len() - 1) * usize::from(percentile) / 100;
                self.samples.sort_by_key(|sample| sample.delay);
                let sample = self.samples[index];
                self.samples.clear();
                self.stride = 1;
                self.skipped = 0;
                Some(sample)
            }
            _ => self.chosen.take(),
        }?;
        let held = now.saturating_since(sample.arrived);
        let delay = match self.timing {
            Timing::Sampled => 0,
            Timing::OneWay { .. } => u32::try_from(held.as_micros()).ok()?,
        };
        Some(TimingEcho {
            departure: sample.departure,
            delay,
        })
    }
}

/// Longest round trip that can be told from an impossible one.
const LONGEST: u32 = 1 << 30;

/// The sender's half: the round trip of the segment that `echo` names, in an acknowledgement that
/// arrived at `arrived`. `None` for what cannot be.
pub(crate) fn round_trip(arrived: Instant, echo: TimingEcho) -> Option<Duration> {
    let since = (arrived.as_micros() as u32).wrapping_sub(echo.departure);
    let round_trip = since.checked_sub(echo.delay)?;
    (since < LONGEST && round_trip > 0).then(|| Duration::from_micros(round_trip.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn the_fastest_segment_is_named_and_the_holding_time_taken_off() {
        let mut delays = OneWayDelays::new(Timing::OneWay { percentile: 0 });
        // The receiver's clock is an hour ahead: that cancels.
        let offset = 3_600_000_000;
        for (departure, took) in [
            (0, 50_000),
            (1_000, 52_000),
            (2_000, 40_000),
            (3_000, 60_000),
        ] {
            delays.on_segment(at(offset + departure + took), departure as u32);
        }
        let echo = delays
            .take_echo(at(offset + 70_000))
            .expect("segments arrived");
        assert_eq!(echo.departure, 2_000);
        assert_eq!(echo.delay, 70_000 - 42_000);
        // 30 ms back: the round trip is 40 + 30, whatever the acknowledgement waited.
        assert_eq!(
            round_trip(at(70_000 + 30_000), echo),
            Some(Duration::from_micros(70_000))
        );
        assert_eq!(delays.take_echo(at(offset + 80_000)), None);
    }

    #[test]
    fn a_queue_shows_as_delay_beyond_the_least() {
        let mut delays = OneWayDelays::new(Timing::OneWay { percentile: 0 });
        assert_eq!(delays.take_queueing(), Duration::ZERO);
        // The sender's clock is ahead by ten seconds; a queue of 30 ms builds up, and drains.
        let mut left = 0;
        let mut pass = |delays: &mut OneWayDelays, took: u64| {
            for _ in 0..100 {
                left += 1_000;
                delays.on_segment(at(left + took), (left as u32).wrapping_add(10_000_000));
            }
        };
        pass(&mut delays, 50_000);
        pass(&mut delays, 80_000);
        pass(&mut delays, 50_000);
        let longest = delays.take_queueing().as_micros();
        assert!((29_900..=30_000).contains(&longest), "{longest}");
        pass(&mut delays, 50_000);
        let now = delays.take_queueing().as_micros();
        assert!(now < 100, "{now}");
    }

    #[test]
    fn percentiles_fall_out_of_the_same_machinery() {
        for (percentile, expected) in [(50, 50), (100, 99)] {
            let mut delays = OneWayDelays::new(Timing::OneWay { percentile });
            for i in 0..100_u64 {
                // Slowly growing delay: smoothing keeps the order.
                delays.on_segment(at(1_000_000 + i * 1_000 + i * 100), (i * 1_000) as u32);
            }
            let echo = delays.take_echo(at(2_000_000)).expect("segments arrived");
            assert!(
                echo.departure.abs_diff(expected * 1_000) <= 1_000,
                "{percentile}: {}",
                echo.departure
            );
        }
    }

    #[test]
    fn stamps_wrap_and_lies_are_refused() {
        let echo = TimingEcho {
            departure: u32::MAX - 999,
            delay: 500,
        };
        assert_eq!(
            round_trip(at((1 << 32) + 9_000), echo),
            Some(Duration::from_micros(9_500))
        );
        assert_eq!(
            round_trip(
                at(1_000),
                TimingEcho {
                    departure: 0,
                    delay: 5_000
                }
            ),
            None
        );
        assert_eq!(
            round_trip(
                at(1_000),
                TimingEcho {
                    departure: 5_000,
                    delay: 0
                }
            ),
            None
        );
    }
}
