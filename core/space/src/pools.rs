//! The hypotheses of every sentence of a corpus: strings, sparse features, scores and columns.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::OnceLock;

use rustc_hash::{FxHashMap, FxHasher};
use tunesmith_text::{Error, Names, Result};

use crate::builder::{Hypothesis, PoolsBuilder};
use crate::columns::Columns;
use crate::texts::Texts;

/// Candidate lists of a corpus. Hypotheses of a sentence are contiguous and keep the order in
/// which they came, so the first is the first-ranked. A sentence may have none.
#[derive(Debug, Clone, Default)]
pub struct Pools {
    pub names: Names,
    pub columns: Names,
    /// A label per sentence where the format has one (an utterance id); empty otherwise.
    pub keys: Vec<String>,
    /// The line of each list, in ascending order without gaps; empty where every list has a line
    /// to itself.
    pub(crate) lines: Vec<u32>,
    pub(crate) starts: Vec<usize>,
    /// Where the values of each row begin; one more than rows.
    pub(crate) rows: Vec<usize>,
    pub(crate) values: Vec<f32>,
    /// Where the ids of each row begin: neighbours with the same ids share them.
    pub(crate) heads: Vec<usize>,
    pub(crate) ids: Vec<u32>,
    pub(crate) texts: Texts,
    pub(crate) scores: Vec<f64>,
    pub(crate) extras: Texts,
    pub(crate) cells: Vec<f64>,
    pub(crate) uniform: Vec<bool>,
    classes: OnceLock<Vec<u32>>,
}

/// Lists whose features are in order, as [`Pools`] keeps them.
#[derive(Debug, Default)]
pub struct Ready {
    pub names: Names,
    /// The first hypothesis of each sentence, and the number of all.
    pub starts: Vec<usize>,
    /// Where the values of each row begin, and the number of all.
    pub rows: Vec<usize>,
    pub values: Vec<f32>,
    /// Where the ids of each row begin; rows with the same ids may share them.
    pub heads: Vec<usize>,
    /// Ascending in each row.
    pub ids: Vec<u32>,
    pub scores: Vec<f64>,
    /// If there are none, texts are blank, but all different.
    pub texts: Option<Texts>,
}

impl From<Ready> for Pools {
    fn from(ready: Ready) -> Pools {
        let hypotheses = ready.scores.len();
        assert!(ready.starts.last() == Some(&hypotheses) && ready.rows.len() == hypotheses + 1);
        assert!(ready.rows.last() == Some(&ready.values.len()) && ready.heads.len() == hypotheses);
        let classes = match &ready.texts {
            Some(texts) => {
                assert!(texts.len() == hypotheses);
                OnceLock::new()
            }
            None => {
                let lists = ready.starts.windows(2).map(|list| list[1] - list[0]);
                OnceLock::from(lists.flat_map(|length| 0..length as u32).collect::<Vec<_>>())
            }
        };
        let mut pools = Pools {
            names: ready.names,
            starts: ready.starts,
            rows: ready.rows,
            values: ready.values,
            heads: ready.heads,
            ids: ready.ids,
            texts: ready.texts.unwrap_or_else(|| Texts::blank(hypotheses)),
            scores: ready.scores,
            classes,
            ..Pools::default()
        };
        pools.find_uniform();
        pools
    }
}

impl Pools {
    pub fn sentences(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub fn hypotheses(&self) -> usize {
        self.scores.len()
    }

    pub fn nonzeros(&self) -> usize {
        self.values.len()
    }

    /// The hypotheses of a sentence, as positions in the whole.
    pub fn list(&self, sentence: usize) -> Range<usize> {
        self.starts[sentence]..self.starts[sentence + 1]
    }

    /// Number of lines. A line has several lists where they are the bins of a search.
    pub fn lines(&self) -> usize {
        self.lines.last().map_or(self.sentences(), |&line| line as usize + 1)
    }

    /// The line that a list belongs to.
    pub fn line(&self, list: usize) -> usize {
        self.lines.get(list).map_or(list, |&line| line as usize)
    }

    /// The lists of a line.
    pub fn lists(&self, line: usize) -> Range<usize> {
        if self.lines.is_empty() {
            return line..line + 1;
        }
        let start = self.lines.partition_point(|&other| (other as usize) < line);
        let count = self.lines[start..].iter().take_while(|&&other| other as usize == line).count();
        start..start + count
    }

    /// Whether several lists may belong to a line.
    pub fn is_binned(&self) -> bool {
        !self.lines.is_empty()
    }

    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Features of a hypothesis: ids in ascending order, and their values.
    pub fn features(&self, hypothesis: usize) -> (&[u32], &[f32]) {
        let values = &self.values[self.rows[hypothesis]..self.rows[hypothesis + 1]];
        (&self.ids[self.heads[hypothesis]..][..values.len()], values)
    }

    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The ids of all rows, as many as there are values.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.hypotheses()).flat_map(|hypothesis| self.features(hypothesis).0).copied()
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

    /// Of a partial translation in a bin: what it covers, what stands before it in the whole
    /// translation that it may become, and what stands behind it. See [`Pools::surround`].
    pub fn surroundings(&self, hypothesis: usize) -> (&str, &str, &str) {
        let mut parts = self.extra(hypothesis).splitn(3, '\t');
        let mut next = || parts.next().unwrap_or_default();
        (next(), next(), next())
    }

    /// Surroundings as the extra text of a hypothesis.
    pub fn surround(covered: &[Range<usize>], before: &str, behind: &str) -> String {
        let spans: Vec<String> =
            covered.iter().map(|span| format!("{}-{}", span.start, span.end)).collect();
        format!("{}\t{before}\t{behind}", spans.join(","))
    }

    /// The whole translation that a partial one in a bin may become.
    pub fn whole(&self, hypothesis: usize) -> String {
        let (_, before, behind) = self.surroundings(hypothesis);
        let mut whole = String::with_capacity(before.len() + behind.len() + 64);
        for part in [before, self.text(hypothesis), behind] {
            if !whole.is_empty() && !part.is_empty() {
                whole.push(' ');
            }
            whole.push_str(part);
        }
        whole
    }

    /// How many words of the sentence a partial translation covers.
    pub fn covered(&self, hypothesis: usize) -> usize {
        let ends = |span: &str| {
            let (start, end) = span.split_once('-')?;
            Some((start.parse::<usize>().ok()?, end.parse::<usize>().ok()?))
        };
        let spans = self.surroundings(hypothesis).0.split(',').filter_map(ends);
        spans.map(|(start, end)| end.saturating_sub(start)).sum()
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

    /// Adds the features of a sentence's hypotheses, each times its factor, to `sums`, by id.
    pub fn weigh(&self, sentence: usize, factors: &[f64], sums: &mut [f64]) {
        let list = self.list(sentence);
        if list.is_empty() {
            return;
        }
        if self.uniform[sentence] {
            let (ids, _) = self.features(list.start);
            if ids.is_empty() {
                return;
            }
            let mut local = vec![0.0; ids.len()];
            let block = &self.values[self.rows[list.start]..self.rows[list.end]];
            crate::dense::sums(block, factors, &mut local);
            ids.iter().zip(local).for_each(|(&id, sum)| sums[id as usize] += sum);
        } else {
            for (hypothesis, &factor) in list.zip(factors) {
                let (ids, values) = self.features(hypothesis);
                for (&id, &value) in ids.iter().zip(values) {
                    sums[id as usize] += factor * f64::from(value);
                }
            }
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
    /// text and features kept once, at their first place. In bins they must also cover the same
    /// words, and the surroundings of the first are kept.
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
        let binned = parts.iter().find(|part| part.is_binned());
        if let Some(bins) = binned
            && parts.iter().any(|part| part.sentences() > 0 && part.lines != bins.lines)
        {
            return Err(Error::new("bins of different sentences cannot be merged")
                .remedy("merge the bins of the same text"));
        }
        builder.columns = parts.first().map(|part| part.columns.clone()).unwrap_or_default();
        let mut seen: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
        let mut features = Vec::new();
        for sentence in 0..sentences {
            seen.clear();
            let key = parts.iter().find_map(|part| part.keys.get(sentence)).map(String::as_str);
            builder.list(key, binned.map(|bins| bins.lines[sentence]));
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
                    let covered = binned.map(|_| part.surroundings(hypothesis).0);
                    covered.hash(&mut hasher);
                    for &(id, value) in &features {
                        (id, value.to_bits()).hash(&mut hasher);
                    }
                    let twins = seen.entry(hasher.finish()).or_default();
                    let text = part.text(hypothesis);
                    if twins.iter().any(|&twin| builder.same(twin, text, covered, &features)) {
                        continue;
                    }
                    twins.push(builder.hypotheses());
                    let score = part.score(hypothesis);
                    let width = part.columns.len();
                    builder.push(Hypothesis {
                        text,
                        dense: &[],
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
        let mut builder = PoolsBuilder::default();
        builder.names = self.names.clone();
        builder.columns = self.columns.clone();
        let width = self.columns.len();
        let mut lines = 0;
        for (place, &sentence) in sentences.iter().enumerate() {
            if place > 0 && self.line(sentence) != self.line(sentences[place - 1]) {
                lines += 1;
            }
            let key = self.keys.get(sentence).map(String::as_str);
            builder.list(key, self.is_binned().then_some(lines));
            for hypothesis in self.list(sentence) {
                builder.copy(self, hypothesis, width);
            }
        }
        builder.finish()
    }

    /// Lists of one hypothesis each, given by position, or of none; with the same feature ids.
    pub fn picked(&self, positions: &[Option<usize>]) -> Pools {
        let mut builder = PoolsBuilder::default();
        builder.names = self.names.clone();
        builder.columns = self.columns.clone();
        let width = self.columns.len();
        for (list, &position) in positions.iter().enumerate() {
            let line = self.is_binned().then_some(self.line(list) as u32);
            builder.list(self.keys.get(list).map(String::as_str), line);
            if let Some(position) = position {
                builder.copy(self, position, width);
            }
        }
        builder.finish()
    }

    /// The same lists with further features, which every hypothesis has; each has a value for each
    /// hypothesis. Refuses names that are there already.
    pub fn extended(&self, more: &[(&str, Vec<f32>)]) -> Result<Pools> {
        let mut names = self.names.clone();
        let old = names.len();
        for (place, (name, values)) in more.iter().enumerate() {
            assert_eq!(values.len(), self.hypotheses());
            if names.intern(name) as usize != old + place {
                return Err(Error::new(format!("the lists have a feature {name} already"))
                    .remedy("rename it in the lists"));
            }
        }
        let extra = old as u32..names.len() as u32;
        let mut pools = Pools { names, ..self.clone() };
        (pools.rows, pools.heads) = (vec![0], Vec::with_capacity(self.hypotheses()));
        (pools.ids, pools.values) = (Vec::new(), Vec::new());
        for row in 0..self.hypotheses() {
            let (ids, values) = self.features(row);
            pools.values.extend_from_slice(values);
            pools.values.extend(more.iter().map(|(_, values)| values[row]));
            pools.rows.push(pools.values.len());
            // Neighbours that shared their ids go on to share them.
            let shared = row > 0
                && self.heads[row - 1] == self.heads[row]
                && self.features(row - 1).0.len() == ids.len();
            if shared {
                pools.heads.push(pools.heads[row - 1]);
            } else {
                pools.heads.push(pools.ids.len());
                pools.ids.extend_from_slice(ids);
                pools.ids.extend(extra.clone());
            }
        }
        Ok(pools)
    }

    /// The same lists with the ids that features have in `names`, which keeps them to itself.
    pub fn renamed(&self, names: &mut Names) -> Pools {
        let map: Vec<u32> = self.names.iter().map(|name| names.intern(name)).collect();
        let mut renamed = Pools { names: Names::default(), ..self.clone() };
        if map.is_sorted() {
            renamed.ids.iter_mut().for_each(|id| *id = map[*id as usize]);
        } else {
            renamed.sort(|id| map[id as usize]);
        }
        renamed
    }

    /// Gives features other ids, and puts those of each hypothesis in order.
    pub(crate) fn sort(&mut self, new: impl Fn(u32) -> u32) {
        let mut columns = Columns::default();
        for sentence in 0..self.sentences() {
            let list = self.list(sentence);
            self.rename(list, &mut columns, &new);
        }
    }

    /// The same for some hypotheses.
    pub(crate) fn rename(
        &mut self,
        hypotheses: Range<usize>,
        columns: &mut Columns,
        new: impl Fn(u32) -> u32,
    ) {
        let rows = &self.rows[hypotheses.start..=hypotheses.end];
        columns.rename(rows, &self.heads[hypotheses], &mut self.ids, &mut self.values, new);
    }

    /// Finds out which lists have the same ids in all rows.
    pub(crate) fn find_uniform(&mut self) {
        let uniform = |sentence| {
            let mut list = self.list(sentence);
            list.next().is_none_or(|first| list.all(|other| self.alike(first, other)))
        };
        self.uniform = (0..self.sentences()).map(uniform).collect();
    }

    /// The rows of two hypotheses have the same ids.
    pub(crate) fn alike(&self, one: usize, other: usize) -> bool {
        let width = |row: usize| self.rows[row + 1] - self.rows[row];
        (self.heads[one] == self.heads[other] && width(one) == width(other))
            || self.features(one).0 == self.features(other).0
    }

    /// Bytes on the heap, names left out.
    pub fn heap_bytes(&self) -> usize {
        (self.starts.capacity() + self.rows.capacity() + self.heads.capacity()) * size_of::<usize>()
            + self.ids.capacity() * 4
            + self.values.capacity() * 4
            + (self.scores.capacity() + self.cells.capacity()) * 8
            + self.texts.heap_bytes()
            + self.extras.heap_bytes()
    }
}
