//! Probabilities gain (Smith & Eisner 2006) and its gradient.

use rayon::prelude::*;
use tunesmith_metric::Metric;

use crate::blocks::{Blocks, Sparse, fold};
use crate::scatter::Scatter;

/// What the expectation is taken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// Mean sentence gain.
    Sentence,
    /// Gain of the expected corpus statistics.
    Corpus,
}

/// Hypotheses of a corpus that have probabilities.
pub trait Expect: Send + Sync {
    fn sentences(&self) -> usize;

    /// The distinct rows of statistics of a sentence, one after the other.
    fn rows(&self, sentence: usize) -> &[f64];

    /// Which row each hypothesis has; none where there is no hypothesis.
    fn of(&self, sentence: usize) -> &[u32];

    /// Probabilities under `p ∝ exp(α s)`: of parts of hypotheses, where there are any, and last
    /// those of the hypotheses.
    fn shares(&self, sentence: usize, weights: &[f64], alpha: f64) -> Vec<f64>;

    /// Adds the features of each hypothesis times its factor.
    fn weigh(&self, sentence: usize, shares: &[f64], factors: &[f64], sum: &mut Scatter);
}

/// Value and gradient of the expected gain at `weights` under `p ∝ exp(α s)`.
pub fn expected_gain(
    spaces: &dyn Expect,
    metric: &dyn Metric,
    blocks: &Blocks,
    weights: &[f64],
    alpha: f64,
    objective: Objective,
) -> (f64, Vec<f64>) {
    let found = Probabilities::new(spaces, metric.width(), blocks, weights, alpha);
    let (corpus, worth) = match objective {
        Objective::Sentence => (None, RowWorth::Sentence(found.count())),
        Objective::Corpus => {
            let (gain, worth) = corpus_worth(metric, &found.stats());
            (Some(gain), RowWorth::Corpus(worth))
        }
    };
    let (values, slopes) = found.slopes(spaces, metric, &worth);
    (corpus.unwrap_or_else(|| fold(&values, 1)[0]), slopes.sum(weights.len()))
}

/// What a row of statistics is worth.
#[derive(Debug, Clone, PartialEq)]
pub enum RowWorth {
    /// The gain of the sentence alone, divided by the number of sentences of the corpus.
    Sentence(usize),
    /// Per unit of each statistic, its worth to the gain of the corpus.
    Corpus(Vec<f64>),
}

impl RowWorth {
    fn of(&self, metric: &dyn Metric, row: &[f64]) -> f64 {
        match self {
            RowWorth::Sentence(count) => metric.sentence_gain(row) / (*count).max(1) as f64,
            RowWorth::Corpus(worth) => {
                row.iter().zip(worth).map(|(value, worth)| value * worth).sum()
            }
        }
    }
}

/// The gain of the corpus whose statistics are the sum of these, a row for each block, and what each
/// statistic is worth to it.
pub fn corpus_worth(metric: &dyn Metric, stats: &[f64]) -> (f64, Vec<f64>) {
    let expected = fold(stats, metric.width());
    (metric.gain(&expected), derivative(metric, &expected))
}

/// Probabilities of all hypotheses of a corpus, or of some of its blocks.
pub struct Probabilities {
    chunks: Vec<Chunk>,
    weights: Vec<f64>,
    alpha: f64,
}

impl Probabilities {
    pub fn new(
        spaces: &dyn Expect,
        width: usize,
        blocks: &Blocks,
        weights: &[f64],
        alpha: f64,
    ) -> Self {
        let chunk = |block: usize| {
            let sentences = blocks.range(block).filter(|&at| !spaces.of(at).is_empty()).collect();
            Chunk::new(spaces, width, weights, alpha, sentences)
        };
        let chunks = (0..blocks.len()).into_par_iter().map(chunk).collect();
        Probabilities { chunks, weights: weights.to_vec(), alpha }
    }

    /// Whether these are the probabilities under some weights.
    pub fn is_at(&self, weights: &[f64], alpha: f64) -> bool {
        self.alpha == alpha && self.weights == weights
    }

    /// The number of sentences that have hypotheses.
    pub fn count(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.sentences.len()).sum()
    }

    /// Probabilities statistics, a row for each block.
    pub fn stats(&self) -> Vec<f64> {
        self.chunks.iter().flat_map(|chunk| chunk.stats.iter().copied()).collect()
    }

    /// The expected worth of each block, and its gradient.
    pub fn slopes(
        &self,
        spaces: &dyn Expect,
        metric: &dyn Metric,
        worth: &RowWorth,
    ) -> (Vec<f64>, Sparse) {
        let worth_of = |row: &[f64]| worth.of(metric, row);
        let parts: Vec<(f64, Vec<(u32, f64)>)> = self
            .chunks
            .par_iter()
            .map_init(
                || Scatter::new(self.weights.len()),
                |sum, chunk| chunk.gradient(spaces, metric.width(), self.alpha, &worth_of, sum),
            )
            .collect();
        let (values, slopes): (Vec<f64>, Vec<_>) = parts.into_iter().unzip();
        (values, Sparse::collect(slopes))
    }
}

/// Probabilities of the hypotheses of some sentences, and their expected statistics.
struct Chunk {
    sentences: Vec<usize>,
    shares: Vec<Vec<f64>>,
    stats: Vec<f64>,
}

impl Chunk {
    fn new(
        spaces: &dyn Expect,
        width: usize,
        weights: &[f64],
        alpha: f64,
        sentences: Vec<usize>,
    ) -> Self {
        let mut chunk = Chunk { sentences, shares: Vec::new(), stats: vec![0.0; width] };
        let mut row_mass = Vec::new();
        for &sentence in &chunk.sentences {
            let (of, rows) = (spaces.of(sentence), spaces.rows(sentence));
            let shares = spaces.shares(sentence, weights, alpha);
            row_mass.clear();
            row_mass.resize(rows.len() / width, 0.0);
            for (&row, &mass) in of.iter().zip(&shares[shares.len() - of.len()..]) {
                row_mass[row as usize] += mass;
            }
            for (row, &mass) in rows.chunks_exact(width).zip(&row_mass) {
                chunk.stats.iter_mut().zip(row).for_each(|(sum, value)| *sum += mass * value);
            }
            chunk.shares.push(shares);
        }
        chunk
    }

    /// Probabilities worth and its gradient.
    fn gradient(
        &self,
        spaces: &dyn Expect,
        width: usize,
        alpha: f64,
        worth_of: &impl Fn(&[f64]) -> f64,
        scatter: &mut Scatter,
    ) -> (f64, Vec<(u32, f64)>) {
        let mut value = 0.0;
        for (&sentence, shares) in self.sentences.iter().zip(&self.shares) {
            let of = spaces.of(sentence);
            let mass = &shares[shares.len() - of.len()..];
            let worths: Vec<f64> =
                spaces.rows(sentence).chunks_exact(width).map(worth_of).collect();
            let worth = of.iter().map(|&row| worths[row as usize]);
            let mean: f64 = worth.clone().zip(mass).map(|(worth, mass)| worth * mass).sum();
            value += mean;
            let factors: Vec<f64> =
                worth.zip(mass).map(|(worth, mass)| alpha * mass * (worth - mean)).collect();
            spaces.weigh(sentence, shares, &factors, scatter);
        }
        (value, scatter.drain().collect())
    }
}

/// Central differences of the corpus gain: metrics need not know their own derivatives.
fn derivative(metric: &dyn Metric, stats: &[f64]) -> Vec<f64> {
    let mut at = stats.to_vec();
    (0..stats.len())
        .map(|place| {
            let width = 1e-5 * stats[place].abs().max(1.0);
            at[place] = stats[place] + width;
            let above = metric.gain(&at);
            at[place] = stats[place] - width;
            let below = metric.gain(&at);
            at[place] = stats[place];
            (above - below) / (2.0 * width)
        })
        .collect()
}
