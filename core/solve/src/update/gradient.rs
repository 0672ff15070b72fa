//! Gradient steps on a loss: plain SGD, AdaGrad, with L1 by FOBOS and L2, all at the cost of the
//! active coordinates.

use super::{Separate, Stepped, Update};
use crate::Fault;
use crate::loss::Loss;
use crate::model::Model;
use crate::rows::Rows;
use crate::scatter::Scatter;

/// The step size of a coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// η
    Constant,
    /// η/√t, t the number of steps
    Decreasing,
    /// η/√(Σ g²) per coordinate (Duchi et al. 2011)
    AdaGrad,
}

/// State of one coordinate, side by side so that touching it costs one cache line.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    /// Sum of squared gradients.
    squares: f64,
    /// Step up to which the regularisers have been applied.
    done: u64,
}

/// `w <- w - η_j g`, then `w <- sign(w) [|w| - λ η_j]₊` (Green et al. 2013). A coordinate that
/// the batch does not touch keeps its η_j, so its skipped shrinking is a product that is applied
/// when it is next read. L2 pulls towards `anchor` by the factor `1 - η l2` per step, before L1.
#[derive(Debug, Clone)]
pub struct Gradient {
    pub loss: Loss,
    pub rate: Rate,
    pub eta: f64,
    pub l1: f64,
    pub l2: f64,
    /// Empty stands for zero.
    anchor: Vec<f64>,
    cells: Vec<Cell>,
    step: u64,
    gradient: Scatter,
    rows: Rows,
    margins: Vec<f64>,
}

impl Gradient {
    pub fn new(loss: Loss, rate: Rate, eta: f64, l1: f64, l2: f64, features: usize) -> Self {
        Gradient {
            loss,
            rate,
            eta,
            l1,
            l2,
            anchor: Vec::new(),
            cells: vec![Cell::default(); features],
            step: 0,
            gradient: Scatter::new(features),
            rows: Rows::default(),
            margins: Vec::new(),
        }
    }

    /// Pulls towards these weights instead of zero.
    pub fn anchored(mut self, anchor: Vec<f64>) -> Self {
        self.anchor = anchor;
        self
    }

    fn step_size(&self, cell: Cell) -> f64 {
        match self.rate {
            Rate::Constant => self.eta,
            Rate::Decreasing => self.eta / (self.step.max(1) as f64).sqrt(),
            Rate::AdaGrad if cell.squares > 0.0 => self.eta / cell.squares.sqrt(),
            // Never touched by a gradient: no scale is known, and nothing is shrunk.
            Rate::AdaGrad => 0.0,
        }
    }

    /// Applies the regularisation of all steps that passed a coordinate by.
    fn settle(&mut self, model: &mut Model, id: u32) {
        let cell = self.cells[id as usize];
        let skipped = (self.step - cell.done) as f64;
        self.cells[id as usize].done = self.step;
        if skipped == 0.0 || (self.l1 == 0.0 && self.l2 == 0.0) {
            return;
        }
        let size = self.step_size(cell);
        let anchor = self.anchor.get(id as usize).copied().unwrap_or(0.0);
        let keep = (1.0 - size * self.l2).max(0.0);
        let shrink = size * self.l1;
        let mut weight = model.weight(id);
        if shrink == 0.0 {
            weight = anchor + keep.powf(skipped) * (weight - anchor);
        } else if keep == 1.0 {
            weight = soften(weight, skipped * shrink);
        } else if anchor == 0.0 {
            // Of k steps `|w| <- keep |w| - shrink` the shrinking adds up to a geometric sum.
            let kept = keep.powf(skipped);
            weight = soften(kept * weight, shrink * (1.0 - kept) / (1.0 - keep));
        } else {
            // The two pull different ways, until they hold each other.
            for _ in 0..self.step - cell.done {
                let next = soften(anchor + keep * (weight - anchor), shrink);
                if next == weight {
                    break;
                }
                weight = next;
            }
        }
        model.set(id, weight);
    }
}

fn soften(weight: f64, shrink: f64) -> f64 {
    weight.signum() * (weight.abs() - shrink).max(0.0)
}

impl Update for Gradient {
    fn slow_down(&mut self, factor: f64) {
        self.eta *= factor;
    }

    fn step(&mut self, model: &mut Model, batch: &mut dyn Separate) -> Result<Stepped, Fault> {
        let mut stepped = Stepped::default();
        let mut rows = std::mem::take(&mut self.rows);
        batch.separate(model, 0, &mut rows)?;
        for entry in 0..rows.ids.len() {
            self.settle(model, rows.ids[entry]);
        }
        let mut row = 0;
        while row < rows.len() {
            let group = rows.groups[row];
            let end =
                (row..rows.len()).find(|&next| rows.groups[next] != group).unwrap_or(rows.len());
            self.margins.clear();
            self.margins.extend((row..end).map(|row| rows.margin(row, model)));
            stepped.loss += self.loss.slopes(&rows.gains[row..end], &mut self.margins);
            for (row, &slope) in (row..end).zip(&self.margins) {
                if slope == 0.0 {
                    continue;
                }
                stepped.updates += 1;
                let (ids, values) = rows.row(row);
                for (&id, &value) in ids.iter().zip(values) {
                    self.gradient.add(id, slope * value);
                }
            }
            row = end;
        }
        self.step += 1;
        let mut gradient = std::mem::replace(&mut self.gradient, Scatter::new(0));
        for (id, slope) in gradient.drain() {
            self.cells[id as usize].squares += slope * slope;
            let size = self.step_size(self.cells[id as usize]);
            model.set(id, model.weight(id) - size * slope);
        }
        self.gradient = gradient;
        for entry in 0..rows.ids.len() {
            self.settle(model, rows.ids[entry]);
        }
        self.rows = rows;
        Ok(stepped)
    }

    fn catch_up(&mut self, model: &mut Model, ids: &[u32]) {
        ids.iter().for_each(|&id| self.settle(model, id));
    }

    fn is_lazy(&self) -> bool {
        self.l1 > 0.0 || self.l2 > 0.0
    }

    fn end_pass(&mut self, model: &mut Model) {
        (0..self.cells.len()).for_each(|id| self.settle(model, id as u32));
    }

    fn state(&self) -> Vec<f64> {
        // Between passes every coordinate is settled: the step number is common to all.
        let mut state: Vec<f64> = self.cells.iter().map(|cell| cell.squares).collect();
        state.push(self.step as f64);
        state
    }

    fn restore(&mut self, state: &[f64]) -> bool {
        if state.len() != self.cells.len() + 1 {
            return false;
        }
        self.step = state[self.cells.len()] as u64;
        for (cell, &squares) in self.cells.iter_mut().zip(state) {
            *cell = Cell { squares, done: self.step };
        }
        true
    }
}
