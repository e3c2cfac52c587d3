//! The sequel's RTT fairness: shares of a bottleneck when round trips differ.

use tack_base::random::RandomStream;
use tack_plot::{Line, LineChart, Scale, Stroke, Whisker, format_number};

use crate::Values;
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::plot;
use crate::figures::transport::Transport;
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::RTT_FAIRNESS;
use tack_stats::Estimate;
use tack_stats::Finding;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "S2",
    title: "RTT fairness depends on the controller, not on the acknowledgements (sequel)",
    about: "Two flows of the same kind share 50 Mbit/s. The first has a minimum RTT of 20 to 160 \
        ms, the second of 40 ms. The buffer is one bandwidth-delay product of the longer RTT. \
        Both start within the first second, at random. Goodput is measured from 40 s to 120 s \
        (quick form: 20 s to 60 s), and for CUBIC with 160 and 40 ms also from 100 s to 300 s, because \
        it converges slowly. The sequel's numbers are not available, so two things are \
        compared: the shape (CUBIC favours the shorter RTT, BBR the longer), and TACK with \
        delayed ACK under the same controller.",
    plan,
    reduce,
};

const TRANSPORTS: [Transport; 4] = [
    Transport::new("BBR with TACK", "bbr", "tack"),
    Transport::new("BBR with delayed ACK", "bbr", "delayed:2"),
    Transport::new("CUBIC with TACK", "cubic", "tack"),
    Transport::new("CUBIC with delayed ACK", "cubic", "delayed:2"),
];
/// Colours of their lines.
const COLOURS: [usize; 4] = [1, 0, 3, 4];

/// Smallest round trips of the first flow, milliseconds.
const QUICK_MS: [u64; 3] = [20, 40, 160];
const FULL_MS: [u64; 4] = [20, 40, 80, 160];
/// That of the second, and what both have in common.
const SECOND_MS: u64 = 40;
const COMMON_MS: u64 = 10;
/// The bottleneck, Mbit/s.
const RATE: f64 = 50.0;

fn round_trips(depth: &Depth) -> &'static [u64] {
    depth.pick(&QUICK_MS, &FULL_MS)
}

/// How long a run takes, and what of it is not measured.
type Span = [&'static str; 2];

/// Long enough for CUBIC to converge.
const LONG: Span = ["duration=300s", "warmup=100s"];
/// The round trip at which that takes longest.
const LONG_MS: u64 = 160;

fn span(depth: &Depth) -> Span {
    depth.pick(
        ["duration=60s", "warmup=20s"],
        ["duration=120s", "warmup=40s"],
    )
}

fn point(span: Span, (congestion, ack): (&str, &str), rtt_ms: u64, seed: u64) -> Point {
    let mut random = RandomStream::new(2, "figure S2", seed);
    let own = |rtt_ms: u64| (rtt_ms - COMMON_MS) / 2;
    // 50 Mbit/s are 6,250 bytes a millisecond.
    let queue = 6_250 * rtt_ms.max(SECOND_MS);
    let mut cell = Cell::new(&RTT_FAIRNESS)
        .set(span[0])
        .set(span[1])
        .set(format!("wired.queue={queue}B"))
        .set(format!("flow.0.extra_delay={}ms", own(rtt_ms)))
        .set(format!("flow.1.extra_delay={}ms", own(SECOND_MS)));
    for flow in [0, 1] {
        cell = cell
            .set(format!("flow.{flow}.start={}ms", random.below(1_000)))
            .set(format!("flow.{flow}.congestion={congestion}"))
            .set(format!("flow.{flow}.ack={ack}"));
    }
    cell.at(seed)
}

fn plan(depth: &Depth) -> Vec<Point> {
    let mut points = Vec::new();
    for Transport {
        congestion, ack, ..
    } in TRANSPORTS
    {
        for &rtt_ms in round_trips(depth) {
            let seeds = depth.seeds(2, 10);
            points.extend(seeds.map(|seed| point(span(depth), (congestion, ack), rtt_ms, seed)));
        }
        if congestion == "cubic" {
            let seeds = depth.seeds(2, 10);
            points.extend(seeds.map(|seed| point(LONG, (congestion, ack), LONG_MS, seed)));
        }
    }
    points
}

/// How two flows of a kind share the bottleneck.
struct Division {
    rtt_ms: u64,
    /// Logarithm of the first's goodput over the second's.
    log_ratio: Estimate,
    /// Of the goodputs, Mbit/s.
    goodputs: [Estimate; 2],
    jain: Estimate,
    /// Jain's index of each seed.
    jains: Vec<f64>,
    utilisation: Estimate,
    /// Acknowledgements for 100 data segments, and data segments sent again, percent.
    acks: Estimate,
    repeated: Estimate,
}

/// Jain's index of two shares: 1 when they are equal, a half when one has all.
fn jain([a, b]: [f64; 2]) -> f64 {
    (a + b).powi(2) / (2.0 * (a * a + b * b))
}

impl Division {
    fn of(depth: &Depth, results: &Results, span: Span, way: (&str, &str), rtt_ms: u64) -> Self {
        let of_seeds = |read: &dyn Fn(&Values) -> f64| -> Vec<f64> {
            depth
                .seeds(2, 10)
                .map(|seed| {
                    let values = results.get(&point(span, way, rtt_ms, seed));
                    values.map_or(f64::NAN, read)
                })
                .collect()
        };
        let estimate = |read: &dyn Fn(&Values) -> f64| Estimate::of(&of_seeds(read));
        let both = |values: &Values, name: &str| {
            [0, 1].map(|flow| values.get(&format!("flows.{flow}.{name}")))
        };
        let goodputs = |values: &Values| both(values, "goodput_bps").map(|bps| bps / 1e6);
        let per_hundred = |values: &Values, name: &str| {
            let [events, segments] =
                [name, "data_segments"].map(|name| both(values, name).iter().sum::<f64>());
            100.0 * events / segments
        };
        Self {
            rtt_ms,
            log_ratio: estimate(&|values| {
                let [first, second] = goodputs(values);
                (first / second).ln()
            }),
            goodputs: [0, 1].map(|flow: usize| estimate(&|values| goodputs(values)[flow])),
            jain: estimate(&|values| jain(goodputs(values))),
            jains: of_seeds(&|values| jain(goodputs(values))),
            utilisation: estimate(&|values| {
                100.0 * goodputs(values).iter().sum::<f64>() / (RATE * 1_448.0 / 1_500.0)
            }),
            acks: estimate(&|values| per_hundred(values, "acks")),
            repeated: estimate(&|values| per_hundred(values, "retransmitted_segments")),
        }
    }

    /// Geometric mean of the ratio, and the ends of its interval.
    fn ratio(&self) -> [f64; 3] {
        let Estimate {
            mean, half_width, ..
        } = self.log_ratio;
        [mean, mean - half_width, mean + half_width].map(f64::exp)
    }

    /// Its row of the table.
    fn row(&self, name: String) -> [String; 8] {
        [
            name,
            format!("{} and {SECOND_MS}", self.rtt_ms),
            format!("{} and {}", self.goodputs[0], self.goodputs[1]),
            self.ratio_text(),
            self.jain.to_string(),
            self.utilisation.to_string(),
            self.acks.to_string(),
            self.repeated.to_string(),
        ]
    }

    fn ratio_text(&self) -> String {
        let [mean, low, high] = self.ratio().map(format_number);
        format!("{mean} ({low} to {high})")
    }
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "transport",
            "RTTs, ms",
            "goodputs, Mbit/s",
            "ratio",
            "Jain's index",
            "link used, %",
            "ACKs per 100 segments",
            "sent again, %",
        ]),
        ..Outcome::default()
    };
    let all = TRANSPORTS.map(|transport| -> Vec<Division> {
        let Transport {
            congestion, ack, ..
        } = transport;
        round_trips(depth)
            .iter()
            .map(|&rtt_ms| Division::of(depth, results, span(depth), (congestion, ack), rtt_ms))
            .collect()
    });
    for (Transport { name, .. }, divisions) in TRANSPORTS.iter().zip(&all) {
        for division in divisions {
            outcome.numbers.row(division.row((*name).into()));
        }
    }
    let long = ["tack", "delayed:2"]
        .map(|ack| Division::of(depth, results, LONG, ("cubic", ack), LONG_MS));
    for (name, division) in ["CUBIC with TACK", "CUBIC with delayed ACK"]
        .iter()
        .zip(&long)
    {
        outcome
            .numbers
            .row(division.row(format!("{name}, 100 s to 300 s")));
    }
    outcome.claims = claims(&all, &long);
    outcome.plots.push(plot(
        chart(&all),
        "Goodput of the other flow over that of the 40 ms flow, by the other's RTT, with 95 % \
            confidence intervals if there are enough seeds; 1 is an equal share.",
    ));
    outcome
}

/// The logarithm of the ratio at round trip `rtt_ms`.
fn ratio_at(divisions: &[Division], rtt_ms: u64) -> Estimate {
    let division = divisions.iter().find(|one| one.rtt_ms == rtt_ms);
    division.map_or(Estimate::of(&[]), |one| one.log_ratio)
}

fn ratios(divisions: &[Division]) -> String {
    let each = divisions
        .iter()
        .map(|one| format!("{} ms: {}", one.rtt_ms, one.ratio_text()));
    each.collect::<Vec<_>>().join("; ")
}

/// How much higher Jain's index is with `tack` than with `delayed`, seed by seed.
fn fairer(tack: &Division, delayed: &Division) -> Estimate {
    let pairs = tack.jains.iter().zip(&delayed.jains);
    Estimate::of(
        &pairs
            .map(|(tack, delayed)| tack - delayed)
            .collect::<Vec<_>>(),
    )
}

fn claims(
    [bbr_tack, bbr, cubic_tack, cubic]: &[Vec<Division>; 4],
    [long_tack, long_delayed]: &[Division; 2],
) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (name, divisions) in [("BBR with delayed ACK", bbr), ("BBR with TACK", bbr_tack)] {
        claims.push(Claim::new(
            format!(
                "{name} favours the longer RTT: ratio at each RTT, at most 2/3 at 20 ms, at \
                least 1.5 at 160 ms"
            ),
            "shape: longer RTT ahead",
            ratios(divisions),
            ratio_at(divisions, 20)
                .is_at_most((2.0_f64 / 3.0).ln())
                .and(ratio_at(divisions, 160).is_at_least(1.5_f64.ln())),
        ));
    }
    for (name, divisions, long) in [
        ("CUBIC with delayed ACK", cubic, long_delayed),
        ("CUBIC with TACK", cubic_tack, long_tack),
    ] {
        let leans = ratio_at(divisions, 160)
            .less(ratio_at(divisions, 20))
            .is_below(0.0);
        claims.push(Claim::new(
            format!(
                "{name} favours the shorter RTT, if any: less for 160 ms than for 20 ms, \
                    and Jain's index at least 0.85"
            ),
            "shape: shorter RTT ahead",
            ratios(divisions),
            leans.and(Finding::all(
                divisions.iter().map(|one| one.jain.is_at_least(0.85)),
            )),
        ).or(
            format!(
                "The flows still converge: the one of {LONG_MS} ms has the longer way to its share. From 100 s to 300 s \
                 Jain's index is {}, and the shorter RTT is ahead.",
                long.jain
            ),
            long.jain.is_at_least(0.85).and(long.log_ratio.is_below(0.0)),
        ));
    }
    for (name, tack, delayed) in [("BBR", bbr_tack, bbr), ("CUBIC", cubic_tack, cubic)] {
        let pairs = || tack.iter().zip(delayed);
        let texts = pairs().map(|(tack, delayed)| {
            format!(
                "{} ms: {} against {}, difference {}",
                tack.rtt_ms,
                tack.jain,
                delayed.jain,
                fairer(tack, delayed)
            )
        });
        let claim = Claim::new(
            format!(
                "{name} is as fair with TACK as with delayed ACK: Jain's index lower by 0.05 at most"
            ),
            "shape: no worse",
            texts.collect::<Vec<_>>().join("; "),
            Finding::all(pairs().map(|(tack, delayed)| fairer(tack, delayed).is_above(-0.05))),
        );
        claims.push(match name {
            "CUBIC" => claim.or(
                format!(
                    "With TACK it converges later: from 100 s to 300 s Jain's index for {LONG_MS} ms is {} against {}.",
                    long_tack.jain, long_delayed.jain
                ),
                fairer(long_tack, long_delayed).is_above(-0.05),
            ),
            _ => claim,
        });
    }
    let saved: Vec<Estimate> = [(bbr_tack, bbr), (cubic_tack, cubic)]
        .iter()
        .flat_map(|(tack, delayed)| tack.iter().zip(delayed.iter()))
        .map(|(tack, delayed)| {
            delayed
                .acks
                .less(tack.acks)
                .times(100.0 / delayed.acks.mean)
        })
        .collect();
    claims.push(Claim::new(
        "TACK sends at most half as many acknowledgements per segment, for all RTTs and \
            controllers",
        "shape: fewer",
        format!("{} % fewer at least", least(&saved)),
        Finding::all(saved.iter().map(|percent| percent.is_at_least(50.0))),
    ));
    let used: Vec<Estimate> = [bbr_tack, bbr, cubic_tack, cubic]
        .into_iter()
        .flatten()
        .map(|one| one.utilisation)
        .collect();
    claims.push(Claim::new(
        "Together the two flows fill the link, to 93 % at least",
        "–",
        format!("{} % at least", least(&used)),
        Finding::all(used.iter().map(|percent| percent.is_at_least(93.0))),
    ));
    claims
}

/// The estimate with the least mean; no number when one of them is none.
fn least(values: &[Estimate]) -> Estimate {
    let missing = values.iter().find(|one| one.mean.is_nan());
    let least = values.iter().min_by(|a, b| a.mean.total_cmp(&b.mean));
    *missing.or(least).unwrap_or(&Estimate::of(&[]))
}

fn chart(all: &[Vec<Division>; 4]) -> tack_plot::Svg {
    let lines = TRANSPORTS
        .iter()
        .zip(COLOURS)
        .zip(all)
        .map(|((transport, colour), divisions)| {
            let at = |one: &Division| one.rtt_ms as f64;
            Line {
                name: transport.name.into(),
                points: divisions
                    .iter()
                    .map(|one| (at(one), one.ratio()[0]))
                    .collect(),
                // Of two seeds an interval is so wide that it hides everything else.
                whiskers: divisions
                    .iter()
                    .filter(|one| one.log_ratio.count > 2)
                    .map(|one| Whisker {
                        x: at(one),
                        low: one.ratio()[1],
                        high: one.ratio()[2],
                    })
                    .collect(),
                colour,
                stroke: if transport.ack == "tack" {
                    Stroke::Dotted
                } else {
                    Stroke::Dashed
                },
            }
        })
        .collect();
    let texts = TRANSPORTS
        .iter()
        .zip(all)
        .map(|(transport, divisions)| format!("{}: {}.", transport.name, ratios(divisions)));
    LineChart {
        id: "plot-S2".into(),
        title: "Goodput of a flow over that of one with an RTT of 40 ms".into(),
        description: texts.collect::<Vec<_>>().join(" "),
        x_label: "RTT of the flow, ms".into(),
        y_label: "its goodput over the other's".into(),
        y_scale: Scale::Log,
        lines,
        ..LineChart::default()
    }
    .to_svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_for_equal_shares() {
        assert_eq!(jain([3.0, 3.0]), 1.0);
        assert_eq!(jain([3.0, 0.0]), 0.5);
        assert!((jain([4.0, 1.0]) - 25.0 / 34.0).abs() < 1e-12);
    }
}
