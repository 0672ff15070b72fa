//! Passes: whole ones, and the first half of steps that another learner takes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tunesmith_solve::{Chosen, Corpus as CoreCorpus, Observed, PartCorpus, Pass};

use super::Learner;
use crate::corpus::{Corpus, Spaces, Statistics};
use crate::update::fault;

impl Learner {
    pub(super) fn pass<'py>(
        &mut self,
        py: Python<'py>,
        corpus: &Arc<dyn CoreCorpus>,
        order: &[u32],
        batch: usize,
        epoch: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        if order.iter().any(|&line| line as usize >= corpus.lines()) {
            return Err(PyValueError::new_err("the order names a line that is not there"));
        }
        let result = py.detach(|| {
            let pass = Pass {
                corpus: corpus.as_ref(),
                selector: self.selector.as_ref(),
                order,
                batch,
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
        self.facts(py, observed)
    }

    pub(super) fn facts<'py>(
        &self,
        py: Python<'py>,
        observed: Observed,
    ) -> PyResult<Bound<'py, PyDict>> {
        self.metric.get().check()?;
        let dict = PyDict::new(py);
        dict.set_item("visits", observed.visits)?;
        dict.set_item("updates", observed.updates)?;
        dict.set_item("loss", observed.loss)?;
        dict.set_item("model", observed.model)?;
        dict.set_item("oracle", observed.oracle)?;
        dict.set_item("prediction", observed.prediction)?;
        dict.set_item("spread", observed.spread)?;
        let [model, oracle, prediction] = observed.stats;
        dict.set_item("model_stats", model.into_pyarray(py))?;
        dict.set_item("oracle_stats", oracle.into_pyarray(py))?;
        dict.set_item("prediction_stats", prediction.into_pyarray(py))?;
        Ok(dict)
    }

    /// What a decoder has found for some lines, as the corpus of these lines.
    pub(super) fn part(
        &self,
        spaces: &Spaces<'_>,
        table: &Statistics<'_>,
        lines: &[u32],
    ) -> PyResult<Arc<dyn CoreCorpus>> {
        let features = self.model.weights().len();
        let part = Corpus::new(spaces, table, self.metric.get(), features)?.shared();
        if lines.len() != part.lines() {
            return Err(PyValueError::new_err("one number for each line that was found"));
        }
        Ok(Arc::new(PartCorpus::new(part, lines, self.corpus.lines())))
    }

    /// Chooses the constraints of some lines.
    pub(super) fn choose(
        &self,
        py: Python<'_>,
        corpus: &Arc<dyn CoreCorpus>,
        lines: &[u32],
        epoch: u64,
        margins: bool,
    ) -> PyResult<Chosen> {
        if lines.iter().any(|&line| line as usize >= corpus.lines()) {
            return Err(PyValueError::new_err("the order names a line that is not there"));
        }
        let rounds = self.update.asks(self.selector.rounds()).ok_or_else(|| {
            PyValueError::new_err("the update selects again during a step: it cannot be split")
        })?;
        let chosen = py.detach(|| -> Result<Chosen, tunesmith_solve::Fault> {
            let mut chosen = Chosen::default();
            let pass = self.over(corpus.as_ref(), lines, lines.len(), epoch);
            let scaled = self.update.is_scaled();
            pass.select(&self.model, &self.gain, rounds, scaled, &mut chosen)?;
            if margins {
                chosen.rounds.iter_mut().for_each(|rows| rows.keep_margins(&self.model));
            }
            Ok(chosen)
        });
        let chosen = chosen.map_err(fault)?;
        self.metric.get().check()?;
        Ok(chosen)
    }

    pub(super) fn over<'a>(
        &'a self,
        corpus: &'a dyn CoreCorpus,
        order: &'a [u32],
        batch: usize,
        epoch: u64,
    ) -> Pass<'a> {
        Pass { corpus, selector: self.selector.as_ref(), order, batch, seed: self.seed, epoch }
    }
}
