//! Lists and forests as hypotheses that have probabilities.

use std::sync::Arc;

use tunesmith_metric::TableBuilder;
use tunesmith_space::{Forests, Unfolded};

use crate::corpus::{ForestCorpus, ListCorpus};
use crate::risk::Expect;
use crate::scatter::Scatter;

impl Expect for ListCorpus {
    fn sentences(&self) -> usize {
        self.pools.sentences()
    }

    fn rows(&self, sentence: usize) -> &[f64] {
        self.table.rows(sentence)
    }

    fn of(&self, sentence: usize) -> &[u32] {
        self.table.of(self.pools.list(sentence))
    }

    fn shares(&self, sentence: usize, weights: &[f64], alpha: f64) -> Vec<f64> {
        let mut scores = Vec::new();
        self.pools.dot(sentence, weights, &mut scores);
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        scores.iter_mut().for_each(|score| *score = (alpha * (*score - top)).exp());
        let norm = 1.0 / scores.iter().sum::<f64>();
        scores.iter_mut().for_each(|value| *value *= norm);
        scores
    }

    fn weigh(&self, sentence: usize, _shares: &[f64], factors: &[f64], sum: &mut Scatter) {
        for (hypothesis, &factor) in self.pools.list(sentence).zip(factors) {
            // Most of a list has no mass to speak of.
            if factor.abs() < 1e-18 {
                continue;
            }
            let (ids, values) = self.pools.features(hypothesis);
            for (&id, &feature) in ids.iter().zip(values) {
                sum.add(id, factor * f64::from(feature));
            }
        }
    }
}

/// Forests unfolded under some weights.
pub struct ForestExpect {
    forests: Arc<Forests>,
    unfolded: Vec<Unfolded>,
}

impl Expect for ForestExpect {
    fn sentences(&self) -> usize {
        self.unfolded.len()
    }

    fn rows(&self, sentence: usize) -> &[f64] {
        self.unfolded[sentence].rows()
    }

    fn of(&self, sentence: usize) -> &[u32] {
        self.unfolded[sentence].of()
    }

    fn shares(&self, sentence: usize, weights: &[f64], alpha: f64) -> Vec<f64> {
        let scores = self.forests.forests[sentence].scores(weights);
        self.unfolded[sentence].shares(&scores, alpha)
    }

    fn weigh(&self, sentence: usize, shares: &[f64], factors: &[f64], sum: &mut Scatter) {
        let forest = &self.forests.forests[sentence];
        let flow = self.unfolded[sentence].flow(forest, shares, factors);
        forest.weigh(&flow, |id, value| sum.add(id, value));
    }
}

/// Forests ready for expectations at weights near these: unfolded where the metric is one of
/// n-grams, their best strings otherwise.
pub fn forest_expect(corpus: &ForestCorpus, weights: &[f64]) -> Arc<dyn Expect> {
    if let Some(unfolded) = corpus.unfold(weights) {
        return Arc::new(ForestExpect { forests: corpus.shared(), unfolded });
    }
    let pools = corpus.shared().lists_by_edges(weights, corpus.reach().list);
    let mut table = TableBuilder::new(corpus.metric().width());
    let mut row = vec![0.0; corpus.metric().width()];
    for sentence in 0..pools.sentences() {
        for hypothesis in pools.list(sentence) {
            corpus.stats(sentence, pools.text(hypothesis), &mut row);
            table.push(&row);
        }
        table.close();
    }
    Arc::new(ListCorpus::new(Arc::new(pools), Arc::new(table.finish())))
}
