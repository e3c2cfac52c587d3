//! Figure 3: acknowledgements contend with the data for the air.

use tack_plot::{Line, LineChart, Scale, Stroke, Whisker, format_number};

use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{percent, plot};
use crate::figures::readings::{ack_frequency, mbps, seconds};
use crate::figures::tack::links::{LINKS, Link};
use crate::measure::Values;
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::WLAN_UDP;
use tack_stats::Estimate;
use tack_stats::Finding;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "3",
    title: "Acknowledgements contend with data for the medium",
    about: "The paper's UDP tool between two laptops behind one access point: data and \
        acknowledgements cross the air twice. The sender offers 100 Mbit/s of data over 802.11n \
        at a PHY rate of 300 Mbit/s, and the receiver sends one 64-byte acknowledgement for \
        every L datagrams. The medium is ideal, because the paper reports negligible \
        interference. The paper gives no rate for 802.11b, g and ac; they are offered the same \
        share of their UDP baseline (100 of 210). ACK throughput counts the acknowledgements \
        that reach the sender of the data.",
    plan,
    reduce,
};

const COUNTS: [u64; 5] = [1, 2, 4, 8, 16];

/// 802.11n, to which the paper's numbers belong.
const PAPERS: usize = 2;

/// Payload of a datagram, and an acknowledgement, bytes.
const PAYLOAD: f64 = 1_472.0;
const ACK: f64 = 64.0;

/// How long a datagram is under way where no queue grows, seconds: two hops, on each of which it
/// waits for a frame of each of the other two radios, at the 1.8 ms that 802.11b takes for a frame
/// and its acknowledgement; faster links take less.
const UNDER_WAY: f64 = 2.0 * 3.0 * 0.001_8;

/// The load of the tool, kbit/s: 100 Mbit/s over 802.11n.
fn offered_kbps(link: Link) -> f64 {
    (100_000.0 * link.baseline / LINKS[PAPERS].baseline).round()
}

fn cell(depth: &Depth, link: Link, every: u64) -> Cell {
    Cell::new(&WLAN_UDP)
        .set(format!("wlan.preset={}", link.preset))
        .set("wlan.stations=2")
        .set("flow.0.from=sta0")
        .set("flow.0.to=sta1")
        .set(format!("flow.0.rate={}kbps", offered_kbps(link)))
        .set(format!("flow.0.ack_every={every}"))
        .set("flow.0.ack_size=64")
        .set(depth.pick("duration=6s", "duration=61s"))
}

fn seeds(depth: &Depth) -> std::ops::RangeInclusive<u64> {
    depth.seeds(2, 10)
}

fn plan(depth: &Depth) -> Vec<Point> {
    LINKS
        .iter()
        .flat_map(|link| COUNTS.map(|every| cell(depth, *link, every)))
        .flat_map(|cell| seeds(depth).map(move |seed| cell.at(seed)))
        .collect()
}

/// Acknowledgements that reach the sender, as 64-byte packets, Mbit/s.
fn ack_mbps(values: &Values) -> f64 {
    values.get("wlan.sta0.received") / seconds(values) * ACK * 8.0 / 1e6
}

/// Shares of the data and of the acknowledgements that are lost, percent.
fn losses(values: &Values) -> [f64; 2] {
    let delivered = values.get("flows.0.bytes_delivered") / PAYLOAD;
    let data = 1.0 - delivered / values.get("flows.0.data_segments");
    let acks = 1.0 - values.get("wlan.sta0.received") / values.get("flows.0.acks");
    [data, acks].map(|share| 100.0 * share.max(0.0))
}

/// Of one link, for each of [`COUNTS`].
struct Row {
    link: Link,
    cells: [Cell; 5],
    data: [Estimate; 5],
    acks: [Estimate; 5],
    losses: [[Estimate; 2]; 5],
}

impl Row {
    fn new(depth: &Depth, results: &Results, link: Link) -> Self {
        let cells = COUNTS.map(|every| cell(depth, link, every));
        let of =
            |cell: &Cell, read: &dyn Fn(&Values) -> f64| results.estimate(cell, seeds(depth), read);
        Self {
            link,
            data: cells.each_ref().map(|cell| of(cell, &mbps)),
            acks: cells.each_ref().map(|cell| of(cell, &ack_mbps)),
            losses: cells
                .each_ref()
                .map(|cell| [0, 1].map(|index| of(cell, &|values: &Values| losses(values)[index]))),
            cells,
        }
    }

    fn text(&self) -> String {
        let rates = self.data.map(|data| data.to_string());
        format!("{} Mbit/s", rates.join(", "))
    }

    /// By how much `read` of one count is above that of another.
    fn more(
        &self,
        depth: &Depth,
        results: &Results,
        [first, second]: [usize; 2],
        read: fn(&Values) -> f64,
    ) -> Estimate {
        let cells = [&self.cells[first], &self.cells[second]];
        results.paired(cells, seeds(depth), |first, second| {
            read(first) - read(second)
        })
    }

    /// How many times the ACK throughput of one count is that of the next rarer one.
    fn growth(&self, depth: &Depth, results: &Results, count: usize) -> Estimate {
        let cells = [&self.cells[count], &self.cells[count + 1]];
        results.paired(cells, seeds(depth), |often, rare| {
            ack_mbps(often) / ack_mbps(rare)
        })
    }

    fn falls(&self, depth: &Depth, results: &Results) -> Claim {
        let falls = |index: usize| {
            let lost = self.more(depth, results, [index, index - 1], mbps);
            lost.is_above(0.0)
        };
        // All that is offered: more cannot get through. What was sent in the last milliseconds is
        // still under way.
        let is_all = |index: usize| {
            let runs = results.estimate(&self.cells[index], seeds(depth), |values| {
                mbps(values) + UNDER_WAY / seconds(values) * offered_kbps(self.link) / 1e3
            });
            runs.is_at_least(offered_kbps(self.link) / 1e3)
        };
        let from = (0..5).find(|index| is_all(*index).holds);
        Claim::new(
            format!(
                "{}: data throughput falls at each step towards more frequent acknowledgements \
                    (L = 16, 8, 4, 2, 1; listed from L = 1)",
                self.link.name
            ),
            "falls",
            self.text(),
            Finding::all((1..5).map(falls)),
        )
        .or(
            format!(
                "From L = {} on the link carries all the offered data, {} Mbit/s. Below that, \
                    data throughput falls at each step.",
                from.map_or(0, |index| COUNTS[index]),
                format_number(offered_kbps(self.link) / 1e3)
            ),
            from.filter(|from| *from >= 1).map_or(false.into(), |from| {
                Finding::all((1..=from).map(falls)).and(Finding::all((from..5).map(is_all)))
            }),
        )
    }
}

/// The claims about the acknowledgements over 802.11n.
fn ack_claims(depth: &Depth, results: &Results, row: &Row) -> Vec<Claim> {
    let acks = row.acks.map(|acks| acks.to_string()).join(", ");
    let [most, ..] = row.acks;
    // Acknowledgements sent for the data that came, before any is lost.
    let cell = &row.cells[0];
    let sent = results.estimate(cell, seeds(depth), |values| {
        ack_frequency(values) * ACK * 8.0 / 1e6
    });
    let for_each = results.estimate(cell, seeds(depth), |values| {
        100.0 * ack_frequency(values) * PAYLOAD * 8.0 / (mbps(values) * 1e6)
    });
    let below = 1.5 * PAYLOAD / ACK;
    let growths = [2, 1, 0].map(|count| row.growth(depth, results, count));
    let bend = results.paired([&row.cells[1], &row.cells[2]], seeds(depth), |two, four| {
        ack_mbps(two) - 2.0 * ack_mbps(four)
    });
    let lost = |index: usize| {
        let [data, acks] = row.losses[index];
        format!("L = {}: {data} and {acks}", COUNTS[index])
    };
    // Each of L = 1 and 2 against each of 4, 8 and 16, in both directions.
    let higher = Finding::all((0..2).flat_map(|often| {
        (2..5).map(move |rare| {
            let data = row.more(depth, results, [often, rare], |values| losses(values)[0]);
            let acks = row.more(depth, results, [often, rare], |values| losses(values)[1]);
            data.is_above(0.0).and(acks.is_above(0.0))
        })
    }));
    vec![
        Claim::new(
            "802.11n: ACK throughput is below 1.5 Mbit/s from L = 2 on, so the bytes of the \
                acknowledgements are not their cost",
            "< 1.5 Mbit/s",
            format!("{acks} Mbit/s (L = 1, 2, 4, 8, 16)"),
            Finding::all(row.acks[1..].iter().map(|acks| acks.is_below(1.5))),
        )
        .or(
            format!(
                "One acknowledgement for two datagrams is {} % of their payload. It is below 1.5 \
                    Mbit/s only if less than {} Mbit/s of data arrive. Here {} Mbit/s arrive.",
                format_number(50.0 * ACK / PAYLOAD),
                format_number(2.0 * below),
                row.data[1],
            ),
            row.data[1]
                .is_above(2.0 * below)
                .and(row.acks[2].is_below(1.5)),
        ),
        Claim::new(
            "802.11n: ACK throughput is below 1.5 Mbit/s at L = 1 too",
            "< 1.5 Mbit/s",
            format!("{most} Mbit/s"),
            most.is_below(1.5),
        )
        .or(
            format!(
                "64 bytes for each 1,472 that arrive are below 1.5 Mbit/s only if less than {} \
                    Mbit/s of data arrive, or if most acknowledgements are lost. The receiver \
                    acknowledges {for_each} % of the datagrams, with {sent} Mbit/s. The full \
                    queue of the access point drops {} % of the acknowledgements.",
                format_number(below),
                row.losses[0][1],
            ),
            row.data[0]
                .is_above(below)
                .and(for_each.is_within(99.0..=101.0)),
        ),
        Claim::new(
            "802.11n: ACK throughput fails to double from 4:1 to 2:1",
            "fails to double",
            format!(
                "{} times as much; {} from 2:1 to 1:1, {} from 8:1 to 4:1",
                growths[1], growths[2], growths[0]
            ),
            bend.times(-1.0).is_above(0.0),
        ),
        Claim::new(
            "802.11n: data and acknowledgements are lost more often at L ≤ 2 than at any larger L",
            "higher bidirectional loss rate",
            format!("{} %", (0..5).map(lost).collect::<Vec<_>>().join("; ")),
            higher,
        ),
    ]
}

fn chart(
    id: &str,
    title: &str,
    y_label: &str,
    rows: &[Row],
    y_scale: Scale,
    read: impl Fn(&Row, usize) -> Estimate,
) -> LineChart {
    let lines = rows.iter().enumerate().map(|(colour, row)| {
        let points: Vec<_> = (0..5)
            .map(|index| (COUNTS[index] as f64, read(row, index)))
            .collect();
        Line {
            name: row.link.name.into(),
            points: points
                .iter()
                .map(|(every, data)| (*every, data.mean))
                .collect(),
            whiskers: points
                .iter()
                .filter(|(_, data)| data.half_width > 0.0)
                .map(|(every, data)| {
                    let (low, high) = (data.mean - data.half_width, data.mean + data.half_width);
                    Whisker {
                        x: *every,
                        low,
                        high,
                    }
                })
                .collect(),
            colour,
            stroke: Stroke::Dotted,
        }
    });
    LineChart {
        id: id.into(),
        title: title.into(),
        x_label: "datagrams for each acknowledgement".into(),
        y_label: y_label.into(),
        x_scale: Scale::Log,
        y_scale,
        lines: lines.collect(),
        ..LineChart::default()
    }
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "link",
            "data : ACKs",
            "offered, Mbit/s",
            "data, Mbit/s",
            "ACKs, Mbit/s",
            "data lost, %",
            "ACKs lost, %",
        ]),
        ..Outcome::default()
    };
    let rows = LINKS.map(|link| Row::new(depth, results, link));
    for row in &rows {
        for (index, every) in COUNTS.iter().enumerate() {
            let [data, acks] = row.losses[index];
            outcome.numbers.row([
                row.link.name.into(),
                format!("{every}:1"),
                format_number(offered_kbps(row.link) / 1e3),
                row.data[index].to_string(),
                row.acks[index].to_string(),
                data.to_string(),
                acks.to_string(),
            ]);
        }
    }
    let paper = &rows[PAPERS];
    outcome.claims = vec![paper.falls(depth, results)];
    outcome.claims.extend(ack_claims(depth, results, paper));
    let others = rows
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != PAPERS);
    outcome
        .claims
        .extend(others.map(|(_, row)| row.falls(depth, results)));
    let data = LineChart {
        description: format!(
            "Over 802.11n {} Mbit/s of data arrive with an acknowledgement for each datagram, {} \
                with one for sixteen.",
            paper.data[0], paper.data[4]
        ),
        ..chart(
            "plot-3",
            "Data throughput by datagrams for each acknowledgement",
            "data, % of what is offered",
            &rows,
            Scale::Linear,
            |row, index| row.data[index].times(1e5 / offered_kbps(row.link)),
        )
    };
    let acks = LineChart {
        description: format!(
            "Over 802.11n acknowledgements have {} Mbit/s at one for each datagram, {} at one for two and {} at one for four.",
            paper.acks[0], paper.acks[1], paper.acks[2]
        ),
        ..chart(
            "plot-3-acks",
            "ACK throughput by datagrams for each acknowledgement",
            "ACKs, Mbit/s",
            &rows,
            Scale::Log,
            |row, index| row.acks[index],
        )
    };
    let caption = format!(
        "Data throughput between two stations, by the frequency of acknowledgements; at L = 16 \
            802.11n has {}.",
        percent(paper.data[4].times(1e5 / offered_kbps(paper.link)))
    );
    outcome.plots.push(plot(data.to_svg(), caption));
    outcome.plots.push(plot(
        acks.to_svg(),
        "Acknowledgements that reach the sender, 64 bytes each.",
    ));
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_acknowledgements_cross_the_air_twice() {
        let take = |every: u64| {
            let point = cell(&Depth::quick(), LINKS[PAPERS], every)
                .set("duration=2s")
                .at(1);
            let scenario = point.scenario(std::path::Path::new("")).unwrap();
            point.measure().take(&scenario, 1).unwrap()
        };
        let [most, least] = [1, 16].map(take);
        let received = |values: &Values, radio: &str| {
            values.get(&format!("wlan.{radio}.received")) / seconds(values)
        };
        // By the access point: the data of one station and the acknowledgements of the other.
        let to_others = received(&most, "sta0") + received(&most, "sta1");
        assert!(received(&most, "ap") >= to_others);
        assert!(received(&most, "sta1") > 1_000.0 && received(&most, "sta0") > 1_000.0);
        assert!(mbps(&most) < 0.95 * mbps(&least), "{}", mbps(&most));
    }
}
