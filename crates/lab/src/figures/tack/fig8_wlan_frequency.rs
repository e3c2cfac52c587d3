//! Figure 8: ACK frequency over the wireless links.

use tack_plot::{Group, ValueBars, format_number};

use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, plot};
use crate::figures::readings::{ack_frequency, equation_3, mbps};
use crate::figures::tack::links::{LINKS, Link};
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::WLAN_TCP;
use tack_stats::Estimate;
use tack_stats::Finding;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "8",
    title: "ACK frequency over 802.11b, g, n and ac",
    about: "One BBR download over each wireless link, with TCP's delayed ACK (L = 2), and with \
        TACK at an RTTmin of 10, 80 and 200 ms. The frequency of delayed ACK does not depend on \
        the round trip, and is measured at 80 ms. The paper computes these frequencies; here \
        they are counted. The marks are equation (3) with the paper's UDP baseline as bandwidth.",
    plan,
    reduce,
};

const ROUND_TRIPS: [f64; 3] = [10.0, 80.0, 200.0];

fn cell(depth: &Depth, link: Link, rtt_ms: f64, ack: &str) -> Cell {
    let cell = Cell::new(&WLAN_TCP)
        .set(format!("wlan.preset={}", link.preset))
        .set(format!("wired.delay={}ms", rtt_ms / 2.0))
        .set(format!("flow.0.ack={ack}"));
    match depth.extent {
        crate::Extent::Quick => cell.set("duration=12s").set("warmup=6s"),
        crate::Extent::Full => cell.set("duration=40s").set("warmup=10s"),
    }
}

fn cells(depth: &Depth, link: Link) -> [Cell; 4] {
    [
        cell(depth, link, 80.0, "delayed:2"),
        cell(depth, link, ROUND_TRIPS[0], "tack"),
        cell(depth, link, ROUND_TRIPS[1], "tack"),
        cell(depth, link, ROUND_TRIPS[2], "tack"),
    ]
}

fn plan(depth: &Depth) -> Vec<Point> {
    LINKS
        .iter()
        .flat_map(|link| cells(depth, *link))
        .flat_map(|cell| depth.seeds(3, 5).map(move |seed| cell.at(seed)))
        .collect()
}

/// The claim that TACK over 802.11ac acknowledges so many orders of magnitude less often than TCP
/// does. What the paper rounds to whole orders is equation (3) with its baseline and packets of
/// 1,500 bytes.
fn fewer_orders(round_trip: usize, words: &str, ours: Estimate) -> Claim {
    let rtt_ms = ROUND_TRIPS[round_trip - 1];
    let tcp = LINKS[3].baseline * 1e6 / 8.0 / (2.0 * 1_500.0);
    let paper = (tcp / (4.0 / (rtt_ms / 1e3))).log10();
    Claim::new(
        format!(
            "Over 802.11ac at {rtt_ms} ms TACK's frequency is lower by what the paper calls {words}: equation (3), within 0.15 orders \
             (delayed ACK does not get as much goodput as the baseline that the paper's number has)"
        ),
        format!("{} orders", format_number(paper)),
        format!("{ours} orders"),
        ours.is_within(paper - 0.15..=paper + 0.15),
    )
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "link",
            "mechanism",
            "ACKs/s",
            "equation (3)",
            "measured over equation",
        ]),
        ..Outcome::default()
    };
    let names = ["TCP (L = 2)", "TACK, 10 ms", "TACK, 80 ms", "TACK, 200 ms"];
    let mut groups = Vec::new();
    let mut frequencies = Vec::new();
    let mut worst: f64 = 0.0;
    let mut follows = Finding::from(true);
    for link in LINKS {
        let cells = cells(depth, link);
        let ours = cells
            .each_ref()
            .map(|cell| results.estimate(cell, depth.seeds(3, 5), ack_frequency));
        let mut values = Vec::new();
        for (index, name) in names.into_iter().enumerate() {
            let expected = match index {
                0 => equation_3(link.baseline, 0.0, 2.0),
                _ => equation_3(link.baseline, ROUND_TRIPS[index - 1] / 1e3, 2.0),
            };
            let ratio = results.estimate(&cells[index], depth.seeds(3, 5), |values| {
                let rtt_min = if index == 0 {
                    0.0
                } else {
                    values.get("flows.0.min_rtt_us") / 1e6
                };
                ack_frequency(values) / equation_3(mbps(values), rtt_min, 2.0)
            });
            if index > 0 {
                follows = follows.and(ratio.is_near(1.0, 0.05));
                let off = (ratio.mean - 1.0).abs();
                worst = if off > worst || off.is_nan() {
                    off
                } else {
                    worst
                };
            }
            values.push(bar(index, ours[index], Some(expected)));
            outcome.numbers.row([
                link.name.into(),
                name.into(),
                ours[index].to_string(),
                format_number(expected),
                ratio.to_string(),
            ]);
        }
        groups.push(Group {
            name: link.name.into(),
            values,
        });
        frequencies.push(ours);
    }
    let orders = |link: usize, index: usize| {
        let cells = cells(depth, LINKS[link]);
        results.paired(
            [&cells[0], &cells[index]],
            depth.seeds(3, 5),
            |tcp, tack| (ack_frequency(tcp) / ack_frequency(tack)).log10(),
        )
    };
    outcome.claims = vec![
        Claim::new(
            "Counted TACK frequency is that of equation (3) for the bandwidth and RTTmin of the run, within 5 %",
            "equation (3)",
            format!("at most {} % off", format_number(100.0 * worst)),
            follows,
        ),
        Claim::new(
            "Over 802.11b at 10 ms TACK acknowledges as often as TCP with L = 2, within 5 %",
            "the same",
            format!("{} against {} /s", frequencies[0][1], frequencies[0][0]),
            frequencies[0][1]
                .less(frequencies[0][0])
                .times(1.0 / frequencies[0][0].mean)
                .is_within(-0.05..=0.05),
        ),
        fewer_orders(1, "two orders of magnitude", orders(3, 1)),
        fewer_orders(2, "three orders of magnitude", orders(3, 2)),
        Claim::new(
            "TACK saves more acknowledgements on faster links (80 ms, orders of magnitude on b, \
                g, n, ac)",
            "grows",
            (0..4)
                .map(|link| orders(link, 2).to_string())
                .collect::<Vec<_>>()
                .join(", "),
            Finding::all(
                (1..4).map(|link| orders(link, 2).less(orders(link - 1, 2)).is_above(0.0)),
            ),
        ),
    ];
    let texts = groups.iter().map(|group| {
        let values: Vec<_> = group
            .values
            .iter()
            .map(|value| format_number(value.value))
            .collect();
        format!("{}: {} per second.", group.name, values.join(", "))
    });
    let svg = ValueBars {
        id: "plot-8".into(),
        title: "ACK frequency over 802.11b, g, n and ac".into(),
        description: format!(
            "With {}, in this order. {}",
            names.join("; "),
            texts.collect::<Vec<_>>().join(" ")
        ),
        label: "ACKs per second".into(),
        is_positive: true,
        series: names
            .iter()
            .zip([0, 1, 2, 3])
            .map(|(name, colour)| ((*name).into(), colour))
            .collect(),
        reference: "equation (3)".into(),
        groups,
        ..ValueBars::default()
    }
    .to_svg();
    outcome
        .plots
        .push(plot(svg, "ACK frequency over each link, as counted."));
    outcome
}
