//! The loss of many rows at once, for optimisers that want a value and a gradient.

use rayon::prelude::*;

use crate::loss::Loss;
use crate::rows::Rows;
use crate::scatter::{Scatter, gather};

/// Rows summed into one partial result; fixed, so that the sum does not depend on threads.
const CHUNK: usize = 4096;

/// Mean loss of the rows at `weights`, and its gradient. Sentences are not told apart: for losses
/// of single rows.
pub fn mean_loss(rows: &Rows, weights: &[f64], loss: Loss) -> (f64, Vec<f64>) {
    // Of a single row they are the same, and each row is its own sentence here.
    let loss = if loss == Loss::Softmax { Loss::Logistic } else { loss };
    let count = rows.len().max(1) as f64;
    let starts: Vec<usize> = (0..rows.len()).step_by(CHUNK).collect();
    let parts: Vec<(f64, Vec<(u32, f64)>)> = starts
        .par_iter()
        .map_init(
            || (Scatter::new(weights.len()), Vec::with_capacity(CHUNK)),
            |(scatter, slopes), &start| {
                let chunk = start..(start + CHUNK).min(rows.len());
                slopes.clear();
                slopes.extend(chunk.clone().map(|row| {
                    let (ids, values) = rows.row(row);
                    let score: f64 =
                        ids.iter().zip(values).map(|(&id, x)| weights[id as usize] * x).sum();
                    score + rows.offsets[row]
                }));
                let value = loss.slopes(&rows.gains[chunk.clone()], slopes);
                for (row, slope) in chunk.zip(slopes.iter()) {
                    let slope = slope / count;
                    if slope != 0.0 {
                        let (ids, values) = rows.row(row);
                        ids.iter().zip(values).for_each(|(&id, x)| scatter.add(id, slope * x));
                    }
                }
                (value / count, scatter.drain().collect())
            },
        )
        .collect();
    let value = parts.iter().map(|part| part.0).sum();
    (value, gather(parts.into_iter().map(|part| part.1), weights.len()))
}

/// Root mean square of each feature over the rows: the natural unit of its weight's inverse.
pub fn feature_sizes(rows: &Rows, features: usize) -> Vec<f64> {
    let mut squares = vec![0.0; features];
    for (&id, value) in rows.ids.iter().zip(&rows.values) {
        squares[id as usize] += value * value;
    }
    let count = rows.len().max(1) as f64;
    squares.iter().map(|square: &f64| (square / count).sqrt()).collect()
}
