//! Tasks written in Python.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString};
use tunesmith_structured::{Contexts, Fault, Task};
use tunesmith_text::Error;

use crate::error::Failure;

pub struct PythonTask {
    object: Py<PyAny>,
    /// What comparing states raised, where no error can be returned.
    failure: Arc<Failure>,
}

/// What a task is given, and the output that is wanted in training.
pub struct PythonInput {
    pub given: Py<PyAny>,
    pub wanted: Py<PyAny>,
}

/// A hashable Python object, with its actions as soon as they were asked for.
#[derive(Clone)]
pub struct PythonState(Arc<Inner>);

struct Inner {
    object: Py<PyAny>,
    hash: isize,
    actions: OnceLock<Vec<Py<PyAny>>>,
    failure: Arc<Failure>,
}

impl PartialEq for PythonState {
    fn eq(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.0, &other.0) {
            return true;
        }
        self.0.hash == other.0.hash
            && Python::attach(|py| self.0.object.bind(py).eq(&other.0.object)).unwrap_or_else(
                |error| {
                    self.0.failure.keep(error);
                    false
                },
            )
    }
}

impl Eq for PythonState {}

impl Hash for PythonState {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.hash.hash(hasher);
    }
}

impl PythonTask {
    pub fn new(object: Py<PyAny>) -> Self {
        PythonTask { object, failure: Arc::default() }
    }

    fn state(&self, object: Bound<'_, PyAny>) -> Result<PythonState, Fault> {
        let hash = object.hash()?;
        let (actions, failure) = (OnceLock::new(), Arc::clone(&self.failure));
        Ok(PythonState(Arc::new(Inner { object: object.unbind(), hash, actions, failure })))
    }

    fn listed<'a>(
        &self,
        py: Python<'_>,
        input: &PythonInput,
        state: &'a PythonState,
    ) -> Result<&'a [Py<PyAny>], Fault> {
        self.failure.take()?;
        if let Some(actions) = state.0.actions.get() {
            return Ok(actions);
        }
        let arguments = (&input.given, &state.0.object);
        let returned = self.object.bind(py).call_method1("actions", arguments)?;
        let actions: PyResult<Vec<Py<PyAny>>> =
            returned.try_iter()?.map(|each| each.map(Bound::unbind)).collect();
        let actions = actions?;
        Ok(state.0.actions.get_or_init(|| actions))
    }

    /// The action behind a number. An equal state may have been listed in place of this one.
    fn action<'a>(
        &self,
        py: Python<'_>,
        input: &PythonInput,
        state: &'a PythonState,
        action: u32,
    ) -> Result<&'a Py<PyAny>, Fault> {
        let listed = self.listed(py, input, state)?.get(action as usize);
        let error = || Error::new("actions returned fewer actions for an equal state");
        listed.ok_or_else(|| error().remedy("put into a state what actions depend on").into())
    }

    /// The actions behind their numbers.
    pub fn replay(
        &self,
        py: Python<'_>,
        input: &PythonInput,
        actions: &[u32],
    ) -> Result<Vec<Py<PyAny>>, Fault> {
        let mut state = self.start(input)?;
        let mut found = Vec::with_capacity(actions.len());
        for &action in actions {
            found.push(self.action(py, input, &state, action)?.clone_ref(py));
            state = self.apply(input, &state, action)?;
        }
        Ok(found)
    }
}

impl Task for PythonTask {
    type Input = PythonInput;
    type State = PythonState;
    type View = PythonState;

    fn view(&self, state: &PythonState) -> PythonState {
        state.clone()
    }

    fn start(&self, input: &PythonInput) -> Result<PythonState, Fault> {
        Python::attach(|py| {
            self.state(self.object.bind(py).call_method1("start", (&input.given,))?)
        })
    }

    fn is_end(&self, input: &PythonInput, state: &PythonState) -> Result<bool, Fault> {
        Python::attach(|py| {
            let arguments = (&input.given, &state.0.object);
            Ok(self.object.bind(py).call_method1("is_end", arguments)?.is_truthy()?)
        })
    }

    fn actions(
        &self,
        input: &PythonInput,
        state: &PythonState,
        out: &mut Vec<u32>,
    ) -> Result<(), Fault> {
        let count = Python::attach(|py| self.listed(py, input, state).map(<[_]>::len))?;
        out.extend(0..count as u32);
        Ok(())
    }

    fn apply(
        &self,
        input: &PythonInput,
        state: &PythonState,
        action: u32,
    ) -> Result<PythonState, Fault> {
        Python::attach(|py| {
            let arguments = (&input.given, &state.0.object, self.action(py, input, state, action)?);
            self.state(self.object.bind(py).call_method1("apply", arguments)?)
        })
    }

    fn features(
        &self,
        input: &PythonInput,
        state: &PythonState,
        action: u32,
        out: &mut Contexts<'_>,
    ) -> Result<(), Fault> {
        Python::attach(|py| {
            let arguments = (&input.given, &state.0.object, self.action(py, input, state, action)?);
            let named = self.object.bind(py).call_method1("features", arguments)?;
            if named.is_instance_of::<PyString>() {
                let message = "features returned a string, not several names or a mapping";
                return Err(PyTypeError::new_err(message).into());
            }
            if let Ok(mapping) = named.cast::<PyMapping>() {
                for pair in mapping.items()? {
                    let (name, value): (Bound<'_, PyString>, f64) = pair.extract()?;
                    out.add_valued(&[name.to_cow()?.as_ref()], value);
                }
                return Ok(());
            }
            for name in named.try_iter()? {
                let name: Bound<'_, PyString> = name?.extract().map_err(PyErr::from)?;
                out.add(&[name.to_cow()?.as_ref()]);
            }
            Ok(())
        })
    }

    fn has_features(&self) -> bool {
        true
    }

    fn is_gold(
        &self,
        input: &PythonInput,
        state: &PythonState,
        action: u32,
    ) -> Result<bool, Fault> {
        Python::attach(|py| {
            let action = self.action(py, input, state, action)?;
            let arguments = (&input.given, &input.wanted, &state.0.object, action);
            Ok(self.object.bind(py).call_method1("is_gold", arguments)?.is_truthy()?)
        })
    }
}
