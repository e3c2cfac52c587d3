//! All mechanisms on the same medium, which none of the papers has.

use tack_plot::{Group, ValueBars};

use crate::claim::Claim;
use crate::figure::{Depth, Extent, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, plot};
use crate::figures::readings::{all_mbps, delay_p95, jain};
use crate::figures::tack::links::{LINKS, Link};
use crate::figures::upload_queues;
use crate::measure::Values;
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::MECHANISMS as SCENARIO;
use tack_stats::Estimate;
use tack_stats::Finding;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Joint,
    id: "mechanisms",
    title: "Thinning, filtering, hiding and taming acknowledgements on the same medium",
    about: "TCP (CUBIC) with an acknowledgement for every L-th segment, with the safe filter in every MAC queue, with TCP/HACK (MORE DATA), with \
            TACK, and TACK with each of the two, over 802.11g, n and ac; stations download, upload, or do both at once. Queues hold \
            50 ms of what the radio carries. TACK with BBR is the default of this program. Latency is the 95th percentile of \
            the one-way delay of the segments of all flows together. A second table says where segments and acknowledgements of ten uploads wait.",
    plan,
    reduce,
};

/// A mechanism: its name and settings.
struct Mechanism {
    name: &'static str,
    ack: &'static str,
    settings: &'static [&'static str],
}

const fn plain(name: &'static str, ack: &'static str) -> Mechanism {
    with(name, ack, &[])
}

const fn with(
    name: &'static str,
    ack: &'static str,
    settings: &'static [&'static str],
) -> Mechanism {
    Mechanism {
        name,
        ack,
        settings,
    }
}

const FILTER: &[&str] = &["wlan.ack_filter=safe"];
const HIDE: &[&str] = &["wlan.hack=more-data"];

const MECHANISMS: [Mechanism; 11] = [
    plain("L = 1", "every"),
    plain("L = 2", "delayed:2"),
    plain("L = 4", "delayed:4"),
    plain("L = 8", "delayed:8"),
    plain("L = 16", "delayed:16"),
    with("L = 2, filter", "delayed:2", FILTER),
    with("L = 2, HACK", "delayed:2", HIDE),
    plain("TACK", "tack"),
    with("TACK, filter", "tack", FILTER),
    with("TACK, HACK", "tack", HIDE),
    with("TACK, BBR", "tack", &["flow.0.congestion=bbr"]),
];
const L2: usize = 1;
const L16: usize = 4;
const FILTERED: usize = 5;
const HACK: usize = 6;
const TACK: usize = 7;
const TACK_FILTERED: usize = 8;
const TACK_HACK: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Down,
    Up,
    Mixed,
}

impl Direction {
    const ALL: [Self; 3] = [Self::Down, Self::Up, Self::Mixed];

    fn name(self) -> &'static str {
        match self {
            Self::Down => "downloads",
            Self::Up => "uploads",
            Self::Mixed => "downloads and uploads",
        }
    }
}

/// A medium and what goes over it.
#[derive(Clone, Copy, Debug)]
struct Case {
    link: Link,
    stations: usize,
    direction: Direction,
    /// Milliseconds.
    rtt: u64,
}

impl Case {
    fn flows(self) -> usize {
        match self.direction {
            Direction::Mixed => 2 * self.stations,
            _ => self.stations,
        }
    }

    fn cell(self, depth: &Depth, mechanism: usize) -> Cell {
        let Mechanism { ack, settings, .. } = MECHANISMS[mechanism];
        let queue = (self.link.baseline * 1e6 * 0.05 / 12_000.0) as u64;
        let mut cell = Cell::new(&SCENARIO)
            .set(format!("wlan.preset={}", self.link.preset))
            .set(format!("wlan.stations={}", self.stations))
            .set(format!("wlan.queue={queue}p"))
            .set(format!("wired.delay={}us", self.rtt * 500));
        if depth.extent == Extent::Quick {
            cell = cell.set("duration=5s").set("warmup=2s");
        }
        let ends: &[&str] = match self.direction {
            Direction::Down => &["flow.0.to=each"],
            Direction::Up => &["flow.0.from=each"],
            Direction::Mixed => &["flow.0.to=each", "flow.1.from=each"],
        };
        for end in ends {
            cell = cell.set(*end);
        }
        let flows = ends.len();
        let own = settings.iter().map(|setting| (*setting).to_owned());
        for setting in own.chain([format!("flow.0.ack={ack}")]) {
            if flows == 2
                && let Some(rest) = setting.strip_prefix("flow.0.")
            {
                cell = cell.set(format!("flow.1.{rest}"));
            }
            cell = cell.set(setting);
        }
        if flows == 2 {
            // What the file says of its one flow.
            for setting in ["stagger=50ms", "receive_buffer=16MiB", "send_buffer=16MiB"] {
                cell = cell.set(format!("flow.1.{setting}"));
            }
            if !settings
                .iter()
                .any(|setting| setting.contains("congestion"))
            {
                cell = cell.set("flow.1.congestion=cubic");
            }
        }
        cell
    }

    fn is_in(self, depth: &Depth) -> bool {
        if depth.extent == Extent::Full {
            return true;
        }
        let is_n = self.link.name == "802.11n";
        let few = matches!(self.stations, 1 | 10);
        let usual = self.direction == Direction::Down && self.rtt == 2;
        few && (usual || is_n && (self.rtt == 2 || self.direction == Direction::Down))
    }
}

fn cases(depth: &Depth) -> Vec<Case> {
    let mut cases = Vec::new();
    for link in &LINKS[1..] {
        for direction in Direction::ALL {
            for rtt in [2, 80] {
                for stations in [1, 5, 10, 20] {
                    let case = Case {
                        link: *link,
                        stations,
                        direction,
                        rtt,
                    };
                    if case.is_in(depth) {
                        cases.push(case);
                    }
                }
            }
        }
    }
    cases
}

fn seeds(depth: &Depth) -> std::ops::RangeInclusive<u64> {
    depth.seeds(2, 3)
}

fn plan(depth: &Depth) -> Vec<Point> {
    cases(depth)
        .into_iter()
        .flat_map(|case| (0..MECHANISMS.len()).map(move |mechanism| (case, mechanism)))
        .flat_map(|(case, mechanism)| {
            let cell = case.cell(depth, mechanism);
            seeds(depth).map(move |seed| cell.at(seed))
        })
        .chain(upload_queues::plan(depth))
        .collect()
}

fn ack_air(values: &Values) -> f64 {
    100.0 * values.get("wlan.airtime.tcp_ack")
}

fn collisions(values: &Values) -> f64 {
    100.0 * values.get("wlan.collision_probability")
}

/// Estimates of one case and mechanism.
struct Row {
    goodput: Estimate,
    latency: Estimate,
    fairness: Estimate,
    ack_air: Estimate,
    collisions: Estimate,
}

fn row(depth: &Depth, results: &Results, case: Case, mechanism: usize) -> Row {
    let cell = case.cell(depth, mechanism);
    let read = |read: &dyn Fn(&Values) -> f64| results.estimate(&cell, seeds(depth), read);
    let flows = case.flows();
    Row {
        goodput: read(&|values| all_mbps(values, flows)),
        latency: read(&delay_p95),
        fairness: read(&|values| jain(values, flows)),
        ack_air: read(&ack_air),
        collisions: read(&collisions),
    }
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "medium",
            "stations",
            "traffic",
            "RTT, ms",
            "mechanism",
            "goodput, Mbit/s",
            "latency p95, ms",
            "Jain's index",
            "air of ACKs, %",
            "collisions, %",
        ]),
        ..Outcome::default()
    };
    let all = cases(depth);
    for case in &all {
        for (index, mechanism) in MECHANISMS.iter().enumerate() {
            let row = row(depth, results, *case, index);
            outcome.numbers.row([
                case.link.name.into(),
                case.stations.to_string(),
                case.direction.name().into(),
                case.rtt.to_string(),
                mechanism.name.into(),
                row.goodput.to_string(),
                row.latency.to_string(),
                row.fairness.to_string(),
                row.ack_air.to_string(),
                row.collisions.to_string(),
            ]);
        }
    }
    outcome.plots = plots(depth, results, &all);
    outcome.claims = claims(depth, results);
    outcome.claims.extend(upload_queues::claims(depth, results));
    outcome.further.push(upload_queues::table(depth, results));
    outcome
}

/// A plot for each medium, traffic and round trip: goodput by mechanism and number of stations.
fn plots(depth: &Depth, results: &Results, all: &[Case]) -> Vec<crate::Plot> {
    let mut plots = Vec::new();
    let mut rest = all;
    while let Some(first) = rest.first() {
        let is_same = |case: &Case| {
            case.link.name == first.link.name
                && case.direction == first.direction
                && case.rtt == first.rtt
        };
        let count = rest.iter().take_while(|case| is_same(case)).count();
        let (these, others) = rest.split_at(count);
        rest = others;
        let groups = MECHANISMS
            .iter()
            .enumerate()
            .map(|(index, mechanism)| Group {
                name: mechanism.name.into(),
                values: these
                    .iter()
                    .enumerate()
                    .map(|(series, case)| {
                        bar(series, row(depth, results, *case, index).goodput, None)
                    })
                    .collect(),
            });
        let what = format!(
            "{}, {}, RTT {} ms",
            first.link.name,
            first.direction.name(),
            first.rtt
        );
        let svg = ValueBars {
            id: format!(
                "plot-mechanisms-{}-{:?}-{}",
                first.link.preset, first.direction, first.rtt
            )
            .to_lowercase(),
            title: format!("Goodput by mechanism: {what}"),
            description:
                "Goodput of all flows together, for each mechanism and number of stations.".into(),
            label: "goodput of all, Mbit/s".into(),
            series: these
                .iter()
                .enumerate()
                .map(|(colour, case)| {
                    let plural = if case.stations == 1 { "" } else { "s" };
                    (format!("{} station{plural}", case.stations), colour)
                })
                .collect(),
            reference: String::new(),
            groups: groups.collect(),
            ..ValueBars::default()
        }
        .to_svg();
        plots.push(plot(svg, format!("Goodput: {what}.")));
    }
    plots
}

/// How `after` compares with `before`, percent, seed by seed.
fn change(depth: &Depth, results: &Results, case: Case, [before, after]: [usize; 2]) -> Estimate {
    let cells = [before, after].map(|mechanism| case.cell(depth, mechanism));
    let flows = case.flows();
    results.paired([&cells[0], &cells[1]], seeds(depth), |before, after| {
        100.0 * (all_mbps(after, flows) / all_mbps(before, flows) - 1.0)
    })
}

/// Values of cases that a claim is about.
struct Measured(Vec<(Case, Estimate)>);

impl Measured {
    fn of(cases: &[Case], read: impl Fn(Case) -> Estimate) -> Self {
        Self(cases.iter().map(|case| (*case, read(*case))).collect())
    }

    fn all(&self, finding: impl Fn(Estimate) -> Finding) -> Finding {
        Finding::all(self.0.iter().map(|(_, value)| finding(*value)))
    }

    fn show(&self) -> String {
        let shown = |(case, value): &(Case, Estimate)| {
            format!("{} to {}: {value}", case.link.name, case.stations)
        };
        self.0.iter().map(shown).collect::<Vec<_>>().join("; ")
    }
}

fn claims(depth: &Depth, results: &Results) -> Vec<Claim> {
    let downloads = |link: usize, stations, rtt| Case {
        link: LINKS[link],
        stations,
        direction: Direction::Down,
        rtt,
    };
    let near: Vec<_> = [1, 2, 3]
        .into_iter()
        .flat_map(|link| [1, 10].map(|stations| downloads(link, stations, 2)))
        .collect();
    let far = [1, 10].map(|stations| downloads(2, stations, 80));
    let changes =
        |cases: &[Case], pair| Measured::of(cases, |case| change(depth, results, case, pair));
    let air = |mechanism: usize| {
        Measured::of(&far, |case| {
            results.estimate(&case.cell(depth, mechanism), seeds(depth), ack_air)
        })
    };
    let hack = changes(&near, [L2, HACK]);
    let ahead = changes(&near, [TACK, HACK]);
    let tack_far = changes(&far, [L2, TACK]);
    let (tack_air, l16_air) = (air(TACK), air(L16));
    let with_filter = changes(&near, [TACK, TACK_FILTERED]);
    let with_hack = changes(&near, [HACK, TACK_HACK]);
    let uploads = Case {
        direction: Direction::Up,
        ..downloads(2, 10, 2)
    };
    let others = [L16, FILTERED, HACK, TACK, TACK_HACK];
    let ten: Vec<_> = others
        .iter()
        .map(|mechanism| {
            (
                *mechanism,
                change(depth, results, uploads, [L2, *mechanism]),
            )
        })
        .collect();
    let none = "–";
    vec![
        Claim::new(
            "At 2 ms TCP/HACK has more goodput than L = 2, for downloads to 1 and 10 stations",
            none,
            format!("{} %", hack.show()),
            hack.all(|gain| gain.is_above(0.0)),
        ),
        Claim::new(
            "At 2 ms TCP/HACK is ahead of TACK, whose period of RTTmin / 4 is shorter than a batch takes",
            none,
            format!("{} %", ahead.show()),
            ahead.all(|gain| gain.is_above(0.0)),
        ),
        Claim::new(
            "At 80 ms TACK has more goodput than L = 2 over 802.11n",
            none,
            format!("{} %", tack_far.show()),
            tack_far.all(|gain| gain.is_above(0.0)),
        ),
        Claim::new(
            "At 80 ms its acknowledgements take less air than those of L = 16",
            none,
            format!("{} % against {} %", tack_air.show(), l16_air.show()),
            Finding::all(
                tack_air
                    .0
                    .iter()
                    .zip(&l16_air.0)
                    .map(|((_, tack), (_, l16))| tack.less(*l16).is_below(0.0)),
            ),
        ),
        Claim::new(
            "A filter changes nothing for TACK, whose acknowledgements pass it untouched",
            none,
            format!("{} %", with_filter.show()),
            with_filter.all(|change| change.is_within(-1e-9..=1e-9)),
        ),
        Claim::new(
            "TCP/HACK carries TACK's acknowledgements as well: at 2 ms the goodput is that of TCP/HACK with L = 2, to 10 %",
            none,
            format!("{} %", with_hack.show()),
            with_hack.all(|change| change.is_within(-10.0..=10.0)),
        ),
        Claim::new(
            "With ten uploads over 802.11n stations contend with data: no mechanism changes the goodput of L = 2 by more than 10 %",
            none,
            ten.iter()
                .map(|(mechanism, change)| format!("{}: {change}", MECHANISMS[*mechanism].name))
                .collect::<Vec<_>>()
                .join("; "),
            Finding::all(ten.iter().map(|(_, change)| change.is_within(-10.0..=10.0))),
        ),
    ]
}
