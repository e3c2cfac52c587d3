//! Figure 5(a): what waits in the receive buffer behind a hole.

use tack_base::random::RandomStream;
use tack_plot::{Line, LineChart, Scale, Stroke, format_number};

use crate::Values;
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::plot;
use crate::measure::Measure;
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::LOSS_IACK;
use tack_stats::Estimate;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "5a",
    title: "Instant acknowledgement of losses keeps the receive buffer empty",
    about: "BBR flows of 20 Mbit/s over paths with a loss rate of 0 to 3 % and an RTT of 1 to \
        200 ms, both drawn at random. At each periodic acknowledgement the receiver records how \
        many bytes it holds above a hole. A receiver reports a loss in one of three ways: at \
        once (IACK), with the next periodic acknowledgement, or not at all, so that the sender \
        has to detect it. Every path has the same weight.",
    plan,
    reduce,
};

const WAYS: [(&str, &str); 3] = [
    ("with IACK", "tack"),
    ("periodic only", "tack:iack=periodic"),
    ("without IACK", "tack:iack=off"),
];

/// The paths: one for each seed.
fn cell(depth: &Depth, seed: u64, ack: &str) -> Cell {
    let mut random = RandomStream::new(5, "figure 5(a)", seed);
    let (loss, rtt_ms) = (random.unit() * 0.03, 1.0 + random.unit() * 199.0);
    Cell::new(&LOSS_IACK)
        .set("wired.rate=20Mbps")
        .set(format!("wired.loss={loss:.4}"))
        .set(format!("wired.delay={}us", (rtt_ms * 500.0) as u64))
        .set(format!("flow.0.ack={ack}"))
        .set(depth.pick("duration=10s", "duration=30s"))
        .measuring(Measure::Blocked)
}

fn plan(depth: &Depth) -> Vec<Point> {
    WAYS.iter()
        .flat_map(|(_, ack)| {
            depth
                .seeds(12, 60)
                .map(move |seed| cell(depth, seed, ack).at(seed))
        })
        .collect()
}

/// Shares of acknowledgements with no more bytes blocked than each limit, a mean over paths.
fn distribution(depth: &Depth, results: &Results, ack: &str) -> Vec<(f64, Estimate)> {
    let runs: Vec<_> = depth
        .seeds(12, 60)
        .filter_map(|seed| results.get(&cell(depth, seed, ack).at(seed)))
        .map(|values| values.numbered("blocked.le."))
        .collect();
    let limits = runs.first().map_or(&[][..], Vec::as_slice);
    (0..limits.len())
        .map(|index| {
            let shares: Vec<f64> = runs
                .iter()
                .map(|run| run.get(index).map_or(f64::NAN, |(_, share)| *share))
                .collect();
            (limits[index].0, Estimate::of(&shares))
        })
        .collect()
}

/// The share of reports of a run with nothing blocked, percent.
fn empty(values: &Values) -> f64 {
    100.0 * values.get("blocked.le.0")
}

/// Bytes blocked on average, each report's rounded up to a power of two, which is what the
/// distribution is kept in.
fn blocked(values: &Values) -> f64 {
    let mut below = 0.0;
    let mut mean = 0.0;
    for (limit, share) in values.numbered("blocked.le.") {
        mean += limit * (share - below);
        below = share;
    }
    // What is above the last limit, or was not measured at all.
    if below > 0.999_999 { mean } else { f64::NAN }
}

/// A number of each path with IACK and another way.
fn pairs(
    depth: &Depth,
    results: &Results,
    other: &str,
    read: impl Fn(&Values, &Values) -> f64,
) -> Estimate {
    let values: Vec<f64> = depth
        .seeds(12, 60)
        .map(|seed| {
            let [iack, other] =
                [WAYS[0].1, other].map(|ack| results.get(&cell(depth, seed, ack).at(seed)));
            iack.zip(other)
                .map_or(f64::NAN, |(iack, other)| read(iack, other))
        })
        .collect();
    Estimate::of(&values)
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "bytes blocked, at most",
            "with IACK, %",
            "periodic only, %",
            "without IACK, %",
        ]),
        ..Outcome::default()
    };
    let all = WAYS.map(|(_, ack)| distribution(depth, results, ack));
    for (index, (limit, share)) in all[0].iter().enumerate() {
        let of = |way: usize| {
            all[way]
                .get(index)
                .map_or_else(String::new, |(_, share)| share.times(100.0).to_string())
        };
        outcome.numbers.row([
            format_number(*limit),
            share.times(100.0).to_string(),
            of(1),
            of(2),
        ]);
    }
    let nothing = WAYS.map(|(_, ack)| {
        let runs = depth.seeds(12, 60).map(|seed| {
            let values = results.get(&cell(depth, seed, ack).at(seed));
            values.map_or(f64::NAN, empty)
        });
        Estimate::of(&runs.collect::<Vec<_>>())
    });
    let more_empty = |other: usize| {
        pairs(depth, results, WAYS[other].1, |iack, other| {
            empty(iack) - empty(other)
        })
    };
    let (without, periodic) = (more_empty(2), more_empty(1));
    let times = pairs(depth, results, WAYS[2].1, |iack, other| {
        (blocked(other).max(1.0) / blocked(iack).max(1.0)).ln()
    });
    outcome.claims = vec![
        Claim::new(
            "With IACK the curve lies far to the left: at more acknowledgements no byte is \
                blocked than without, path by path",
            "far left",
            format!(
                "{} % against {} %: {without} points more",
                nothing[0], nothing[2]
            ),
            without.is_above(0.0),
        ),
        Claim::new(
            "An IACK is better than waiting for the next periodic acknowledgement: at more of \
                them no byte is blocked, path by path",
            "yes",
            format!(
                "{} % against {} %: {periodic} points more",
                nothing[0], nothing[1]
            ),
            periodic.is_above(0.0),
        ),
        Claim::new(
            "Memory: without IACK at least twice as many bytes are blocked on average (geometric mean over paths)",
            "significantly reduced",
            format!(
                "{} times as many ({} to {})",
                format_number(times.mean.exp()),
                format_number(times.low().exp()),
                format_number(times.high().exp())
            ),
            times.is_at_least(2.0_f64.ln()),
        ),
    ];
    let lines = WAYS
        .iter()
        .zip(&all)
        .zip([1, 4, 0])
        .map(|(((name, _), distribution), colour)| Line {
            name: (*name).into(),
            points: distribution
                .iter()
                .filter(|(limit, _)| *limit <= 1_048_576.0)
                .map(|(limit, share)| (limit / 1_024.0, 100.0 * share.mean))
                .collect(),
            colour,
            stroke: Stroke::Dotted,
            ..Line::default()
        })
        .collect();
    let svg = LineChart {
        id: "plot-5a".into(),
        title: "Bytes blocked behind a hole, cumulative".into(),
        description: format!(
            "No byte is blocked at {} % of the acknowledgements with IACK, at {} % if losses \
                wait for the periodic one, at {} % without reports.",
            nothing[0], nothing[1], nothing[2]
        ),
        x_label: "bytes blocked, at most, KiB".into(),
        y_label: "acknowledgements, %".into(),
        x_scale: Scale::Log,
        lines,
        ..LineChart::default()
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Share of periodic acknowledgements with at most this many bytes blocked above a hole.",
    ));
    outcome
}
