//! Figures 7 and 9(a): what the wireless links carry without a transport.

use tack_plot::{Group, ValueBars, format_number};

use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, percent, plot};
use crate::figures::readings::mbps;
use crate::figures::tack::calibrations;
use crate::figures::tack::links::{LINKS, Link, as_rare_as_tack, udp_tool};
use crate::point::{Cell, Point};
use crate::results::Results;
use tack_stats::Finding;

pub(in crate::figures) const BASELINES: Figure = Figure {
    paper: Paper::Tack,
    id: "7",
    title: "What UDP gets over the wireless links",
    about: "Saturating UDP without acknowledgements over radios modelled on the paper's four \
        devices. The paper gives these baselines but not the parameters behind them. The presets \
        choose parameters that explain the baselines; everything else follows from the standard. \
        So this figure calibrates and confirms nothing. Other parameters explain the same \
        baselines: figures 1, 9(a) and 10(a) show the results of each. A rule picks the preset \
        from those within 2 %: changes of the radio before changes of the medium, then the \
        fewest keys that differ from the standard's defaults, then the nearest goodput.",
    plan: baseline_plan,
    reduce: baseline_reduce,
};

pub(in crate::figures) const IDEAL_GAIN: Figure = Figure {
    paper: Paper::Tack,
    id: "9a",
    title: "Fewer acknowledgements gain more on faster links",
    about: "The paper's UDP tool: saturating data, and one 64-byte acknowledgement for every \
        second datagram (TCP, L = 2), or as few as TACK sends at 80 ms. No transport takes part, \
        so this is the ideal goodput: the airtime that fewer acknowledgements release. The \
        medium is ideal, without neighbours.",
    plan: gain_plan,
    reduce: gain_reduce,
};

fn baseline_plan(depth: &Depth) -> Vec<Point> {
    let mut points: Vec<_> = LINKS
        .iter()
        .flat_map(|link| {
            depth
                .seeds(3, 8)
                .map(|seed| udp_tool(depth, *link, 0).at(seed))
        })
        .collect();
    points.extend(calibrations::baseline_plan(depth));
    points
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
                ours.is_near(link.baseline, 0.02),
            )
            .calibrated(),
        );
        groups.push(Group {
            name: link.name.into(),
            values: vec![bar(0, ours, Some(link.baseline))],
        });
    }
    let rules = LINKS.map(|link| calibrations::rule_claim(depth, results, link));
    outcome.claims.extend(rules);
    let svg = ValueBars {
        id: "plot-7".into(),
        title: "UDP baselines".into(),
        description: "Goodput of saturating UDP over each link, and the paper's.".into(),
        label: "Mbit/s".into(),
        series: vec![("UDP".into(), 1)],
        reference: "paper".into(),
        groups,
        ..ValueBars::default()
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Goodput of saturating UDP without acknowledgements.",
    ));
    outcome
}

/// Acknowledgements for every second datagram, and as rare as TACK's.
fn tool_pair(depth: &Depth, link: Link) -> [Cell; 2] {
    [2, as_rare_as_tack(link)].map(|every| udp_tool(depth, link, every))
}

fn gain_plan(depth: &Depth) -> Vec<Point> {
    let mut points = calibrations::plan(depth, |link| tool_pair(depth, link));
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
    let gains = LINKS.map(|link| gain_of(link.name, tool_pair(depth, link)));
    let all = [0, 1, 2, 3].map(|index| {
        let pair = tool_pair(depth, LINKS[index]);
        calibrations::Gains::new(depth, results, LINKS[index], &pair, gains[index])
    });
    outcome.further.push(calibrations::table(&all));
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
            Finding::all((1..4).map(|index| gains[index].less(gains[index - 1]).is_above(0.0))),
        )
        .or(
            format!(
                "802.11b gains least with every calibration that explains its baseline. Which of g, n and ac gains most depends on the \
                 calibration, because their ranges overlap: b {}, g {}, n {}, ac {}.",
                all[0].text(),
                all[1].text(),
                all[2].text(),
                all[3].text()
            ),
            overlap_above_the_first(&all.each_ref().map(calibrations::Gains::range)),
        ),
        Claim::new(
            "Every link gains, at least 5 %",
            "yes",
            texts(0),
            Finding::all(gains.iter().map(|gain| gain.is_at_least(5.0))),
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
            share.is_at_least(98.0),
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
        ..ValueBars::default()
    }
    .to_svg();
    outcome.plots.push(plot(
        svg,
        "Ideal goodput gained with as few acknowledgements as TACK's, ideal medium.",
    ));
    outcome.plots.push(calibrations::plot(
        "plot-9a-calibrations",
        "Ideal goodput gain with every calibration",
        &all,
        None,
    ));
    outcome
}

/// Whether all ranges but the first lie above it, and each of them has something in common with
/// each other.
fn overlap_above_the_first(ranges: &[(f64, f64); 4]) -> bool {
    let [first, others @ ..] = ranges;
    let above = others.iter().all(|other| other.0 > first.1);
    let overlap = others
        .iter()
        .all(|one| others.iter().all(|other| one.0 <= other.1));
    above && overlap
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_do_not_overlap_excuse_nothing() {
        let excused = |ranges| overlap_above_the_first(&ranges);
        assert!(excused([(1.0, 2.0), (3.0, 5.0), (4.0, 6.0), (4.5, 7.0)]));
        assert!(!excused([(1.0, 3.5), (3.0, 5.0), (4.0, 6.0), (4.5, 7.0)]));
        assert!(!excused([(1.0, 2.0), (3.0, 3.5), (4.0, 6.0), (4.5, 7.0)]));
        assert!(!excused([
            (1.0, f64::NAN),
            (3.0, 5.0),
            (4.0, 6.0),
            (4.5, 7.0)
        ]));
    }
}
