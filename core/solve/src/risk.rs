//! Expected gain over lists (Smith & Eisner 2006) and its gradient.

use rayon::prelude::*;
use tunesmith_metric::{Metric, Table};
use tunesmith_space::Pools;

use crate::scatter::{Scatter, gather};

/// What the expectation is taken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// Mean sentence gain.
    Sentence,
    /// Gain of the expected corpus statistics.
    Corpus,
}

/// Sentences summed into one partial result; fixed, so that the sum does not depend on threads.
const CHUNK: usize = 64;

/// Value and gradient of the expected gain at `weights` under `p ∝ exp(α s)`.
pub fn expected_gain(
    pools: &Pools,
    table: &Table,
    metric: &dyn Metric,
    weights: &[f64],
    alpha: f64,
    objective: Objective,
) -> (f64, Vec<f64>) {
    let sentences: Vec<usize> =
        (0..pools.sentences()).filter(|&sentence| !pools.list(sentence).is_empty()).collect();
    let count = sentences.len().max(1) as f64;
    let chunks: Vec<Chunk> = sentences
        .par_chunks(CHUNK)
        .map(|chunk| Chunk::new(pools, table, weights, alpha, chunk))
        .collect();
    // Per unit of each statistic: its worth to the corpus gain.
    let (corpus, worth) = match objective {
        Objective::Sentence => (None, Vec::new()),
        Objective::Corpus => {
            let mut expected = vec![0.0; table.width()];
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
            |scatter, (chunk, posterior)| {
                posterior.gradient(pools, table, alpha, chunk, &worth_of, scatter)
            },
        )
        .collect();
    let value = parts.iter().map(|part| part.0).sum();
    let gradient = gather(parts.into_iter().map(|part| part.1), weights.len());
    (corpus.unwrap_or(value), gradient)
}

/// Posteriors of the hypotheses of some sentences, and their expected statistics.
struct Chunk {
    mass: Vec<f64>,
    stats: Vec<f64>,
}

impl Chunk {
    fn new(pools: &Pools, table: &Table, weights: &[f64], alpha: f64, sentences: &[usize]) -> Self {
        let width = table.width();
        let mut chunk = Chunk { mass: Vec::new(), stats: vec![0.0; width] };
        let (mut scores, mut row_mass) = (Vec::new(), Vec::new());
        for &sentence in sentences {
            pools.dot(sentence, weights, &mut scores);
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            scores.iter_mut().for_each(|score| *score = (alpha * (*score - top)).exp());
            let norm = 1.0 / scores.iter().sum::<f64>();
            scores.iter_mut().for_each(|value| *value *= norm);
            row_mass.clear();
            row_mass.resize(table.range(sentence).len(), 0.0);
            for (&row, &mass) in table.of(pools.list(sentence)).iter().zip(&scores) {
                row_mass[row as usize] += mass;
            }
            for (row, &mass) in table.rows(sentence).chunks_exact(width).zip(&row_mass) {
                chunk.stats.iter_mut().zip(row).for_each(|(sum, value)| *sum += mass * value);
            }
            chunk.mass.extend_from_slice(&scores);
        }
        chunk
    }

    /// Expected worth and its gradient.
    fn gradient(
        &self,
        pools: &Pools,
        table: &Table,
        alpha: f64,
        sentences: &[usize],
        worth_of: &impl Fn(&[f64]) -> f64,
        scatter: &mut Scatter,
    ) -> (f64, Vec<(u32, f64)>) {
        let mut value = 0.0;
        let mut done = 0;
        for &sentence in sentences {
            let list = pools.list(sentence);
            let mass = &self.mass[done..done + list.len()];
            done += list.len();
            let worths: Vec<f64> =
                table.rows(sentence).chunks_exact(table.width()).map(worth_of).collect();
            let worth = table.of(list.clone()).iter().map(|&row| worths[row as usize]);
            let mean: f64 = worth.clone().zip(mass).map(|(worth, mass)| worth * mass).sum();
            value += mean;
            for ((hypothesis, worth), mass) in list.zip(worth).zip(mass) {
                let factor = alpha * mass * (worth - mean);
                // Most of a list has no mass to speak of.
                if factor.abs() < 1e-18 {
                    continue;
                }
                let (ids, values) = pools.features(hypothesis);
                for (&id, &feature) in ids.iter().zip(values) {
                    scatter.add(id, factor * f64::from(feature));
                }
            }
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
