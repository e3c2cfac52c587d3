//! Finished runs: as dictionaries, and as columns.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use tack_sim::Report;

use crate::columns::Columns;

/// Finished runs; :class:`tack.Runs` shows them.
#[pyclass(frozen, module = "tack._core")]
#[derive(Debug)]
pub(crate) struct Reports {
    reports: Vec<Report>,
}

impl Reports {
    pub(crate) const fn new(reports: Vec<Report>) -> Self {
        Self { reports }
    }

    /// Rows of `part` of each report, each with the run's name and seed before it.
    fn rows(&self, part: impl Fn(&Map<String, Value>) -> Vec<Value>) -> PyResult<Columns> {
        let mut rows = Vec::new();
        for report in &self.reports {
            let Ok(Value::Object(report)) = serde_json::to_value(report) else {
                continue;
            };
            for row in part(&report) {
                let mut all = Map::new();
                for key in ["name", "seed"] {
                    all.insert(format!("run.{key}"), report[key].clone());
                }
                if let Value::Object(row) = row {
                    all.extend(row);
                }
                rows.push(all);
            }
        }
        Columns::of_rows(&rows)
    }
}

#[pymethods]
impl Reports {
    fn __len__(&self) -> usize {
        self.reports.len()
    }

    /// A report as ``tack sim --json`` prints it.
    fn dict<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let report = self.reports.get(index).ok_or_else(|| {
            PyIndexError::new_err(format!(
                "expected a run below {}, got {index}",
                self.reports.len()
            ))
        })?;
        Ok(pythonize::pythonize(py, report)?)
    }

    /// A row for each flow of each run.
    fn flows(&self) -> PyResult<Columns> {
        self.rows(|report| match &report["flows"] {
            Value::Array(flows) => flows.clone(),
            _ => Vec::new(),
        })
    }

    /// A row for each radio of each run with a wireless network.
    fn stations(&self) -> PyResult<Columns> {
        self.rows(|report| match report["wlan"].get("stations") {
            Some(Value::Array(stations)) => stations.clone(),
            _ => Vec::new(),
        })
    }

    /// A row for each run: what is not of a flow or a radio.
    fn runs(&self) -> PyResult<Columns> {
        self.rows(|report| {
            let mut report = report.clone();
            for key in ["flows", "name", "seed"] {
                report.remove(key);
            }
            if let Some(Value::Object(wlan)) = report.get_mut("wlan") {
                wlan.remove("stations");
            }
            vec![Value::Object(report)]
        })
    }
}
