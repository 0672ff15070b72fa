//! The core's error as the Python exception `tunesmith.errors.InputError`.

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
