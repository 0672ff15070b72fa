//! Adaptive regularisation of weights (Crammer, Kulesza & Dredze 2009), diagonal.

use super::{Separate, Stepped, Update};
use crate::Fault;
use crate::model::{Model, rearrange};
use crate::rows::Rows;

/// Variances Σ start at `variance`. For a violated row, `v = xᵀΣx`, `β = 1/(v + r)`:
/// `w += β loss Σx`, `Σ -= β (Σx)²`. The linearised form (Green et al. 2013, eq. 11) adds the
/// squared gradient to the precision first: `1/Σ += x²/r`, then `w += η Σx`.
#[derive(Debug, Clone)]
pub struct Arow {
    pub r: f64,
    pub rate: f64,
    pub linear: bool,
    /// Of features that have not been seen.
    new: f64,
    variance: Vec<f64>,
    rows: Rows,
}

impl Arow {
    pub fn new(r: f64, rate: f64, variance: f64, linear: bool, features: usize) -> Self {
        let rows = Rows::default();
        Arow { r, rate, linear, new: variance, variance: vec![variance; features], rows }
    }
}

impl Update for Arow {
    fn slow_down(&mut self, factor: f64) {
        self.rate *= factor;
    }

    fn asks(&self, _rounds: usize) -> Option<usize> {
        Some(1)
    }

    fn step(&mut self, model: &mut Model, batch: &mut dyn Separate) -> Result<Stepped, Fault> {
        let mut stepped = Stepped::default();
        batch.separate(model, 0, &mut self.rows)?;
        for row in 0..self.rows.len() {
            let loss = self.rows.violation(row, model);
            let (ids, values) = self.rows.row(row);
            if loss <= 0.0 || ids.is_empty() {
                continue;
            }
            let spread: f64 = ids
                .iter()
                .zip(values)
                .map(|(&id, value)| self.variance[id as usize] * value * value)
                .sum();
            let beta = 1.0 / (spread + self.r);
            for (&id, value) in ids.iter().zip(values) {
                let variance = &mut self.variance[id as usize];
                let step = if self.linear {
                    *variance = 1.0 / (1.0 / *variance + value * value / self.r);
                    self.rate * *variance * value
                } else {
                    let along = *variance * value;
                    *variance -= beta * along * along;
                    self.rate * beta * loss * along
                };
                model.set(id, model.weight(id) + step);
            }
            stepped.updates += 1;
            stepped.loss += loss;
        }
        Ok(stepped)
    }

    fn rearrange(&mut self, places: &[u32], features: usize) -> Result<(), Fault> {
        rearrange(&mut self.variance, places, features, self.new);
        Ok(())
    }

    fn state(&self) -> Vec<f64> {
        self.variance.clone()
    }

    fn restore(&mut self, state: &[f64]) -> bool {
        let fits = state.len() == self.variance.len();
        if fits {
            self.variance.copy_from_slice(state);
        }
        fits
    }
}
