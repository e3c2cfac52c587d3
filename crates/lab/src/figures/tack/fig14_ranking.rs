//! Figure 14: how transports rank on wide-area paths, calibrated on real ones and recorded.

use std::ops::RangeInclusive;

use tack_plot::{Group, ValueBars, format_number};

use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, plot};
use crate::figures::readings::mbps;
use crate::point::{Cell, Point};
use crate::recorded::RecordedPath;
use crate::results::Results;
use crate::scenarios::WAN;
use crate::{Plot, Values};
use tack_stats::Estimate;
use tack_stats::Finding;

use crate::figures::tack::paths::PATHS;
use crate::figures::transport::Transport;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "14",
    title: "Ranking on wide-area paths by power",
    about: "One flow at a time over paths that the Pantheon calibrated on real ones, and over \
        its test links: slow Poisson links, fast long ones, policers, sparse delivery of \
        acknowledgements, short buffers; and over recorded links, if the user has recordings. On \
        each path the transports are ranked by log(mean throughput / 95th percentile of one-way \
        delay); the highest power has rank 1. All transports are this program's. The other \
        schemes of the paper's figure (PCC, Copa, Sprout, …) and its cross traffic are missing.",
    plan,
    reduce,
};

/// The transports to rank.
const TRANSPORTS: [Transport; 9] = [
    Transport::new("BBR with TACK", "bbr", "tack"),
    Transport::new("BBR realtime with TACK", "bbr:profile=realtime", "tack"),
    Transport::new("CUBIC with TACK", "cubic", "tack"),
    Transport::new("NewReno with TACK", "new_reno", "tack"),
    Transport::new("Vegas with TACK", "vegas", "tack"),
    Transport::new("TCP BBR", "bbr", "delayed:2"),
    Transport::new("TCP CUBIC", "cubic", "delayed:2"),
    Transport::new("TCP NewReno", "new_reno", "delayed:2"),
    Transport::new("TCP Vegas", "vegas", "delayed:2"),
];
/// The paper's transport.
const TACK: usize = 0;
/// The one without a counterpart with delayed ACK.
const REALTIME: usize = 1;
/// A controller, with TACK and with delayed ACK: indices of [`TRANSPORTS`].
#[derive(Clone, Copy)]
struct Pair {
    controller: &'static str,
    tack: usize,
    delayed: usize,
}

impl Pair {
    const fn new(controller: &'static str, tack: usize, delayed: usize) -> Self {
        Self {
            controller,
            tack,
            delayed,
        }
    }
}

const PAIRS: [Pair; 4] = [
    Pair::new("BBR", 0, 5),
    Pair::new("CUBIC", 2, 6),
    Pair::new("NewReno", 3, 7),
    Pair::new("Vegas", 4, 8),
];

/// By how much power may be lower, the whole interval of its mean included, and count as no lower.
const TOLERANCE: f64 = 0.1;

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

    /// The run of a transport with a seed. Each seed has another part of a recording, spread over
    /// it evenly however many there are.
    fn point(&self, transport: usize, seed: u64) -> Point {
        let Transport {
            congestion, ack, ..
        } = TRANSPORTS[transport];
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
        (recorded(depth), depth.seeds(4, 10)),
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

/// The paper's utility: log of throughput over the 95th percentile of one-way delay. Where nothing
/// arrives it is the least.
fn power(values: &Values) -> f64 {
    if mbps(values) == 0.0 {
        return f64::NEG_INFINITY;
    }
    (mbps(values) / (values.get("flows.0.owd_p95_us") / 1e6)).ln()
}

/// The rank of each transport, by power: 1 is the highest; equal powers share the mean of their
/// ranks. No numbers without all.
fn ranks_of(powers: &[f64]) -> Vec<f64> {
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

/// The value of `of` for each transport.
fn all(of: impl Fn(usize) -> f64) -> Vec<f64> {
    (0..TRANSPORTS.len()).map(of).collect()
}

/// The mean of a transport over lists.
fn column(lists: &[Vec<f64>], transport: usize) -> Estimate {
    Estimate::of(&lists.iter().map(|list| list[transport]).collect::<Vec<_>>())
}

/// The mean of the differences between two transports over lists.
fn difference(lists: &[Vec<f64>], first: usize, second: usize) -> Estimate {
    let differences = lists.iter().map(|list| list[first] - list[second]);
    Estimate::of(&differences.collect::<Vec<_>>())
}

/// The units of a mean.
#[derive(Clone, Copy)]
enum Unit {
    /// Paths, each with its mean over seeds: seeds of one path are not independent paths.
    Path,
    /// Runs: each has a part of a recording of its own.
    Run,
}

/// Powers, logarithms of the throughput, and ranks of the transports, one list for each unit.
struct Ranking {
    powers: Vec<Vec<f64>>,
    throughputs: Vec<Vec<f64>>,
    ranks: Vec<Vec<f64>>,
}

impl Ranking {
    /// Ranks on `routes`, and writes what is behind it to `table`.
    fn of(
        routes: &[Route<'_>],
        seeds: RangeInclusive<u64>,
        unit: Unit,
        results: &Results,
        table: &mut Table,
    ) -> Self {
        let (mut powers, mut throughputs, mut ranks) = (Vec::new(), Vec::new(), Vec::new());
        for route in routes {
            let run = |transport: usize, seed: u64, read: fn(&Values) -> f64| {
                let values = results.get(&route.point(transport, seed));
                values.map_or(f64::NAN, read)
            };
            let by_seed = |read: fn(&Values) -> f64| -> Vec<Vec<f64>> {
                let seeds = seeds.clone();
                seeds
                    .map(|seed| all(|transport| run(transport, seed, read)))
                    .collect()
            };
            let powers_by_seed = by_seed(power);
            let throughputs_by_seed = by_seed(|values| mbps(values).ln());
            let ranks_by_seed: Vec<_> = powers_by_seed
                .iter()
                .map(|powers| ranks_of(powers))
                .collect();
            for (transport, Transport { name, .. }) in TRANSPORTS.into_iter().enumerate() {
                let of = |read: fn(&Values) -> f64| {
                    let values = seeds.clone().map(|seed| run(transport, seed, read));
                    Estimate::of(&values.collect::<Vec<_>>()).to_string()
                };
                table.row([
                    route.name(),
                    name.into(),
                    of(mbps),
                    of(|values| values.get("flows.0.owd_p95_us") / 1e3),
                    column(&ranks_by_seed, transport).to_string(),
                ]);
            }
            match unit {
                Unit::Path => {
                    powers.push(all(|transport| column(&powers_by_seed, transport).mean));
                    throughputs.push(all(|transport| {
                        column(&throughputs_by_seed, transport).mean
                    }));
                    ranks.push(all(|transport| column(&ranks_by_seed, transport).mean));
                }
                Unit::Run => {
                    powers.extend(powers_by_seed);
                    throughputs.extend(throughputs_by_seed);
                    ranks.extend(ranks_by_seed);
                }
            }
        }
        Self {
            powers,
            throughputs,
            ranks,
        }
    }

    fn rank(&self, transport: usize) -> Estimate {
        column(&self.ranks, transport)
    }

    /// The logarithm of the first one's power over the second one's, unit by unit.
    fn advantage(&self, first: usize, second: usize) -> Estimate {
        difference(&self.powers, first, second)
    }

    /// Excuses Vegas for less power with TACK where it has the throughput, and what it pays is
    /// delay.
    fn excuse_vegas(&self, claim: Claim, pair: Pair) -> Claim {
        let Pair { tack, delayed, .. } = pair;
        let throughput = difference(&self.throughputs, tack, delayed);
        let power = self.advantage(tack, delayed);
        let delays: Vec<_> = (self.throughputs.iter().zip(&self.powers))
            .map(|(rates, powers)| all(|transport| rates[transport] - powers[transport]))
            .collect();
        let delay = difference(&delays, tack, delayed);
        let percent = |ratio: Estimate| format_number(100.0 * ratio.mean.exp());
        claim.or(
            format!(
                "The paper does not measure Vegas with TACK. Vegas aims at a few packets in the \
                    queue. With four acknowledgements in a round trip it learns of them later. \
                    It has {} % of the throughput and {} % of the delay of Vegas with delayed \
                    ACK.",
                percent(throughput),
                percent(delay)
            ),
            throughput
                .is_at_least(0.9_f64.ln())
                .and(delay.is_above(0.0))
                .and(power.is_at_least(0.75_f64.ln())),
        )
    }

    /// All transports with their mean ranks, the best first.
    fn order(&self) -> String {
        let mut order: Vec<_> = TRANSPORTS
            .into_iter()
            .enumerate()
            .map(|(index, transport)| (self.rank(index).mean, transport.name))
            .collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        order
            .iter()
            .map(|(rank, name)| format!("{name} {}", format_number(*rank)))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Whether five of the others have higher ranks than BBR with TACK. It is decided when that
    /// many surely have, or so many surely have lower ones that five cannot.
    fn is_in_the_better_half(&self) -> Finding {
        let behind = || {
            let others = (0..TRANSPORTS.len()).filter(|other| *other != TACK);
            others.map(|other| difference(&self.ranks, other, TACK).is_above(0.0))
        };
        let half = TRANSPORTS.len() / 2 + 1;
        let surely = behind().filter(|one| one.is_sure()).count();
        let perhaps = behind().filter(|one| one.holds || !one.is_decided).count();
        Finding {
            holds: behind().filter(|one| one.holds).count() >= half,
            is_decided: surely >= half || perhaps < half,
        }
    }

    fn claims(&self, place: &str) -> Vec<Claim> {
        let mut claims = vec![Claim::new(
            format!(
                "{place}: BBR with TACK is in the better half of the nine transports, by mean rank"
            ),
            "acceptable",
            self.order(),
            self.is_in_the_better_half(),
        )];
        for pair in PAIRS {
            let Pair {
                controller,
                tack,
                delayed,
            } = pair;
            let advantage = self.advantage(tack, delayed);
            let [least, mean, most] = [-1.0, 0.0, 1.0]
                .map(|side: f64| (advantage.mean + side * advantage.half_width).exp());
            let claim = Claim::new(
                format!(
                    "{place}: {controller} has no less power with TACK than with delayed ACK (at most {} % less)",
                    format_number(100.0 * TOLERANCE)
                ),
                if tack == TACK {
                    "no harm, less gain than in WLAN"
                } else {
                    "–"
                },
                format!(
                    "{} times as much ({} to {}); mean ranks {} and {}",
                    format_number(mean),
                    format_number(least),
                    format_number(most),
                    self.rank(tack),
                    self.rank(delayed)
                ),
                advantage.is_at_least((1.0 - TOLERANCE).ln()),
            );
            claims.push(match controller {
                "Vegas" => self.excuse_vegas(claim, pair),
                _ => claim,
            });
        }
        claims
    }

    fn plot(&self, id: &str, title: &str, caption: &str) -> Plot {
        let alone = vec![bar(0, self.rank(REALTIME), None)];
        let mut groups: Vec<_> = PAIRS
            .into_iter()
            .map(|pair| Group {
                name: pair.controller.into(),
                values: vec![
                    bar(0, self.rank(pair.tack), None),
                    bar(1, self.rank(pair.delayed), None),
                ],
            })
            .collect();
        groups.insert(
            1,
            Group {
                name: "BBR, profile realtime".into(),
                values: alone,
            },
        );
        let svg = ValueBars {
            id: id.into(),
            title: title.into(),
            description: format!("Lower is better: {}.", self.order()),
            label: "mean rank, 1 is best".into(),
            series: vec![("with TACK".into(), 1), ("with delayed ACK".into(), 0)],
            reference: String::new(),
            groups,
            ..ValueBars::default()
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
            "Recorded links: not measured, because no recordings were given. Their licences do \
                not allow this program to include them. Pass a folder of them as --traces DIR to \
                run, check and report: cellular links as NAME.down and NAME.up of Mahimahi \
                (github.com/ravinet/mahimahi, traces), Wi-Fi as NAME.pitree-trace of Zhuge \
                (github.com/transys-project/zhuge). docs/lab.md has details."
                .into(),
        );
        return outcome;
    }
    let mut numbers = table("recorded links");
    let ranking = Ranking::of(
        &routes,
        depth.seeds(4, 10),
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
mod tests;
