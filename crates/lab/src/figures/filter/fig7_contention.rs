//! Figure 7: collisions.

use tack_plot::{Line, LineChart, Scale, Stroke, format_number};

use super::{SECONDS, Setup};
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::plot;
use crate::point::{Cell, Point};
use crate::results::Results;
use tack_stats::Finding;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Filter,
    id: "filter7",
    title: "Collisions with and without ACK filtering",
    about: "Uploads of n stations over 802.11b, queues of 50 packets: transmissions that another one spoilt at their receiver. Each surviving \
            acknowledgement releases more data at once, so that more stations have something to send.",
    plan,
    reduce,
};

fn counts(depth: &Depth) -> &'static [usize] {
    depth.pick(&[2, 5, 10, 20], &[2, 4, 6, 8, 10, 13, 16, 20, 25, 30])
}

/// The claim about as many stations takes more seeds than the curves: the ratio is near the two
/// that it is about.
const DECISIVE: usize = 10;

fn decisive_seeds(depth: &Depth) -> std::ops::RangeInclusive<u64> {
    depth.seeds(20, 24)
}

fn decisive_cells() -> [Cell; 2] {
    [false, true].map(|is_filtered| Setup::new(DECISIVE, 50, is_filtered).cell())
}

fn plan(depth: &Depth) -> Vec<Point> {
    let decisive = decisive_cells()
        .into_iter()
        .flat_map(|cell| decisive_seeds(depth).map(move |seed| cell.at(seed)));
    counts(depth)
        .iter()
        .filter(|count| **count != DECISIVE)
        .flat_map(|count| [false, true].map(|is_filtered| Setup::new(*count, 50, is_filtered)))
        .flat_map(|setup| setup.points(depth))
        .chain(decisive)
        .collect()
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let rate = |count, is_filtered| {
        Setup::new(count, 50, is_filtered).estimate(depth, results, |values| {
            values.get("wlan.collisions") / SECONDS
        })
    };
    let mut outcome = Outcome {
        numbers: Table::new([
            "stations",
            "unmodified, a second",
            "filtered, a second",
            "ratio",
        ]),
        ..Outcome::default()
    };
    let mut lines = [("unmodified", 0), ("filtered", 1)].map(|(name, colour)| Line {
        name: name.into(),
        colour,
        stroke: Stroke::Solid,
        ..Line::default()
    });
    let mut ratios = Vec::new();
    let mut more = Vec::new();
    for count in counts(depth) {
        let pair = [rate(*count, false), rate(*count, true)];
        let ratio = pair[1].mean / pair[0].mean;
        ratios.push((*count, ratio));
        if *count >= 5 {
            more.push(pair[1].less(pair[0]).is_above(0.0));
        }
        outcome.numbers.row([
            count.to_string(),
            pair[0].to_string(),
            pair[1].to_string(),
            format_number(ratio),
        ]);
        for (line, rate) in lines.iter_mut().zip(pair) {
            line.points.push((*count as f64, rate.mean));
        }
    }
    let best = ratios
        .iter()
        .map(|(_, ratio)| *ratio)
        .fold(f64::NAN, f64::max);
    let svg = LineChart {
        id: "plot-filter7".into(),
        title: "Collisions a second by the number of stations".into(),
        description: format!("Filtering has up to {} times as many.", format_number(best)),
        x_label: "stations that upload".into(),
        y_label: "collisions a second".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        lines: lines.into(),
    }
    .to_svg();
    outcome
        .plots
        .push(plot(svg, "Collisions, queues of 50 packets."));
    let cells = decisive_cells();
    let ten = results.paired(
        [&cells[0], &cells[1]],
        decisive_seeds(depth),
        |plain, filtered| filtered.get("wlan.collisions") / plain.get("wlan.collisions"),
    );
    outcome.claims = vec![
        Claim::new(
            "Filtering has multiple times the collisions of the unmodified queue: at least twice as many with 10 stations",
            "multiple times",
            format!("{ten} times"),
            ten.is_at_least(2.0),
        ),
        Claim::new(
            "It has more of them at every number of stations from 5 on",
            "more",
            ratios
                .iter()
                .map(|(count, ratio)| format!("{count}: {}", format_number(*ratio)))
                .collect::<Vec<_>>()
                .join(", "),
            Finding::all(more),
        ),
    ];
    outcome
}
