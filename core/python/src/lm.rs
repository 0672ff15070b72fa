//! `LanguageModel`, the states of its queries, and estimates from text.

mod estimate;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;

use numpy::{AllowTypeChange, PyArray1, PyArrayLike1, PyArrayMethods};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use tunesmith_lm::{Batch, Model, Perplexity, State};

use crate::error::py_err;
use crate::threads;
pub use estimate::{LmEstimate, estimate_lm};

/// What a language model remembers of the words so far; equal states have equal futures.
#[pyclass(module = "tunesmith._core", frozen)]
pub struct LmState(State);

#[pymethods]
impl LmState {
    /// Ids of the remembered words, the last first.
    #[getter]
    fn words(&self) -> Vec<u32> {
        self.0.words().to_vec()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        format!("LmState({:?})", self.0.words())
    }
}

type Ids<'py> = PyArrayLike1<'py, u32, AllowTypeChange>;
type Arrays<'py> = (Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<u8>>);
type Measured = (u64, u64, u64, f64, f64);

/// An n-gram model in memory or mapped from a file.
#[pyclass(module = "tunesmith._core", frozen)]
pub struct LanguageModel {
    model: Model,
}

impl LanguageModel {
    pub fn new(model: Model) -> Self {
        LanguageModel { model }
    }

    fn batch(&self, sentence: &str, eos: bool) -> Batch {
        let mut batch = Batch::default();
        batch.push_text(&self.model, sentence.as_bytes(), eos);
        batch
    }
}

#[pymethods]
impl LanguageModel {
    /// Reads an ARPA file or maps a binary.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Model::load(path)).map(LanguageModel::new).map_err(py_err)
    }

    /// Writes a binary.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.model.save(path)).map_err(py_err)
    }

    #[getter]
    fn order(&self) -> usize {
        self.model.order()
    }

    /// N-grams of each order.
    #[getter]
    fn counts(&self) -> Vec<usize> {
        self.model.counts().to_vec()
    }

    #[getter]
    fn bytes(&self) -> usize {
        self.model.bytes()
    }

    /// Words, special ones included.
    #[getter]
    fn vocabulary_size(&self) -> usize {
        self.model.vocabulary_len()
    }

    #[getter]
    fn begin_id(&self) -> u32 {
        self.model.begin_id()
    }

    #[getter]
    fn end_id(&self) -> u32 {
        self.model.end_id()
    }

    /// 0 if the model does not know the word.
    fn id(&self, word: &str) -> u32 {
        self.model.id(word)
    }

    fn word(&self, id: u32) -> PyResult<&str> {
        self.model.word(id).ok_or_else(|| PyIndexError::new_err(format!("no word has id {id}")))
    }

    /// Ids of the words of a sentence, without marks at its ends.
    fn ids<'py>(&self, py: Python<'py>, sentence: &str) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, self.batch(sentence, false).ids())
    }

    fn begin_state(&self) -> LmState {
        LmState(self.model.begin())
    }

    fn empty_state(&self) -> LmState {
        LmState(State::EMPTY)
    }

    /// Log-probability, next state, and words of the n-gram that was found.
    fn score_word(&self, state: &LmState, word: u32) -> (f32, LmState, u8) {
        let (scored, next) = self.model.score(&state.0, word);
        (scored.log10, LmState(next), scored.length)
    }

    /// Log-probabilities, n-gram lengths and states of many words after one state.
    fn score_words<'py>(
        &self,
        py: Python<'py>,
        state: &LmState,
        words: Ids<'py>,
    ) -> PyResult<(Arrays<'py>, Vec<LmState>)> {
        let words = words.to_vec()?;
        let (mut values, mut lengths, mut states) = (Vec::new(), Vec::new(), Vec::new());
        self.model.score_words(&state.0, &words, |_, scored, next| {
            values.push(scored.log10);
            lengths.push(scored.length);
            states.push(LmState(next));
        });
        Ok(((PyArray1::from_vec(py, values), PyArray1::from_vec(py, lengths)), states))
    }

    /// The log-probability of one sentence.
    #[pyo3(signature = (sentence, bos = true, eos = true))]
    fn score(&self, sentence: &str, bos: bool, eos: bool) -> f64 {
        let mut sum = 0.0;
        let batch = self.batch(sentence, eos);
        self.model.score_batch(&batch, bos, |_, scored| sum += f64::from(scored.log10));
        sum
    }

    /// Log-probability, n-gram length and whether it is known, for each word.
    #[pyo3(signature = (sentence, bos = true, eos = true))]
    fn full_scores(&self, sentence: &str, bos: bool, eos: bool) -> Vec<(f32, u8, bool)> {
        let batch = self.batch(sentence, eos);
        let mut found = Vec::with_capacity(batch.ids().len());
        self.model.score_batch(&batch, bos, |at, scored| {
            found.push((scored.log10, scored.length, batch.ids()[at] != 0));
        });
        found
    }

    /// Log-probabilities of many sentences.
    #[pyo3(signature = (sentences, bos = true, eos = true, threads = 0))]
    fn score_many<'py>(
        &self,
        py: Python<'py>,
        sentences: Vec<PyBackedStr>,
        bos: bool,
        eos: bool,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let sums = threads::run(py, threads, || self.model.score_texts(&sentences, bos, eos))?;
        Ok(PyArray1::from_vec(py, sums))
    }

    /// Log-probabilities and n-gram lengths of the words of sentences given as ids, one after the
    /// other; `ends` says where each ends.
    #[pyo3(signature = (ids, ends, bos = true))]
    fn score_ids<'py>(
        &self,
        py: Python<'py>,
        ids: Ids<'py>,
        ends: PyArrayLike1<'py, i64, AllowTypeChange>,
        bos: bool,
    ) -> PyResult<Arrays<'py>> {
        let (ids, ends) = (ids.to_vec()?, ends.to_vec()?);
        let found = py.detach(|| {
            let mut batch = Batch::default();
            let mut start = 0;
            for end in ends {
                let sentence = usize::try_from(end).ok().and_then(|end| ids.get(start..end))?;
                batch.push(&self.model, sentence);
                start += sentence.len();
            }
            let (mut values, mut lengths) = (Vec::new(), Vec::new());
            values.reserve_exact(start);
            lengths.reserve_exact(start);
            self.model.score_batch(&batch, bos, |_, scored| {
                values.push(scored.log10);
                lengths.push(scored.length);
            });
            (start == ids.len()).then_some((values, lengths))
        });
        let (values, lengths) = found.ok_or_else(|| {
            PyValueError::new_err("the ends of sentences do not ascend to the number of ids")
        })?;
        Ok((PyArray1::from_vec(py, values), PyArray1::from_vec(py, lengths)))
    }

    /// Sentences, tokens, unknown words, and the log-probabilities of everything and of the
    /// unknown words, of a text in a file.
    #[pyo3(signature = (path, threads = 0))]
    fn measure_file(&self, py: Python<'_>, path: PathBuf, threads: usize) -> PyResult<Measured> {
        let found = threads::run(py, threads, || {
            tunesmith_text::Lines::open(path).and_then(|lines| self.model.measure(lines))
        })?;
        found.map(tuple).map_err(py_err)
    }

    /// The same, of sentences.
    fn measure(&self, py: Python<'_>, sentences: Vec<PyBackedStr>) -> Measured {
        py.detach(|| {
            let mut found = Perplexity::default();
            let mut batch = Batch::default();
            for chunk in sentences.chunks(512) {
                batch.clear();
                for sentence in chunk {
                    batch.push_text(&self.model, sentence.as_bytes(), true);
                }
                found.add(&self.model, &batch);
            }
            tuple(found)
        })
    }

    fn __repr__(&self) -> String {
        format!("LanguageModel(order={}, counts={:?})", self.order(), self.counts())
    }
}

fn tuple(found: Perplexity) -> Measured {
    (found.sentences, found.tokens, found.unknown, found.log10, found.unknown_log10)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LmState>()?;
    module.add_class::<LanguageModel>()?;
    module.add_class::<LmEstimate>()?;
    module.add_function(wrap_pyfunction!(estimate_lm, module)?)
}
