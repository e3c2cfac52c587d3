//! Figure 6: goodput of uploads with and without filtering.

use super::Setup;
use super::goodput::{self, Series, counts, filtered, gain, show};
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper};
use crate::point::Point;
use crate::results::Results;
use tack_stats::Estimate;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Filter,
    id: "filter6",
    title: "Goodput with and without ACK filtering",
    about: "Uploads of n stations over 802.11b at 11 Mbit/s; the paper's filter replaces acknowledgements that wait in the access \
            point's queue. The paper does not state the window, on which the crossing depends: an unfiltered queue thins \
            acknowledgements by itself where n windows of them overflow it. It is 64 segments here; a second table has other windows. \
            Other parameters that the paper does not state: short preamble, link acknowledgements at 1 Mbit/s, segments of 1460 bytes, no RTS, \
            2 ms of wire, NewReno that counts acknowledgements, a retransmission timeout of a second at least, hosts that take no time. \
            docs/ack-filter.md shows what some of them change.",
    plan,
    reduce,
};

const QUEUES: [u32; 2] = [50, 250];
const SENSITIVITY: [u32; 3] = [20, 42, 128];

fn series() -> Vec<Series> {
    QUEUES
        .into_iter()
        .flat_map(|queue| {
            [
                Series::new(format!("unmodified, q = {queue}"), move |n| {
                    Setup::new(n, queue, false)
                }),
                Series::new(format!("filtered, q = {queue}"), move |n| {
                    filtered(n, queue)
                }),
            ]
        })
        .collect()
}

fn sensitivity() -> Vec<Series> {
    SENSITIVITY
        .into_iter()
        .flat_map(|window| {
            [false, true].map(|is_filtered| {
                let name = if is_filtered {
                    "filtered"
                } else {
                    "unmodified"
                };
                Series::new(format!("{name}, {window} segments"), move |n| Setup {
                    window,
                    ..Setup::new(n, 250, is_filtered)
                })
            })
        })
        .collect()
}

fn plan(depth: &Depth) -> Vec<Point> {
    let mut points = goodput::plan(depth, &series());
    points.extend(goodput::plan(depth, &sensitivity()));
    points
}

/// From how many stations on filtering is behind, and the number before it, by its mean.
fn crossing(gains: &[(usize, Estimate)]) -> Option<(usize, usize)> {
    gains
        .windows(2)
        .find(|pair| pair[0].1.mean > 0.0 && pair[1].1.mean <= 0.0)
        .map(|pair| (pair[0].0, pair[1].0))
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = show(
        depth,
        results,
        "filter6",
        "Goodput of uploads with and without filtering, by the number of stations",
        &series(),
    );
    let gains: Vec<_> = counts(depth)
        .iter()
        .map(|count| (*count, gain(depth, results, filtered(*count, 250))))
        .collect();
    let at = |wanted: usize| {
        let found = gains.iter().find(|(count, _)| *count == wanted);
        found.map_or(Estimate::of(&[]), |(_, gain)| *gain)
    };
    let crossing = crossing(&gains);
    // Eight stations, or the next number that is measured.
    let eight = counts(depth)
        .iter()
        .copied()
        .find(|count| *count >= 8)
        .unwrap_or(0);
    outcome.claims = vec![
        Claim::new(
            "Filtering is ahead for few stations (2 and 5), with q = 250",
            "ahead",
            format!("by {} and {} Mbit/s", at(2), at(5)),
            at(2).is_above(0.0).and(at(5).is_above(0.0)),
        ),
        Claim::new(
            "The margin tapers off as the number of stations grows: smaller with 20 than with 2",
            "tapers off",
            format!("{} and {} Mbit/s", at(2), at(20)),
            at(20).less(at(2)).is_below(0.0),
        ),
        Claim::new(
            "With q = 250 filtering falls behind from a critical number of stations on, between 8 and 20 of them with this window",
            "13",
            match crossing {
                Some((before, from)) => format!("between {before} and {from}"),
                None => "no crossing".into(),
            },
            at(eight).is_above(0.0).and(at(20).is_below(0.0)),
        ),
    ];
    let mut table = show(depth, results, "filter6-windows", "", &sensitivity()).numbers;
    table.part = "other windows, q = 250";
    outcome.further.push(table);
    outcome
}
