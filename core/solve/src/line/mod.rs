//! Exact line search (Och 2003): upper envelopes and one sweep over their breakpoints.

use tunesmith_metric::Metric;

use crate::blocks::fold;

mod envelope;
mod forests;
mod lists;
mod sweep;
mod tops;

pub use forests::ForestSearch;
pub use lists::ListSearch;
pub use sweep::Breaks;

/// The best step along a direction: how far, and the corpus gain it reaches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    pub step: f64,
    pub gain: f64,
}

/// A point in weight space with everything that line search keeps about it.
#[derive(Debug, Clone)]
pub struct Walker {
    weights: Vec<f64>,
    /// Model score of every hypothesis of lists, of every edge of forests.
    scores: Vec<f64>,
    /// The statistics of what is chosen for each sentence, by number (`u32::MAX` for nothing).
    rows: Vec<u32>,
    /// These statistics, where they are not kept elsewhere.
    stats: Vec<f64>,
    /// Their sum for each block of sentences.
    sums: Vec<f64>,
}

impl Walker {
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The statistics of what is chosen here, a row for each block of sentences.
    pub fn sums(&self) -> &[f64] {
        &self.sums
    }
}

/// Search spaces prepared for line search along some coordinates.
pub trait LineSearch: Send + Sync {
    fn metric(&self) -> &dyn Metric;

    /// The number of coordinates that may move.
    fn axes(&self) -> usize;

    /// The coordinate of an axis.
    fn coordinate(&self, axis: usize) -> usize;

    /// The point of some weights; all scores are computed from them, so rounding does not add up.
    fn walker(&self, weights: Vec<f64>) -> Walker;

    /// The breakpoints along an axis within a range of steps.
    fn axis_breaks(&self, walker: &Walker, axis: usize, range: (f64, f64)) -> Breaks;

    /// The breakpoints along any direction within a range of steps.
    fn breaks(&self, walker: &Walker, direction: &[f64], range: (f64, f64)) -> Breaks;

    /// Goes a step along an axis.
    fn move_axis(&self, walker: &mut Walker, axis: usize, step: f64);

    /// The gain at a point of all sentences that are searched.
    fn gain(&self, walker: &Walker) -> f64 {
        self.metric().gain(&fold(&walker.sums, self.metric().width()))
    }

    /// The steps along an axis that stay between the weight's bounds.
    fn within(&self, walker: &Walker, axis: usize, bounds: (f64, f64)) -> (f64, f64) {
        let here = walker.weights[self.coordinate(axis)];
        (bounds.0 - here, bounds.1 - here)
    }

    /// The best step along an axis, between the weight's bounds.
    fn axis(&self, walker: &Walker, axis: usize, bounds: (f64, f64)) -> Step {
        let range = self.within(walker, axis, bounds);
        let breaks = self.axis_breaks(walker, axis, range);
        breaks.best(self.metric(), &walker.sums, self.gain(walker), range)
    }

    /// The best step along any direction within a range of steps.
    fn direction(&self, walker: &Walker, direction: &[f64], range: (f64, f64)) -> Step {
        let breaks = self.breaks(walker, direction, range);
        breaks.best(self.metric(), &walker.sums, self.gain(walker), range)
    }
}
