//! Tasks of the learner that does not know them, its passes, and what it learnt.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use tunesmith_structured::{
    Fault, Method, Observed, Parser, Settings, Tagger, Task, Trainer, UNBOUNDED, Violation,
    Weights, predict, template_names,
};
use tunesmith_text::{Error, Watch};

use crate::error::py_err;
use crate::watch::watched;

mod task;

use task::{PythonInput, PythonTask};

/// Words, and tags if they are known.
type Tagging = (Vec<String>, Vec<String>);
/// Words, tags, and heads and labels if they are known.
type Tree = (Vec<String>, Vec<String>, Vec<u32>, Vec<String>);
/// Examples, wrong ones, updates, updates that are no violations, sum of violations.
type Seen = (u64, u64, u64, u64, f64);
type Array<'py, T> = Bound<'py, PyArray1<T>>;
type Arrays<'py> = (
    Array<'py, u8>,
    Array<'py, u64>,
    Array<'py, u32>,
    Array<'py, u32>,
    Bound<'py, PyArray2<f64>>,
    Array<'py, f64>,
);

enum Kind {
    Tagger(Arc<Tagger>),
    Parser(Arc<Parser>),
    Python(Arc<PythonTask>),
}

/// A task that the core knows, or one written in Python.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct StructuredTask {
    kind: Kind,
}

fn fault(fault: Fault) -> PyErr {
    let fault = match fault.downcast::<PyErr>() {
        Ok(error) => return *error,
        Err(other) => other,
    };
    match fault.downcast::<Error>() {
        Ok(error) => py_err(*error),
        Err(other) => PyRuntimeError::new_err(other.to_string()),
    }
}

fn width(beam: Option<usize>) -> usize {
    beam.unwrap_or(UNBOUNDED)
}

#[pymethods]
impl StructuredTask {
    #[staticmethod]
    fn tagger(tags: Vec<String>, templates: Vec<String>) -> PyResult<Self> {
        let tagger = Tagger::new(tags, &templates).map_err(py_err)?;
        Ok(StructuredTask { kind: Kind::Tagger(Arc::new(tagger)) })
    }

    #[staticmethod]
    fn parser(transitions: Vec<String>) -> PyResult<Self> {
        let parser = Parser::new(&transitions).map_err(py_err)?;
        Ok(StructuredTask { kind: Kind::Parser(Arc::new(parser)) })
    }

    /// An object with `start`, `is_end`, `actions`, `apply`, `features` and `is_gold`.
    #[staticmethod]
    fn python(task: Py<PyAny>) -> Self {
        StructuredTask { kind: Kind::Python(Arc::new(PythonTask::new(task))) }
    }

    /// A learner of examples; `beam=None` drops nothing, `voters=0` averages.
    #[pyo3(signature = (examples, *, beam, update, method, c, k, batch, voters, seed))]
    #[allow(clippy::too_many_arguments)] // by name only
    fn learner(
        &self,
        py: Python<'_>,
        examples: &Bound<'_, PyList>,
        beam: Option<usize>,
        update: &str,
        method: &str,
        c: f64,
        k: usize,
        batch: usize,
        voters: usize,
        seed: u64,
    ) -> PyResult<StructuredLearner> {
        let violation = Violation::named(update)
            .ok_or_else(|| PyValueError::new_err(format!("no update named {update}")))?;
        let method = match method {
            "perceptron" => Method::Perceptron,
            "mira" => Method::Mira { c },
            "kbest-mira" => Method::KBest { k, c },
            _ => return Err(PyValueError::new_err(format!("no learner named {method}"))),
        };
        if beam == Some(0) || batch == 0 || k == 0 {
            return Err(PyValueError::new_err("beam, batch and k are positive"));
        }
        let settings = Settings { beam: width(beam), violation, method, batch, voters };
        let inner: Box<dyn Running> = match &self.kind {
            Kind::Tagger(task) => {
                let inputs: Vec<Tagging> = examples.extract()?;
                let made: Result<Vec<_>, Error> =
                    inputs.into_iter().map(|(forms, tags)| task.sentence(forms, &tags)).collect();
                start(py, task, made.map_err(py_err)?, settings, seed)?
            }
            Kind::Parser(task) => {
                let inputs: Vec<Tree> = examples.extract()?;
                let made: Result<Vec<_>, Error> = inputs
                    .into_iter()
                    .map(|(forms, tags, heads, labels)| task.sentence(forms, tags, &heads, labels))
                    .collect();
                start(py, task, made.map_err(py_err)?, settings, seed)?
            }
            Kind::Python(task) => {
                let inputs: Vec<(Py<PyAny>, Py<PyAny>)> = examples.extract()?;
                let made = inputs.into_iter().map(|(given, wanted)| PythonInput { given, wanted });
                start(py, task, made.collect(), settings, seed)?
            }
        };
        Ok(StructuredLearner { inner })
    }

    /// Tags of each sentence; heads and labels of each; or the actions of each input.
    #[pyo3(signature = (weights, inputs, beam, threads=0, progress=None))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        weights: &StructuredWeights,
        inputs: &Bound<'py, PyList>,
        beam: Option<usize>,
        threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        if beam == Some(0) {
            return Err(PyValueError::new_err("the beam is positive"));
        }
        let (weights, beam) = (&weights.inner, width(beam));
        match &self.kind {
            Kind::Tagger(task) => {
                let given: Vec<Vec<String>> = inputs.extract()?;
                let made: Result<Vec<_>, Error> =
                    given.into_iter().map(|forms| task.sentence(forms, &[])).collect();
                let mut made = made.map_err(py_err)?;
                let found = search(py, &**task, weights, &mut made, beam, threads, progress)?;
                let tags = found.iter().map(|actions| {
                    actions.iter().map(|&action| task.tag(action)).collect::<Vec<_>>()
                });
                PyList::new(py, tags.collect::<Vec<_>>())
            }
            Kind::Parser(task) => {
                let given: Vec<(Vec<String>, Vec<String>)> = inputs.extract()?;
                let lengths: Vec<usize> = given.iter().map(|(forms, _)| forms.len()).collect();
                let made: Result<Vec<_>, Error> = given
                    .into_iter()
                    .map(|(forms, tags)| task.sentence(forms, tags, &[], Vec::new()))
                    .collect();
                let mut made = made.map_err(py_err)?;
                let found = search(py, &**task, weights, &mut made, beam, threads, progress)?;
                let trees =
                    lengths.iter().zip(&found).map(|(&length, actions)| task.tree(length, actions));
                PyList::new(py, trees.collect::<Vec<_>>())
            }
            Kind::Python(task) => {
                let given: Vec<Py<PyAny>> = inputs.extract()?;
                let mut made: Vec<PythonInput> = given
                    .into_iter()
                    .map(|given| PythonInput { given, wanted: py.None() })
                    .collect();
                let found = search(py, &**task, weights, &mut made, beam, threads, progress)?;
                let all: PyResult<Vec<_>> = made
                    .iter()
                    .zip(found)
                    .map(|(input, actions)| task.replay(py, input, &actions).map_err(fault))
                    .collect();
                PyList::new(py, all?)
            }
        }
    }
}

fn start<T: Task + Entered + 'static>(
    py: Python<'_>,
    task: &Arc<T>,
    inputs: Vec<T::Input>,
    settings: Settings,
    seed: u64,
) -> PyResult<Box<dyn Running>>
where
    T::Input: 'static,
    T::State: 'static,
{
    let made = py.detach(|| T::entered(|| Trainer::new(Arc::clone(task), inputs, settings, seed)));
    Ok(Box::new(made.map_err(fault)?))
}

fn search<T: Task + Entered>(
    py: Python<'_>,
    task: &T,
    weights: &Weights,
    inputs: &mut [T::Input],
    beam: usize,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Vec<u32>>> {
    let watch = Watch::default();
    let threads = if T::ALONE { 1 } else { threads };
    let found = watched(py, &watch, progress, threads, || {
        T::entered(|| predict(task, weights, inputs, beam, &watch))
    })?;
    found.map_err(fault)
}

/// How long work with a task is entered.
trait Entered {
    /// Whether one thread does all of it.
    const ALONE: bool = false;

    fn entered<R>(work: impl FnOnce() -> R) -> R {
        work()
    }
}

impl Entered for Tagger {}
impl Entered for Parser {}

/// Taking the interpreter lock once for all calls is many times faster than for each of them; what
/// runs in Python lets other threads have it now and then.
impl Entered for PythonTask {
    const ALONE: bool = true;

    fn entered<R>(work: impl FnOnce() -> R) -> R {
        Python::attach(|_| work())
    }
}

/// A trainer of any task.
trait Running: Send + Sync {
    fn pass(&mut self, epoch: u64, shards: usize, watch: &Watch) -> Result<Observed, Fault>;
    fn threads(&self, wanted: usize) -> usize;
    fn weights(&self) -> Weights;
    fn skipped(&self) -> (usize, usize);
    fn derivations(&self) -> Vec<f64>;
}

impl<T: Task + Entered> Running for Trainer<T> {
    fn pass(&mut self, epoch: u64, shards: usize, watch: &Watch) -> Result<Observed, Fault> {
        T::entered(|| match shards {
            0 => Trainer::pass(self, epoch, watch),
            _ => self.mixed_pass(shards, epoch, watch),
        })
    }

    fn threads(&self, wanted: usize) -> usize {
        if T::ALONE { 1 } else { wanted }
    }

    fn weights(&self) -> Weights {
        self.learner.weights()
    }

    fn skipped(&self) -> (usize, usize) {
        self.skipped
    }

    fn derivations(&self) -> Vec<f64> {
        self.examples().iter().map(|example| example.gold.derivations()).collect()
    }
}

/// Examples, and the weights that are learnt from them.
#[pyclass(module = "tunesmith._core")]
pub struct StructuredLearner {
    inner: Box<dyn Running>,
}

#[pymethods]
impl StructuredLearner {
    /// Passes over all examples: alone, or with so many learners that are then mixed.
    #[pyo3(signature = (epoch, shards=0, threads=0, progress=None))]
    fn run_pass(
        &mut self,
        py: Python<'_>,
        epoch: u64,
        shards: usize,
        threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Seen> {
        let watch = Watch::default();
        let threads = self.inner.threads(threads);
        let inner = &mut self.inner;
        let seen = watched(py, &watch, progress, threads, || inner.pass(epoch, shards, &watch))?;
        let seen = seen.map_err(fault)?;
        Ok((seen.examples, seen.wrong, seen.updates, seen.invalid, seen.violation))
    }

    fn weights(&self, py: Python<'_>) -> StructuredWeights {
        StructuredWeights { inner: py.detach(|| self.inner.weights()) }
    }

    /// Examples without any gold derivation, and those with too many.
    #[getter]
    fn skipped(&self) -> (usize, usize) {
        self.inner.skipped()
    }

    /// How many gold derivations each of the other examples has.
    #[getter]
    fn derivations(&self) -> Vec<f64> {
        self.inner.derivations()
    }
}

/// Features and their weights, of one vector or of several that vote.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct StructuredWeights {
    inner: Weights,
}

#[pymethods]
impl StructuredWeights {
    /// Refuses arrays that `arrays` cannot have returned.
    #[staticmethod]
    fn load(
        letters: PyReadonlyArray1<'_, u8>,
        ends: PyReadonlyArray1<'_, u64>,
        contexts: PyReadonlyArray1<'_, u32>,
        actions: PyReadonlyArray1<'_, u32>,
        weights: PyReadonlyArray2<'_, f64>,
        votes: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Self> {
        let voters = weights.as_array().rows().into_iter().map(|row| row.to_vec()).collect();
        let inner = Weights::new(
            letters.as_slice()?,
            ends.as_slice()?,
            contexts.as_slice()?,
            actions.as_slice()?,
            voters,
            votes.as_slice()?.to_vec(),
        );
        Ok(StructuredWeights { inner: inner.map_err(py_err)? })
    }

    /// The letters of all contexts, where each ends, context and action of each feature, weights
    /// by voter, votes.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Arrays<'py>> {
        let Weights { features, voters, votes } = &self.inner;
        let mut letters = Vec::new();
        let mut ends = Vec::new();
        for name in features.names().iter() {
            letters.extend_from_slice(name.as_bytes());
            ends.push(letters.len() as u64);
        }
        let owners = (0..features.len() as u32).map(|id| features.owner(id));
        let (contexts, actions): (Vec<u32>, Vec<u32>) = owners.unzip();
        Ok((
            letters.into_pyarray(py),
            ends.into_pyarray(py),
            contexts.into_pyarray(py),
            actions.into_pyarray(py),
            voters.concat().into_pyarray(py).reshape([voters.len(), features.len()])?,
            PyArray1::from_slice(py, votes),
        ))
    }

    fn __len__(&self) -> usize {
        self.inner.features.len()
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("TAGGER_TEMPLATES", template_names())?;
    module.add_class::<StructuredTask>()?;
    module.add_class::<StructuredLearner>()?;
    module.add_class::<StructuredWeights>()?;
    Ok(())
}
