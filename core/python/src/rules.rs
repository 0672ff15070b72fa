//! Aligned corpora, and tables of the rules in them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tunesmith_align::Link;
use tunesmith_rules::{
    Corpus, Entries, Frequent, HieroOptions, Imported, Kind, Lexicon, Made, Making, Node,
    PhraseOptions, Precision, Reading, Smoothing, Symbol, Table, hiero_table, phrase_table,
};
use tunesmith_text::Watch;

use crate::error::py_err;
use crate::threads;
use crate::watch::watched;

type Numbers = HashMap<&'static str, u64>;
/// Target symbols, scores, links.
type Rule = (Vec<i64>, Vec<f32>, Vec<Link>);
/// Index and depth.
type Place = (u32, u32);

/// Parallel text with word alignment.
#[pyclass(module = "tunesmith._core", frozen)]
pub struct AlignedCorpus {
    inner: Arc<Corpus>,
}

#[pymethods]
impl AlignedCorpus {
    #[new]
    #[pyo3(signature = (source, target, alignment, *, max_words=1000, skip_bad=false))]
    fn new(
        py: Python<'_>,
        source: PathBuf,
        target: PathBuf,
        alignment: PathBuf,
        max_words: usize,
        skip_bad: bool,
    ) -> PyResult<Self> {
        let reading = Reading { max_words, skip_bad };
        let corpus = py.detach(|| Corpus::read(&source, &target, &alignment, &reading));
        Ok(AlignedCorpus { inner: Arc::new(corpus.map_err(py_err)?) })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Sentences left out: reason, how many, the first of them as an error.
    #[getter]
    fn skipped(&self) -> Vec<(&'static str, u64, PyErr)> {
        let skips = self.inner.skips.iter();
        skips.map(|skip| (skip.reason, skip.count, py_err(skip.first.clone()))).collect()
    }

    /// The numbers of different source and target words.
    #[getter]
    fn words(&self) -> (usize, usize) {
        (self.inner.source.len(), self.inner.target.len())
    }

    /// Writes the word translation tables of Moses: p(source | target), p(target | source).
    #[pyo3(signature = (inverse, direct, *, threads=0))]
    fn write_lexicon(
        &self,
        py: Python<'_>,
        inverse: PathBuf,
        direct: PathBuf,
        threads: usize,
    ) -> PyResult<usize> {
        let corpus = Arc::clone(&self.inner);
        threads::run(py, threads, move || {
            let lexicon = Lexicon::estimate(&corpus, Precision::Exact);
            lexicon.write(&corpus, &inverse, &direct).map(|()| lexicon.len())
        })?
        .map_err(py_err)
    }

    /// Writes the most frequent pairs of linked words, and the words that most often have no link;
    /// gives the numbers of pairs, source and target words.
    #[pyo3(signature = (path, *, pairs, words, threads=0))]
    fn write_frequent(
        &self,
        py: Python<'_>,
        path: PathBuf,
        pairs: usize,
        words: usize,
        threads: usize,
    ) -> PyResult<(usize, usize, usize)> {
        let corpus = Arc::clone(&self.inner);
        threads::run(py, threads, move || {
            let found = Frequent::count(&corpus, pairs, words);
            found.write(&path)?;
            Ok((found.pairs.len(), found.source.len(), found.target.len()))
        })?
        .map_err(py_err)
    }

    #[pyo3(signature = (path, *, max_length, reordering, hierarchical_reordering,
                        reordering_sides, smoothing,
                        exact_lexicon, min_count, memory, threads, progress=None))]
    #[allow(clippy::too_many_arguments)] // one keyword per option, as Python has them
    fn phrase_table(
        &self,
        py: Python<'_>,
        path: PathBuf,
        max_length: usize,
        reordering: bool,
        hierarchical_reordering: bool,
        reordering_sides: bool,
        smoothing: &str,
        exact_lexicon: bool,
        min_count: u64,
        memory: usize,
        threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Numbers> {
        let smoothing = match smoothing {
            "none" => Smoothing::None,
            "good-turing" => Smoothing::GoodTuring,
            "kneser-ney" => Smoothing::KneserNey,
            _ => {
                let message = format!("no smoothing {smoothing:?}: none, good-turing, kneser-ney");
                return Err(PyValueError::new_err(message));
            }
        };
        let options =
            PhraseOptions { max_length, reordering, hierarchical_reordering, reordering_sides };
        let making = Making { memory, min_count, min_gap_count: 1 };
        let precision = if exact_lexicon { Precision::Exact } else { Precision::SevenDecimals };
        let (corpus, watch) = (&*self.inner, Watch::default());
        watched(py, &watch, progress, threads, || {
            let lexicon = Lexicon::estimate(corpus, precision);
            phrase_table(corpus, &lexicon, &options, smoothing, &making, &path, &watch)
        })?
        .map(made)
        .map_err(py_err)
    }

    #[pyo3(signature = (path, *, max_span, max_symbols, max_gaps, min_gap, adjacent_gaps, tight,
                        min_count, min_gap_count, memory, threads, progress=None))]
    #[allow(clippy::too_many_arguments)] // one keyword per option, as Python has them
    fn hiero_table(
        &self,
        py: Python<'_>,
        path: PathBuf,
        max_span: usize,
        max_symbols: usize,
        max_gaps: usize,
        min_gap: usize,
        adjacent_gaps: bool,
        tight: bool,
        min_count: u64,
        min_gap_count: u64,
        memory: usize,
        threads: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Numbers> {
        if max_gaps > 2 || max_span == 0 || max_symbols == 0 {
            return Err(PyValueError::new_err(
                "rules have one symbol at least and two gaps at most",
            ));
        }
        let options =
            HieroOptions { max_span, max_symbols, max_gaps, min_gap, adjacent_gaps, tight };
        let making = Making { memory, min_count, min_gap_count };
        let (corpus, watch) = (&*self.inner, Watch::default());
        watched(py, &watch, progress, threads, || {
            let lexicon = Lexicon::estimate(corpus, Precision::Exact);
            hiero_table(corpus, &lexicon, &options, &making, &path, &watch)
        })?
        .map(made)
        .map_err(py_err)
    }
}

fn made(made: Made) -> Numbers {
    HashMap::from([
        ("instances", made.instances),
        ("distinct", made.distinct),
        ("sources", made.sources),
        ("entries", made.entries),
        ("spilled", made.spilled),
    ])
}

fn imported(imported: Imported) -> Numbers {
    HashMap::from([
        ("sources", imported.sources),
        ("entries", imported.entries),
        ("repeated", imported.repeated),
        ("left_out", imported.left_out),
        ("missing", imported.missing),
    ])
}

/// A memory-mapped table of rules. Words are ids, the two gaps are -1 and -2.
#[pyclass(module = "tunesmith._core", frozen)]
pub struct RuleTable {
    pub inner: Arc<Table>,
}

fn symbol(number: i64) -> PyResult<Symbol> {
    match number {
        -2..=-1 => Ok(Symbol::Gap(-number as u8)),
        _ => u32::try_from(number)
            .map(Symbol::Word)
            .map_err(|_| PyValueError::new_err(format!("{number} is neither a word nor a gap"))),
    }
}

fn number(symbol: Symbol) -> i64 {
    match symbol {
        Symbol::Gap(gap) => -i64::from(gap),
        Symbol::Word(id) => id.into(),
    }
}

fn rules(entries: Entries<'_>) -> Vec<Rule> {
    let rule = |entry: tunesmith_rules::Entry<'_>| {
        (entry.target().map(number).collect(), entry.scores.to_vec(), entry.links().collect())
    };
    entries.map(rule).collect()
}

#[pymethods]
impl RuleTable {
    #[new]
    #[pyo3(signature = (path, *, verify=true))]
    fn new(py: Python<'_>, path: PathBuf, verify: bool) -> PyResult<Self> {
        let table = py.detach(|| Table::open(&path, verify)).map_err(py_err)?;
        Ok(RuleTable { inner: Arc::new(table) })
    }

    /// `phrase` or `hiero`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.inner.kind() {
            Kind::Phrase => "phrase",
            Kind::Hiero => "hiero",
        }
    }

    /// Names of the scores, and what they are: `probability`, `count` or `value`.
    #[getter]
    fn columns(&self) -> Vec<(&str, &'static str)> {
        let columns = self.inner.columns().iter();
        columns.map(|column| (&column.name[..], column.scale.name())).collect()
    }

    /// The number of source sides.
    #[getter]
    fn sources(&self) -> u64 {
        self.inner.sources()
    }

    fn __len__(&self) -> usize {
        self.inner.entry_count() as usize
    }

    /// The size of the file.
    #[getter]
    fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    fn source_id(&self, word: &str) -> Option<u32> {
        self.inner.source_id(word)
    }

    fn target_id(&self, word: &str) -> Option<u32> {
        self.inner.target_id(word)
    }

    fn source_word(&self, id: u32) -> Option<&str> {
        self.inner.source_word(id)
    }

    fn target_word(&self, id: u32) -> Option<&str> {
        self.inner.target_word(id)
    }

    /// The numbers of source and target words.
    #[getter]
    fn words(&self) -> (usize, usize) {
        (self.inner.source_words(), self.inner.target_words())
    }

    #[getter]
    fn root(&self) -> Place {
        place(self.inner.root())
    }

    /// The node after one more symbol.
    fn child(&self, node: Place, symbol: i64) -> PyResult<Option<Place>> {
        let symbol = self::symbol(symbol)?;
        Ok(self.inner.child(Node::new(node.0, node.1), symbol).map(place))
    }

    /// All symbols that go on from a node, with the nodes they lead to.
    fn children(&self, node: Place) -> Vec<(i64, Place)> {
        let children = self.inner.children(Node::new(node.0, node.1));
        children.map(|(symbol, child)| (number(symbol), place(child))).collect()
    }

    /// Target symbols, scores and links of the rules whose source side ends at a node.
    fn entries(&self, node: Place) -> Vec<Rule> {
        rules(self.inner.entries(Node::new(node.0, node.1)))
    }

    /// The same for a whole source side.
    fn lookup(&self, source: Vec<i64>) -> PyResult<Vec<Rule>> {
        let source = source.into_iter().map(symbol).collect::<PyResult<Vec<_>>>()?;
        Ok(rules(self.inner.lookup(&source)))
    }

    fn export_moses(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| tunesmith_rules::export_phrases(&self.inner, &path)).map_err(py_err)
    }

    fn export_reordering(&self, py: Python<'_>, path: PathBuf, model: &str) -> PyResult<()> {
        py.detach(|| tunesmith_rules::export_reordering(&self.inner, model, &path)).map_err(py_err)
    }

    fn export_cdec(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| tunesmith_rules::export_cdec(&self.inner, &path)).map_err(py_err)
    }
}

fn place(node: Node) -> Place {
    (node.index() as u32, node.depth() as u32)
}

/// Reads a Moses phrase table, and a reordering table, into a table at `out`.
#[pyfunction]
#[pyo3(signature = (phrases, out, reordering=None))]
fn import_moses_table(
    py: Python<'_>,
    phrases: PathBuf,
    out: PathBuf,
    reordering: Option<PathBuf>,
) -> PyResult<Numbers> {
    py.detach(|| tunesmith_rules::import_moses(&phrases, reordering.as_deref(), &out))
        .map(imported)
        .map_err(py_err)
}

/// Reads a cdec grammar into a table at `out`.
#[pyfunction]
fn import_cdec_grammar(py: Python<'_>, grammar: PathBuf, out: PathBuf) -> PyResult<Numbers> {
    py.detach(|| tunesmith_rules::import_cdec(&grammar, &out)).map(imported).map_err(py_err)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("GLUE_RULES", tunesmith_rules::GLUE)?;
    module.add_class::<AlignedCorpus>()?;
    module.add_class::<RuleTable>()?;
    module.add_function(wrap_pyfunction!(import_moses_table, module)?)?;
    module.add_function(wrap_pyfunction!(import_cdec_grammar, module)?)?;
    Ok(())
}
