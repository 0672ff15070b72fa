//! What a learner works on: lists with their statistics, or forests with references.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tunesmith_solve::{Corpus as CoreCorpus, ForestCorpus, ListCorpus};

use crate::forest::{Forests, Segments};
use crate::metric::{Metric, Table};
use crate::pools::{Pools, fits};

#[derive(FromPyObject)]
pub enum Spaces<'py> {
    Lists(Bound<'py, Pools>),
    Forests(Bound<'py, Forests>),
}

#[derive(FromPyObject)]
pub enum Statistics<'py> {
    Known(Bound<'py, Table>),
    Asked(Bound<'py, Segments>),
}

/// The two put together.
pub enum Corpus {
    Lists(Arc<ListCorpus>),
    Forests(Arc<ForestCorpus>),
}

impl Corpus {
    /// Refuses statistics of other spaces or another metric, and too few weights.
    pub fn new(
        spaces: &Spaces<'_>,
        statistics: &Statistics<'_>,
        metric: &Metric,
        weights: usize,
    ) -> PyResult<Self> {
        match (spaces, statistics) {
            (Spaces::Lists(pools), Statistics::Known(table)) => {
                let (pools, table) = (pools.get(), table.get());
                fits(pools, table, metric, weights)?;
                let (pools, table) = (Arc::clone(pools.inner()), Arc::clone(&table.inner));
                Ok(Corpus::Lists(Arc::new(ListCorpus::new(pools, table))))
            }
            (Spaces::Forests(forests), Statistics::Asked(segments)) => {
                let (forests, corpus) = (&forests.get().inner, &segments.get().inner);
                let wrong = if !corpus.is_of(forests) {
                    "the references belong to other forests"
                } else if corpus.metric().width() != metric.inner().width() {
                    "the references belong to another metric"
                } else if weights < forests.names.len() {
                    "fewer weights than features"
                } else {
                    return Ok(Corpus::Forests(Arc::clone(corpus)));
                };
                Err(PyValueError::new_err(wrong))
            }
            _ => Err(PyValueError::new_err("lists go with a Table, forests with Segments")),
        }
    }

    pub fn shared(&self) -> Arc<dyn CoreCorpus> {
        match self {
            Corpus::Lists(lists) => Arc::clone(lists) as Arc<dyn CoreCorpus>,
            Corpus::Forests(forests) => Arc::clone(forests) as Arc<dyn CoreCorpus>,
        }
    }
}
