//! The figures, one module each.

mod ack_thinning;
mod air_contention;
mod both_ways;
mod calibrations;
mod combined_links;
mod convergence;
mod equation;
mod filter;
mod friendliness;
mod hack;
mod latency;
mod links;
mod mechanisms;
mod media;
mod projection;
mod ranking;
mod receive_buffer;
mod round_trip;
mod rtt_fairness;
mod timing_gain;
mod traffic_change;
mod window;
mod wlan_frequency;
mod wlan_goodput;
mod wlan_preview;

use crate::figure::{Depth, Extent, Figure, Plot};
use crate::measure::Values;
use crate::stats::Estimate;

/// All figures, paper by paper and in its order.
pub const FIGURES: &[Figure] = &[
    wlan_preview::FIGURE,
    air_contention::FIGURE,
    receive_buffer::FIGURE,
    both_ways::FIGURE,
    round_trip::FIGURE,
    timing_gain::FIGURE,
    links::BASELINES,
    wlan_frequency::FIGURE,
    latency::FIGURE,
    links::IDEAL_GAIN,
    ack_thinning::IDEAL,
    wlan_goodput::FIGURE,
    ack_thinning::ACTUAL,
    projection::FIGURE,
    combined_links::FIGURE,
    ranking::FIGURE,
    friendliness::FIGURE,
    equation::FIGURE,
    window::FIGURE,
    convergence::FIGURE,
    rtt_fairness::FIGURE,
    traffic_change::FIGURE,
    hack::analytic::LEGACY,
    hack::analytic::AGGREGATED,
    hack::prototype::GOODPUT,
    hack::prototype::RETRIES,
    hack::prototype::COUNTS,
    hack::prototype::TIMES,
    hack::prototype::CROSS,
    hack::downloads::FIGURE,
    hack::noise::ENVELOPE,
    hack::noise::RATES,
    filter::queue::LENGTH,
    filter::queue::FAIRNESS,
    filter::throughput::PLAIN,
    filter::contention::FIGURE,
    filter::throughput::WINDOWS,
    filter::throughput::MIMD,
    filter::throughput::DELAYED,
    mechanisms::FIGURE,
];

/// The paper's wireless links, with the goodput of UDP over them, Mbit/s (figure 7).
const LINKS: [Link; 4] = [
    Link {
        name: "802.11b",
        preset: "tack-b",
        baseline: 7.0,
        exchange_us: 1_320.0,
    },
    Link {
        name: "802.11g",
        preset: "tack-g",
        baseline: 26.0,
        exchange_us: 338.0,
    },
    Link {
        name: "802.11n",
        preset: "tack-n",
        baseline: 210.0,
        exchange_us: 112.0,
    },
    Link {
        name: "802.11ac",
        preset: "tack-ac",
        baseline: 590.0,
        exchange_us: 88.0,
    },
];

#[derive(Clone, Copy, Debug)]
struct Link {
    name: &'static str,
    preset: &'static str,
    baseline: f64,
    /// Air that a packet of 1,500 bytes sent alone takes with its link acknowledgement, microseconds.
    exchange_us: f64,
}

/// Goodput of the first flow, Mbit/s.
fn mbps(values: &Values) -> f64 {
    values.get("flows.0.goodput_bps") / 1e6
}

/// Share of a link of `rate` Mbit/s that the first flow used: of 1,500 bytes, 1,448 count.
fn utilisation(values: &Values, rate: f64) -> f64 {
    mbps(values) / (rate * 1_448.0 / 1_500.0)
}

/// Seconds behind the figures of the first flow: the run without its warm-up.
fn seconds(values: &Values) -> f64 {
    values.get("flows.0.bytes_delivered") * 8.0 / values.get("flows.0.goodput_bps")
}

/// Acknowledgements of the first flow, per second.
fn ack_frequency(values: &Values) -> f64 {
    values.get("flows.0.acks") / seconds(values)
}

/// Equation (3) of the paper, with the bandwidth in Mbit/s of payload, RTTmin in seconds and the segment size of the
/// simulator: min(bw / (L·MSS), β / RTTmin), β = 4.
fn equation_3(mbps: f64, rtt_min: f64, segments: f64) -> f64 {
    (mbps * 1e6 / 8.0 / (segments * 1_448.0)).min(4.0 / rtt_min)
}

fn plot(svg: tack_plot::Svg, caption: impl Into<String>) -> Plot {
    Plot {
        svg,
        caption: caption.into(),
    }
}

/// Whether differences, one a seed, are above `least`: with the whole interval of their mean in the full form. The quick form has
/// too few seeds for that, goes by the mean, and says so with [`by_means`].
fn is_above(depth: &Depth, differences: Estimate, least: f64) -> bool {
    match depth.extent {
        Extent::Quick => differences.mean > least,
        Extent::Full => differences.low() > least,
    }
}

/// For the words of claims that [`is_above`] checks.
fn by_means(depth: &Depth) -> &'static str {
    depth.pick(" (by means, in the quick form)", "")
}

/// A value that is there in one run or several, as a bar.
fn bar(series: usize, estimate: Estimate, reference: Option<f64>) -> tack_plot::Value {
    tack_plot::Value {
        series,
        value: estimate.mean,
        uncertainty: estimate.half_width,
        reference,
    }
}

/// A value with one decimal; a dash when it is no number.
fn tenths(value: f64) -> String {
    if value.is_nan() {
        return "–".into();
    }
    format!("{value:.1}")
}

/// `13.5 %` with its interval.
fn percent(estimate: Estimate) -> String {
    format!("{estimate} %")
}
