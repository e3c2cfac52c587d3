//! Figure 6(b): what exact round-trip timing is good for.

mod defaults;
mod runs;

use tack_plot::{Group, ValueBars};
use tack_stats::{Estimate, Finding};

use self::runs::{
    CONTROLLERS, Conditions, LONGER, TIMINGS, Way, cell, delay, listed, loss, min_rtt, numbers,
    paths, rows, seeds,
};
use crate::Values;
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper};
use crate::figures::presentation::{bar, percent, plot};
use crate::figures::readings::mbps;
use crate::point::Point;
use crate::results::Results;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "6b",
    title: "Exact round-trip timing keeps delay and losses low",
    about: "One flow with TACK over each of the six paths that the Pantheon calibrated on real \
        ones (also in figure 14), with one-way timing and with sampling. The paper compares its \
        transport before and after on real paths of the Pantheon. It does not say how its BBR \
        probes for the minimum RTT. Both ways are shown: BBR as specified, which pauses every \
        ten seconds and so empties the queue, and BBR without pauses (probe_rtt=mild). Each path \
        has the same weight. Runs without their startup (the first 10 s) and with eight times \
        the queue tell what bounds the change of delay. These runs have buffers of 64 MiB; \
        the runs over the paths as they are are repeated with the default buffers of 6 MiB.",
    plan,
    reduce,
};

/// Which of [`CONTROLLERS`] pauses.
const PAUSING: usize = 1;

/// Those of a constant rate.
const STEADY: std::ops::Range<usize> = 3..6;

fn plan(depth: &Depth) -> Vec<Point> {
    let mut points = Vec::new();
    for (_, path) in paths().iter().copied() {
        for (_, congestion) in CONTROLLERS {
            for conditions in Conditions::ALL {
                for ack in TIMINGS {
                    let cell = cell(path, (congestion, conditions), ack);
                    points.extend(seeds(depth).map(|seed| cell.at(seed)));
                }
            }
        }
    }
    points
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
    /// Each path.
    delays: Vec<f64>,
    /// By how much sampling's smallest round trip is larger, percent: each path.
    errors: Vec<Estimate>,
    /// What a pause adds to sampling's smallest round trip at most ([`pause`]), percent of it: each
    /// path.
    pauses: Vec<f64>,
    /// Loss on each path; not a number where sampling loses nothing.
    losses: Vec<f64>,
}

/// By how much sampling's smallest round trip is larger at least in the paper's figure 6(a),
/// percent.
const PAPERS_ERROR: f64 = 8.0;

/// A smaller change on a path is not a difference, percent.
const EQUAL: f64 = 1.0;

/// Whether changes are for the better, below zero, on more paths than chance would have it (sign
/// test, one-sided, 5 %). Paths without a difference count for neither side.
fn is_for_the_better(changes: &[f64]) -> Finding {
    let better = changes.iter().filter(|change| **change < -EQUAL).count();
    let worse = changes.iter().filter(|change| **change > EQUAL).count();
    let is_measured = !changes.iter().any(|change| change.is_nan());
    Finding {
        holds: is_measured && better > worse,
        is_decided: !is_measured || by_chance(better.max(worse), better + worse) <= 0.05,
    }
}

/// How likely at least `heads` of `throws` are heads.
fn by_chance(heads: usize, throws: usize) -> f64 {
    // The number of ways to choose as many of the throws.
    let ways = |count: usize| {
        (0..count).fold(1.0, |ways, index| {
            ways * (throws - index) as f64 / (index + 1) as f64
        })
    };
    (heads..=throws).map(ways).sum::<f64>() * 0.5_f64.powi(throws as i32)
}

impl Change {
    fn of(depth: &Depth, results: &Results, way: Way<'_>) -> Self {
        // One-way timing over sampling of each path, less one.
        let ratios = |read: fn(&Values) -> f64| -> Vec<f64> {
            let of = |path: &[&'static str], ack: &str| {
                results
                    .estimate(&cell(path, way, ack), seeds(depth), read)
                    .mean
            };
            paths()
                .iter()
                .map(|(_, path)| TIMINGS.map(|ack| of(path, ack)))
                .map(|[exact, sampled]| match sampled == 0.0 {
                    true => f64::NAN,
                    false => 100.0 * (exact / sampled - 1.0),
                })
                .collect()
        };
        let pauses = paths().iter().map(|(_, path)| {
            let cell = cell(path, way, TIMINGS[0]);
            results.estimate(&cell, seeds(depth), pause).mean
        });
        let errors = paths().iter().map(|(_, path)| {
            let cells = TIMINGS.map(|ack| cell(path, way, ack));
            results.paired(cells.each_ref(), seeds(depth), |exact, sampled| {
                100.0 * (min_rtt(sampled) / min_rtt(exact) - 1.0)
            })
        });
        let (delays, losses) = (ratios(delay), ratios(loss));
        let lossy: Vec<_> = losses
            .iter()
            .copied()
            .filter(|loss| !loss.is_nan())
            .collect();
        Self {
            delay: Estimate::of(&delays),
            loss: Estimate::of(&lossy),
            throughput: Estimate::of(&ratios(mbps)),
            delays,
            errors: errors.collect(),
            pauses: pauses.collect(),
            losses,
        }
    }

    /// Whether sampling is wrong by no more than a pause on steady paths, and the timing makes no
    /// difference to delay and loss there.
    fn is_equal_where_right(&self) -> bool {
        let equal = |path: usize| {
            let loss = self.losses[path];
            self.delays[path].abs() <= EQUAL
                && (loss.is_nan() || loss.abs() <= EQUAL)
                && self.errors[path].mean.abs() <= self.pauses[path]
        };
        STEADY.into_iter().all(equal)
    }
}

fn claims(depth: &Depth, results: &Results, controller: usize) -> Vec<Claim> {
    let (name, congestion) = CONTROLLERS[controller];
    let [change, free, default] =
        Conditions::ALL.map(|conditions| Change::of(depth, results, (congestion, conditions)));
    let means: Vec<_> = change.errors.iter().map(|error| error.mean).collect();
    let errors = listed(&means);
    let delay = Claim::new(
        format!(
            "{name}: one-way timing lowers the 95th percentile of one-way delay by at least the \
                paper's share, on average over paths"
        ),
        "20 %",
        format!("{} % change ({})", change.delay, listed(&change.delays)),
        change.delay.is_at_most(-20.0),
    );
    let loss = Claim::new(
        format!(
            "{name}: one-way timing lowers packet loss by at least the paper's share, on average \
                over paths"
        ),
        "54 %",
        format!("{} % change ({})", change.loss, listed(&change.losses)),
        change.loss.is_at_most(-54.0),
    );
    let unbound = format!(
        "Without startup, and with a queue {LONGER} times as long, it changes by {} % ({})",
        free.delay,
        listed(&free.delays)
    );
    let mut claims = if controller == PAUSING {
        let pauses = listed(&change.pauses[STEADY]);
        let steady = format!(
            "With BBR's pauses sampling also finds the minimum RTT where the rate is constant, on \
                the last three paths: its minimum is larger by {errors} %, there by no more than \
                the burst of a pause ({pauses} %), and delay and loss do not differ there."
        );
        vec![
            delay.or_unexplained(
                format!(
                    "{steady} On the others the minimum is wrong, and yet delay changes little. \
                        {unbound}. Other causes were not tested. The paper does not say how its \
                        BBR probes for the minimum, and had cross traffic, which was not tested."
                ),
                change.is_equal_where_right(),
            ),
            loss.or_unexplained(
                format!(
                    "{steady} What decides about losses on the others was not found. The paper \
                        had cross traffic, which was not tested."
                ),
                change.is_equal_where_right(),
            ),
        ]
    } else {
        vec![
            Claim::new(
                format!(
                    "{name}: sampling overestimates the minimum RTT on each path by as much as in \
                        figure 6(a) at least"
                ),
                "8 to 18 %",
                format!(
                    "{errors} %; on average {} %, an interval that decides nothing, because the \
                        paths differ too much",
                    Estimate::of(&means)
                ),
                Finding::all(
                    change
                        .errors
                        .iter()
                        .map(|error| error.is_at_least(PAPERS_ERROR)),
                ),
            ),
            delay.or(
                format!(
                    "Two things bound the change. Startup fills the queue with either timing, and \
                        takes more than 5 % of 30 s. A queue that sampling keeps full bounds its \
                        delay. {unbound}."
                ),
                free.delay.is_at_most(-20.0),
            ),
            Claim::new(
                format!(
                    "{name}: without startup, and with a queue {LONGER} times as long, one-way \
                        timing lowers the 95th percentile of one-way delay by at least the \
                        paper's share, on average over paths"
                ),
                "20 %",
                format!("{} % change ({})", free.delay, listed(&free.delays)),
                free.delay.is_at_most(-20.0),
            ),
            loss,
        ]
    };
    claims.extend([
        Claim::new(
            format!(
                "{name}: one-way timing lowers the delay on more paths than chance would have it \
                    (sign test, 5 %; a change of up to {EQUAL} % is none)"
            ),
            "lower",
            format!("{} %", listed(&change.delays)),
            is_for_the_better(&change.delays),
        ),
        Claim::new(
            format!("{name}: one-way timing costs no throughput (5 % at most, on average)"),
            "no less",
            format!("{} % change", change.throughput),
            change.throughput.is_at_least(-5.0),
        ),
        defaults::is_same(name, "delay", [&change.delays, &default.delays]),
        defaults::is_same(name, "packet loss", [&change.losses, &default.losses]),
    ]);
    claims
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: numbers(),
        ..Outcome::default()
    };
    let mut groups = Vec::new();
    for (index, (name, congestion)) in CONTROLLERS.into_iter().enumerate() {
        let way = (congestion, Conditions::Whole);
        rows(depth, results, (name, way), &mut outcome.numbers);
        let change = Change::of(depth, results, way);
        groups.push(Group {
            name: name.into(),
            values: vec![
                bar(0, change.delay.times(-1.0), Some(20.0)),
                bar(1, change.loss.times(-1.0), Some(54.0)),
            ],
        });
        outcome.claims.extend(claims(depth, results, index));
    }
    outcome.further.push(defaults::table(depth, results));
    outcome.notes.push(defaults::startup(depth, results));
    let change = Change::of(depth, results, (CONTROLLERS[0].1, Conditions::Whole));
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
        ..ValueBars::default()
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "What one-way timing saves against sampling, over paths calibrated on real ones.",
    ));
    outcome
}

#[cfg(test)]
mod tests;
