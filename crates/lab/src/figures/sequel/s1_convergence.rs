//! The sequel's convergence experiment: how soon a step of the bandwidth is followed.

use tack_plot::{Line, LineChart, Stroke};

use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::plot;
use crate::measure::Measure;
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::RATE_STEP;
use tack_stats::Finding;

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

/// The profile realtime without the pause in which BBR looks for RTTmin: what an excuse is tested
/// with.
const WITHOUT_PAUSE: &str = "bbr:profile=realtime,probe_rtt=mild";

fn cell(congestion: &str) -> Cell {
    Cell::new(&RATE_STEP)
        .set(format!("flow.0.congestion={congestion}"))
        .measuring(Measure::Steps)
}

fn plan(depth: &Depth) -> Vec<Point> {
    CONTROLLERS
        .iter()
        .map(|controller| controller.congestion)
        .chain([WITHOUT_PAUSE])
        .flat_map(|congestion| depth.seeds(2, 10).map(|seed| cell(congestion).at(seed)))
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
    let without_pause = ["steps.up", "steps.down"].map(|step| {
        results.estimate(&cell(WITHOUT_PAUSE), depth.seeds(2, 10), |values| {
            values.get(step)
        })
    });
    for (index, controller) in CONTROLLERS.into_iter().enumerate() {
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
        let claim = Claim::new(
            format!("{name}: adapts to a step within this many round trips on average (up, down)"),
            format!("{paper}"),
            format!("{up}, {down}"),
            up.is_at_most(paper).and(down.is_at_most(paper)),
        );
        let is_realtime = index == 1;
        outcome.claims.push(if is_realtime {
            claim.or(
                format!(
                    "BBR pauses every ten seconds to look for RTTmin, and the step down comes ten \
                        seconds after the step up: the pause falls into the adaptation, and what \
                        is measured in it says nothing about the path. Without it \
                        (`probe_rtt=mild`) the profile adapts within {} round trips up and {} down.",
                    without_pause[0], without_pause[1]
                ),
                Finding::all(without_pause.iter().map(|step| step.is_at_most(paper))),
            )
        } else {
            claim
        });
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
            colour: [0, 1][index],
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
