//! What a learner asks of the hypotheses of one sentence.

use std::cmp::Ordering;

use tunesmith_metric::Table;

use crate::pools::Pools;

/// All hypotheses of one sentence under the weights of the moment. Candidates are numbers; scores
/// and gains are those of the last [`rescore`](Self::rescore). A list has all of its candidates
/// from the start, a forest makes one of each hypothesis that a query finds, which is why queries
/// may change it. Candidates keep their numbers.
pub trait Space {
    /// How many candidates there are to draw from, numbered from 0: all of a list, the best of a
    /// forest.
    fn len(&mut self) -> usize;

    fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    fn rescore(&mut self, weights: &[f64]);

    fn score(&self, candidate: usize) -> f64;

    fn gain(&self, candidate: usize) -> f64;

    /// Ids in ascending order, and values.
    fn features(&self, candidate: usize) -> (&[u32], &[f32]);

    /// Metric statistics.
    fn stats(&self, candidate: usize) -> &[f64];

    /// `argmax model·score + gain·gain` among the candidates that count: the model's best, hope
    /// and fear differ only in the two factors. Ties go to the higher score, then to the earlier
    /// candidate.
    fn argmax(&mut self, model: f64, gain: f64, among: Among) -> Option<usize> {
        self.top(1, model, gain, among, false).first().copied()
    }

    /// The `n` best by the same criterion, best first; with `unique` only the best of each string.
    fn top(&mut self, n: usize, model: f64, gain: f64, among: Among, unique: bool) -> Vec<usize>;
}

/// Which candidates of a sentence count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Among {
    /// The best-scoring ones; all if 0.
    pub k: usize,
    /// Of each string only the best derivation, so that others do not use up `k`. The best strings
    /// of a forest always are.
    pub unique: bool,
    /// `k` is for lists: forests are searched whole.
    pub whole_forests: bool,
}

impl Among {
    /// Every candidate.
    pub const ALL: Among = Among { k: 0, unique: false, whole_forests: false };

    /// The `k` best-scoring candidates; all if 0.
    pub const fn best(k: usize) -> Self {
        Among { k, unique: false, whole_forests: false }
    }
}

/// The list of one sentence as a [`Space`].
pub struct PoolSpace<'a> {
    pools: &'a Pools,
    table: &'a Table,
    sentence: usize,
    start: usize,
    scores: Vec<f64>,
    gains: Vec<f64>,
}

impl<'a> PoolSpace<'a> {
    /// `row_gains` holds the gain of each distinct statistics row of the sentence.
    pub fn new(pools: &'a Pools, table: &'a Table, sentence: usize, row_gains: &[f64]) -> Self {
        let list = pools.list(sentence);
        let gains = table.of(list.clone()).iter().map(|&row| row_gains[row as usize]).collect();
        PoolSpace { pools, table, sentence, start: list.start, scores: Vec::new(), gains }
    }

    /// The candidates that count, in the order of the list; nothing where all do.
    fn among(&self, among: Among) -> Option<Vec<usize>> {
        let all = self.gains.len();
        let k = if among.k == 0 { all } else { among.k };
        if k >= all && !among.unique {
            return None;
        }
        let better =
            |&a: &usize, &b: &usize| order_of(self.scores[b], self.scores[a]).then(a.cmp(&b));
        let mut order: Vec<usize> = (0..all).collect();
        if among.unique {
            let classes = self.pools.classes(self.sentence);
            let mut best: Vec<usize> = (0..all).collect();
            for (place, &first) in classes.iter().enumerate() {
                if better(&place, &best[first as usize]).is_lt() {
                    best[first as usize] = place;
                }
            }
            order.retain(|&place| best[classes[place] as usize] == place);
        }
        if k < order.len() {
            order.select_nth_unstable_by(k - 1, better);
            order.truncate(k);
        }
        order.sort_unstable();
        Some(order)
    }
}

impl Space for PoolSpace<'_> {
    fn len(&mut self) -> usize {
        self.gains.len()
    }

    fn rescore(&mut self, weights: &[f64]) {
        self.pools.dot(self.sentence, weights, &mut self.scores);
    }

    fn score(&self, candidate: usize) -> f64 {
        self.scores[candidate]
    }

    fn gain(&self, candidate: usize) -> f64 {
        self.gains[candidate]
    }

    fn features(&self, candidate: usize) -> (&[u32], &[f32]) {
        self.pools.features(self.start + candidate)
    }

    fn stats(&self, candidate: usize) -> &[f64] {
        self.table.stats(self.sentence, self.start + candidate)
    }

    fn argmax(&mut self, model: f64, gain: f64, mut among: Among) -> Option<usize> {
        // The best derivation of a string wins over its others anyway, if higher scores win.
        among.unique &= model < 0.0 || (0 < among.k && among.k < self.gains.len());
        let Some(order) = self.among(among) else {
            return crate::dense::argmax(&self.scores, &self.gains, model, gain);
        };
        let pick = |values: &[f64]| order.iter().map(|&place| values[place]).collect::<Vec<f64>>();
        let found = crate::dense::argmax(&pick(&self.scores), &pick(&self.gains), model, gain);
        found.map(|place| order[place])
    }

    fn top(&mut self, n: usize, model: f64, gain: f64, among: Among, unique: bool) -> Vec<usize> {
        let value =
            |candidate: usize| model * self.scores[candidate] + gain * self.gains[candidate];
        let mut order = self.among(among).unwrap_or_else(|| (0..self.gains.len()).collect());
        order.sort_by(|&a, &b| {
            order_of(value(b), value(a))
                .then(order_of(self.scores[b], self.scores[a]))
                .then(a.cmp(&b))
        });
        if unique {
            let classes = self.pools.classes(self.sentence);
            let mut seen = vec![false; self.gains.len()];
            order.retain(|&place| !std::mem::replace(&mut seen[classes[place] as usize], true));
        }
        order.truncate(n);
        order
    }
}

/// The order of two numbers, where -0 and 0 are equal: with weights of zero a score's sign is
/// that of its features, and must not decide.
pub(crate) fn order_of(a: f64, b: f64) -> Ordering {
    (a + 0.0).total_cmp(&(b + 0.0))
}
