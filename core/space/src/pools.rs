//! The hypotheses of every sentence of a corpus: strings, sparse features, scores and columns.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::OnceLock;

use rustc_hash::{FxHashMap, FxHasher};
use tunesmith_text::{Error, Names, Result};

use crate::columns::Columns;
use crate::texts::Texts;

/// One hypothesis on its way into a [`PoolsBuilder`].
#[derive(Debug, Clone, Default)]
pub struct Hypothesis<'a> {
    pub text: &'a str,
    /// Feature ids of the builder's names; need not be sorted, must be distinct and finite.
    pub features: &'a [(u32, f32)],
    /// The total score the file gives, if any.
    pub score: Option<f64>,
    /// Whatever the format keeps behind the score (an alignment), returned untouched.
    pub extra: &'a str,
    /// One value per column of the builder, in its order; shorter means missing.
    pub columns: &'a [f64],
}

/// Candidate lists of a corpus. Hypotheses of a sentence are contiguous and keep the order in
/// which they came, so the first is the first-ranked. A sentence may have none.
#[derive(Debug, Clone, Default)]
pub struct Pools {
    pub names: Names,
    pub columns: Names,
    /// A label per sentence where the format has one (an utterance id); empty otherwise.
    pub keys: Vec<String>,
    starts: Vec<usize>,
    rows: Vec<usize>,
    ids: Vec<u32>,
    values: Vec<f32>,
    texts: Texts,
    scores: Vec<f64>,
    extras: Texts,
    cells: Vec<f64>,
    uniform: Vec<bool>,
    classes: OnceLock<Vec<u32>>,
}

impl Pools {
    pub fn sentences(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub fn hypotheses(&self) -> usize {
        self.scores.len()
    }

    pub fn nonzeros(&self) -> usize {
        self.ids.len()
    }

    /// The hypotheses of a sentence, as positions in the whole.
    pub fn list(&self, sentence: usize) -> Range<usize> {
        self.starts[sentence]..self.starts[sentence + 1]
    }

    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Features of a hypothesis: ids in ascending order, and their values.
    pub fn features(&self, hypothesis: usize) -> (&[u32], &[f32]) {
        let range = self.rows[hypothesis]..self.rows[hypothesis + 1];
        (&self.ids[range.clone()], &self.values[range])
    }

    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    pub fn values(&self) -> &[f32] {
        &self.values
    }

    pub fn text(&self, hypothesis: usize) -> &str {
        self.texts.get(hypothesis)
    }

    /// For each hypothesis of a sentence the place in the list of the first with the same text.
    pub fn classes(&self, sentence: usize) -> &[u32] {
        let classes = self.classes.get_or_init(|| {
            let mut classes = Vec::with_capacity(self.hypotheses());
            let mut seen: FxHashMap<&str, u32> = FxHashMap::default();
            for sentence in 0..self.sentences() {
                seen.clear();
                for (place, hypothesis) in self.list(sentence).enumerate() {
                    classes.push(*seen.entry(self.text(hypothesis)).or_insert(place as u32));
                }
            }
            classes
        });
        &classes[self.list(sentence)]
    }

    /// The file's total score, NaN where it gave none.
    pub fn score(&self, hypothesis: usize) -> f64 {
        self.scores[hypothesis]
    }

    pub fn scores(&self) -> &[f64] {
        &self.scores
    }

    pub fn extra(&self, hypothesis: usize) -> &str {
        if self.extras.is_empty() { "" } else { self.extras.get(hypothesis) }
    }

    /// The values of a column, NaN where missing.
    pub fn column(&self, column: usize) -> impl Iterator<Item = f64> + '_ {
        let width = self.columns.len();
        self.cells.iter().skip(column).step_by(width.max(1)).copied()
    }

    /// All hypotheses of the sentence have the same feature ids.
    pub fn uniform(&self, sentence: usize) -> bool {
        self.uniform[sentence]
    }

    /// Model scores of a sentence's hypotheses. Ids past the end of `weights` weigh nothing.
    pub fn dot(&self, sentence: usize, weights: &[f64], out: &mut Vec<f64>) {
        let list = self.list(sentence);
        out.clear();
        if list.is_empty() {
            return;
        }
        let weight = |id: u32| weights.get(id as usize).copied().unwrap_or(0.0);
        if self.uniform[sentence] {
            let (ids, _) = self.features(list.start);
            let width = ids.len();
            if width == 0 {
                out.resize(list.len(), 0.0);
                return;
            }
            let local: Vec<f64> = ids.iter().map(|&id| weight(id)).collect();
            let block = &self.values[self.rows[list.start]..self.rows[list.end]];
            crate::dense::products(block, &local, out);
        } else {
            out.extend(list.map(|hypothesis| {
                let (ids, values) = self.features(hypothesis);
                ids.iter()
                    .zip(values)
                    .map(|(&id, &value)| weight(id) * f64::from(value))
                    .sum::<f64>()
            }));
        }
    }

    /// Position of the best-scoring hypothesis of each sentence (the first among equals);
    /// `usize::MAX` for an empty list.
    pub fn best(&self, weights: &[f64]) -> Vec<usize> {
        use rayon::prelude::*;
        (0..self.sentences())
            .into_par_iter()
            .map_init(Vec::new, |scores, sentence| {
                self.dot(sentence, weights, scores);
                let start = self.starts[sentence];
                crate::argmax(scores.iter().copied()).map_or(usize::MAX, |(best, _)| start + best)
            })
            .collect()
    }

    /// The same sentences from several sources: lists joined in order, hypotheses with equal
    /// text and features kept once, at their first place.
    pub fn merge(parts: &[&Pools]) -> Result<Pools> {
        let mut builder = PoolsBuilder::default();
        let sentences = parts.iter().map(|part| part.sentences()).max().unwrap_or(0);
        let maps: Vec<Vec<u32>> = parts
            .iter()
            .map(|part| part.names.iter().map(|name| builder.names.intern(name)).collect())
            .collect();
        for part in parts {
            if part.columns.iter().ne(parts[0].columns.iter()) {
                return Err(Error::new("lists with different columns cannot be merged")
                    .remedy("give every file the same score columns"));
            }
        }
        builder.columns = parts.first().map(|part| part.columns.clone()).unwrap_or_default();
        let mut seen: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
        let mut features = Vec::new();
        for sentence in 0..sentences {
            seen.clear();
            let key = parts.iter().find_map(|part| part.keys.get(sentence)).map(String::as_str);
            builder.sentence(key);
            for (part, map) in parts.iter().zip(&maps) {
                if sentence >= part.sentences() {
                    continue;
                }
                for hypothesis in part.list(sentence) {
                    let (ids, values) = part.features(hypothesis);
                    features.clear();
                    features.extend(
                        ids.iter().zip(values).map(|(&id, &value)| (map[id as usize], value)),
                    );
                    features.sort_unstable_by_key(|&(id, _)| id);
                    let mut hasher = FxHasher::default();
                    part.text(hypothesis).hash(&mut hasher);
                    for &(id, value) in &features {
                        (id, value.to_bits()).hash(&mut hasher);
                    }
                    let twins = seen.entry(hasher.finish()).or_default();
                    let text = part.text(hypothesis);
                    if twins.iter().any(|&twin| builder.same(twin, text, &features)) {
                        continue;
                    }
                    twins.push(builder.pools.hypotheses());
                    let score = part.score(hypothesis);
                    let width = part.columns.len();
                    builder.push(Hypothesis {
                        text,
                        features: &features,
                        score: (!score.is_nan()).then_some(score),
                        extra: part.extra(hypothesis),
                        columns: &part.cells[hypothesis * width..(hypothesis + 1) * width],
                    });
                }
            }
        }
        Ok(builder.finish())
    }

    /// The chosen sentences, in the given order, with the same feature ids.
    pub fn subset(&self, sentences: &[usize]) -> Pools {
        let mut builder = PoolsBuilder {
            names: self.names.clone(),
            columns: self.columns.clone(),
            ..PoolsBuilder::default()
        };
        let width = self.columns.len();
        let mut features = Vec::new();
        for &sentence in sentences {
            builder.sentence(self.keys.get(sentence).map(String::as_str));
            for hypothesis in self.list(sentence) {
                let (ids, values) = self.features(hypothesis);
                features.clear();
                features.extend(ids.iter().copied().zip(values.iter().copied()));
                let score = self.score(hypothesis);
                builder.push(Hypothesis {
                    text: self.text(hypothesis),
                    features: &features,
                    score: (!score.is_nan()).then_some(score),
                    extra: self.extra(hypothesis),
                    columns: &self.cells[hypothesis * width..(hypothesis + 1) * width],
                });
            }
        }
        builder.finish()
    }

    /// The same lists with the ids that features have in `names`, which keeps them to itself.
    pub fn renamed(&self, names: &mut Names) -> Pools {
        let map: Vec<u32> = self.names.iter().map(|name| names.intern(name)).collect();
        let mut renamed = Pools { names: Names::default(), ..self.clone() };
        if map.is_sorted() {
            renamed.ids.iter_mut().for_each(|id| *id = map[*id as usize]);
        } else {
            renamed.rename(|id| map[id as usize]);
        }
        renamed
    }

    /// Gives features other ids, and puts those of each hypothesis in order.
    fn rename(&mut self, new: impl Fn(u32) -> u32) {
        let mut columns = Columns::default();
        for sentence in self.starts.windows(2) {
            let rows = &self.rows[sentence[0]..=sentence[1]];
            columns.rename(rows, &mut self.ids, &mut self.values, &new);
        }
    }

    /// Bytes on the heap, names left out.
    pub fn heap_bytes(&self) -> usize {
        (self.starts.capacity() + self.rows.capacity()) * size_of::<usize>()
            + self.ids.capacity() * 4
            + self.values.capacity() * 4
            + (self.scores.capacity() + self.cells.capacity()) * 8
            + self.texts.heap_bytes()
            + self.extras.heap_bytes()
    }
}

/// Fills [`Pools`]: [`sentence`](Self::sentence) opens a list, [`push`](Self::push) adds to it.
#[derive(Debug, Default)]
pub struct PoolsBuilder {
    pub names: Names,
    pub columns: Names,
    pools: Pools,
    /// There are rows whose ids do not ascend.
    unsorted: bool,
}

impl PoolsBuilder {
    /// Opens the list of the next sentence.
    pub fn sentence(&mut self, key: Option<&str>) {
        self.pools.starts.push(self.pools.hypotheses());
        if let Some(key) = key {
            self.pools.keys.push(key.to_owned());
        }
    }

    /// Sentences opened so far.
    pub fn sentences(&self) -> usize {
        self.pools.starts.len()
    }

    pub fn hypotheses(&self) -> usize {
        self.pools.hypotheses()
    }

    /// Makes room for so many hypotheses with so many features each.
    pub fn reserve(&mut self, hypotheses: usize, features: usize) {
        let pools = &mut self.pools;
        pools.rows.reserve(hypotheses + 1);
        pools.scores.reserve(hypotheses);
        pools.ids.reserve(hypotheses * features);
        pools.values.reserve(hypotheses * features);
    }

    /// Adds a hypothesis to the open list.
    pub fn push(&mut self, hypothesis: Hypothesis<'_>) {
        assert!(!self.pools.starts.is_empty(), "push before the first sentence");
        let pools = &mut self.pools;
        if pools.rows.is_empty() {
            pools.rows.push(0);
        }
        let start = pools.ids.len();
        pools.ids.extend(hypothesis.features.iter().map(|&(id, _)| id));
        pools.values.extend(hypothesis.features.iter().map(|&(_, value)| value));
        self.unsorted |= !pools.ids[start..].is_sorted();
        pools.rows.push(pools.ids.len());
        pools.texts.push(hypothesis.text);
        pools.scores.push(hypothesis.score.unwrap_or(f64::NAN));
        if !hypothesis.extra.is_empty() && pools.extras.is_empty() {
            (1..pools.scores.len()).for_each(|_| pools.extras.push(""));
        }
        if !hypothesis.extra.is_empty() || !pools.extras.is_empty() {
            pools.extras.push(hypothesis.extra);
        }
        let width = self.columns.len();
        pools.cells.extend_from_slice(&hypothesis.columns[..hypothesis.columns.len().min(width)]);
        pools.cells.resize(pools.scores.len() * width, f64::NAN);
    }

    /// Lists of sentences with the ids that features have in `names`, which keeps them to itself;
    /// see [`append_all`](Self::append_all).
    pub fn joined(lists: &[PoolsBuilder], names: &mut Names) -> Pools {
        let mut all = PoolsBuilder { names: std::mem::take(names), ..PoolsBuilder::default() };
        all.reserve_all(lists);
        let mut columns = Columns::default();
        lists.iter().for_each(|list| all.append(list, &mut columns));
        *names = std::mem::take(&mut all.names);
        all.finish()
    }

    /// Adds the lists of further sentences, without keys or columns; their features get the ids
    /// that their names have here.
    pub fn append_all(&mut self, others: Vec<PoolsBuilder>) {
        self.reserve_all(&others);
        let mut columns = Columns::default();
        others.into_iter().for_each(|other| self.append(&other, &mut columns));
    }

    fn reserve_all(&mut self, others: &[PoolsBuilder]) {
        let pools = &mut self.pools;
        let sum = |size: fn(&Pools) -> usize| others.iter().map(|other| size(&other.pools)).sum();
        pools.starts.reserve(sum(|other| other.starts.len()));
        pools.rows.reserve(sum(|other| other.rows.len()));
        pools.scores.reserve(sum(|other| other.scores.len()));
        pools.ids.reserve(sum(|other| other.ids.len()));
        pools.values.reserve(sum(|other| other.ids.len()));
        pools.texts.reserve(sum(|other| other.texts.len()), sum(|other| other.texts.bytes()));
    }

    fn append(&mut self, other: &PoolsBuilder, columns: &mut Columns) {
        assert!(self.columns.is_empty() && other.columns.is_empty(), "columns cannot be appended");
        let map: Vec<u32> = other.names.iter().map(|name| self.names.intern(name)).collect();
        let renamed = map.iter().enumerate().any(|(old, &new)| old as u32 != new);
        let (pools, unsorted, other) = (&mut self.pools, other.unsorted, &other.pools);
        let (hypotheses, entries) = (pools.scores.len(), pools.ids.len());
        pools.starts.extend(other.starts.iter().map(|start| hypotheses + start));
        if pools.rows.is_empty() {
            pools.rows.push(0);
        }
        pools.rows.extend(other.rows.iter().skip(1).map(|end| entries + end));
        pools.ids.extend_from_slice(&other.ids);
        pools.values.extend_from_slice(&other.values);
        if renamed || unsorted {
            let rows = &pools.rows[hypotheses..];
            columns.rename(rows, &mut pools.ids, &mut pools.values, |id| map[id as usize]);
        }
        if !other.extras.is_empty() && pools.extras.is_empty() {
            (0..hypotheses).for_each(|_| pools.extras.push(""));
        }
        if !other.extras.is_empty() {
            pools.extras.append(&other.extras);
        } else if !pools.extras.is_empty() {
            other.scores.iter().for_each(|_| pools.extras.push(""));
        }
        pools.texts.append(&other.texts);
        pools.scores.extend_from_slice(&other.scores);
    }

    fn same(&self, position: usize, text: &str, features: &[(u32, f32)]) -> bool {
        let (ids, values) = self.pools.features(position);
        self.pools.text(position) == text
            && ids.len() == features.len()
            && ids.iter().zip(values).zip(features).all(|((&id, &value), &(other, twin))| {
                id == other && value.to_bits() == twin.to_bits()
            })
    }

    pub fn finish(mut self) -> Pools {
        let mut pools = self.pools;
        pools.names = std::mem::take(&mut self.names);
        pools.columns = std::mem::take(&mut self.columns);
        pools.starts.push(pools.scores.len());
        if pools.rows.is_empty() {
            pools.rows.push(0);
        }
        if self.unsorted {
            pools.rename(|id| id);
        }
        pools.uniform = (0..pools.sentences())
            .map(|sentence| {
                let mut list = pools.list(sentence);
                let Some(first) = list.next() else { return true };
                let (ids, _) = pools.features(first);
                list.all(|hypothesis| pools.features(hypothesis).0 == ids)
            })
            .collect();
        pools.ids.shrink_to_fit();
        pools.values.shrink_to_fit();
        pools.rows.shrink_to_fit();
        pools.scores.shrink_to_fit();
        pools.texts.shrink();
        pools.extras.shrink();
        pools
    }
}
