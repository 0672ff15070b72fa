//! Expected gain over lists (Smith & Eisner 2006) and its gradient.

use rayon::prelude::*;
use tunesmith_metric::{Metric, Table};
use tunesmith_space::Pools;

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
    // Per unit of each statistic: its worth to the corpus gain.
    let (corpus, worth) = match objective {
        Objective::Sentence => (None, Vec::new()),
        Objective::Corpus => {
            let expected = expected_stats(pools, table, weights, alpha, &sentences);
            let worth = derivative(metric, &expected);
            (Some(metric.gain(&expected)), worth)
        }
    };
    let parts: Vec<(f64, Vec<(u32, f64)>)> = sentences
        .par_chunks(CHUNK)
        .map_init(
            || vec![0.0; weights.len()],
            |dense, chunk| {
                let mut value = 0.0;
                let mut touched = Vec::new();
                let mut mass = Vec::new();
                for &sentence in chunk {
                    posterior(pools, sentence, weights, alpha, &mut mass);
                    let row_gains: Vec<f64> = table
                        .rows(sentence)
                        .chunks_exact(table.width())
                        .map(|row| match objective {
                            Objective::Sentence => metric.sentence_gain(row) / count,
                            Objective::Corpus => row.iter().zip(&worth).map(|(a, b)| a * b).sum(),
                        })
                        .collect();
                    let list = pools.list(sentence);
                    let gains = table.of(list.clone()).iter().map(|&row| row_gains[row as usize]);
                    let mean: f64 = gains.clone().zip(&mass).map(|(gain, mass)| gain * mass).sum();
                    value += mean;
                    for ((hypothesis, gain), mass) in list.zip(gains).zip(&mass) {
                        let factor = alpha * mass * (gain - mean);
                        if factor == 0.0 {
                            continue;
                        }
                        let (ids, values) = pools.features(hypothesis);
                        for (&id, &feature) in ids.iter().zip(values) {
                            let Some(sum) = dense.get_mut(id as usize) else { continue };
                            if *sum == 0.0 {
                                touched.push(id);
                            }
                            *sum += factor * f64::from(feature);
                        }
                    }
                }
                let sparse = touched
                    .iter()
                    .map(|&id| (id, std::mem::take(&mut dense[id as usize])))
                    .filter(|&(_, slope)| slope != 0.0)
                    .collect();
                (value, sparse)
            },
        )
        .collect();
    let mut gradient = vec![0.0; weights.len()];
    let mut value = 0.0;
    for (part, sparse) in parts {
        value += part;
        sparse.into_iter().for_each(|(id, slope)| gradient[id as usize] += slope);
    }
    (corpus.unwrap_or(value), gradient)
}

fn posterior(pools: &Pools, sentence: usize, weights: &[f64], alpha: f64, mass: &mut Vec<f64>) {
    pools.dot(sentence, weights, mass);
    let top = mass.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    mass.iter_mut().for_each(|score| *score = (alpha * (*score - top)).exp());
    let norm: f64 = mass.iter().sum();
    mass.iter_mut().for_each(|value| *value /= norm);
}

fn expected_stats(
    pools: &Pools,
    table: &Table,
    weights: &[f64],
    alpha: f64,
    sentences: &[usize],
) -> Vec<f64> {
    let parts: Vec<Vec<f64>> = sentences
        .par_chunks(CHUNK)
        .map(|chunk| {
            let mut sum = vec![0.0; table.width()];
            let mut mass = Vec::new();
            for &sentence in chunk {
                posterior(pools, sentence, weights, alpha, &mut mass);
                for (hypothesis, mass) in pools.list(sentence).zip(&mass) {
                    let row = table.stats(sentence, hypothesis);
                    sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += mass * value);
                }
            }
            sum
        })
        .collect();
    parts.into_iter().fold(vec![0.0; table.width()], |mut total, part| {
        total.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
        total
    })
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
