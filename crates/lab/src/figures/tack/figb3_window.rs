//! Appendix B.3: what window TACK needs, and what the figures are with the buffers that a user has.

use std::ops::RangeInclusive;

use tack_plot::{Line, LineChart, Stroke, format_number};

use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{percent, plot};
use crate::figures::readings::{by_buffers, mbps, seconds, utilisation};
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::Source;
use crate::scenarios::{
    FRIENDLINESS, LOSS_IACK, LOSSY_BOTH_WAYS, MECHANISMS, RTT_FAIRNESS, TWO_HOPS, WAN, WLAN_TCP,
};
use crate::{Plot, Values};
use tack_stats::Estimate;
use tack_stats::Finding;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "B3",
    title: "The receive buffer that TACK needs, and the default",
    about: "Appendix B.3 of the paper: with β acknowledgements in a round trip the window must \
        be β/(β − 1) bandwidth-delay products, 1.33 for β = 4. One BBR flow over 100 Mbit/s and \
        40 ms, with receive buffers of 0.5 to 4 bandwidth-delay products, with TACK and with \
        delayed ACK. Other figures have buffers of 64 MiB (the comparison of all mechanisms 16 MiB), \
        so that only the acknowledgements differ. The second part repeats runs of these figures with the default buffers of 6 MiB.",
    plan,
    reduce,
};

/// 100 Mbit/s times 40 ms, bytes.
const BDP: f64 = 500_000.0;
/// The window that the paper's equation (11) asks for, bandwidth-delay products.
const NEEDED: f64 = 4.0 / 3.0;
/// What waits behind a packet whose repair is lost too: that window, and a round trip for each
/// repair.
const REPAIRED: f64 = NEEDED + 2.0;
/// Six MiB, the buffers that a user has, MB.
const DEFAULT: f64 = 6.0 * 1.048_576;
/// How far goodput may be from that with large buffers to count as the same, percent.
const TOLERANCE: f64 = 2.0;

fn sizes(depth: &Depth) -> &'static [f64] {
    depth.pick(
        &[0.5, 1.0, NEEDED, 2.0, 4.0],
        &[0.5, 0.75, 1.0, 1.2, NEEDED, 1.5, 2.0, 3.0, 4.0],
    )
}

const WAYS: [(&str, &str); 2] = [("TACK", "tack"), ("delayed ACK (L = 2)", "delayed:2")];

fn cell(size: f64, ack: &str) -> Cell {
    Cell::new(&WAN)
        .set("wired.rate=100Mbps")
        .set("wired.delay=20ms")
        .set("wired.queue=1.0bdp")
        .set(format!("flow.0.receive_buffer={}B", (size * BDP).round()))
        .set(format!("flow.0.ack={ack}"))
        .set("duration=15s")
        .set("warmup=5s")
}

/// A run of another figure: which, what it is, and its settings.
struct Other {
    figure: &'static str,
    what: &'static str,
    source: &'static Source,
    settings: &'static [&'static str],
    /// The bandwidth-delay product, MB.
    bdp: f64,
}

/// Of each figure with buffers of its own the path that holds most.
const OTHERS: [Other; 9] = [
    Other {
        figure: "1, 8, 10(a) and 10(b)",
        what: "802.11n at 80 ms",
        source: &WLAN_TCP,
        settings: &["duration=15s"],
        bdp: 2.1,
    },
    Other {
        figure: "5(a)",
        what: "20 Mbit/s, 200 ms, 3 % loss",
        source: &LOSS_IACK,
        settings: &["wired.rate=20Mbps", "wired.loss=0.03", "wired.delay=100ms"],
        bdp: 0.5,
    },
    Other {
        figure: "5(b)",
        what: "100 Mbit/s, 200 ms, 1 % loss either way",
        source: &LOSSY_BOTH_WAYS,
        settings: &["duration=40s"],
        bdp: 2.5,
    },
    Other {
        figure: "13",
        what: "802.11g at 200 ms, 1 % loss either way",
        source: &WLAN_TCP,
        settings: &[
            "wlan.preset=tack-g",
            "wired.delay=100ms",
            "wired.loss=0.01",
            "wired.loss_reverse=0.01",
        ],
        bdp: 0.65,
    },
    Other {
        figure: "6(b) and 14",
        what: "114.68 Mbit/s, 90 ms",
        source: &WAN,
        settings: &[
            "wired.rate=114.68Mbps",
            "wired.delay=45ms",
            "wired.queue=450p",
        ],
        bdp: 1.3,
    },
    Other {
        figure: "15",
        what: "100 Mbit/s, 200 ms, with a flow with delayed ACK beside it, both together",
        source: &FRIENDLINESS,
        settings: &["wired.rate=100Mbps", "wired.delay=100ms"],
        bdp: 2.5,
    },
    Other {
        figure: "6(a)",
        what: "two hops of 802.11n and 100 ms",
        source: &TWO_HOPS,
        settings: &["duration=15s"],
        bdp: 1.1,
    },
    Other {
        figure: "S2",
        what: "50 Mbit/s, a flow of 160 ms beside one of 40 ms, both together",
        source: &RTT_FAIRNESS,
        settings: &[
            "flow.0.extra_delay=75ms",
            "wired.queue=1000000B",
            "duration=60s",
            "warmup=20s",
        ],
        bdp: 1.0,
    },
    Other {
        figure: "mechanisms",
        what: "802.11n, a download at 80 ms",
        source: &MECHANISMS,
        settings: &[
            "flow.0.to=each",
            "wlan.queue=875p",
            "wired.delay=40ms",
            "flow.0.congestion=bbr",
            "flow.0.ack=tack",
        ],
        bdp: 2.1,
    },
];

impl Other {
    /// The buffers of the figure's own runs.
    fn large(&self) -> &'static str {
        match *self.source == MECHANISMS {
            true => "16MiB",
            false => "64MiB",
        }
    }

    /// With large buffers, and with those that a user has.
    fn cells(&self) -> [Cell; 2] {
        [self.large(), "6MiB"].map(|buffer| {
            let flows = match *self.source == FRIENDLINESS || *self.source == RTT_FAIRNESS {
                true => 2,
                false => 1,
            };
            let cell = (0..flows).fold(Cell::new(self.source), |cell, flow| {
                cell.set(format!("flow.{flow}.receive_buffer={buffer}"))
                    .set(format!("flow.{flow}.send_buffer={buffer}"))
            });
            self.settings
                .iter()
                .fold(cell, |cell, setting| cell.set(*setting))
        })
    }

    fn claim(&self, depth: &Depth, results: &Results) -> Claim {
        let cells = self.cells();
        let pair = |read: fn(&Values, &Values) -> f64| {
            results.paired(cells.each_ref(), seeds(depth), read)
        };
        let rates = cells
            .each_ref()
            .map(|cell| results.estimate(cell, seeds(depth), total));
        let change = pair(|large, default| 100.0 * (total(default) / total(large) - 1.0));
        let [before, after] = cells
            .each_ref()
            .map(|cell| results.estimate(cell, seeds(depth), |values| 100.0 * by_buffers(values)));
        let more = pair(|large, default| by_buffers(default) - by_buffers(large));
        // What is missing, less the share of time for which the buffers limit.
        let pair_of_both = pair(|large, default| {
            100.0 * (total(default) / total(large) - 1.0 + by_buffers(default) - by_buffers(large))
        });
        Claim::new(
            format!(
                "Figure {}, {}: goodput with TACK is the same with default buffers, within {TOLERANCE} %",
                self.figure,
                self.what),
            "default parameters",
            format!(
                "{} against {} Mbit/s: {} %",
                rates[1], rates[0], change
            ),
            change.is_within(-TOLERANCE..=TOLERANCE),
        )
        .or(
            format!(
                "6 MiB are {} bandwidth-delay products of this path. A packet whose \
                    retransmission is lost too needs {}, so the buffers limit the sender for \
                    {after} % of the time, instead of {before} %. With {} the figure shows the \
                    effect of the acknowledgements and not of the buffer.",
                format_number(DEFAULT / self.bdp),
                format_number(REPAIRED),
                self.large(),
            ),
            // The wait explains what is missing.
            change
                .is_below(0.0)
                .and(DEFAULT / self.bdp < REPAIRED)
                .and(more.is_above(0.0))
                .and(pair_of_both.is_at_least(-TOLERANCE)),
        )
    }
}

/// Goodput of all flows, Mbit/s: how two share a path differs from run to run.
fn total(values: &Values) -> f64 {
    let second = values.get("flows.1.goodput_bps") / 1e6;
    mbps(values) + if second.is_nan() { 0.0 } else { second }
}

fn seeds(depth: &Depth) -> RangeInclusive<u64> {
    depth.seeds(3, 5)
}

fn plan(depth: &Depth) -> Vec<Point> {
    let sizes = sizes(depth).iter();
    let sweep = sizes.flat_map(|size| WAYS.map(|(_, ack)| cell(*size, ack)));
    let others = OTHERS.iter().flat_map(Other::cells);
    sweep
        .chain(others)
        .flat_map(|cell| seeds(depth).map(move |seed| cell.at(seed)))
        .collect()
}

/// Acknowledgements in a round trip of the path.
fn acks_per_round_trip(values: &Values) -> f64 {
    values.get("flows.0.acks") / seconds(values) * values.get("flows.0.min_rtt_us") / 1e6
}

fn share(values: &Values) -> f64 {
    100.0 * utilisation(values, 100.0)
}

/// The mean of what `read` says, with a receive buffer of `size` bandwidth-delay products.
fn of(
    depth: &Depth,
    results: &Results,
    size: f64,
    ack: &str,
    read: fn(&Values) -> f64,
) -> Estimate {
    results.estimate(&cell(size, ack), seeds(depth), read)
}

/// The window that TACK needs, and the cost of a smaller one.
fn claims(depth: &Depth, results: &Results) -> Vec<Claim> {
    let enough = sizes(depth).iter().filter(|size| **size >= NEEDED);
    let full = of(depth, results, 4.0, "tack", share);
    let least = of(depth, results, NEEDED, "tack", share);
    let rare: Vec<Estimate> = enough
        .map(|size| of(depth, results, *size, "tack", acks_per_round_trip))
        .collect();
    let half = WAYS.map(|(_, ack)| of(depth, results, 0.5, ack, share));
    let acks = WAYS.map(|(_, ack)| of(depth, results, 0.5, ack, acks_per_round_trip));
    let one = [share, acks_per_round_trip].map(|read| of(depth, results, 1.0, "tack", read));
    vec![
        Claim::new(
            "A window of β/(β − 1) bandwidth-delay products is enough: utilisation with a \
                receive buffer of 1.33 equals that with 4, within a point",
            "1.33",
            format!("{least} against {full} %"),
            least.less(full).is_within(-1.0..=1.0),
        ),
        Claim::new(
            "From there on TACK acknowledges β = 4 times a round trip, within 5 %",
            "4",
            rare.iter()
                .map(Estimate::to_string)
                .collect::<Vec<_>>()
                .join(", "),
            Finding::all(rare.iter().map(|acks| acks.is_near(4.0, 0.05))).and(!rare.is_empty()),
        ),
        Claim::new(
            "With a smaller window TACK acknowledges more often instead of stopping the sender: \
                with half a bandwidth-delay product it has the utilisation of delayed ACK, \
                within a point",
            "–",
            format!("{} against {} %", half[0], half[1]),
            half[0].less(half[1]).is_within(-1.0..=1.0),
        ),
        Claim::new(
            "The cost is acknowledgements: with half a bandwidth-delay product TACK sends as \
                many as delayed ACK, within 5 %, and gains nothing",
            "–",
            format!(
                "{} against {} in a round trip; with one bandwidth-delay product {} ({} % utilisation)",
                acks[0], acks[1], one[1], one[0]
            ),
            acks[0]
                .less(acks[1])
                .times(1.0 / acks[1].mean)
                .is_within(-0.05..=0.05),
        ),
    ]
}

/// The figures that have large buffers, measured with the default ones.
fn default_buffers(depth: &Depth, results: &Results) -> Table {
    let mut defaults = Table::new([
        "figures",
        "path",
        "64 MiB, Mbit/s",
        "6 MiB, Mbit/s",
        "limited by buffers with 6 MiB, % of time",
    ]);
    defaults.part = "Default buffers";
    for other in &OTHERS {
        let cells = other.cells();
        let [large, default] = cells
            .each_ref()
            .map(|cell| results.estimate(cell, seeds(depth), total));
        let limited = results.estimate(&cells[1], seeds(depth), by_buffers);
        defaults.row([
            other.figure.into(),
            other.what.into(),
            large.to_string(),
            default.to_string(),
            percent(limited.times(100.0)),
        ]);
    }
    defaults
}

/// Utilisation and acknowledgements, by the receive buffer.
fn plots(depth: &Depth, results: &Results) -> Vec<Plot> {
    let half = of(depth, results, 0.5, "tack", share);
    let acks = of(depth, results, 0.5, "tack", acks_per_round_trip);
    let least = of(depth, results, NEEDED, "tack", share);
    let rare = sizes(depth).iter().find(|size| **size >= NEEDED);
    let rare = rare.map_or_else(String::new, |size| {
        of(depth, results, *size, "tack", acks_per_round_trip).to_string()
    });
    let line = |index: usize, read: fn(&Values) -> f64| {
        let (name, ack) = WAYS[index];
        let points = sizes(depth)
            .iter()
            .map(|size| (*size, of(depth, results, *size, ack, read).mean));
        Line {
            name: name.into(),
            points: points.collect(),
            colour: [1, 0][index],
            stroke: Stroke::Dotted,
            ..Line::default()
        }
    };
    let chart = |id: &str, title: &str, y_label: &str, read: fn(&Values) -> f64| {
        LineChart {
        id: id.into(),
        title: title.into(),
        description: format!(
            "With half a bandwidth-delay product TACK uses {} % of the link with {} acknowledgements in a round trip; with 1.33 {} % with {}.",
            half,
            acks,
            least,
            rare
        ),
        x_label: "receive buffer, bandwidth-delay products".into(),
        y_label: y_label.into(),
        lines: vec![line(0, read), line(1, read)],
        ..LineChart::default()
    }
    .to_svg()
    };
    let charts = [
        chart(
            "plot-B3",
            "Utilisation by the size of the receive buffer",
            "utilisation, %",
            share,
        ),
        chart(
            "plot-B3-acks",
            "Acknowledgements by the size of the receive buffer",
            "ACKs in a round trip",
            acks_per_round_trip,
        ),
    ];
    let mut plots = Vec::new();
    for (svg, caption) in charts.into_iter().zip([
        "Utilisation of 100 Mbit/s at 40 ms, by the receive buffer.",
        "Acknowledgements in a round trip, by the receive buffer.",
    ]) {
        plots.push(plot(svg, caption));
    }
    plots
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "receive buffer, bandwidth-delay products",
            "acknowledged by",
            "utilisation, %",
            "ACKs in a round trip",
        ]),
        ..Outcome::default()
    };
    for size in sizes(depth) {
        for (name, ack) in WAYS {
            outcome.numbers.row([
                format_number(*size),
                name.into(),
                of(depth, results, *size, ack, share).to_string(),
                of(depth, results, *size, ack, acks_per_round_trip).to_string(),
            ]);
        }
    }
    outcome.claims = claims(depth, results);
    let others = OTHERS.iter().map(|other| other.claim(depth, results));
    outcome.claims.extend(others);
    outcome.further.push(default_buffers(depth, results));
    outcome.notes.push(
        "Figures S3 and 17 cannot use default buffers: the bandwidth-delay products of 1 Gbit/s \
            and 120 or 200 ms are 15 and 25 MB. Figure 8a measures 802.11ac at 200 ms, with 14.7 \
            MB, with the default. Figures 3, 7, 9 and 11 use no TCP buffers or the default."
            .into(),
    );
    outcome.plots = plots(depth, results);
    outcome
}
