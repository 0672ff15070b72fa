//! Line search over lists.

use std::sync::Arc;

use rayon::prelude::*;
use tunesmith_metric::{Metric, Table};
use tunesmith_space::Pools;

use super::envelope::Envelope;
use super::sweep::{Breaks, Collect};
use super::{LineSearch, Walker};
use crate::blocks::Blocks;

/// Lists prepared for line search along some coordinates. Along an axis the slopes are feature
/// values, so each list is sorted by each of them once and for all; a list in which the feature
/// does not vary is not looked at.
pub struct ListSearch {
    pools: Arc<Pools>,
    table: Arc<Table>,
    metric: Arc<dyn Metric>,
    blocks: Blocks,
    axes: Vec<Axis>,
}

/// A coordinate: the lists in which it varies, hypotheses sorted by its value.
struct Axis {
    id: u32,
    sentences: Vec<u32>,
    /// Where each of these lists starts in `lines`.
    starts: Vec<usize>,
    /// (slope, position in the list), slopes ascending.
    lines: Vec<(f32, u32)>,
}

impl ListSearch {
    /// `coordinates` are the feature ids that may move, `blocks` those of the lists.
    pub fn new(
        pools: Arc<Pools>,
        table: Arc<Table>,
        metric: Arc<dyn Metric>,
        blocks: Blocks,
        coordinates: &[u32],
    ) -> Self {
        assert_eq!(pools.sentences(), blocks.sentences(), "blocks of other lists");
        let axes = coordinates.par_iter().map(|&id| Axis::new(&pools, id)).collect();
        ListSearch { pools, table, metric, blocks, axes }
    }

    fn stats(&self, sentence: usize, hypothesis: u32) -> &[f64] {
        self.table.stats(sentence, hypothesis as usize)
    }

    fn find_best(&self, walker: &mut Walker, sentence: usize) {
        let list = self.pools.list(sentence);
        let start = list.start;
        walker.rows[sentence] = tunesmith_space::argmax(walker.scores[list].iter().copied())
            .map_or(u32::MAX, |(best, _)| (start + best) as u32);
    }

    fn sum_up(&self, walker: &mut Walker) {
        let width = self.metric.width();
        walker.sums.fill(0.0);
        for (sentence, &best) in
            walker.rows.iter().enumerate().filter(|(_, best)| **best != u32::MAX)
        {
            let start = self.blocks.of(sentence) * width;
            let sums = &mut walker.sums[start..start + width];
            let row = self.stats(sentence, best);
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    }

    fn collect(&self, range: (f64, f64)) -> Collect<'_> {
        Collect::new(&self.blocks, self.metric.width(), range)
    }
}

impl Axis {
    fn new(pools: &Pools, id: u32) -> Self {
        let mut axis = Axis { id, sentences: Vec::new(), starts: vec![0], lines: Vec::new() };
        for sentence in 0..pools.sentences() {
            let list = pools.list(sentence);
            let start = axis.lines.len();
            axis.lines.extend(list.enumerate().map(|(position, hypothesis)| {
                let (ids, values) = pools.features(hypothesis);
                // Zero added makes one of -0 and 0, between which the place decides.
                let slope = ids.binary_search(&id).map_or(0.0, |place| values[place] + 0.0);
                (slope, position as u32)
            }));
            let lines = &mut axis.lines[start..];
            lines.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let varies = lines.first().map(|line| line.0) != lines.last().map(|line| line.0);
            if varies {
                axis.sentences.push(sentence as u32);
                axis.starts.push(axis.lines.len());
            } else {
                axis.lines.truncate(start);
            }
        }
        axis.lines.shrink_to_fit();
        axis
    }

    fn lists(&self) -> impl Iterator<Item = (usize, &[(f32, u32)])> {
        self.sentences
            .iter()
            .zip(self.starts.windows(2))
            .map(|(&sentence, window)| (sentence as usize, &self.lines[window[0]..window[1]]))
    }
}

impl LineSearch for ListSearch {
    fn metric(&self) -> &dyn Metric {
        self.metric.as_ref()
    }

    fn axes(&self) -> usize {
        self.axes.len()
    }

    fn coordinate(&self, axis: usize) -> usize {
        self.axes[axis].id as usize
    }

    fn walker(&self, weights: Vec<f64>) -> Walker {
        let sentences = self.pools.sentences();
        let mut walker = Walker {
            weights,
            scores: Vec::with_capacity(self.pools.hypotheses()),
            rows: vec![u32::MAX; sentences],
            stats: Vec::new(),
            sums: vec![0.0; self.blocks.len() * self.metric.width()],
        };
        let mut scores = Vec::new();
        for sentence in 0..sentences {
            self.pools.dot(sentence, &walker.weights, &mut scores);
            walker.scores.extend_from_slice(&scores);
        }
        (0..sentences).for_each(|sentence| self.find_best(&mut walker, sentence));
        self.sum_up(&mut walker);
        walker
    }

    fn axis_breaks(&self, walker: &Walker, axis: usize, range: (f64, f64)) -> Breaks {
        let axis = &self.axes[axis];
        let mut envelope = Envelope::default();
        let mut found = self.collect(range);
        for (sentence, lines) in axis.lists() {
            let start = self.pools.list(sentence).start;
            let scores = &walker.scores[start..start + lines.len()];
            envelope.build(lines.len(), |place| {
                let (slope, position) = lines[place];
                (f64::from(slope), scores[position as usize], position)
            });
            let now = self.stats(sentence, walker.rows[sentence]);
            found.add(sentence, &envelope.hull, now, |line| {
                self.stats(sentence, start as u32 + line)
            });
        }
        found.finish()
    }

    fn breaks(&self, walker: &Walker, direction: &[f64], range: (f64, f64)) -> Breaks {
        let mut envelope = Envelope::default();
        let mut found = self.collect(range);
        let mut slopes = Vec::new();
        let mut lines = Vec::new();
        for sentence in 0..self.pools.sentences() {
            let list = self.pools.list(sentence);
            self.pools.dot(sentence, direction, &mut slopes);
            lines.clear();
            lines.extend(
                slopes
                    .iter()
                    .zip(&walker.scores[list.clone()])
                    .enumerate()
                    .map(|(position, (&slope, &score))| (slope + 0.0, score, position as u32)),
            );
            lines.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
            envelope.build(lines.len(), |place| lines[place]);
            if envelope.hull.len() > 1 {
                let now = self.stats(sentence, walker.rows[sentence]);
                found.add(sentence, &envelope.hull, now, |line| {
                    self.stats(sentence, list.start as u32 + line)
                });
            }
        }
        found.finish()
    }

    fn move_axis(&self, walker: &mut Walker, axis: usize, step: f64) {
        let axis = &self.axes[axis];
        walker.weights[axis.id as usize] += step;
        for (sentence, lines) in axis.lists() {
            let start = self.pools.list(sentence).start;
            for &(slope, position) in lines {
                walker.scores[start + position as usize] += step * f64::from(slope);
            }
            self.find_best(walker, sentence);
        }
        self.sum_up(walker);
    }
}
