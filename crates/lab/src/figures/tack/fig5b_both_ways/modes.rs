//! The two modes of TACK-poor.

use std::ops::RangeInclusive;

use tack_plot::{Line, LineChart, Stroke, format_number};

use crate::claim::Claim;
use crate::figures::presentation;
use crate::figures::readings::utilisation;
use crate::point::Cell;
use crate::results::Results;
use crate::{Plot, Values};
use tack_stats::Estimate;
use tack_stats::Finding;

/// TACK-poor's runs with one share of acknowledgements lost.
pub(super) struct Modes {
    ack_loss: f64,
    runs: Vec<Run>,
}

/// A run of TACK-poor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    /// Percent.
    utilisation: f64,
    /// Bytes that waited behind holes at most times (99 %).
    held: f64,
    /// The longest time without progress, seconds.
    standstill: f64,
}

/// Runs of one mode are closer to each other than this, in percentage points of utilisation.
const GAP: f64 = 10.0;

/// A mode has at least this share of the runs, percent.
const RARE: f64 = 5.0;

impl Modes {
    pub(super) fn of(
        results: &Results,
        cell: &Cell,
        seeds: RangeInclusive<u64>,
        ack_loss: f64,
    ) -> Self {
        let of = |read: fn(&Values) -> f64| results.each(cell, seeds.clone(), read);
        let rates = of(|values| 100.0 * utilisation(values, 100.0));
        let held = of(|values| values.get("flows.0.blocked_bytes_p99"));
        let standstill = of(|values| values.get("flows.0.no_progress_max_s"));
        let runs = rates.into_iter().zip(held).zip(standstill);
        Self::new(
            ack_loss,
            runs.map(|((utilisation, held), standstill)| Run {
                utilisation,
                held,
                standstill,
            })
            .collect(),
        )
    }

    fn new(ack_loss: f64, mut runs: Vec<Run>) -> Self {
        runs.sort_by(|a, b| a.utilisation.total_cmp(&b.utilisation));
        Self { ack_loss, runs }
    }

    /// Runs below the first gap under the median, and the others.
    fn split(&self) -> (&[Run], &[Run]) {
        let is_gap =
            |first: usize| self.runs[first + 1].utilisation - self.runs[first].utilisation >= GAP;
        let below = (0..self.runs.len() / 2).rev().find(|first| is_gap(*first));
        self.runs.split_at(below.map_or(0, |first| first + 1))
    }

    /// The share of slow runs, percent, with Wilson's 95 % interval.
    fn share(&self) -> [f64; 3] {
        let (n, z) = (self.runs.len() as f64, 1.96_f64);
        let share = self.split().0.len() as f64 / n;
        let spread = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
        let middle = share + z * z / (2.0 * n);
        let end = |side: f64| 100.0 * (middle + side * spread) / (1.0 + z * z / n);
        [100.0 * share, end(-1.0).max(0.0), end(1.0)]
    }

    /// Whether slow runs are rare.
    fn is_one(&self) -> Finding {
        let [share, low, high] = self.share();
        Finding {
            holds: self.is_measured() && share < RARE,
            is_decided: !self.is_measured() || high < RARE || low >= RARE,
        }
    }

    fn is_measured(&self) -> bool {
        !self.runs.is_empty() && self.runs.iter().all(|run| run.utilisation.is_finite())
    }

    fn text(&self) -> String {
        let (slow, fast) = self.split();
        let [share, low, high] = self.share().map(format_number);
        let ends = match fast {
            [first, .., last] => [first, last].map(|run| format_number(run.utilisation)),
            _ => [String::new(), String::new()],
        };
        format!(
            "{} % ACK loss: {} of {} runs ({share} %, {low} to {high}){}, the others use {} to {} %",
            format_number(100.0 * self.ack_loss),
            slow.len(),
            self.runs.len(),
            match slow.len() {
                0 => String::new(),
                _ => format!(" use {} %", listed(slow, |run| run.utilisation)),
            },
            ends[0],
            ends[1],
        )
    }
}

fn listed(runs: &[Run], read: fn(&Run) -> f64) -> String {
    let texts = runs.iter().map(|run| format_number(read(run)));
    texts.collect::<Vec<_>>().join(", ")
}

/// The claim that TACK-poor has one mode, and both modes with their shares. `without` are runs over
/// a queue that startup does not overflow, and `drops` what that queue drops in a run.
pub(super) fn claim(all: &[Modes; 4], without: &Modes, drops: Estimate) -> Claim {
    let texts: Vec<_> = all.iter().map(Modes::text).collect();
    let (slow, _) = all[3].split();
    Claim::new(
        format!(
            "TACK-poor has one mode: fewer than {RARE} % of its runs are slow, below a gap of \
                {GAP} points of utilisation under the median"
        ),
        "–",
        texts.join("; "),
        Finding::all(all.iter().map(Modes::is_one)),
    )
    .or(
        format!(
            "Startup overflows the queue, and a report of TACK-poor names one of the thousands \
                of holes. If many reports are lost, the sender repairs one hole a report for many \
                round trips. In the slow runs with 10 % ACK loss {} MB wait behind holes, and the \
                longest time without progress is {} s. Where the queue holds what startup sends \
                too much (8 bandwidth-delay products, {drops} packets dropped in a run), {} of {} \
                runs are slow. Why some runs that begin so are slow and others are not is not \
                known: fast runs have timeouts, too.",
            listed(slow, |run| run.held / 1e6),
            listed(slow, |run| run.standstill),
            without.split().0.len(),
            without.runs.len(),
        ),
        drops
            .is_at_most(0.0)
            .and(without.is_measured() && without.split().0.is_empty()),
    )
}

/// The runs of TACK-poor, each with the share of runs that use no more.
pub(super) fn plot(all: &[Modes; 4]) -> Plot {
    let lines = all.iter().zip([0, 2, 4, 1]).map(|(modes, colour)| Line {
        name: format!(
            "{} % of acknowledgements lost",
            format_number(100.0 * modes.ack_loss)
        ),
        points: modes
            .runs
            .iter()
            .enumerate()
            .map(|(index, run)| {
                let share = 100.0 * (index + 1) as f64 / modes.runs.len() as f64;
                (share, run.utilisation)
            })
            .collect(),
        colour,
        stroke: Stroke::Dotted,
        ..Line::default()
    });
    let chart = LineChart {
        id: "plot-5b-modes".into(),
        title: "Utilisation of each run of TACK-poor".into(),
        description: all.iter().map(Modes::text).collect::<Vec<_>>().join("; "),
        x_label: "runs that use at most as much, %".into(),
        y_label: "utilisation, %".into(),
        lines: lines.collect(),
        ..LineChart::default()
    };
    presentation::plot(
        chart.to_svg(),
        "Utilisation of each run of TACK-poor, in ascending order: those below the gap are its slow mode.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(utilisations: impl IntoIterator<Item = f64>) -> Modes {
        let runs = utilisations.into_iter().map(|utilisation| Run {
            utilisation,
            held: 7e6,
            standstill: 0.7,
        });
        Modes::new(0.1, runs.collect())
    }

    #[test]
    fn runs_below_a_gap_are_the_slow_mode_wherever_it_lies() {
        let fast = || (0..16).map(|run| 71.0 + f64::from(run));
        // One of them has more than half of the median.
        let some = modes(fast().chain([45.8, 10.6, 12.6, 26.5]));
        let slow: Vec<_> = some.split().0.iter().map(|run| run.utilisation).collect();
        assert_eq!(slow, [10.6, 12.6, 26.5, 45.8]);
        // Wilson's interval of 4 of 20.
        let [share, low, high] = some.share();
        assert!(
            (share - 20.0).abs() < 0.1 && (low - 8.1).abs() < 0.1,
            "{low}"
        );
        assert!((high - 41.6).abs() < 0.1, "{high}");
        assert_eq!(some.is_one(), Finding::from(false));
        // What falls off steadily is one mode.
        assert!(
            modes((0..20).map(|run| 9.0 * f64::from(run)))
                .split()
                .0
                .is_empty()
        );
    }

    #[test]
    fn a_few_runs_do_not_rule_out_a_slow_mode() {
        let few = modes((0..3).map(|run| 85.0 + f64::from(run)));
        assert!(few.is_one().holds && !few.is_one().is_decided);
        let many = modes((0..100).map(|run| 85.0 + f64::from(run) / 50.0));
        assert_eq!(many.is_one(), Finding::from(true));
        assert_eq!(modes([]).is_one(), Finding::from(false));
        assert_eq!(modes([f64::NAN]).is_one(), Finding::from(false));
    }
}
