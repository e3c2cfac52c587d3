//! Scenarios: TOML text and overrides, checked as they change.

use pyo3::create_exception;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::keys;

create_exception!(
    _core,
    ScenarioError,
    PyValueError,
    "A scenario is wrong. The message names file, line and key, and what would be right."
);

/// A class of Python whose instances act for each connection of a flow.
#[derive(Debug)]
pub(crate) struct Foreign {
    pub(crate) flow: usize,
    pub(crate) class: Py<PyAny>,
    /// Its name in reports.
    pub(crate) name: String,
}

impl Foreign {
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            flow: self.flow,
            class: self.class.clone_ref(py),
            name: self.name.clone(),
        }
    }
}

/// The native part of :class:`tack.Scenario`, which has the description.
#[pyclass(module = "tack._core", subclass)]
#[derive(Debug)]
pub(crate) struct Scenario {
    /// The file it came from, which messages name and beside which traces are looked for.
    file: String,
    text: String,
    overrides: Vec<String>,
    pub(crate) parsed: tack_sim::Scenario,
    pub(crate) controllers: Vec<Foreign>,
    pub(crate) policies: Vec<Foreign>,
}

/// How `tack_sim` calls the source of an override.
const OVERRIDE: &str = "--set";

/// The error with `file`, `line` and `key` as attributes.
pub(crate) fn wrong(py: Python<'_>, error: tack_sim::ScenarioError) -> PyErr {
    let raised = ScenarioError::new_err(error.to_string());
    let value = raised.value(py);
    let added = value
        .setattr("file", error.source)
        .and_then(|()| value.setattr("line", error.line))
        .and_then(|()| value.setattr("key", error.key));
    match added {
        Ok(()) => raised,
        Err(other) => other,
    }
}

#[pymethods]
impl Scenario {
    /// From TOML text, or from keys of a scenario file as keyword arguments.
    #[new]
    #[pyo3(signature = (text=None, *, file="scenario.toml", **keys))]
    fn new(
        py: Python<'_>,
        text: Option<String>,
        file: &str,
        keys: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (text, parsed) = match (text, keys) {
            (Some(_), Some(_)) => {
                return Err(PyTypeError::new_err(
                    "expected TOML text or keyword arguments, got both",
                ));
            }
            (None, None) => {
                return Err(PyTypeError::new_err(
                    "expected TOML text or keyword arguments such as flow=[{}], got nothing",
                ));
            }
            (Some(text), None) => {
                let parsed = tack_sim::Scenario::from_toml(file, &text, &[]);
                (text, parsed.map_err(|error| wrong(py, error))?)
            }
            (None, Some(keys)) => {
                let text = keys::document(keys)?;
                let parsed =
                    tack_sim::Scenario::from_toml(file, &text, &[]).map_err(|mut error| {
                        // Nobody has seen the lines of this text.
                        error.source = "keyword arguments".into();
                        error.line = None;
                        wrong(py, error)
                    })?;
                (text, parsed)
            }
        };
        Ok(Self {
            file: file.to_owned(),
            text,
            overrides: Vec::new(),
            parsed,
            controllers: Vec::new(),
            policies: Vec::new(),
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        let this = slf.borrow();
        if !this.controllers.is_empty() || !this.policies.is_empty() {
            return Err(PyTypeError::new_err(
                "a scenario with a controller or policy of Python cannot be pickled: \
                 call use_controller and use_ack_policy where it arrives",
            ));
        }
        let parts = (this.file.clone(), this.text.clone(), this.overrides.clone());
        Ok((slf.getattr("_restore")?, parts))
    }

    /// Sets one key, such as ``"wired.rate"`` or ``"flow.0.ack"``.
    ///
    /// :raises ScenarioError: if the value is wrong; the scenario stays as it was.
    fn set(&mut self, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut overrides = self.overrides.clone();
        overrides.push(format!("{key}={}", keys::setting(value)?));
        let parsed = tack_sim::Scenario::from_toml(&self.file, &self.text, &overrides);
        self.parsed = parsed.map_err(|mut error| {
            if error.source == OVERRIDE {
                error.source = "set".into();
            }
            wrong(value.py(), error)
        })?;
        self.overrides = overrides;
        Ok(())
    }

    /// Takes the controllers and policies of another scenario over.
    fn take_classes(&mut self, py: Python<'_>, other: PyRef<'_, Self>) {
        self.controllers = other
            .controllers
            .iter()
            .map(|one| one.clone_ref(py))
            .collect();
        self.policies = other.policies.iter().map(|one| one.clone_ref(py)).collect();
    }

    /// Has instances of ``cls`` control flow number ``flow``, from 0. Reports call them ``name``,
    /// or as the class.
    #[pyo3(signature = (flow, cls, name=None))]
    fn use_controller(
        &mut self,
        flow: usize,
        cls: Bound<'_, PyAny>,
        name: Option<String>,
    ) -> PyResult<()> {
        let foreign = self.foreign(flow, cls, name)?;
        self.controllers.retain(|other| other.flow != flow);
        self.controllers.push(foreign);
        Ok(())
    }

    /// Has the receiver of flow number ``flow`` acknowledge as instances of ``cls`` decide.
    #[pyo3(signature = (flow, cls, name=None))]
    fn use_ack_policy(
        &mut self,
        flow: usize,
        cls: Bound<'_, PyAny>,
        name: Option<String>,
    ) -> PyResult<()> {
        let foreign = self.foreign(flow, cls, name)?;
        self.policies.retain(|other| other.flow != flow);
        self.policies.push(foreign);
        Ok(())
    }

    /// Its name in reports.
    #[getter]
    fn name(&self) -> &str {
        &self.parsed.name
    }

    /// The seed, unless a run gives one.
    #[getter]
    fn seed(&self) -> u64 {
        self.parsed.seed
    }

    /// Virtual time of a run, seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.parsed.duration.as_secs_f64()
    }

    /// Number of flows.
    #[getter]
    fn flow_count(&self) -> usize {
        self.parsed.flows.len()
    }

    /// The file it came from, or what was given for it.
    #[getter]
    fn file(&self) -> &str {
        &self.file
    }

    /// The text as it was given, without what ``set`` changed.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// The changes by ``set``, in order.
    #[getter]
    fn overrides(&self) -> Vec<String> {
        self.overrides.clone()
    }

    fn __repr__(&self) -> String {
        format!(
            "<tack.Scenario {:?}: {} flows, {} s>",
            self.parsed.name,
            self.parsed.flows.len(),
            self.parsed.duration.as_secs_f64()
        )
    }
}

impl Scenario {
    fn foreign(
        &self,
        flow: usize,
        class: Bound<'_, PyAny>,
        name: Option<String>,
    ) -> PyResult<Foreign> {
        let mut flows = self.parsed.flows.clone();
        let count = flows.len();
        let found = flows.get_mut(flow).ok_or_else(|| {
            PyIndexError::new_err(format!(
                "expected a flow from 0 to {}, got {flow}",
                count - 1
            ))
        })?;
        if found.tcp_config_mut().is_none() {
            return Err(PyTypeError::new_err(format!(
                "flow {flow} is not a TCP flow"
            )));
        }
        if !class.is_callable() {
            return Err(PyTypeError::new_err(
                "expected a class, or a function that returns an object",
            ));
        }
        let name = match name {
            Some(name) => name,
            None => class.getattr("__name__")?.extract()?,
        };
        Ok(Foreign {
            flow,
            class: class.unbind(),
            name,
        })
    }
}

type Parts = (String, String, Vec<String>);
