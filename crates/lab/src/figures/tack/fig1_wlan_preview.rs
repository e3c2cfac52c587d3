//! Figure 1: TACK against delayed ACK on the wireless links, acknowledgements and goodput.

use tack_plot::{Group, ValueBars, format_number};

use crate::Plot;
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, percent, plot};
use crate::figures::readings::{equation_3, mbps};
use crate::figures::tack::fig10a_wlan_goodput::{
    BUSY, PAPER, gain, gain_claim, goodputs, pair, plan, points, runs, show_besides,
};
use crate::figures::tack::links::LINKS;
use crate::figures::tack::media::Medium;
use crate::point::{Cell, Point};
use crate::results::Results;
use tack_stats::Estimate;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "1",
    title: "Fewer acknowledgements, more goodput",
    about: "One BBR download over each wireless link, with TACK and with TCP's delayed ACK (L = \
        2). The first medium is ideal: no neighbours, no noise. On the second, 10 neighbours \
        offer a load of 50 %, because the paper's runs had more than ten other access points and \
        a hundred users around (figure 10(a) explains that load). The paper's round trips were 4 \
        to 200 ms; ours are 80 ms and 200 ms. Acknowledgements are counted per delivered byte. \
        The figure also shows the gain with every calibration that explains the paper's UDP \
        baseline (figure 7), and the gain over a receiver that coalesces (GRO), modelled by \
        delayed ACK with L = 14 and L = 42 (figure 10(a)).",
    plan: figure_plan,
    reduce,
};

/// The media at 80 ms.
const MEDIA: [Medium; 2] = [Medium::Ideal, BUSY];

fn figure_plan(depth: &Depth) -> Vec<Point> {
    let mut all = plan(depth, &MEDIA);
    let long = LINKS.map(|link| pair(depth, link, 200, Medium::Ideal));
    all.extend(points(depth, long.into_iter().flatten()));
    all
}

/// How many fewer acknowledgements a byte, percent.
fn fewer(depth: &Depth, results: &Results, [tcp, tack]: &[Cell; 2]) -> Estimate {
    let per_byte =
        |values: &crate::Values| values.get("flows.0.acks") / values.get("flows.0.bytes_delivered");
    results
        .paired([tcp, tack], runs(depth), |tcp, tack| {
            1.0 - per_byte(tack) / per_byte(tcp)
        })
        .times(100.0)
}

/// How many fewer acknowledgements equation (3) has TACK send than TCP, percent, at the goodput of
/// the TACK run.
fn equation(depth: &Depth, results: &Results, [_, tack]: &[Cell; 2]) -> f64 {
    let saved = |values: &crate::Values| {
        let rtt_min = values.get("flows.0.min_rtt_us") / 1e6;
        1.0 - equation_3(mbps(values), rtt_min, 2.0) / equation_3(mbps(values), 0.0, 2.0)
    };
    100.0 * results.estimate(tack, runs(depth), saved).mean
}

/// Goodput gained and acknowledgements saved by TACK, by link.
fn plots(acks: Vec<Group>, gains: Vec<Group>) -> Vec<Plot> {
    let mut plots = Vec::new();
    let series = || {
        vec![
            ("ideal medium, RTT 80 ms".into(), 1),
            ("ideal medium, RTT 200 ms".into(), 2),
            (format!("{}, RTT 80 ms", BUSY.name()), 4),
        ]
    };
    let text = |groups: &[Group]| {
        groups
            .iter()
            .map(|group| {
                format!(
                    "{}: {} % on the ideal medium, {} % with neighbours.",
                    group.name,
                    format_number(group.values[0].value),
                    format_number(group.values[2].value)
                )
            })
            .collect::<Vec<_>>()
            .join(" ")
    };
    for (part, title, label, groups) in [
        (
            "gain",
            "Goodput gained by TACK",
            "goodput better by, %",
            gains,
        ),
        (
            "acks",
            "Acknowledgements saved by TACK",
            "ACKs fewer by, %",
            acks,
        ),
    ] {
        let svg = ValueBars {
            id: format!("plot-1-{part}"),
            title: title.into(),
            description: format!("At 80 ms, {}", text(&groups)),
            label: label.into(),
            series: series(),
            reference: "paper".into(),
            groups,
            ..ValueBars::default()
        }
        .to_svg();
        plots.push(plot(
            svg,
            format!("{title}, over delayed ACK (L = 2) with the same BBR."),
        ));
    }
    plots
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new([
            "link",
            "medium",
            "RTT ms",
            "delayed ACK, Mbit/s",
            "TACK, Mbit/s",
            "gain, %",
            "ACKs fewer by, %",
        ]),
        ..Outcome::default()
    };
    let (mut acks, mut gains) = (Vec::new(), Vec::new());
    for (link, (paper_fewer, paper_gain)) in LINKS.into_iter().zip(PAPER) {
        let measured =
            [(80, Medium::Ideal), (200, Medium::Ideal), (80, BUSY)].map(|(rtt, medium)| {
                let pair = pair(depth, link, rtt, medium);
                let (fewer, gain) = (fewer(depth, results, &pair), gain(depth, results, &pair));
                let [delayed, tack] = goodputs(depth, results, &pair).map(|one| one.to_string());
                outcome.numbers.row([
                    link.name.into(),
                    medium.name(),
                    rtt.to_string(),
                    delayed,
                    tack,
                    gain.to_string(),
                    fewer.to_string(),
                ]);
                (fewer, gain)
            });
        let [(fewer_80, _), (fewer_200, _), _] = measured;
        let ideal = pair(depth, link, 80, Medium::Ideal);
        let bandwidth = results.estimate(&ideal[1], runs(depth), mbps).mean;
        let possible = equation(depth, results, &ideal);
        // Where four acknowledgements a round trip are the paper's share of one for two segments.
        let needed = 4.0 / ((1.0 - paper_fewer / 100.0) * equation_3(bandwidth, 0.0, 2.0));
        outcome.claims.push(
            Claim::new(
                format!(
                    "{}: TACK saves at least the paper's share of acknowledgements, at 80 ms",
                    link.name
                ),
                format!("{paper_fewer} %"),
                percent(fewer_80),
                // To the digits that the paper gives.
                fewer_80.is_at_least(paper_fewer - 0.05),
            )
            .or(
                format!(
                    "Equation (3) sets the number: TCP sends bw / (2 MSS) acknowledgements a \
                        second, and TACK four in each round trip. At {} Mbit/s and 80 ms TACK \
                        can save {} %. The paper's share needs round trips of {} ms; its runs \
                        had 4 to 200 ms.",
                    format_number(bandwidth),
                    format_number(possible),
                    format_number(needed * 1e3)
                ),
                fewer_80.is_at_least(possible - 0.5),
            ),
        );
        outcome.claims.push(Claim::new(
            format!(
                "{}: the same at 200 ms, the longest of the paper's round trips",
                link.name
            ),
            format!("{paper_fewer} %"),
            percent(fewer_200),
            fewer_200.is_at_least(paper_fewer),
        ));
        for medium in MEDIA {
            outcome
                .claims
                .push(gain_claim(depth, results, (link, paper_gain), medium));
        }
        let group = |values: [Estimate; 3], paper| Group {
            name: link.name.into(),
            values: values
                .into_iter()
                .enumerate()
                .map(|(series, value)| bar(series, value, Some(paper)))
                .collect(),
        };
        acks.push(group(measured.map(|(fewer, _)| fewer), paper_fewer));
        gains.push(group(measured.map(|(_, gain)| gain), paper_gain));
    }
    outcome.plots = plots(acks, gains);
    show_besides(depth, results, &mut outcome, "1");
    outcome
}
