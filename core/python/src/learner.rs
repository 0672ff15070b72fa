//! `Learner`: passes over lists or forests; and the constraint rows of batch optimisers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tunesmith_solve::{
    Corpus as CoreCorpus, Gain, GainKind, GainScale, Model, Observed, Pass, Rows,
    Selector as CoreSelector, Update as CoreUpdate, feature_sizes, mean_loss, sample_rows,
};

use crate::corpus::{Corpus, Spaces, Statistics};
use crate::metric::Metric;
use crate::select::Selector;
use crate::threads;
use crate::update::{Update, fault, loss_of, rows_dict};

/// Weights on their way over a corpus, with all state that a checkpoint needs.
#[pyclass(module = "tunesmith._core")]
pub struct Learner {
    corpus: Arc<dyn CoreCorpus>,
    selector: Arc<dyn CoreSelector>,
    update: Box<dyn CoreUpdate>,
    gain: Gain,
    model: Model,
    metric: Py<Metric>,
    batch: usize,
    seed: u64,
}

#[pymethods]
impl Learner {
    #[new]
    #[pyo3(signature = (pools, table, metric, selector, update, weights, *, gain="sentence",
        decay=0.9, history="1best", gain_scale="one", lengths=None, lower=None, upper=None,
        batch=1, seed=0, averaged=true))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        pools: Spaces<'_>,
        table: Statistics<'_>,
        metric: &Bound<'_, Metric>,
        selector: &Selector,
        update: &Update,
        weights: PyReadonlyArray1<'_, f64>,
        gain: &str,
        decay: f64,
        history: &str,
        gain_scale: &str,
        lengths: Option<Vec<f64>>,
        lower: Option<Vec<f64>>,
        upper: Option<Vec<f64>>,
        batch: usize,
        seed: u64,
        averaged: bool,
    ) -> PyResult<Self> {
        let weights = weights.as_slice()?.to_vec();
        let features = weights.len();
        let corpus = Corpus::new(&pools, &table, metric.get(), features)?.shared();
        let gain =
            gain_of(corpus.as_ref(), metric, &weights, gain, decay, history, gain_scale, lengths)?;
        let mut model = Model::new(weights);
        if !averaged {
            model = model.without_average();
        }
        if let (Some(lower), Some(upper)) = (lower, upper) {
            if lower.len() != features || upper.len() != features {
                return Err(PyValueError::new_err("one lower and one upper bound per weight"));
            }
            if !lower.iter().zip(&upper).all(|(low, high)| low <= high) {
                return Err(PyValueError::new_err("a lower bound above its upper bound"));
            }
            model = model.bounded(lower, upper);
        }
        Ok(Learner {
            corpus,
            selector: Arc::clone(&selector.inner),
            update: update.start(features),
            gain,
            model,
            metric: metric.clone().unbind(),
            batch,
            seed,
        })
    }

    /// One pass in the given order of sentences. Returns what was seen on the way.
    fn run<'py>(
        &mut self,
        py: Python<'py>,
        order: PyReadonlyArray1<'_, u32>,
        epoch: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let order = order.as_slice()?.to_vec();
        if order.iter().any(|&sentence| sentence as usize >= self.corpus.sentences()) {
            return Err(PyValueError::new_err("the order names a sentence that is not there"));
        }
        let result = py.detach(|| {
            let pass = Pass {
                corpus: self.corpus.as_ref(),
                selector: self.selector.as_ref(),
                order: &order,
                batch: self.batch,
                seed: self.seed,
                epoch,
            };
            let asked = std::cell::Cell::new(Instant::now());
            let interrupted = || {
                let due = asked.get().elapsed() > Duration::from_millis(100);
                due && {
                    asked.set(Instant::now());
                    Python::attach(|py| py.check_signals().is_err())
                }
            };
            pass.run(&mut self.model, &mut self.gain, self.update.as_mut(), &interrupted)
        });
        let observed: Observed = result.map_err(|problem| {
            if problem.to_string() == "interrupted" {
                pyo3::exceptions::PyKeyboardInterrupt::new_err("interrupted")
            } else {
                fault(problem)
            }
        })?;
        self.metric.get().check()?;
        let dict = PyDict::new(py);
        dict.set_item("visits", observed.visits)?;
        dict.set_item("updates", observed.updates)?;
        dict.set_item("loss", observed.loss)?;
        dict.set_item("model", observed.model)?;
        dict.set_item("oracle", observed.oracle)?;
        dict.set_item("prediction", observed.prediction)?;
        dict.set_item("spread", observed.spread)?;
        Ok(dict)
    }

    /// Statistics of what the model chose in this epoch, for gains in context; else nothing.
    #[getter]
    fn observed<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.gain.observed())
    }

    /// Ends an epoch, whose passes may have been several; `observed` is what all learners saw.
    #[pyo3(signature = (observed=None))]
    fn end_epoch(&mut self, observed: Option<PyReadonlyArray1<'_, f64>>) -> PyResult<()> {
        if let Some(observed) = observed
            && !self.gain.set_observed(observed.as_slice()?)
        {
            return Err(PyValueError::new_err("statistics of another corpus"));
        }
        self.gain.end_epoch();
        Ok(())
    }

    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.model.weights())
    }

    /// Mean of the weights after each step since the average was last restarted.
    #[getter]
    fn average<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.model.average().into_pyarray(py)
    }

    fn restart_average(&mut self) {
        self.model.restart_average();
    }

    /// Multiplies the learning rate.
    fn slow_down(&mut self, factor: f64) {
        self.update.slow_down(factor);
    }

    /// Replaces the weights, as mixing does between passes.
    fn set_weights(&mut self, weights: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        let weights = weights.as_slice()?;
        if weights.len() != self.model.weights().len() {
            return Err(PyValueError::new_err("weights of another length"));
        }
        for (id, &weight) in weights.iter().enumerate() {
            self.model.set(id as u32, weight);
        }
        self.update.weights_replaced();
        Ok(())
    }

    /// Everything that changes between passes, as arrays by name.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (lag, steps) = self.model.average_state();
        let dict = PyDict::new(py);
        dict.set_item("weights", PyArray1::from_slice(py, self.model.weights()))?;
        dict.set_item("lag", PyArray1::from_slice(py, lag))?;
        dict.set_item("steps", PyArray1::from_slice(py, &[steps as f64]))?;
        dict.set_item("gain", self.gain.state().into_pyarray(py))?;
        dict.set_item("update", self.update.state().into_pyarray(py))?;
        Ok(dict)
    }

    /// Takes back what `state` gave.
    fn restore(
        &mut self,
        weights: PyReadonlyArray1<'_, f64>,
        lag: PyReadonlyArray1<'_, f64>,
        steps: PyReadonlyArray1<'_, f64>,
        gain: PyReadonlyArray1<'_, f64>,
        update: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<()> {
        self.set_weights(weights)?;
        let lag = lag.as_slice()?;
        let steps = steps.as_slice()?;
        if lag.len() != self.model.weights().len()
            || steps.len() != 1
            || !self.gain.restore(gain.as_slice()?)
            || !self.update.restore(update.as_slice()?)
        {
            return Err(PyValueError::new_err("the saved state belongs to another learner"));
        }
        self.model.restore_average(lag.to_vec(), steps[0] as u64);
        Ok(())
    }
}

#[allow(clippy::too_many_arguments)]
fn gain_of(
    corpus: &dyn CoreCorpus,
    metric: &Bound<'_, Metric>,
    weights: &[f64],
    gain: &str,
    decay: f64,
    history: &str,
    scale: &str,
    lengths: Option<Vec<f64>>,
) -> PyResult<Gain> {
    let kind = match gain {
        "sentence" => GainKind::Sentence,
        "background" => {
            let oracle = match history {
                "1best" => false,
                "oracle" => true,
                _ => return Err(PyValueError::new_err("history is 1best or oracle")),
            };
            GainKind::Background { decay, oracle }
        }
        "context" => GainKind::Context,
        _ => return Err(PyValueError::new_err("gain is sentence, background or context")),
    };
    let scale = match scale {
        "one" => GainScale::One,
        "length" => GainScale::Length,
        "background" => GainScale::Background,
        _ => return Err(PyValueError::new_err("gain_scale is one, length or background")),
    };
    let mut first = Vec::new();
    let mut words = vec![0.0; corpus.sentences()];
    for (sentence, words) in words.iter_mut().enumerate() {
        if let Some((row, count)) = corpus.first(sentence, weights) {
            first.extend(row);
            *words = count as f64;
        }
    }
    let lengths = match lengths {
        Some(lengths) if lengths.len() == corpus.sentences() => lengths,
        Some(_) => return Err(PyValueError::new_err("one length per sentence")),
        None => words,
    };
    Ok(Gain::new(metric.get().inner(), kind, scale, lengths, &first))
}

/// Constraint rows, kept where the optimiser's arithmetic is done.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct Constraints {
    rows: Arc<Rows>,
    features: usize,
}

#[pymethods]
impl Constraints {
    fn __len__(&self) -> usize {
        self.rows.len()
    }

    /// The rows as arrays.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        rows_dict(py, &self.rows)
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
        let loss = loss_of(loss)?;
        let weights = weights.as_slice()?.to_vec();
        if weights.len() != self.features {
            return Err(PyValueError::new_err("weights of another length"));
        }
        let rows = Arc::clone(&self.rows);
        let (value, gradient) =
            threads::run(py, threads, move || mean_loss(&rows, &weights, loss))?;
        Ok((value, gradient.into_pyarray(py)))
    }

    /// Root mean square of each feature over the rows.
    fn sizes<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        feature_sizes(&self.rows, self.features).into_pyarray(py)
    }
}

/// Constraint rows of all sentences under fixed weights, as arrays.
#[pyfunction]
#[pyo3(signature = (pools, table, metric, selector, weights, seed=0, epoch=0, threads=0))]
#[allow(clippy::too_many_arguments)]
pub fn constraint_rows(
    py: Python<'_>,
    pools: Spaces<'_>,
    table: Statistics<'_>,
    metric: &Bound<'_, Metric>,
    selector: &Selector,
    weights: PyReadonlyArray1<'_, f64>,
    seed: u64,
    epoch: u64,
    threads: usize,
) -> PyResult<Constraints> {
    let weights = weights.as_slice()?.to_vec();
    let features = weights.len();
    let corpus = Corpus::new(&pools, &table, metric.get(), features)?.shared();
    let gain = gain_of(corpus.as_ref(), metric, &weights, "sentence", 0.0, "1best", "one", None)?;
    let model = Model::new(weights);
    let order: Vec<u32> = (0..corpus.sentences() as u32).collect();
    let selector = Arc::clone(&selector.inner);
    let rows = threads::run(py, threads, move || {
        let pass = Pass {
            corpus: corpus.as_ref(),
            selector: selector.as_ref(),
            order: &order,
            batch: 1,
            seed,
            epoch,
        };
        sample_rows(&pass, &model, &gain)
    })?
    .map_err(fault)?;
    metric.get().check()?;
    Ok(Constraints { rows: Arc::new(rows), features })
}

/// The order in which an epoch visits its sentences.
#[pyfunction]
pub fn permutation(
    py: Python<'_>,
    seed: u64,
    epoch: u64,
    length: usize,
) -> Bound<'_, PyArray1<u32>> {
    // Sentence numbers never reach this stream's name.
    tunesmith_solve::Rng::new(seed, epoch, u64::MAX).permutation(length).into_pyarray(py)
}
