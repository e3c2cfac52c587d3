//! Scenarios: TOML text and overrides, checked as they change.

use pyo3::create_exception;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

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

/// One experiment; `tack.Scenario` has its description.
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

fn parse(file: &str, text: &str, overrides: &[String]) -> PyResult<tack_sim::Scenario> {
    tack_sim::Scenario::from_toml(file, text, overrides)
        .map_err(|error| ScenarioError::new_err(error.to_string()))
}

#[pymethods]
impl Scenario {
    /// From TOML text, or from keys of a scenario file as keyword arguments.
    #[new]
    #[pyo3(signature = (text=None, *, file="scenario.toml", **keys))]
    fn new(text: Option<String>, file: &str, keys: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let text = match (text, keys) {
            (Some(_), Some(_)) => {
                return Err(PyTypeError::new_err(
                    "expected TOML text or keyword arguments, got both",
                ));
            }
            (Some(text), None) => text,
            (None, keys) => from_keys(keys)?,
        };
        let parsed = parse(file, &text, &[])?;
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

    /// Sets one key; the scenario stays as it was if the value is wrong.
    fn set(&mut self, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut overrides = self.overrides.clone();
        overrides.push(format!("{key}={}", setting(value)?));
        self.parsed = parse(&self.file, &self.text, &overrides)?;
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

    /// Has `flow` controlled by instances of `class`.
    #[pyo3(signature = (flow, class, name=None))]
    fn use_controller(
        &mut self,
        flow: usize,
        class: Bound<'_, PyAny>,
        name: Option<String>,
    ) -> PyResult<()> {
        let foreign = self.foreign(flow, class, name)?;
        self.controllers.retain(|other| other.flow != flow);
        self.controllers.push(foreign);
        Ok(())
    }

    /// Has the receiver of `flow` acknowledge as instances of `class` decide.
    #[pyo3(signature = (flow, class, name=None))]
    fn use_ack_policy(
        &mut self,
        flow: usize,
        class: Bound<'_, PyAny>,
        name: Option<String>,
    ) -> PyResult<()> {
        let foreign = self.foreign(flow, class, name)?;
        self.policies.retain(|other| other.flow != flow);
        self.policies.push(foreign);
        Ok(())
    }

    #[getter]
    fn name(&self) -> &str {
        &self.parsed.name
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.parsed.seed
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.parsed.duration.as_secs_f64()
    }

    #[getter]
    fn flow_count(&self) -> usize {
        self.parsed.flows.len()
    }

    /// The file it came from, or what was given for it.
    #[getter]
    fn file(&self) -> &str {
        &self.file
    }

    /// The text as it was given, without what `set` changed.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// The changes by `set`, in order.
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

/// Keyword arguments as a TOML document.
fn from_keys(keys: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
    let Some(keys) = keys else {
        return Err(PyTypeError::new_err(
            "expected TOML text or keyword arguments such as flow=[{}], got nothing",
        ));
    };
    let table: toml::Table = pythonize::depythonize(keys.as_any()).map_err(|error| {
        PyTypeError::new_err(format!("a key has a value that TOML lacks: {error}"))
    })?;
    toml::to_string(&table).map_err(|error| PyTypeError::new_err(error.to_string()))
}

/// A value as `--set` of the program takes it.
fn setting(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(value.is_true().to_string());
    }
    if let Ok(path) = value.extract::<&str>() {
        return Ok(path.to_owned());
    }
    let value: toml::Value = pythonize::depythonize(value)
        .map_err(|error| PyTypeError::new_err(format!("a value that TOML lacks: {error}")))?;
    Ok(value.to_string())
}
