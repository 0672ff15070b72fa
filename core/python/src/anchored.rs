//! Updates that stay near given weights: local training.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tunesmith_solve::local::{Error, Learnt, Lists, Margin, gains_of};

use crate::metric::{Metric, Table};
use crate::pools::{Pools, fits};

/// Weights, the spread they were divided by, objective, looks at the lists, duality gap.
type Found<'py> = (Bound<'py, PyArray1<f64>>, f64, f64, usize, f64);

/// Lower and upper bounds of weights.
type Bounds<'py> = (PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>);

/// Margin based ultraconservative update. Runs in the thread that calls it, without the
/// interpreter lock: sentences are learnt from side by side.
#[pyfunction]
#[pyo3(signature = (pools, table, metric, weights, bounds, normalise, strength, tolerance, passes))]
#[allow(clippy::too_many_arguments)]
pub fn margin_update<'py>(
    py: Python<'py>,
    pools: &Bound<'py, Pools>,
    table: &Bound<'py, Table>,
    metric: &Bound<'py, Metric>,
    weights: PyReadonlyArray1<'py, f64>,
    bounds: Option<Bounds<'py>>,
    normalise: bool,
    strength: f64,
    tolerance: f64,
    passes: usize,
) -> PyResult<Found<'py>> {
    let margin = Margin { strength, tolerance, passes };
    update(py, (pools, table, metric), weights, bounds, normalise, |lists| margin.learn(lists))
}

/// Error rate based ultraconservative update, as `margin_update`; the gap is NaN.
#[pyfunction]
#[pyo3(signature = (pools, table, metric, weights, bounds, normalise, strength, sharpness,
    tolerance, passes))]
#[allow(clippy::too_many_arguments)]
pub fn error_update<'py>(
    py: Python<'py>,
    pools: &Bound<'py, Pools>,
    table: &Bound<'py, Table>,
    metric: &Bound<'py, Metric>,
    weights: PyReadonlyArray1<'py, f64>,
    bounds: Option<Bounds<'py>>,
    normalise: bool,
    strength: f64,
    sharpness: f64,
    tolerance: f64,
    passes: usize,
) -> PyResult<Found<'py>> {
    let error = Error { strength, sharpness, tolerance, passes };
    update(py, (pools, table, metric), weights, bounds, normalise, |lists| error.learn(lists))
}

fn update<'py>(
    py: Python<'py>,
    (pools, table, metric): (&Bound<'py, Pools>, &Bound<'py, Table>, &Bound<'py, Metric>),
    weights: PyReadonlyArray1<'py, f64>,
    bounds: Option<Bounds<'py>>,
    normalise: bool,
    learn: impl Fn(&Lists<'_>) -> Learnt + Send + Sync,
) -> PyResult<Found<'py>> {
    let weights = weights.as_slice()?;
    let (lists, rows, native) = (pools.get(), table.get(), metric.get().inner());
    fits(lists, rows, metric.get(), weights.len())?;
    let bounds = match &bounds {
        Some((lower, upper)) => Some((lower.as_slice()?, upper.as_slice()?)),
        None => None,
    };
    if bounds.is_some_and(|(l, u)| l.len() != weights.len() || u.len() != weights.len()) {
        return Err(PyValueError::new_err("as many bounds as weights are needed"));
    }
    let (pools, table) = (lists.inner().as_ref(), rows.inner.as_ref());
    let found = py.detach(|| {
        let gains = gains_of(pools, table, native.as_ref());
        learn(&Lists { pools, gains: &gains, weights, bounds, normalise })
    });
    metric.get().check()?;
    let Learnt { weights, spread, objective, passes, gap } = found;
    Ok((weights.into_pyarray(py), spread, objective, passes, gap))
}
