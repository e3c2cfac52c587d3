//! Table 1: frames that arrive at the first attempt.

use super::prototype::{
    HACK, TCP, TRANSPORTS, UDP, bars, cell, clients_and_transports, first_try, goodput_cells,
    points, seeds,
};
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{percent, plot};
use crate::point::Cell;
use crate::results::Results;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Hack,
    id: "hacktable1",
    title: "Frames that arrive at the first attempt",
    about: "The runs of figure 9: data frames of the access point that were not sent again. One in a hundred is spoilt by noise; the rest of the \
            retries are collisions with acknowledgements of the clients.",
    plan: |depth| points(depth, &[goodput_cells(), vec![saturated()]].concat()),
    reduce,
};

/// The paper's shares by clients and transport, percent.
const PAPER: [[f64; 3]; 2] = [[87.0, 97.0, 99.0], [86.0, 98.0, 99.0]];

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new(["clients", "transport", "first attempt, %", "the paper's, %"]),
        ..Outcome::default()
    };
    let share =
        |transport, clients| results.estimate(&cell(transport, clients), seeds(depth), first_try);
    let groups = clients_and_transports(PAPER, share, &mut outcome.numbers);
    let svg = bars(
        ["plot-hacktable1", "Frames that arrive at the first attempt"],
        "Nearly all with UDP and TCP/HACK, seven of eight with TCP.",
        "% of the access point's data frames",
        groups,
    );
    outcome
        .plots
        .push(plot(svg, "First attempts that succeed."));
    let both = results.estimate(&saturated(), seeds(depth), first_try);
    outcome.claims = [1, 2]
        .into_iter()
        .flat_map(|clients| {
            [TCP, HACK, UDP].map(|transport| {
                let (ours, wanted) = (share(transport, clients), PAPER[clients - 1][transport]);
                Claim::new(
                    format!(
                        "{} with {clients} client{}: to 3 percentage points",
                        TRANSPORTS[transport],
                        if clients == 1 { "" } else { "s" }
                    ),
                    format!("{wanted} %"),
                    percent(ours),
                    ours.is_within(wanted - 3.0..=wanted + 3.0),
                )
                .or(
                    format!(
                        "A client contends only while it has acknowledgements, and the access point has to wait for each. With UDP in both \
                         directions both ends always contend: {} arrive at the first attempt.",
                        percent(both)
                    ),
                    both.is_within(wanted - 3.0..=wanted + 3.0).and(transport == TCP),
                )
            })
        })
        .collect();
    outcome
}

/// Both ends of one client's link always have something to send.
fn saturated() -> Cell {
    cell(UDP, 1)
        .set("flow.1.from=sta0")
        .set("flow.1.transport=udp")
}
