//! Delivery rate measured by the receiver: bytes over the time between acknowledgements (TACK §5.2).
//!
//! It spans at least two acknowledgement intervals, and one round trip: aggregation delivers whole bursts at a
//! time, and reordering moves packets from one interval into the next. Acknowledgements that come densely for a while (on
//! events, while the sender probes) must not make the measurement a short one.

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
    bytes: u64,
}

/// Meters what arrives.
#[derive(Debug, Default)]
pub(crate) struct ArrivalMeter {
    bytes: u64,
    last: Option<Instant>,
    /// Ascending, the newest last; all but the first [`INTERVALS`] from the end are younger than a span.
    marks: VecDeque<Mark>,
}

impl ArrivalMeter {
    /// `bytes` of new data arrived at `arrived`.
    #[inline]
    pub(crate) fn on_data(&mut self, arrived: Instant, bytes: u64) {
        self.bytes += bytes;
        self.last = Some(arrived);
    }

    /// An acknowledgement leaves: the rate over the last `span` and the last intervals, where so much is known.
    pub(crate) fn on_report(&mut self, span: Duration) -> Option<Rate> {
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
            Rate::from_bytes_over(self.bytes - mark.bytes, at.saturating_since(mark.at))
        });
        let dense = self.marks.len() > INTERVALS
            && self
                .marks
                .back()
                .is_some_and(|mark| mark.at + span / MARKS > at);
        if !dense {
            self.marks.push_back(Mark {
                at,
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

    /// The rates measured when an acknowledgement leaves at each of these milliseconds with so many bytes new.
    fn rates(span: u64, arrivals: &[(u64, u64)]) -> Vec<u64> {
        let mut meter = ArrivalMeter::default();
        let mut rates = Vec::new();
        for &(ms, bytes) in arrivals {
            if bytes > 0 {
                meter.on_data(Instant::from_millis(ms), bytes);
            }
            let rate = meter.on_report(Duration::from_millis(span));
            rates.extend(rate.map(Rate::bytes_per_sec));
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
            meter.on_data(Instant::from_micros(micros), 1_000);
            meter.on_report(Duration::from_millis(10));
        }
        assert!(meter.marks.len() <= MARKS as usize + INTERVALS + 1);
    }
}
