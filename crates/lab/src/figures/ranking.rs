//! Figure 14: how transports rank on wide-area paths, calibrated on real ones and recorded.

mod paths;

use std::ops::RangeInclusive;

use tack_plot::{Group, ValueBars, format_number};

use super::{bar, mbps, plot};
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Table};
use crate::point::{Cell, Point};
use crate::recorded::RecordedPath;
use crate::scenarios::WAN;
use crate::stats::Estimate;
use crate::store::Results;
use crate::{Plot, Values};

use paths::PATHS;

pub(super) const FIGURE: Figure = Figure {
    id: "14",
    title: "Ranking on wide-area paths by power",
    about: "One flow at a time over paths that the Pantheon calibrated on real ones, and its test links: slow Poisson links, fast long \
            ones, policers, sparse delivery of acknowledgements, short buffers; and over recorded links, where the user brings \
            recordings. Each path ranks the transports by \
            log(mean throughput / 95th percentile of one-way delay); the highest power has rank 1. All are this program's: the \
            other schemes of the paper's figure (PCC, Copa, Sprout, …) are not here, and neither is its cross traffic.",
    plan,
    reduce,
};

/// Name, controller, acknowledgement.
const TRANSPORTS: [(&str, &str, &str); 9] = [
    ("BBR with TACK", "bbr", "tack"),
    ("BBR realtime with TACK", "bbr:profile=realtime", "tack"),
    ("CUBIC with TACK", "cubic", "tack"),
    ("NewReno with TACK", "new_reno", "tack"),
    ("Vegas with TACK", "vegas", "tack"),
    ("TCP BBR", "bbr", "delayed:2"),
    ("TCP CUBIC", "cubic", "delayed:2"),
    ("TCP NewReno", "new_reno", "delayed:2"),
    ("TCP Vegas", "vegas", "delayed:2"),
];
/// The paper's transport.
const TACK: usize = 0;
/// Controllers, with TACK and with delayed ACK.
const PAIRS: [(&str, usize, usize); 4] = [
    ("BBR", 0, 5),
    ("CUBIC", 2, 6),
    ("NewReno", 3, 7),
    ("Vegas", 4, 8),
];

/// How much worse a mean rank may be and count as no worse.
const TOLERANCE: f64 = 0.5;

/// How long a flow lasts, as in the scenario.
const SECONDS: u64 = 30;

/// A path to rank on.
enum Route<'a> {
    Calibrated(&'static str, &'static [&'static str]),
    Recorded(&'a RecordedPath),
}

impl Route<'_> {
    fn name(&self) -> String {
        match self {
            Self::Calibrated(name, _) => (*name).into(),
            Self::Recorded(path) => format!("{}, {} on average", path.name, path.mean),
        }
    }

    /// The run of a transport with a seed. Each seed has another part of a recording, spread over it evenly however many
    /// there are.
    fn point(&self, transport: usize, seed: u64) -> Point {
        let (_, congestion, ack) = TRANSPORTS[transport];
        let cell = Cell::new(&WAN)
            .set(format!("flow.0.congestion={congestion}"))
            .set(format!("flow.0.ack={ack}"));
        match self {
            Self::Calibrated(_, settings) => settings
                .iter()
                .fold(cell, |cell, setting| cell.set(*setting)),
            Self::Recorded(path) => {
                let start =
                    path.period_ms * (seed.wrapping_sub(1) * 618_034 % 1_000_000) / 1_000_000;
                let cell = cell
                    .set(format!("flow.0.start={start}ms"))
                    .set(format!("duration={}ms", start + SECONDS * 1_000));
                let cell = path
                    .settings
                    .iter()
                    .fold(cell, |cell, setting| cell.set(setting));
                path.files.iter().fold(cell, Cell::bringing)
            }
        }
        .at(seed)
    }
}

fn calibrated() -> Vec<Route<'static>> {
    PATHS
        .into_iter()
        .map(|(name, settings)| Route::Calibrated(name, settings))
        .collect()
}

fn recorded(depth: &Depth) -> Vec<Route<'_>> {
    let paths = depth.recorded.iter().flat_map(|recorded| recorded.paths());
    paths.map(Route::Recorded).collect()
}

fn plan(depth: &Depth) -> Vec<Point> {
    let parts = [
        (calibrated(), depth.seeds(1, 10)),
        (recorded(depth), depth.seeds(2, 10)),
    ];
    let mut points = Vec::new();
    for (routes, seeds) in parts {
        for route in routes {
            for transport in 0..TRANSPORTS.len() {
                points.extend(seeds.clone().map(|seed| route.point(transport, seed)));
            }
        }
    }
    points
}

/// The paper's utility: log of throughput over the 95th percentile of one-way delay. Where nothing arrives it is the least.
fn power(values: &Values) -> f64 {
    if mbps(values) == 0.0 {
        return f64::NEG_INFINITY;
    }
    (mbps(values) / (values.get("flows.0.owd_p95_us") / 1e6)).ln()
}

/// The rank of each transport, by power: 1 is the highest; equal powers share the mean of their ranks. No numbers without all.
fn ranks(powers: &[f64]) -> Vec<f64> {
    if powers.iter().any(|power| power.is_nan()) {
        return vec![f64::NAN; powers.len()];
    }
    let rank = |power: f64| {
        let above = powers.iter().filter(|other| **other > power).count();
        let equal = powers.iter().filter(|other| **other == power).count();
        above as f64 + (equal as f64 + 1.0) / 2.0
    };
    powers.iter().map(|power| rank(*power)).collect()
}

/// What a mean over ranks is a mean over.
#[derive(Clone, Copy)]
enum Unit {
    /// Paths, each with its mean over seeds: seeds of one path are not independent paths.
    Path,
    /// Runs: each has a part of a recording of its own.
    Run,
}

/// Ranks of the transports, one list for each unit.
struct Ranking(Vec<Vec<f64>>);

impl Ranking {
    /// Ranks on `routes`, and writes what is behind it to `table`.
    fn of(
        routes: &[Route<'_>],
        seeds: RangeInclusive<u64>,
        unit: Unit,
        results: &Results,
        table: &mut Table,
    ) -> Self {
        let mut units = Vec::new();
        for route in routes {
            let run = |transport: usize, seed: u64, read: fn(&Values) -> f64| {
                let values = results.get(&route.point(transport, seed));
                values.map_or(f64::NAN, read)
            };
            let by_seed: Vec<Vec<f64>> = seeds
                .clone()
                .map(|seed| {
                    let powers = (0..TRANSPORTS.len()).map(|transport| run(transport, seed, power));
                    ranks(&powers.collect::<Vec<_>>())
                })
                .collect();
            let rank = |transport: usize| {
                let ranks = by_seed.iter().map(|ranks| ranks[transport]);
                Estimate::of(&ranks.collect::<Vec<_>>())
            };
            for (transport, (name, ..)) in TRANSPORTS.into_iter().enumerate() {
                let of = |read: fn(&Values) -> f64| {
                    let values = seeds.clone().map(|seed| run(transport, seed, read));
                    Estimate::of(&values.collect::<Vec<_>>()).to_string()
                };
                table.row([
                    route.name(),
                    name.into(),
                    of(mbps),
                    of(|values| values.get("flows.0.owd_p95_us") / 1e3),
                    rank(transport).to_string(),
                ]);
            }
            match unit {
                Unit::Path => units.push(
                    (0..TRANSPORTS.len())
                        .map(|transport| rank(transport).mean)
                        .collect(),
                ),
                Unit::Run => units.extend(by_seed),
            }
        }
        Self(units)
    }

    fn mean(&self, transport: usize) -> Estimate {
        let ranks = self.0.iter().map(|ranks| ranks[transport]);
        Estimate::of(&ranks.collect::<Vec<_>>())
    }

    /// How much worse the first ranks than the second, unit by unit.
    fn worse(&self, first: usize, second: usize) -> Estimate {
        let ranks = self.0.iter().map(|ranks| ranks[first] - ranks[second]);
        Estimate::of(&ranks.collect::<Vec<_>>())
    }

    /// All, the best first.
    fn order(&self) -> String {
        let mut all: Vec<_> = (0..TRANSPORTS.len())
            .map(|transport| (self.mean(transport).mean, TRANSPORTS[transport].0))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.iter()
            .map(|(rank, name)| format!("{name} {}", format_number(*rank)))
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn claims(&self, place: &str) -> Vec<Claim> {
        let ahead = (0..TRANSPORTS.len())
            .filter(|other| self.mean(*other).mean < self.mean(TACK).mean)
            .count();
        let behind = (0..TRANSPORTS.len())
            .filter(|other| self.mean(*other).mean > self.mean(TACK).mean)
            .count();
        let mut claims = vec![Claim::new(
            format!("{place}: by mean rank BBR with TACK is among the best three of nine"),
            "acceptable",
            self.order(),
            // Both: with numbers missing, neither counts anything.
            ahead <= 2 && behind >= 6,
        )];
        for (controller, tack, delayed) in PAIRS {
            let worse = self.worse(tack, delayed);
            claims.push(Claim::new(
                format!(
                    "{place}: {controller} ranks no worse with TACK than with delayed ACK (by at most {TOLERANCE}, interval included)"
                ),
                "less gain than in WLAN, no loss",
                format!(
                    "{} against {}; difference {worse}",
                    self.mean(tack),
                    self.mean(delayed)
                ),
                worse.mean + worse.half_width <= TOLERANCE,
            ));
        }
        claims
    }

    fn plot(&self, id: &str, title: &str, caption: &str) -> Plot {
        let svg = ValueBars {
            id: id.into(),
            title: title.into(),
            description: format!("Lower is better: {}.", self.order()),
            label: "mean rank, 1 is best".into(),
            series: vec![("with TACK".into(), 1), ("TCP, delayed ACK".into(), 0)],
            reference: String::new(),
            groups: TRANSPORTS
                .iter()
                .enumerate()
                .map(|(transport, (name, _, ack))| Group {
                    name: (*name).into(),
                    values: vec![bar(usize::from(*ack != "tack"), self.mean(transport), None)],
                })
                .collect(),
        }
        .to_svg();
        plot(svg, caption)
    }
}

fn table(part: &'static str) -> Table {
    Table {
        part,
        ..Table::new(["path", "transport", "Mbit/s", "p95 one way, ms", "rank"])
    }
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: table("calibrated paths"),
        ..Outcome::default()
    };
    let ranking = Ranking::of(
        &calibrated(),
        depth.seeds(1, 10),
        Unit::Path,
        results,
        &mut outcome.numbers,
    );
    outcome.claims = ranking.claims("Calibrated paths");
    outcome.plots.push(ranking.plot(
        "plot-14",
        "Mean rank by power over eighteen wide-area paths",
        "Mean rank by log(throughput / p95 one-way delay) over 18 calibrated paths; the interval is over paths.",
    ));
    let routes = recorded(depth);
    if routes.is_empty() {
        outcome.notes.push(
            "Recorded links: not measured, because no recordings were given. Their licences keep them out of this program. Give a \
             folder of them with --traces DIR (to run, check and report alike): cellular links as NAME.down and NAME.up of \
             Mahimahi (github.com/ravinet/mahimahi, traces), Wi-Fi as NAME.pitree-trace of Zhuge \
             (github.com/transys-project/zhuge); docs/lab.md says more."
                .into(),
        );
        return outcome;
    }
    let mut numbers = table("recorded links");
    let ranking = Ranking::of(
        &routes,
        depth.seeds(2, 10),
        Unit::Run,
        results,
        &mut numbers,
    );
    outcome.further.push(numbers);
    outcome.claims.extend(ranking.claims("Recorded links"));
    let names: Vec<_> = routes.iter().map(Route::name).collect();
    outcome.plots.push(ranking.plot(
        "plot-14-recorded",
        "Mean rank by power over recorded links",
        &format!(
            "Mean rank over recorded links ({}), each run of {SECONDS} s on another part of a recording; the interval is over runs.",
            names.join("; ")
        ),
    ));
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_count_from_the_highest_power() {
        assert_eq!(ranks(&[1.0, 3.0, 2.0]), [3.0, 1.0, 2.0]);
        assert_eq!(ranks(&[2.0, 2.0, 1.0]), [1.5, 1.5, 3.0]);
        assert_eq!(ranks(&[2.0, f64::NEG_INFINITY]), [1.0, 2.0]);
        assert!(ranks(&[2.0, f64::NAN]).iter().all(|rank| rank.is_nan()));
    }

    #[test]
    fn pairs_differ_in_their_acknowledgements_alone() {
        for (_, tack, delayed) in PAIRS {
            let (of_tack, of_delayed) = (TRANSPORTS[tack], TRANSPORTS[delayed]);
            assert_eq!(of_tack.1, of_delayed.1);
            assert_eq!((of_tack.2, of_delayed.2), ("tack", "delayed:2"));
        }
    }
}
