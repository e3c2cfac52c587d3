//! Delivery rate measured by the receiver: bytes over the time between acknowledgements
//! (TACK §5.2).
//!
//! It spans at least two acknowledgement intervals, and one round trip: aggregation delivers whole
//! bursts at a time, and reordering moves packets from one interval into the next. Acknowledgements
//! that come densely for a while (on events, while the sender probes) must not make the measurement
//! a short one.

use alloc::collections::VecDeque;
use core::time::Duration;

use tack_base::{Instant, Rate};

/// Acknowledgement intervals that a measurement spans at least.
const INTERVALS: usize = 2;
/// Marks kept within a span: denser acknowledgements leave none.
const MARKS: u32 = 8;

/// Arrival state at an acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    /// The newest departure among what had arrived, microseconds on the sender's clock.
    departure: u32,
    bytes: u64,
}

/// What the meter says when an acknowledgement leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ArrivalRate {
    /// How fast data arrived.
    pub(crate) arrived: Rate,
    /// The same, but no faster than it was sent, and over no less than a round trip. What stood in
    /// a queue arrives as a burst once the air is free, and the first segments of a connection at
    /// the speed of the radio: neither is a rate at which the sender could go on.
    pub(crate) sustained: Rate,
}

/// Meters what arrives.
#[derive(Debug, Default)]
pub(crate) struct ArrivalMeter {
    bytes: u64,
    /// Bytes of new data whose departure is unknown, since the last segment whose departure is
    /// known.
    undated: u64,
    last: Option<Instant>,
    /// The newest departure among what arrived, microseconds on the sender's clock.
    departure: u32,
    /// Ascending, the newest last; all but the first [`INTERVALS`] from the end are younger than a
    /// span.
    marks: VecDeque<Mark>,
}

impl ArrivalMeter {
    /// `bytes` of new data arrived at `arrived` that had left at `departure`, microseconds on the
    /// sender's clock.
    #[inline]
    pub(crate) fn on_data(&mut self, arrived: Instant, departure: u32, bytes: u64) {
        self.bytes += bytes + core::mem::take(&mut self.undated);
        // Reordered segments left earlier: only the newest counts.
        if self.last.is_none() || (departure.wrapping_sub(self.departure) as i32) > 0 {
            self.departure = departure;
        }
        self.last = Some(arrived);
    }

    /// `bytes` of new data arrived of which it is not known when they left. They count with the
    /// next segment of which it is.
    #[inline]
    pub(crate) fn on_undated(&mut self, bytes: u64) {
        self.undated += bytes;
    }

    /// An acknowledgement leaves: the rate over the last `span` and the last intervals, where so
    /// much is known.
    pub(crate) fn on_report(&mut self, span: Duration) -> Option<ArrivalRate> {
        let at = self.last?;
        if self.marks.back().is_some_and(|mark| mark.at == at) {
            return None;
        }
        // The oldest mark goes once the next one is old enough to take its place.
        while self.marks.len() > INTERVALS && self.marks[1].at + span <= at {
            self.marks.pop_front();
        }
        let rate = (self.marks.len() >= INTERVALS).then(|| {
            let mark = self.marks[0];
            let (bytes, time) = (self.bytes - mark.bytes, at.saturating_since(mark.at));
            // Wraps with the clock, every 71 minutes; the newest departure never goes back.
            let sending = self.departure.wrapping_sub(mark.departure);
            let sending = Duration::from_micros(sending.into());
            ArrivalRate {
                arrived: Rate::from_bytes_over(bytes, time),
                sustained: Rate::from_bytes_over(bytes, time.max(sending).max(span)),
            }
        });
        let dense = self.marks.len() > INTERVALS
            && self
                .marks
                .back()
                .is_some_and(|mark| mark.at + span / MARKS > at);
        if !dense {
            self.marks.push_back(Mark {
                at,
                departure: self.departure,
                bytes: self.bytes,
            });
        }
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// The rates measured when an acknowledgement leaves at each of these milliseconds with so many
    /// bytes new.
    fn rates(span: u64, arrivals: &[(u64, u64)]) -> Vec<u64> {
        let mut meter = ArrivalMeter::default();
        let mut rates = Vec::new();
        for &(ms, bytes) in arrivals {
            if bytes > 0 {
                meter.on_data(Instant::from_millis(ms), ms as u32 * 1_000, bytes);
            }
            let rate = meter.on_report(Duration::from_millis(span));
            rates.extend(rate.map(|rate| rate.arrived.bytes_per_sec()));
        }
        rates
    }

    #[test]
    fn bursts_are_averaged_over_two_intervals() {
        // 10 kB every 10 ms, but the bursts come in pairs.
        let arrivals = [
            (0, 10_000),
            (10, 0),
            (20, 20_000),
            (30, 0),
            (40, 20_000),
            (50, 0),
            (60, 20_000),
        ];
        let rates = rates(10, &arrivals);
        assert!(!rates.is_empty());
        assert!(rates.iter().all(|rate| *rate == 1_000_000), "{rates:?}");
    }

    #[test]
    fn dense_acknowledgements_do_not_shorten_the_span() {
        // 40 kB at once every 40 ms, then each of them in eight parts a millisecond apart.
        let mut arrivals: Vec<_> = (0..5).map(|n| (n * 40, 40_000)).collect();
        for burst in 5..10 {
            arrivals.extend((0..8).map(|part| (burst * 40 + part, 5_000)));
        }
        let rates = rates(40, &arrivals);
        assert!(rates.len() > 30);
        // Five million a second come within a burst.
        assert!(rates.iter().all(|rate| *rate < 1_500_000), "{rates:?}");
    }

    #[test]
    fn marks_are_bounded() {
        let mut meter = ArrivalMeter::default();
        for micros in 0..100_000 {
            meter.on_data(Instant::from_micros(micros), micros as u32, 1_000);
            meter.on_report(Duration::from_millis(10));
        }
        assert!(meter.marks.len() <= MARKS as usize + INTERVALS + 1);
    }

    /// A path takes the stamp off each second segment, and off all segments for a while.
    #[test]
    fn segments_without_a_departure_count() {
        let mut meter = ArrivalMeter::default();
        let mut rates = Vec::new();
        for ms in 0..1_000_u64 {
            let at = Instant::from_millis(ms);
            if ms.is_multiple_of(2) || (500..600).contains(&ms) {
                meter.on_undated(1_000);
            } else {
                meter.on_data(at, ms as u32 * 1_000, 1_000);
            }
            if ms % 10 == 9 {
                let rate = meter.on_report(Duration::from_millis(50));
                rates.extend(rate.filter(|_| ms > 200));
            }
        }
        assert!(rates.len() > 60);
        for rate in rates {
            let rates = [rate.arrived, rate.sustained].map(Rate::bytes_per_sec);
            assert_eq!(rates, [1_000_000; 2]);
        }
    }

    /// The fastest rate said to be sustained, of segments of 1,000 bytes that left and arrived at
    /// these microseconds; each second one is reported, over spans of 100 ms.
    fn fastest(segments: impl Iterator<Item = (u32, u64)>) -> u64 {
        let mut meter = ArrivalMeter::default();
        let mut fastest = 0;
        for (number, (left, arrived)) in segments.enumerate() {
            meter.on_data(Instant::from_micros(arrived), left, 1_000);
            if number % 2 == 1
                && let Some(rate) = meter.on_report(Duration::from_millis(100))
            {
                fastest = fastest.max(rate.sustained.bytes_per_sec());
            }
        }
        fastest
    }

    #[test]
    fn first_segments_that_come_as_a_burst_sustain_no_more_than_a_round_trip_of_them() {
        // Ten segments sent at once, which one transmission on the radio brings within a
        // millisecond.
        let burst = (0..10).map(|number| (0, 1_000 + u64::from(number as u32) * 100));
        // 8 of them after the first report, in 100 ms; as a burst they would make ten million a
        // second.
        assert!(fastest(burst) <= 80_000);
    }

    #[test]
    fn a_burst_out_of_a_queue_sustains_what_was_sent() {
        // A million bytes a second for a second, of which what leaves from 0.4 s to 0.8 s has to
        // wait for the air.
        let waited = (0..1_000).map(|number| {
            let left = number * 1_000;
            let arrived = match left {
                400_000..800_000 => 800_000 + (left - 400_000) / 100,
                _ => left,
            };
            (left, u64::from(arrived))
        });
        let fastest = fastest(waited);
        assert!((1_000_000..1_100_000).contains(&fastest), "{fastest}");
    }

    #[test]
    fn the_clock_of_the_sender_may_wrap() {
        let wrapping = (0..1_000_u32).map(|number| {
            let left = (number * 1_000).wrapping_sub(500_000);
            (left, u64::from(number) * 1_000)
        });
        let fastest = fastest(wrapping);
        assert!((1_000_000..1_100_000).contains(&fastest), "{fastest}");
    }
}
