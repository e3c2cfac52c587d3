//! Figure 8: larger contention windows.

use tack_plot::format_number;

use super::goodput::{self, Series, counts, filtered, gain, show};
use super::{Setup, difference, total};
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper};
use crate::point::Point;
use crate::results::Results;
use tack_stats::Finding;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Filter,
    id: "filter8",
    title: "Larger contention windows",
    about: "The same with a smallest contention window of 31, 63, 127 and 255 slots at every radio; queues of 250 packets.",
    plan,
    reduce,
};

const SIZES: [u32; 4] = [31, 63, 127, 255];

fn series() -> Vec<Series> {
    [false, true]
        .into_iter()
        .flat_map(|is_filtered| {
            let name = if is_filtered {
                "filtered"
            } else {
                "unmodified"
            };
            SIZES.map(|cw_min| {
                Series::new(format!("{name}, CWmin {cw_min}"), move |n| Setup {
                    cw_min,
                    ..Setup::new(n, 250, is_filtered)
                })
            })
        })
        .collect()
}

fn plan(depth: &Depth) -> Vec<Point> {
    goodput::plan(depth, &series())
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = show(
        depth,
        results,
        "filter8",
        "Goodput by the smallest contention window",
        &series(),
    );
    let ahead = |cw_min: u32| {
        let gains: Vec<_> = counts(depth)
            .iter()
            .map(|count| {
                let setup = Setup {
                    cw_min,
                    ..filtered(*count, 250)
                };
                (*count, gain(depth, results, setup))
            })
            .collect();
        let behind: Vec<_> = gains
            .iter()
            .filter(|(_, gain)| !gain.is_above(0.0).is_sure())
            .map(|(count, gain)| format!("{gain} with {count}"))
            .collect();
        let least = gains
            .iter()
            .map(|(_, gain)| gain.mean)
            .fold(f64::NAN, f64::min);
        let ours = if behind.is_empty() {
            format!("at least {} Mbit/s", format_number(least))
        } else {
            behind.join(", ")
        };
        Claim::new(
            format!(
                "With CWmin {cw_min} filtering outperforms the unmodified queue at every number of stations"
            ),
            "outperforms",
            ours,
            Finding::all(gains.iter().map(|(_, gain)| gain.is_above(0.0))),
        )
    };
    outcome.claims = vec![ahead(63), ahead(127)];
    let relaxed = |count: usize| {
        let setups = [31, 127].map(|cw_min| Setup {
            cw_min,
            ..filtered(count, 250)
        });
        difference(depth, results, setups, total)
    };
    outcome.claims.push(Claim::new(
        "A larger window helps filtering where many contend: 127 against 31 slots with 20 stations",
        "helps",
        format!("{} Mbit/s more", relaxed(20)),
        relaxed(20).is_above(0.0),
    ));
    outcome
}
