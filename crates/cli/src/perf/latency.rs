//! How long requests and their responses took.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Significant digits of a percentile: within one per cent, in 30 KiB a connection.
const DIGITS: u8 = 2;
/// Longest transaction that is told apart from longer ones, nanoseconds: a minute.
const LONGEST: u64 = 60_000_000_000;

/// How long transactions took, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) transactions: u64,
    pub(crate) mean_us: f64,
    pub(crate) min_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) max_us: f64,
}

/// Times of transactions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Times(Histogram<u64>);

impl Times {
    pub(crate) fn new() -> Self {
        let times = Histogram::new_with_bounds(1, LONGEST, DIGITS);
        Self(times.expect("the bounds are valid"))
    }

    pub(crate) fn add(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(nanos.max(1));
    }

    /// Those that were added after `before`.
    pub(crate) fn since(&self, before: Option<&Self>) -> Self {
        let mut times = self.clone();
        if let Some(before) = before {
            // Of the same bounds, and part of these.
            let _ = times.0.subtract(&before.0);
        }
        times
    }

    /// With all of these, too.
    pub(crate) fn merge(&mut self, others: &Self) {
        // Of the same bounds.
        let _ = self.0.add(&others.0);
    }

    pub(crate) fn latency(&self) -> Latency {
        if self.0.is_empty() {
            return Latency::default();
        }
        let micros = |nanos: u64| nanos as f64 / 1e3;
        Latency {
            transactions: self.0.len(),
            mean_us: self.0.mean() / 1e3,
            min_us: micros(self.0.min()),
            p50_us: micros(self.0.value_at_quantile(0.5)),
            p90_us: micros(self.0.value_at_quantile(0.9)),
            p99_us: micros(self.0.value_at_quantile(0.99)),
            p999_us: micros(self.0.value_at_quantile(0.999)),
            max_us: micros(self.0.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_times() {
        let mut times = Times::new();
        assert_eq!(times.latency(), Latency::default());
        for micros in 1..=1000 {
            times.add(Duration::from_micros(micros));
        }
        let mut more = Times::new();
        more.add(Duration::from_secs(3600));
        times.merge(&more);
        let latency = times.latency();
        assert_eq!(latency.transactions, 1001);
        assert_eq!(latency.min_us, 1.0);
        let near = |value: f64, expected: f64| (value - expected).abs() < expected / 100.0;
        assert!(near(latency.p50_us, 500.0), "{latency:?}");
        assert!(near(latency.p99_us, 990.0), "{latency:?}");
        // What lasted longer counts as the longest.
        assert!(near(latency.max_us, 60e6), "{latency:?}");
    }
}
