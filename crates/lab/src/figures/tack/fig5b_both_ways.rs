//! Figure 5(b): utilisation with losses on both paths.

use std::ops::RangeInclusive;

use tack_plot::{Group, ValueBars, format_number};

use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper, Table};
use crate::figures::presentation::{bar, percent, plot};
use crate::figures::readings::{by_means, is_above, utilisation};
use crate::point::{Cell, Point};
use crate::results::Results;
use crate::scenarios::LOSSY_BOTH_WAYS;
use crate::stats::Estimate;
use crate::{Plot, Values};

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Tack,
    id: "5b",
    title: "Rich acknowledgements tolerate losses in both directions",
    about: "One BBR flow over 100 Mbit/s and 200 ms with a queue of one bandwidth-delay product. \
        The path loses 1 % of the data, and 0.2 to 10 % of the acknowledgements. TACK-rich lists \
        as many gaps and blocks as the losses on both paths justify, TACK-poor one of each. TCP \
        is delayed ACK (L = 2) with SACK and RACK. Utilisation is the payload over that of a \
        full link. Buffers are 64 MiB; with 10 % ACK loss the default of 6 MiB is measured too. \
        TACK-poor has more seeds, because it has two modes.",
    plan,
    reduce,
};

/// ACK loss, and the paper's utilisation in percent: rich, poor, TCP.
const PAPER: [(f64, [f64; 3]); 4] = [
    (0.002, [92.7, 78.3, 91.7]),
    (0.01, [91.8, 75.9, 91.6]),
    (0.05, [91.6, 63.4, 80.2]),
    (0.1, [90.8, 60.6, 65.3]),
];

/// Which of [`ACKS`] has two modes.
const POOR: usize = 1;

const ACKS: [(&str, &str); 3] = [
    ("TACK-rich", "tack"),
    ("TACK-poor", "tack:rich=off"),
    ("TCP BBR", "delayed:2"),
];

fn cell(depth: &Depth, ack_loss: f64, ack: &str) -> Cell {
    Cell::new(&LOSSY_BOTH_WAYS)
        .set(format!("wired.ack_loss_reverse={ack_loss}"))
        .set(format!("flow.0.ack={ack}"))
        .set(depth.pick("duration=40s", "duration=60s"))
}

/// The same with the buffers that a user has.
fn with_defaults(depth: &Depth, ack_loss: f64, ack: &str) -> Cell {
    cell(depth, ack_loss, ack)
        .set("flow.0.receive_buffer=6MiB")
        .set("flow.0.send_buffer=6MiB")
}

/// Runs of TACK-poor that tell its modes apart.
fn mode_seeds(depth: &Depth) -> RangeInclusive<u64> {
    depth.seeds(3, 40)
}
/// What excuses are tested with, at the most ACK loss but for the first: TCP without ACK loss, and
/// TACK-poor without instant acknowledgements of losses.
const ALONE: &str = "tack:rich=off,iack=periodic";

fn plan(depth: &Depth) -> Vec<Point> {
    let mut points = Vec::new();
    for cell in [
        cell(depth, 0.0, "delayed:2"),
        cell(depth, PAPER[3].0, ALONE),
    ] {
        points.extend(depth.seeds(3, 10).map(|seed| cell.at(seed)));
    }
    for (ack_loss, _) in PAPER {
        for (index, (_, ack)) in ACKS.into_iter().enumerate() {
            let seeds = if index == POOR {
                mode_seeds(depth)
            } else {
                depth.seeds(3, 10)
            };
            let cell = cell(depth, ack_loss, ack);
            points.extend(seeds.map(|seed| cell.at(seed)));
        }
    }
    for (_, ack) in ACKS {
        let cell = with_defaults(depth, PAPER[3].0, ack);
        points.extend(depth.seeds(3, 10).map(|seed| cell.at(seed)));
    }
    points
}

/// TACK-poor's runs with one share of acknowledgements lost.
struct Modes {
    ack_loss: f64,
    /// Utilisation of each run, percent, ascending, and the bytes that waited behind holes at most
    /// times (99 %).
    runs: Vec<(f64, f64)>,
}

/// More bytes behind holes than this, four bandwidth-delay products, are the slow mode's.
const BEHIND_HOLES: f64 = 10e6;

impl Modes {
    fn of(depth: &Depth, results: &Results, ack_loss: f64) -> Self {
        let cell = cell(depth, ack_loss, ACKS[POOR].1);
        let of = |read: fn(&Values) -> f64| results.each(&cell, mode_seeds(depth), read);
        let rates = of(|values| 100.0 * utilisation(values, 100.0));
        let held = of(|values| values.get("flows.0.blocked_bytes_p99"));
        let mut runs: Vec<_> = rates.into_iter().zip(held).collect();
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { ack_loss, runs }
    }

    fn median(&self) -> f64 {
        self.runs
            .get(self.runs.len() / 2)
            .map_or(f64::NAN, |run| run.0)
    }

    /// Runs with less than half of what the median has.
    fn slow(&self) -> &[(f64, f64)] {
        let most = self.median() / 2.0;
        let slow = self.runs.iter().take_while(|run| run.0 < most).count();
        &self.runs[..slow]
    }

    /// At most such a share of runs is slow, percent: the upper end of Wilson's 95 % interval.
    fn upper_share(&self) -> f64 {
        let (n, z) = (self.runs.len() as f64, 1.96_f64);
        let share = self.slow().len() as f64 / n;
        let spread = (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
        100.0 * (share + z * z / (2.0 * n) + z * spread) / (1.0 + z * z / n)
    }

    fn is_measured(&self) -> bool {
        self.runs.iter().all(|run| run.0.is_finite())
    }
}

/// The claim that TACK-poor has one mode.
fn mode_claim(depth: &Depth, results: &Results) -> Claim {
    let all = PAPER.map(|(ack_loss, _)| Modes::of(depth, results, ack_loss));
    let texts = all.iter().map(|modes| {
        let slow = modes.slow();
        let least = slow.iter().map(|run| format_number(run.0));
        format!(
            "{} % ACK loss: {} of {} runs{} (median {} %, at most {} % of runs)",
            format_number(100.0 * modes.ack_loss),
            slow.len(),
            modes.runs.len(),
            match slow.len() {
                0 => String::new(),
                _ => format!(" at {} %", least.collect::<Vec<_>>().join(", ")),
            },
            format_number(modes.median()),
            format_number(modes.upper_share()),
        )
    });
    let texts = texts.collect::<Vec<_>>().join("; ");
    let slow = || all.iter().flat_map(Modes::slow);
    let held = slow().map(|run| run.1).fold(f64::INFINITY, f64::min);
    Claim::new(
        "TACK-poor has one mode: no run has less than half of the median run's utilisation",
        "–",
        texts,
        all.iter()
            .all(|modes| modes.is_measured() && modes.slow().is_empty()),
    )
    .or(
        format!(
            "Startup overshoots, and a report names one of the thousands of holes. If many \
                reports are lost, the data above the holes grows until the receive window is \
                full ({} MB at least in these runs, against a bandwidth-delay product of 2.5 \
                MB). Then the sender sends only repairs, one for each report, for more than ten \
                round trips. BBR's bandwidth filter forgets the bandwidth of the path, and \
                regains it by a quarter in eight round trips.",
            format_number(held / 1e6)
        ),
        all.iter().all(Modes::is_measured) && slow().all(|run| run.1 >= BEHIND_HOLES),
    )
}

fn utilisation_plot(at_worst: [Estimate; 3], groups: Vec<Group>) -> Plot {
    plot(
        ValueBars {
            id: "plot-5b".into(),
            title: "Utilisation with losses on both paths".into(),
            description: format!(
                "With 10 % of acknowledgements lost TACK-rich uses {} %, TACK-poor {} %, TCP BBR {} % of the link.",
                at_worst[0], at_worst[1], at_worst[2]
            ),
            label: "utilisation, %".into(),
            series: ACKS
                .iter()
                .zip([1, 4, 0])
                .map(|((name, _), colour)| ((*name).into(), colour))
                .collect(),
            reference: "paper".into(),
            groups,
        }
        .to_svg(),
        "Utilisation of 100 Mbit/s at 200 ms and 1 % data loss, by the share of acknowledgements lost.",
    )
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = Outcome {
        numbers: Table::new(["ACK loss", "mechanism", "paper, %", "ours, %"]),
        ..Outcome::default()
    };
    let mut groups = Vec::new();
    let mut all: Vec<[Estimate; 3]> = Vec::new();
    for (ack_loss, paper) in PAPER {
        let ours = ACKS.map(|(_, ack)| {
            let cell = cell(depth, ack_loss, ack);
            results
                .estimate(&cell, depth.seeds(3, 10), |values| {
                    utilisation(values, 100.0)
                })
                .times(100.0)
        });
        for (index, (name, _)) in ACKS.iter().enumerate() {
            outcome.numbers.row([
                format!("{} %", format_number(100.0 * ack_loss)),
                (*name).into(),
                format_number(paper[index]),
                ours[index].to_string(),
            ]);
        }
        groups.push(Group {
            name: format!(
                "{} % of acknowledgements lost",
                format_number(100.0 * ack_loss)
            ),
            values: (0..3)
                .map(|index| bar(index, ours[index], Some(paper[index])))
                .collect(),
        });
        outcome.claims.push(Claim::new(
            format!(
                "TACK-rich uses at least the paper's share with {} % of acknowledgements lost, interval included",
                format_number(100.0 * ack_loss)
            ),
            percent_of(paper[0]),
            percent(ours[0]),
            ours[0].low() >= paper[0],
        ));
        all.push(ours);
    }
    let more = |first: (f64, &str), second: (f64, &str)| {
        let cells = [first, second].map(|(ack_loss, ack)| cell(depth, ack_loss, ack));
        let seeds = depth.seeds(3, 10);
        let points = results.paired([&cells[0], &cells[1]], seeds, |first, second| {
            utilisation(first, 100.0) - utilisation(second, 100.0)
        });
        points.times(100.0)
    };
    let (least, worst) = (PAPER[0].0, PAPER[3].0);
    let lost = more((least, "tack"), (worst, "tack"));
    outcome.claims.push(
        Claim::new(
            "ACK loss hardly affects TACK-rich: from 0.2 to 10 % ACK loss it loses no more \
                utilisation than in the paper, interval included",
            "1.9 points",
            format!("{lost} points"),
            lost.high() <= 1.9,
        )
        .undecided(lost.low() <= 1.9),
    );
    let at_worst = all[3];
    for (other, name, ack) in [(1, "TACK-poor", "tack:rich=off"), (2, "TCP", "delayed:2")] {
        let ahead = more((worst, "tack"), (worst, ack));
        outcome.claims.push(Claim::new(
            format!(
                "With 10 % ACK loss TACK-rich is ahead of {name}{}",
                by_means(depth)
            ),
            format!("90.8 against {} %", format_number(PAPER[3].1[other])),
            format!(
                "{} against {} %: {ahead} points",
                at_worst[0], at_worst[other]
            ),
            is_above(depth, ahead, 0.0),
        ));
        let excuse = match other {
            1 => excuse_of_poor(depth, results),
            _ => excuse_of_tcp(depth, results),
        };
        // That it is ahead is one thing, by how much another.
        let paper = PAPER[3].1[0] - PAPER[3].1[other];
        outcome.claims.push(
            Claim::new(
                format!(
                    "With 10 % ACK loss TACK-rich is ahead of {name} by as much as in the paper"
                ),
                format!("{} points", format_number(paper)),
                format!("{ahead} points"),
                ahead.mean >= paper,
            )
            .or(excuse.0, excuse.1),
        );
    }
    outcome.claims.push(mode_claim(depth, results));
    outcome
        .claims
        .extend(default_claims(depth, results, &mut outcome.numbers));
    outcome.plots.push(utilisation_plot(at_worst, groups));
    outcome
}

/// By how much TACK-rich is ahead with 10 % ACK loss and the buffers that a user has.
fn default_claims(depth: &Depth, results: &Results, numbers: &mut Table) -> Vec<Claim> {
    let (ack_loss, paper) = PAPER[3];
    let cells = ACKS.map(|(_, ack)| with_defaults(depth, ack_loss, ack));
    let share = |values: &Values| 100.0 * utilisation(values, 100.0);
    let seeds = || depth.seeds(3, 10);
    let ours = cells
        .each_ref()
        .map(|cell| results.estimate(cell, seeds(), share));
    for (index, (name, _)) in ACKS.iter().enumerate() {
        numbers.row([
            format!("{} %, default buffers", format_number(100.0 * ack_loss)),
            (*name).into(),
            format_number(paper[index]),
            ours[index].to_string(),
        ]);
    }
    let ahead = |other: usize| {
        results.paired([&cells[0], &cells[other]], seeds(), |rich, other| {
            share(rich) - share(other)
        })
    };
    let large = |other: usize| {
        let large = [0, other].map(|index| cell(depth, ack_loss, ACKS[index].1));
        results.paired([&large[0], &large[1]], seeds(), |rich, other| {
            share(rich) - share(other)
        })
    };
    let claim = |other: usize| {
        let points = paper[0] - paper[other];
        let (ahead, large) = (ahead(other), large(other));
        Claim::new(
            format!(
                "With 10 % ACK loss and default buffers TACK-rich is ahead of {} by as much as in the paper, interval included",
                ACKS[other].0
            ),
            format!("{} points", format_number(points)),
            format!("{} against {} %: {ahead} points", ours[0], ours[other]),
            ahead.low() >= points,
        )
        .undecided(ahead.high() >= points)
        .or(
            format!(
                "{} performs better here than in the paper, {} % against {} %, which leaves less \
                    to gain. The gain depends on the buffers: TACK-rich is ahead by {large} \
                    points with 64 MiB, and by {ahead} with 6 MiB. The paper does not give its \
                    buffers.",
                ACKS[other].0,
                ours[other],
                format_number(paper[other]),
            ),
            ahead.low() > 0.0 && ours[other].low() > paper[other],
        )
    };
    vec![claim(1), claim(2)]
}

/// Why TCP loses less here than in the paper, and whether that is so: the next acknowledgement says
/// all that a lost one said. Then less than half of the utilisation goes that goes in the paper,
/// interval included; and TCP takes no segment for lost because an acknowledgement was.
fn excuse_of_tcp(depth: &Depth, results: &Results) -> (String, bool) {
    let seeds = || depth.seeds(3, 10);
    let [none, most] = [0.0, PAPER[3].0].map(|loss| cell(depth, loss, "delayed:2"));
    let cost = results
        .paired([&none, &most], seeds(), |none, most| {
            utilisation(none, 100.0) - utilisation(most, 100.0)
        })
        .times(100.0);
    let needless = results
        .estimate(&most, seeds(), |values| {
            values.get("flows.0.spurious_retransmissions") / values.get("flows.0.data_segments")
        })
        .times(100.0);
    let paper = PAPER[0].1[2] - PAPER[3].1[2];
    (
        format!(
            "The next acknowledgement of TCP repeats what a lost one reported. A loss of 10 % of \
                them costs TCP {cost} points of utilisation against no loss (in the paper {} \
                against 0.2 %), and {needless} % of its segments are retransmitted without need.",
            format_number(paper)
        ),
        cost.high() <= paper / 2.0 && needless.high() <= 0.1,
    )
}

/// Why TACK-poor loses less here than in the paper, and whether that is so: instant
/// acknowledgements tell it of nearly all losses, and one gap in each periodic one is enough for
/// the rest. Without them it must fall below the paper's.
fn excuse_of_poor(depth: &Depth, results: &Results) -> (String, bool) {
    let ours = |ack: &str| {
        let cell = cell(depth, PAPER[3].0, ack);
        let seeds = depth.seeds(3, 10);
        results
            .estimate(&cell, seeds, |values| utilisation(values, 100.0))
            .times(100.0)
    };
    let (poor, alone) = (ours(ACKS[1].1), ours(ALONE));
    (
        format!(
            "Here instant acknowledgements report most losses to TACK-poor, and periodic ones, \
                with one gap each, report the rest: it uses {}. With periodic acknowledgements \
                alone it uses {}.",
            percent(poor),
            percent(alone)
        ),
        poor.mean > PAPER[3].1[1] && alone.high() < PAPER[3].1[1],
    )
}

fn percent_of(number: f64) -> String {
    format!("{} %", format_number(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_below_half_of_the_median_are_the_slow_mode() {
        let mut runs = vec![(17.5, 40e6)];
        runs.extend((0..39).map(|run| (80.0 + f64::from(run) / 10.0, 7e6)));
        let modes = Modes {
            ack_loss: 0.05,
            runs,
        };
        assert_eq!(modes.slow(), [(17.5, 40e6)]);
        // Wilson's interval of 1 of 40: 0.4 to 12.9 %.
        assert!((modes.upper_share() - 12.9).abs() < 0.1);
        let without = Modes {
            runs: modes.runs[1..].to_vec(),
            ..modes
        };
        assert!(without.slow().is_empty() && without.is_measured());
    }
}
