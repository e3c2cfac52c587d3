//! The cross-validation of the paper's simulator with its prototype.

use tack_plot::{Group, ValueBars};

use super::prototype::{cross_cells, first_try, points, seeds};
use super::total;
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, percent, plot, tenths};
use crate::point::Cell;
use crate::results::Results;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Hack,
    id: "hackcross",
    title: "Cross-validation with the paper's simulation of 802.11a",
    about: "The paper simulates one client with the loss that its prototype saw: 12 % with TCP, 2 % with TCP/HACK. It does not say whether these \
            include the simulator's own collisions. Three readings are shown: noise of 12 % and of 2 % besides collisions, and noise of 5 %, with \
            which 12 % of the frames are sent again.",
    plan: |depth| points(depth, &cross_cells()),
    reduce,
};

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let goodput = |cell: &Cell| results.estimate(cell, seeds(depth), |values| total(values, 1));
    let cells = cross_cells();
    let lost =
        |cell: &Cell| results.estimate(cell, seeds(depth), |values| 100.0 - first_try(values));
    let (lost_alone, lost_same) = (lost(&cells[2]), lost(&cells[1]));
    let [noisy, same, alone, hack] = [0, 1, 2, 3].map(|index| goodput(&cells[index]));
    let mut outcome = Outcome {
        numbers: Table::new([
            "",
            "goodput, Mbit/s",
            "the paper's simulation",
            "its prototype",
        ]),
        ..Outcome::default()
    };
    for (name, ours, simulated, prototype) in [
        ("TCP, noise of 12 % besides collisions", noisy, "22.4", "22"),
        ("TCP, noise of 5 % besides collisions", same, "22.4", "22"),
        ("TCP, noise of 2 % besides collisions", alone, "22.4", "22"),
        ("TCP/HACK, noise of 2 %", hack, "28", "27.7"),
    ] {
        outcome.numbers.row([
            name.into(),
            ours.to_string(),
            simulated.into(),
            prototype.into(),
        ]);
    }
    let svg = ValueBars {
        id: "plot-hackcross".into(),
        title: "Goodput over 802.11a with the loss that the prototype saw".into(),
        description: format!("TCP {alone}, TCP/HACK {hack} Mbit/s."),
        label: "Mbit/s".into(),
        series: vec![("here".into(), 0)],
        reference: "the paper's simulation".into(),
        groups: [
            ("TCP, 12 % and collisions", noisy, 22.4),
            ("TCP, 5 % and collisions", same, 22.4),
            ("TCP, 2 % and collisions", alone, 22.4),
            ("TCP/HACK, 2 %", hack, 28.0),
        ]
        .map(|(name, ours, paper)| Group {
            name: name.into(),
            values: vec![bar(0, ours, Some(paper))],
        })
        .into(),
        ..ValueBars::default()
    }
    .to_svg();
    outcome
        .plots
        .push(plot(svg, "Goodput with the prototype's loss."));
    outcome.claims = vec![
        Claim::new(
            "TCP/HACK reaches 28 Mbit/s, to 3 %",
            "28 Mbit/s",
            format!("{hack} Mbit/s"),
            hack.is_near(28.0, 0.03),
        ),
        Claim::new(
            "TCP reaches 22.4 Mbit/s, to 5 %, where 12 % of its frames are sent again, collisions included",
            "22.4 Mbit/s",
            format!(
                "{same} Mbit/s, {} sent again; {alone} with noise of 2 %, {noisy} with 12 %",
                percent(lost_same)
            ),
            same.is_near(22.4, 0.05).and(lost_same.is_within(10.0..=14.0)),
        ),
        Claim::new(
            "Noise of 2 % and the collisions of TCP make the 12 % that the prototype saw, to 3 percentage points",
            "12 %",
            percent(lost_alone),
            lost_alone.is_within(9.0..=15.0),
        )
        .or(
            format!(
                "Collisions make {} % here (table 1 says why); noise of 5 % makes up for the rest.",
                tenths(lost_alone.mean - 3.96)
            ),
            lost_same.is_within(10.0..=14.0),
        ),
    ];
    outcome
}
