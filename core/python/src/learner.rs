//! `Learner`: passes over lists or forests.

mod features;
mod gain;
mod pass;
mod split;

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tunesmith_solve::{
    Corpus as CoreCorpus, Gain, Model, Pass, Progress, Selector as CoreSelector,
    Update as CoreUpdate,
};

use self::gain::{gain_kind, gain_of};
use self::split::Told;
use crate::corpus::{Corpus, Spaces, Statistics};
use crate::decoder::{Decoder, Keeping, Translator};
use crate::following::Features;
use crate::metric::Metric;
use crate::select::Selector;
use crate::selected::Selected;
use crate::update::Update;

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
    features: Features,
    /// What the decoder that follows the weights knows of its rules.
    kept: Option<Keeping>,
    /// The pass whose steps are taken one by one.
    progress: Option<Progress>,
    told: Told,
}

#[pymethods]
impl Learner {
    #[new]
    #[pyo3(signature = (pools, table, metric, selector, update, weights, *, gain="sentence",
        decay=0.9, history="1best", gain_scale="one", lengths=None, lower=None, upper=None,
        batch=1, seed=0, averaged=true, idle=true, names=None, unit=1.0, paces=None))]
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
        idle: bool,
        names: Option<Vec<String>>,
        unit: f64,
        paces: Option<Vec<f64>>,
    ) -> PyResult<Self> {
        let weights = weights.as_slice()?.to_vec();
        let features = weights.len();
        let corpus = Corpus::new(&pools, &table, metric.get(), features)?.shared();
        // Without averages, what is chosen on the way tells what will be proposed.
        let kind = gain_kind(gain, decay, history, !averaged)?;
        let gain = gain_of(corpus.as_ref(), metric, &weights, kind, gain_scale, lengths)?;
        let gain = gain.in_units(unit);
        if names.as_ref().is_some_and(|names| names.len() != features) {
            return Err(PyValueError::new_err("one name for each weight"));
        }
        let mut model = Model::new(weights);
        if !averaged {
            model = model.without_average();
        }
        if !idle {
            model = model.skipping_idle_steps();
        }
        if let Some(paces) = paces {
            if paces.len() != features {
                return Err(PyValueError::new_err("one pace for each weight"));
            }
            model = model.paced(paces);
        }
        if let (Some(lower), Some(upper)) = (lower, upper) {
            model = bounded(model, lower, upper)?;
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
            features: Features::new(names.as_deref().unwrap_or_default()),
            kept: None,
            progress: None,
            told: Told::default(),
        })
    }

    /// One pass in the given order of lines. Returns what was seen on the way.
    fn run<'py>(
        &mut self,
        py: Python<'py>,
        order: PyReadonlyArray1<'_, u32>,
        epoch: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let order = order.as_slice()?.to_vec();
        let corpus = Arc::clone(&self.corpus);
        self.pass(py, &corpus, &order, self.batch, epoch)
    }

    /// One step on what a decoder has just found for some lines, which see the same weights; of a
    /// single line, a step on each of its bins. `spaces` come from `take`.
    fn visit<'py>(
        &mut self,
        py: Python<'py>,
        spaces: Spaces<'_>,
        table: Statistics<'_>,
        lines: PyReadonlyArray1<'_, u32>,
        epoch: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let order = lines.as_slice()?.to_vec();
        let corpus = self.part(&spaces, &table, &order)?;
        self.pass(py, &corpus, &order, order.len(), epoch)
    }

    /// Chooses the constraints of some lines, which see the same weights, for a learner that `apply`s
    /// them elsewhere; with `margins`, updates that are gradients are to be those at these weights.
    #[pyo3(signature = (lines, epoch, *, margins=false))]
    fn select(
        &self,
        py: Python<'_>,
        lines: PyReadonlyArray1<'_, u32>,
        epoch: u64,
        margins: bool,
    ) -> PyResult<Selected> {
        let lines = lines.as_slice()?.to_vec();
        let chosen = self.choose(py, &self.corpus, &lines, epoch, margins)?;
        Ok(Selected::new(lines, self.model.weights().len(), Vec::new(), chosen))
    }

    /// The same on what a decoder has just found. `spaces` come from `take`; features from `known`
    /// on are new.
    #[pyo3(signature = (spaces, table, lines, epoch, known, *, margins=false))]
    #[allow(clippy::too_many_arguments)]
    fn select_found(
        &self,
        py: Python<'_>,
        spaces: Spaces<'_>,
        table: Statistics<'_>,
        lines: PyReadonlyArray1<'_, u32>,
        epoch: u64,
        known: usize,
        margins: bool,
    ) -> PyResult<Selected> {
        let lines = lines.as_slice()?.to_vec();
        let corpus = self.part(&spaces, &table, &lines)?;
        let chosen = self.choose(py, &corpus, &lines, epoch, margins)?;
        let names = self.features.names.iter().skip(known).map(str::to_owned).collect();
        Ok(Selected::new(lines, known, names, chosen))
    }

    /// The lines of each step of a pass that others select for. Empty lists are passed over.
    fn batches<'py>(
        &self,
        py: Python<'py>,
        order: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<Vec<Bound<'py, PyArray1<u32>>>> {
        let order = order.as_slice()?;
        let batches = self.over(self.corpus.as_ref(), order, self.batch, 0).batches();
        Ok(batches.into_iter().map(|lines| lines.into_pyarray(py)).collect())
    }

    /// Whether selecting needs the weights and gains of the moment.
    #[getter]
    fn scored(&self) -> bool {
        self.over(self.corpus.as_ref(), &[], 1, 0).is_scored(&self.gain)
    }

    /// Begins a pass whose steps come through `apply`; `scored` says whether anyone reads weights
    /// between them.
    fn open(&mut self, scored: bool) {
        self.update.begin_pass(&self.model, scored);
        self.progress = Some(Progress::default());
    }

    /// Brings the weights up to date that selecting from some lines reads.
    fn catch_up(&mut self, lines: PyReadonlyArray1<'_, u32>) -> PyResult<()> {
        let corpus = Arc::clone(&self.corpus);
        let selector = Arc::clone(&self.selector);
        let pass = Pass {
            corpus: corpus.as_ref(),
            selector: selector.as_ref(),
            order: lines.as_slice()?,
            batch: 1,
            seed: self.seed,
            epoch: 0,
        };
        pass.catch_up(&mut self.model, &self.gain, self.update.as_mut());
        Ok(())
    }

    /// Gives ids to the features that are new to this learner, in the order of `lines`. Raises
    /// unless the parts have each of these lines once.
    fn meet(
        &mut self,
        parts: Vec<Bound<'_, Selected>>,
        lines: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<()> {
        self.meet_parts(&parts, lines.as_slice()?)
    }

    /// The second half of a step: moves the weights by what was selected for `lines`, in their
    /// order, after `meet`.
    fn apply(
        &mut self,
        py: Python<'_>,
        parts: Vec<Bound<'_, Selected>>,
        lines: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<()> {
        self.apply_parts(py, &parts, lines.as_slice()?)
    }

    /// Ends a pass that was opened. Returns what was seen on the way.
    fn close<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let progress = self.progress.take();
        let progress = progress.ok_or_else(|| PyValueError::new_err("no pass is open"))?;
        self.update.end_pass(&mut self.model);
        self.facts(py, progress.end())
    }

    /// What those who select have to know since the last call: ids and values of weights that have
    /// changed, names of features that are new, and lines that were visited with the statistics of
    /// the model's best and of y+ of each.
    fn changes<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.tell(py)
    }

    /// Adds features with a weight of zero.
    fn extend(&mut self, names: Vec<String>) -> PyResult<()> {
        let before = self.features.names.len();
        for name in &names {
            self.features.names.intern(name);
        }
        if self.features.names.len() != before + names.len() {
            return Err(PyValueError::new_err("a feature that is known already"));
        }
        self.features.complete();
        self.resize(&(0..before as u32).collect::<Vec<_>>())
    }

    /// Takes what `changes` of another learner told, apart from names.
    fn follow(
        &mut self,
        ids: PyReadonlyArray1<'_, u32>,
        values: PyReadonlyArray1<'_, f64>,
        lines: PyReadonlyArray1<'_, u32>,
        stats: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<()> {
        self.follow_changes(
            (ids.as_slice()?, values.as_slice()?),
            (lines.as_slice()?, stats.as_slice()?),
        )
    }

    /// Forgets the features from `known` on.
    fn forget(&mut self, known: usize) {
        self.features.truncate(known);
        self.model.truncate(known);
    }

    /// Statistics of what is chosen for every line, a row each, for gains in context; nothing
    /// before `set_context`.
    #[getter]
    fn context<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let context = self.gain.context();
        if context.is_empty() {
            return Ok(None);
        }
        let rows = PyArray1::from_slice(py, context);
        Ok(Some(rows.reshape([self.corpus.lines(), context.len() / self.corpus.lines()])?))
    }

    /// Takes the weights of a learner for which this one selects, and what its gains know.
    fn mirror(
        &mut self,
        weights: PyReadonlyArray1<'_, f64>,
        gain: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<()> {
        self.set_weights(weights)?;
        if !self.gain.restore(gain.as_slice()?) {
            return Err(PyValueError::new_err("the gains of another learner"));
        }
        Ok(())
    }

    /// The spaces with this learner's ids for their features; new ones get a weight of zero.
    fn take<'py>(&mut self, py: Python<'py>, spaces: Spaces<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.take_spaces(py, spaces)
    }

    /// Names of the features, if they were given.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.features.names.iter().map(str::to_owned).collect()
    }

    /// The number of weights.
    #[getter]
    fn size(&self) -> usize {
        self.model.weights().len()
    }

    /// Brings the features into the order of `names`, which have all of them and maybe new ones.
    fn adopt(&mut self, names: Vec<String>) -> PyResult<()> {
        self.rearrange(Features::new(&names))
    }

    /// A translator with the weights as they are now, and constants that nobody learns.
    fn translator(
        &mut self,
        decoder: &Decoder,
        settings: Vec<(String, f64)>,
        constants: Vec<(String, f64)>,
    ) -> PyResult<Translator> {
        self.features.tell(self.model.weights(), &constants);
        self.kept = Some(decoder.keep());
        decoder.with(Arc::clone(&self.features.weights), settings, true)
    }

    /// Bounds for every weight that there is now.
    fn bound(&mut self, lower: Vec<f64>, upper: Vec<f64>) -> PyResult<()> {
        let model = std::mem::replace(&mut self.model, Model::new(Vec::new()));
        self.model = bounded(model, lower, upper)?;
        self.update.weights_replaced();
        Ok(())
    }

    /// Statistics of what was chosen for every sentence, a row each, for gains in context.
    fn set_context(&mut self, chosen: PyReadonlyArray2<'_, f64>) -> PyResult<()> {
        if !self.gain.set_context(chosen.as_slice()?.to_vec()) {
            return Err(PyValueError::new_err("statistics of another corpus"));
        }
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

    /// Tells the update that all sentences were visited.
    fn end_epoch(&mut self) {
        self.update.end_epoch(&mut self.model);
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

fn bounded(model: Model, lower: Vec<f64>, upper: Vec<f64>) -> PyResult<Model> {
    let features = model.weights().len();
    if lower.len() != features || upper.len() != features {
        return Err(PyValueError::new_err("one lower and one upper bound per weight"));
    }
    if !lower.iter().zip(&upper).all(|(low, high)| low <= high) {
        return Err(PyValueError::new_err("a lower bound above its upper bound"));
    }
    Ok(model.bounded(lower, upper))
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
