//! Readings that figures take from the values of a run.

use crate::measure::Values;

/// Goodput of the first flow, Mbit/s.
pub(in crate::figures) fn mbps(values: &Values) -> f64 {
    values.get("flows.0.goodput_bps") / 1e6
}

/// Goodput of each of so many flows, Mbit/s.
fn shares(values: &Values, flows: usize) -> Vec<f64> {
    (0..flows)
        .map(|flow| values.get(&format!("flows.{flow}.goodput_bps")) / 1e6)
        .collect()
}

/// Goodput of so many flows together, Mbit/s.
pub(in crate::figures) fn all_mbps(values: &Values, flows: usize) -> f64 {
    shares(values, flows).iter().sum()
}

/// Jain's index of the goodput of so many flows, 1/n to 1.
pub(in crate::figures) fn jain(values: &Values, flows: usize) -> f64 {
    let shares = shares(values, flows);
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (flows as f64 * squares)
}

/// 95th percentile of the one-way delay of the segments of all flows together, milliseconds. A flow
/// that starves has few.
pub(in crate::figures) fn delay_p95(values: &Values) -> f64 {
    values.get("owd_p95_us") / 1e3
}

/// Share of a link of `rate` Mbit/s that the first flow used: of 1,500 bytes, 1,448 count.
pub(in crate::figures) fn utilisation(values: &Values, rate: f64) -> f64 {
    mbps(values) / (rate * 1_448.0 / 1_500.0)
}

/// Seconds behind the figures of the first flow: the run without its warm-up.
pub(in crate::figures) fn seconds(values: &Values) -> f64 {
    values.get("flows.0.bytes_delivered") * 8.0 / values.get("flows.0.goodput_bps")
}

/// Acknowledgements of the first flow, per second.
pub(in crate::figures) fn ack_frequency(values: &Values) -> f64 {
    values.get("flows.0.acks") / seconds(values)
}

/// Equation (3) of the paper, with the bandwidth in Mbit/s of payload, RTTmin in seconds and the
/// segment size of the simulator: min(bw / (L·MSS), β / RTTmin), β = 4.
pub(in crate::figures) fn equation_3(mbps: f64, rtt_min: f64, segments: f64) -> f64 {
    (mbps * 1e6 / 8.0 / (segments * 1_448.0)).min(4.0 / rtt_min)
}

/// Share of the time for which buffers limit the first flow: the receiver's, or the sender's, which
/// then has nothing to send.
pub(in crate::figures) fn by_buffers(values: &Values) -> f64 {
    values.get("flows.0.limited_by.rwnd") + values.get("flows.0.limited_by.app")
}
