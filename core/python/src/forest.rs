//! `Forests`: the forests of a corpus; `Segments`: references that score what comes out of them.

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rayon::prelude::*;
use tunesmith_solve::{ForestCorpus, Standing, forest_choices, forest_consensus};
use tunesmith_space::{Forest, Forests as CoreForests, Join, Prune, Reach};

use crate::error::py_err;
use crate::metric::Metric;
use crate::pools::Pools;
use crate::threads;

#[pyclass(frozen, module = "tunesmith._core")]
pub struct Forests {
    pub inner: Arc<CoreForests>,
}

impl Forests {
    pub fn new(inner: CoreForests) -> Self {
        Forests { inner: Arc::new(inner) }
    }

    fn forest(&self, sentence: usize) -> PyResult<&Forest> {
        self.inner.forests.get(sentence).ok_or_else(|| {
            PyIndexError::new_err(format!("sentence {sentence} of {}", self.inner.forests.len()))
        })
    }
}

/// Nodes, edges, and the logarithm (base 10) of the number of derivations.
type Sizes<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);
/// Ids and values.
type Row<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>);
/// Strings that were chosen before, their statistics, and the sum of those of all choices.
type Before<'py> = (Vec<String>, PyReadonlyArray2<'py, f64>, PyReadonlyArray1<'py, f64>);

#[pymethods]
impl Forests {
    /// Every list as a forest of whole hypotheses.
    #[staticmethod]
    fn of_lists(py: Python<'_>, pools: &Pools) -> Self {
        let pools = Arc::clone(pools.inner());
        Forests::new(py.detach(|| CoreForests::of_lists(&pools)))
    }

    #[staticmethod]
    fn load(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Self> {
        py.detach(|| CoreForests::load(path)).map(Forests::new).map_err(py_err)
    }

    fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
        py.detach(|| self.inner.save(path)).map_err(py_err)
    }

    /// The bytes that `save` writes.
    fn encoded<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.inner.encoded()))
    }

    /// The forests that `encoded` gave as bytes.
    #[staticmethod]
    fn decoded(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        py.detach(|| CoreForests::decoded(bytes, "bytes")).map(Forests::new).map_err(py_err)
    }

    /// The sentences of all parts, one part after the other.
    #[staticmethod]
    fn join(py: Python<'_>, parts: Vec<Bound<'_, Forests>>) -> Self {
        let parts: Vec<Arc<CoreForests>> =
            parts.iter().map(|part| Arc::clone(&part.get().inner)).collect();
        Forests::new(py.detach(|| {
            let mut all = CoreForests::default();
            parts.iter().for_each(|part| all.append(part.as_ref().clone()));
            all
        }))
    }

    /// The same sentences from several searches: the union of their forests.
    #[staticmethod]
    #[pyo3(signature = (parts, threads=0))]
    fn merge(py: Python<'_>, parts: Vec<Bound<'_, Forests>>, threads: usize) -> PyResult<Self> {
        let parts: Vec<Arc<CoreForests>> =
            parts.iter().map(|part| Arc::clone(&part.get().inner)).collect();
        threads::run(py, threads, move || {
            CoreForests::merge(parts.iter().map(|part| part.as_ref().clone()).collect())
        })
        .map(Forests::new)
    }

    fn subset(&self, py: Python<'_>, sentences: Vec<usize>) -> PyResult<Self> {
        sentences.iter().try_for_each(|&sentence| self.forest(sentence).map(drop))?;
        Ok(Forests::new(py.detach(|| self.inner.subset(&sentences))))
    }

    /// Features with the ids that their names have in `names`, which must have them all.
    fn renamed(&self, py: Python<'_>, names: Vec<String>) -> Self {
        Forests::new(py.detach(|| {
            let mut all = CoreForests::default();
            for name in &names {
                all.names.intern(name);
            }
            all.append(self.inner.as_ref().clone());
            all
        }))
    }

    #[getter]
    fn sentences(&self) -> usize {
        self.inner.forests.len()
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.inner.names.iter().map(str::to_owned).collect()
    }

    #[getter]
    fn heap_bytes(&self) -> usize {
        self.inner.heap_bytes()
    }

    fn sizes<'py>(&self, py: Python<'py>) -> Sizes<'py> {
        let forests = &self.inner.forests;
        let derivations: Vec<f64> = py.detach(|| forests.iter().map(Forest::derivations).collect());
        let count = |of: fn(&Forest) -> usize| -> Vec<i64> {
            forests.iter().map(|forest| of(forest) as i64).collect()
        };
        (
            count(|forest| forest.nodes()).into_pyarray(py),
            count(|forest| forest.edges().len()).into_pyarray(py),
            derivations.into_pyarray(py),
        )
    }

    /// What can be reached within `beam` of the best score, then by edges of at least a posterior,
    /// then by the best edges, so many for each word.
    #[pyo3(signature = (weights, beam=None, posterior=None, density=None, threads=0))]
    fn prune(
        &self,
        py: Python<'_>,
        weights: PyReadonlyArray1<'_, f64>,
        beam: Option<f64>,
        posterior: Option<f64>,
        density: Option<f64>,
        threads: usize,
    ) -> PyResult<Self> {
        let weights = weights.as_slice()?.to_vec();
        let forests = Arc::clone(&self.inner);
        let prune = Prune { beam, posterior, density };
        threads::run(py, threads, move || forests.prune(&weights, prune)).map(Forests::new)
    }

    /// Text and score of the best derivation of each sentence; None where there is none.
    #[pyo3(signature = (weights, threads=0))]
    fn best(
        &self,
        py: Python<'_>,
        weights: PyReadonlyArray1<'_, f64>,
        threads: usize,
    ) -> PyResult<Vec<Option<(String, f64)>>> {
        let weights = weights.as_slice()?.to_vec();
        let forests = Arc::clone(&self.inner);
        threads::run(py, threads, move || {
            let best = |forest: &Forest| {
                let best = forest.viterbi(&forest.scores(&weights))?;
                Some((forest.text(&best), best.score))
            };
            forests.forests.par_iter().map(best).collect()
        })
    }

    /// The `k` best of each sentence as lists.
    #[pyo3(signature = (weights, k, unique=true, threads=0))]
    fn kbest(
        &self,
        py: Python<'_>,
        weights: PyReadonlyArray1<'_, f64>,
        k: usize,
        unique: bool,
        threads: usize,
    ) -> PyResult<Pools> {
        let weights = weights.as_slice()?.to_vec();
        let forests = Arc::clone(&self.inner);
        threads::run(py, threads, move || forests.lists(&weights, k, unique)).map(Pools::new)
    }

    /// The string of each sentence that agrees best with all derivations; None where there is none.
    #[pyo3(signature = (weights, alpha, pops, threads=0))]
    fn consensus(
        &self,
        py: Python<'_>,
        weights: PyReadonlyArray1<'_, f64>,
        alpha: Option<f64>,
        pops: usize,
        threads: usize,
    ) -> PyResult<Vec<Option<String>>> {
        let weights = weights.as_slice()?.to_vec();
        let forests = Arc::clone(&self.inner);
        threads::run(py, threads, move || forest_consensus(&forests, &weights, alpha, pops))
    }

    /// Of each sentence the logarithm of Σ exp(α w·f) over all derivations.
    #[pyo3(signature = (weights, alpha, threads=0))]
    fn log_partition<'py>(
        &self,
        py: Python<'py>,
        weights: PyReadonlyArray1<'_, f64>,
        alpha: f64,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let weights: Vec<f64> = weights.as_slice()?.iter().map(|weight| alpha * weight).collect();
        let forests = Arc::clone(&self.inner);
        let whole = move |forest: &Forest| {
            let inside = forest.inside(&forest.scores(&weights), Join::Sum);
            forest.goal().map_or(f64::NEG_INFINITY, |goal| inside[goal])
        };
        let found: Vec<f64> =
            threads::run(py, threads, move || forests.forests.par_iter().map(whole).collect())?;
        Ok(found.into_pyarray(py))
    }

    /// Expected features of a sentence under `p ∝ exp(α w·f)`: ids and values.
    fn expectations<'py>(
        &self,
        py: Python<'py>,
        sentence: usize,
        weights: PyReadonlyArray1<'_, f64>,
        alpha: f64,
    ) -> PyResult<Row<'py>> {
        let forest = self.forest(sentence)?;
        let weights: Vec<f64> = weights.as_slice()?.iter().map(|weight| alpha * weight).collect();
        let (ids, values): (Vec<u32>, Vec<f64>) =
            py.detach(|| forest.expectations(&forest.scores(&weights)).into_iter().unzip());
        Ok((ids.into_pyarray(py), values.into_pyarray(py)))
    }
}

/// References of every sentence, ready to score the strings of its forest.
#[pyclass(frozen, module = "tunesmith._core")]
pub struct Segments {
    pub inner: Arc<ForestCorpus>,
}

#[pymethods]
impl Segments {
    #[new]
    #[pyo3(signature = (forests, metric, references, list=1500, pops=20, threads=0))]
    fn new(
        py: Python<'_>,
        forests: &Forests,
        metric: &Metric,
        references: Vec<Vec<String>>,
        list: usize,
        pops: usize,
        threads: usize,
    ) -> PyResult<Self> {
        let Some(text) = metric.text() else {
            return Err(PyValueError::new_err("this metric reads numbers, not text"));
        };
        if references.len() != forests.inner.forests.len() {
            return Err(PyValueError::new_err(format!(
                "{} forests, but references for {}",
                forests.inner.forests.len(),
                references.len()
            )));
        }
        let forests = Arc::clone(&forests.inner);
        let inner = threads::run(py, threads, move || {
            ForestCorpus::new(forests, text, &references, Reach { list, pops })
        })?;
        metric.check()?;
        Ok(Segments { inner: Arc::new(inner) })
    }

    /// Statistics of the best derivation of each sentence (zeros where there is none).
    #[pyo3(signature = (weights, threads=0))]
    fn best<'py>(
        &self,
        py: Python<'py>,
        weights: PyReadonlyArray1<'_, f64>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let weights = weights.as_slice()?.to_vec();
        let corpus = Arc::clone(&self.inner);
        let width = corpus.metric().width();
        let rows = threads::run(py, threads, move || corpus.best(&weights))?;
        let count = rows.len() / width;
        rows.into_pyarray(py).reshape([count, width])
    }

    /// The best (or worst) strings that are found: of each sentence alone, or given the strings
    /// chosen before, their statistics and the sum of the statistics of all choices.
    #[pyo3(signature = (weights, best=true, before=None, threads=0))]
    fn choices(
        &self,
        py: Python<'_>,
        weights: PyReadonlyArray1<'_, f64>,
        best: bool,
        before: Option<Before<'_>>,
        threads: usize,
    ) -> PyResult<Vec<String>> {
        let weights = weights.as_slice()?.to_vec();
        let corpus = Arc::clone(&self.inner);
        let width = corpus.metric().width();
        let before = match before {
            None => None,
            Some((texts, rows, total)) => {
                let (rows, total) = (rows.as_slice()?.to_vec(), total.as_slice()?.to_vec());
                let count = corpus.forests().len();
                if texts.len() != count || rows.len() != count * width || total.len() != width {
                    return Err(PyValueError::new_err("choices of other sentences"));
                }
                Some((texts, rows, total))
            }
        };
        threads::run(py, threads, move || {
            let chosen =
                before.as_ref().map(|(texts, rows, total)| Standing { texts, rows, total });
            forest_choices(&corpus, &weights, best, chosen)
        })
    }
}
