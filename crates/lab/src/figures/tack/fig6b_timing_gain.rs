//! Figure 6(b): what exact round-trip timing is good for.

use std::ops::RangeInclusive;

use tack_plot::{Group, ValueBars, format_number};

use crate::Values;
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, percent, plot};
use crate::figures::readings::mbps;
use crate::figures::tack::paths::PATHS;
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::WAN;
use crate::stats::Estimate;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "6b",
    title: "Exact round-trip timing keeps delay and losses low",
    about: "One flow with TACK over each of the six paths that the Pantheon calibrated on real \
        ones (also in figure 14), with one-way timing and with sampling. The paper compares its \
        transport before and after on real paths of the Pantheon. It does not say how its BBR \
        probes for the minimum RTT. Both ways are shown: BBR as specified, which pauses every \
        ten seconds and so empties the queue, and BBR without pauses (probe_rtt=mild). Each path \
        has the same weight.",
    plan,
    reduce,
};

const TIMINGS: [&str; 2] = ["tack", "tack:timing=sampled"];

/// Name, controller.
const CONTROLLERS: [(&str, &str); 2] =
    [("BBR without pauses", "bbr:probe_rtt=mild"), ("BBR", "bbr")];

/// The first of figure 14's paths are those that were calibrated on real ones.
fn paths() -> &'static [(&'static str, &'static [&'static str])] {
    &PATHS[..6]
}

/// Those of a constant rate.
const STEADY: std::ops::Range<usize> = 3..6;

fn seeds(depth: &Depth) -> RangeInclusive<u64> {
    depth.seeds(1, 10)
}

/// A run of figure 14, with another timing or controller.
fn cell(path: &[&'static str], congestion: &str, ack: &str) -> Cell {
    let cell = Cell::new(&WAN)
        .set(format!("flow.0.congestion={congestion}"))
        .set(format!("flow.0.ack={ack}"));
    path.iter().fold(cell, |cell, setting| cell.set(*setting))
}

fn plan(depth: &Depth) -> Vec<Point> {
    let mut points = Vec::new();
    for (_, path) in paths().iter().copied() {
        for (_, congestion) in CONTROLLERS {
            for ack in TIMINGS {
                let cell = cell(path, congestion, ack);
                points.extend(seeds(depth).map(|seed| cell.at(seed)));
            }
        }
    }
    points
}

/// The 95th percentile of one-way delay, ms.
fn delay(values: &Values) -> f64 {
    values.get("flows.0.owd_p95_us") / 1e3
}

/// Share of the packets that the path loses.
fn loss(values: &Values) -> f64 {
    (values.get("wired.forward.queue_drops") + values.get("wired.forward.lost"))
        / values.get("wired.forward.packets")
}

/// The sender's smallest round trip, ms.
fn min_rtt(values: &Values) -> f64 {
    values.get("flows.0.min_rtt_us") / 1e3
}

/// What a pause of BBR adds to a sampled round trip at most, percent of it. Four segments are under
/// way then. They arrive as a burst, and one report covers all of them, two spacings after the
/// last: the first one has waited for five spacings.
fn pause(values: &Values) -> f64 {
    const SPACINGS: f64 = 5.0;
    let spacing_ms = 12_000.0 / mbps(values) / 1e3;
    100.0 * SPACINGS * spacing_ms / min_rtt(values)
}

/// The change by one-way timing, percent, a mean over paths of each path's mean over seeds.
struct Change {
    delay: Estimate,
    /// Of the paths that lose anything with sampling.
    loss: Estimate,
    throughput: Estimate,
    /// Each path: delay, and by how much sampling's smallest round trip is larger.
    each: Vec<(f64, f64)>,
    /// Each path: what a pause adds to sampling's smallest round trip at most ([`pause`]), percent
    /// of it.
    pauses: Vec<f64>,
    /// Loss on each path that loses anything with sampling.
    losses: Vec<f64>,
}

/// By how much sampling's smallest round trip is larger at least in the paper's figure 6(a),
/// percent.
const PAPERS_ERROR: f64 = 8.0;

/// A smaller change on a path is not a difference, percent.
const EQUAL: f64 = 1.0;

/// Whether changes go the paper's way: none for the worse, and more for the better than chance
/// would have it (sign test, one-sided, 5 %).
fn is_for_the_better(changes: &[f64]) -> bool {
    // A change for the worse ends it, so that all that count are for the better.
    let better = changes.iter().filter(|change| **change < 0.0).count();
    changes.iter().all(|change| *change <= EQUAL) && 0.5_f64.powi(better as i32) <= 0.05
}

impl Change {
    fn of(depth: &Depth, results: &Results, congestion: &str) -> Self {
        // One-way timing over sampling of each path, less one.
        let ratios = |read: fn(&Values) -> f64| -> Vec<f64> {
            let of = |path: &[&'static str], ack: &str| {
                results
                    .estimate(&cell(path, congestion, ack), seeds(depth), read)
                    .mean
            };
            paths()
                .iter()
                .map(|(_, path)| TIMINGS.map(|ack| of(path, ack)))
                .filter(|[_, sampled]| *sampled != 0.0)
                .map(|[exact, sampled]| 100.0 * (exact / sampled - 1.0))
                .collect()
        };
        let pauses = paths().iter().map(|(_, path)| {
            let cell = cell(path, congestion, TIMINGS[0]);
            results.estimate(&cell, seeds(depth), pause).mean
        });
        let error: Vec<f64> = ratios(min_rtt)
            .into_iter()
            .map(|smaller| 100.0 * (100.0 / (100.0 + smaller) - 1.0))
            .collect();
        let (delays, losses) = (ratios(delay), ratios(loss));
        Self {
            delay: Estimate::of(&delays),
            loss: Estimate::of(&losses),
            throughput: Estimate::of(&ratios(mbps)),
            each: delays.into_iter().zip(error).collect(),
            pauses: pauses.collect(),
            losses,
        }
    }

    fn delays(&self) -> Vec<f64> {
        self.each.iter().map(|(delay, _)| *delay).collect()
    }

    /// Whether sampling is as wrong as in the paper, on each path. (Paths differ too much for an
    /// interval of their mean: by a factor of six.)
    fn is_wrong(&self) -> bool {
        self.each.iter().all(|(_, error)| *error >= PAPERS_ERROR)
    }

    /// Whether sampling is wrong by no more than a pause on steady paths, the timing makes no
    /// difference there, and does no harm on the others.
    fn is_equal_where_right(&self) -> bool {
        let steady = self.each.get(STEADY).unwrap_or_default();
        let pauses = self.pauses.get(STEADY).unwrap_or_default();
        let equal = |((delay, error), pause): (&(f64, f64), &f64)| {
            delay.abs() <= EQUAL && error.abs() <= *pause
        };
        let no_worse = |(delay, _): &(f64, f64)| *delay <= EQUAL;
        !steady.is_empty() && steady.iter().zip(pauses).all(equal) && self.each.iter().all(no_worse)
    }
}

fn claims(depth: &Depth, results: &Results, (name, congestion): (&str, &str)) -> Vec<Claim> {
    let change = Change::of(depth, results, congestion);
    let each = |read: fn(&(f64, f64)) -> f64| {
        let texts = change.each.iter().map(|path| format_number(read(path)));
        texts.collect::<Vec<_>>().join(", ")
    };
    let (delays, errors) = (each(|path| path.0), each(|path| path.1));
    let losses: Vec<_> = change
        .losses
        .iter()
        .map(|loss| format_number(*loss))
        .collect();
    let losses = losses.join(", ");
    let right = change.is_equal_where_right();
    let steady = change.pauses.get(STEADY).unwrap_or_default().iter();
    let pauses = steady
        .map(|pause| format_number(*pause))
        .collect::<Vec<_>>()
        .join(", ");
    let reason = |changes: &str, what: &str| {
        if right {
            format!(
                "With BBR's pauses sampling also finds the minimum RTT where the rate is \
                    constant. On the six paths its minimum is larger by {errors} %. On the last \
                    three, those of a constant rate, it is larger by no more than the burst of a \
                    pause ({pauses} %), and there the timing makes no difference (delay {delays} \
                    %). On the others one-way timing does no harm. The paper does not say how \
                    its BBR probes for the minimum."
            )
        } else {
            format!(
                "The direction is the paper's. The minimum RTT of sampling is larger by {errors} \
                    %. With one-way timing {what} changes by {changes} %, on no path for the \
                    worse, and on more paths for the better than by chance (sign test, 5 %). The \
                    size of the change differs between paths; the paper measured other paths, \
                    with cross traffic."
            )
        }
    };
    vec![
        Claim::new(
            format!(
                "{name}: one-way timing lowers the 95th percentile of one-way delay by at \
                least the paper's share, on average over paths"
            ),
            "20 %",
            format!("{} % change", change.delay),
            change.delay.mean <= -20.0,
        )
        .or(
            reason(&delays, "delay"),
            right || (change.is_wrong() && is_for_the_better(&change.delays())),
        ),
        Claim::new(
            format!(
                "{name}: one-way timing lowers packet loss by at least the paper's share, on \
                average over paths"
            ),
            "54 %",
            format!("{} % change", change.loss),
            change.loss.mean <= -54.0,
        )
        .or(
            reason(&losses, "loss"),
            right || (change.is_wrong() && is_for_the_better(&change.losses)),
        )
        // The paths differ more than seeds do.
        .undecided(change.loss.low() <= -54.0 && change.loss.high() >= -54.0),
        Claim::new(
            format!("{name}: one-way timing costs no throughput (5 % at most, on average)"),
            "no less",
            format!("{} % change", change.throughput),
            change.throughput.mean >= -5.0,
        ),
    ]
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "controller",
            "path",
            "timing",
            "Mbit/s",
            "95th percentile of one-way delay, ms",
            "packets lost, %",
            "RTTmin, ms",
        ]),
        ..Outcome::default()
    };
    let mut groups = Vec::new();
    for (name, congestion) in CONTROLLERS {
        for (path_name, path) in paths().iter().copied() {
            for (timing, ack) in ["one-way", "sampling"].into_iter().zip(TIMINGS) {
                let of = |read: fn(&Values) -> f64| {
                    results.estimate(&cell(path, congestion, ack), seeds(depth), read)
                };
                outcome.numbers.row([
                    name.into(),
                    path_name.into(),
                    timing.into(),
                    of(mbps).to_string(),
                    of(delay).to_string(),
                    of(loss).times(100.0).to_string(),
                    of(min_rtt).to_string(),
                ]);
            }
        }
        let change = Change::of(depth, results, congestion);
        groups.push(Group {
            name: name.into(),
            values: vec![
                bar(0, change.delay.times(-1.0), Some(20.0)),
                bar(1, change.loss.times(-1.0), Some(54.0)),
            ],
        });
        outcome
            .claims
            .extend(claims(depth, results, (name, congestion)));
    }
    let change = Change::of(depth, results, CONTROLLERS[0].1);
    let svg = ValueBars {
        id: "plot-6b".into(),
        title: "Delay and losses that one-way timing saves".into(),
        description: format!(
            "Without pauses of BBR the 95th percentile of one-way delay changes by {}, and loss \
                by {}.",
            percent(change.delay),
            percent(change.loss)
        ),
        label: "lower by, %".into(),
        series: vec![
            ("95th percentile of one-way delay".into(), 1),
            ("packet loss".into(), 0),
        ],
        reference: "paper".into(),
        groups,
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "What one-way timing saves against sampling, over paths calibrated on real ones.",
    ));
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_is_known_where_no_path_contradicts_and_chance_does_not_explain_it() {
        assert!(is_for_the_better(&[-3.0, -4.0, -9.0, -10.0, 0.0, -25.0]));
        assert!(!is_for_the_better(&[-53.0, -78.0, -13.0, -45.0]), "chance");
        assert!(!is_for_the_better(&[4.7, -53.0, -78.0, -13.0, -45.0, -1.0]));
        assert!(!is_for_the_better(&[f64::NAN; 6]));
    }
}
