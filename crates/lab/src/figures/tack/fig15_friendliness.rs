//! Figure 15: what is left for others at a shared bottleneck.

use tack_base::random::RandomStream;
use tack_plot::{Group, ValueBars, format_number};

use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, plot};
use crate::figures::readings::utilisation;
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::FRIENDLINESS;
use tack_stats::Estimate;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "15",
    title: "TACK is as friendly as the controller it runs with",
    about: "Two flows share a bottleneck with a bandwidth of 1 to 100 Mbit/s, an RTT of 1 to 200 \
        ms and a buffer of 0.5 to 5 bandwidth-delay products, all drawn at random. The figure \
        shows the mean goodput of the first flow over half of the total: BBR with TACK, and BBR \
        with delayed ACK, against BBR and against CUBIC.",
    plan,
    reduce,
};

const FLOWS: [(&str, &str); 2] = [("TACK", "tack"), ("delayed ACK", "delayed:2")];
const OTHERS: [(&str, &str); 2] = [("BBR", "bbr"), ("CUBIC", "cubic")];

/// The bottleneck of two flows.
struct Bottleneck {
    mbps: f64,
    rtt_ms: f64,
    /// The queue, bandwidth-delay products.
    buffer: f64,
}

/// The bottleneck of a seed.
fn bottleneck(seed: u64) -> Bottleneck {
    let mut random = RandomStream::new(15, "figure 15", seed);
    let mut between = |low: f64, high: f64| low + random.unit() * (high - low);
    Bottleneck {
        mbps: between(1.0, 100.0),
        rtt_ms: between(1.0, 200.0),
        buffer: between(0.5, 5.0),
    }
}

fn point(depth: &Depth, seed: u64, ack: &str, other: &str) -> Point {
    let Bottleneck {
        mbps,
        rtt_ms,
        buffer,
    } = bottleneck(seed);
    // A queue holds a few packets whatever the product is.
    let packets = (buffer * mbps * rtt_ms * 1e3 / 12_000.0).max(4.0);
    Cell::new(&FRIENDLINESS)
        .set(format!("wired.rate={mbps:.2}Mbps"))
        .set(format!("wired.delay={}us", (rtt_ms * 500.0) as u64))
        .set(format!("wired.queue={packets:.0}p"))
        .set(format!("flow.0.ack={ack}"))
        .set(format!("flow.1.congestion={other}"))
        .set(depth.pick("duration=30s", "duration=60s"))
        .at(seed)
}

fn plan(depth: &Depth) -> Vec<Point> {
    let mut points = Vec::new();
    for (_, other) in OTHERS {
        for (_, ack) in FLOWS {
            points.extend(
                depth
                    .seeds(8, 60)
                    .map(|seed| point(depth, seed, ack, other)),
            );
        }
    }
    points
}

/// Shares of the fair half, one a bottleneck.
fn shares(depth: &Depth, results: &Results, ack: &str, other: &str) -> Vec<f64> {
    depth
        .seeds(8, 60)
        .map(|seed| {
            let values = results.get(&point(depth, seed, ack, other));
            values.map_or(f64::NAN, |values| {
                2.0 * utilisation(values, bottleneck(seed).mbps)
            })
        })
        .collect()
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new(["against", "acknowledged by", "share of the fair half"]),
        ..Outcome::default()
    };
    let mut groups = Vec::new();
    let mut texts = Vec::new();
    let tolerance = depth.pick(0.3, 0.15);
    for (name, other) in OTHERS {
        let [tack, delayed] = FLOWS.map(|(_, ack)| shares(depth, results, ack, other));
        let ratios: Vec<f64> = tack
            .iter()
            .zip(&delayed)
            .map(|(tack, delayed)| tack - delayed)
            .collect();
        let difference = Estimate::of(&ratios);
        let [tack, delayed] = [&tack, &delayed].map(|shares| Estimate::of(shares));
        for ((ack, _), share) in FLOWS.iter().zip([tack, delayed]) {
            outcome
                .numbers
                .row([name.into(), (*ack).into(), share.to_string()]);
        }
        outcome.claims.push(Claim::new(
            format!(
                "Against {name}, BBR with TACK takes as much as BBR with delayed ACK, within {} %",
                format_number(100.0 * tolerance),
            ),
            "like BBR",
            format!("{tack} against {delayed} of its fair half; difference {difference}"),
            difference.is_within(-tolerance * delayed.mean..=tolerance * delayed.mean),
        ));
        texts.push(format!(
            "Against {name} BBR with TACK gets {tack}, with delayed ACK {delayed} of its fair half."
        ));
        groups.push(Group {
            name: format!("against {name} with delayed ACK"),
            values: vec![bar(0, tack, Some(1.0)), bar(1, delayed, Some(1.0))],
        });
    }
    let svg = ValueBars {
        id: "plot-15".into(),
        title: "Share of the fair half at a shared bottleneck".into(),
        description: texts.join(" "),
        label: "throughput over fair share".into(),
        series: vec![
            ("BBR with TACK".into(), 1),
            ("BBR with delayed ACK".into(), 0),
        ],
        reference: "fair".into(),
        groups,
        ..ValueBars::default()
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Mean share over random bottlenecks, with its 95 % confidence interval.",
    ));
    outcome
}
