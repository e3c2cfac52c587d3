//! Figures 7 and 9(a): what the wireless links carry without a transport.

use tack_plot::{Group, ValueBars, format_number};

use super::{LINKS, Link, bar, mbps, percent, plot};
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Table};
use crate::point::{Cell, Point};
use crate::scenarios::WLAN_UDP;
use crate::store::Results;

pub(super) const BASELINES: Figure = Figure {
    id: "7",
    title: "What UDP gets over the wireless links",
    about: "Saturating UDP without acknowledgements over radios modelled on the paper's four devices. The paper gives these \
            baselines but not the parameters behind them; the presets choose parameters that explain them, and everything else \
            follows from the standard.",
    plan: baseline_plan,
    reduce: baseline_reduce,
};

pub(super) const IDEAL_GAIN: Figure = Figure {
    id: "9a",
    title: "Fewer acknowledgements gain more on faster links",
    about: "The paper's UDP tool: saturating data, one 64-byte acknowledgement for every second datagram (TCP, L = 2), or as \
            rarely as TACK acknowledges at 80 ms. No transport is involved, so this is the ideal goodput: what the air \
            gives back. The medium is ideal, without neighbours.",
    plan: gain_plan,
    reduce: gain_reduce,
};

/// The UDP tool over a link, with an acknowledgement for so many datagrams; 0 is none.
pub(super) fn udp_tool(depth: &Depth, link: Link, ack_every: u64) -> Cell {
    let cell = Cell::new(&WLAN_UDP)
        .set(format!("wlan.preset={}", link.preset))
        .set(depth.pick("duration=11s", "duration=41s"));
    if ack_every == 0 {
        cell
    } else {
        cell.set(format!("flow.0.ack_every={ack_every}"))
            .set("flow.0.ack_size=64")
    }
}

/// Datagrams for each acknowledgement when there are as many as TACK sends at 80 ms: equation (3) with the baseline.
pub(super) fn as_rare_as_tack(link: Link) -> u64 {
    let datagrams_per_second = link.baseline * 1e6 / 8.0 / 1_472.0;
    ((datagrams_per_second * 0.08 / 4.0).round() as u64).max(2)
}

fn baseline_plan(depth: &Depth) -> Vec<Point> {
    LINKS
        .iter()
        .flat_map(|link| {
            depth
                .seeds(3, 8)
                .map(|seed| udp_tool(depth, *link, 0).at(seed))
        })
        .collect()
}

fn baseline_reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new(["link", "paper, Mbit/s", "ours, Mbit/s"]),
        ..Outcome::default()
    };
    let mut groups = Vec::new();
    for link in LINKS {
        let ours = results.estimate(&udp_tool(depth, link, 0), depth.seeds(3, 8), mbps);
        outcome.numbers.row([
            link.name.into(),
            format_number(link.baseline),
            ours.to_string(),
        ]);
        outcome.claims.push(
            Claim::new(
                format!(
                    "{}: goodput of UDP without acknowledgements is the paper's, within 2 %",
                    link.name
                ),
                format!("{} Mbit/s", format_number(link.baseline)),
                format!("{ours} Mbit/s"),
                (ours.mean / link.baseline - 1.0).abs() <= 0.02,
            )
            .calibrated(),
        );
        groups.push(Group {
            name: link.name.into(),
            values: vec![bar(0, ours, Some(link.baseline))],
        });
    }
    let svg = ValueBars {
        id: "plot-7".into(),
        title: "UDP baselines".into(),
        description: "Goodput of saturating UDP over each link, beside the paper's.".into(),
        label: "Mbit/s".into(),
        series: vec![("UDP".into(), 1)],
        reference: "paper".into(),
        groups,
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Goodput of saturating UDP without acknowledgements.",
    ));
    outcome
}

/// 802.11g as it would be without its CTS to itself: TCP (L = 2) and TACK.
fn unprotected(depth: &Depth) -> [Cell; 2] {
    [2, as_rare_as_tack(LINKS[1])]
        .map(|every| udp_tool(depth, LINKS[1], every).set("wlan.protection=off"))
}

fn gain_plan(depth: &Depth) -> Vec<Point> {
    let mut points = Vec::new();
    for cell in unprotected(depth) {
        points.extend(depth.seeds(3, 8).map(|seed| cell.at(seed)));
    }
    for link in LINKS {
        for ack_every in [2, as_rare_as_tack(link), 0] {
            let cell = udp_tool(depth, link, ack_every);
            points.extend(depth.seeds(3, 8).map(|seed| cell.at(seed)));
        }
    }
    points
}

fn gain_reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new(["link", "L = 2, Mbit/s", "TACK, Mbit/s", "gain, %"]),
        ..Outcome::default()
    };
    // A row for a link, and what its goodput gains.
    let mut gain_of = |name: &str, [tcp, tack]: [Cell; 2]| {
        let gain = results
            .paired([&tcp, &tack], depth.seeds(3, 8), |tcp, tack| {
                mbps(tack) / mbps(tcp) - 1.0
            })
            .times(100.0);
        outcome.numbers.row([
            name.into(),
            results.estimate(&tcp, depth.seeds(3, 8), mbps).to_string(),
            results.estimate(&tack, depth.seeds(3, 8), mbps).to_string(),
            gain.to_string(),
        ]);
        gain
    };
    let gains = LINKS.map(|link| {
        let cells = [2, as_rare_as_tack(link)].map(|every| udp_tool(depth, link, every));
        gain_of(link.name, cells)
    });
    let bare = gain_of("802.11g without CTS to oneself", unprotected(depth));
    let groups = LINKS
        .into_iter()
        .zip(gains)
        .map(|(link, gain)| Group {
            name: link.name.into(),
            values: vec![bar(0, gain, None)],
        })
        .collect();
    let texts = |from: usize| {
        gains[from..]
            .iter()
            .map(|gain| percent(*gain))
            .collect::<Vec<_>>()
            .join(", ")
    };
    outcome.claims = vec![
        Claim::new(
            "The gain over TCP (L = 2) grows with the PHY rate (b, g, n, ac)",
            "grows",
            texts(0),
            (1..4).all(|index| gains[index].mean > gains[index - 1].mean),
        )
        .or(
            format!(
                "802.11g comes out as high as n and ac: its preset, which explains the paper's baseline by a CTS to oneself before each \
                 frame, has every acknowledgement cost that too. Without it its gain is {}, and gains grow from link to link.",
                percent(bare)
            ),
            [gains[0], bare, gains[2], gains[3]]
                .windows(2)
                .all(|pair| pair[1].low() > pair[0].high()),
        ),
        Claim::new(
            "Every link gains, at least 5 %",
            "yes",
            texts(0),
            gains.iter().all(|gain| gain.low() >= 5.0),
        ),
    ];
    for link in &LINKS[2..] {
        let [tack, udp] = [as_rare_as_tack(*link), 0].map(|every| udp_tool(depth, *link, every));
        let share = results
            .paired([&udp, &tack], depth.seeds(3, 8), |udp, tack| {
                mbps(tack) / mbps(udp)
            })
            .times(100.0);
        outcome.claims.push(Claim::new(
            format!(
                "{}: TACK's ideal goodput is within 2 % of the UDP baseline",
                link.name
            ),
            "approaches it",
            percent(share),
            share.low() >= 98.0,
        ));
    }
    let svg = ValueBars {
        id: "plot-9a".into(),
        title: "Ideal goodput gain of TACK over TCP with L = 2".into(),
        description: format!("On 802.11b, g, n and ac: {}.", texts(0)),
        label: "gain, %".into(),
        series: vec![("TACK over TCP (L = 2)".into(), 1)],
        reference: String::new(),
        groups,
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Ideal goodput gained by acknowledging as rarely as TACK, ideal medium.",
    ));
    outcome
}
