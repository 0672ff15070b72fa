//! Text files: lines in, whole files out; classes of words.

use std::collections::HashMap;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyType;

use crate::error::py_err;

/// The lines of a plain, gzip or zstd file as `str`; `-` is the standard input.
#[pyclass(module = "tunesmith._core")]
pub struct Lines {
    inner: tunesmith_text::Lines,
}

#[pymethods]
impl Lines {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| tunesmith_text::Lines::open(path)).map(|inner| Lines { inner }).map_err(py_err)
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// A line that is not UTF-8 raises; the next call goes on behind it.
    fn __next__(&mut self) -> PyResult<Option<String>> {
        let line = self.inner.line() + 1;
        let file = self.inner.file().to_owned();
        match self.inner.next() {
            Ok(Some(bytes)) => tunesmith_text::utf8(bytes, &file, line)
                .map(|text| Some(text.to_owned()))
                .map_err(py_err),
            Ok(None) => Ok(None),
            Err(error) => Err(py_err(error)),
        }
    }

    /// The number of the line returned last, from one.
    #[getter]
    fn line(&self) -> u64 {
        self.inner.line()
    }

    /// The name of the file as errors show it.
    #[getter]
    fn file(&self) -> &str {
        self.inner.file()
    }
}

/// What a file takes: text or bytes.
#[derive(FromPyObject)]
enum Content {
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
}

impl Content {
    fn bytes(&self) -> &[u8] {
        match self {
            Content::Text(text) => text.as_bytes(),
            Content::Bytes(bytes) => bytes,
        }
    }
}

/// A file that appears whole on `commit`, or not at all.
#[pyclass(module = "tunesmith._core")]
pub struct AtomicWriter {
    inner: Option<tunesmith_text::AtomicWriter>,
}

#[pymethods]
impl AtomicWriter {
    #[new]
    #[pyo3(signature = (path, *, durable = true))]
    fn new(py: Python<'_>, path: PathBuf, durable: bool) -> PyResult<Self> {
        // Opening a pipe waits for its reader, who may be another thread of the interpreter.
        let made = py.detach(|| tunesmith_text::AtomicWriter::create(path));
        Ok(AtomicWriter { inner: Some(made.map_err(py_err)?.durable(durable)) })
    }

    fn write(&mut self, py: Python<'_>, content: Content) -> PyResult<()> {
        match &mut self.inner {
            Some(out) => py.detach(|| out.write_all(content.bytes())).map_err(py_err),
            None => Err(PyValueError::new_err("the file is closed")),
        }
    }

    /// Makes the file appear, complete and on disk.
    fn commit(&mut self, py: Python<'_>) -> PyResult<()> {
        match self.inner.take() {
            Some(out) => py.detach(|| out.finish()).map_err(py_err),
            None => Err(PyValueError::new_err("the file is closed")),
        }
    }

    /// Forgets what was written; the place where the file would be stays as it was.
    fn discard(&mut self) {
        self.inner = None;
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __exit__(
        &mut self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyType>>,
        _value: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        match kind {
            Some(_) => self.discard(),
            None if self.inner.is_some() => self.commit(py)?,
            None => {}
        }
        Ok(false)
    }
}

/// Puts the words of a text into classes and writes them; gives their number.
#[pyfunction]
#[pyo3(signature = (text, out, *, classes, rounds))]
fn make_classes(
    py: Python<'_>,
    text: PathBuf,
    out: PathBuf,
    classes: usize,
    rounds: usize,
) -> PyResult<usize> {
    let make = || {
        let made = tunesmith_text::Clustering { classes, rounds }.of_file(text)?;
        made.write(out).map(|()| made.len())
    };
    py.detach(make).map_err(py_err)
}

/// The classes of words in a file.
#[pyfunction]
fn read_classes(py: Python<'_>, path: PathBuf) -> PyResult<HashMap<String, String>> {
    let read = py.detach(|| tunesmith_text::Classes::read(path)).map_err(py_err)?;
    let class = |word| read.of(word).unwrap_or_default().to_owned();
    Ok(read.iter().map(|(word, _)| (word.to_owned(), class(word))).collect())
}

/// Makes this process say which mapped file was cut short when that ends it.
#[pyfunction]
fn tell_bus_errors() {
    tunesmith_text::tell_bus_errors();
}

/// The most bytes that a line may have.
#[pyfunction]
fn line_limit() -> PyResult<usize> {
    tunesmith_text::line_limit().map_err(py_err)
}

/// The error for a line of a file that is longer than that.
#[pyfunction]
fn line_too_long(py: Python<'_>, file: &str, line: u64) -> PyResult<Py<PyAny>> {
    let limit = line_limit()?;
    Ok(py_err(tunesmith_text::too_long(file, line, limit)).into_value(py).into_any())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Lines>()?;
    module.add_class::<AtomicWriter>()?;
    module.add_function(wrap_pyfunction!(line_limit, module)?)?;
    module.add_function(wrap_pyfunction!(tell_bus_errors, module)?)?;
    module.add_function(wrap_pyfunction!(line_too_long, module)?)?;
    module.add_function(wrap_pyfunction!(make_classes, module)?)?;
    module.add_function(wrap_pyfunction!(read_classes, module)?)?;
    Ok(())
}
