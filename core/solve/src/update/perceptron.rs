//! The perceptron.

use super::{Separate, Stepped, Update};
use crate::Fault;
use crate::model::Model;
use crate::rows::Rows;

/// Which rows move the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// y- scores at least as high as a better y+.
    Wrong,
    /// y+ wins by less than the difference of gains.
    Loss,
    /// y+ is better, whatever the scores.
    Always,
}

/// `w += η x` for every row that counts.
#[derive(Debug, Clone)]
pub struct Perceptron {
    pub rate: f64,
    /// Add the mean over the sentences of a batch, all judged under the same weights, and not one
    /// row after the other (Zhao & Huang 2013). The rows of a sentence are summed.
    pub mean: bool,
    pub when: When,
    rows: Rows,
}

impl Perceptron {
    pub fn new(rate: f64) -> Self {
        Perceptron { rate, mean: false, when: When::Wrong, rows: Rows::default() }
    }

    fn counts(&self, row: usize, margin: f64) -> bool {
        let gain = self.rows.gains[row];
        // Equal features cannot be told apart, whatever the weights.
        gain > 0.0
            && !self.rows.row(row).0.is_empty()
            && match self.when {
                When::Wrong => margin <= 0.0,
                When::Loss => margin < gain,
                When::Always => true,
            }
    }

    /// What a row has lost, by the same rule.
    fn loss(&self, row: usize, margin: f64) -> f64 {
        if self.when == When::Loss { self.rows.gains[row] - margin } else { -margin }
    }
}

impl Update for Perceptron {
    fn slow_down(&mut self, factor: f64) {
        self.rate *= factor;
    }

    fn asks(&self, _rounds: usize) -> Option<usize> {
        Some(1)
    }

    fn step(&mut self, model: &mut Model, batch: &mut dyn Separate) -> Result<Stepped, Fault> {
        let mut stepped = Stepped::default();
        batch.separate(model, 0, &mut self.rows)?;
        if self.mean {
            let margins = (0..self.rows.len()).map(|row| (row, self.rows.margin_then(row, model)));
            let found: Vec<(usize, f64)> =
                margins.filter(|&(row, margin)| self.counts(row, margin)).collect();
            let mut sentences: Vec<u32> =
                found.iter().map(|&(row, _)| self.rows.groups[row]).collect();
            sentences.dedup();
            let rate = self.rate / sentences.len().max(1) as f64;
            for &(row, margin) in &found {
                let (ids, values) = self.rows.row(row);
                model.add(ids, values, rate);
                stepped.updates += 1;
                stepped.loss += self.loss(row, margin);
            }
            return Ok(stepped);
        }
        for row in 0..self.rows.len() {
            let margin = self.rows.margin(row, model);
            if self.counts(row, margin) {
                let (ids, values) = self.rows.row(row);
                model.add(ids, values, self.rate);
                stepped.updates += 1;
                stepped.loss += self.loss(row, margin);
            }
        }
        Ok(stepped)
    }
}
