//! Figure 10: delayed acknowledgements.

use super::goodput::{self, Series, counts, filtered, show};
use super::{Setup, difference, total};
use crate::claim::Claim;
use crate::figure::{Depth, Figure, Outcome, Paper};
use crate::figures::presentation::tenths;
use crate::point::Point;
use crate::results::Results;
use tack_stats::Finding;

pub(in crate::figures) const FIGURE: Figure = Figure {
    paper: Paper::Filter,
    id: "filter10",
    title: "Delayed acknowledgements",
    about: "The same with acknowledgements for every second segment (delayed ACK), by the smallest contention window; queues of 250 packets.",
    plan,
    reduce,
};

fn delayed(stations: usize, cw_min: u32, is_filtered: bool) -> Setup {
    Setup {
        cw_min,
        is_delayed: true,
        ..Setup::new(stations, 250, is_filtered)
    }
}

fn series() -> Vec<Series> {
    let mut series: Vec<_> = [31, 63, 127]
        .into_iter()
        .map(|cw_min| {
            Series::new(format!("delayed, CWmin {cw_min}"), move |n| {
                delayed(n, cw_min, false)
            })
        })
        .collect();
    series.push(Series::new("delayed and filtered, CWmin 31", |n| {
        delayed(n, 31, true)
    }));
    series.push(Series::new("filtered, CWmin 31", |n| filtered(n, 250)));
    series.push(Series::new("unmodified, CWmin 31", |n| {
        Setup::new(n, 250, false)
    }));
    series
}

fn plan(depth: &Depth) -> Vec<Point> {
    goodput::plan(depth, &series())
}

fn reduce(depth: &Depth, results: &Results) -> Outcome {
    let mut outcome = show(
        depth,
        results,
        "filter10",
        "Goodput with delayed acknowledgements",
        &series(),
    );
    let over = |count, cw_min| {
        let setups = [31, cw_min].map(|cw_min| delayed(count, cw_min, false));
        difference(depth, results, setups, total)
    };
    let (by_63, by_127) = (over(13, 63), over(13, 127));
    let apart: Vec<_> = counts(depth)
        .iter()
        .map(|count| {
            let setups = [filtered(*count, 250), delayed(*count, 31, true)];
            let alone = setups[0].goodput(depth, results).mean;
            difference(depth, results, setups, total).times(100.0 / alone)
        })
        .collect();
    let worst = apart
        .iter()
        .map(|apart| apart.mean.abs())
        .fold(f64::NAN, f64::max);
    outcome.claims = vec![
        Claim::new(
            "A window of 63 slots is better than 31 with delayed acknowledgements, at 13 stations",
            "better",
            format!("{by_63} Mbit/s"),
            by_63.is_above(0.0),
        )
        .or(
            format!(
                "There is too little contention at 13 stations with this window of 64 segments: at 20 stations it is {} Mbit/s.",
                over(20, 63)
            ),
            over(20, 63).is_above(0.0),
        ),
        Claim::new(
            "A window of 127 slots is worse than 31, at 13 stations",
            "worse",
            format!("{by_127} Mbit/s"),
            by_127.is_below(0.0),
        ),
        Claim::new(
            "Filtering with delayed acknowledgements has the goodput of filtering alone, to 5 % at every number of stations",
            "almost identical",
            format!("at most {} % apart", tenths(worst)),
            Finding::all(apart.iter().map(|apart| apart.is_within(-5.0..=5.0))),
        ),
    ];
    outcome
}
