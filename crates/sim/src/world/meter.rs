//! Measurements of one flow.

use std::time::Duration;

use hdrhistogram::Histogram;
use tack_base::Instant;
use tack_tcp::Stats;

/// Values by count, to two significant digits. Memory grows with the largest value, to 35 kB.
#[derive(Clone, Debug)]
pub(super) struct Percentiles {
    /// Values above zero.
    positive: Histogram<u64>,
    /// How many are zero: most, where the value is what waits for a gap to close.
    zeros: u64,
}

/// Larger values count as this.
const LARGEST: u64 = 1 << 40;

impl Percentiles {
    pub(super) fn new() -> Self {
        Self {
            positive: Histogram::new(2).expect("two significant digits are possible"),
            zeros: 0,
        }
    }

    #[inline]
    pub(super) fn record(&mut self, value: u64) {
        if value == 0 {
            self.zeros += 1;
            return;
        }
        let recorded = self.positive.record(value.min(LARGEST));
        debug_assert!(recorded.is_ok(), "the histogram grows as needed");
    }

    /// The value that this share of all values does not exceed; `None` without values.
    pub(super) fn quantile(&self, share: f64) -> Option<u64> {
        let mut all = self.positive.clone();
        let recorded = all.record_n(0, self.zeros);
        debug_assert!(recorded.is_ok(), "zero is within each histogram");
        (!all.is_empty()).then(|| all.value_at_quantile(share))
    }

    pub(super) fn max(&self) -> u64 {
        self.positive.max()
    }

    pub(super) fn count(&self) -> u64 {
        self.positive.len() + self.zeros
    }

    /// Adds all values of another one.
    pub(super) fn add(&mut self, other: &Self) {
        let added = self.positive.add(&other.positive);
        debug_assert!(added.is_ok(), "the histogram grows as needed");
        self.zeros += other.zeros;
    }

    pub(super) fn clear(&mut self) {
        self.positive.reset();
        self.zeros = 0;
    }
}

/// Figures of one flow. Whatever is counted before the warm-up's end is taken off again there.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    /// Payload bytes delivered to the receiving application.
    pub(super) delivered: u64,
    delivered_at_warmup: u64,
    delivered_at_sample: u64,
    /// One-way delay of data packets, microseconds.
    pub(super) one_way: Percentiles,
    /// Bytes held back at the receiver.
    pub(super) blocked: Percentiles,
    /// Latency of requests, microseconds.
    pub(super) latency: Percentiles,
    /// Counters of the two endpoints at the warm-up's end.
    pub(super) at_warmup: [Stats; 2],
    /// UDP datagrams sent.
    pub(super) datagrams: u64,
    /// UDP acknowledgements sent, and their bytes with UDP header.
    pub(super) datagram_acks: (u64, u64),
    /// When the receiver got the end of the stream.
    pub(super) completed: Option<Instant>,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self {
            delivered: 0,
            delivered_at_warmup: 0,
            delivered_at_sample: 0,
            one_way: Percentiles::new(),
            blocked: Percentiles::new(),
            latency: Percentiles::new(),
            at_warmup: [Stats::default(), Stats::default()],
            datagrams: 0,
            datagram_acks: (0, 0),
            completed: None,
        }
    }

    /// A data packet came after `delay`, and `blocked` bytes wait for something before them.
    #[inline]
    pub(super) fn on_data(&mut self, delay: Duration, blocked: u64) {
        self.one_way.record(tack_base::time::nanos(delay) / 1_000);
        self.blocked.record(blocked);
    }

    /// Measuring begins: forget what was counted.
    pub(super) fn end_warmup(&mut self, stats: [Stats; 2]) {
        self.delivered_at_warmup = self.delivered;
        self.one_way.clear();
        self.blocked.clear();
        self.latency.clear();
        self.datagrams = 0;
        self.datagram_acks = (0, 0);
        self.at_warmup = stats;
    }

    /// Bytes delivered after the warm-up.
    pub(super) fn measured(&self) -> u64 {
        self.delivered - self.delivered_at_warmup
    }

    /// Bytes delivered since the last call.
    pub(super) fn since_sample(&mut self) -> u64 {
        let bytes = self.delivered - self.delivered_at_sample;
        self.delivered_at_sample = self.delivered;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_take_no_more_memory_than_their_values_need() {
        let mut percentiles = Percentiles::new();
        assert_eq!(percentiles.quantile(0.5), None);
        for value in 0..=1_000 {
            percentiles.record(value);
        }
        assert!(percentiles.count() == 1_001 && percentiles.positive.distinct_values() < 1_000);
        assert_eq!(percentiles.quantile(0.5), Some(501));
        percentiles.record(u64::MAX);
        assert!(percentiles.max() >= LARGEST);
        assert!(percentiles.positive.distinct_values() < 5_000);
    }

    #[test]
    fn zeros_count_as_other_values_do() {
        let (mut percentiles, mut other) = (Percentiles::new(), Percentiles::new());
        for value in [0, 0, 0, 7] {
            percentiles.record(value);
        }
        assert_eq!(percentiles.quantile(0.75), Some(0));
        assert_eq!(percentiles.quantile(0.76), Some(7));
        for value in [0, 9] {
            other.record(value);
        }
        percentiles.add(&other);
        assert_eq!((percentiles.count(), percentiles.max()), (6, 9));
        assert_eq!(percentiles.quantile(0.66), Some(0));
        percentiles.clear();
        assert_eq!(percentiles.quantile(0.5), None);
    }
}
