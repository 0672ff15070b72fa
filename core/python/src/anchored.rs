//! Updates that stay near given weights: local training.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tunesmith_solve::local::{Error, Learnt, Lists, Margin, blocks_of};
use tunesmith_space::Block;
use tunesmith_text::Names;

use crate::metric::{Metric, Table};
use crate::pools::{Pools, fits};

/// Weights, the spread they were divided by, objective, looks at the lists, duality gap.
type Found<'py> = (Bound<'py, PyArray1<f64>>, f64, f64, usize, f64);

/// Lower and upper bounds of weights.
type Bounds<'py> = (PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>);

/// Lists with gains, column by column: those of an index stay where they lie on disk.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct Blocks {
    names: Names,
    blocks: Vec<Block>,
}

impl Blocks {
    pub fn new(names: Names, blocks: Vec<Block>) -> Blocks {
        Blocks { names, blocks }
    }
}

#[pymethods]
impl Blocks {
    /// A copy of lists with these statistics.
    #[staticmethod]
    fn of(py: Python<'_>, pools: &Pools, table: &Table, metric: &Metric) -> PyResult<Blocks> {
        fits(pools, table, metric, usize::MAX)?;
        let (lists, rows, native) = (pools.inner(), table.inner.as_ref(), metric.inner());
        let blocks = py.detach(|| blocks_of(lists, rows, native.as_ref()));
        metric.check()?;
        Ok(Blocks { names: lists.names.clone(), blocks })
    }

    /// The names of the features, in the order of weights.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.names.iter().collect()
    }

    fn __len__(&self) -> usize {
        self.blocks.len()
    }
}

/// Margin based ultraconservative update. Runs in the thread that calls it, without the
/// interpreter lock: sentences are learnt from side by side.
#[pyfunction]
#[pyo3(signature = (lists, weights, bounds, normalise, strength, tolerance, passes))]
#[allow(clippy::too_many_arguments)]
pub fn margin_update<'py>(
    py: Python<'py>,
    lists: &Bound<'py, Blocks>,
    weights: PyReadonlyArray1<'py, f64>,
    bounds: Option<Bounds<'py>>,
    normalise: bool,
    strength: f64,
    tolerance: f64,
    passes: usize,
) -> PyResult<Found<'py>> {
    let margin = Margin { strength, tolerance, passes };
    update(py, lists.get(), weights, bounds, normalise, |lists| margin.learn(lists))
}

/// Error rate based ultraconservative update, as `margin_update`; the gap is NaN.
#[pyfunction]
#[pyo3(signature = (lists, weights, bounds, normalise, strength, sharpness, tolerance, passes))]
#[allow(clippy::too_many_arguments)]
pub fn error_update<'py>(
    py: Python<'py>,
    lists: &Bound<'py, Blocks>,
    weights: PyReadonlyArray1<'py, f64>,
    bounds: Option<Bounds<'py>>,
    normalise: bool,
    strength: f64,
    sharpness: f64,
    tolerance: f64,
    passes: usize,
) -> PyResult<Found<'py>> {
    let error = Error { strength, sharpness, tolerance, passes };
    update(py, lists.get(), weights, bounds, normalise, |lists| error.learn(lists))
}

fn update<'py>(
    py: Python<'py>,
    lists: &Blocks,
    weights: PyReadonlyArray1<'py, f64>,
    bounds: Option<Bounds<'py>>,
    normalise: bool,
    learn: impl Fn(&Lists<'_>) -> Learnt + Send + Sync,
) -> PyResult<Found<'py>> {
    let weights = weights.as_slice()?;
    if weights.len() < lists.names.len() {
        return Err(PyValueError::new_err("fewer weights than features"));
    }
    let bounds = match &bounds {
        Some((lower, upper)) => Some((lower.as_slice()?, upper.as_slice()?)),
        None => None,
    };
    if bounds.is_some_and(|(l, u)| l.len() != weights.len() || u.len() != weights.len()) {
        return Err(PyValueError::new_err("as many bounds as weights are needed"));
    }
    let blocks = &lists.blocks;
    let found = py.detach(|| learn(&Lists { blocks, weights, bounds, normalise }));
    let Learnt { weights, spread, objective, passes, gap } = found;
    Ok((weights.into_pyarray(py), spread, objective, passes, gap))
}
