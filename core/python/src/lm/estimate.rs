//! Estimates that can be watched and interrupted.

use std::io::Cursor;
use std::path::PathBuf;

use pyo3::prelude::*;
use tunesmith_lm::{Discounts, Estimate, Estimated, Symbols, estimate};
use tunesmith_text::{Lines, Watch};

use super::LanguageModel;
use crate::error::py_err;
use crate::threads;
use crate::watch::watched;

/// An estimated model, in memory or in temporary files.
#[pyclass(module = "tunesmith._core")]
pub struct LmEstimate {
    inner: Estimated,
    threads: usize,
}

type Order = (u64, u64, [f64; 3], Option<String>);

#[pymethods]
impl LmEstimate {
    /// For each order: n-grams, n-grams before pruning, the three discounts, and why they are not
    /// estimated if they are not.
    #[getter]
    fn orders(&self) -> Vec<Order> {
        let stats = self.inner.counts().iter().zip(self.inner.stats());
        stats
            .map(|(&count, stats)| (count, stats.all, stats.discounts.0, stats.fallback.clone()))
            .collect()
    }

    #[getter]
    fn sentences(&self) -> u64 {
        self.inner.sentences()
    }

    #[getter]
    fn words(&self) -> u64 {
        self.inner.words()
    }

    /// Special words in the text that were skipped.
    #[getter]
    fn skipped(&self) -> u64 {
        self.inner.skipped()
    }

    fn write_arpa(&mut self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        threads::run(py, self.threads, || self.inner.write_arpa(path))?.map_err(py_err)
    }

    fn model(&mut self, py: Python<'_>) -> PyResult<LanguageModel> {
        py.detach(|| self.inner.model()).map(LanguageModel::new).map_err(py_err)
    }
}

/// Estimates a model from files, or from sentences if there are any. `progress` is called with
/// the stage, the work done in it and the whole of it (0 if nobody knows).
#[pyfunction]
#[pyo3(signature = (paths, sentences, *, order, prune, vocabulary, memory, folder, skip_symbols,
                    fallback, threads, progress = None))]
#[allow(clippy::too_many_arguments)] // keywords of one call
pub fn estimate_lm(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    sentences: Option<Vec<String>>,
    order: usize,
    prune: Vec<u64>,
    vocabulary: Option<Vec<String>>,
    memory: usize,
    folder: Option<PathBuf>,
    skip_symbols: bool,
    fallback: [f64; 3],
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<LmEstimate> {
    let symbols = if skip_symbols { Symbols::Skip } else { Symbols::Refuse };
    let fallback = Discounts(fallback);
    let options = Estimate { order, prune, vocabulary, memory, folder, symbols, fallback };
    let watch = Watch::default();
    let found = watched(py, &watch, progress, threads, || match sentences {
        Some(sentences) => {
            let mut text = sentences.join("\n");
            text.push('\n');
            if sentences.is_empty() {
                text.clear();
            }
            estimate([Lines::new("<sentences>", Cursor::new(text))], &options, &watch)
        }
        None => estimate(paths.iter().map(Lines::open), &options, &watch),
    })?;
    found.map(|inner| LmEstimate { inner, threads }).map_err(py_err)
}
