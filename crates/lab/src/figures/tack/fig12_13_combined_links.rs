//! Figures 12 and 13: a wireless link behind a long, lossy path.

use tack_plot::{Group, ValueBars, format_number};

use crate::Plot;
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, plot};
use crate::figures::readings::mbps;
use crate::figures::tack::links::{LINKS, Link};
use crate::figures::transport::Transport;
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::WLAN_TCP;
use tack_stats::Finding;

use tack_stats::Estimate;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "13",
    title: "A wireless link behind a wide-area path",
    about: "The topology of figure 12: a server, an emulated wide-area path, an access point, a wireless client; the wireless link is the \
            bottleneck (802.11g at 54 Mbit/s). Cases 1 and 2 have an RTT of 20 ms, cases 3 and 4 of 200 ms; in cases 2 and 4 one \
            packet in a hundred is lost on the path, in either direction (the text of the paper leaves the rate open). Ideal medium.",
    plan,
    reduce,
};

const LINK: Link = LINKS[1];

/// RTT in milliseconds and loss either way, of cases 1 to 4.
const CASES: [(u32, f64); 4] = [(20, 0.0), (20, 0.01), (200, 0.0), (200, 0.01)];

const WAYS: [Transport; 3] = [
    Transport::new("BBR with TACK", "bbr", "tack"),
    Transport::new("TCP BBR", "bbr", "delayed:2"),
    Transport::new("TCP CUBIC", "cubic", "delayed:2"),
];

fn cell(depth: &Depth, (rtt_ms, loss): (u32, f64), congestion: &str, ack: &str) -> Cell {
    let cell = Cell::new(&WLAN_TCP)
        .set(format!("wlan.preset={}", LINK.preset))
        .set(format!("wired.delay={}ms", rtt_ms / 2))
        .set(format!("wired.loss={loss}"))
        .set(format!("wired.loss_reverse={loss}"))
        .set(format!("flow.0.congestion={congestion}"))
        .set(format!("flow.0.ack={ack}"))
        .set("warmup=10s");
    cell.set(depth.pick("duration=30s", "duration=130s"))
}

fn cells(depth: &Depth, case: (u32, f64)) -> [Cell; 3] {
    WAYS.map(|way| cell(depth, case, way.congestion, way.ack))
}

fn plan(depth: &Depth) -> Vec<Point> {
    CASES
        .iter()
        .flat_map(|case| cells(depth, *case))
        .flat_map(|cell| depth.seeds(2, 10).map(move |seed| cell.at(seed)))
        .collect()
}

/// The paper's claims on the number of acknowledgements; `acks` by case and way, in a second.
fn frequency_claims(depth: &Depth, results: &Results, acks: &[[Estimate; 3]]) -> Vec<Claim> {
    let [first, third] = [0, 2].map(|case| cells(depth, CASES[case])[0].clone());
    let ratio = results.paired([&third, &first], depth.seeds(2, 10), |third, first| {
        crate::figures::readings::ack_frequency(first)
            / crate::figures::readings::ack_frequency(third)
    });
    let mut claims = vec![Claim::new(
        "TACK sends nearly ten times as many acknowledgements in case 1 as in case 3: 9 to 11 times",
        "~ 10",
        ratio.to_string(),
        ratio.is_within(9.0..=11.0),
    )];
    let [clean, lossy] = [CASES[2], CASES[3]].map(|case| cells(depth, case)[0].clone());
    let runs = || depth.seeds(2, 10);
    let on_loss = results.estimate(&lossy, runs(), |values| {
        values.get("flows.0.acks_by_kind.iack_loss") / crate::figures::readings::seconds(values)
    });
    let more = results.paired([&clean, &lossy], runs(), |clean, lossy| {
        crate::figures::readings::ack_frequency(lossy)
            - crate::figures::readings::ack_frequency(clean)
    });
    claims.push(Claim::new(
        "With losses TACK sends more acknowledgements (case 4 over case 3), and at least 90 % of \
            the additional ones report losses",
        "more, almost all on loss",
        format!(
            "{} against {} /s; {on_loss} /s on loss",
            acks[3][0], acks[2][0]
        ),
        more.is_above(0.0)
            .and(on_loss.less(more.times(0.9)).is_at_least(0.0)),
    ));
    // One of a hundred packets is lost on the way to the client, and each loss is an event.
    let losses = results.estimate(&lossy, runs(), |values| {
        0.01 * values.get("flows.0.data_segments") / crate::figures::readings::seconds(values)
    });
    let each = more.mean / losses.mean;
    claims.push(Claim::new(
        "Case 4 has one additional acknowledgement for each lost packet, within a tenth",
        "nearly 20,000 more",
        format!(
            "{more} /s more for {losses} losses a second: {} for each; 20,000 in {} s of such a run",
            format_number(each),
            format_number(20_000.0 / more.mean)
        ),
        more.less(losses).times(1.0 / losses.mean).is_within(-0.1..=0.1),
    ));
    claims
}

/// Goodput and acknowledgements.
fn plots(groups: [Vec<Group>; 2]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for (part, title, label, groups) in [
        ("goodput", "Goodput over the combined path", "Mbit/s"),
        (
            "acks",
            "Acknowledgements over the combined path",
            "ACKs per second",
        ),
    ]
    .into_iter()
    .zip(groups)
    .map(|((part, title, label), groups)| (part, title, label, groups))
    {
        let svg = ValueBars {
            id: format!("plot-13-{part}"),
            title: title.into(),
            description: groups
                .iter()
                .map(|group| {
                    format!(
                        "{}: TACK {}, TCP BBR {}, TCP CUBIC {}.",
                        group.name,
                        format_number(group.values[0].value),
                        format_number(group.values[1].value),
                        format_number(group.values[2].value)
                    )
                })
                .collect::<Vec<_>>()
                .join(" "),
            label: label.into(),
            is_positive: true,
            series: WAYS
                .iter()
                .zip([1, 0, 4])
                .map(|(way, colour)| (way.name.into(), colour))
                .collect(),
            reference: String::new(),
            groups,
            ..ValueBars::default()
        }
        .to_svg();
        plots.push(plot(
            svg,
            format!("{title} of 802.11g and a wide-area path."),
        ));
    }
    plots
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new(["case", "transport", "goodput, Mbit/s", "ACKs/s"]),
        ..Outcome::default()
    };
    let mut acks: Vec<[Estimate; 3]> = Vec::new();
    let mut groups: [Vec<Group>; 2] = Default::default();
    for (number, case) in CASES.into_iter().enumerate() {
        let name = format!(
            "case {}: {} ms, {} % loss",
            number + 1,
            case.0,
            format_number(100.0 * case.1)
        );
        let cells = cells(depth, case);
        let goodput = cells
            .each_ref()
            .map(|cell| results.estimate(cell, depth.seeds(2, 10), mbps));
        let frequency = cells.each_ref().map(|cell| {
            results.estimate(
                cell,
                depth.seeds(2, 10),
                crate::figures::readings::ack_frequency,
            )
        });
        for (index, way) in WAYS.iter().enumerate() {
            outcome.numbers.row([
                name.clone(),
                way.name.into(),
                goodput[index].to_string(),
                frequency[index].to_string(),
            ]);
        }
        outcome.claims.push(Claim::new(
            format!(
                "Case {}: BBR with TACK is ahead of TCP BBR and TCP CUBIC",
                number + 1
            ),
            "ahead",
            format!("{} / {} / {} Mbit/s", goodput[0], goodput[1], goodput[2]),
            Finding::all(cells[1..].iter().map(|other| {
                let seeds = depth.seeds(2, 10);
                let ahead = results.paired([&cells[0], other], seeds, |tack, other| {
                    mbps(tack) - mbps(other)
                });
                ahead.is_above(0.0)
            })),
        ));
        for (groups, values) in groups.iter_mut().zip([&goodput, &frequency]) {
            groups.push(Group {
                name: name.clone(),
                values: values
                    .iter()
                    .enumerate()
                    .map(|(index, value)| bar(index, *value, None))
                    .collect(),
            });
        }
        acks.push(frequency);
    }
    outcome
        .claims
        .extend(frequency_claims(depth, results, &acks));
    outcome.notes.push(
        "The paper's number of 20,000 additional acknowledgements in case 4 cannot be compared, \
            because the paper gives neither the length of its runs nor the number of lost \
            packets. That each loss adds one acknowledgement can be compared."
            .into(),
    );
    outcome.plots = plots(groups);
    outcome
}
