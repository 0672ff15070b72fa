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
    let count = rows.len().max(1) as f64;
    let starts: Vec<usize> = (0..rows.len()).step_by(CHUNK).collect();
    let parts: Vec<(f64, Vec<(u32, f64)>)> = starts
        .par_iter()
        .map_init(
            || Scatter::new(weights.len()),
            |scatter, &start| {
                let mut value = 0.0;
                for row in start..(start + CHUNK).min(rows.len()) {
                    let (ids, values) = rows.row(row);
                    let score: f64 =
                        ids.iter().zip(values).map(|(&id, x)| weights[id as usize] * x).sum();
                    let mut slope = [score + rows.offsets[row]];
                    value += loss.slopes(&rows.gains[row..=row], &mut slope);
                    if slope[0] != 0.0 {
                        ids.iter().zip(values).for_each(|(&id, x)| {
                            scatter.add(id, slope[0] * x / count);
                        });
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
