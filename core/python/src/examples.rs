//! `Examples`: retrieval data of local training.

use std::path::{Path, PathBuf};

use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use tunesmith_local::{Example, Examples as CoreExamples, Found, SegmentWriter, Written};
use tunesmith_solve::local::gains_of;

use crate::anchored::Blocks;
use crate::error::py_err;
use crate::metric::{Metric, Table};
use crate::pools::{Pools, fits};

/// Id, similarity, source and references of a neighbour.
type Neighbour = (u64, f64, String, Vec<String>);
/// Lists, statistics, sources and references.
type Lists = (Pools, Option<Table>, Vec<String>, Vec<Vec<String>>);
/// Path, examples, removed ones, hypotheses and bytes of a file.
type Size = (String, usize, usize, u64, usize);

/// Examples that may be searched and changed from several threads.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct Examples {
    inner: CoreExamples,
}

/// The neighbours of a sentence, best first. Their texts are read when they are asked for.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct Near {
    found: Vec<Found>,
}

#[pymethods]
impl Near {
    fn __len__(&self) -> usize {
        self.found.len()
    }

    #[getter]
    fn ids(&self) -> Vec<u64> {
        self.found.iter().map(|found| found.id).collect()
    }

    /// Id, similarity, source and references of a neighbour.
    fn __getitem__(&self, place: usize) -> PyResult<Neighbour> {
        let found = self.found.get(place).ok_or_else(|| PyIndexError::new_err("no neighbour"))?;
        Ok((found.id, found.similarity, found.source(), found.references()))
    }
}

/// Numbers of examples and bytes, and the checksum.
fn told(written: Written) -> (u64, u64, u32) {
    (written.examples, written.bytes, written.checksum)
}

fn paths(files: &[PathBuf]) -> Vec<&Path> {
    files.iter().map(PathBuf::as_path).collect()
}

#[pymethods]
impl Examples {
    #[new]
    fn new() -> Self {
        Examples { inner: CoreExamples::default() }
    }

    /// Writes a file of examples, whose ids ascend, with a list of `pools` for each, its statistics
    /// and its gains by the metric; returns the numbers of examples and bytes, and the checksum.
    #[staticmethod]
    #[allow(clippy::too_many_arguments)]
    fn write(
        py: Python<'_>,
        path: PathBuf,
        ids: Vec<u64>,
        sources: Vec<String>,
        references: Vec<Vec<String>>,
        pools: &Pools,
        table: &Table,
        metric: &Metric,
    ) -> PyResult<(u64, u64, u32)> {
        fits(pools, table, metric, usize::MAX)?;
        let (lists, table, native) = (pools.inner(), &*table.inner, metric.inner());
        let count = lists.sentences();
        if ids.len() != count || sources.len() != count || references.len() != count {
            let message = "ids, sources and references must be those of the lists";
            return Err(PyValueError::new_err(message));
        }
        let written = py.detach(|| {
            let gains = gains_of(lists, table, native.as_ref());
            let worth = Some((table, gains.as_slice()));
            let mut out = SegmentWriter::create(&path, table.width())?;
            for (sentence, &id) in ids.iter().enumerate() {
                let (source, references) = (&sources[sentence], &references[sentence]);
                out.push(Example { id, source, references }, lists, worth, sentence)?;
            }
            out.finish()
        });
        metric.check()?;
        written.map(told).map_err(py_err)
    }

    /// Adds the examples of a file with this checksum, except those that were removed.
    fn add(&self, py: Python<'_>, path: PathBuf, checksum: u32, removed: Vec<u64>) -> PyResult<()> {
        py.detach(|| self.inner.add(&path, checksum, &removed)).map_err(py_err)
    }

    /// The file of each example, None where there is no such example.
    fn files(&self, ids: Vec<u64>) -> Vec<Option<String>> {
        self.inner.files(&ids)
    }

    /// Removes examples; returns how many there were.
    fn remove(&self, py: Python<'_>, ids: Vec<u64>) -> usize {
        py.detach(|| self.inner.remove(&ids))
    }

    /// Writes the examples of some files into a new one, without removed ones; returns as `write`.
    fn merge(
        &self,
        py: Python<'_>,
        files: Vec<PathBuf>,
        path: PathBuf,
    ) -> PyResult<(u64, u64, u32)> {
        py.detach(|| self.inner.merge(&paths(&files), &path)).map(told).map_err(py_err)
    }

    /// Takes a file that `merge` made in place of those that it was made of.
    fn replace(&self, py: Python<'_>, files: Vec<PathBuf>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.inner.replace(&paths(&files), &path)).map_err(py_err)
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// All ids, ascending.
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        py.detach(|| self.inner.ids()).into_pyarray(py)
    }

    /// Path, examples, removed ones, hypotheses and bytes of each file.
    #[getter]
    fn sizes(&self) -> Vec<Size> {
        let told = |size: tunesmith_local::Size| {
            (size.path, size.examples, size.removed, size.hypotheses, size.bytes)
        };
        self.inner.sizes().into_iter().map(told).collect()
    }

    /// Numbers of different words and of features.
    #[getter]
    fn counts(&self) -> (usize, usize) {
        self.inner.counts()
    }

    /// The distinct words of a sentence that examples have, with weights and shares of examples.
    fn terms(&self, py: Python<'_>, sentence: &str) -> Vec<(String, f64, f64)> {
        py.detach(|| self.inner.terms(sentence))
    }

    /// The `k` most similar examples, best first, then by id; of all, or of candidates.
    #[pyo3(signature = (sentence, k, candidates=None, leave_out=false))]
    fn near(
        &self,
        py: Python<'_>,
        sentence: &str,
        k: usize,
        candidates: Option<Vec<u64>>,
        leave_out: bool,
    ) -> Near {
        let found = py.detach(|| self.inner.near(sentence, k, candidates.as_deref(), leave_out));
        Near { found }
    }

    /// Lists of examples and their statistics; with texts also sources and references. Raises a
    /// `KeyError` if one is not there.
    #[pyo3(signature = (ids, texts=false))]
    fn lists(&self, py: Python<'_>, ids: Vec<u64>, texts: bool) -> PyResult<Lists> {
        let found = py.detach(|| self.inner.lists(&ids, texts)).map_err(py_err)?;
        let Some(found) = found else {
            return Err(PyKeyError::new_err("an example that is not in the index"));
        };
        let starts = found.pools.starts().to_vec();
        let table = found.table.map(|table| Table::new(table, starts));
        Ok((Pools::new(found.pools), table, found.sources, found.references))
    }

    /// Lists of examples as `margin_update` and `error_update` take them. Raises as `lists`.
    fn blocks(&self, py: Python<'_>, ids: Vec<u64>) -> PyResult<Blocks> {
        let found = py.detach(|| self.inner.blocks(&ids)).map_err(py_err)?;
        let (names, blocks) =
            found.ok_or_else(|| PyKeyError::new_err("an example that is not in the index"))?;
        Ok(Blocks::new(names, blocks))
    }

    /// Sources of examples. Raises as `lists`.
    fn sources(&self, py: Python<'_>, ids: Vec<u64>) -> PyResult<Vec<String>> {
        py.detach(|| self.inner.sources(&ids))
            .ok_or_else(|| PyKeyError::new_err("an example that is not in the index"))
    }
}
