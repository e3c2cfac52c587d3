//! Figure 6(b) with the buffers that a user has.

use std::fmt::Write as _;

use tack_stats::Estimate;

use super::runs::{
    CONTROLLERS, Conditions, TIMINGS, cell, listed, loss, numbers, paths, rows, seeds,
};
use crate::Values;
use crate::claim::Claim;
use crate::figure::{Depth, Table};
use crate::results::Results;

/// Of the change by one-way timing, by how much it may differ with default buffers and still count
/// as the same, points.
const SAME: f64 = 2.0;

/// That default buffers do not alter what one-way timing changes; on each path with large and with
/// default buffers, percent.
pub(super) fn is_same(name: &str, what: &str, [large, default]: [&[f64]; 2]) -> Claim {
    let differences: Vec<_> = large
        .iter()
        .zip(default)
        .map(|(large, default)| default - large)
        .filter(|difference| !difference.is_nan())
        .collect();
    let difference = Estimate::of(&differences);
    Claim::new(
        format!(
            "{name}: with default buffers one-way timing changes {what} by as much as with 64 \
                MiB, within {SAME} points on average over paths"
        ),
        "default parameters",
        format!("{difference} points apart ({})", listed(&differences)),
        difference.is_within(-SAME..=SAME),
    )
}

/// Delay and losses of all runs with the buffers that a user has.
pub(super) fn table(depth: &Depth, results: &Results) -> Table {
    let mut table = numbers();
    table.part = "Default buffers";
    for (name, congestion) in CONTROLLERS {
        rows(
            depth,
            results,
            (name, (congestion, Conditions::Default)),
            &mut table,
        );
    }
    table
}

/// How much less is lost with default buffers, on average over paths, with each timing.
pub(super) fn startup(depth: &Depth, results: &Results) -> String {
    let mut text = String::from(
        "With default buffers less is lost in startup, whatever the timing, so the same \
            difference is a larger part of the rest. Packets lost, change by default buffers on \
            average over paths:",
    );
    for (name, congestion) in CONTROLLERS {
        let less = TIMINGS.map(|ack| {
            let changes: Vec<f64> = paths()
                .iter()
                .map(|(_, path)| {
                    let cells = [Conditions::Whole, Conditions::Default]
                        .map(|conditions| cell(path, (congestion, conditions), ack));
                    let change = |large: &Values, default: &Values| loss(default) - loss(large);
                    let change = results.paired(cells.each_ref(), seeds(depth), change);
                    100.0 * change.mean
                })
                .collect();
            listed(&[Estimate::of(&changes).mean])
        });
        let _ = write!(
            text,
            " {name}, one-way timing {} points, sampling {} points;",
            less[0], less[1]
        );
    }
    text.pop();
    text.push('.');
    text
}
