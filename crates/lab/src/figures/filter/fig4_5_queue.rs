//! Figures 4 and 5: the access point's queue, and what each station gets.

use tack_plot::{Group, Value, ValueBars, format_number};

use super::{SECONDS, Setup, seeds, shares};
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, plot};
use crate::measure::Values;
use crate::point::{Cell, Point};
use crate::results::Results;
use tack_stats::Finding;

pub(in crate::figures) const LENGTH: Figure = Figure {
    paper: Paper::Filter,
    id: "filter4",
    title: "Length of the access point's queue",
    about: "Ten stations upload over 802.11b; queues of 50 and 250 packets, with and without the paper's filter. The paper draws the length \
            over time; here are its median, its 99th percentile and its maximum.",
    plan: length_plan,
    reduce: length_reduce,
};

pub(in crate::figures) const FAIRNESS: Figure = Figure {
    paper: Paper::Filter,
    id: "filter5",
    title: "Fairness and timeouts of ten uploads",
    about: "Ten stations upload over 802.11b through queues of 50 packets. The paper draws sequence numbers over time; here are the goodput \
            of each station, Jain's index, and timeouts a second. The retransmission timeout is at least a second: with 200 ms filtering \
            shows spurious ones.",
    plan: fairness_plan,
    reduce: fairness_reduce,
};

const STATIONS: usize = 10;
const QUEUES: [u32; 2] = [50, 250];

fn length_setups() -> Vec<Setup> {
    QUEUES
        .into_iter()
        .flat_map(|queue| [false, true].map(|is_filtered| Setup::new(STATIONS, queue, is_filtered)))
        .collect()
}

fn name(setup: Setup) -> String {
    let filter = if setup.is_filtered {
        "filtered"
    } else {
        "unmodified"
    };
    format!("{filter}, q = {}", setup.queue)
}

/// The filtered queue where no segment is lost, so that there are no duplicate acknowledgements.
fn persistent(queue: u32) -> Setup {
    Setup {
        is_persistent: true,
        ..Setup::new(STATIONS, queue, true)
    }
}

/// A filter in a short queue where duplicates report what they have by SACK: the paper's, which
/// never replaces one, and that of `sch_cake`, which replaces one by the next that reports more.
fn informed(filter: &str) -> Cell {
    Setup::new(STATIONS, QUEUES[0], false)
        .cell()
        .set(format!("wlan.ack_filter={filter}"))
        .set("flow.0.sack=true")
}

const INFORMED: [&str; 2] = ["paper", "cake_aggressive"];

fn length_plan(depth: &Depth) -> Vec<Point> {
    let persistent = QUEUES.map(persistent);
    let informed = INFORMED.into_iter().flat_map(|filter| {
        let cell = informed(filter);
        seeds(depth, STATIONS).map(move |seed| cell.at(seed))
    });
    length_setups()
        .into_iter()
        .chain(persistent)
        .flat_map(|setup| setup.points(depth))
        .chain(informed)
        .collect()
}

const LENGTHS: [(&str, &str); 3] = [
    ("median", "wlan.ap.queue_p50"),
    ("99th percentile", "wlan.ap.queue_p99"),
    ("maximum", "wlan.ap.queue_max"),
];

fn length_reduce(depth: &Depth, results: &Results) -> Outcome {
    let read = |setup: Setup, key: &'static str| {
        setup.estimate(depth, results, move |values| values.get(key))
    };
    let mut outcome = Outcome {
        numbers: Table::new(["queue", "median", "99th percentile", "maximum"]),
        ..Outcome::default()
    };
    let mut groups = Vec::new();
    for setup in length_setups() {
        let [p50, p99, max] = LENGTHS.map(|(_, key)| read(setup, key));
        outcome.numbers.row([
            name(setup),
            p50.to_string(),
            p99.to_string(),
            max.to_string(),
        ]);
        groups.push(Group {
            name: name(setup),
            values: vec![bar(0, p50, None), bar(1, p99, None), bar(2, max, None)],
        });
    }
    let svg = ValueBars {
        id: "plot-filter4".into(),
        title: "Length of the access point's queue with ten uploads".into(),
        description: "The unmodified queue fills; the filtered one has about as many packets as there are flows.".into(),
        label: "packets".into(),
        series: LENGTHS
            .iter()
            .enumerate()
            .map(|(colour, (name, _))| ((*name).into(), colour))
            .collect(),
        reference: String::new(),
        groups,
..ValueBars::default()
}
    .to_svg();
    outcome
        .plots
        .push(plot(svg, "Length of the access point's queue."));
    let at = |queue, is_filtered, key| read(Setup::new(STATIONS, queue, is_filtered), key);
    let full = |queue: u32| at(queue, false, "wlan.ap.queue_max");
    let p99 = |queue| at(queue, true, "wlan.ap.queue_p99");
    let flows = STATIONS as f64;
    let informed = INFORMED.map(|filter| {
        let read = |key: &'static str| {
            results.estimate(&informed(filter), seeds(depth, STATIONS), move |values| {
                values.get(key)
            })
        };
        (read("wlan.ap.queue_p99"), read("wlan.retry_drops"))
    });
    let [(kept, kept_drops), (replaced, replaced_drops)] = informed;
    let lossless = QUEUES.map(|queue| read(persistent(queue), "wlan.ap.queue_p99"));
    outcome.claims = vec![
        Claim::new(
            "The unmodified queue fills to its capacity, of 50 and of 250 packets",
            "50 and 250",
            format!("{} and {}", full(50), full(250)),
            full(50).is_at_least(50.0).and(full(250).is_at_least(250.0)),
        ),
        Claim::new(
            "The filtered queue is bounded by the number of flows, but for duplicates: in 99 % of the time, at either capacity",
            "≤ 10",
            format!("{} and {}", p99(50), p99(250)),
            p99(50).is_at_most(flows).and(p99(250).is_at_most(flows)),
        )
        .or(
            format!(
                "Radios give segments up, {kept_drops} in a run (q = 50, with SACK), and each draws duplicate acknowledgements. A filter that replaces \
                 these too, `cake_aggressive` with SACK, keeps {replaced} packets in 99 % of the time (q = 50) while radios give up \
                 {replaced_drops}; the paper's has {kept} with SACK. Where no segment is lost the paper's has {} and {}: one for each flow, and the one on the \
                 air.",
                lossless[0], lossless[1]
            ),
            // One of each flow, and one duplicate that reports nothing more.
            Finding::all(lossless.iter().map(|length| length.is_at_most(flows + 1.0)))
                .and(replaced.is_at_most(2.0 * flows))
                .and(kept.is_above(2.0 * flows))
                .and(replaced_drops.is_above(0.0)),
        ),
        Claim::new(
            "Its length does not depend on the capacity: the medians differ by less than 2 packets",
            "independent",
            {
                let [a, b] = QUEUES.map(|queue| at(queue, true, "wlan.ap.queue_p50"));
                format!("{a} and {b}")
            },
            {
                let [a, b] = QUEUES.map(|queue| at(queue, true, "wlan.ap.queue_p50"));
                let apart = a.less(b);
                apart.is_above(-2.0).and(apart.is_below(2.0))
            },
        ),
    ];
    outcome
}

fn fairness_setups() -> [Setup; 2] {
    [false, true].map(|is_filtered| Setup::new(STATIONS, 50, is_filtered))
}

fn fairness_plan(depth: &Depth) -> Vec<Point> {
    fairness_setups()
        .into_iter()
        .flat_map(|setup| setup.points(depth))
        .collect()
}

/// Jain's index of the flows' goodput, 1/n to 1.
fn jain(values: &Values) -> f64 {
    let shares = shares(values, STATIONS);
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (STATIONS as f64 * squares)
}

/// Retransmission timeouts of all flows, a second.
fn timeouts(values: &Values) -> f64 {
    let count: f64 = (0..STATIONS)
        .map(|flow| values.get(&format!("flows.{flow}.rto_count")))
        .sum();
    count / SECONDS
}

fn fairness_reduce(depth: &Depth, results: &Results) -> Outcome {
    let [plain, filtered] = fairness_setups();
    let fairness = [plain, filtered].map(|setup| setup.estimate(depth, results, jain));
    let expiries = [plain, filtered].map(|setup| setup.estimate(depth, results, timeouts));
    let mut outcome = Outcome {
        numbers: Table::new([
            "queue",
            "Jain's index",
            "timeouts a second",
            "least share, Mbit/s",
            "largest share, Mbit/s",
        ]),
        ..Outcome::default()
    };
    let mut groups = Vec::new();
    for (index, setup) in [plain, filtered].into_iter().enumerate() {
        let ranked = |rank: usize| {
            setup.estimate(depth, results, move |values| {
                let mut shares = shares(values, STATIONS);
                shares.sort_by(f64::total_cmp);
                shares[rank]
            })
        };
        outcome.numbers.row([
            name(setup),
            fairness[index].to_string(),
            expiries[index].to_string(),
            ranked(0).to_string(),
            ranked(STATIONS - 1).to_string(),
        ]);
        groups.push(Group {
            name: name(setup),
            values: (0..STATIONS)
                .map(|rank| Value {
                    series: index,
                    ..bar(index, ranked(rank), None)
                })
                .collect(),
        });
    }
    let svg = ValueBars {
        id: "plot-filter5".into(),
        title: "Goodput of each of ten uploads, from the least".into(),
        description: format!(
            "Jain's index is {} with the unmodified queue and {} with the filter.",
            format_number(fairness[0].mean),
            format_number(fairness[1].mean)
        ),
        label: "Mbit/s".into(),
        series: vec![("unmodified".into(), 0), ("filtered".into(), 1)],
        reference: String::new(),
        groups,
        ..ValueBars::default()
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Goodput of each station, from the least; means of each rank over seeds.",
    ));
    outcome.claims = vec![
        Claim::new(
            "All connections share equally with filtering: Jain's index of at least 0.95",
            "equal shares",
            fairness[1].to_string(),
            fairness[1].is_at_least(0.95),
        ),
        Claim::new(
            "They do not with the unmodified queue: below 0.8",
            "unfair",
            fairness[0].to_string(),
            fairness[0].is_below(0.8),
        ),
        Claim::new(
            "Filtering has few timeouts: less than half of the unmodified queue's",
            "far fewer",
            format!("{} against {} a second", expiries[1], expiries[0]),
            expiries[1].less(expiries[0].times(0.5)).is_below(0.0),
        ),
    ];
    outcome
}
