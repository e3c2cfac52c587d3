//! Goodput by the number of stations: the plot and the table that figures 6, 8, 9 and 10 share.

use tack_plot::{Line, LineChart, Scale, Stroke, Whisker, format_number};

use super::{Setup, difference, total};
use crate::figure::{Depth, Outcome, Table};
use crate::figures::presentation::plot;
use crate::point::Point;
use crate::results::Results;
use tack_stats::Estimate;

/// Numbers of stations.
pub(super) fn counts(depth: &Depth) -> &'static [usize] {
    depth.pick(
        &[2, 5, 10, 13, 20, 30],
        &[2, 4, 6, 8, 10, 12, 13, 14, 16, 18, 20, 25, 30],
    )
}

/// A line of a plot: its name, and its set-up for so many stations.
pub(super) struct Series {
    name: String,
    setup: Box<dyn Fn(usize) -> Setup>,
}

impl Series {
    pub(super) fn new(name: impl Into<String>, setup: impl Fn(usize) -> Setup + 'static) -> Self {
        Self {
            name: name.into(),
            setup: Box::new(setup),
        }
    }

    fn points(&self, depth: &Depth) -> Vec<Point> {
        counts(depth)
            .iter()
            .flat_map(|count| (self.setup)(*count).points(depth).collect::<Vec<_>>())
            .collect()
    }
}

/// All points of all series.
pub(super) fn plan(depth: &Depth, series: &[Series]) -> Vec<Point> {
    series
        .iter()
        .flat_map(|series| series.points(depth))
        .collect()
}

/// The plot and the table of all series.
pub(super) fn show(
    depth: &Depth,
    results: &Results,
    id: &str,
    title: &str,
    series: &[Series],
) -> Outcome {
    let mut numbers = Table {
        head: std::iter::once("stations".into())
            .chain(series.iter().map(|series| series.name.clone()))
            .collect(),
        ..Table::default()
    };
    let mut lines: Vec<Line> = series
        .iter()
        .enumerate()
        .map(|(index, series)| Line {
            name: series.name.clone(),
            colour: index % tack_plot::COLOURS,
            stroke: if index < tack_plot::COLOURS {
                Stroke::Solid
            } else {
                Stroke::Dotted
            },
            ..Line::default()
        })
        .collect();
    for count in counts(depth) {
        let mut row = vec![count.to_string()];
        for (series, line) in series.iter().zip(&mut lines) {
            let goodput = (series.setup)(*count).goodput(depth, results);
            row.push(goodput.to_string());
            let x = *count as f64;
            line.points.push((x, goodput.mean));
            if goodput.half_width > 0.0 {
                line.whiskers.push(Whisker {
                    x,
                    low: goodput.mean - goodput.half_width,
                    high: goodput.mean + goodput.half_width,
                });
            }
        }
        numbers.rows.push(row);
    }
    let best = |line: &Line| line.points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    let svg = LineChart {
        id: format!("plot-{id}"),
        title: title.into(),
        description: lines
            .iter()
            .map(|line| {
                format!(
                    "{}: at most {} Mbit/s.",
                    line.name,
                    format_number(best(line))
                )
            })
            .collect::<Vec<_>>()
            .join(" "),
        x_label: "stations that upload".into(),
        y_label: "goodput of all, Mbit/s".into(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        lines,
    }
    .to_svg();
    Outcome {
        plots: vec![plot(svg, title)],
        numbers,
        ..Outcome::default()
    }
}

/// The gain of filtering in goodput, Mbit/s.
pub(super) fn gain(depth: &Depth, results: &Results, setup: Setup) -> Estimate {
    let plain = Setup {
        is_filtered: false,
        ..setup
    };
    difference(depth, results, [plain, setup], total)
}

/// With the filter, and everything else as in the paper.
pub(super) fn filtered(stations: usize, queue: u32) -> Setup {
    Setup::new(stations, queue, true)
}
