//! Runs of the lab for workers.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tack_lab::{BatchError, Batches, Depth, FIGURES, PointError, Recorded, Store};
use tack_sweep::Pace;

use crate::mismatch::TaskMismatch;

pub(crate) fn of_batch(error: BatchError) -> PyErr {
    match error {
        BatchError::Store(error) => PyOSError::new_err(error.to_string()),
        other => TaskMismatch::new_err(other.to_string()),
    }
}

fn of_point(error: PointError) -> PyErr {
    match error {
        PointError::Store(error) => PyOSError::new_err(error.to_string()),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}

/// Runs of figures that a folder of results lacks; ``tack.dask_lab`` drives it.
#[pyclass(module = "tack._core")]
#[derive(Debug)]
pub(crate) struct LabState {
    batches: Batches,
    pace: Pace,
}

#[pymethods]
impl LabState {
    #[new]
    fn new(
        figures: Vec<String>,
        full: bool,
        seeds: Option<u64>,
        traces: Option<PathBuf>,
        results: PathBuf,
        task_s: f64,
    ) -> PyResult<Self> {
        let recorded = traces.as_deref().map(Recorded::read).transpose();
        let recorded = recorded.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let depth = Depth {
            seeds,
            recorded: recorded.map(Arc::new),
            ..if full { Depth::full() } else { Depth::quick() }
        };
        let mut wanted = Vec::new();
        for id in figures {
            let figure = FIGURES.iter().find(|figure| figure.is_called(&id));
            let figure =
                figure.ok_or_else(|| PyValueError::new_err(format!("{id:?} is not a figure")))?;
            wanted.extend(figure.plan(&depth));
        }
        let store = Store::open(&results).map_err(|error| PyOSError::new_err(error.to_string()))?;
        Ok(Self {
            batches: Batches::new(store, &wanted).map_err(of_point)?,
            pace: Pace::new(task_s),
        })
    }

    #[getter]
    fn is_done(&self) -> bool {
        self.batches.is_done()
    }

    /// ``runs``, ``done`` and ``failed``.
    fn counts(&self) -> std::collections::HashMap<&'static str, usize> {
        let batches = &self.batches;
        [
            ("runs", batches.total()),
            ("done", batches.done()),
            ("failed", batches.failed()),
        ]
        .into()
    }

    /// Name, number of runs and bytes of a task for ``run_batch``; None if nothing is left.
    fn next_batch<'py>(
        &mut self,
        py: Python<'py>,
        workers: usize,
    ) -> Option<(String, usize, Bound<'py, PyBytes>)> {
        let most = self.pace.runs(self.batches.waiting(), workers);
        let batch = self.batches.next(most)?;
        Some((batch.id, batch.runs, PyBytes::new(py, &batch.task)))
    }

    /// Takes a result and keeps it; gives the runs that failed.
    fn accept(&mut self, result: &[u8]) -> PyResult<Vec<String>> {
        let accepted = self.batches.accept(result).map_err(of_batch)?;
        self.pace.took(accepted.runs, accepted.seconds);
        Ok(accepted.failures)
    }
}

/// The version of the code that results of the lab depend on.
#[pyfunction]
pub(crate) const fn lab_code_version() -> &'static str {
    tack_lab::CODE_VERSION
}
