//! Line search and expected gain over lists and forests.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use tunesmith_solve::{
    Expect, ForestSearch, LineSearch as CoreSearch, ListSearch, Objective, Walker as CoreWalker,
    expected_gain, forest_expect,
};

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

#[pymethods]
impl LineSearch {
    #[new]
    #[pyo3(signature = (pools, table, metric, coordinates, threads=0))]
    fn new(
        py: Python<'_>,
        pools: Spaces<'_>,
        table: Statistics<'_>,
        metric: &Bound<'_, Metric>,
        coordinates: Vec<u32>,
        threads: usize,
    ) -> PyResult<Self> {
        let features = match &pools {
            Spaces::Lists(pools) => pools.get().inner().names.len(),
            Spaces::Forests(forests) => forests.get().inner.names.len(),
        };
        if coordinates.iter().any(|&id| id as usize >= features) {
            return Err(PyIndexError::new_err("a coordinate that is no feature"));
        }
        let corpus = Corpus::new(&pools, &table, metric.get(), usize::MAX)?;
        let native = metric.get().inner();
        let inner = threads::run(py, threads, move || -> Arc<dyn CoreSearch> {
            match corpus {
                Corpus::Lists(lists) => {
                    let (pools, table) = (Arc::clone(&lists.pools), Arc::clone(&lists.table));
                    Arc::new(ListSearch::new(pools, table, native, &coordinates))
                }
                Corpus::Forests(forests) => Arc::new(ForestSearch::new(forests, &coordinates)),
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
    fn gain(&self) -> f64 {
        self.state.gain()
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
        let direction = direction.as_slice()?;
        if direction.len() != self.state.weights().len() {
            return Err(PyValueError::new_err("a direction of another length"));
        }
        let direction = direction.to_vec();
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
}

/// Lists or forests ready for expectations; forests at weights near those given.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct Expectation {
    inner: Arc<dyn Expect>,
    metric: Py<Metric>,
    features: usize,
}

#[pymethods]
impl Expectation {
    #[new]
    #[pyo3(signature = (pools, table, metric, weights, threads=0))]
    fn new(
        py: Python<'_>,
        pools: Spaces<'_>,
        table: Statistics<'_>,
        metric: &Bound<'_, Metric>,
        weights: PyReadonlyArray1<'_, f64>,
        threads: usize,
    ) -> PyResult<Self> {
        let weights = weights.as_slice()?.to_vec();
        let features = weights.len();
        let inner: Arc<dyn Expect> = match Corpus::new(&pools, &table, metric.get(), features)? {
            Corpus::Lists(lists) => lists,
            Corpus::Forests(forests) => {
                threads::run(py, threads, move || forest_expect(&forests, &weights))?
            }
        };
        metric.get().check()?;
        Ok(Expectation { inner, metric: metric.clone().unbind(), features })
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
        let weights = weights.as_slice()?.to_vec();
        if weights.len() != self.features {
            return Err(PyValueError::new_err("weights of another length"));
        }
        let (spaces, native) = (Arc::clone(&self.inner), self.metric.get().inner());
        let objective = if corpus { Objective::Corpus } else { Objective::Sentence };
        let (value, gradient) = threads::run(py, threads, move || {
            expected_gain(spaces.as_ref(), native.as_ref(), &weights, alpha, objective)
        })?;
        self.metric.get().check()?;
        Ok((value, gradient.into_pyarray(py)))
    }
}
