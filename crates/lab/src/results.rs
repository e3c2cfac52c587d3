//! Results in memory, whatever they were read from.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::measure::Values;
use crate::point::{Cell, Point};
use tack_stats::Estimate;

/// Results by key.
#[derive(Clone, Debug, Default)]
pub struct Results(BTreeMap<String, Values>);

impl Results {
    /// Whether `point` was run, with this code.
    pub fn has(&self, point: &Point) -> bool {
        self.0.contains_key(&point.key())
    }

    /// What was measured at `point`.
    pub fn get(&self, point: &Point) -> Option<&Values> {
        self.0.get(&point.key())
    }

    /// Keeps values under a key that was read back.
    pub(crate) fn insert_by_key(&mut self, key: String, values: Values) {
        self.0.insert(key, values);
    }

    /// Keeps what was measured at `point`.
    pub fn insert(&mut self, point: &Point, values: Values) {
        self.0.insert(point.key(), values);
    }

    /// What `read` says of each seed's run.
    pub(crate) fn each(
        &self,
        cell: &Cell,
        seeds: RangeInclusive<u64>,
        read: impl Fn(&Values) -> f64,
    ) -> Vec<f64> {
        seeds
            .map(|seed| self.get(&cell.at(seed)).map_or(f64::NAN, &read))
            .collect()
    }

    /// The mean over seeds of what `read` says of a run.
    pub(crate) fn estimate(
        &self,
        cell: &Cell,
        seeds: RangeInclusive<u64>,
        read: impl Fn(&Values) -> f64,
    ) -> Estimate {
        Estimate::of(&self.each(cell, seeds, read))
    }

    /// The mean over seeds of what `read` says of two runs with the same seed.
    pub(crate) fn paired(
        &self,
        cells: [&Cell; 2],
        seeds: RangeInclusive<u64>,
        read: impl Fn(&Values, &Values) -> f64,
    ) -> Estimate {
        let values: Vec<f64> = seeds
            .map(|seed| {
                let [a, b] = cells.map(|cell| self.get(&cell.at(seed)));
                match (a, b) {
                    (Some(a), Some(b)) => read(a, b),
                    _ => f64::NAN,
                }
            })
            .collect();
        Estimate::of(&values)
    }
}
