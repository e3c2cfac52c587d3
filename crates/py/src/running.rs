//! State that a run shares with the Python objects in it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::PyErr;

/// Whether the run goes on, and what Python raised in it.
#[derive(Debug, Default)]
pub(crate) struct Running {
    pub(crate) stop: AtomicBool,
    error: Mutex<Option<PyErr>>,
}

impl Running {
    /// Keeps the first error, and ends the run.
    pub(crate) fn fail(&self, error: PyErr) {
        if let Ok(mut first) = self.error.lock() {
            first.get_or_insert(error);
        }
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn take_error(&self) -> Option<PyErr> {
        self.error.lock().ok()?.take()
    }
}
