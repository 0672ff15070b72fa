//! Expected gain (Smith & Eisner 2006) and its gradient.

use rayon::prelude::*;
use tunesmith_metric::Metric;

use crate::scatter::{Scatter, gather};

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

/// Sentences summed into one partial result; fixed, so that the sum does not depend on threads.
const CHUNK: usize = 64;

/// Value and gradient of the expected gain at `weights` under `p ∝ exp(α s)`.
pub fn expected_gain(
    spaces: &dyn Expect,
    metric: &dyn Metric,
    weights: &[f64],
    alpha: f64,
    objective: Objective,
) -> (f64, Vec<f64>) {
    let sentences: Vec<usize> =
        (0..spaces.sentences()).filter(|&sentence| !spaces.of(sentence).is_empty()).collect();
    let count = sentences.len().max(1) as f64;
    let chunks: Vec<Chunk> = sentences
        .par_chunks(CHUNK)
        .map(|chunk| Chunk::new(spaces, metric.width(), weights, alpha, chunk))
        .collect();
    // Per unit of each statistic: its worth to the corpus gain.
    let (corpus, worth) = match objective {
        Objective::Sentence => (None, Vec::new()),
        Objective::Corpus => {
            let mut expected = vec![0.0; metric.width()];
            for chunk in &chunks {
                expected.iter_mut().zip(&chunk.stats).for_each(|(sum, value)| *sum += value);
            }
            (Some(metric.gain(&expected)), derivative(metric, &expected))
        }
    };
    let worth_of = |row: &[f64]| match objective {
        Objective::Sentence => metric.sentence_gain(row) / count,
        Objective::Corpus => row.iter().zip(&worth).map(|(value, worth)| value * worth).sum(),
    };
    let parts: Vec<(f64, Vec<(u32, f64)>)> = sentences
        .par_chunks(CHUNK)
        .zip(&chunks)
        .map_init(
            || Scatter::new(weights.len()),
            |scatter, (sentences, chunk)| {
                chunk.gradient(spaces, metric.width(), alpha, sentences, &worth_of, scatter)
            },
        )
        .collect();
    let value = parts.iter().map(|part| part.0).sum();
    let gradient = gather(parts.into_iter().map(|part| part.1), weights.len());
    (corpus.unwrap_or(value), gradient)
}

/// Probabilities of the hypotheses of some sentences, and their expected statistics.
struct Chunk {
    shares: Vec<Vec<f64>>,
    stats: Vec<f64>,
}

impl Chunk {
    fn new(
        spaces: &dyn Expect,
        width: usize,
        weights: &[f64],
        alpha: f64,
        sentences: &[usize],
    ) -> Self {
        let mut chunk = Chunk { shares: Vec::new(), stats: vec![0.0; width] };
        let mut row_mass = Vec::new();
        for &sentence in sentences {
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

    /// Expected worth and its gradient.
    fn gradient(
        &self,
        spaces: &dyn Expect,
        width: usize,
        alpha: f64,
        sentences: &[usize],
        worth_of: &impl Fn(&[f64]) -> f64,
        scatter: &mut Scatter,
    ) -> (f64, Vec<(u32, f64)>) {
        let mut value = 0.0;
        for (&sentence, shares) in sentences.iter().zip(&self.shares) {
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
