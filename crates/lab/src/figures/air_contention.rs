//! Figure 3: acknowledgements contend with the data for the air.

use tack_plot::{Line, LineChart, Scale, Stroke, format_number};

use super::media::Medium;
use super::{LINKS, Link, mbps, plot, seconds};
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Table};
use crate::measure::Values;
use crate::point::{Cell, Point};
use crate::scenarios::WLAN_UDP;
use crate::stats::Estimate;
use crate::store::Results;

pub(super) const FIGURE: Figure = Figure {
    id: "3",
    title: "Acknowledgements contend with data for the air",
    about: "The paper's UDP tool over 802.11n at a PHY rate of 300 Mbit/s: 100 Mbit/s of data, and one 64-byte acknowledgement for every L \
            datagrams. Ideal media, with nobody else: with aggregation, where 100 Mbit/s leave room for everything, and without, where \
            every acknowledgement costs an access of its own. Busy media, with aggregation: beside 10 neighbours with a load of 50 % \
            (and of 20 % in the full form; figure 10(a) says what stands behind these), and beside 4 saturated neighbours.",
    plan,
    reduce,
};

const COUNTS: [u64; 5] = [1, 2, 4, 8, 16];

/// The air, and whether frames are aggregated.
#[derive(Clone, Copy)]
struct Air {
    medium: Medium,
    aggregation: Aggregation,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Aggregation {
    On,
    Off,
}

impl Air {
    const fn new(medium: Medium, aggregation: Aggregation) -> Self {
        Self {
            medium,
            aggregation,
        }
    }

    fn name(self) -> String {
        match self.aggregation {
            Aggregation::On => format!("{}, aggregation", self.medium.name()),
            Aggregation::Off => format!("{}, no aggregation", self.medium.name()),
        }
    }
}

/// 802.11n.
const LINK: Link = LINKS[2];

const IDEAL: Air = Air::new(Medium::Ideal, Aggregation::On);
const SINGLE: Air = Air::new(Medium::Ideal, Aggregation::Off);
const BUSY: Air = Air::new(Medium::Load(50), Aggregation::On);
const SATURATED: Air = Air::new(Medium::Saturated(4), Aggregation::On);

fn airs(depth: &Depth) -> &'static [Air] {
    const LESS: Air = Air::new(Medium::Load(20), Aggregation::On);
    depth.pick(
        &[IDEAL, SINGLE, BUSY, SATURATED],
        &[IDEAL, SINGLE, BUSY, SATURATED, LESS],
    )
}

fn cell(depth: &Depth, air: Air, every: u64) -> Cell {
    let cell = Cell::new(&WLAN_UDP).set("flow.0.rate=100Mbps");
    let cell = match air.aggregation {
        Aggregation::On => cell,
        Aggregation::Off => cell.set("wlan.ampdu_max_bytes=0"),
    };
    air.medium
        .of(cell, LINK)
        .set(format!("flow.0.ack_every={every}"))
        .set("flow.0.ack_size=64")
        .set(depth.pick("duration=11s", "duration=61s"))
}

fn plan(depth: &Depth) -> Vec<Point> {
    airs(depth)
        .iter()
        .flat_map(|air| COUNTS.map(|every| cell(depth, *air, every)))
        .flat_map(|cell| depth.seeds(3, 10).map(move |seed| cell.at(seed)))
        .collect()
}

/// Acknowledgements as 64-byte packets, Mbit/s.
fn ack_mbps(values: &Values) -> f64 {
    super::ack_frequency(values) * 64.0 * 8.0 / 1e6
}

/// What the receiver's acknowledgements cost: how many there are and how often it wins the air for them, a second.
#[derive(Clone, Copy)]
struct Cost {
    acks: f64,
    accesses: f64,
}

/// Of one medium, for each of [`COUNTS`].
struct Row {
    data: [Estimate; 5],
    acks: [Estimate; 5],
    cost: [Cost; 5],
    /// Frames in each access of the access point.
    aggregated: [f64; 5],
}

impl Row {
    fn new(depth: &Depth, results: &Results, air: Air) -> Self {
        let of = |read: fn(&Values) -> f64| {
            COUNTS.map(|every| results.estimate(&cell(depth, air, every), depth.seeds(3, 10), read))
        };
        let accesses = of(|values| values.get("wlan.sta0.attempts") / seconds(values));
        let acks = of(super::ack_frequency);
        let index = [0, 1, 2, 3, 4];
        Self {
            data: of(mbps),
            acks: of(ack_mbps),
            cost: index.map(|index| Cost {
                acks: acks[index].mean,
                accesses: accesses[index].mean,
            }),
            aggregated: of(|values| values.get("wlan.ap.mpdus") / values.get("wlan.ap.attempts"))
                .map(|estimate| estimate.mean),
        }
    }

    fn falls(&self) -> bool {
        self.data[0].mean < 0.95 * self.data[4].mean
    }

    fn text(&self) -> String {
        let rates = self.data.map(|data| format_number(data.mean));
        format!("{} Mbit/s", rates.join(", "))
    }

    /// That acknowledgements wait for the air and travel together: sixteen times fewer of them spare far fewer accesses.
    fn busy_claim(&self, words: String) -> Claim {
        let [most, .., least] = self.cost;
        let (acks, accesses) = (most.acks / least.acks, most.accesses / least.accesses);
        Claim::new(words, "falls", self.text(), self.falls()).or(
            format!(
                "Acknowledgements wait for the busy air and share an aggregate then: at L = 1 the receiver sends {acks:.1} times as many \
                 as at L = 16 in {accesses:.1} times as many accesses ({:.0} against {:.0} a second), {:.0} in each. What costs air is \
                 the access.",
                most.accesses,
                least.accesses,
                most.acks / most.accesses,
            ),
            acks >= 8.0 && accesses <= 2.0,
        )
    }
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "medium",
            "data : ACKs",
            "data, Mbit/s",
            "ACKs, Mbit/s",
            "receiver's accesses a second",
        ]),
        ..Outcome::default()
    };
    let mut lines = Vec::new();
    for (colour, air) in airs(depth).iter().enumerate() {
        let row = Row::new(depth, results, *air);
        for (index, every) in COUNTS.iter().enumerate() {
            outcome.numbers.row([
                air.name(),
                format!("{every}:1"),
                row.data[index].to_string(),
                row.acks[index].to_string(),
                format_number(row.cost[index].accesses),
            ]);
        }
        let data = || COUNTS.iter().map(|every| *every as f64).zip(row.data);
        lines.push(Line {
            name: air.name(),
            points: data().map(|(every, data)| (every, data.mean)).collect(),
            whiskers: data()
                .filter(|(_, data)| data.half_width > 0.0)
                .map(|(every, data)| {
                    let (low, high) = (data.mean - data.half_width, data.mean + data.half_width);
                    (every, low, high)
                })
                .collect(),
            colour,
            stroke: Stroke::Dotted,
        });
    }
    let [ideal, single, busy, saturated] =
        [IDEAL, SINGLE, BUSY, SATURATED].map(|air| Row::new(depth, results, air));
    outcome.claims = vec![
        Claim::new(
            "Without aggregation: data throughput falls as acknowledgements get more frequent (L = 1, 2, 4, 8, 16)",
            "falls",
            single.text(),
            (1..5).all(|index| single.data[index].mean > single.data[index - 1].mean),
        ),
        Claim::new(
            "Without aggregation: acknowledgements are below 1.5 Mbit/s even at L = 1, so that it is not their bytes that cost",
            "< 1.5 Mbit/s",
            format!("{} Mbit/s", single.acks[0]),
            single.acks[0].mean < 1.5,
        ),
        Claim::new(
            "Ideal medium with aggregation: acknowledgements are below 1.5 Mbit/s even at L = 1",
            "< 1.5 Mbit/s",
            format!("{} Mbit/s", ideal.acks[0]),
            ideal.acks[0].mean < 1.5,
        )
        .or(
            "With aggregation all 100 Mbit/s of data get through at L = 1, and 64 bytes for each 1,472 of them are 4.3 Mbit/s. The paper's \
             data were slowed down until their acknowledgements were fewer.",
            (ideal.acks[0].mean / (ideal.data[0].mean * 64.0 / 1_472.0) - 1.0).abs() <= 0.02,
        ),
        Claim::new(
            "Ideal medium with aggregation: data throughput falls as acknowledgements get more frequent",
            "falls",
            ideal.text(),
            ideal.falls(),
        )
        .or(
            format!(
                "100 Mbit/s are less than this air carries with aggregation: at L = 1 an access carries {:.1} frames, and at saturation, \
                 figure 9(b), 13 and more. So all of them get through, and acknowledgements use what is to spare.",
                ideal.aggregated[0]
            ),
            ideal.data.iter().all(|data| data.mean >= 99.0) && ideal.aggregated[0] <= 8.0,
        ),
        busy.busy_claim(format!(
            "Beside {}: data throughput falls as acknowledgements get more frequent",
            BUSY.medium.name()
        )),
        saturated.busy_claim(format!(
            "Beside {}: data throughput falls as acknowledgements get more frequent",
            SATURATED.medium.name()
        )),
    ];
    let svg = LineChart {
        id: "plot-3".into(),
        title: "Data throughput by datagrams for each acknowledgement".into(),
        description: format!(
            "Without aggregation from {} Mbit/s at one acknowledgement a datagram to {} at one for sixteen; with aggregation {} and {}; \
             beside neighbours with a load {} and {}.",
            single.data[0], single.data[4], ideal.data[0], ideal.data[4], busy.data[0], busy.data[4]
        ),
        x_label: "datagrams for each acknowledgement".into(),
        y_label: "data, Mbit/s".into(),
        x_scale: Scale::Log,
        lines,
        ..LineChart::default()
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Throughput of 100 Mbit/s of offered data, by how often it is acknowledged.",
    ));
    outcome
}
