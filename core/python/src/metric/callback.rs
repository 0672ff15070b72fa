//! Metrics with parts written in Python.

use std::sync::Arc;

use numpy::{AllowTypeChange, PyArray1, PyArrayLike1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tunesmith_metric::{Metric, Segment, TextMetric};

use crate::error::Failure;

/// A whole metric. Rows go to Python in batches.
pub struct Callback {
    object: Arc<Py<PyAny>>,
    width: usize,
    smoothed: bool,
    failure: Arc<Failure>,
}

impl Callback {
    pub fn new(object: &Bound<'_, PyAny>, failure: Arc<Failure>) -> PyResult<Self> {
        for name in ["width", "score_rows", "gain_rows"] {
            if !object.hasattr(name)? {
                let message = format!("a metric written in Python needs {name}");
                return Err(PyValueError::new_err(message));
            }
        }
        let width: usize = object.getattr("width")?.extract()?;
        if width == 0 {
            return Err(PyValueError::new_err("a metric needs at least one statistic"));
        }
        let smoothed = object.hasattr("sentence_gain_rows")?;
        Ok(Callback { object: Arc::new(object.clone().unbind()), width, smoothed, failure })
    }

    /// Fills `out` with what a method returns for rows; with zeros if it fails.
    fn call(&self, method: &str, rows: Vec<f64>, out: &mut Vec<f64>) {
        let count = rows.len() / self.width;
        let returned = Python::attach(|py| -> PyResult<Vec<f64>> {
            let rows = PyArray1::from_vec(py, rows).reshape([count, self.width])?;
            let values = self.object.bind(py).call_method1(method, (rows,))?;
            let values: PyArrayLike1<'_, f64, AllowTypeChange> = values.extract()?;
            let values: Vec<f64> = values.as_array().iter().copied().collect();
            if values.len() != count || values.iter().any(|value| value.is_nan()) {
                let message = format!(
                    "{method} must return a number for each of {count} rows, not {} or NaN",
                    values.len()
                );
                return Err(PyValueError::new_err(message));
            }
            Ok(values)
        });
        out.clear();
        match returned {
            Ok(values) => out.extend(values),
            Err(error) => {
                self.failure.keep(error);
                out.resize(count, 0.0);
            }
        }
    }

    fn one(&self, method: &str, stats: &[f64]) -> f64 {
        let mut out = Vec::new();
        self.call(method, stats.to_vec(), &mut out);
        out[0]
    }

    fn sentence_method(&self) -> &'static str {
        if self.smoothed { "sentence_gain_rows" } else { "gain_rows" }
    }
}

impl Metric for Callback {
    fn width(&self) -> usize {
        self.width
    }

    fn score(&self, stats: &[f64]) -> f64 {
        self.one("score_rows", stats)
    }

    fn gain(&self, stats: &[f64]) -> f64 {
        self.one("gain_rows", stats)
    }

    fn sentence_gain(&self, stats: &[f64]) -> f64 {
        self.one(self.sentence_method(), stats)
    }

    fn gains(&self, base: &[f64], rows: &[f64], out: &mut Vec<f64>) {
        let mut sums = rows.to_vec();
        for row in sums.chunks_exact_mut(self.width) {
            row.iter_mut().zip(base).for_each(|(value, base)| *value += base);
        }
        self.call("gain_rows", sums, out);
    }

    fn scores(&self, rows: &[f64], out: &mut Vec<f64>) {
        self.call("score_rows", rows.to_vec(), out);
    }

    fn sentence_gains(&self, rows: &[f64], out: &mut Vec<f64>) {
        self.call(self.sentence_method(), rows.to_vec(), out);
    }
}

impl TextMetric for Callback {
    fn segment(&self, references: &[&str]) -> Box<dyn Segment> {
        Box::new(CallbackSegment {
            object: self.object.clone(),
            references: references.iter().map(|text| (*text).to_owned()).collect(),
            failure: self.failure.clone(),
        })
    }
}

struct CallbackSegment {
    object: Arc<Py<PyAny>>,
    references: Vec<String>,
    failure: Arc<Failure>,
}

impl Segment for CallbackSegment {
    fn stats(&self, hypothesis: &str, out: &mut [f64]) {
        let row = Python::attach(|py| -> PyResult<Vec<f64>> {
            let arguments = (hypothesis, self.references.as_slice());
            let row = self.object.bind(py).call_method1("row", arguments)?;
            let row: PyArrayLike1<'_, f64, AllowTypeChange> = row.extract()?;
            let row: Vec<f64> = row.as_array().iter().copied().collect();
            if row.len() != out.len() || row.iter().any(|value| !value.is_finite()) {
                let message = format!("row must return {} finite numbers", out.len());
                return Err(PyValueError::new_err(message));
            }
            Ok(row)
        });
        match row {
            Ok(row) => out.copy_from_slice(&row),
            Err(error) => {
                self.failure.keep(error);
                out.fill(0.0);
            }
        }
    }
}

/// A metric on texts that a Python function rewrites first.
pub struct Prepared {
    pub inner: Arc<dyn TextMetric>,
    pub function: Py<PyAny>,
    pub failure: Arc<Failure>,
}

fn rewritten(function: &Py<PyAny>, text: &str, failure: &Failure) -> String {
    let text = Python::attach(|py| function.call1(py, (text,))?.extract(py));
    text.unwrap_or_else(|error| {
        failure.keep(error);
        String::new()
    })
}

impl Metric for Prepared {
    fn width(&self) -> usize {
        self.inner.width()
    }

    fn score(&self, stats: &[f64]) -> f64 {
        self.inner.score(stats)
    }

    fn gain(&self, stats: &[f64]) -> f64 {
        self.inner.gain(stats)
    }

    fn sentence_gain(&self, stats: &[f64]) -> f64 {
        self.inner.sentence_gain(stats)
    }

    fn gains(&self, base: &[f64], rows: &[f64], out: &mut Vec<f64>) {
        self.inner.gains(base, rows, out);
    }

    fn scores(&self, rows: &[f64], out: &mut Vec<f64>) {
        self.inner.scores(rows, out);
    }

    fn sentence_gains(&self, rows: &[f64], out: &mut Vec<f64>) {
        self.inner.sentence_gains(rows, out);
    }
}

impl TextMetric for Prepared {
    fn segment(&self, references: &[&str]) -> Box<dyn Segment> {
        let references: Vec<String> =
            references.iter().map(|text| rewritten(&self.function, text, &self.failure)).collect();
        let references: Vec<&str> = references.iter().map(String::as_str).collect();
        Box::new(PreparedSegment {
            inner: self.inner.segment(&references),
            function: Python::attach(|py| self.function.clone_ref(py)),
            failure: self.failure.clone(),
        })
    }
}

struct PreparedSegment {
    inner: Box<dyn Segment>,
    function: Py<PyAny>,
    failure: Arc<Failure>,
}

impl Segment for PreparedSegment {
    fn stats(&self, hypothesis: &str, out: &mut [f64]) {
        self.inner.stats(&rewritten(&self.function, hypothesis, &self.failure), out);
    }
}
