//! `Sampler`: the constraint rows of batch optimisers; `Constraints`: their loss.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tunesmith_solve::{
    BlockRows, Blocks, Corpus as CoreCorpus, Gain, Model, PartCorpus, Pass, sample_rows,
};

use crate::blocks::{GivenBlocks, Slopes, blocks_of, slopes};
use crate::corpus::{Corpus, Spaces, Statistics};
use crate::metric::Metric;
use crate::select::Selector;
use crate::threads;
use crate::update::{fault, loss_of, rows_dict};

/// Constraint rows, kept where the optimiser's arithmetic is done.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct Constraints {
    inner: Arc<BlockRows>,
    features: usize,
}

#[pymethods]
impl Constraints {
    fn __len__(&self) -> usize {
        self.inner.rows.len()
    }

    /// The rows as arrays.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        rows_dict(py, &self.inner.rows)
    }

    /// Mean loss of the rows and its gradient.
    #[pyo3(signature = (weights, loss, threads=0))]
    fn loss<'py>(
        &self,
        py: Python<'py>,
        weights: PyReadonlyArray1<'_, f64>,
        loss: &str,
        threads: usize,
    ) -> PyResult<(f64, Bound<'py, PyArray1<f64>>)> {
        let (loss, weights) = (loss_of(loss)?, self.check(&weights)?);
        let rows = Arc::clone(&self.inner);
        let (value, gradient) = threads::run(py, threads, move || rows.mean_loss(&weights, loss))?;
        Ok((value, gradient.into_pyarray(py)))
    }

    /// The loss of the rows of each block, divided by `count`, and its gradient.
    #[pyo3(signature = (weights, loss, count, threads=0))]
    fn losses<'py>(
        &self,
        py: Python<'py>,
        weights: PyReadonlyArray1<'_, f64>,
        loss: &str,
        count: usize,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Slopes<'py>)> {
        let (loss, weights) = (loss_of(loss)?, self.check(&weights)?);
        let rows = Arc::clone(&self.inner);
        let (values, gradient) =
            threads::run(py, threads, move || rows.losses(&weights, loss, count))?;
        Ok((values.into_pyarray(py), slopes(py, gradient)))
    }

    /// The sum of squares of each feature over the rows of each block.
    #[pyo3(signature = (threads=0))]
    fn squares<'py>(&self, py: Python<'py>, threads: usize) -> PyResult<Slopes<'py>> {
        let (rows, features) = (Arc::clone(&self.inner), self.features);
        let found = threads::run(py, threads, move || rows.squares(features))?;
        Ok(slopes(py, found))
    }
}

impl Constraints {
    fn check(&self, weights: &PyReadonlyArray1<'_, f64>) -> PyResult<Vec<f64>> {
        let weights = weights.as_slice()?.to_vec();
        if weights.len() != self.features {
            return Err(PyValueError::new_err("weights of another length"));
        }
        Ok(weights)
    }
}

/// Draws the constraint rows of all sentences, as often as asked. Gains of sentences alone are
/// found once.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct Sampler {
    corpus: Arc<dyn CoreCorpus>,
    blocks: Arc<Blocks>,
    /// The lines to draw from, by their numbers in the whole corpus.
    lines: Vec<u32>,
    metric: Py<Metric>,
    features: usize,
}

#[pymethods]
impl Sampler {
    /// `part` has the number of each line in the whole corpus, and how many lines that has.
    #[new]
    #[pyo3(signature = (pools, table, metric, features, blocks=None, part=None))]
    fn new(
        pools: Spaces<'_>,
        table: Statistics<'_>,
        metric: &Bound<'_, Metric>,
        features: usize,
        blocks: Option<GivenBlocks>,
        part: Option<(Vec<u32>, usize)>,
    ) -> PyResult<Self> {
        let mut corpus = Corpus::new(&pools, &table, metric.get(), features)?.shared();
        let blocks = Arc::new(blocks_of(blocks, corpus.sentences())?);
        let mut lines: Vec<u32> = (0..corpus.lines() as u32).collect();
        if let Some((numbers, whole)) = part {
            if numbers.len() != lines.len() || numbers.iter().any(|&line| line as usize >= whole) {
                return Err(PyValueError::new_err("a number of the whole for every line"));
            }
            corpus = Arc::new(PartCorpus::new(corpus, &numbers, whole));
            lines = numbers;
        }
        Ok(Sampler { corpus, blocks, lines, metric: metric.clone().unbind(), features })
    }

    /// The rows that a selector makes under fixed weights; gains are those of sentences alone, or
    /// in the context of what was chosen for every sentence, given as statistics.
    #[pyo3(signature = (selector, weights, seed=0, epoch=0, threads=0, chosen=None))]
    #[allow(clippy::too_many_arguments)]
    fn rows(
        &self,
        py: Python<'_>,
        selector: &Selector,
        weights: PyReadonlyArray1<'_, f64>,
        seed: u64,
        epoch: u64,
        threads: usize,
        chosen: Option<PyReadonlyArray2<'_, f64>>,
    ) -> PyResult<Constraints> {
        let weights = weights.as_slice()?.to_vec();
        if weights.len() != self.features {
            return Err(PyValueError::new_err("weights of another length"));
        }
        let model = Model::new(weights);
        let (corpus, selector) = (Arc::clone(&self.corpus), Arc::clone(&selector.inner));
        let metric = self.metric.get();
        let gain = match chosen {
            None => Gain::sentence(metric.inner()),
            Some(chosen) => {
                if chosen.shape() != [self.corpus.lines(), metric.inner().width()] {
                    return Err(PyValueError::new_err("a row of statistics for every line"));
                }
                Gain::among(metric.inner(), chosen.as_slice()?.to_vec())
            }
        };
        let (blocks, order) = (Arc::clone(&self.blocks), self.lines.clone());
        let rows = threads::run(py, threads, move || {
            let pass = Pass {
                corpus: corpus.as_ref(),
                selector: selector.as_ref(),
                order: &order,
                batch: 1,
                seed,
                epoch,
            };
            sample_rows(&pass, &model, &gain).map(|rows| BlockRows::new(rows, &blocks))
        })?
        .map_err(fault)?;
        metric.check()?;
        Ok(Constraints { inner: Arc::new(rows), features: self.features })
    }
}
