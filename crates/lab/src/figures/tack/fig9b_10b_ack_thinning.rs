//! Figures 9(b) and 10(b): thinned acknowledgements over 802.11n, what the air gives back and what
//! TCP makes of it.

use tack_plot::{Group, ValueBars, format_number};

use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, percent, plot};
use crate::figures::readings::mbps;
use crate::figures::tack::links::{LINKS, Link};
use crate::figures::tack::links::{as_rare_as_tack, udp_tool};
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::WLAN_TCP;
use tack_stats::Estimate;
use tack_stats::Finding;

pub(in crate::figures) const IDEAL: Figure = Figure {
    paper: Paper::Tack,
    id: "9b",
    title: "Ideal goodput: TACK approaches the upper bound",
    about: "The paper's UDP tool over 802.11n: one 64-byte acknowledgement for every L \
        datagrams, or as few as TACK sends at 80 ms, against UDP without any. No transport takes \
        part: the figure shows the effect of airtime alone. The medium is ideal.",
    plan: ideal_plan,
    reduce: ideal_reduce,
};

pub(in crate::figures) const ACTUAL: Figure = Figure {
    paper: Paper::Tack,
    id: "10b",
    title: "Actual goodput with losses: thinned TCP falls behind, TACK does not",
    about: "One BBR download over 802.11n at 80 ms. The wired path loses 0.1 % of the data. The \
        receiver acknowledges every L-th segment, or uses TACK. The marks are the ideal goodput \
        of figure 9(b), scaled to TCP segments. The medium is ideal.",
    plan: actual_plan,
    reduce: actual_reduce,
};

const LINK: Link = LINKS[2];
const COUNTS: [u64; 5] = [1, 2, 4, 8, 16];

/// Payload of a segment over payload of a datagram of the same size.
const SEGMENT_SHARE: f64 = 1_448.0 / 1_472.0;

/// Datagrams for each acknowledgement: the counts, then TACK, then none.
fn ideal_cells(depth: &Depth) -> Vec<Cell> {
    COUNTS
        .into_iter()
        .chain([as_rare_as_tack(LINK), 0])
        .map(|every| udp_tool(depth, LINK, every))
        .collect()
}

fn ideal_points(depth: &Depth) -> Vec<Point> {
    ideal_cells(depth)
        .into_iter()
        .flat_map(|cell| depth.seeds(3, 8).map(move |seed| cell.at(seed)))
        .collect()
}

fn ideal_goodput(depth: &Depth, results: &Results) -> Vec<Estimate> {
    ideal_cells(depth)
        .iter()
        .map(|cell| results.estimate(cell, depth.seeds(3, 8), mbps))
        .collect()
}

fn ideal_plan(depth: &Depth) -> Vec<Point> {
    ideal_points(depth)
}

fn names() -> Vec<String> {
    COUNTS
        .iter()
        .map(|count| format!("TCP (L = {count})"))
        .chain(["TACK".into()])
        .collect()
}

fn ideal_reduce(depth: &Depth, results: &Results) -> Outcome {
    let goodput = ideal_goodput(depth, results);
    let baseline = goodput[6];
    let mut outcome = Outcome {
        numbers: Table::new(["acknowledged as", "goodput, Mbit/s", "of the baseline, %"]),
        ..Outcome::default()
    };
    let mut groups = Vec::new();
    for (name, estimate) in names()
        .into_iter()
        .chain(["UDP baseline".into()])
        .zip(&goodput)
    {
        outcome.numbers.row([
            name.clone(),
            estimate.to_string(),
            format_number(100.0 * estimate.mean / baseline.mean),
        ]);
        groups.push(Group {
            name,
            values: vec![bar(0, *estimate, None)],
        });
    }
    let cells = ideal_cells(depth);
    let compare = |pair: [usize; 2], read: fn(f64, f64) -> f64| {
        let cells = pair.map(|index| &cells[index]);
        results.paired(cells, depth.seeds(3, 8), |a, b| read(mbps(a), mbps(b)))
    };
    let share = compare([5, 6], |tack, none| 100.0 * tack / none);
    outcome.claims = vec![
        Claim::new(
            "TACK's ideal goodput is within 2 % of the UDP baseline",
            "approaches it",
            format!("{} of {} Mbit/s: {}", goodput[5], baseline, percent(share)),
            share.is_at_least(98.0),
        ),
        Claim::new(
            "No count of L up to 16 gets as far",
            "yes",
            format!("L = 16: {} Mbit/s", goodput[4]),
            Finding::all(
                (0..5)
                    .map(|index| compare([index, 5], |thinned, tack| tack - thinned).is_above(0.0)),
            ),
        ),
        Claim::new(
            "Goodput grows as acknowledgements become rarer (L = 1, 2, 4, 8, 16)",
            "grows",
            goodput[..5]
                .iter()
                .map(|thinned| format_number(thinned.mean))
                .collect::<Vec<_>>()
                .join(", "),
            Finding::all((1..5).map(|index| {
                let gained = compare([index - 1, index], |more, fewer| fewer - more);
                gained.is_above(0.0)
            })),
        ),
    ];
    let svg = ValueBars {
        id: "plot-9b".into(),
        title: "Ideal goodput over 802.11n by the frequency of acknowledgements".into(),
        description: format!(
            "From {} Mbit/s with an acknowledgement for every datagram to {} with TACK; without any it is {}.",
            goodput[0], goodput[5], baseline
        ),
        label: "Mbit/s".into(),
        series: vec![("UDP tool".into(), 1)],
        reference: String::new(),
        groups,
..ValueBars::default()
}
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Goodput of the UDP tool over 802.11n, ideal medium.",
    ));
    outcome
}

fn actual_cells(depth: &Depth) -> Vec<Cell> {
    [
        "every",
        "delayed:2",
        "delayed:4",
        "delayed:8",
        "delayed:16",
        "tack",
    ]
    .into_iter()
    .map(|ack| {
        let cell = Cell::new(&WLAN_TCP)
            .set("wired.loss=0.001")
            .set(format!("flow.0.ack={ack}"));
        match depth.extent {
            crate::Extent::Quick => cell.set("duration=15s").set("warmup=5s"),
            crate::Extent::Full => cell.set("duration=60s").set("warmup=10s"),
        }
    })
    .collect()
}

fn actual_plan(depth: &Depth) -> Vec<Point> {
    let actual = actual_cells(depth)
        .into_iter()
        .flat_map(|cell| depth.seeds(2, 10).map(move |seed| cell.at(seed)));
    actual.chain(ideal_points(depth)).collect()
}

fn actual_reduce(depth: &Depth, results: &Results) -> Outcome {
    let ideal: Vec<f64> = ideal_goodput(depth, results)
        .iter()
        .map(|estimate| estimate.mean * SEGMENT_SHARE)
        .collect();
    let cells = actual_cells(depth);
    let actual: Vec<Estimate> = cells
        .iter()
        .map(|cell| results.estimate(cell, depth.seeds(2, 10), mbps))
        .collect();
    let compare = |index: usize, read: &dyn Fn(f64, f64) -> f64| {
        results.paired(
            [&cells[index], &cells[5]],
            depth.seeds(2, 10),
            |thinned, tack| read(mbps(thinned), mbps(tack)),
        )
    };
    let mut outcome = Outcome {
        numbers: Table::new([
            "acknowledged as",
            "actual, Mbit/s",
            "ideal, Mbit/s",
            "actual of ideal, %",
        ]),
        ..Outcome::default()
    };
    let shares: Vec<f64> = actual
        .iter()
        .zip(&ideal)
        .map(|(actual, ideal)| actual.mean / ideal)
        .collect();
    let mut groups = Vec::new();
    for (index, name) in names().into_iter().enumerate() {
        outcome.numbers.row([
            name.clone(),
            actual[index].to_string(),
            format_number(ideal[index]),
            format_number(100.0 * shares[index]),
        ]);
        groups.push(Group {
            name,
            values: vec![bar(0, actual[index], Some(ideal[index]))],
        });
    }
    let share = actual[5].times(100.0 / ideal[5]);
    let shortfall = compare(4, &|thinned, tack| {
        100.0 * (tack / ideal[5] - thinned / ideal[4])
    });
    let best_thinned = actual[..5]
        .iter()
        .map(|thinned| thinned.mean)
        .fold(f64::NAN, f64::max);
    outcome.claims = vec![
        Claim::new(
            "TACK's actual goodput approaches its ideal: at least 95 % of it",
            "approaches it",
            percent(share),
            share.is_above(95.0),
        ),
        Claim::new(
            "TACK's goodput is above that of every thinned TCP",
            "yes",
            format!(
                "{} against {} Mbit/s at best",
                actual[5],
                format_number(best_thinned)
            ),
            Finding::all(
                (0..5).map(|index| compare(index, &|thinned, tack| tack - thinned).is_above(0.0)),
            ),
        ),
        Claim::new(
            "Thinned TCP stays below its ideal trend: L = 16 reaches a smaller share of its \
                    ideal goodput than TACK does, by a percentage point at least",
            "falls short",
            format!(
                "{} % against {} %: {shortfall} points",
                format_number(100.0 * shares[4]),
                format_number(100.0 * shares[5])
            ),
            shortfall.is_above(1.0),
        ),
    ];
    let svg = ValueBars {
        id: "plot-10b".into(),
        title: "Actual goodput over 802.11n with 0.1 % loss".into(),
        description: format!(
            "TACK gets {} Mbit/s, {} % of its ideal; TCP with L = 16 {} Mbit/s, {} % of its ideal.",
            actual[5],
            format_number(100.0 * shares[5]),
            actual[4],
            format_number(100.0 * shares[4])
        ),
        label: "Mbit/s".into(),
        series: vec![("BBR, 0.1 % loss".into(), 1)],
        reference: "ideal, figure 9(b)".into(),
        groups,
        ..ValueBars::default()
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Goodput over 802.11n at 80 ms with 0.1 % of the data lost, ideal medium.",
    ));
    outcome
}
