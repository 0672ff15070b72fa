//! `Learner`: passes over lists or forests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tunesmith_solve::{
    Chosen, Corpus as CoreCorpus, Gain, GainKind, GainScale, Model, Observed, Part, PartCorpus,
    Pass, Progress, Rows, Selector as CoreSelector, Update as CoreUpdate,
};
use tunesmith_space::{Forests as CoreForests, PoolsBuilder};

use crate::corpus::{Corpus, Spaces, Statistics};
use crate::decoder::{Decoder, Keeping, Translator};
use crate::following::Features;
use crate::forest::Forests;
use crate::metric::Metric;
use crate::pools::{Parts, Pools};
use crate::select::Selector;
use crate::selected::Selected;
use crate::update::{Update, fault};

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

/// What those who select for a learner know of it.
#[derive(Default)]
struct Told {
    weights: Vec<f64>,
    /// Lines that were visited since, and the statistics of the model's best and of y+ of each.
    lines: Vec<u32>,
    stats: Vec<f64>,
}

impl Learner {
    /// Gives the features the ids that they have in `names`, whose others are new.
    fn rearrange(&mut self, names: Features) -> PyResult<()> {
        let own = std::mem::replace(&mut self.features, names);
        let place = |name: &str| {
            let id = self.features.names.id(name);
            id.ok_or_else(|| PyValueError::new_err(format!("the feature {name} is missing")))
        };
        let places: Vec<u32> = own.names.iter().map(place).collect::<PyResult<_>>()?;
        self.features.weights = own.weights;
        for (&place, &told) in places.iter().zip(&own.told) {
            self.features.told[place as usize] = told;
        }
        self.resize(&places)
    }

    /// As many weights as there are names; those there were go to `places`.
    fn resize(&mut self, places: &[u32]) -> PyResult<()> {
        let features = self.features.names.len();
        self.model.rearrange(places, features);
        self.update.rearrange(places, features).map_err(fault)
    }

    fn pass<'py>(
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

    fn facts<'py>(&self, py: Python<'py>, observed: Observed) -> PyResult<Bound<'py, PyDict>> {
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
    fn part(
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
    fn choose(
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

    fn over<'a>(
        &'a self,
        corpus: &'a dyn CoreCorpus,
        order: &'a [u32],
        batch: usize,
        epoch: u64,
    ) -> Pass<'a> {
        Pass { corpus, selector: self.selector.as_ref(), order, batch, seed: self.seed, epoch }
    }
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
        let before = self.features.names.len();
        for part in in_order(&parts, lines.as_slice()?)? {
            for name in &part.names {
                self.features.names.intern(name);
            }
        }
        self.features.complete();
        if self.features.names.len() > before {
            self.resize(&(0..before as u32).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// The second half of a step: moves the weights by what was selected for `lines`, in their
    /// order, after `meet`.
    fn apply(
        &mut self,
        py: Python<'_>,
        parts: Vec<Bound<'_, Selected>>,
        lines: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<()> {
        let lines = lines.as_slice()?;
        in_order(&parts, lines)?;
        let features = self.model.weights().len();
        let mut ids: Vec<Vec<u32>> = Vec::new();
        for part in parts.iter().map(Bound::get) {
            let id = |name: &String| self.features.names.id(name);
            let own: Option<Vec<u32>> = part.names.iter().map(id).collect();
            let own = own.ok_or_else(|| PyValueError::new_err("features that were not met"))?;
            let limit = part.known + own.len();
            let bad = |rows: &Rows| rows.ids.iter().any(|&id| id as usize >= limit);
            if part.known > features || part.chosen().rounds.iter().any(bad) {
                return Err(PyValueError::new_err("constraints on features of another learner"));
            }
            ids.push(own);
        }
        let mut progress =
            self.progress.take().ok_or_else(|| PyValueError::new_err("no pass is open"))?;
        let chosen: Vec<_> = parts.iter().map(|part| part.get().chosen()).collect();
        let joined: Vec<Part<'_>> = parts
            .iter()
            .zip(&chosen)
            .zip(&ids)
            .map(|((part, chosen), ids)| Part { chosen, known: part.get().known, ids })
            .collect();
        let mut whole = Chosen::joined(&joined, lines);
        if !whole.notes.is_empty() {
            if self.gain.is_wide() {
                for (note, rows) in whole.seen().filter(|(note, _)| note.whole) {
                    self.told.lines.push(note.line);
                    self.told.stats.extend(rows[..2].iter().copied().flatten());
                }
            }
            py.detach(|| {
                let update = self.update.as_mut();
                progress.apply(&mut whole, &mut self.model, &mut self.gain, update)
            })
            .map_err(fault)?;
        }
        self.progress = Some(progress);
        Ok(())
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
        let weights = self.model.weights();
        let known = self.told.weights.len();
        self.told.weights.resize(weights.len(), 0.0);
        let (mut ids, mut values) = (Vec::new(), Vec::new());
        for (id, (told, &weight)) in self.told.weights.iter_mut().zip(weights).enumerate() {
            if told.to_bits() != weight.to_bits() {
                *told = weight;
                ids.push(id as u32);
                values.push(weight);
            }
        }
        let names: Vec<&str> = self.features.names.iter().skip(known).collect();
        let dict = PyDict::new(py);
        dict.set_item("names", names)?;
        dict.set_item("ids", ids.into_pyarray(py))?;
        dict.set_item("values", values.into_pyarray(py))?;
        dict.set_item("lines", std::mem::take(&mut self.told.lines).into_pyarray(py))?;
        dict.set_item("stats", std::mem::take(&mut self.told.stats).into_pyarray(py))?;
        Ok(dict)
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
        let (ids, values) = (ids.as_slice()?, values.as_slice()?);
        let (lines, stats) = (lines.as_slice()?, stats.as_slice()?);
        let width = self.metric.get().inner().width();
        let features = self.model.weights().len();
        if ids.len() != values.len()
            || ids.iter().any(|&id| id as usize >= features)
            || stats.len() != 2 * width * lines.len()
            || lines.iter().any(|&line| line as usize >= self.corpus.lines())
        {
            return Err(PyValueError::new_err("changes of another learner"));
        }
        ids.iter().zip(values).for_each(|(&id, &value)| self.model.set(id, value));
        for (&line, rows) in lines.iter().zip(stats.chunks_exact(2 * width)) {
            self.gain.observe(line as usize, &rows[..width], &rows[width..]);
        }
        Ok(())
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
        let before = self.features.names.len();
        let names = &mut self.features.names;
        let taken = match spaces {
            Spaces::Lists(pools) => {
                let pools = pools.get();
                let taken = py.detach(|| match &*pools.parts() {
                    Some(Parts { dense, lists }) => {
                        for name in dense {
                            names.intern(name);
                        }
                        PoolsBuilder::joined(lists, names)
                    }
                    None => pools.inner().renamed(names),
                });
                Bound::new(py, Pools::new(taken))?.into_any()
            }
            Spaces::Forests(forests) => {
                let CoreForests { forests, names: own } = &*forests.get().inner;
                let map: Vec<u32> = own.iter().map(|name| names.intern(name)).collect();
                let mut taken = CoreForests { forests: forests.clone(), ..Default::default() };
                py.detach(|| taken.forests.iter_mut().for_each(|forest| forest.rename(&map)));
                Bound::new(py, Forests::new(taken))?.into_any()
            }
        };
        self.features.complete();
        if self.features.names.len() > before {
            self.resize(&(0..before as u32).collect::<Vec<_>>())?;
        }
        Ok(taken)
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

/// The part of each line; an error unless the parts have each line once.
fn in_order<'a>(parts: &'a [Bound<'_, Selected>], lines: &[u32]) -> PyResult<Vec<&'a Selected>> {
    let wrong = || PyValueError::new_err("a line was selected twice, or not at all");
    let mut own: HashMap<u32, &Selected> = HashMap::new();
    for part in parts.iter().map(Bound::get) {
        for &line in &part.lines {
            if own.insert(line, part).is_some() {
                return Err(wrong());
            }
        }
    }
    if own.len() != lines.len() {
        return Err(wrong());
    }
    lines.iter().map(|line| own.get(line).copied().ok_or_else(wrong)).collect()
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

fn gain_kind(gain: &str, decay: f64, history: &str, follow: bool) -> PyResult<GainKind> {
    Ok(match gain {
        "sentence" => GainKind::Sentence,
        "background" => {
            let oracle = match history {
                "1best" => false,
                "oracle" => true,
                _ => return Err(PyValueError::new_err("history is 1best or oracle")),
            };
            GainKind::Background { decay, oracle }
        }
        "context" => GainKind::Context { follow },
        _ => return Err(PyValueError::new_err("gain is sentence, background or context")),
    })
}

fn gain_of(
    corpus: &dyn CoreCorpus,
    metric: &Bound<'_, Metric>,
    weights: &[f64],
    kind: GainKind,
    scale: &str,
    lengths: Option<Vec<f64>>,
) -> PyResult<Gain> {
    let scale = match scale {
        "one" => GainScale::One,
        "length" => GainScale::Length,
        "background" => GainScale::Background,
        _ => return Err(PyValueError::new_err("gain_scale is one, length or background")),
    };
    let mut first = Vec::new();
    let mut words = vec![0.0; corpus.lines()];
    for (line, words) in words.iter_mut().enumerate() {
        let last = corpus.of_line(line).last();
        if let Some((row, count)) = last.and_then(|space| corpus.first(space, weights)) {
            first.extend(row);
            *words = count as f64;
        }
    }
    let lengths = match lengths {
        Some(lengths) if lengths.len() == corpus.lines() => lengths,
        Some(_) => return Err(PyValueError::new_err("one length per line")),
        None => words,
    };
    Ok(Gain::new(metric.get().inner(), kind, scale, lengths, &first))
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
