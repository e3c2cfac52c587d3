//! Figures 9(b) and 10(b): thinned acknowledgements over 802.11n, what the air gives back and what TCP makes of it.

use tack_plot::{Group, ValueBars, format_number};

use super::links::{as_rare_as_tack, udp_tool};
use super::{LINKS, Link, bar, mbps, plot};
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Table};
use crate::point::{Cell, Point};
use crate::scenarios::WLAN_TCP;
use crate::stats::Estimate;
use crate::store::Results;

pub(super) const IDEAL: Figure = Figure {
    id: "9b",
    title: "Ideal goodput: TACK approaches the upper bound",
    about: "The paper's UDP tool over 802.11n: one 64-byte acknowledgement for every L datagrams, or as rarely as TACK at 80 ms, \
            against UDP without any. No transport can be disturbed here: this is what the air alone gives back. Ideal medium.",
    plan: ideal_plan,
    reduce: ideal_reduce,
};

pub(super) const ACTUAL: Figure = Figure {
    id: "10b",
    title: "Actual goodput with losses: thinned TCP falls behind, TACK does not",
    about: "One download with BBR over 802.11n at 80 ms, with 0.1 % of the data lost on the wire, acknowledged for every L-th segment or by \
            TACK. The marks are the ideal goodput of figure 9(b), scaled to the segments of TCP. Ideal medium.",
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
    let share = goodput[5].mean / baseline.mean;
    outcome.claims = vec![
        Claim::new(
            "TACK's ideal goodput is within 2 % of the UDP baseline",
            "approaches it",
            format!(
                "{} of {} Mbit/s: {} %",
                goodput[5],
                baseline,
                format_number(100.0 * share)
            ),
            share >= 0.98,
        ),
        Claim::new(
            "No count of L up to 16 gets as far",
            "yes",
            format!("L = 16: {} Mbit/s", goodput[4]),
            goodput[..5]
                .iter()
                .all(|thinned| thinned.mean < goodput[5].mean),
        ),
        Claim::new(
            "The rarer the acknowledgements, the higher the goodput (L = 1, 2, 4, 8, 16)",
            "grows",
            goodput[..5]
                .iter()
                .map(|thinned| format_number(thinned.mean))
                .collect::<Vec<_>>()
                .join(", "),
            (1..5).all(|index| goodput[index].mean >= 0.998 * goodput[index - 1].mean),
        ),
    ];
    let svg = ValueBars {
        id: "plot-9b".into(),
        title: "Ideal goodput over 802.11n by how often is acknowledged".into(),
        description: format!(
            "From {} Mbit/s with an acknowledgement for every datagram to {} with TACK; without any it is {}.",
            goodput[0], goodput[5], baseline
        ),
        label: "Mbit/s".into(),
        series: vec![("UDP tool".into(), 1)],
        reference: String::new(),
        groups,
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
    let actual: Vec<Estimate> = actual_cells(depth)
        .iter()
        .map(|cell| results.estimate(cell, depth.seeds(2, 10), mbps))
        .collect();
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
    let best_thinned = actual[..5]
        .iter()
        .map(|thinned| thinned.mean)
        .fold(f64::NAN, f64::max);
    outcome.claims = vec![
        Claim::new(
            "TACK's actual goodput approaches its ideal",
            "approaches it",
            format!("{} %", format_number(100.0 * shares[5])),
            shares[5] >= 0.95,
        )
        .or(
            "BBR leaves some of the link unused while it drains its probes and looks for the smallest RTT.",
            shares[5] >= 0.88,
        ),
        Claim::new(
            "TACK's goodput is above that of every thinned TCP",
            "yes",
            format!("{} against {} Mbit/s at best", actual[5], format_number(best_thinned)),
            actual[5].mean > best_thinned,
        ),
        Claim::new(
            "Thinned TCP falls short of its ideal trend: L = 16 reaches less of its ideal than TACK of its own",
            "falls short",
            format!("{} % against {} %", format_number(100.0 * shares[4]), format_number(100.0 * shares[5])),
            shares[4] < shares[5] - 0.01,
        )
        .or(
            "The TCP here finds losses by RACK with SACK, counts bytes and paces, whatever L is: it is less disturbed by rare \
             acknowledgements than the kernel that the paper changed.",
            shares[4] >= shares[5] - 0.01,
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
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Goodput over 802.11n at 80 ms with 0.1 % of the data lost, ideal medium.",
    ));
    outcome
}
