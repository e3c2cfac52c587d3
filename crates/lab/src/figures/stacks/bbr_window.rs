//! BBR's window where acknowledgements are far apart: it makes the rate that it is made of.

use std::ops::RangeInclusive;

use tack_stats::Finding;

use super::legacy::{GOODPUT, Pair};
use super::measured::{Measured, goodput, median_window, value};
use super::ways::Route;
use crate::claim::Claim;
use crate::measure::Values;

/// Time between acknowledgements where they are delivered each 200 ms, seconds.
const BETWEEN: f64 = 0.2;

/// How BBR counts what its window is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// Bytes, as this stack does.
    Bytes,
    /// Whole packets, as Linux does (`bbr_bdp` and `bbr_ack_aggregation_cwnd` in
    /// net/ipv4/tcp_bbr.c): the bandwidth-delay product is rounded up, and what comes at once of
    /// 0.1 s down. The rate is measured over a little more than [`BETWEEN`] (159.98 packets a
    /// second for 32, by `ss`), so that a whole number of packets becomes one less.
    Packets,
}

/// Whether BBR keeps a window of so many segments once it has it, where acknowledgements come each
/// [`BETWEEN`] seconds: twice the rate times RTTmin, what comes at once of 0.1 s, three bursts of
/// two segments, all rounded up to an even number. The rate is that of probing, with two segments
/// more.
pub(super) fn is_kept(counts: Counts, window: u32, rtt_min: f64) -> bool {
    let rate = f64::from(window + 2) / BETWEEN;
    let (product, aggregated) = (2.0 * rate * rtt_min, 0.1 * rate);
    let wanted = match counts {
        Counts::Bytes => product + aggregated + 6.0,
        Counts::Packets => product.ceil() + (aggregated.ceil() - 1.0) + 6.0,
    };
    (wanted / 2.0).ceil() * 2.0 == f64::from(window)
}

/// The smallest and the largest of the windows that BBR keeps where RTTmin is within these bounds,
/// seconds.
pub(super) fn kept_windows(counts: Counts, [least, most]: [f64; 2]) -> RangeInclusive<f64> {
    let kept = |rtt_min| {
        let all = (2..200).step_by(2);
        all.filter(move |window| is_kept(counts, *window, rtt_min))
    };
    let smallest = kept(least).next().map_or(f64::NAN, f64::from);
    let largest = kept(most).next_back().map_or(f64::NAN, f64::from);
    smallest..=largest
}

/// The same of a run, from the RTTmin that BBR had in it.
fn kept_in(counts: Counts, values: &Values) -> RangeInclusive<f64> {
    let bounds = [value::BBR_RTT_LOW, value::BBR_RTT_HIGH];
    kept_windows(counts, bounds.map(|name| values.get(name) / 1e3))
}

/// By how many segments the window of a run is below or above all those that BBR keeps at the
/// RTTmin of that run.
fn outside_kept(counts: Counts, values: &Values) -> f64 {
    /// Error of the window in segments. Two programs count the bytes and the packets, and begin and
    /// end at slightly different times.
    const ROUNDED: f64 = 0.5;
    let (window, kept) = (median_window(values), kept_in(counts, values));
    let beyond = [kept.start() - window, window - kept.end()];
    if beyond.iter().any(|beyond| beyond.is_nan()) {
        return f64::NAN;
    }
    (beyond[0].max(beyond[1]) - ROUNDED).max(0.0)
}

/// Whatever the difference is, BBR's window makes it: each of its segments delivers as much on both
/// sides, and the window of each run is among those that BBR keeps at the RTTmin of that run, as
/// its stack counts. The window limits the rate that it is made of, and is rounded, so there are
/// several: which one it stays at depends on RTTmin and on where it came from.
pub(super) fn by_window(measured: &Measured<'_>, pair: &Pair, route: Route) -> Claim {
    let ways = pair.joined;
    let of_segment = |values: &Values| goodput(values) / median_window(values);
    let each = ways.map(|way| measured.of(route, way, of_segment).times(1e-3));
    let apart = measured.change(route, ways, of_segment);
    let sides = [(ways[0], Counts::Bytes), (ways[1], Counts::Packets)];
    let told = sides.map(|(way, counts)| {
        let kept = |values: &Values| kept_in(counts, values);
        format!(
            "{} segments at an RTTmin of {} to {} ms, where it keeps {} to {}",
            measured.of(route, way, median_window),
            measured.get(route, way, value::BBR_RTT_LOW),
            measured.get(route, way, value::BBR_RTT_HIGH),
            measured.of(route, way, |values| *kept(values).start()),
            measured.of(route, way, |values| *kept(values).end()),
        )
    });
    let outside = |way, counts| measured.of(route, way, |values| outside_kept(counts, values));
    let [ours, kernel] = sides.map(|(way, counts)| outside(way, counts));
    let in_bytes = outside(ways[1], Counts::Bytes);
    // No run may be outside.
    let finding = Finding::all([ours, kernel].map(|outside| Finding::from(outside.mean <= 0.0)))
        .and(apart.is_within(-GOODPUT..=GOODPUT));
    Claim::new(
        format!(
            "{}, {}: BBR's window makes the goodput. Each of its segments delivers as much with both stacks, to {GOODPUT} %, and the window of each run \
                is among those that BBR keeps at the RTTmin of that run, if Linux counts whole packets and this stack bytes",
            route.name,
            pair.called(ways)
        ),
        "–",
        format!(
            "{}; the kernel's {}; {} against {} kbit/s for each segment ({apart} %); windows are outside by {ours} and {kernel} segments, and the \
                kernel's would be by {in_bytes} if it counted bytes",
            told[0], told[1], each[0], each[1],
        ),
        measured.judged(&[route], &ways, finding),
    )
}
