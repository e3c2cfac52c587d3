//! The sequel's convergence experiment: how soon a step of the bandwidth is followed.

use tack_plot::{Line, LineChart, Stroke};

use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::plot;
use crate::measure::Measure;
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::RATE_STEP;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "S1",
    title: "Convergence after a step of the bandwidth (sequel)",
    about: "The bandwidth of the bottleneck changes from 10 to 20 Mbit/s after 10 s and back \
        after 20 s, at 40 ms. The figure shows the sender's bandwidth estimate with TACK: with \
        default BBR, and with the profile realtime, which adapts twice as fast and stands for \
        the sequel's co-designed controller. Round trips are counted until the estimate is \
        within 5 % of the new rate.",
    plan,
    reduce,
};

/// A controller.
struct Controller {
    name: &'static str,
    congestion: &'static str,
    /// The paper's round trips.
    paper: f64,
}

const CONTROLLERS: [Controller; 2] = [
    Controller {
        name: "BBR",
        congestion: "bbr",
        paper: 24.0,
    },
    Controller {
        name: "BBR, profile realtime",
        congestion: "bbr:profile=realtime",
        paper: 12.0,
    },
];

fn cell(congestion: &str) -> Cell {
    Cell::new(&RATE_STEP)
        .set(format!("flow.0.congestion={congestion}"))
        .measuring(Measure::Steps)
}

fn plan(depth: &Depth) -> Vec<Point> {
    CONTROLLERS
        .iter()
        .flat_map(|one| depth.seeds(2, 10).map(|seed| cell(one.congestion).at(seed)))
        .collect()
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "controller",
            "10 to 20 Mbit/s, round trips",
            "20 to 10 Mbit/s, round trips",
        ]),
        ..Outcome::default()
    };
    let mut lines = Vec::new();
    let mut texts = Vec::new();
    for (colour, controller) in CONTROLLERS.into_iter().enumerate() {
        let Controller {
            name,
            congestion,
            paper,
        } = controller;
        let cell = cell(congestion);
        let of =
            |step: &str| results.estimate(&cell, depth.seeds(2, 10), |values| values.get(step));
        let (up, down) = (of("steps.up"), of("steps.down"));
        outcome
            .numbers
            .row([name.into(), up.to_string(), down.to_string()]);
        outcome.claims.push(Claim::new(
            format!("{name}: adapts to a step within this many round trips on average (up, down)"),
            format!("{paper}"),
            format!("{up}, {down}"),
            up.mean <= paper && down.mean <= paper,
        ));
        texts.push(format!("{name}: {up} round trips up, {down} down."));
        lines.push(Line {
            name: name.into(),
            points: results
                .get(&cell.at(1))
                .map(|values| values.numbered("estimate."))
                .unwrap_or_default()
                .into_iter()
                .map(|(seconds, mbps)| (seconds - 9.0, mbps))
                .collect(),
            colour: [0, 1][colour],
            stroke: Stroke::Solid,
            ..Line::default()
        });
    }
    let svg = LineChart {
        id: "plot-S1".into(),
        title: "Bandwidth estimate while the bandwidth steps".into(),
        description: texts.join(" "),
        x_label: "seconds since 1 s before the first step".into(),
        y_label: "estimate, Mbit/s of payload".into(),
        lines,
        ..LineChart::default()
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Bandwidth estimate of the sender; the link's payload rate is 9.65 and 19.3 Mbit/s.",
    ));
    outcome
}
