//! `Metric`: every metric behind one class, and the table of statistics it fills.

mod callback;
mod table;

use std::borrow::Cow;
use std::sync::Arc;

use numpy::{
    AllowTypeChange, PyArray1, PyArray2, PyArrayLike1, PyArrayLike2, PyArrayMethods,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tunesmith_metric::{
    Blend, Bleu, Chrf, ErrorRate, Length, Mean, Metric as CoreMetric, Ratio, Ter, TextMetric,
    Tokenizer, Unit, text_stats,
};
use tunesmith_text::Error;

use crate::error::{Failure, py_err};
use callback::{Callback, Prepared};
pub use table::Table;

/// A metric: statistics that add up, and a score of their sum. Made by one of the static
/// methods.
#[pyclass(module = "tunesmith._core", frozen)]
pub struct Metric {
    metric: Arc<dyn CoreMetric>,
    text: Option<Arc<dyn TextMetric>>,
    /// Where a metric with parts in Python leaves what was raised there.
    failure: Arc<Failure>,
}

impl Metric {
    pub fn inner(&self) -> Arc<dyn CoreMetric> {
        self.metric.clone()
    }

    /// The same, for a metric that reads text.
    pub fn text(&self) -> Option<Arc<dyn TextMetric>> {
        self.text.clone()
    }

    /// Raises what Python code behind the metric raised since the last call. Call it after
    /// native work with a metric; until then a failed call counts as a gain of zero.
    pub fn check(&self) -> PyResult<()> {
        self.failure.take()
    }

    fn of_numbers(metric: impl CoreMetric + 'static) -> Self {
        Metric { metric: Arc::new(metric), text: None, failure: Arc::default() }
    }

    fn of_text(metric: impl TextMetric + 'static) -> Self {
        Metric::shared(Arc::new(metric), Arc::default())
    }

    fn shared(text: Arc<dyn TextMetric>, failure: Arc<Failure>) -> Self {
        Metric { metric: text.clone(), text: Some(text), failure }
    }

    fn rows<'a>(&self, rows: &'a Rows<'_>) -> PyResult<Cow<'a, [f64]>> {
        let (given, width) = (rows.shape()[1], self.metric.width());
        if given != width {
            let message = format!("rows of {given} numbers for a metric that has {width}");
            return Err(PyValueError::new_err(message));
        }
        Ok(flat(rows))
    }

    fn each<'py>(
        &self,
        rows: &Bound<'py, PyAny>,
        work: impl Fn(&dyn CoreMetric, &[f64], &mut Vec<f64>) + Sync + Send,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let py = rows.py();
        let rows: Rows<'py> = rows.extract()?;
        let rows = self.rows(&rows)?;
        let metric = &*self.metric;
        let out = py.detach(|| {
            let mut out = Vec::new();
            work(metric, &rows, &mut out);
            out
        });
        self.check()?;
        Ok(PyArray1::from_vec(py, out))
    }
}

pub(crate) type Rows<'py> = PyArrayLike2<'py, f64, AllowTypeChange>;

/// The numbers of an array in row order.
fn flat<'a>(rows: &'a Rows<'_>) -> Cow<'a, [f64]> {
    match rows.as_slice() {
        Ok(slice) if rows.is_c_contiguous() => Cow::Borrowed(slice),
        _ => Cow::Owned(rows.as_array().iter().copied().collect()),
    }
}

fn matrix(py: Python<'_>, rows: Vec<f64>, width: usize) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let count = rows.len() / width;
    PyArray1::from_vec(py, rows).reshape([count, width])
}

fn refuse(message: impl Into<String>, remedy: &str) -> PyErr {
    py_err(Error::new(message).remedy(remedy))
}

fn positive(name: &str, value: f64) -> PyResult<()> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(refuse(format!("{name} is {value}"), "give a positive number"))
}

#[pymethods]
impl Metric {
    #[staticmethod]
    #[pyo3(signature = (*, tokenize = "13a", lowercase = false, max_order = 4, length = "closest"))]
    fn bleu(tokenize: &str, lowercase: bool, max_order: usize, length: &str) -> PyResult<Self> {
        if !(1..=4).contains(&max_order) {
            let message = format!("BLEU of order {max_order}");
            return Err(refuse(message, "orders are 1 to 4"));
        }
        let mut bleu = Bleu::new(max_order);
        bleu.tokenizer = Tokenizer::named(tokenize).ok_or_else(|| {
            refuse(format!("no native tokeniser {tokenize:?}"), "use none, 13a, intl or char")
        })?;
        bleu.length = Length::named(length).ok_or_else(|| {
            let message = format!("unknown reference length {length:?}");
            refuse(message, "use closest, shortest or average")
        })?;
        bleu.lowercase = lowercase;
        Ok(Metric::of_text(bleu))
    }

    #[staticmethod]
    #[pyo3(signature = (*, char_order = 6, word_order = 0, beta = 2.0, lowercase = false,
                        whitespace = false, eps_smoothing = false))]
    fn chrf(
        char_order: usize,
        word_order: usize,
        beta: f64,
        lowercase: bool,
        whitespace: bool,
        eps_smoothing: bool,
    ) -> PyResult<Self> {
        positive("beta", beta)?;
        if char_order + word_order == 0 || char_order.max(word_order) > 32 {
            let message = format!("chrF of orders {char_order} and {word_order}");
            return Err(refuse(message, "give 1 to 32 orders of characters or words"));
        }
        let chrf = Chrf { char_order, word_order, beta, lowercase, whitespace, eps_smoothing };
        Ok(Metric::of_text(chrf))
    }

    #[staticmethod]
    #[pyo3(signature = (*, normalized = false, no_punct = false, asian_support = false,
                        case_sensitive = false))]
    fn ter(normalized: bool, no_punct: bool, asian_support: bool, case_sensitive: bool) -> Self {
        Metric::of_text(Ter { normalized, no_punct, asian_support, case_sensitive })
    }

    #[staticmethod]
    #[pyo3(signature = (*, lowercase = false))]
    fn wer(lowercase: bool) -> Self {
        Metric::of_text(ErrorRate { unit: Unit::Word, lowercase })
    }

    #[staticmethod]
    #[pyo3(signature = (*, lowercase = false))]
    fn cer(lowercase: bool) -> Self {
        Metric::of_text(ErrorRate { unit: Unit::Character, lowercase })
    }

    #[staticmethod]
    #[pyo3(signature = (*, scale = 100.0, higher = true))]
    fn mean(scale: f64, higher: bool) -> PyResult<Self> {
        positive("scale", scale)?;
        Ok(Metric::of_numbers(Mean { scale, higher }))
    }

    #[staticmethod]
    #[pyo3(signature = (*, scale = 100.0, higher = false))]
    fn ratio(scale: f64, higher: bool) -> PyResult<Self> {
        positive("scale", scale)?;
        Ok(Metric::of_numbers(Ratio { scale, higher }))
    }

    /// Several metrics of text as one: scores add up by weight, gains by its size.
    #[staticmethod]
    fn blend(parts: Vec<(Py<Metric>, f64)>) -> PyResult<Self> {
        let mut found = Vec::new();
        for (part, weight) in &parts {
            found.push((part.get().reader()?, *weight));
        }
        Ok(Metric::of_text(Blend::new(found)))
    }

    /// A metric written in Python: `width`, `score_rows(rows)`, `gain_rows(rows)`, and if it has
    /// them `sentence_gain_rows(rows)` and `row(hypothesis, references)`, which makes it one that
    /// reads text.
    #[staticmethod]
    fn python(metric: &Bound<'_, PyAny>) -> PyResult<Self> {
        let failure = Arc::<Failure>::default();
        let callback = Callback::new(metric, failure.clone())?;
        Ok(if metric.hasattr("row")? {
            Metric::shared(Arc::new(callback), failure)
        } else {
            Metric { metric: Arc::new(callback), text: None, failure }
        })
    }

    /// The same metric on texts that `function` has rewritten (a tokeniser written in Python).
    fn prepared(&self, function: Py<PyAny>) -> PyResult<Self> {
        let Some(inner) = self.text() else {
            return Err(PyValueError::new_err("a metric that reads no text needs no tokeniser"));
        };
        let prepared = Prepared { inner, function, failure: self.failure.clone() };
        Ok(Metric::shared(Arc::new(prepared), self.failure.clone()))
    }

    #[getter]
    fn width(&self) -> usize {
        self.metric.width()
    }

    #[getter]
    fn reads_text(&self) -> bool {
        self.text.is_some()
    }

    fn score(
        &self,
        py: Python<'_>,
        stats: PyArrayLike1<'_, f64, AllowTypeChange>,
    ) -> PyResult<f64> {
        let stats: Vec<f64> = stats.as_array().iter().copied().collect();
        if stats.len() != self.metric.width() {
            let width = self.metric.width();
            let message = format!("{} numbers for a metric that has {width}", stats.len());
            return Err(PyValueError::new_err(message));
        }
        let score = py.detach(|| self.metric.score(&stats));
        self.check()?;
        Ok(score)
    }

    fn scores<'py>(&self, rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.each(rows, |metric, rows, out| metric.scores(rows, out))
    }

    fn gains<'py>(&self, rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.each(rows, |metric, rows, out| {
            metric.gains(&vec![0.0; metric.width()], rows, out);
        })
    }

    fn sentence_gains<'py>(&self, rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.each(rows, |metric, rows, out| metric.sentence_gains(rows, out))
    }

    /// One row per hypothesis; `references[i]` are the references of hypothesis i.
    fn stats<'py>(
        &self,
        py: Python<'py>,
        hypotheses: Vec<String>,
        references: Vec<Vec<String>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let text = self.reader()?;
        same_number(hypotheses.len(), "hypotheses", &references)?;
        let rows = py.detach(|| text_stats(&*text, &hypotheses, &references));
        self.check()?;
        matrix(py, rows, self.metric.width())
    }
}

impl Metric {
    fn reader(&self) -> PyResult<Arc<dyn TextMetric>> {
        self.text().ok_or_else(|| {
            let message = "this metric reads numbers, not text".to_owned();
            refuse(message, "give it the statistics of each hypothesis")
        })
    }
}

/// Refuses references that do not fit what they are for.
fn same_number(count: usize, what: &str, references: &[Vec<String>]) -> PyResult<()> {
    if count != references.len() {
        let message = format!("{count} {what}, but references for {}", references.len());
        return Err(refuse(message, "give one list of references for each"));
    }
    if let Some(place) = references.iter().position(Vec::is_empty) {
        let message = format!("no reference for number {} of the {what}", place + 1);
        return Err(refuse(message, "a blank reference is an empty string, not a missing one"));
    }
    Ok(())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Metric>()?;
    module.add_class::<Table>()
}
