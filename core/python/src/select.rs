//! `Selector`: the native ones, and those written in Python.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use tunesmith_solve::{
    Against, Bounded, Expected, Fault, HopeFear, ListKind, Lists, Model, Pairs, Rows,
    Selector as CoreSelector, Visit, margin_row,
};
use tunesmith_space::Among;

/// Candidates that count: `k` best, `unique` by string, `whole_forests` whatever `k`.
type Counted = (usize, bool, bool);

fn among((k, unique, whole_forests): Counted) -> Among {
    Among { k, unique, whole_forests }
}

#[pyclass(frozen, module = "tunesmith._core")]
pub struct Selector {
    pub inner: Arc<dyn CoreSelector>,
}

/// Lets an `Arc` stand where a box is wanted.
struct Shared(Arc<dyn CoreSelector>);

impl CoreSelector for Shared {
    fn rounds(&self) -> usize {
        self.0.rounds()
    }

    fn reads_weights(&self) -> bool {
        self.0.reads_weights()
    }

    fn among(&self) -> Among {
        self.0.among()
    }

    fn select(
        &self,
        visit: &mut Visit<'_>,
        model: &Model,
        round: usize,
        rows: &mut Rows,
    ) -> Result<(), Fault> {
        self.0.select(visit, model, round, rows)
    }
}

#[pymethods]
impl Selector {
    #[staticmethod]
    #[pyo3(signature = (oracle, prediction, oracle_among, counted, pinned=None))]
    fn hope_fear(
        oracle: (f64, f64),
        prediction: (f64, f64),
        oracle_among: Counted,
        counted: Counted,
        pinned: Option<Vec<f64>>,
    ) -> Self {
        let (oracle_among, among) = (among(oracle_among), among(counted));
        Selector { inner: Arc::new(HopeFear { oracle, prediction, oracle_among, among, pinned }) }
    }

    #[staticmethod]
    fn lists(n: usize, model: bool, counted: Counted) -> Self {
        let kind = if model { ListKind::ModelHopeFear } else { ListKind::HopeFear };
        Selector { inner: Arc::new(Lists { kind, n, among: among(counted) }) }
    }

    #[staticmethod]
    fn pairs(samples: usize, threshold: f64, keep: usize) -> Self {
        Selector { inner: Arc::new(Pairs { samples, threshold, keep }) }
    }

    #[staticmethod]
    fn expected(alpha: f64, k: usize) -> Self {
        Selector { inner: Arc::new(Expected { alpha, k }) }
    }

    #[staticmethod]
    fn bounded(inner: &Selector, bound: f64, price: f64, counted: Counted, by_cost: bool) -> Self {
        let inner = Box::new(Shared(Arc::clone(&inner.inner)));
        let among = among(counted);
        Selector { inner: Arc::new(Bounded { inner, bound, price, among, by_cost }) }
    }

    /// The first of a list against each of the others, which it is to beat by `margin`.
    #[staticmethod]
    fn against(margin: f64) -> Self {
        Selector { inner: Arc::new(Against { margin }) }
    }

    /// `choose(scores, gains, seed) -> [(better, worse), ...]`, numbers within the list.
    #[staticmethod]
    fn python(choose: Py<PyAny>) -> Self {
        Selector { inner: Arc::new(PythonSelector { choose }) }
    }
}

/// A selector written in Python. It sees two arrays and answers with pairs; differences and
/// bookkeeping stay here.
struct PythonSelector {
    choose: Py<PyAny>,
}

impl CoreSelector for PythonSelector {
    fn select(
        &self,
        visit: &mut Visit<'_>,
        model: &Model,
        _round: usize,
        rows: &mut Rows,
    ) -> Result<(), Fault> {
        let count = visit.space.len();
        let scores: Vec<f64> = (0..count).map(|candidate| visit.space.score(candidate)).collect();
        let gains: Vec<f64> = (0..count).map(|candidate| visit.space.gain(candidate)).collect();
        let seed = visit.rng.next_u64();
        let pairs = Python::attach(|py| -> PyResult<Vec<(usize, usize)>> {
            let scores: Bound<'_, PyArray1<f64>> = scores.into_pyarray(py);
            let gains: Bound<'_, PyArray1<f64>> = gains.into_pyarray(py);
            self.choose.bind(py).call1((scores, gains, seed))?.extract()
        })?;
        for (better, worse) in pairs {
            if better >= count || worse >= count {
                return Err(format!(
                    "the selector chose candidate {} of a list of {count}",
                    better.max(worse)
                )
                .into());
            }
            visit.oracle.get_or_insert(better);
            visit.prediction.get_or_insert(worse);
            margin_row(visit, better, worse, model, rows);
        }
        Ok(())
    }
}
