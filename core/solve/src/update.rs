//! Update rules: how constraints move the weights.

mod arow;
mod cutting_plane;
mod gradient;
mod hildreth;
mod passive_aggressive;
mod perceptron;

pub use arow::Arow;
pub use cutting_plane::CuttingPlane;
pub use gradient::{Gradient, Rate, Shrink};
pub use hildreth::Hildreth;
pub use passive_aggressive::PassiveAggressive;
pub use perceptron::{Perceptron, When};

use crate::Fault;
use crate::model::Model;
use crate::rows::Rows;

/// Where an update gets its constraints: each call selects anew under the model as it is now.
pub trait Separate {
    fn rounds(&self) -> usize;

    /// Replaces `rows` by the constraints of a round for all sentences of the batch.
    fn separate(&mut self, model: &Model, round: usize, rows: &mut Rows) -> Result<(), Fault>;
}

/// What a step did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stepped {
    /// Constraints that moved the weights.
    pub updates: u64,
    /// Sum of the losses before the step.
    pub loss: f64,
}

/// One update rule with its state. State is plain numbers, so that it can be saved.
pub trait Update: Send + Sync {
    fn step(&mut self, model: &mut Model, batch: &mut dyn Separate) -> Result<Stepped, Fault>;

    /// How many of a selector's rounds a step asks for, each of them once and under the weights
    /// that it starts from; nothing if it selects again under weights that it has moved.
    fn asks(&self, _rounds: usize) -> Option<usize> {
        None
    }

    /// Whether a step wants to know the plain gain of y+.
    fn is_scaled(&self) -> bool {
        false
    }

    /// Brings lazily updated weights up to date before they are read.
    fn catch_up(&mut self, _model: &mut Model, _ids: &[u32]) {}

    /// Whether [`catch_up`](Self::catch_up) does anything.
    fn is_lazy(&self) -> bool {
        false
    }

    /// Multiplies the learning rate.
    fn slow_down(&mut self, factor: f64);

    /// Called before the first step of a pass; `watched` tells whether anyone reads the model's
    /// weights between steps.
    fn begin_pass(&mut self, _model: &Model, _watched: bool) {}

    /// Called when somebody else has changed the model's weights between passes.
    fn weights_replaced(&mut self) {}

    /// Called after the last step of a pass over the corpus.
    fn end_pass(&mut self, _model: &mut Model) {}

    /// Called when a learner has passed over all of its sentences once.
    fn end_epoch(&mut self, _model: &mut Model) {}

    /// Moves what is kept of feature `i` to `places[i]` among `features`; others are new.
    fn rearrange(&mut self, _places: &[u32], _features: usize) -> Result<(), Fault> {
        Ok(())
    }

    fn state(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Takes back what [`state`](Self::state) gave; false if it does not fit.
    fn restore(&mut self, state: &[f64]) -> bool {
        state.is_empty()
    }
}
