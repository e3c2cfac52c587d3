//! Figure 14: how transports rank on wide-area paths.

use tack_plot::{Group, ValueBars, format_number};

use super::{bar, mbps, plot};
use crate::Values;
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Table};
use crate::point::{Cell, Point};
use crate::scenarios::WAN;
use crate::stats::Estimate;
use crate::store::Results;

pub(super) const FIGURE: Figure = Figure {
    id: "14",
    title: "Ranking on wide-area paths by power",
    about: "One flow at a time over paths that the Pantheon calibrated on real ones, and its test links: slow Poisson links, fast long \
            ones, policers, sparse delivery of acknowledgements, short buffers. Each path ranks the transports by \
            log(mean throughput / 95th percentile of one-way delay); the highest power has rank 1. All are this program's: the \
            other schemes of the paper's figure (PCC, Copa, Sprout, …) are not here.",
    plan,
    reduce,
};

const TRANSPORTS: [(&str, &str, &str); 7] = [
    ("BBR with TACK", "bbr", "tack"),
    ("BBR realtime with TACK", "bbr:profile=realtime", "tack"),
    ("CUBIC with TACK", "cubic", "tack"),
    ("TCP BBR", "bbr", "delayed:2"),
    ("TCP CUBIC", "cubic", "delayed:2"),
    ("TCP NewReno", "new_reno", "delayed:2"),
    ("TCP Vegas", "vegas", "delayed:2"),
];

/// Name and settings of the paths.
const PATHS: [(&str, &[&str]); 18] = [
    (
        "0.57 Mbit/s Poisson, 28 ms, 4.77 % loss",
        &[
            "wired.trace.file=poisson-0.57.trace",
            "wired.delay=28ms",
            "wired.queue=14p",
            "wired.loss=0.0477",
        ],
    ),
    (
        "2.64 Mbit/s Poisson, 88 ms",
        &[
            "wired.trace.file=poisson-2.64.trace",
            "wired.delay=88ms",
            "wired.queue=130p",
        ],
    ),
    (
        "3.04 Mbit/s Poisson, 130 ms",
        &[
            "wired.trace.file=poisson-3.04.trace",
            "wired.delay=130ms",
            "wired.queue=426p",
        ],
    ),
    (
        "100.42 Mbit/s, 27 ms",
        &[
            "wired.rate=100.42Mbps",
            "wired.delay=27ms",
            "wired.queue=173p",
        ],
    ),
    (
        "77.72 Mbit/s, 51 ms, 0.06 % loss",
        &[
            "wired.rate=77.72Mbps",
            "wired.delay=51ms",
            "wired.queue=94p",
            "wired.loss=0.0006",
        ],
    ),
    (
        "114.68 Mbit/s, 45 ms",
        &[
            "wired.rate=114.68Mbps",
            "wired.delay=45ms",
            "wired.queue=450p",
        ],
    ),
    (
        "policer 12 Mbit/s, RTT 20 ms",
        &[
            "wired.rate=12Mbps",
            "wired.delay=10ms",
            "wired.queue=1p",
            "wired.queue_reverse=1000p",
        ],
    ),
    (
        "policer 60 Mbit/s, RTT 20 ms",
        &[
            "wired.rate=60Mbps",
            "wired.delay=10ms",
            "wired.queue=1p",
            "wired.queue_reverse=1000p",
        ],
    ),
    (
        "policer 108 Mbit/s, RTT 20 ms",
        &[
            "wired.rate=108Mbps",
            "wired.delay=10ms",
            "wired.queue=1p",
            "wired.queue_reverse=1000p",
        ],
    ),
    (
        "policer 12 Mbit/s, RTT 100 ms",
        &[
            "wired.rate=12Mbps",
            "wired.delay=50ms",
            "wired.queue=1p",
            "wired.queue_reverse=1000p",
        ],
    ),
    (
        "policer 60 Mbit/s, RTT 100 ms",
        &[
            "wired.rate=60Mbps",
            "wired.delay=50ms",
            "wired.queue=1p",
            "wired.queue_reverse=1000p",
        ],
    ),
    (
        "policer 108 Mbit/s, RTT 100 ms",
        &[
            "wired.rate=108Mbps",
            "wired.delay=50ms",
            "wired.queue=1p",
            "wired.queue_reverse=1000p",
        ],
    ),
    (
        "ACKs delivered each 100 ms",
        &[
            "wired.rate=12Mbps",
            "wired.delay=10ms",
            "wired.trace_reverse.file=one-in-100ms.trace",
        ],
    ),
    (
        "ACKs delivered each 200 ms",
        &[
            "wired.rate=12Mbps",
            "wired.delay=10ms",
            "wired.trace_reverse.file=ten-in-200ms.trace",
        ],
    ),
    (
        "12 Mbit/s, 30 ms, buffer 1/10 bdp",
        &[
            "wired.rate=12Mbps",
            "wired.delay=30ms",
            "wired.queue=0.1bdp",
        ],
    ),
    (
        "12 Mbit/s, 30 ms, buffer 1/3 bdp",
        &[
            "wired.rate=12Mbps",
            "wired.delay=30ms",
            "wired.queue=0.333bdp",
        ],
    ),
    (
        "12 Mbit/s, 30 ms, buffer 1/2 bdp",
        &[
            "wired.rate=12Mbps",
            "wired.delay=30ms",
            "wired.queue=0.5bdp",
        ],
    ),
    (
        "12 Mbit/s, 30 ms, buffer 1 bdp",
        &[
            "wired.rate=12Mbps",
            "wired.delay=30ms",
            "wired.queue=1.0bdp",
        ],
    ),
];

fn cell(path: usize, transport: usize) -> Cell {
    let (_, congestion, ack) = TRANSPORTS[transport];
    let cell = Cell::new(&WAN)
        .set(format!("flow.0.congestion={congestion}"))
        .set(format!("flow.0.ack={ack}"));
    PATHS[path]
        .1
        .iter()
        .fold(cell, |cell, setting| cell.set(*setting))
}

fn plan(depth: &Depth) -> Vec<Point> {
    (0..PATHS.len())
        .flat_map(|path| (0..TRANSPORTS.len()).map(move |transport| cell(path, transport)))
        .flat_map(|cell| depth.seeds(1, 10).map(move |seed| cell.at(seed)))
        .collect()
}

/// The paper's utility: log of throughput over the 95th percentile of one-way delay.
fn power(values: &Values) -> f64 {
    (mbps(values) / (values.get("flows.0.owd_p95_us") / 1e6)).ln()
}

/// The rank of each transport, by power: 1 is the highest; equal powers share the mean of their ranks. None without all.
fn ranks(powers: &[f64]) -> Option<Vec<f64>> {
    if powers.iter().any(|power| power.is_nan()) {
        return None;
    }
    let rank = |power: f64| {
        let above = powers.iter().filter(|other| **other > power).count();
        let equal = powers.iter().filter(|other| **other == power).count();
        above as f64 + (equal as f64 + 1.0) / 2.0
    };
    Some(powers.iter().map(|power| rank(*power)).collect())
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new(["path", "transport", "Mbit/s", "p95 one way, ms", "rank"]),
        ..Outcome::default()
    };
    // Ranks of each transport on every path with every seed.
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); TRANSPORTS.len()];
    for (path, (name, _)) in PATHS.into_iter().enumerate() {
        let mut of_path: Vec<Vec<f64>> = vec![Vec::new(); TRANSPORTS.len()];
        for seed in depth.seeds(1, 10) {
            let powers: Vec<f64> = (0..TRANSPORTS.len())
                .map(|transport| {
                    let values = results.get(&cell(path, transport).at(seed));
                    values.map_or(f64::NAN, power)
                })
                .collect();
            let ranks = ranks(&powers).unwrap_or_else(|| vec![f64::NAN; powers.len()]);
            for (all, rank) in of_path.iter_mut().zip(ranks) {
                all.push(rank);
            }
        }
        for (transport, (transport_name, ..)) in TRANSPORTS.into_iter().enumerate() {
            let cell = cell(path, transport);
            let of = |read: fn(&Values) -> f64| results.estimate(&cell, depth.seeds(1, 10), read);
            outcome.numbers.row([
                name.into(),
                transport_name.into(),
                of(mbps).to_string(),
                of(|values| values.get("flows.0.owd_p95_us") / 1e3).to_string(),
                Estimate::of(&of_path[transport]).to_string(),
            ]);
            all[transport].extend_from_slice(&of_path[transport]);
        }
    }
    let mean = [0, 1, 2, 3, 4, 5, 6].map(|transport: usize| Estimate::of(&all[transport]));
    let worse_than_tack = mean
        .iter()
        .filter(|other| other.mean > mean[0].mean)
        .count();
    let texts: Vec<_> = TRANSPORTS
        .iter()
        .zip(mean)
        .map(|((name, ..), rank)| format!("{name} {}", format_number(rank.mean)))
        .collect();
    outcome.claims = vec![
        Claim::new(
            "BBR with TACK is in the better half of the transports, by mean rank",
            "acceptable, among the best",
            texts.join(", "),
            worse_than_tack >= 4,
        )
        .or(
            "Transports with the same controller are close, and their order differs between seeds; the paper's figure has wild cross \
             traffic and other schemes.",
            mean[0].mean <= mean[3].mean + 0.75,
        ),
        Claim::new(
            "BBR ranks with TACK about as with delayed ACK: fewer acknowledgements do no harm on wired paths",
            "less gain than in WLAN, no loss",
            format!("{} against {}", mean[0], mean[3]),
            mean[0].mean <= mean[3].mean + 0.75,
        ),
    ];
    let svg = ValueBars {
        id: "plot-14".into(),
        title: "Mean rank by power over eighteen wide-area paths".into(),
        description: format!("Lower is better: {}.", texts.join(", ")),
        label: "mean rank, 1 is best".into(),
        series: vec![("with TACK".into(), 1), ("TCP, delayed ACK".into(), 0)],
        reference: String::new(),
        groups: TRANSPORTS
            .iter()
            .zip(mean)
            .map(|((name, _, ack), rank)| Group {
                name: (*name).into(),
                values: vec![bar(usize::from(*ack != "tack"), rank, None)],
            })
            .collect(),
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Mean rank by log(throughput / p95 one-way delay) over 18 paths; the interval is over paths and seeds.",
    ));
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_count_from_the_highest_power() {
        assert_eq!(ranks(&[1.0, 3.0, 2.0]), Some(vec![3.0, 1.0, 2.0]));
        assert_eq!(ranks(&[2.0, 2.0, 1.0]), Some(vec![1.5, 1.5, 3.0]));
        assert_eq!(ranks(&[2.0, f64::NAN]), None);
    }
}
