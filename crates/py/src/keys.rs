//! Keys of scenarios and plans: values of Python as TOML.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyTuple};

/// Keys as a TOML document.
pub(crate) fn document(keys: &Bound<'_, PyDict>) -> PyResult<String> {
    let table: toml::Table = pythonize::depythonize(&plain(keys.as_any())?).map_err(|error| {
        PyTypeError::new_err(format!("a key has a value that TOML lacks: {error}"))
    })?;
    toml::to_string(&table).map_err(|error| PyTypeError::new_err(error.to_string()))
}

/// A value as `--set` of the program takes it.
pub(crate) fn setting(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let value = plain(value)?;
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(value.is_true().to_string());
    }
    if let Ok(text) = value.extract::<&str>() {
        return Ok(text.to_owned());
    }
    let value: toml::Value = pythonize::depythonize(&value)
        .map_err(|error| PyTypeError::new_err(format!("a value that TOML lacks: {error}")))?;
    Ok(value.to_string())
}

/// The same with Python's own numbers and texts in place of numpy's scalars and of paths.
fn plain<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    if let Ok(table) = value.cast::<PyDict>() {
        let all = PyDict::new(py);
        for (key, value) in table {
            all.set_item(key, plain(&value)?)?;
        }
        return Ok(all.into_any());
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let all: Vec<_> = value
            .try_iter()?
            .map(|value| plain(&value?))
            .collect::<PyResult<_>>()?;
        return Ok(PyList::new(py, all)?.into_any());
    }
    if value.hasattr("dtype")? && value.hasattr("item")? {
        return value.call_method0("item");
    }
    if value.hasattr("__fspath__")? {
        return value.call_method0("__fspath__");
    }
    Ok(value.clone())
}
