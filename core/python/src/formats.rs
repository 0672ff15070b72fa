//! N-best lists: the native formats, and a builder for those read in Python.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tunesmith_formats::{Format, Layout, Options, Reader};
use tunesmith_space::{Hypothesis, Pools as CorePools, PoolsBuilder as CoreBuilder};
use tunesmith_text::Error;

use crate::error::py_err;
use crate::pools::Pools;

fn format(name: &str) -> PyResult<Format> {
    match name {
        "moses" => Ok(Format::Moses),
        "cdec" => Ok(Format::Cdec),
        "travatar" => Ok(Format::Travatar),
        _ => Err(PyValueError::new_err(format!(
            "no native format {name:?}: moses, cdec or travatar"
        ))),
    }
}

/// A Moses, cdec or Travatar list, read whole or some sentences at a time.
#[pyclass(module = "tunesmith._core")]
pub struct NbestReader {
    inner: Reader,
}

#[pymethods]
impl NbestReader {
    #[new]
    #[pyo3(signature = (path, format="moses", *, skip_bad=false, keep_blank=false, keyed=false,
                        first_id=0, sentences=None, columns=Vec::new(), column_files=Vec::new(),
                        feature_files=Vec::new()))]
    #[allow(clippy::too_many_arguments)] // one keyword per option, as Python has them
    fn new(
        path: PathBuf,
        format: &str,
        skip_bad: bool,
        keep_blank: bool,
        keyed: bool,
        first_id: u64,
        sentences: Option<usize>,
        columns: Vec<String>,
        column_files: Vec<(String, PathBuf)>,
        feature_files: Vec<(String, PathBuf)>,
    ) -> PyResult<Self> {
        let options = Options {
            format: self::format(format)?,
            skip_bad,
            keep_blank,
            keyed,
            first_id,
            sentences,
            columns,
            column_files,
            feature_files,
        };
        Ok(NbestReader { inner: Reader::open(path, options).map_err(py_err)? })
    }

    /// The next `limit` sentences, or all that remain; `None` after the last.
    #[pyo3(signature = (limit=None))]
    fn read(&mut self, py: Python<'_>, limit: Option<usize>) -> PyResult<Option<Pools>> {
        let inner = &mut self.inner;
        let part = py.detach(|| inner.read(limit)).map_err(py_err)?;
        Ok(part.map(Pools::new))
    }

    /// What was left out so far: reason, number of lines, the first of them as an error.
    #[getter]
    fn skipped(&self) -> Vec<(&'static str, u64, PyErr)> {
        let skips = self.inner.skipped().iter();
        skips.map(|skip| (skip.reason, skip.count, py_err(skip.first.clone()))).collect()
    }

    /// Uncompressed bytes read so far.
    #[getter]
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
}

fn read_all(py: Python<'_>, path: PathBuf, options: Options) -> PyResult<Pools> {
    let pools = py.detach(|| Reader::open(path, options)?.read(None)).map_err(py_err)?;
    pools.map(Pools::new).ok_or_else(|| PyRuntimeError::new_err("a reader gave no pools"))
}

/// A whole Moses list; stops at the first bad line.
#[pyfunction]
#[pyo3(signature = (path, columns=Vec::new()))]
fn read_moses(py: Python<'_>, path: PathBuf, columns: Vec<String>) -> PyResult<Pools> {
    read_all(py, path, Options { columns, ..Options::default() })
}

/// A whole cdec list; stops at the first bad line.
#[pyfunction]
#[pyo3(signature = (path, columns=Vec::new()))]
fn read_cdec(py: Python<'_>, path: PathBuf, columns: Vec<String>) -> PyResult<Pools> {
    read_all(py, path, Options { format: Format::Cdec, columns, ..Options::default() })
}

/// Writes a Moses, cdec or Travatar list, in a new order and with more named scores where they are given.
#[pyfunction]
#[pyo3(signature = (pools, path, format="moses", *, order=None, scores=Vec::new(), keyed=false,
                    first_id=0))]
#[allow(clippy::too_many_arguments)] // one keyword per option, as Python has them
fn write_nbest(
    py: Python<'_>,
    pools: &Pools,
    path: PathBuf,
    format: &str,
    order: Option<Vec<usize>>,
    scores: Vec<(String, Vec<f64>)>,
    keyed: bool,
    first_id: u64,
) -> PyResult<()> {
    let format = self::format(format)?;
    let inner = Arc::clone(pools.inner());
    py.detach(|| {
        let layout = Layout {
            format,
            order: order.as_deref(),
            scores: scores.iter().map(|(name, values)| (name.as_str(), &values[..])).collect(),
            keyed,
            first_id,
        };
        tunesmith_formats::write(&inner, path, &layout)
    })
    .map_err(py_err)
}

/// Fills `Pools` from Python: `sentence` opens a list, `push` adds to it.
#[pyclass(module = "tunesmith._core")]
pub struct PoolsBuilder {
    inner: Option<CoreBuilder>,
    /// Columns that nobody announced, each with its cells so far.
    late: Vec<(String, Vec<f64>)>,
    features: Vec<(u32, f32)>,
    cells: Vec<f64>,
}

impl PoolsBuilder {
    fn open(&mut self) -> PyResult<&mut CoreBuilder> {
        self.inner.as_mut().ok_or_else(finished)
    }
}

fn finished() -> PyErr {
    PyValueError::new_err("the builder is finished")
}

#[pymethods]
impl PoolsBuilder {
    #[new]
    #[pyo3(signature = (columns=Vec::new(), names=Vec::new()))]
    fn new(columns: Vec<String>, names: Vec<String>) -> Self {
        let mut inner = CoreBuilder::default();
        for name in &columns {
            inner.columns.intern(name);
        }
        for name in &names {
            inner.names.intern(name);
        }
        PoolsBuilder {
            inner: Some(inner),
            late: Vec::new(),
            features: Vec::new(),
            cells: Vec::new(),
        }
    }

    #[getter]
    fn sentences(&mut self) -> PyResult<usize> {
        Ok(self.open()?.sentences())
    }

    #[getter]
    fn hypotheses(&mut self) -> PyResult<usize> {
        Ok(self.open()?.hypotheses())
    }

    /// Opens the list of the next sentence. Either all sentences have a key or none has.
    #[pyo3(signature = (key=None))]
    fn sentence(&mut self, key: Option<&str>) -> PyResult<()> {
        self.open()?.sentence(key);
        Ok(())
    }

    /// Adds a hypothesis to the open list. Refuses values that are not finite and a name twice.
    #[pyo3(signature = (text, names, values, score=None, extra="", columns=None))]
    fn push(
        &mut self,
        text: &str,
        names: Vec<String>,
        values: Vec<f64>,
        score: Option<f64>,
        extra: &str,
        columns: Option<HashMap<String, f64>>,
    ) -> PyResult<()> {
        let inner = self.inner.as_mut().ok_or_else(finished)?;
        if inner.sentences() == 0 {
            return Err(PyValueError::new_err("push before the first sentence"));
        }
        if names.len() != values.len() {
            return Err(PyValueError::new_err("names and values differ in number"));
        }
        let columns = columns.unwrap_or_default();
        for (name, &value) in names.iter().zip(&values) {
            if !(value as f32).is_finite() {
                return Err(infinite(&format!("feature {name}"), value));
            }
        }
        for (name, &value) in &columns {
            if !value.is_finite() {
                return Err(infinite(&format!("column {name}"), value));
            }
        }
        if let Some(score) = score.filter(|score| !score.is_finite()) {
            return Err(infinite("the score", score));
        }
        self.features.clear();
        self.features.extend(
            names
                .iter()
                .zip(&values)
                .map(|(name, &value)| (inner.names.intern(name), value as f32)),
        );
        self.features.sort_unstable_by_key(|&(id, _)| id);
        if let Some(pair) = self.features.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let name = inner.names.name(pair[0].0).unwrap_or_default();
            return Err(py_err(
                Error::new(format!("feature {name} is given twice"))
                    .remedy("give every feature one value"),
            ));
        }
        self.cells.clear();
        self.cells.resize(inner.columns.len(), f64::NAN);
        let position = inner.hypotheses();
        for (name, &value) in &columns {
            if let Some(column) = inner.columns.id(name) {
                self.cells[column as usize] = value;
                continue;
            }
            let late = match self.late.iter().position(|(other, _)| other == name) {
                Some(at) => &mut self.late[at].1,
                None => {
                    self.late.push((name.clone(), Vec::new()));
                    &mut self.late.last_mut().expect("pushed above").1
                }
            };
            late.resize(position, f64::NAN);
            late.push(value);
        }
        inner.push(Hypothesis {
            dense: &[],
            text,
            features: &self.features,
            score,
            extra,
            columns: &self.cells,
        });
        Ok(())
    }

    /// The pools; the builder is empty afterwards.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Pools> {
        let inner = self.inner.take().ok_or_else(finished)?;
        let mut late = std::mem::take(&mut self.late);
        // The order in which a dictionary gives its keys must not show.
        late.sort_by(|(left, _), (right, _)| left.cmp(right));
        Ok(Pools::new(py.detach(|| widen(inner.finish(), late))))
    }
}

fn infinite(what: &str, value: f64) -> PyErr {
    py_err(
        Error::new(format!("{what} {value} is not a finite number"))
            .remedy("give a finite value; leave out what is unknown"),
    )
}

/// The same pools with more columns, which end where their last cell is.
fn widen(pools: CorePools, late: Vec<(String, Vec<f64>)>) -> CorePools {
    if late.is_empty() {
        return pools;
    }
    let mut builder = CoreBuilder::default();
    builder.names = pools.names.clone();
    builder.columns = pools.columns.clone();
    let mut columns: Vec<Vec<f64>> =
        (0..pools.columns.len()).map(|column| pools.column(column).collect()).collect();
    for (name, cells) in late {
        builder.columns.intern(&name);
        columns.push(cells);
    }
    let (mut features, mut row) = (Vec::new(), Vec::new());
    for sentence in 0..pools.sentences() {
        builder.sentence(pools.keys.get(sentence).map(String::as_str));
        for hypothesis in pools.list(sentence) {
            let (ids, values) = pools.features(hypothesis);
            features.clear();
            features.extend(ids.iter().copied().zip(values.iter().copied()));
            row.clear();
            row.extend(
                columns.iter().map(|cells| cells.get(hypothesis).copied().unwrap_or(f64::NAN)),
            );
            let score = pools.score(hypothesis);
            builder.push(Hypothesis {
                dense: &[],
                text: pools.text(hypothesis),
                features: &features,
                score: (!score.is_nan()).then_some(score),
                extra: pools.extra(hypothesis),
                columns: &row,
            });
        }
    }
    builder.finish()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NbestReader>()?;
    module.add_class::<PoolsBuilder>()?;
    module.add_function(wrap_pyfunction!(read_moses, module)?)?;
    module.add_function(wrap_pyfunction!(read_cdec, module)?)?;
    module.add_function(wrap_pyfunction!(write_nbest, module)?)?;
    Ok(())
}
