//! The perceptron.

use super::{Separate, Stepped, Update};
use crate::Fault;
use crate::model::Model;
use crate::rows::Rows;

/// `w += η x` for every row in which y- is worse than y+ and yet scores at least as high.
#[derive(Debug, Clone)]
pub struct Perceptron {
    pub rate: f64,
    /// Add the mean of the rows of a batch, all found wrong under the same weights, and not one
    /// after the other (Zhao & Huang 2013).
    pub mean: bool,
    /// Whether y- must score as high; without, every row is added.
    pub checked: bool,
    rows: Rows,
}

impl Perceptron {
    pub fn new(rate: f64) -> Self {
        Perceptron { rate, mean: false, checked: true, rows: Rows::default() }
    }

    fn is_wrong(&self, row: usize, margin: f64) -> bool {
        self.rows.gains[row] > 0.0 && (margin <= 0.0 || !self.checked)
    }
}

impl Update for Perceptron {
    fn slow_down(&mut self, factor: f64) {
        self.rate *= factor;
    }

    fn step(&mut self, model: &mut Model, batch: &mut dyn Separate) -> Result<Stepped, Fault> {
        let mut stepped = Stepped::default();
        batch.separate(model, 0, &mut self.rows)?;
        if self.mean {
            let margins = (0..self.rows.len()).map(|row| (row, self.rows.margin(row, model)));
            let wrong: Vec<(usize, f64)> =
                margins.filter(|&(row, margin)| self.is_wrong(row, margin)).collect();
            for &(row, margin) in &wrong {
                let (ids, values) = self.rows.row(row);
                model.add(ids, values, self.rate / wrong.len() as f64);
                stepped.updates += 1;
                stepped.loss -= margin;
            }
            return Ok(stepped);
        }
        for row in 0..self.rows.len() {
            let margin = self.rows.margin(row, model);
            if self.is_wrong(row, margin) {
                let (ids, values) = self.rows.row(row);
                model.add(ids, values, self.rate);
                stepped.updates += 1;
                stepped.loss -= margin;
            }
        }
        Ok(stepped)
    }
}
