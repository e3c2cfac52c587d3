//! Runs side by side.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use tack_sim::{JobsError, RunError, ScenarioError, run_jobs};

use crate::measure::Values;
use crate::point::Point;
use crate::results::Results;
use crate::store::{Store, StoreError};

/// Why a point has no result.
#[derive(Debug, thiserror::Error)]
pub enum PointError {
    /// Its scenario is wrong: a mistake in a figure.
    #[error("{0}")]
    Scenario(#[from] ScenarioError),
    /// The stack broke a promise.
    #[error("{error}: {command}")]
    Run {
        /// What happened.
        error: RunError,
        /// How to see it again.
        command: String,
    },
    /// The simulator panicked.
    #[error("the simulator panicked: {command}")]
    Panic {
        /// How to see it again.
        command: String,
    },
    /// It runs in real time, which only the program can do.
    #[error("runs in real time are made by `tack lab run` on this machine: {command}")]
    RealTime {
        /// What was asked for.
        command: String,
    },
    /// The system gives no threads.
    #[error("{0}")]
    Threads(#[from] JobsError),
    /// The results folder cannot be used.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// The points among `wanted` that `results` lacks, each once.
pub(crate) fn missing(wanted: &[Point], results: &Results) -> Vec<Point> {
    let mut missing = BTreeMap::new();
    for (number, point) in wanted.iter().enumerate() {
        if !results.has(point) {
            missing.entry(point.key()).or_insert((number, point));
        }
    }
    let mut missing: Vec<_> = missing.into_values().collect();
    missing.sort_by_key(|(number, _)| *number);
    missing
        .into_iter()
        .map(|(_, point)| point.clone())
        .collect()
}

/// Runs what `store` lacks of `wanted` on `jobs` threads, and keeps it. `progress` hears how many
/// of how many are done, first with none. One that fails does not keep others from being run,
/// unless its result cannot be kept; all failures are returned.
///
/// # Errors
/// Of the points that failed: their errors. Nothing is run when a scenario is wrong.
pub fn run(
    store: &mut Store,
    wanted: &[Point],
    jobs: usize,
    mut progress: impl FnMut(usize, usize),
) -> Result<(), Vec<PointError>> {
    let missing = missing(wanted, store.results());
    let total = missing.len();
    progress(0, total);
    let folder = store.folder().join("scenarios");
    prepare(&missing, &folder).map_err(|error| vec![error])?;
    let mut errors = Vec::new();
    let mut done = 0;
    let threads = jobs.clamp(1, total.max(1));
    let (points, kept_in) = (missing.clone(), folder);
    let ran = run_jobs(
        missing,
        Some(threads),
        move |point| take(&point, &kept_in),
        |number, result| {
            let point = &points[number];
            let result = result.unwrap_or_else(|| {
                Err(PointError::Panic {
                    command: point.command(),
                })
            });
            match result.map(|values| store.keep(point, values)) {
                Ok(Ok(())) => {}
                Err(error) => errors.push(error),
                // Nor could anything else be kept.
                Ok(Err(error)) => {
                    errors.push(error.into());
                    return ControlFlow::Break(());
                }
            }
            done += 1;
            progress(done, total);
            ControlFlow::Continue(())
        },
    );
    if let Err(error) = ran {
        errors.push(error.into());
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// Reads all scenarios before the first is run, so that a mistake is known at once. None is kept: a
/// trace may be long.
pub(crate) fn prepare(missing: &[Point], folder: &Path) -> Result<(), PointError> {
    for point in missing {
        if point.measure().is_real_time() {
            return Err(PointError::RealTime {
                command: point.command(),
            });
        }
        point.place(folder).map_err(|error| StoreError::Io {
            path: folder.to_owned(),
            error,
        })?;
        point.scenario(folder)?;
    }
    Ok(())
}

fn take(point: &Point, folder: &Path) -> Result<Values, PointError> {
    let scenario = point.scenario(folder)?;
    point
        .measure()
        .take(&scenario, point.seed)
        .map_err(|error| PointError::Run {
            error,
            command: point.command(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::Cell;
    use crate::scenarios::FREQUENCY;

    fn short() -> Cell {
        Cell::new(&FREQUENCY)
            .set("warmup=0s")
            .set("duration=200ms")
            .set("wired.rate=10Mbps")
    }

    #[test]
    fn finished_points_are_not_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let wanted = [short().at(1), short().at(2), short().at(1)];
        let mut totals = Vec::new();
        for _ in 0..2 {
            run(&mut store, &wanted, 2, |done, total| {
                if done == total {
                    totals.push(total);
                }
            })
            .unwrap();
        }
        assert_eq!(totals, [2, 0], "each once, and then none");
        let first = store.results().get(&wanted[0]).unwrap().clone();

        let other = tempfile::tempdir().unwrap();
        let mut other = Store::open(other.path()).unwrap();
        run(&mut other, &wanted, 1, |_, _| {}).unwrap();
        assert_eq!(
            other.results().get(&wanted[0]),
            Some(&first),
            "the same bits"
        );
    }

    #[test]
    fn a_wrong_setting_is_named_before_anything_runs() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let wanted = [short().at(1), short().set("wired.speed=1").at(1)];
        let errors = run(&mut store, &wanted, 1, |_, _| {}).unwrap_err();
        assert!(errors[0].to_string().contains("speed"), "{}", errors[0]);
        assert!(!store.results().has(&wanted[0]));
    }
}
