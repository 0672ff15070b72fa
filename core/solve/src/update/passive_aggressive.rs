//! Closed-form margin updates: PA-I, 1-best MIRA, RM-PA.

use super::{Separate, Stepped, Update};
use crate::Fault;
use crate::model::Model;
use crate::rows::Rows;

/// For each violated row, one after the other: `w += min(C, loss / ‖x‖²) x`. With a selector that
/// has several rounds (the bounds of the relative margin) each round sees the weights that the
/// one before it left.
#[derive(Debug, Clone)]
pub struct PassiveAggressive {
    pub c: f64,
    pub rate: f64,
    /// Multiply the step by the plain gain of y+.
    pub scale_by_oracle: bool,
    rows: Rows,
}

impl PassiveAggressive {
    pub fn new(c: f64, rate: f64, scale_by_oracle: bool) -> Self {
        PassiveAggressive { c, rate, scale_by_oracle, rows: Rows::default() }
    }
}

impl Update for PassiveAggressive {
    fn slow_down(&mut self, factor: f64) {
        self.rate *= factor;
    }

    fn asks(&self, rounds: usize) -> Option<usize> {
        (rounds == 1).then_some(1)
    }

    fn is_scaled(&self) -> bool {
        self.scale_by_oracle
    }

    fn step(&mut self, model: &mut Model, batch: &mut dyn Separate) -> Result<Stepped, Fault> {
        let mut stepped = Stepped::default();
        self.rows.scaled = self.is_scaled();
        for round in 0..batch.rounds() {
            batch.separate(model, round, &mut self.rows)?;
            for row in 0..self.rows.len() {
                let loss = self.rows.violation(row, model);
                let (ids, values) = self.rows.row(row);
                let norm2 = model.norm2(ids, values);
                if loss > 0.0 && norm2 > 0.0 {
                    let cap =
                        if self.rows.caps[row].is_nan() { self.c } else { self.rows.caps[row] };
                    let mut step = (loss / norm2).min(cap) * self.rate;
                    if self.scale_by_oracle {
                        step *= self.rows.oracles[row];
                    }
                    model.add(ids, values, step);
                    stepped.updates += 1;
                    stepped.loss += loss;
                }
            }
        }
        Ok(stepped)
    }
}
