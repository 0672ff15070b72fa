//! `Pools`: candidate lists of a corpus.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use tunesmith_metric::{Lists, PlainLists, text_table};
use tunesmith_solve::Likeness;
use tunesmith_space::{Hypothesis, Pools as CorePools, PoolsBuilder};

use crate::error::py_err;
use crate::metric::{Metric, Table};
use crate::threads;

/// Numbers of lists and features, Σ x and Σ x² of each.
type Cells<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
);

/// Refuses statistics of other lists or another metric, and too few weights.
pub fn fits(pools: &Pools, table: &Table, metric: &Metric, weights: usize) -> PyResult<()> {
    let (lists, rows) = (pools.inner(), &table.inner);
    let wrong = if rows.sentences() != lists.sentences() || rows.hypotheses() != lists.hypotheses()
    {
        "the statistics belong to other lists"
    } else if rows.width() != metric.inner().width() {
        "the statistics belong to another metric"
    } else if weights < lists.names.len() {
        "fewer weights than features"
    } else {
        return Ok(());
    };
    Err(PyValueError::new_err(wrong))
}

/// Positions of choices, and the sum of their statistics.
type Exchanged<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);
/// Row starts, ids and values.
type Csr<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f32>>);

#[pyclass(frozen, module = "tunesmith._core")]
pub struct Pools {
    inner: OnceLock<Arc<CorePools>>,
    /// What it is made of when it is first asked for: a learner that takes what was decoded has
    /// ids of its own, and needs no others before.
    parts: Mutex<Option<Parts>>,
}

/// Lists with names of features of their own, and the features that come first.
#[derive(Default)]
pub struct Parts {
    pub dense: Vec<String>,
    pub lists: Vec<PoolsBuilder>,
}

impl Pools {
    pub fn new(inner: CorePools) -> Self {
        Pools { inner: OnceLock::from(Arc::new(inner)), parts: Mutex::default() }
    }

    /// Lists in order; their features get common ids.
    pub fn of_parts(parts: Parts) -> Self {
        Pools { inner: OnceLock::new(), parts: Mutex::new(Some(parts)) }
    }

    pub fn inner(&self) -> &Arc<CorePools> {
        self.inner.get_or_init(|| {
            let Parts { dense, lists } = self.parts().take().unwrap_or_default();
            let mut all = PoolsBuilder::default();
            for name in &dense {
                all.names.intern(name);
            }
            lists.iter().for_each(|list| all.append(list));
            Arc::new(all.finish())
        })
    }

    /// What the lists are made of, as long as nobody has asked for common ids.
    pub fn parts(&self) -> MutexGuard<'_, Option<Parts>> {
        self.parts.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The given positions, each checked.
    fn places<'a>(
        &'a self,
        positions: &'a PyReadonlyArray1<'_, i64>,
    ) -> PyResult<impl Iterator<Item = PyResult<usize>> + 'a> {
        let places = positions.as_slice()?.iter();
        Ok(places.map(|&position| match usize::try_from(position) {
            Ok(place) if place < self.inner().hypotheses() => Ok(place),
            _ => Err(PyIndexError::new_err(format!("hypothesis {position}"))),
        }))
    }

    fn check(&self, sentence: usize) -> PyResult<()> {
        if sentence < self.inner().sentences() {
            Ok(())
        } else {
            Err(PyIndexError::new_err(format!(
                "sentence {sentence} of {}",
                self.inner().sentences()
            )))
        }
    }
}

/// Bins as statistics see them.
struct Bins<'p> {
    pools: &'p CorePools,
    /// Of each line, where translations are held against a part of the references.
    words: Option<Vec<usize>>,
}

impl Lists for Bins<'_> {
    fn starts(&self) -> &[usize] {
        self.pools.starts()
    }

    fn of_line(&self, line: usize) -> Range<usize> {
        self.pools.lists(line)
    }

    fn text(&self, hypothesis: usize) -> (Cow<'_, str>, Option<f64>) {
        let Some(words) = &self.words else { return (self.pools.whole(hypothesis).into(), None) };
        let list = self.pools.starts().partition_point(|&start| start <= hypothesis) - 1;
        let all = words[self.pools.line(list)].max(1);
        let share = self.pools.covered(hypothesis) as f64 / all as f64;
        (self.pools.text(hypothesis).into(), Some(share))
    }
}

#[pymethods]
impl Pools {
    /// From arrays: `starts` (S+1), texts (H), features as CSR over `names`; and what a list may
    /// have besides: scores, columns by name, extras (H each), keys (S); for bins the line of each
    /// list (S).
    #[staticmethod]
    #[pyo3(signature = (starts, texts, rows, ids, values, names, scores=None, columns=Vec::new(),
        keys=Vec::new(), extras=Vec::new(), lines=Vec::new()))]
    #[allow(clippy::too_many_arguments)]
    fn from_arrays(
        starts: PyReadonlyArray1<'_, i64>,
        texts: Vec<String>,
        rows: PyReadonlyArray1<'_, i64>,
        ids: PyReadonlyArray1<'_, i64>,
        values: PyReadonlyArray1<'_, f64>,
        names: Vec<String>,
        scores: Option<PyReadonlyArray1<'_, f64>>,
        columns: Vec<(String, Vec<f64>)>,
        keys: Vec<String>,
        extras: Vec<String>,
        lines: Vec<usize>,
    ) -> PyResult<Self> {
        let starts = starts.as_slice()?;
        let (rows, ids, values) = (rows.as_slice()?, ids.as_slice()?, values.as_slice()?);
        let wrong = |what: &str| Err(PyValueError::new_err(what.to_owned()));
        let ascending = |offsets: &[i64], end: usize| {
            offsets.first() == Some(&0)
                && offsets.last() == Some(&(end as i64))
                && offsets.is_sorted()
        };
        if !ascending(starts, texts.len()) {
            return wrong("starts must ascend from 0 to the number of hypotheses");
        }
        if rows.len() != texts.len() + 1 || !ascending(rows, ids.len()) {
            return wrong("rows must ascend from 0 to the number of features, one per hypothesis");
        }
        if ids.len() != values.len() {
            return wrong("ids and values differ in length");
        }
        if ids.iter().any(|&id| id < 0 || id >= names.len() as i64) {
            return wrong("a feature id without a name");
        }
        if values.iter().any(|value| !(*value as f32).is_finite()) {
            return wrong("feature values must be finite");
        }
        if columns.iter().any(|(_, column)| column.len() != texts.len())
            || !(extras.is_empty() || extras.len() == texts.len())
            || !(keys.is_empty() || keys.len() + 1 == starts.len())
        {
            return wrong("columns and extras want a value per hypothesis, keys one per sentence");
        }
        let in_order = lines.first().is_none_or(|&first| first == 0)
            && lines.windows(2).all(|pair| pair[1] == pair[0] || pair[1] == pair[0] + 1);
        if !(lines.is_empty() || keys.is_empty() && lines.len() + 1 == starts.len() && in_order) {
            return wrong("lines want one number per list, from 0 on, without gaps; and no keys");
        }
        let scores = scores.as_ref().map(|scores| scores.as_slice()).transpose()?;
        if scores.is_some_and(|scores| scores.len() != texts.len()) {
            return wrong("scores want a value per hypothesis");
        }
        let mut builder = PoolsBuilder::default();
        for name in &names {
            builder.names.intern(name);
        }
        for (name, _) in &columns {
            builder.columns.intern(name);
        }
        if builder.names.len() != names.len() || builder.columns.len() != columns.len() {
            return wrong("a feature or a column is given twice");
        }
        let mut features: Vec<(u32, f32)> = Vec::new();
        let mut cells: Vec<f64> = Vec::new();
        for (sentence, window) in starts.windows(2).enumerate() {
            match lines.get(sentence) {
                Some(&line) => builder.bin(line),
                None => builder.sentence(keys.get(sentence).map(String::as_str)),
            }
            for hypothesis in window[0] as usize..window[1] as usize {
                features.clear();
                cells.clear();
                cells.extend(columns.iter().map(|(_, column)| column[hypothesis]));
                for entry in rows[hypothesis] as usize..rows[hypothesis + 1] as usize {
                    features.push((ids[entry] as u32, values[entry] as f32));
                }
                features.sort_unstable_by_key(|&(id, _)| id);
                if features.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                    return wrong("a hypothesis has a feature twice");
                }
                builder.push(Hypothesis {
                    text: &texts[hypothesis],
                    features: &features,
                    score: scores.map(|scores| scores[hypothesis]),
                    extra: extras.get(hypothesis).map_or("", String::as_str),
                    columns: &cells,
                    ..Hypothesis::default()
                });
            }
        }
        Ok(Pools::new(builder.finish()))
    }

    /// Joins the lists of the same sentences, equal hypotheses kept once.
    #[staticmethod]
    fn merge(py: Python<'_>, parts: Vec<PyRef<'_, Pools>>) -> PyResult<Self> {
        let parts: Vec<Arc<CorePools>> =
            parts.iter().map(|part| Arc::clone(part.inner())).collect();
        let merged = py.detach(|| {
            let parts: Vec<&CorePools> = parts.iter().map(AsRef::as_ref).collect();
            CorePools::merge(&parts)
        });
        merged.map(Pools::new).map_err(py_err)
    }

    /// The same lists with further features: names, and a value for each hypothesis.
    fn extended(
        &self,
        py: Python<'_>,
        more: Vec<(String, PyReadonlyArray1<'_, f32>)>,
    ) -> PyResult<Self> {
        let count = self.inner().hypotheses();
        let mut columns: Vec<(&str, Vec<f32>)> = Vec::with_capacity(more.len());
        for (name, values) in &more {
            let values = values.as_slice()?;
            if values.len() != count || !values.iter().all(|value| value.is_finite()) {
                return Err(PyValueError::new_err(format!(
                    "{name} needs a finite value for each of {count} hypotheses"
                )));
            }
            columns.push((name, values.to_vec()));
        }
        let pools = Arc::clone(self.inner());
        py.detach(|| pools.extended(&columns)).map(Pools::new).map_err(py_err)
    }

    fn subset(&self, py: Python<'_>, sentences: Vec<usize>) -> PyResult<Self> {
        sentences.iter().try_for_each(|&sentence| self.check(sentence))?;
        Ok(Pools::new(py.detach(|| self.inner().subset(&sentences))))
    }

    /// Lists of one hypothesis each, or of none where the position is -1.
    fn picked(&self, positions: PyReadonlyArray1<'_, i64>) -> PyResult<Self> {
        let pools = self.inner();
        let positions = positions.as_slice()?;
        if positions.len() != pools.sentences() {
            return Err(PyValueError::new_err("one position for each list"));
        }
        let place = |(list, &position): (usize, &i64)| match usize::try_from(position) {
            Ok(place) if pools.list(list).contains(&place) => Ok(Some(place)),
            Err(_) if position == -1 => Ok(None),
            _ => Err(PyIndexError::new_err(format!("hypothesis {position} of list {list}"))),
        };
        let places: Vec<_> = positions.iter().enumerate().map(place).collect::<PyResult<_>>()?;
        Ok(Pools::new(pools.picked(&places)))
    }

    #[getter]
    fn sentences(&self) -> usize {
        match &*self.parts() {
            Some(parts) => parts.lists.iter().map(PoolsBuilder::sentences).sum(),
            None => self.inner().sentences(),
        }
    }

    #[getter]
    fn hypotheses(&self) -> usize {
        self.inner().hypotheses()
    }

    #[getter]
    fn nonzeros(&self) -> usize {
        self.inner().nonzeros()
    }

    /// Hypotheses whose text is the first of its kind in their list.
    #[getter]
    fn distinct_texts(&self) -> usize {
        (0..self.inner().sentences())
            .map(|sentence| {
                let classes = self.inner().classes(sentence).iter().enumerate();
                classes.filter(|&(place, &class)| place == class as usize).count()
            })
            .sum()
    }

    #[getter]
    fn heap_bytes(&self) -> usize {
        self.inner().heap_bytes()
    }

    #[getter]
    fn names(&self) -> Vec<String> {
        self.inner().names.iter().map(str::to_owned).collect()
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.inner().columns.iter().map(str::to_owned).collect()
    }

    #[getter]
    fn keys(&self) -> Vec<String> {
        self.inner().keys.clone()
    }

    /// The line of each list: several have the same where they are the bins of a search.
    #[getter]
    fn lines<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let pools = self.inner();
        let lines = (0..pools.sentences()).map(|list| pools.line(list) as i64);
        lines.collect::<Vec<_>>().into_pyarray(py)
    }

    #[getter]
    fn starts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.inner().starts().iter().map(|&start| start as i64).collect::<Vec<_>>().into_pyarray(py)
    }

    #[getter]
    fn scores<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner().scores().to_vec().into_pyarray(py)
    }

    /// Features in compressed rows: `(rows, ids, values)`.
    fn csr<'py>(&self, py: Python<'py>) -> Csr<'py> {
        (
            self.inner().rows().iter().map(|&row| row as i64).collect::<Vec<_>>().into_pyarray(py),
            self.inner().ids().collect::<Vec<_>>().into_pyarray(py),
            self.inner().values().to_vec().into_pyarray(py),
        )
    }

    /// Sums within lists, a cell per list and feature that occurs in the list.
    fn cells<'py>(&self, py: Python<'py>) -> Cells<'py> {
        let cells = py.detach(|| self.inner().cells());
        let lists: Vec<i64> = cells.lists.into_iter().map(|list| list as i64).collect();
        (
            lists.into_pyarray(py),
            cells.ids.into_pyarray(py),
            cells.sums.into_pyarray(py),
            cells.squares.into_pyarray(py),
        )
    }

    /// Σ x xᵀ over all hypotheses, where x is a difference to the mean of its list.
    fn gram<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let width = self.inner().names.len();
        let gram = py.detach(|| self.inner().gram());
        gram.into_pyarray(py).reshape([width, width])
    }

    /// Values of a named column; NaN where missing.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyArray1<f64>>> {
        match self.inner().columns.id(name) {
            Some(column) => {
                Ok(self.inner().column(column as usize).collect::<Vec<_>>().into_pyarray(py))
            }
            None => Err(PyIndexError::new_err(format!("no column named {name}"))),
        }
    }

    /// Texts of the hypotheses at the given positions of the whole.
    fn texts(&self, positions: PyReadonlyArray1<'_, i64>) -> PyResult<Vec<&str>> {
        let pools = self.inner();
        self.places(&positions)?.map(|place| Ok(pools.text(place?))).collect()
    }

    /// The whole translations that partial ones at the given positions may become.
    fn wholes(&self, positions: PyReadonlyArray1<'_, i64>) -> PyResult<Vec<String>> {
        let pools = self.inner();
        self.places(&positions)?.map(|place| Ok(pools.whole(place?))).collect()
    }

    /// Whatever the format keeps behind the score of a hypothesis.
    fn extra(&self, position: usize) -> PyResult<&str> {
        if position < self.inner().hypotheses() {
            Ok(self.inner().extra(position))
        } else {
            Err(PyIndexError::new_err(format!("hypothesis {position}")))
        }
    }

    /// The texts of all hypotheses, or what the format keeps behind their scores, each with a line
    /// break behind it.
    #[pyo3(signature = (extras=false))]
    fn packed<'py>(&self, py: Python<'py>, extras: bool) -> Bound<'py, PyArray1<u8>> {
        let pools = self.inner();
        let mut bytes = Vec::new();
        for hypothesis in 0..pools.hypotheses() {
            let text = if extras { pools.extra(hypothesis) } else { pools.text(hypothesis) };
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(b'\n');
        }
        bytes.into_pyarray(py)
    }

    /// Features of one hypothesis by name.
    fn features(&self, position: usize) -> PyResult<Vec<(&str, f32)>> {
        if position >= self.inner().hypotheses() {
            return Err(PyIndexError::new_err(format!("hypothesis {position}")));
        }
        let (ids, values) = self.inner().features(position);
        Ok(ids
            .iter()
            .zip(values)
            .map(|(&id, &value)| (self.inner().names.name(id).unwrap_or_default(), value))
            .collect())
    }

    /// Model scores of all hypotheses.
    #[pyo3(signature = (weights, threads=0))]
    fn dot<'py>(
        &self,
        py: Python<'py>,
        weights: PyReadonlyArray1<'_, f64>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        use rayon::prelude::*;
        let weights = weights.as_slice()?.to_vec();
        let pools = Arc::clone(self.inner());
        let scores = threads::run(py, threads, move || {
            (0..pools.sentences())
                .into_par_iter()
                .flat_map_iter(|sentence| {
                    let mut scores = Vec::new();
                    pools.dot(sentence, &weights, &mut scores);
                    scores
                })
                .collect::<Vec<f64>>()
        })?;
        Ok(scores.into_pyarray(py))
    }

    /// Position of each sentence's best hypothesis, -1 for an empty list.
    #[pyo3(signature = (weights, threads=0))]
    fn best<'py>(
        &self,
        py: Python<'py>,
        weights: PyReadonlyArray1<'_, f64>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let weights = weights.as_slice()?.to_vec();
        let pools = Arc::clone(self.inner());
        let best = threads::run(py, threads, move || pools.best(&weights))?;
        Ok(best
            .into_iter()
            .map(|best| if best == usize::MAX { -1 } else { best as i64 })
            .collect::<Vec<_>>()
            .into_pyarray(py))
    }

    /// Statistics of every hypothesis; `references[i]` are the references of line i. Partial
    /// translations in bins count as the whole ones that they may become; or with `words`, the
    /// number of words of each line, as translations of a part of it. `None` where the metric cannot
    /// score parts.
    #[pyo3(signature = (metric, references, threads=0, words=None))]
    fn table(
        &self,
        py: Python<'_>,
        metric: &Metric,
        references: Vec<Vec<String>>,
        threads: usize,
        words: Option<Vec<usize>>,
    ) -> PyResult<Option<Table>> {
        let Some(text) = metric.text() else {
            return Err(PyValueError::new_err("this metric reads numbers, not text"));
        };
        let lines = self.inner().lines();
        for (given, what) in [
            (references.len(), "references"),
            (words.as_ref().map_or(lines, Vec::len), "numbers of words"),
        ] {
            if given != lines {
                return Err(PyValueError::new_err(format!("{lines} lines, but {given} {what}")));
            }
        }
        let pools = Arc::clone(self.inner());
        let table = threads::run(py, threads, move || match pools.is_binned() {
            true => text_table(&*text, &Bins { pools: &pools, words }, &references),
            false => {
                let lists = PlainLists(pools.starts(), |at| pools.text(at));
                text_table(&*text, &lists, &references)
            }
        })?;
        metric.check()?;
        Ok(table.map(|table| Table::new(table, self.inner().starts().to_vec())))
    }

    /// Statistics of one chosen hypothesis per sentence (zeros where the choice is -1).
    fn take<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        positions: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let table = Arc::clone(&table.inner);
        let positions = positions.as_slice()?;
        if positions.len() != self.inner().sentences()
            || table.hypotheses() != self.inner().hypotheses()
        {
            return Err(PyValueError::new_err("one choice per sentence of the same lists"));
        }
        let mut rows = Vec::with_capacity(positions.len() * table.width());
        for (sentence, &position) in positions.iter().enumerate() {
            if position >= 0 && self.inner().list(sentence).contains(&(position as usize)) {
                rows.extend_from_slice(table.stats(sentence, position as usize));
            } else if position == -1 {
                rows.resize(rows.len() + table.width(), 0.0);
            } else {
                return Err(PyIndexError::new_err(format!(
                    "hypothesis {position} is not of sentence {sentence}"
                )));
            }
        }
        rows.into_pyarray(py).reshape([positions.len(), table.width()])
    }

    /// Positions of the best (or worst) hypothesis of each list alone, -1 for an empty one.
    fn best_alone<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        metric: &Metric,
        best: bool,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        fits(self, table, metric, usize::MAX)?;
        let (pools, table, native) =
            (Arc::clone(self.inner()), Arc::clone(&table.inner), metric.inner());
        let work = || tunesmith_solve::best_alone(&pools, &table, native.as_ref(), best);
        let chosen = py.detach(work);
        metric.check()?;
        Ok(chosen.into_pyarray(py))
    }

    /// How far each hypothesis agrees with the others of its list, by words or by characters.
    #[pyo3(signature = (by_words, threads=0))]
    fn agreement<'py>(
        &self,
        py: Python<'py>,
        by_words: bool,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let likeness = if by_words { Likeness::Words } else { Likeness::Characters };
        let pools = Arc::clone(self.inner());
        let work = move || tunesmith_solve::agreement(&pools, likeness);
        Ok(threads::run(py, threads, work)?.into_pyarray(py))
    }

    /// Positions and the sum of all statistics after one exchange in each list from `first` on,
    /// given both as they are before.
    #[allow(clippy::too_many_arguments)]
    fn exchange<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        metric: &Metric,
        best: bool,
        first: usize,
        positions: PyReadonlyArray1<'_, i64>,
        total: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Exchanged<'py>> {
        fits(self, table, metric, usize::MAX)?;
        let mut chosen = positions.as_slice()?.to_vec();
        let mut total = total.as_slice()?.to_vec();
        let (pools, table, native) =
            (Arc::clone(self.inner()), Arc::clone(&table.inner), metric.inner());
        let own = |(list, &position): (usize, &i64)| {
            position == -1
                || usize::try_from(position).is_ok_and(|place| pools.list(list).contains(&place))
        };
        if total.len() != native.width()
            || first + chosen.len() > pools.sentences()
            || !(first..).zip(&chosen).all(own)
        {
            return Err(PyValueError::new_err("choices of other lists"));
        }
        py.detach(|| {
            let metric = native.as_ref();
            tunesmith_solve::exchange(&pools, &table, metric, best, first, &mut chosen, &mut total);
        });
        metric.check()?;
        Ok((chosen.into_pyarray(py), total.into_pyarray(py)))
    }

    /// Positions of the hypotheses that agree best with the list, -1 for an empty one.
    #[pyo3(signature = (weights, alpha, threads=0))]
    fn consensus<'py>(
        &self,
        py: Python<'py>,
        weights: PyReadonlyArray1<'_, f64>,
        alpha: Option<f64>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let weights = weights.as_slice()?.to_vec();
        let pools = Arc::clone(self.inner());
        let work = move || tunesmith_solve::consensus(&pools, &weights, alpha);
        Ok(threads::run(py, threads, work)?.into_pyarray(py))
    }
}
