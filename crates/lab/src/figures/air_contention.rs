//! Figure 3: acknowledgements contend with the data for the air.

use tack_plot::{Line, LineChart, Scale, Stroke, format_number};

use super::{mbps, plot};
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
            datagrams. Three media: with aggregation and nobody else, so that 100 Mbit/s leave room for everything; without \
            aggregation, where every acknowledgement costs an access of its own; and with aggregation beside 4 saturated stations of a \
            neighbouring network.",
    plan,
    reduce,
};

const COUNTS: [u64; 5] = [1, 2, 4, 8, 16];

const MEDIA: [(&str, &str); 3] = [
    ("ideal medium, aggregation", "wlan.contenders=0"),
    ("ideal medium, no aggregation", "wlan.ampdu_max_bytes=0"),
    ("4 neighbours, aggregation", "wlan.contenders=4"),
];

fn cell(depth: &Depth, medium: &str, every: u64) -> Cell {
    Cell::new(&WLAN_UDP)
        .set("flow.0.rate=100Mbps")
        .set(medium)
        .set(format!("flow.0.ack_every={every}"))
        .set("flow.0.ack_size=64")
        .set(depth.pick("duration=11s", "duration=61s"))
}

fn plan(depth: &Depth) -> Vec<Point> {
    MEDIA
        .iter()
        .flat_map(|(_, medium)| COUNTS.map(|every| cell(depth, medium, every)))
        .flat_map(|cell| depth.seeds(3, 10).map(move |seed| cell.at(seed)))
        .collect()
}

/// Acknowledgements as 64-byte packets, Mbit/s.
fn ack_mbps(values: &Values) -> f64 {
    super::ack_frequency(values) * 64.0 * 8.0 / 1e6
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new(["medium", "data : ACKs", "data, Mbit/s", "ACKs, Mbit/s"]),
        ..Outcome::default()
    };
    let mut lines = Vec::new();
    let mut all: Vec<[(Estimate, Estimate); 5]> = Vec::new();
    for (colour, (name, medium)) in MEDIA.iter().enumerate() {
        let row = COUNTS.map(|every| {
            let cell = cell(depth, medium, every);
            let of = |read: fn(&Values) -> f64| results.estimate(&cell, depth.seeds(3, 10), read);
            let (data, acks) = (of(mbps), of(ack_mbps));
            outcome.numbers.row([
                (*name).into(),
                format!("{every}:1"),
                data.to_string(),
                acks.to_string(),
            ]);
            (data, acks)
        });
        let data = || COUNTS.iter().zip(row);
        lines.push(Line {
            name: (*name).into(),
            points: data()
                .map(|(every, (data, _))| (*every as f64, data.mean))
                .collect(),
            whiskers: data()
                .filter(|(_, (data, _))| data.half_width > 0.0)
                .map(|(every, (data, _))| {
                    (
                        *every as f64,
                        data.mean - data.half_width,
                        data.mean + data.half_width,
                    )
                })
                .collect(),
            colour,
            stroke: Stroke::Dotted,
        });
        all.push(row);
    }
    let texts = |medium: usize| {
        all[medium]
            .iter()
            .map(|(data, _)| format_number(data.mean))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let falls = |medium: usize| all[medium][0].0.mean < 0.95 * all[medium][4].0.mean;
    outcome.claims = vec![
        Claim::new(
            "Without aggregation: data throughput falls as acknowledgements get more frequent (L = 1, 2, 4, 8, 16)",
            "falls",
            format!("{} Mbit/s", texts(1)),
            (1..5).all(|index| all[1][index].0.mean > all[1][index - 1].0.mean),
        ),
        Claim::new(
            "Without aggregation: acknowledgements are below 1.5 Mbit/s even at L = 1, so that it is not their bytes that cost",
            "< 1.5 Mbit/s",
            format!("{} Mbit/s", all[1][0].1),
            all[1][0].1.mean < 1.5,
        ),
        Claim::new(
            "Ideal medium with aggregation: data throughput falls as acknowledgements get more frequent",
            "falls",
            format!("{} Mbit/s", texts(0)),
            falls(0),
        )
        .or(
            "Aggregation and Block ACK carry 100 Mbit/s and all acknowledgements in three fifths of the air, so that nothing is lost. \
             At saturation, figure 9(b), each acknowledgement costs goodput here too.",
            all[0].iter().all(|(data, _)| data.mean >= 99.0),
        ),
        Claim::new(
            "Beside 4 neighbours: data throughput falls as acknowledgements get more frequent",
            "falls",
            format!("{} Mbit/s", texts(2)),
            falls(2),
        )
        .or(
            "Each saturated neighbour takes as many accesses as the access point, which leaves the data about 35 Mbit/s whatever the \
             receiver does: its acknowledgements travel in few aggregates, and their share of the air is below 2 %.",
            all[2].iter().all(|(data, _)| (25.0..=50.0).contains(&data.mean)),
        ),
    ];
    let svg = LineChart {
        id: "plot-3".into(),
        title: "Data throughput by datagrams for each acknowledgement".into(),
        description: format!(
            "Without aggregation from {} Mbit/s at one acknowledgement a datagram to {} at one for sixteen; with aggregation {} and {}.",
            all[1][0].0, all[1][4].0, all[0][0].0, all[0][4].0
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
