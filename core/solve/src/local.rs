//! Weights near given ones that suit a few lists: local training (Liu et al. 2012).
//!
//! All of it happens in a scale of its own. The weights are divided by the spread of their scores,
//! the mean standard deviation within a list, so that λ means the same whatever the size of the
//! weights; what is learnt is multiplied by it again.

mod error;
mod margin;

use tunesmith_metric::{Metric, Table};
use tunesmith_space::{Block, Pools};

pub use error::Error;
pub use margin::Margin;

/// Lists, and the weights to stay near.
pub struct Lists<'a> {
    pub blocks: &'a [Block],
    pub weights: &'a [f64],
    /// What the weights may be, or nothing where there are no bounds.
    pub bounds: Option<(&'a [f64], &'a [f64])>,
    /// Whether features count in units of their own spread, and not as they are.
    pub normalise: bool,
}

/// What was learnt.
#[derive(Debug, Clone)]
pub struct Learnt {
    pub weights: Vec<f64>,
    /// The spread that the weights were divided by.
    pub spread: f64,
    /// The least value of the objective that was found.
    pub objective: f64,
    /// How often all lists were looked at.
    pub passes: usize,
    /// What the objective is above its minimum at most; NaN where nobody knows.
    pub gap: f64,
}

/// Sentence gains of all hypotheses, in order.
pub fn gains_of(pools: &Pools, table: &Table, metric: &dyn Metric) -> Vec<f64> {
    let mut all = Vec::with_capacity(pools.hypotheses());
    let mut rows = Vec::new();
    for sentence in 0..pools.sentences() {
        metric.sentence_gains(table.rows(sentence), &mut rows);
        all.extend(table.of(pools.list(sentence)).iter().map(|&row| rows[row as usize]));
    }
    all
}

/// Lists of `pools` with their sentence gains.
pub fn blocks_of(pools: &Pools, table: &Table, metric: &dyn Metric) -> Vec<Block> {
    let gains = gains_of(pools, table, metric);
    let own = |list: usize| gains[pools.list(list)].to_vec();
    (0..pools.sentences()).map(|list| Block::of(pools, list, own(list))).collect()
}

/// The lists in a scale in which scores under the given weights have a spread of one. What is
/// learnt is a move `d`, zero at the start: weight `i` is `base[i] + rates[i] · d[i]`.
struct Scaled<'a> {
    lists: &'a Lists<'a>,
    /// Those that have a hypothesis.
    filled: Vec<&'a Block>,
    /// Scores under the given weights, of each hypothesis of these.
    scores: Vec<f64>,
    base: Vec<f64>,
    rates: Vec<f64>,
    /// Bounds of the move.
    bounds: Option<(Vec<f64>, Vec<f64>)>,
    spread: f64,
}

impl<'a> Scaled<'a> {
    fn new(lists: &'a Lists<'a>) -> Scaled<'a> {
        let filled: Vec<&Block> = lists.blocks.iter().filter(|list| !list.is_empty()).collect();
        let mut scores = Vec::with_capacity(filled.iter().map(|list| list.len()).sum());
        let (mut sum, mut count) = (0.0, 0);
        let (mut own, mut room) = (Vec::new(), Vec::new());
        for list in &filled {
            list.dot(lists.weights, &mut room, &mut own);
            scores.extend_from_slice(&own);
            if own.len() > 1 {
                sum += deviation(&own);
                count += 1;
            }
        }
        let spread = match sum / f64::from(count) {
            mean if mean > 0.0 && mean.is_finite() => mean,
            // All scores of a list are equal: there is no scale to learn in but the weights' own.
            _ => 1.0,
        };
        scores.iter_mut().for_each(|score| *score /= spread);
        let rates = match lists.normalise {
            true => rates(&filled, lists.weights.len()),
            false => vec![1.0; lists.weights.len()],
        };
        let bounds = lists.bounds.map(|(lower, upper)| {
            let moved = |bounds: &[f64]| {
                let ends = bounds.iter().zip(lists.weights).zip(&rates);
                ends.map(|((end, weight), rate)| (end - weight) / (spread * rate)).collect()
            };
            (moved(lower), moved(upper))
        });
        let base = lists.weights.iter().map(|weight| weight / spread).collect();
        Scaled { lists, filled, scores, base, rates, bounds, spread }
    }

    /// The weights after a move, in the scale of the lists.
    fn weights_at(&self, moved: &[f64], out: &mut Vec<f64>) {
        out.clear();
        let all = self.base.iter().zip(&self.rates).zip(moved);
        out.extend(all.map(|((base, rate), moved)| base + rate * moved));
    }

    /// The lists with their scores before any move.
    fn at_start(&self) -> impl Iterator<Item = (&'a Block, &[f64])> {
        let mut rest = self.scores.as_slice();
        self.filled.iter().map(move |&list| {
            let (own, behind) = rest.split_at(list.len());
            rest = behind;
            (list, own)
        })
    }

    fn clip(&self, id: usize, moved: f64) -> f64 {
        match &self.bounds {
            Some((lower, upper)) => moved.clamp(lower[id].min(0.0), upper[id].max(0.0)),
            None => moved,
        }
    }

    fn is_fixed(&self, id: usize) -> bool {
        self.bounds.as_ref().is_some_and(|(lower, upper)| lower[id] >= upper[id])
    }

    /// The weights after a move, in the scale that they came in; those that stay are the same to
    /// the bit.
    fn learnt(&self, moved: &[f64]) -> Vec<f64> {
        let weights = self.lists.weights.iter().enumerate();
        weights
            .map(|(id, &weight)| {
                if moved[id] == 0.0 {
                    return weight;
                }
                let there = weight + self.spread * self.rates[id] * moved[id];
                match self.lists.bounds {
                    Some((lower, upper)) => there.clamp(lower[id], upper[id]),
                    None => there,
                }
            })
            .collect()
    }

    /// What each example may cost at most: λ/K.
    fn share(&self, strength: f64) -> f64 {
        strength / self.filled.len().max(1) as f64
    }
}

fn deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count).sqrt()
}

/// One over the spread of each feature: the root of its mean variance over the lists in which it
/// varies; one for features that never vary.
fn rates(filled: &[&Block], features: usize) -> Vec<f64> {
    let (mut variances, mut lists) = (vec![0.0; features], vec![0.0; features]);
    for list in filled {
        list.variances(|id, variance| {
            variances[id as usize] += variance;
            lists[id as usize] += 1.0;
        });
    }
    let rate = |(&variance, &lists): (&f64, &f64)| match variance > 0.0 {
        true => (lists / variance).sqrt(),
        false => 1.0,
    };
    variances.iter().zip(&lists).map(rate).collect()
}
