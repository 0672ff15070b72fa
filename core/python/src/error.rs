//! The core's error as the Python exception `tunesmith.errors.InputError`, and Python's own errors
//! on their way through the core.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use tunesmith_text::Error;

/// The exception to raise for an input that cannot be used.
pub fn py_err(error: Error) -> PyErr {
    Python::attach(|py| {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let made = CLASS
            .import(py, "tunesmith.errors", "InputError")
            .and_then(|class| class.call1((error.message, error.file, error.line, error.remedy)));
        match made {
            Ok(instance) => PyErr::from_value(instance),
            Err(problem) => problem,
        }
    })
}

/// The first error that Python code raised where Rust could not pass it on.
#[derive(Default)]
pub struct Failure(Mutex<Option<PyErr>>);

impl Failure {
    /// Refuses with the error, and forgets it.
    pub fn take(&self) -> PyResult<()> {
        let mut first = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        first.take().map_or(Ok(()), Err)
    }

    /// Refuses with the error as long as it is kept.
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        let first = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        first.as_ref().map_or(Ok(()), |error| Err(error.clone_ref(py)))
    }

    pub fn keep(&self, error: PyErr) {
        let mut first = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        first.get_or_insert(error);
    }

    pub fn is_kept(&self) -> bool {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).is_some()
    }
}
