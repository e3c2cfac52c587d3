//! Figure 17: how often TACK acknowledges, by bandwidth and by RTTmin.

use tack_plot::{Line, LineChart, Scale, Stroke, Whisker, format_number};

use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::plot;
use crate::figures::readings::{ack_frequency, equation_3, mbps};
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::FREQUENCY;
use tack_stats::Estimate;
use tack_stats::Finding;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "17",
    title: "ACK frequency by bandwidth and by round-trip time",
    about: "One BBR flow in steady state over a wired path without losses, with TACK at L = 1 as \
        in the paper's example. Dots are counted acknowledgements per second; lines are equation \
        (3): min(bw / (L·MSS), 4 / RTTmin).",
    plan,
    reduce,
};

/// Rates, Mbit/s, and round-trip times, milliseconds, of which each pair is a cell.
fn rates(depth: &Depth) -> &'static [f64] {
    depth.pick(
        &[1.0, 10.0, 48.0, 200.0],
        &[1.0, 3.0, 10.0, 30.0, 48.0, 100.0, 200.0, 500.0, 1_000.0],
    )
}

fn round_trips(depth: &Depth) -> &'static [f64] {
    depth.pick(
        &[1.0, 10.0, 80.0, 200.0],
        &[1.0, 3.0, 10.0, 20.0, 40.0, 80.0, 120.0, 200.0],
    )
}

/// An example of the paper.
struct Example {
    /// Rate, Mbit/s.
    rate: f64,
    /// RTTmin, milliseconds.
    rtt: f64,
    /// TACK's share of what per-packet acknowledgement sends, percent.
    paper: f64,
}

const EXAMPLES: [Example; 3] = [
    Example {
        rate: 48.0,
        rtt: 10.0,
        paper: 10.0,
    },
    Example {
        rate: 200.0,
        rtt: 10.0,
        paper: 2.4,
    },
    Example {
        rate: 200.0,
        rtt: 80.0,
        paper: 0.3,
    },
];

/// A clean path: room for what a startup overshoots, and time to settle.
fn cell(rate: f64, rtt_ms: f64, ack: &str) -> Cell {
    let settle = (40.0 * rtt_ms / 1e3).clamp(4.0, 8.0);
    let slow = if rate < 10.0 { 10.0 } else { 0.0 };
    // Two products and a half are what BBR keeps in flight at most. Short paths need a few packets
    // all the same: with 100, 500 Mbit/s at 1 ms loses some in each probe, and loses what is
    // measured here in the acknowledgements of losses.
    let queue = (rate * 1e6 * rtt_ms / 1e3 / 12_000.0 * 2.0).max(300.0);
    Cell::new(&FREQUENCY)
        .set(format!("wired.rate={rate}Mbps"))
        .set(format!("wired.delay={}us", (rtt_ms * 500.0) as u64))
        .set(format!("wired.queue={}p", queue as u64))
        .set(format!("warmup={}ms", ((settle + slow) * 1e3) as u64))
        .set(format!(
            "duration={}ms",
            ((2.0 * settle + slow) * 1e3) as u64
        ))
        .set(format!("flow.0.ack={ack}"))
}

fn tack(rate: f64, rtt_ms: f64) -> Cell {
    cell(rate, rtt_ms, "tack:l=1")
}

fn plan(depth: &Depth) -> Vec<Point> {
    let mut points = Vec::new();
    for seed in depth.seeds(3, 3) {
        for rate in rates(depth) {
            points.extend(
                round_trips(depth)
                    .iter()
                    .map(|rtt| tack(*rate, *rtt).at(seed)),
            );
        }
        for Example { rate, rtt, .. } in EXAMPLES {
            points.push(cell(rate, rtt, "every").at(seed));
        }
    }
    points
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let seeds = || depth.seeds(3, 3);
    let mut outcome = Outcome {
        numbers: Table::new(["Mbit/s", "RTTmin ms", "ACKs/s", "equation (3)", "ratio"]),
        ..Outcome::default()
    };
    let mut worst: f64 = 0.0;
    let mut follows = Finding::from(true);
    let mut frequencies = Vec::new();
    for (rate, rtt) in rates(depth)
        .iter()
        .flat_map(|rate| round_trips(depth).iter().map(|rtt| (*rate, *rtt)))
    {
        let measured = results.estimate(&tack(rate, rtt), seeds(), ack_frequency);
        let ratio = results.estimate(&tack(rate, rtt), seeds(), |values| {
            let rtt_min = values.get("flows.0.min_rtt_us") / 1e6;
            ack_frequency(values) / equation_3(mbps(values), rtt_min, 1.0)
        });
        // `max` would ignore what is not a number.
        let off = (ratio.mean - 1.0).abs();
        worst = if off > worst || off.is_nan() {
            off
        } else {
            worst
        };
        follows = follows.and(ratio.is_near(1.0, 0.05));
        frequencies.push(Measured {
            rate,
            rtt,
            frequency: measured,
        });
        outcome.numbers.row([
            format_number(rate),
            format_number(rtt),
            measured.to_string(),
            format_number(equation_3(rate * 1_448.0 / 1_500.0, rtt / 1e3, 1.0)),
            ratio.to_string(),
        ]);
    }
    outcome.plots = vec![
        by_rate(depth, &frequencies),
        by_round_trip(depth, &frequencies),
    ];
    outcome.claims.push(Claim::new(
        "Measured frequency is that of equation (3), within 5 %, at every bandwidth and RTTmin",
        "equation (3)",
        format!("at most {} % off", format_number(100.0 * worst)),
        follows,
    ));
    for Example { rate, rtt, paper } in EXAMPLES {
        let ours = results
            .paired(
                [&tack(rate, rtt), &cell(rate, rtt, "every")],
                seeds(),
                |tack, every| ack_frequency(tack) / ack_frequency(every),
            )
            .times(100.0);
        outcome.claims.push(Claim::new(
            format!(
                "At {rate} Mbit/s and {rtt} ms, TACK sends the paper's share of per-packet acknowledgements, within a tenth of it"
            ),
            format!("{paper} %"),
            crate::figures::presentation::percent(ours),
            ours.is_near(paper, 0.1),
        ));
    }
    outcome
}

/// A measurement at one rate and RTTmin.
struct Measured {
    rate: f64,
    rtt: f64,
    /// Acknowledgements in a second.
    frequency: Estimate,
}

/// Lines of equation (3) and dots of what was measured, over the rate.
fn by_rate(depth: &Depth, frequencies: &[Measured]) -> crate::Plot {
    let mut lines = Vec::new();
    for (colour, rtt) in [10.0, 80.0, 200.0].into_iter().enumerate() {
        let theory = (0..=60)
            .map(|step| {
                10_f64.powf(f64::from(step) / 60.0 * rates(depth)[rates(depth).len() - 1].log10())
            })
            .map(|rate| (rate, equation_3(rate * 1_448.0 / 1_500.0, rtt / 1e3, 1.0)))
            .collect();
        let measured = frequencies.iter().filter(|cell| cell.rtt == rtt);
        lines.extend(pair(
            format!("RTTmin {rtt} ms"),
            colour,
            theory,
            measured.map(|cell| (cell.rate, cell.frequency)),
        ));
    }
    chart("a", "bandwidth", "Mbit/s", lines)
}

fn by_round_trip(depth: &Depth, frequencies: &[Measured]) -> crate::Plot {
    let mut lines = Vec::new();
    for (colour, rate) in [10.0, 48.0, 200.0].into_iter().enumerate() {
        let theory = (0..=60)
            .map(|step| {
                10_f64.powf(
                    f64::from(step) / 60.0
                        * round_trips(depth)[round_trips(depth).len() - 1].log10(),
                )
            })
            .map(|rtt| (rtt, equation_3(rate * 1_448.0 / 1_500.0, rtt / 1e3, 1.0)))
            .collect();
        let measured = frequencies.iter().filter(|cell| cell.rate == rate);
        lines.extend(pair(
            format!("{rate} Mbit/s"),
            colour,
            theory,
            measured.map(|cell| (cell.rtt, cell.frequency)),
        ));
    }
    chart("b", "RTTmin", "ms", lines)
}

fn pair(
    name: String,
    colour: usize,
    theory: Vec<(f64, f64)>,
    measured: impl Iterator<Item = (f64, Estimate)> + Clone,
) -> [Line; 2] {
    [
        Line {
            name,
            points: theory,
            colour,
            ..Line::default()
        },
        Line {
            points: measured.clone().map(|(x, y)| (x, y.mean)).collect(),
            whiskers: measured
                .filter(|(_, y)| y.half_width > 0.0)
                .map(|(x, y)| Whisker {
                    x,
                    low: y.mean - y.half_width,
                    high: y.mean + y.half_width,
                })
                .collect(),
            colour,
            stroke: Stroke::Dots,
            ..Line::default()
        },
    ]
}

fn chart(part: &str, over: &str, unit: &str, lines: Vec<Line>) -> crate::Plot {
    let svg = LineChart {
        id: format!("plot-17{part}"),
        title: format!("ACK frequency by {over}"),
        description: "The frequency grows with the bandwidth, one acknowledgement for each \
            segment, until it reaches four in a round trip. The measured dots lie on the lines \
            of equation (3)."
            .into(),
        x_label: format!("{over}, {unit}"),
        y_label: "ACKs per second".into(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        lines,
    }
    .to_svg();
    plot(
        svg,
        format!("ACK frequency by {over}: lines are equation (3), dots measured."),
    )
}
