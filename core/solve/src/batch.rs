//! The loss of many rows at once, for optimisers that want a value and a gradient.

use rayon::prelude::*;

use crate::blocks::{Blocks, Sparse, fold};
use crate::loss::Loss;
use crate::rows::Rows;
use crate::scatter::Scatter;

/// Rows of the sentences of some blocks.
pub struct BlockRows {
    pub rows: Rows,
    /// Where the rows of each block end.
    ends: Vec<usize>,
}

impl BlockRows {
    /// The rows are in the order of their groups, which are sentences.
    pub fn new(rows: Rows, blocks: &Blocks) -> Self {
        let end = |block: usize| {
            let after = blocks.range(block).end as u32;
            rows.groups.partition_point(|&group| group < after)
        };
        let ends = (0..blocks.len()).map(end).collect();
        BlockRows { rows, ends }
    }

    fn range(&self, block: usize) -> std::ops::Range<usize> {
        block.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[block]
    }

    /// The loss of the rows of each block and its gradient, divided by the number of rows of all
    /// workers. Sentences are not told apart: for losses of single rows.
    pub fn losses(&self, weights: &[f64], loss: Loss, count: usize) -> (Vec<f64>, Sparse) {
        // Of a single row they are the same, and each row is its own sentence here.
        let loss = if loss == Loss::Softmax { Loss::Logistic } else { loss };
        let (rows, count) = (&self.rows, count.max(1) as f64);
        let parts: Vec<(f64, Vec<(u32, f64)>)> = (0..self.ends.len())
            .into_par_iter()
            .map_init(
                || (Scatter::new(weights.len()), Vec::new()),
                |(scatter, slopes), block| {
                    let chunk = self.range(block);
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
        let (values, slopes): (Vec<f64>, Vec<_>) = parts.into_iter().unzip();
        (values, Sparse::collect(slopes))
    }

    /// Mean loss of the rows at `weights`, and its gradient.
    pub fn mean_loss(&self, weights: &[f64], loss: Loss) -> (f64, Vec<f64>) {
        let (values, slopes) = self.losses(weights, loss, self.rows.len());
        (fold(&values, 1)[0], slopes.sum(weights.len()))
    }

    /// The sum of squares of each feature over the rows of each block.
    pub fn squares(&self, features: usize) -> Sparse {
        let block = |scatter: &mut Scatter, block: usize| {
            for row in self.range(block) {
                let (ids, values) = self.rows.row(row);
                ids.iter().zip(values).for_each(|(&id, x)| scatter.add(id, x * x));
            }
            scatter.drain().collect()
        };
        let parts: Vec<Vec<(u32, f64)>> = (0..self.ends.len())
            .into_par_iter()
            .map_init(|| Scatter::new(features), block)
            .collect();
        Sparse::collect(parts)
    }
}
