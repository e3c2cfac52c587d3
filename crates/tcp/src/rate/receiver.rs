//! Delivery rate measured by the receiver: bytes over the time between acknowledgements (TACK §5.2).
//!
//! It spans at least two acknowledgement intervals: aggregation delivers whole bursts at a time, and one
//! interval may hold one burst more than its share.

use alloc::collections::VecDeque;

use tack_base::{Instant, Rate};

/// Acknowledgement intervals that a measurement spans.
const INTERVALS: usize = 2;

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
    marks: VecDeque<Mark>,
}

impl ArrivalMeter {
    /// `bytes` of new data arrived at `arrived`.
    #[inline]
    pub(crate) fn on_data(&mut self, arrived: Instant, bytes: u64) {
        self.bytes += bytes;
        self.last = Some(arrived);
    }

    /// An acknowledgement leaves: the rate over the last intervals, where two are known.
    pub(crate) fn on_report(&mut self) -> Option<Rate> {
        let at = self.last?;
        if self.marks.back().is_some_and(|mark| mark.at == at) {
            return None;
        }
        let rate = (self.marks.len() == INTERVALS)
            .then(|| self.marks[0])
            .map(|mark| {
                Rate::from_bytes_over(self.bytes - mark.bytes, at.saturating_since(mark.at))
            });
        if self.marks.len() == INTERVALS {
            self.marks.pop_front();
        }
        self.marks.push_back(Mark {
            at,
            bytes: self.bytes,
        });
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_averaged_over_two_intervals() {
        let mut meter = ArrivalMeter::default();
        let mut rates = alloc::vec::Vec::new();
        // 10 kB every 10 ms, but the bursts come in pairs.
        for (ms, bytes) in [
            (0, 10_000),
            (10, 0),
            (20, 20_000),
            (30, 0),
            (40, 20_000),
            (50, 0),
            (60, 20_000),
        ] {
            if bytes > 0 {
                meter.on_data(Instant::from_millis(ms), bytes);
            }
            rates.extend(meter.on_report());
        }
        assert!(!rates.is_empty());
        for rate in rates {
            assert_eq!(rate, Rate::from_bytes_per_sec(1_000_000));
        }
    }
}
