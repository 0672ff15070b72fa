//! `Decoder`, `Translator` and `Translation`: models that translate.

use std::any::Any;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::prelude::*;
use tunesmith_lm::Model as Lm;
use tunesmith_rules::Table;
use tunesmith_search::features::Collected;
use tunesmith_search::{
    Beam, Decode, Input, Markup, Named, Reading, Stop, Weights, decode, force, hiero, phrase,
};
use tunesmith_space::{
    FeatureSum, Forests as CoreForests, Hypothesis, Pools as CorePools, PoolsBuilder,
};
use tunesmith_text::{Error, Names, Watch};

use crate::contest::{Contest, Wanted, violation_of};
use crate::error::{Failure, py_err};
use crate::features;
use crate::forest::Forests;
use crate::pools::{Parts, Pools};
use crate::watch::watched;

/// A model without weights.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct Decoder {
    model: Model,
    failure: Arc<Failure>,
}

enum Model {
    Phrase(Arc<phrase::Model>, Keeper<phrase::Kept>),
    Hiero(Arc<hiero::Model>, Keeper<hiero::Kept>),
}

/// Has what is known of a model's rules as long as somebody follows weights.
struct Keeper<T>(Mutex<Weak<T>>);

impl<T: Default> Keeper<T> {
    fn new() -> Keeper<T> {
        Keeper(Mutex::default())
    }

    fn kept(&self) -> Option<Arc<T>> {
        self.0.lock().expect("no panic while it is held").upgrade()
    }

    fn keep(&self) -> Arc<T> {
        let mut kept = self.0.lock().expect("no panic while it is held");
        kept.upgrade().unwrap_or_else(|| {
            let new = Arc::default();
            *kept = Arc::downgrade(&new);
            new
        })
    }
}

/// What a decoder keeps for those that come after it.
pub type Keeping = Arc<dyn Any + Send + Sync>;

/// Moses' labels: language model, phrase table, the number of its scores, reordering.
type Labels = (String, String, usize, Option<String>);

#[pymethods]
impl Decoder {
    /// A phrase-based model from its files. `moses` gives the labels of a Moses configuration;
    /// without, features have the names of the table's columns. `verify` says whether the whole
    /// table is read for its checksum.
    #[staticmethod]
    #[pyo3(signature = (table, lm, moses=None, templates=Vec::new(), folder=None, verify=true,
                        own=Vec::new()))]
    #[allow(clippy::too_many_arguments)] // one keyword per option, as Python has them
    fn phrase(
        py: Python<'_>,
        table: PathBuf,
        lm: PathBuf,
        moses: Option<Labels>,
        templates: Vec<String>,
        folder: Option<PathBuf>,
        verify: bool,
        own: Vec<Py<PyAny>>,
    ) -> PyResult<Decoder> {
        let (extras, own) = features::make(py, &templates, folder, own)?;
        let load = move || {
            let table = Table::open(&table, verify)?;
            let lm = Lm::load(&lm)?;
            let dense = match &moses {
                None => phrase::Dense::of_table(&table),
                Some((lm, phrases, scores, reordering)) => {
                    phrase::Dense::of_moses(&table, lm, phrases, *scores, reordering.as_deref())?
                }
            };
            phrase::Model::new(table, lm, dense, extras)
        };
        let model = py.detach(load).map_err(py_err)?;
        own.reserve(model.dense().names());
        Ok(Decoder { model: Model::Phrase(Arc::new(model), Keeper::new()), failure: own.failure })
    }

    /// A hierarchical model from its files. With `cdec`, features have cdec's names and values,
    /// and all words may stand for themselves; without, features have the names of the table's
    /// columns.
    #[staticmethod]
    #[pyo3(signature = (table, lm, cdec=false, templates=Vec::new(), folder=None, verify=true,
                        own=Vec::new()))]
    #[allow(clippy::too_many_arguments)] // one keyword per option, as Python has them
    fn hiero(
        py: Python<'_>,
        table: PathBuf,
        lm: PathBuf,
        cdec: bool,
        templates: Vec<String>,
        folder: Option<PathBuf>,
        verify: bool,
        own: Vec<Py<PyAny>>,
    ) -> PyResult<Decoder> {
        let (extras, own) = features::make(py, &templates, folder, own)?;
        let load = move || {
            let table = Table::open(&table, verify)?;
            let lm = Lm::load(&lm)?;
            let dense = match cdec {
                true => hiero::Dense::of_cdec(&table),
                false => hiero::Dense::of_table(&table),
            };
            hiero::Model::new(table, lm, dense, extras)
        };
        let model = py.detach(load).map_err(py_err)?;
        own.reserve(model.dense().names());
        Ok(Decoder { model: Model::Hiero(Arc::new(model), Keeper::new()), failure: own.failure })
    }

    /// Names of the features that the model always has.
    #[getter]
    fn dense(&self) -> Vec<String> {
        let names = match &self.model {
            Model::Phrase(model, _) => model.dense().names(),
            Model::Hiero(model, _) => model.dense().names(),
        };
        names.into_iter().map(str::to_owned).collect()
    }

    /// Names and meanings of the settings of the search.
    #[getter]
    fn settings(&self) -> Vec<(&'static str, &'static str)> {
        match &self.model {
            Model::Phrase(..) => phrase::Settings::NAMES.to_vec(),
            Model::Hiero(..) => hiero::Settings::NAMES.to_vec(),
        }
    }

    /// The model with weights and settings. The files stay shared.
    fn translator(
        &self,
        weights: Vec<(String, f64)>,
        settings: Vec<(String, f64)>,
    ) -> PyResult<Translator> {
        let named = weights.iter().map(|(name, weight)| (name.as_str(), *weight));
        self.with(Arc::new(Weights::new(named)), settings, false)
    }
}

impl Decoder {
    /// The model with weights that somebody else may go on with; `apart` if that one has ids of
    /// its own for features, so that lists need no common ones.
    pub fn with(
        &self,
        weights: Arc<Weights>,
        settings: Vec<(String, f64)>,
        apart: bool,
    ) -> PyResult<Translator> {
        let decoder: Arc<dyn Decode> = match &self.model {
            Model::Phrase(model, keeper) => {
                let changed = changed(settings, phrase::Settings::set)?;
                let decoder = phrase::Decoder::new(model.clone(), weights, changed);
                Arc::new(decoder.keeping(keeper.kept()))
            }
            Model::Hiero(model, keeper) => {
                let changed = changed(settings, hiero::Settings::set)?;
                let decoder = hiero::Decoder::new(model.clone(), weights, changed);
                Arc::new(decoder.keeping(keeper.kept()))
            }
        };
        Ok(Translator { decoder, apart, dense: self.dense(), failure: Arc::clone(&self.failure) })
    }

    /// What translators are to keep of the model's rules as long as the result is there, because
    /// weights are going to change often.
    pub fn keep(&self) -> Keeping {
        match &self.model {
            Model::Phrase(_, keeper) => keeper.keep(),
            Model::Hiero(_, keeper) => keeper.keep(),
        }
    }
}

/// Settings that differ from the default.
fn changed<S: Default>(
    settings: Vec<(String, f64)>,
    set: impl Fn(&mut S, &str, f64) -> Result<(), Error>,
) -> PyResult<S> {
    let mut changed = S::default();
    for (name, value) in &settings {
        set(&mut changed, name, *value).map_err(py_err)?;
    }
    Ok(changed)
}

/// A model with weights.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct Translator {
    pub decoder: Arc<dyn Decode>,
    /// Lists of sentences are left as they are.
    apart: bool,
    dense: Vec<String>,
    /// Of features that are written in Python.
    failure: Arc<Failure>,
}

fn markup_of(name: &str) -> PyResult<Markup> {
    let found = Markup::ALL.iter().find(|known| known.0 == name);
    found.map(|known| known.1).ok_or_else(|| PyValueError::new_err(format!("no markup {name}")))
}

/// Inputs of lines, whose search ends when the watch says so; the error names the line.
fn inputs<'a>(lines: &'a [String], markup: &str, watch: &'a Watch) -> PyResult<Vec<Input<'a>>> {
    let markup = markup_of(markup)?;
    let parse = |(number, line): (usize, &'a String)| match Input::parse(line, markup) {
        Ok(input) => Ok(Input { stop: Stop::by(watch), ..input }),
        Err(error) => Err(py_err(error.at("input", Some(number as u64 + 1)))),
    };
    lines.iter().enumerate().map(parse).collect()
}

/// Weights of one line that differ from those of the translator.
type Changes = Vec<(String, f64)>;

/// A line with its changes.
type Changed<'i, 'a> = (&'i Input<'a>, Option<&'i Changes>);

/// Inputs with the changes of each; refuses another number of these.
fn changed_inputs<'i, 'a>(
    inputs: &'i [Input<'a>],
    changes: Option<&'i [Changes]>,
) -> PyResult<Vec<Changed<'i, 'a>>> {
    let Some(changes) = changes else {
        return Ok(inputs.iter().map(|input| (input, None)).collect());
    };
    if changes.len() != inputs.len() {
        return Err(PyValueError::new_err(format!(
            "changes of weights for {} lines, but there are {}",
            changes.len(),
            inputs.len()
        )));
    }
    Ok(inputs.iter().zip(changes.iter().map(Some)).collect())
}

impl Translator {
    /// Names the features that the model always has: so they come first and are never left out.
    pub fn collected(&self) -> Collected {
        let mut collected = Collected::default();
        for name in &self.dense {
            collected.id(name);
        }
        collected
    }

    /// Features as [`collected`](Self::collected) names them, with zeros for those left out.
    pub fn with_dense(&self, features: &[(u32, f32)]) -> Vec<(u32, f32)> {
        let mut all: Vec<(u32, f32)> = (0..self.dense.len() as u32).map(|id| (id, 0.0)).collect();
        for &(id, value) in features {
            match all[..self.dense.len()].get_mut(id as usize) {
                Some(slot) => slot.1 = value,
                None => all.push((id, value)),
            }
        }
        all
    }

    /// The decoder with the weights of one line, if it has any of its own.
    fn decoder_with(&self, changes: Option<&Changes>) -> Option<Box<dyn Decode>> {
        changes
            .filter(|changes| !changes.is_empty())
            .map(|changes| self.decoder.with_changes(changes))
    }

    /// Runs a search that hears of signals; what is found after one is not used.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        watch: &Watch,
        threads: usize,
        search: impl FnOnce() -> T + Send,
    ) -> PyResult<T> {
        let found = watched(py, watch, None, threads, search)?;
        self.failure.check(py)?;
        Ok(found)
    }

    /// Lists of items in order, with common names of features; and whatever else `make` returns.
    fn pools<T: Sync, R: Send>(
        &self,
        py: Python<'_>,
        watch: &Watch,
        threads: usize,
        items: &[T],
        make: impl Fn(&T, &mut PoolsBuilder) -> R + Send + Sync,
    ) -> PyResult<(Pools, Vec<R>)> {
        self.run(py, watch, threads, || {
            if self.apart {
                let one = |item: &T| {
                    let mut list = PoolsBuilder::default();
                    let result = make(item, &mut list);
                    (list, result)
                };
                let (lists, results) = items.par_iter().map(one).unzip();
                return (Pools::of_parts(Parts { dense: self.dense.clone(), lists }), results);
            }
            let mut all = PoolsBuilder::default();
            for name in &self.dense {
                all.names.intern(name);
            }
            let results = all.gather(items, make);
            (Pools::new(all.finish()), results)
        })
    }
}

#[pymethods]
impl Translator {
    /// The best translation of each line; with the `details` best derivations if more than 0, and
    /// if `unique` of different strings. With `changes`, each line has some weights of its own.
    #[pyo3(signature = (lines, threads=0, details=0, markup="none", unique=false, changes=None))]
    #[allow(clippy::too_many_arguments)]
    fn translate(
        &self,
        py: Python<'_>,
        lines: Vec<String>,
        threads: usize,
        details: usize,
        markup: &str,
        unique: bool,
        changes: Option<Vec<Changes>>,
    ) -> PyResult<Vec<Translation>> {
        let watch = Watch::default();
        let inputs = inputs(&lines, markup, &watch)?;
        let items = changed_inputs(&inputs, changes.as_deref())?;
        self.run(py, &watch, threads, || {
            let one = |(input, changes): &Changed<'_, '_>| {
                let start = Instant::now();
                let made = self.decoder_with(*changes);
                let decoder = made.as_deref().unwrap_or(&*self.decoder);
                let mut translation = Translation::new(decoder, input, details, unique);
                translation.seconds = start.elapsed().as_secs_f64();
                translation
            };
            items.par_iter().map(one).collect()
        })
    }

    /// The `k` best translations of each line as lists, in which the features that the model
    /// always has come first and are never left out; with `links` the alignments are kept. With
    /// `changes`, each line has some weights of its own.
    #[pyo3(signature = (lines, k, unique=true, threads=0, links=false, markup="none",
        changes=None))]
    #[allow(clippy::too_many_arguments)]
    fn nbest(
        &self,
        py: Python<'_>,
        lines: Vec<String>,
        k: usize,
        unique: bool,
        threads: usize,
        links: bool,
        markup: &str,
        changes: Option<Vec<Changes>>,
    ) -> PyResult<Pools> {
        let watch = Watch::default();
        let inputs = inputs(&lines, markup, &watch)?;
        let items = changed_inputs(&inputs, changes.as_deref())?;
        let (pools, _) = self.pools(py, &watch, threads, &items, |(input, changes), list| {
            let made = self.decoder_with(*changes);
            let decoder = made.as_deref().unwrap_or(&*self.decoder);
            decode(decoder, input).list(k, unique, links, self.collected(), list);
        })?;
        Ok(pools)
    }

    /// The `k` best derivations of each reference, or if there are none of the longest part of it
    /// that can be reached from its beginning; how many words that has; and whether it is a
    /// translation of the whole line.
    #[pyo3(signature = (lines, references, k=1, threads=0, markup="none"))]
    fn force(
        &self,
        py: Python<'_>,
        lines: Vec<String>,
        references: Vec<String>,
        k: usize,
        threads: usize,
        markup: &str,
    ) -> PyResult<(Pools, Vec<usize>, Vec<bool>)> {
        let watch = Watch::default();
        let inputs = inputs(&lines, markup, &watch)?;
        let pairs = pairs(&inputs, &references)?;
        let (pools, reached) =
            self.pools(py, &watch, threads, &pairs, |(input, reference), list| {
                let words: Vec<&str> = reference.split_whitespace().collect();
                let (found, reached) = force(&*self.decoder, input, &words)?;
                found.list(k, false, false, self.collected(), list);
                Some(reached)
            })?;
        let reached: Option<Vec<_>> = reached.into_iter().collect();
        let reached = reached.ok_or_else(|| only_phrases("can be forced to a reference"))?;
        let (words, whole) = reached.iter().map(|one| (one.words, one.is_whole)).unzip();
        Ok((pools, words, whole))
    }

    /// How far each reference can be reached.
    #[pyo3(signature = (lines, references, threads=0, markup="none"))]
    fn reach(
        &self,
        py: Python<'_>,
        lines: Vec<String>,
        references: Vec<String>,
        threads: usize,
        markup: &str,
    ) -> PyResult<Vec<Contest>> {
        let watch = Watch::default();
        let inputs = inputs(&lines, markup, &watch)?;
        let pairs = pairs(&inputs, &references)?;
        let found: Option<Vec<Contest>> = self.run(py, &watch, threads, || {
            let one = |(input, reference): &(&Input<'_>, &String)| {
                let words: Vec<&str> = reference.split_whitespace().collect();
                Some(Contest::new(force(&*self.decoder, input, &words)?.1))
            };
            pairs.par_iter().map(one).collect()
        })?;
        found.ok_or_else(|| only_phrases("can be forced to a reference"))
    }

    /// For each reference a list: the best gold derivation at the step that the `update` corrects,
    /// then the `k` best of the beam that are not gold. Gold alone where nothing is to be
    /// corrected; an empty list if fewer than `least` words of a reference are reached that cannot
    /// be reached as a whole (without `least`, if it cannot), and if the search is given up. With
    /// `future`, scores and features have what is hoped for the rest.
    #[pyo3(signature = (lines, references, update="max-violation", k=1, future=false, least=None,
        threads=0, markup="none"))]
    #[allow(clippy::too_many_arguments)]
    fn violations(
        &self,
        py: Python<'_>,
        lines: Vec<String>,
        references: Vec<String>,
        update: &str,
        k: usize,
        future: bool,
        least: Option<usize>,
        threads: usize,
        markup: &str,
    ) -> PyResult<(Pools, Vec<Contest>)> {
        let watch = Watch::default();
        let inputs = inputs(&lines, markup, &watch)?;
        let pairs = pairs(&inputs, &references)?;
        let violation = violation_of(update)?;
        let wanted = Wanted { violation, k, future, least: least.unwrap_or(usize::MAX) };
        let (pools, found) =
            self.pools(py, &watch, threads, &pairs, |(input, reference), list| {
                let words: Vec<&str> = reference.split_whitespace().collect();
                wanted.find(self, input, &words, list)
            })?;
        let found: Option<Vec<Contest>> = found.into_iter().collect();
        Ok((pools, found.ok_or_else(|| only_phrases("can be forced to a reference"))?))
    }

    /// The partial translations that the search kept, a list for each line and bin, best first;
    /// the last bin of a line is the list of its `k` best whole translations. Features are those of
    /// the score, or with `future` those of the estimate. What surrounds a text in the whole
    /// translation that it may become is in its extra text: the spans it covers, what stands before
    /// it, what stands behind it, with tabs between them.
    /// With `references` only what leads to them, or to a part of them, is kept, and nothing of it
    /// is lost.
    #[pyo3(signature = (lines, k, ways=1, future=false, threads=0, markup="none",
        references=None))]
    #[allow(clippy::too_many_arguments)]
    fn bins(
        &self,
        py: Python<'_>,
        lines: Vec<String>,
        k: usize,
        ways: usize,
        future: bool,
        threads: usize,
        markup: &str,
        references: Option<Vec<String>>,
    ) -> PyResult<Pools> {
        let watch = Watch::default();
        let inputs = inputs(&lines, markup, &watch)?;
        let pairs: Vec<_> = match &references {
            None => inputs.iter().map(|input| (input, None)).collect(),
            Some(all) => {
                pairs(&inputs, all)?.into_iter().map(|(one, to)| (one, Some(to))).collect()
            }
        };
        let beam = Beam { ways, list: k };
        let (pools, found) =
            self.pools(py, &watch, threads, &pairs, |(input, reference), list| {
                let mut collected = self.collected();
                let found = match reference {
                    None => decode(&*self.decoder, input),
                    Some(reference) => {
                        let words: Vec<&str> = reference.split_whitespace().collect();
                        force(&*self.decoder, input, &words)?.0
                    }
                };
                let bins = found.bins(beam, &mut collected)?;
                let mut sum = FeatureSum::default();
                // A blank line has no bins, but a list all the same.
                let none = [Vec::new()];
                for bin in if bins.is_empty() { &none[..] } else { &bins } {
                    list.bin(0);
                    for partial in bin {
                        sum.extend(partial.features.iter().copied());
                        if future {
                            sum.extend(partial.future.iter().copied());
                        }
                        list.push(Hypothesis {
                            text: &partial.text,
                            features: &self.with_dense(sum.total()),
                            score: Some(f64::from(match future {
                                true => partial.estimate,
                                false => partial.score,
                            })),
                            extra: &CorePools::surround(
                                &partial.covered,
                                &partial.before,
                                &partial.after,
                            ),
                            ..Hypothesis::default()
                        });
                    }
                }
                list.names = collected.names;
                Some(())
            })?;
        let found: Option<Vec<()>> = found.into_iter().collect();
        found.ok_or_else(|| only_phrases("can be forced to a reference"))?;
        Ok(pools)
    }

    /// Everything that was found for each line.
    #[pyo3(signature = (lines, threads=0, markup="none"))]
    fn forests(
        &self,
        py: Python<'_>,
        lines: Vec<String>,
        threads: usize,
        markup: &str,
    ) -> PyResult<Forests> {
        let watch = Watch::default();
        let inputs = inputs(&lines, markup, &watch)?;
        let one = |input: &Input<'_>| {
            let mut collected = Collected::default();
            let forest = decode(&*self.decoder, input).forest(&mut collected);
            CoreForests { names: collected.names, forests: vec![forest] }
        };
        let all = self.run(py, &watch, threads, || {
            let parts: Vec<CoreForests> = inputs.par_iter().map(one).collect();
            let mut all = CoreForests::default();
            parts.into_iter().for_each(|part| all.append(part));
            all
        })?;
        Ok(Forests::new(all))
    }
}

fn pairs<'i, 'a>(
    inputs: &'i [Input<'a>],
    references: &'i [String],
) -> PyResult<Vec<(&'i Input<'a>, &'i String)>> {
    if inputs.len() != references.len() {
        return Err(py_err(
            Error::new(format!("{} references for {} lines", references.len(), inputs.len()))
                .remedy("give one reference for each line"),
        ));
    }
    Ok(inputs.iter().zip(references).collect())
}

fn only_phrases(what: &str) -> PyErr {
    py_err(
        Error::new(format!("only a phrase-based decoder {what}"))
            .remedy("load the model with kind=\"phrase\""),
    )
}

fn named(reading: &Reading, names: &Names) -> Vec<(String, f32)> {
    let name = |&(id, value): &(u32, f32)| (names.name(id).unwrap_or_default().to_owned(), value);
    reading.features.iter().map(name).collect()
}

/// What came out for a line.
#[pyclass(frozen, get_all, module = "tunesmith._core")]
pub struct Translation {
    text: String,
    /// `None` if the model has no translation.
    score: Option<f64>,
    /// Into how many pieces the sentence was cut.
    pieces: usize,
    seconds: f64,
    derivations: Vec<Derivation>,
}

impl Translation {
    fn new(decoder: &dyn Decode, input: &Input<'_>, details: usize, unique: bool) -> Translation {
        let found = decode(decoder, input);
        let mut translation = Translation {
            text: found.text(),
            score: found.score(),
            pieces: found.pieces(),
            seconds: 0.0,
            derivations: Vec::new(),
        };
        if details > 0 {
            let mut collected = Collected::default();
            for reading in found.best(details, unique, &mut collected) {
                let steps = reading.steps.iter().filter_map(|&label| found.step(label));
                translation.derivations.push(Derivation {
                    steps: steps
                        .map(|step| Step {
                            start: step.span.start,
                            end: step.span.end,
                            source: step.places,
                            target: step.target,
                            links: step.links,
                            origin: step.origin.name(),
                        })
                        .collect(),
                    features: named(&reading, &collected.names),
                    text: reading.text,
                    score: reading.score,
                    links: reading.links,
                });
            }
        }
        translation
    }
}

/// One way to a translation.
#[pyclass(frozen, get_all, from_py_object, module = "tunesmith._core")]
#[derive(Clone)]
pub struct Derivation {
    text: String,
    score: f64,
    features: Vec<(String, f32)>,
    links: Vec<(u32, u32)>,
    steps: Vec<Step>,
}

/// One rule of a derivation.
#[pyclass(frozen, get_all, from_py_object, module = "tunesmith._core")]
#[derive(Clone)]
pub struct Step {
    start: usize,
    end: usize,
    source: Vec<Option<usize>>,
    target: Vec<String>,
    links: Vec<(u16, u16)>,
    origin: &'static str,
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Decoder>()?;
    module.add_class::<Translator>()?;
    module.add_class::<Translation>()?;
    module.add_class::<Derivation>()?;
    module.add_class::<Step>()
}
