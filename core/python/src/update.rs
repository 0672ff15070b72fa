//! `Update`: the native rules, and those written in Python.

use std::sync::{Arc, Mutex};

use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tunesmith_solve::update::{
    Arow, CuttingPlane, Gradient, Hildreth, PassiveAggressive, Perceptron, Rate, Shrink, When,
};
use tunesmith_solve::{Fault, Loss, Model, Rows, Separate, Stepped, Update as CoreUpdate};

use crate::select::Selector;

type Make = dyn Fn(usize) -> Box<dyn CoreUpdate> + Send + Sync;

/// An update rule that has not met its features yet.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct Update {
    make: Arc<Make>,
}

impl Update {
    fn new(make: impl Fn(usize) -> Box<dyn CoreUpdate> + Send + Sync + 'static) -> Self {
        Update { make: Arc::new(make) }
    }

    /// The rule with fresh state for a number of features.
    pub fn start(&self, features: usize) -> Box<dyn CoreUpdate> {
        (self.make)(features)
    }
}

pub fn loss_of(name: &str) -> PyResult<Loss> {
    match name {
        "hinge" => Ok(Loss::Hinge),
        "logistic" => Ok(Loss::Logistic),
        "softmax" => Ok(Loss::Softmax),
        "linear" => Ok(Loss::Linear),
        _ => Err(PyValueError::new_err(format!(
            "no loss named {name} (hinge, logistic, softmax, linear)"
        ))),
    }
}

#[pymethods]
impl Update {
    /// Whether one process can choose the constraints that a selector makes, and another one take
    /// the step.
    fn splits(&self, selector: &Selector) -> bool {
        self.start(0).asks(selector.inner.rounds()).is_some()
    }

    /// The half of the rule that stays where constraints are chosen: it takes no step.
    fn selecting(&self) -> Self {
        let make = Arc::clone(&self.make);
        Update::new(move |_| Box::new(Selecting(make(0))))
    }

    #[staticmethod]
    fn passive_aggressive(c: f64, rate: f64, scale_by_oracle: bool) -> Self {
        Update::new(move |_| Box::new(PassiveAggressive::new(c, rate, scale_by_oracle)))
    }

    #[staticmethod]
    fn hildreth(c: f64, rate: f64, scale_by_oracle: bool, tolerance: f64, sweeps: usize) -> Self {
        Update::new(move |_| Box::new(Hildreth { c, rate, scale_by_oracle, tolerance, sweeps }))
    }

    #[staticmethod]
    fn cutting_plane(
        c: f64,
        epsilon: f64,
        epsilon_bound: f64,
        moves: usize,
        planes: usize,
    ) -> Self {
        Update::new(move |_| Box::new(CuttingPlane { c, epsilon, epsilon_bound, moves, planes }))
    }

    #[staticmethod]
    #[pyo3(signature = (rate, mean=false, when="wrong"))]
    fn perceptron(rate: f64, mean: bool, when: &str) -> PyResult<Self> {
        let when = match when {
            "wrong" => When::Wrong,
            "loss" => When::Loss,
            "always" => When::Always,
            _ => return Err(PyValueError::new_err("when is wrong, loss or always")),
        };
        Ok(Update::new(move |_| {
            let mut rule = Perceptron::new(rate);
            (rule.mean, rule.when) = (mean, when);
            Box::new(rule)
        }))
    }

    #[staticmethod]
    fn arow(r: f64, rate: f64, variance: f64, linear: bool) -> Self {
        Update::new(move |features| Box::new(Arow::new(r, rate, variance, linear, features)))
    }

    #[staticmethod]
    #[pyo3(signature = (loss, rate, eta, l1, l2, anchor=Vec::new(), *, shrink="exact"))]
    #[allow(clippy::too_many_arguments)]
    fn gradient(
        loss: &str,
        rate: &str,
        eta: f64,
        l1: f64,
        l2: f64,
        anchor: Vec<f64>,
        shrink: &str,
    ) -> PyResult<Self> {
        let loss = loss_of(loss)?;
        let rate = match rate {
            "constant" => Rate::Constant,
            "decreasing" => Rate::Decreasing,
            "adagrad" => Rate::AdaGrad,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "no rate named {rate} (constant, decreasing, adagrad)"
                )));
            }
        };
        // A pair and its mirror image are two examples for Phrasal.
        let (shrink, times) = match shrink {
            "exact" => (Shrink::Exact, 1.0),
            "phrasal" => (Shrink::Late, 2.0),
            "touched" => (Shrink::Touched, 2.0),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "no way to shrink named {shrink} (exact, phrasal, touched)"
                )));
            }
        };
        Ok(Update::new(move |features| {
            let mut update = Gradient::new(loss, rate, eta, l1, l2, features);
            (update.shrink, update.times) = (shrink, times);
            Box::new(update.anchored(anchor.clone()))
        }))
    }

    /// An object with `init(features) -> state` and
    /// `step(w, state, separate) -> (w, state)`, arrays all.
    #[staticmethod]
    fn python(rule: Py<PyAny>) -> Self {
        let rule = Arc::new(rule);
        Update::new(move |features| {
            Box::new(PythonUpdate { rule: Arc::clone(&rule), state: None, features })
        })
    }
}

/// A rule that says which constraints it wants and does nothing with them.
struct Selecting(Box<dyn CoreUpdate>);

impl CoreUpdate for Selecting {
    fn step(&mut self, _model: &mut Model, _batch: &mut dyn Separate) -> Result<Stepped, Fault> {
        Err("a learner that selects for another one takes no steps".into())
    }

    fn asks(&self, rounds: usize) -> Option<usize> {
        self.0.asks(rounds)
    }

    fn is_scaled(&self) -> bool {
        self.0.is_scaled()
    }

    fn slow_down(&mut self, _factor: f64) {}
}

/// An update rule written in Python.
struct PythonUpdate {
    rule: Arc<Py<PyAny>>,
    state: Option<Vec<f64>>,
    features: usize,
}

/// The `separate(w, round=0)` of one step. It points into the step's stack frame and is emptied
/// before the step returns.
#[pyclass(frozen, module = "tunesmith._core")]
struct Separator {
    batch: Mutex<Option<Borrowed>>,
}

struct Borrowed {
    batch: *mut (dyn Separate + 'static),
    model: Model,
    violated: u64,
    loss: f64,
}

// SAFETY: the pointer is only followed under the mutex while the step that lent it waits.
unsafe impl Send for Borrowed {}

#[pymethods]
impl Separator {
    #[pyo3(signature = (w, round=0))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        w: PyReadonlyArray1<'_, f64>,
        round: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        // Waiting here, with the interpreter held, would be for ever if the holder waits for it.
        let mut guard = self.batch.try_lock().map_err(|_| {
            PyRuntimeError::new_err("separate is being called already: call it once at a time")
        })?;
        let Some(borrowed) = guard.as_mut() else {
            return Err(PyRuntimeError::new_err("separate was called after its step had ended"));
        };
        if w.as_slice()?.len() != borrowed.model.weights().len() {
            return Err(PyValueError::new_err("weights of another length"));
        }
        for (id, &weight) in w.as_slice()?.iter().enumerate() {
            if weight != borrowed.model.weight(id as u32) {
                borrowed.model.set(id as u32, weight);
            }
        }
        let mut rows = Rows::default();
        // SAFETY: `step` keeps the batch borrowed mutably, and does nothing else with it, until it
        // has taken this pointer back.
        let batch = unsafe { &mut *borrowed.batch };
        if round < batch.rounds() {
            batch.separate(&borrowed.model, round, &mut rows).map_err(fault)?;
        }
        for row in 0..rows.len() {
            let violation = rows.violation(row, &borrowed.model);
            if violation > 0.0 {
                borrowed.violated += 1;
                borrowed.loss += violation;
            }
        }
        rows_dict(py, &rows)
    }
}

/// Rows as arrays: `starts`, `ids`, `values` (CSR), `gains`, `offsets`, `groups`.
pub fn rows_dict<'py>(py: Python<'py>, rows: &Rows) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let starts: Vec<i64> = rows.starts().into_iter().map(|start| start as i64).collect();
    dict.set_item("starts", starts.into_pyarray(py))?;
    dict.set_item("ids", PyArray1::from_slice(py, &rows.ids))?;
    dict.set_item("values", PyArray1::from_slice(py, &rows.values))?;
    dict.set_item("gains", PyArray1::from_slice(py, &rows.gains))?;
    dict.set_item("offsets", PyArray1::from_slice(py, &rows.offsets))?;
    dict.set_item("groups", PyArray1::from_slice(py, &rows.groups))?;
    Ok(dict)
}

/// A fault as the Python exception it was, or as a runtime error.
pub fn fault(fault: Fault) -> PyErr {
    match fault.downcast::<PyErr>() {
        Ok(error) => *error,
        Err(other) => PyRuntimeError::new_err(other.to_string()),
    }
}

impl CoreUpdate for PythonUpdate {
    /// A rule written in Python has its own idea of time.
    fn slow_down(&mut self, _factor: f64) {}

    fn step(&mut self, model: &mut Model, batch: &mut dyn Separate) -> Result<Stepped, Fault> {
        let (weights, state, stepped) = Python::attach(|py| -> PyResult<_> {
            let rule = self.rule.bind(py);
            let state = match &self.state {
                Some(state) => PyArray1::from_slice(py, state),
                None => rule.call_method1("init", (self.features,))?.extract()?,
            };
            let pointer: *mut (dyn Separate + '_) = batch;
            // SAFETY: only the lifetime is widened; the pointer is taken back below, before the
            // borrow it came from ends.
            let pointer: *mut (dyn Separate + 'static) = unsafe { std::mem::transmute(pointer) };
            let borrowed =
                Borrowed { batch: pointer, model: model.clone(), violated: 0, loss: 0.0 };
            let separator = Bound::new(py, Separator { batch: Mutex::new(Some(borrowed)) })?;
            let w = PyArray1::from_slice(py, model.weights());
            let answer = rule.call_method1("step", (w, state, &separator));
            // A thread that the rule has started may still be at work with the batch, and may have
            // to have the interpreter to end.
            let held = separator.get();
            let spent = py.detach(|| match held.batch.lock() {
                Ok(mut guard) => guard.take(),
                Err(poisoned) => poisoned.into_inner().take(),
            });
            let stepped = spent.map_or_else(Stepped::default, |borrowed| Stepped {
                updates: borrowed.violated,
                loss: borrowed.loss,
            });
            let (w, state): (Bound<'_, PyArray1<f64>>, Bound<'_, PyArray1<f64>>) =
                answer?.extract()?;
            Ok((w.to_vec()?, state.to_vec()?, stepped))
        })?;
        if weights.len() != model.weights().len() || weights.iter().any(|w| !w.is_finite()) {
            return Err("the update returned weights of another length, or not finite".into());
        }
        for (id, weight) in weights.into_iter().enumerate() {
            if weight != model.weight(id as u32) {
                model.set(id as u32, weight);
            }
        }
        self.state = Some(state);
        Ok(stepped)
    }

    /// The rule's own `rearrange(state, places, features) -> state`, once it has state.
    fn rearrange(&mut self, places: &[u32], features: usize) -> Result<(), Fault> {
        self.features = features;
        let Some(state) = self.state.take().filter(|state| !state.is_empty()) else {
            return Ok(());
        };
        let moved = Python::attach(|py| -> PyResult<Vec<f64>> {
            let rule = self.rule.bind(py);
            if !rule.hasattr("rearrange")? {
                return Err(PyValueError::new_err(
                    "the update keeps state, but has no rearrange(state, places, features) for \
                     features that are new (write one, or tune on saved lists)",
                ));
            }
            let state = PyArray1::from_slice(py, &state);
            let places = PyArray1::from_slice(py, places);
            let moved = rule.call_method1("rearrange", (state, places, features))?;
            Ok(moved.extract::<Bound<'_, PyArray1<f64>>>()?.to_vec()?)
        })?;
        self.state = Some(moved);
        Ok(())
    }

    fn state(&self) -> Vec<f64> {
        self.state.clone().unwrap_or_default()
    }

    fn restore(&mut self, state: &[f64]) -> bool {
        self.state = (!state.is_empty()).then(|| state.to_vec());
        true
    }
}
