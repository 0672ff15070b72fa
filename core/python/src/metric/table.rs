//! `Table`: the statistics of every hypothesis of a corpus.

use std::sync::Arc;

use numpy::{AllowTypeChange, PyArray2, PyArrayLike1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use tunesmith_metric::{PlainLists, Table as CoreTable, TableBuilder, text_table};

use super::{Metric, Rows, flat, matrix, refuse, same_number};

/// Statistics of every hypothesis, equal rows of a sentence kept once.
#[pyclass(module = "tunesmith._core", frozen)]
pub struct Table {
    pub inner: Arc<CoreTable>,
    starts: Vec<usize>,
}

impl Table {
    /// `starts`: the first hypothesis of each sentence, and the end.
    pub fn new(table: CoreTable, starts: Vec<usize>) -> Self {
        Table { inner: Arc::new(table), starts }
    }

    pub fn starts(&self) -> &[usize] {
        &self.starts
    }
}

type Starts<'py> = PyArrayLike1<'py, i64, AllowTypeChange>;

fn offsets(starts: &Starts<'_>, hypotheses: usize) -> PyResult<Vec<usize>> {
    let starts: Vec<i64> = starts.as_array().iter().copied().collect();
    let whole = starts.first() == Some(&0) && starts.last() == Some(&(hypotheses as i64));
    if !whole || !starts.is_sorted() {
        let message = format!("sentence offsets that do not divide {hypotheses} hypotheses");
        return Err(refuse(message, "they start at 0, never fall, and end with the number"));
    }
    Ok(starts.into_iter().map(|start| start as usize).collect())
}

#[pymethods]
impl Table {
    /// From one row per hypothesis; `starts` has the first hypothesis of each sentence and the
    /// number of all. Refuses numbers that are not finite.
    #[staticmethod]
    fn from_rows(py: Python<'_>, starts: Starts<'_>, rows: Rows<'_>) -> PyResult<Self> {
        let (hypotheses, width) = (rows.shape()[0], rows.shape()[1]);
        let starts = offsets(&starts, hypotheses)?;
        if width == 0 {
            return Err(refuse("rows without numbers".to_owned(), "give at least one column"));
        }
        let rows = flat(&rows);
        if let Some(place) = rows.iter().position(|value| !value.is_finite()) {
            let hypothesis = place / width;
            let sentence = starts.partition_point(|&start| start <= hypothesis) - 1;
            let message = format!(
                "a statistic of hypothesis {} of sentence {} is {}",
                hypothesis - starts[sentence] + 1,
                sentence + 1,
                rows[place],
            );
            return Err(refuse(message, "give every hypothesis a finite number"));
        }
        let table = py.detach(|| {
            let mut builder = TableBuilder::new(width);
            for list in starts.windows(2) {
                let rows = &rows[list[0] * width..list[1] * width];
                rows.chunks_exact(width).for_each(|row| builder.push(row));
                builder.close();
            }
            builder.finish()
        });
        Ok(Table::new(table, starts))
    }

    /// From texts; `references[i]` are the references of sentence i.
    #[staticmethod]
    fn from_texts(
        py: Python<'_>,
        metric: &Metric,
        starts: Starts<'_>,
        texts: Vec<String>,
        references: Vec<Vec<String>>,
    ) -> PyResult<Self> {
        let text = metric.reader()?;
        let starts = offsets(&starts, texts.len())?;
        same_number(starts.len() - 1, "sentences", &references)?;
        let lists = PlainLists(&starts, |at: usize| texts[at].as_str());
        let table = py.detach(|| text_table(&*text, &lists, &references));
        metric.check()?;
        let table = table.expect("only parts of sentences may have no statistics");
        Ok(Table::new(table, starts))
    }

    /// The statistics of some sentences.
    fn subset(&self, sentences: Vec<usize>) -> PyResult<Self> {
        if sentences.iter().any(|&sentence| sentence >= self.inner.sentences()) {
            let message = "a sentence that has no statistics".to_owned();
            return Err(refuse(message, "give numbers of sentences that the table has"));
        }
        let table = self.inner.subset(&sentences, &self.starts);
        let starts = sentences.iter().scan(0, |end, &sentence| {
            *end += self.starts[sentence + 1] - self.starts[sentence];
            Some(*end)
        });
        Ok(Table::new(table, std::iter::once(0).chain(starts).collect()))
    }

    /// One row per hypothesis.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let table = &*self.inner;
        let mut rows = Vec::with_capacity(table.hypotheses() * table.width());
        for (sentence, list) in self.starts.windows(2).enumerate() {
            for hypothesis in list[0]..list[1] {
                rows.extend_from_slice(table.stats(sentence, hypothesis));
            }
        }
        matrix(py, rows, table.width())
    }

    #[getter]
    fn width(&self) -> usize {
        self.inner.width()
    }

    #[getter]
    fn hypotheses(&self) -> usize {
        self.inner.hypotheses()
    }

    #[getter]
    fn sentences(&self) -> usize {
        self.inner.sentences()
    }

    #[getter]
    fn distinct(&self) -> usize {
        self.inner.distinct()
    }
}
