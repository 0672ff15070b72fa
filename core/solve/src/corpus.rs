//! Where the search spaces of a corpus come from.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tunesmith_metric::{Metric, Segment, Table, TextMetric};
use tunesmith_space::{
    Forest, ForestSpace, Forests, GramSearch, PoolSpace, Pools, Reach, Space, Unfolded,
};

use crate::gain::Worth;

/// The search spaces of a corpus. A line has one space, or one for each bin of its search.
pub trait Corpus: Send + Sync {
    /// Number of spaces.
    fn sentences(&self) -> usize;

    /// Number of lines.
    fn lines(&self) -> usize {
        self.sentences()
    }

    /// The line of a space.
    fn line(&self, sentence: usize) -> usize {
        sentence
    }

    /// The spaces of a line: of several, the last is that of whole translations.
    fn of_line(&self, line: usize) -> Range<usize> {
        line..line + 1
    }

    /// There is no hypothesis.
    fn is_blank(&self, sentence: usize) -> bool;

    /// The space of a sentence with gains as the worth has them.
    fn space<'a>(&'a self, sentence: usize, worth: Worth) -> Box<dyn Space + 'a>;

    /// Whether which hypotheses there are depends on the weights.
    fn is_searched(&self) -> bool;

    /// Shows the ids of all features that a sentence has.
    fn ids(&self, sentence: usize, show: &mut dyn FnMut(&[u32]));

    /// Statistics and number of words of what stands for a sentence at the start: the first-ranked
    /// hypothesis of a list, the best of a forest.
    fn first(&self, sentence: usize, weights: &[f64]) -> Option<(Vec<f64>, usize)>;
}

/// Lists, and the statistics of their hypotheses.
pub struct ListCorpus {
    pub pools: Arc<Pools>,
    pub table: Arc<Table>,
    /// The gain of each row of the table alone.
    alone: OnceLock<Vec<f64>>,
}

impl ListCorpus {
    pub fn new(pools: Arc<Pools>, table: Arc<Table>) -> Self {
        ListCorpus { pools, table, alone: OnceLock::new() }
    }

    fn alone(&self, sentence: usize, worth: &Worth) -> &[f64] {
        let alone = self.alone.get_or_init(|| {
            let mut all = Vec::with_capacity(self.table.distinct());
            let mut gains = Vec::new();
            for sentence in 0..self.table.sentences() {
                worth.metric().sentence_gains(self.table.rows(sentence), &mut gains);
                all.extend_from_slice(&gains);
            }
            all
        });
        &alone[self.table.range(sentence)]
    }
}

impl Corpus for ListCorpus {
    fn sentences(&self) -> usize {
        self.pools.sentences()
    }

    fn lines(&self) -> usize {
        self.pools.lines()
    }

    fn line(&self, sentence: usize) -> usize {
        self.pools.line(sentence)
    }

    fn of_line(&self, line: usize) -> Range<usize> {
        self.pools.lists(line)
    }

    fn is_blank(&self, sentence: usize) -> bool {
        self.pools.list(sentence).is_empty()
    }

    fn space<'a>(&'a self, sentence: usize, worth: Worth) -> Box<dyn Space + 'a> {
        let mut gains = Vec::new();
        match worth.scale_alone() {
            Some(scale) => {
                gains.extend(self.alone(sentence, &worth).iter().map(|gain| gain * scale));
            }
            None => worth.gains(self.table.rows(sentence), &mut gains),
        }
        Box::new(PoolSpace::new(&self.pools, &self.table, sentence, &gains))
    }

    fn is_searched(&self) -> bool {
        false
    }

    fn ids(&self, sentence: usize, show: &mut dyn FnMut(&[u32])) {
        self.pools.list(sentence).for_each(|hypothesis| show(self.pools.features(hypothesis).0));
    }

    fn first(&self, sentence: usize, _weights: &[f64]) -> Option<(Vec<f64>, usize)> {
        let first = self.pools.list(sentence).next()?;
        let words = self.pools.text(first).split_whitespace().count();
        Some((self.table.stats(sentence, first).to_vec(), words))
    }
}

/// What a decoder has just found for some lines of a larger corpus. There is nothing at the others.
pub struct PartCorpus {
    part: Arc<dyn Corpus>,
    /// The number of each line of the part in the larger corpus.
    numbers: Vec<u32>,
    /// Where in the part these are.
    places: FxHashMap<usize, usize>,
    lines: usize,
}

impl PartCorpus {
    /// `numbers[i]` is the number of the part's line i among `lines`.
    pub fn new(part: Arc<dyn Corpus>, numbers: &[u32], lines: usize) -> Self {
        let numbered = numbers.iter().enumerate();
        let places = numbered.map(|(place, &number)| (number as usize, place)).collect();
        PartCorpus { part, numbers: numbers.to_vec(), places, lines }
    }
}

impl Corpus for PartCorpus {
    fn sentences(&self) -> usize {
        self.part.sentences()
    }

    fn lines(&self) -> usize {
        self.lines
    }

    fn line(&self, sentence: usize) -> usize {
        self.numbers[self.part.line(sentence)] as usize
    }

    fn of_line(&self, line: usize) -> Range<usize> {
        self.places.get(&line).map_or(0..0, |&place| self.part.of_line(place))
    }

    fn is_blank(&self, sentence: usize) -> bool {
        self.part.is_blank(sentence)
    }

    fn space<'a>(&'a self, sentence: usize, worth: Worth) -> Box<dyn Space + 'a> {
        self.part.space(sentence, worth)
    }

    fn is_searched(&self) -> bool {
        self.part.is_searched()
    }

    fn ids(&self, sentence: usize, show: &mut dyn FnMut(&[u32])) {
        self.part.ids(sentence, show);
    }

    fn first(&self, sentence: usize, weights: &[f64]) -> Option<(Vec<f64>, usize)> {
        self.part.first(sentence, weights)
    }
}

/// Forests, and references that score whatever string comes out of them.
pub struct ForestCorpus {
    forests: Arc<Forests>,
    metric: Arc<dyn TextMetric>,
    segments: Vec<Box<dyn Segment>>,
    /// Which have no derivation.
    blank: Vec<bool>,
    reach: Reach,
}

impl ForestCorpus {
    /// `references[i]` belong to sentence i.
    pub fn new(
        forests: Arc<Forests>,
        metric: Arc<dyn TextMetric>,
        references: &[Vec<String>],
        reach: Reach,
    ) -> Self {
        assert_eq!(forests.forests.len(), references.len(), "forests without references");
        let segment = |references: &Vec<String>| {
            let references: Vec<&str> = references.iter().map(String::as_str).collect();
            metric.segment(&references)
        };
        let segments = references.par_iter().map(segment).collect();
        let blank = |forest: &Forest| forest.derivations() == f64::NEG_INFINITY;
        let blank = forests.forests.par_iter().map(blank).collect();
        ForestCorpus { forests, metric, segments, blank, reach }
    }

    pub fn forests(&self) -> &[Forest] {
        &self.forests.forests
    }

    /// The forests, to be kept.
    pub fn shared(&self) -> Arc<Forests> {
        Arc::clone(&self.forests)
    }

    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// All forests unfolded under some weights; nothing if the metric is not one of n-grams.
    pub fn unfold(&self, weights: &[f64]) -> Option<Vec<Unfolded>> {
        let width = self.metric.width();
        let unfold = |sentence: usize| {
            let forest = &self.forests()[sentence];
            let search = GramSearch::new(forest, self.segments[sentence].grams()?, width);
            Some(search.unfold(&forest.scores(weights), self.reach.pops))
        };
        (0..self.segments.len()).into_par_iter().map(unfold).collect()
    }

    /// Whether these are the forests.
    pub fn is_of(&self, forests: &Arc<Forests>) -> bool {
        Arc::ptr_eq(&self.forests, forests)
    }

    pub fn metric(&self) -> &dyn Metric {
        self.metric.as_ref()
    }

    /// Statistics of the best derivation of each sentence, zeros where there is none.
    pub fn best(&self, weights: &[f64]) -> Vec<f64> {
        let width = self.metric.width();
        let mut rows = vec![0.0; self.forests().len() * width];
        rows.par_chunks_exact_mut(width).enumerate().for_each(|(sentence, row)| {
            let forest = &self.forests()[sentence];
            if let Some(best) = forest.viterbi(&forest.scores(weights)) {
                self.stats(sentence, &forest.text(&best), row);
            }
        });
        rows
    }

    /// The metric as one of numbers.
    pub fn numbers(&self) -> Arc<dyn Metric> {
        Arc::clone(&self.metric) as Arc<dyn Metric>
    }

    pub fn forest_space(&self, sentence: usize, worth: Worth) -> ForestSpace<'_> {
        ForestSpace::new(
            &self.forests()[sentence],
            self.segments[sentence].as_ref(),
            self.metric.width(),
            Box::new(move |row| worth.gain(row)),
            self.reach,
        )
    }

    /// Writes the statistics of a string of a sentence over `out`.
    pub fn stats(&self, sentence: usize, text: &str, out: &mut [f64]) {
        self.segments[sentence].stats(text, out);
    }
}

impl Corpus for ForestCorpus {
    fn sentences(&self) -> usize {
        self.forests().len()
    }

    fn is_blank(&self, sentence: usize) -> bool {
        self.blank[sentence]
    }

    fn space<'a>(&'a self, sentence: usize, worth: Worth) -> Box<dyn Space + 'a> {
        Box::new(self.forest_space(sentence, worth))
    }

    fn is_searched(&self) -> bool {
        true
    }

    fn ids(&self, sentence: usize, show: &mut dyn FnMut(&[u32])) {
        let forest = &self.forests()[sentence];
        (0..forest.rules() as u32).for_each(|rule| show(forest.rule(rule).0));
        (0..forest.edges().len()).for_each(|edge| show(forest.own(edge).0));
    }

    fn first(&self, sentence: usize, weights: &[f64]) -> Option<(Vec<f64>, usize)> {
        let forest = &self.forests()[sentence];
        let text = forest.text(&forest.viterbi(&forest.scores(weights))?);
        let mut row = vec![0.0; self.metric.width()];
        self.stats(sentence, &text, &mut row);
        Some((row, text.split_whitespace().count()))
    }
}
