//! How much is measured, and the figure of several measurements.

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    pub(crate) rounds: usize,
    /// Seconds of a measurement of throughput.
    pub(crate) seconds: u64,
    /// Exchanges of a measurement of latency.
    pub(crate) exchanges: usize,
    /// Concurrent connections.
    pub(crate) connections: usize,
    /// MiB of a file over Wi-Fi.
    pub(crate) mebibytes: usize,
}

/// The median; of an even number of values the upper one of the middle.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
