//! Exact line search (Och 2003): upper envelopes and one sweep over their breakpoints.

mod envelope;
mod forests;
mod lists;
mod sweep;
mod tops;

pub use forests::ForestSearch;
pub use lists::ListSearch;

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
    total: Vec<f64>,
    gain: f64,
}

impl Walker {
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Corpus gain here.
    pub fn gain(&self) -> f64 {
        self.gain
    }
}

/// Search spaces prepared for line search along some coordinates.
pub trait LineSearch: Send + Sync {
    /// The number of coordinates that may move.
    fn axes(&self) -> usize;

    /// The point of some weights; all scores are computed from them, so rounding does not add up.
    fn walker(&self, weights: Vec<f64>) -> Walker;

    /// The best step along an axis, between the weight's bounds.
    fn axis(&self, walker: &Walker, axis: usize, bounds: (f64, f64)) -> Step;

    /// The best step along any direction within a range of steps.
    fn direction(&self, walker: &Walker, direction: &[f64], range: (f64, f64)) -> Step;

    /// Goes a step along an axis.
    fn move_axis(&self, walker: &mut Walker, axis: usize, step: f64);
}
