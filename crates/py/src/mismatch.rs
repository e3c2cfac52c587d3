//! The error of tasks, of sweeps and of the lab.

use pyo3::create_exception;
use pyo3::exceptions::PyRuntimeError;

create_exception!(
    _core,
    TaskMismatch,
    PyRuntimeError,
    "A task, or a result of one, is damaged or of another version of tack."
);
