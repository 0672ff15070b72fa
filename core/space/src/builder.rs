//! Filling lists, by one hand or by many.

use tunesmith_text::Names;

use crate::Pools;
use crate::columns::Columns;

/// One hypothesis on its way into a [`PoolsBuilder`].
#[derive(Debug, Clone, Default)]
pub struct Hypothesis<'a> {
    pub text: &'a str,
    /// Values of the features with the first ids of the builder's names, none left out.
    pub dense: &'a [f32],
    /// Ids and values of others; need not be sorted, must be distinct and finite.
    pub features: &'a [(u32, f32)],
    /// The total score the file gives, if any.
    pub score: Option<f64>,
    /// Whatever the format keeps behind the score (an alignment), returned untouched.
    pub extra: &'a str,
    /// One value per column of the builder, in its order; shorter means missing.
    pub columns: &'a [f64],
}

/// Fills [`Pools`]: [`sentence`](Self::sentence) opens a list, [`push`](Self::push) adds to it.
#[derive(Debug, Default)]
pub struct PoolsBuilder {
    pub names: Names,
    pub columns: Names,
    pools: Pools,
    /// How many features the last row has, if they are the first ones.
    dense: Option<usize>,
    /// There are rows whose ids do not ascend.
    unsorted: bool,
    order: Columns,
}

impl PoolsBuilder {
    /// Opens the list of the next sentence.
    pub fn sentence(&mut self, key: Option<&str>) {
        self.list(key, None);
    }

    /// Opens the next bin of a line; all lists are bins then, and lines come in order.
    pub fn bin(&mut self, line: usize) {
        self.list(None, Some(line as u32));
    }

    /// Opens a list, of a line where it is a bin.
    pub(crate) fn list(&mut self, key: Option<&str>, line: Option<u32>) {
        self.pools.lines.extend(line);
        self.pools.starts.push(self.pools.hypotheses());
        self.dense = None;
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
        pools.heads.reserve(hypotheses);
        pools.values.reserve(hypotheses * features);
    }

    /// Adds a hypothesis to the open list.
    pub fn push(&mut self, hypothesis: Hypothesis<'_>) {
        assert!(!self.pools.starts.is_empty(), "push before the first sentence");
        let pools = &mut self.pools;
        if pools.rows.is_empty() {
            pools.rows.push(0);
        }
        let row = pools.scores.len();
        let head = pools.ids.len();
        pools.values.extend_from_slice(hypothesis.dense);
        pools.values.extend(hypothesis.features.iter().map(|&(_, value)| value));
        pools.rows.push(pools.values.len());
        pools.heads.push(head);
        let dense = hypothesis.features.is_empty().then_some(hypothesis.dense.len());
        if dense.is_some() && dense == self.dense {
            pools.heads[row] = pools.heads[row - 1];
        } else {
            pools.ids.extend(0..hypothesis.dense.len() as u32);
            pools.ids.extend(hypothesis.features.iter().map(|&(id, _)| id));
            self.unsorted |= !pools.ids[head..].is_sorted();
            // Ids are put in order sentence by sentence, and shared no further.
            if pools.starts.last() != Some(&row) && pools.alike(row - 1, row) {
                pools.heads[row] = pools.heads[row - 1];
                pools.ids.truncate(head);
            }
        }
        self.dense = dense;
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

    /// Adds a hypothesis of lists with the same features and columns to the open list.
    pub(crate) fn copy(&mut self, from: &Pools, hypothesis: usize, columns: usize) {
        let (ids, values) = from.features(hypothesis);
        let features: Vec<(u32, f32)> = ids.iter().copied().zip(values.iter().copied()).collect();
        let score = from.score(hypothesis);
        self.push(Hypothesis {
            text: from.text(hypothesis),
            dense: &[],
            features: &features,
            score: (!score.is_nan()).then_some(score),
            extra: from.extra(hypothesis),
            columns: &from.cells[hypothesis * columns..(hypothesis + 1) * columns],
        });
    }

    /// Lists of sentences with the ids that features have in `names`, which keeps them to itself.
    pub fn joined(lists: &[PoolsBuilder], names: &mut Names) -> Pools {
        let mut all = PoolsBuilder { names: std::mem::take(names), ..PoolsBuilder::default() };
        lists.iter().for_each(|list| all.append(list));
        *names = std::mem::take(&mut all.names);
        all.finish()
    }

    /// Adds the lists of further sentences, without keys or columns; their features get the ids
    /// that their names have here.
    pub fn append(&mut self, other: &PoolsBuilder) {
        assert!(self.columns.is_empty() && other.columns.is_empty(), "columns cannot be appended");
        let map: Vec<u32> = other.names.iter().map(|name| self.names.intern(name)).collect();
        let (pools, from) = (&mut self.pools, &other.pools);
        let (hypotheses, values, ids) = (pools.scores.len(), pools.values.len(), pools.ids.len());
        let lines = pools.lines.last().map_or(0, |&line| line + 1);
        pools.lines.extend(from.lines.iter().map(|line| lines + line));
        pools.starts.extend(from.starts.iter().map(|start| hypotheses + start));
        if pools.rows.is_empty() {
            pools.rows.push(0);
        }
        pools.rows.extend(from.rows.iter().skip(1).map(|end| values + end));
        pools.heads.extend(from.heads.iter().map(|head| ids + head));
        pools.values.extend_from_slice(&from.values);
        pools.ids.extend_from_slice(&from.ids);
        pools.texts.append(&from.texts);
        pools.scores.extend_from_slice(&from.scores);
        if !from.extras.is_empty() && pools.extras.is_empty() {
            (0..hypotheses).for_each(|_| pools.extras.push(""));
        }
        if !from.extras.is_empty() {
            pools.extras.append(&from.extras);
        } else if !pools.extras.is_empty() {
            (hypotheses..pools.scores.len()).for_each(|_| pools.extras.push(""));
        }
        if other.unsorted || !map.is_sorted() {
            let added = hypotheses..pools.scores.len();
            pools.rename(added, &mut self.order, |id| map[id as usize]);
        } else if (0..).zip(&map).any(|(old, &new)| old != new) {
            pools.ids[ids..].iter_mut().for_each(|id| *id = map[*id as usize]);
        }
        self.dense = None;
    }

    /// Forgets everything but the room that it took.
    pub(crate) fn clear(&mut self) {
        let pools = &mut self.pools;
        pools.keys.clear();
        pools.lines.clear();
        pools.starts.clear();
        pools.rows.clear();
        pools.heads.clear();
        pools.values.clear();
        pools.ids.clear();
        pools.texts.clear();
        pools.scores.clear();
        pools.extras.clear();
        pools.cells.clear();
        self.names = Names::default();
        self.columns = Names::default();
        (self.dense, self.unsorted) = (None, false);
    }

    pub(crate) fn same(
        &self,
        position: usize,
        text: &str,
        covered: Option<&str>,
        features: &[(u32, f32)],
    ) -> bool {
        let (ids, values) = self.pools.features(position);
        self.pools.text(position) == text
            && covered.is_none_or(|covered| self.pools.surroundings(position).0 == covered)
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
        assert!(pools.lines.is_empty() || pools.lines.len() + 1 == pools.starts.len());
        if pools.rows.is_empty() {
            pools.rows.push(0);
        }
        if self.unsorted {
            pools.sort(|id| id);
        }
        pools.find_uniform();
        pools.ids.shrink_to_fit();
        pools.values.shrink_to_fit();
        pools.rows.shrink_to_fit();
        pools.heads.shrink_to_fit();
        pools.scores.shrink_to_fit();
        pools.texts.shrink();
        pools.extras.shrink();
        pools
    }
}
