//! Figure 6(b): what exact round-trip timing is good for.

use std::ops::RangeInclusive;

use tack_plot::{Group, ValueBars, format_number};

use super::ranking::paths::PATHS;
use super::{bar, mbps, percent, plot};
use crate::Values;
use crate::claim::Claim;
use crate::figure::{Depth, Extent, Figure, Outcome, Table};
use crate::point::{Cell, Point};
use crate::scenarios::WAN;
use crate::stats::Estimate;
use crate::store::Results;

pub(super) const FIGURE: Figure = Figure {
    id: "6b",
    title: "Exact round-trip timing keeps delay and losses low",
    about: "One flow acknowledged by TACK over each path that the Pantheon calibrated on real ones (those of figure 14), with one-way \
            timing and with sampling. The paper compares its transport before and after on real paths of the Pantheon, and leaves open \
            how its BBR looks for the smallest round trip. Both ways are shown: BBR as it is, which pauses every ten \
            seconds and so empties the queue, and BBR without pauses (probe_rtt=mild). Each path weighs the same.",
    plan,
    reduce,
};

const TIMINGS: [&str; 2] = ["tack", "tack:timing=sampled"];

/// Name, controller.
const CONTROLLERS: [(&str, &str); 2] =
    [("BBR without pauses", "bbr:probe_rtt=mild"), ("BBR", "bbr")];

/// Paths of the quick form: those of a fixed rate and few packets.
const QUICK: &str = "12 Mbit/s, 30 ms";

fn paths(depth: &Depth) -> Vec<(&'static str, &'static [&'static str])> {
    let wanted = |name: &str| {
        depth.extent == Extent::Full || name.starts_with(QUICK) || name.contains("Poisson")
    };
    PATHS.into_iter().filter(|(name, _)| wanted(name)).collect()
}

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
    for (_, path) in paths(depth) {
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

/// What one-way timing changes, percent, a mean over paths of each path's mean over seeds.
struct Change {
    delay: Estimate,
    /// Losses of all paths together: most paths have hardly any.
    loss: f64,
    throughput: Estimate,
    /// By how much sampling's smallest round trip is larger.
    error: Estimate,
}

impl Change {
    fn of(depth: &Depth, results: &Results, congestion: &str) -> Self {
        let mean = |path: &[&'static str], ack: &str, read: fn(&Values) -> f64| {
            results
                .estimate(&cell(path, congestion, ack), seeds(depth), read)
                .mean
        };
        let over_paths = |read: fn(&Values) -> f64, from: usize| {
            let ratios = paths(depth).into_iter().map(|(_, path)| {
                let [exact, sampled] = TIMINGS.map(|ack| mean(path, ack, read));
                let pair = [exact, sampled];
                100.0 * (pair[1 - from] / pair[from] - 1.0)
            });
            Estimate::of(&ratios.collect::<Vec<_>>())
        };
        let losses = TIMINGS.map(|ack| -> f64 {
            let all = paths(depth).into_iter();
            all.map(|(_, path)| mean(path, ack, loss)).sum()
        });
        Self {
            delay: over_paths(delay, 1),
            loss: 100.0 * (losses[0] / losses[1] - 1.0),
            throughput: over_paths(mbps, 1),
            error: over_paths(min_rtt, 0),
        }
    }
}

fn claims(depth: &Depth, results: &Results, (name, congestion): (&str, &str)) -> Vec<Claim> {
    let change = Change::of(depth, results, congestion);
    // What a wrong minimum costs depends on how wrong it is.
    let exact_anyway = change.error.high() <= 5.0;
    let no_error = format!(
        "Sampling finds the smallest round trip as well: it is {} % larger than with one-way timing, because the pauses empty the queue and \
         the oldest segment of a report then is one of four. Where both have the same minimum, the timing changes nothing.",
        change.error
    );
    let wrong = format!(
        "Sampling's smallest round trip is {} % larger here. How much of that becomes delay and loss depends on the buffer, which is \
         between a tenth of a bandwidth-delay product and several on these paths.",
        change.error
    );
    let is_wrong = change.error.low() >= 8.0;
    let (reason, known) = if exact_anyway {
        (
            no_error,
            change.delay.low() <= 0.0 && change.delay.high() >= -5.0,
        )
    } else {
        (
            wrong,
            is_wrong && change.delay.high() < 0.0 && change.loss < 0.0,
        )
    };
    vec![
        Claim::new(
            format!("{name}: one-way timing lowers the 95th percentile of one-way delay by at least the paper's part, on average"),
            "20 %",
            format!("{} % change", change.delay),
            change.delay.mean <= -20.0,
        )
        .or(reason.clone(), known),
        Claim::new(
            format!("{name}: one-way timing lowers packet loss by at least the paper's part, over all paths"),
            "54 %",
            format!("{} % change", format_number(change.loss)),
            change.loss <= -54.0,
        )
        .or(reason, known),
        Claim::new(
            format!("{name}: without sacrificing throughput (5 % at most, on average)"),
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
        for (path_name, path) in paths(depth) {
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
        let loss = Estimate::of(&[-change.loss]);
        groups.push(Group {
            name: name.into(),
            values: vec![
                bar(0, change.delay.times(-1.0), Some(20.0)),
                bar(1, loss, Some(54.0)),
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
            "BBR without pauses has its 95th percentile of one-way delay changed by {}, and its losses by {} %.",
            percent(change.delay),
            format_number(change.loss)
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
