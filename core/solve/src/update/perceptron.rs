//! The perceptron.

use super::{Separate, Stepped, Update};
use crate::Fault;
use crate::model::Model;
use crate::rows::Rows;

/// `w += η x` for every row in which y- is worse than y+ and yet scores at least as high.
#[derive(Debug, Clone)]
pub struct Perceptron {
    pub rate: f64,
    rows: Rows,
}

impl Perceptron {
    pub fn new(rate: f64) -> Self {
        Perceptron { rate, rows: Rows::default() }
    }
}

impl Update for Perceptron {
    fn slow_down(&mut self, factor: f64) {
        self.rate *= factor;
    }

    fn step(&mut self, model: &mut Model, batch: &mut dyn Separate) -> Result<Stepped, Fault> {
        let mut stepped = Stepped::default();
        batch.separate(model, 0, &mut self.rows)?;
        for row in 0..self.rows.len() {
            let margin = self.rows.margin(row, model);
            if self.rows.gains[row] > 0.0 && margin <= 0.0 {
                let (ids, values) = self.rows.row(row);
                model.add(ids, values, self.rate);
                stepped.updates += 1;
                stepped.loss -= margin;
            }
        }
        Ok(stepped)
    }
}
