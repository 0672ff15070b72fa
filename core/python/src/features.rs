//! Sparse features: templates by name, and those written in Python.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, RwLock};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use tunesmith_align::Link;
use tunesmith_rules::Symbol;
use tunesmith_search::Spelling;
use tunesmith_search::features::templates::{self, Resources, SETS, TEMPLATES};
use tunesmith_search::features::{Collected, Extras, OnRule, Rule, Sink, WrittenRule};

use crate::error::{Failure, py_err};

/// Features of rules, calculated by the method `find` of a Python object, once for each rule.
struct InPython {
    object: Py<PyAny>,
    own: Own,
    known: RwLock<HashMap<u64, Arc<[Found]>>>,
}

/// What all features that are written in Python share.
#[derive(Clone, Default)]
pub struct Own {
    /// Where their first error is kept.
    pub failure: Arc<Failure>,
    reserved: Arc<OnceLock<HashSet<String>>>,
}

impl Own {
    /// Keeps the names that the model's own features have from others.
    pub fn reserve<'n>(&self, names: impl IntoIterator<Item = &'n str>) {
        self.reserved.get_or_init(|| names.into_iter().map(str::to_owned).collect());
    }
}

type Found = (Spelling, f32);

impl InPython {
    fn ask(&self, rule: &Rule<'_>) -> PyResult<Arc<[Found]>> {
        let source = symbols(rule.source, |word| rule.words.source(word).plain());
        let target = symbols(rule.target, |word| rule.words.target(word).plain());
        Python::attach(|py| {
            let arguments = (source, target, rule.links.to_vec(), rule.scores.to_vec());
            let found = self.object.bind(py).call_method1("find", arguments)?;
            let found = found.cast::<PyDict>().map_err(|_| {
                PyTypeError::new_err("find must return a dict of names and numbers")
            })?;
            found.iter().map(|(name, value)| self.own.checked(&name, &value)).collect()
        })
    }

    /// What `find` says, which may depend on all that it is told.
    fn found(&self, rule: &Rule<'_>) -> PyResult<Arc<[Found]>> {
        let key = key(rule);
        let known = self.known.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(found) = known.get(&key) {
            return Ok(Arc::clone(found));
        }
        // The interpreter may wait for a thread that waits for this lock.
        drop(known);
        let found = self.ask(rule)?;
        let mut known = self.known.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        known.insert(key, Arc::clone(&found));
        Ok(found)
    }
}

impl OnRule for InPython {
    /// Finds nothing once an error is kept: the result is not going to be used.
    fn find(&self, rule: &Rule<'_>, out: &mut dyn Sink) {
        if self.own.failure.is_kept() {
            return;
        }
        match self.found(rule) {
            Ok(found) => found.iter().for_each(|(name, value)| out.add(&[name], *value)),
            Err(error) => self.own.failure.keep(error),
        }
    }
}

fn symbols<'a>(side: &[Symbol], spell: impl Fn(u32) -> &'a str) -> Vec<String> {
    let written = |&symbol: &Symbol| match symbol {
        Symbol::Word(word) => spell(word).to_owned(),
        Symbol::Gap(number) => format!("[X,{number}]"),
    };
    side.iter().map(written).collect()
}

/// The weight of what markup gives.
const GIVEN: &str = "given";

impl Own {
    fn checked(&self, name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<Found> {
        let text: String = name.extract()?;
        let value: f32 = value.extract()?;
        if let Some(wrong) = self.wrong(&text) {
            let message = format!("{text:?} is no name of a feature: {wrong}");
            return Err(PyValueError::new_err(message));
        }
        if !value.is_finite() {
            return Err(PyValueError::new_err(format!("the value of {text:?} is not finite")));
        }
        Ok((Spelling::literal(&text), value))
    }

    /// Why a feature cannot have a name: it could not be told from another, or not be read again.
    fn wrong(&self, name: &str) -> Option<&'static str> {
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Some("it is empty or has spaces");
        }
        if name.contains("|||") {
            return Some("||| is between the fields of lists");
        }
        if name.ends_with('=') && !name.contains(':') {
            return Some("lists write = behind a name; begin it with a prefix and a colon");
        }
        let taken = self.reserved.get().is_some_and(|names| names.contains(name));
        (taken || name == GIVEN).then_some("the model has a feature of this name")
    }
}

/// Words differ in number from sentence to sentence, so it is spellings that count.
fn key(rule: &Rule<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash(rule.source, |word| rule.words.source(word), &mut hasher);
    hash(rule.target, |word| rule.words.target(word), &mut hasher);
    rule.links.hash(&mut hasher);
    rule.scores.iter().for_each(|score| score.to_bits().hash(&mut hasher));
    hasher.finish()
}

fn hash<'a>(side: &[Symbol], spell: impl Fn(u32) -> &'a Spelling, hasher: &mut impl Hasher) {
    side.len().hash(hasher);
    for &symbol in side {
        match symbol {
            Symbol::Word(word) => spell(word).piece().key().hash(hasher),
            Symbol::Gap(number) => number.hash(hasher),
        }
    }
}

/// Templates and sets by name, and Python objects with a method `find`, with what those share. What
/// was found after an error is not to be used.
///
/// `folder` is a model directory with `frequent.txt` and `classes.txt`, for those that want them.
pub fn make(
    py: Python<'_>,
    names: &[String],
    folder: Option<PathBuf>,
    own: Vec<Py<PyAny>>,
) -> PyResult<(Extras, Own)> {
    let resources = folder.map_or_else(Resources::default, |path| Resources::of_model(&path));
    let mut extras = py.detach(|| templates::make(names, &resources)).map_err(py_err)?;
    let shared = Own::default();
    for object in own {
        let found = object.bind(py);
        if found.is_instance_of::<PyType>() {
            let message = format!(
                "{} is a class, not a template: write {}()",
                found,
                found.getattr("__name__")?
            );
            return Err(PyTypeError::new_err(message));
        }
        if !found.hasattr("find")? {
            let message = "features written in Python need a method find";
            return Err(PyTypeError::new_err(message));
        }
        extras.rule.push(Box::new(InPython {
            object,
            own: shared.clone(),
            known: RwLock::default(),
        }));
    }
    Ok((extras, shared))
}

/// Templates to look at, without a decoder.
#[pyclass(module = "tunesmith._core", frozen)]
pub struct Templates {
    extras: Extras,
    failure: Arc<Failure>,
}

#[pymethods]
impl Templates {
    #[new]
    #[pyo3(signature = (names=Vec::new(), own=Vec::new(), folder=None))]
    fn new(
        py: Python<'_>,
        names: Vec<String>,
        own: Vec<Py<PyAny>>,
        folder: Option<PathBuf>,
    ) -> PyResult<Self> {
        let (extras, own) = make(py, &names, folder, own)?;
        Ok(Templates { extras, failure: own.failure })
    }

    /// The features of one rule in words; those that want a sentence around it are left out.
    #[pyo3(signature = (source, target, links=Vec::new(), scores=Vec::new()))]
    fn find<'py>(
        &self,
        py: Python<'py>,
        source: Vec<String>,
        target: Vec<String>,
        links: Vec<Link>,
        scores: Vec<f32>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let source = source.iter().map(String::as_str);
        let written = WrittenRule::new(source, target.iter().map(String::as_str), &links, &scores);
        let mut out = Collected::default();
        py.detach(|| {
            self.extras.rule.iter().for_each(|feature| feature.find(&written.rule(), &mut out));
        });
        self.failure.take()?;
        let found = PyDict::new(py);
        for (id, value) in out.take().collect::<Vec<_>>() {
            found.set_item(out.names.name(id), value)?;
        }
        Ok(found)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let templates = TEMPLATES.iter().map(|known| (known.name, known.example, known.about));
    module.add("TEMPLATES", templates.collect::<Vec<_>>())?;
    let sets = SETS.iter().map(|known| (known.name, known.templates.to_vec(), known.about));
    module.add("TEMPLATE_SETS", sets.collect::<Vec<_>>())?;
    module.add_class::<Templates>()
}
