//! Line search and expected gain over lists and forests.

use std::sync::{Arc, Mutex, PoisonError};

use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use tunesmith_solve::{
    Blocks, Breaks as CoreBreaks, Expect, ForestSearch, LineSearch as CoreSearch, ListSearch,
    Objective, Probabilities, RowWorth, Walker as CoreWalker, corpus_worth, expected_gain, fold,
    forest_expect,
};

use crate::blocks::{GivenBlocks, Slopes, blocks_of, slopes};
use crate::corpus::{Corpus, Spaces, Statistics};
use crate::metric::Metric;
use crate::threads;

/// Lists or forests prepared for exact line search along the given coordinates.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct LineSearch {
    inner: Arc<dyn CoreSearch>,
    metric: Py<Metric>,
    features: usize,
}

/// Breakpoints along a line: changes at the far left by block; where statistics change, of which
/// sentence, and by how much.
type Breaks<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray2<f64>>,
);

fn rows_of(py: Python<'_>, values: Vec<f64>, width: usize) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let count = values.len() / width;
    values.into_pyarray(py).reshape([count, width])
}

#[pymethods]
impl LineSearch {
    #[new]
    #[pyo3(signature = (pools, table, metric, coordinates, threads=0, blocks=None))]
    fn new(
        py: Python<'_>,
        pools: Spaces<'_>,
        table: Statistics<'_>,
        metric: &Bound<'_, Metric>,
        coordinates: Vec<u32>,
        threads: usize,
        blocks: Option<GivenBlocks>,
    ) -> PyResult<Self> {
        let features = match &pools {
            Spaces::Lists(pools) => pools.get().inner().names.len(),
            Spaces::Forests(forests) => forests.get().inner.names.len(),
        };
        if coordinates.iter().any(|&id| id as usize >= features) {
            return Err(PyIndexError::new_err("a coordinate that is no feature"));
        }
        let corpus = Corpus::new(&pools, &table, metric.get(), usize::MAX)?;
        let blocks = blocks_of(blocks, corpus.shared().sentences())?;
        let native = metric.get().inner();
        let inner = threads::run(py, threads, move || -> Arc<dyn CoreSearch> {
            match corpus {
                Corpus::Lists(lists) => {
                    let (pools, table) = (Arc::clone(&lists.pools), Arc::clone(&lists.table));
                    Arc::new(ListSearch::new(pools, table, native, blocks, &coordinates))
                }
                Corpus::Forests(forests) => {
                    Arc::new(ForestSearch::new(forests, blocks, &coordinates))
                }
            }
        })?;
        Ok(LineSearch { inner, metric: metric.clone().unbind(), features })
    }

    /// A point from which to search.
    fn walker(&self, py: Python<'_>, weights: PyReadonlyArray1<'_, f64>) -> PyResult<Walker> {
        let weights = weights.as_slice()?.to_vec();
        if weights.len() < self.features {
            return Err(PyValueError::new_err("fewer weights than features"));
        }
        let search = Arc::clone(&self.inner);
        let state = py.detach(|| search.walker(weights));
        Ok(Walker { search, state, metric: self.metric.clone_ref(py) })
    }
}

/// A point in weight space; knows the score of every hypothesis there.
#[pyclass(module = "tunesmith._core")]
pub struct Walker {
    search: Arc<dyn CoreSearch>,
    state: CoreWalker,
    metric: Py<Metric>,
}

#[pymethods]
impl Walker {
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.state.weights())
    }

    /// Corpus gain here.
    #[getter]
    fn gain(&self) -> PyResult<f64> {
        let gain = self.search.gain(&self.state);
        self.metric.get().check()?;
        Ok(gain)
    }

    /// The statistics of what is chosen here, a row for each block.
    #[getter]
    fn sums<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        rows_of(py, self.state.sums().to_vec(), self.search.metric().width())
    }

    /// Breakpoints along an axis within a range of steps.
    fn axis_breaks<'py>(
        &self,
        py: Python<'py>,
        axis: usize,
        lower: f64,
        upper: f64,
    ) -> PyResult<Breaks<'py>> {
        self.check(axis)?;
        let found = py.detach(|| self.search.axis_breaks(&self.state, axis, (lower, upper)));
        self.given(py, found)
    }

    /// Breakpoints along a direction within a range of steps.
    fn breaks<'py>(
        &self,
        py: Python<'py>,
        direction: PyReadonlyArray1<'_, f64>,
        lower: f64,
        upper: f64,
    ) -> PyResult<Breaks<'py>> {
        let direction = self.check_direction(&direction)?;
        let found = py.detach(|| self.search.breaks(&self.state, &direction, (lower, upper)));
        self.given(py, found)
    }

    /// `(step, gain)` of the best step along an axis within the weight's bounds.
    fn axis(&self, py: Python<'_>, axis: usize, lower: f64, upper: f64) -> PyResult<(f64, f64)> {
        self.check(axis)?;
        let step = py.detach(|| self.search.axis(&self.state, axis, (lower, upper)));
        self.metric.get().check()?;
        Ok((step.step, step.gain))
    }

    /// `(step, gain)` of the best step along a direction within a range of steps.
    fn direction(
        &self,
        py: Python<'_>,
        direction: PyReadonlyArray1<'_, f64>,
        lower: f64,
        upper: f64,
    ) -> PyResult<(f64, f64)> {
        let direction = self.check_direction(&direction)?;
        let step = py.detach(|| self.search.direction(&self.state, &direction, (lower, upper)));
        self.metric.get().check()?;
        Ok((step.step, step.gain))
    }

    fn move_axis(&mut self, py: Python<'_>, axis: usize, step: f64) -> PyResult<()> {
        self.check(axis)?;
        py.detach(|| self.search.move_axis(&mut self.state, axis, step));
        Ok(())
    }

    /// Goes to other weights; all scores are computed afresh.
    fn move_to(&mut self, py: Python<'_>, weights: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        let weights = weights.as_slice()?.to_vec();
        if weights.len() != self.state.weights().len() {
            return Err(PyValueError::new_err("weights of another length"));
        }
        self.state = py.detach(|| self.search.walker(weights));
        Ok(())
    }
}

impl Walker {
    fn check(&self, axis: usize) -> PyResult<()> {
        if axis < self.search.axes() {
            Ok(())
        } else {
            Err(PyIndexError::new_err(format!("axis {axis} of {}", self.search.axes())))
        }
    }

    fn check_direction(&self, direction: &PyReadonlyArray1<'_, f64>) -> PyResult<Vec<f64>> {
        let direction = direction.as_slice()?;
        if direction.len() != self.state.weights().len() {
            return Err(PyValueError::new_err("a direction of another length"));
        }
        Ok(direction.to_vec())
    }

    fn given<'py>(&self, py: Python<'py>, found: CoreBreaks) -> PyResult<Breaks<'py>> {
        self.metric.get().check()?;
        let width = self.search.metric().width();
        Ok((
            rows_of(py, found.left, width)?,
            found.at.into_pyarray(py),
            found.sentences.into_pyarray(py),
            rows_of(py, found.differences, width)?,
        ))
    }
}

/// `(step, gain, gain without a step)` of the best step along a line, given the statistics of all
/// blocks without a step, and the breakpoints of all sentences.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn sweep(
    py: Python<'_>,
    metric: &Metric,
    sums: PyReadonlyArray2<'_, f64>,
    left: PyReadonlyArray2<'_, f64>,
    at: PyReadonlyArray1<'_, f64>,
    sentences: PyReadonlyArray1<'_, u32>,
    differences: PyReadonlyArray2<'_, f64>,
    lower: f64,
    upper: f64,
) -> PyResult<(f64, f64, f64)> {
    let native = metric.inner();
    let (width, changes) = (native.width(), at.len());
    let fits = sums.shape()[1] == width
        && left.shape() == sums.shape()
        && sentences.len() == changes
        && differences.shape() == [changes, width];
    if !fits {
        return Err(PyValueError::new_err("breakpoints that do not fit together"));
    }
    let sums = sums.as_slice()?.to_vec();
    let breaks = CoreBreaks {
        left: left.as_slice()?.to_vec(),
        at: at.as_slice()?.to_vec(),
        sentences: sentences.as_slice()?.to_vec(),
        differences: differences.as_slice()?.to_vec(),
    };
    let (step, here) = py.detach(|| {
        let here = native.gain(&fold(&sums, width));
        (breaks.best(native.as_ref(), &sums, here, (lower, upper)), here)
    });
    metric.check()?;
    Ok((step.step, step.gain, here))
}

/// Lists or forests ready for expectations; forests at weights near those given.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct Expectation {
    inner: Arc<dyn Expect>,
    blocks: Arc<Blocks>,
    metric: Py<Metric>,
    features: usize,
    /// The probabilities that were asked for last.
    known: Mutex<Option<Arc<Probabilities>>>,
}

#[pymethods]
impl Expectation {
    #[new]
    #[pyo3(signature = (pools, table, metric, weights, threads=0, blocks=None))]
    fn new(
        py: Python<'_>,
        pools: Spaces<'_>,
        table: Statistics<'_>,
        metric: &Bound<'_, Metric>,
        weights: PyReadonlyArray1<'_, f64>,
        threads: usize,
        blocks: Option<GivenBlocks>,
    ) -> PyResult<Self> {
        let weights = weights.as_slice()?.to_vec();
        let features = weights.len();
        let corpus = Corpus::new(&pools, &table, metric.get(), features)?;
        let blocks = Arc::new(blocks_of(blocks, corpus.shared().sentences())?);
        let inner: Arc<dyn Expect> = match corpus {
            Corpus::Lists(lists) => lists,
            Corpus::Forests(forests) => {
                threads::run(py, threads, move || forest_expect(&forests, &weights))?
            }
        };
        metric.get().check()?;
        let metric = metric.clone().unbind();
        Ok(Expectation { inner, blocks, metric, features, known: Mutex::default() })
    }

    /// Value and gradient of the expected gain under `p ∝ exp(α w·f)`.
    #[pyo3(signature = (weights, alpha, corpus=false, threads=0))]
    fn gain<'py>(
        &self,
        py: Python<'py>,
        weights: PyReadonlyArray1<'_, f64>,
        alpha: f64,
        corpus: bool,
        threads: usize,
    ) -> PyResult<(f64, Bound<'py, PyArray1<f64>>)> {
        let weights = self.check(&weights)?;
        let (spaces, native) = (Arc::clone(&self.inner), self.metric.get().inner());
        let blocks = Arc::clone(&self.blocks);
        let objective = if corpus { Objective::Corpus } else { Objective::Sentence };
        let (value, gradient) = threads::run(py, threads, move || {
            expected_gain(spaces.as_ref(), native.as_ref(), &blocks, &weights, alpha, objective)
        })?;
        self.metric.get().check()?;
        Ok((value, gradient.into_pyarray(py)))
    }

    /// The number of sentences that have hypotheses, and expected statistics, a row for each block.
    #[pyo3(signature = (weights, alpha, threads=0))]
    fn stats<'py>(
        &self,
        py: Python<'py>,
        weights: PyReadonlyArray1<'_, f64>,
        alpha: f64,
        threads: usize,
    ) -> PyResult<(usize, Bound<'py, PyArray2<f64>>)> {
        let found = self.probabilities(py, self.check(&weights)?, alpha, threads)?;
        let width = self.metric.get().inner().width();
        Ok((found.count(), rows_of(py, found.stats(), width)?))
    }

    /// The expected worth of each block and its gradient; a statistic is worth so much, or a sentence
    /// its own gain divided by `count`.
    #[pyo3(signature = (weights, alpha, worth, threads=0))]
    fn slopes<'py>(
        &self,
        py: Python<'py>,
        weights: PyReadonlyArray1<'_, f64>,
        alpha: f64,
        worth: GivenWorth,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Slopes<'py>)> {
        let found = self.probabilities(py, self.check(&weights)?, alpha, threads)?;
        let (spaces, native) = (Arc::clone(&self.inner), self.metric.get().inner());
        let worth = match worth {
            GivenWorth::Count(count) => RowWorth::Sentence(count),
            GivenWorth::Statistics(worth) if worth.len() == native.width() => {
                RowWorth::Corpus(worth)
            }
            GivenWorth::Statistics(_) => {
                return Err(PyValueError::new_err("a worth for each statistic"));
            }
        };
        let (values, gradient) = threads::run(py, threads, move || {
            found.slopes(spaces.as_ref(), native.as_ref(), &worth)
        })?;
        self.metric.get().check()?;
        Ok((values.into_pyarray(py), slopes(py, gradient)))
    }
}

impl Expectation {
    fn check(&self, weights: &PyReadonlyArray1<'_, f64>) -> PyResult<Vec<f64>> {
        let weights = weights.as_slice()?.to_vec();
        if weights.len() != self.features {
            return Err(PyValueError::new_err("weights of another length"));
        }
        Ok(weights)
    }

    /// The probabilities under some weights; those of the last call are kept for the next.
    fn probabilities(
        &self,
        py: Python<'_>,
        weights: Vec<f64>,
        alpha: f64,
        threads: usize,
    ) -> PyResult<Arc<Probabilities>> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().as_ref().filter(|found| found.is_at(&weights, alpha)) {
            return Ok(Arc::clone(found));
        }
        let (spaces, blocks) = (Arc::clone(&self.inner), Arc::clone(&self.blocks));
        let width = self.metric.get().inner().width();
        let found = threads::run(py, threads, move || {
            Arc::new(Probabilities::new(spaces.as_ref(), width, &blocks, &weights, alpha))
        })?;
        *known() = Some(Arc::clone(&found));
        Ok(found)
    }
}

/// What a row of statistics is worth: its gain divided by a number, or the sum of its statistics
/// times these.
#[derive(FromPyObject)]
pub enum GivenWorth {
    Count(usize),
    Statistics(Vec<f64>),
}

/// `(gain, worth of each statistic)` of the corpus with the statistics of all blocks.
#[pyfunction]
pub fn worth<'py>(
    py: Python<'py>,
    metric: &Metric,
    stats: PyReadonlyArray2<'_, f64>,
) -> PyResult<(f64, Bound<'py, PyArray1<f64>>)> {
    let native = metric.inner();
    if stats.shape()[1] != native.width() {
        return Err(PyValueError::new_err("statistics of another metric"));
    }
    let (gain, worth) = corpus_worth(native.as_ref(), stats.as_slice()?);
    metric.check()?;
    Ok((gain, worth.into_pyarray(py)))
}
