//! Gradient steps on a loss: plain SGD, AdaGrad, with L1 by FOBOS and L2, all at the cost of the
//! active coordinates.

use super::{Separate, Stepped, Update};
use crate::Fault;
use crate::loss::Loss;
use crate::model::{Model, rearrange};
use crate::prefetch::{AHEAD, prefetch};
use crate::rows::Rows;

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

/// When regularisers shrink the coordinates that a batch does not touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shrink {
    /// As if after every step, at the latest when a weight is read.
    Exact,
    /// For all steps since the last, when a gradient next touches the weight, after its step, and
    /// at the end of an epoch (Phrasal's updater). Until then the weight is read unshrunk.
    Late,
    /// Only once, at the end of an epoch.
    Touched,
}

/// State of one coordinate, aligned so that touching it costs one cache line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(32))]
struct Cell {
    /// The weight during a pass.
    weight: f64,
    /// Sum of squared gradients.
    squares: f64,
    /// Gradient of the batch at hand.
    gradient: f64,
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
    pub shrink: Shrink,
    /// How often each row counts: twice where its mirror image is an example too.
    pub times: f64,
    /// Empty stands for zero.
    anchor: Vec<f64>,
    cells: Vec<Cell>,
    step: u64,
    /// Somebody reads the model's weights during the pass, so each change is written there too.
    watched: bool,
    /// The cells hold the model's weights.
    loaded: bool,
    /// Some steps may have passed a coordinate by.
    behind: bool,
    /// Coordinates with a gradient in the batch at hand.
    touched: Vec<u32>,
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
            shrink: Shrink::Exact,
            times: 1.0,
            anchor: Vec::new(),
            cells: vec![Cell::default(); features],
            step: 0,
            watched: true,
            loaded: false,
            behind: false,
            touched: Vec::new(),
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

    /// With very many features every entry is far away; asking early hides most of the way.
    #[inline(always)]
    fn ask_for(&self, ids: &[u32], place: usize) {
        if let Some(&id) = ids.get(place) {
            prefetch(&self.cells, id as usize);
        }
    }

    fn change(&mut self, model: &mut Model, id: u32, weight: f64) {
        let weight = model.within_bounds(id, weight);
        self.cells[id as usize].weight = weight;
        if self.watched {
            model.set(id, weight);
        }
    }

    /// Applies the regularisation of all steps that passed a coordinate by.
    fn settle(&mut self, model: &mut Model, id: u32) {
        let cell = self.cells[id as usize];
        if cell.done == self.step || self.shrink != Shrink::Exact {
            return;
        }
        self.cells[id as usize].done = self.step;
        // Nothing shrinks a zero; most weights of a sparse model are one.
        if cell.weight == 0.0 && self.anchor.is_empty() {
            return;
        }
        let size = self.step_size(cell);
        let weight = self.regularised(id, cell.weight, size, self.step - cell.done);
        self.change(model, id, weight);
    }

    /// The weight after some steps of regularisation without a gradient.
    fn regularised(&self, id: u32, mut weight: f64, size: f64, steps: u64) -> f64 {
        let anchor = self.anchor.get(id as usize).copied().unwrap_or(0.0);
        let keep = (1.0 - size * self.l2).max(0.0);
        let shrink = size * self.l1;
        let times = steps as f64;
        if keep == 1.0 {
            soften(weight, times * shrink)
        } else if shrink == 0.0 {
            anchor + keep.powf(times) * (weight - anchor)
        } else if anchor == 0.0 {
            // Of k steps `|w| <- keep |w| - shrink` the shrinking adds up to a geometric sum.
            let kept = keep.powf(times);
            soften(kept * weight, shrink * (1.0 - kept) / (1.0 - keep))
        } else {
            // The two pull different ways, until they hold each other.
            for _ in 0..steps {
                let next = soften(anchor + keep * (weight - anchor), shrink);
                if next == weight {
                    break;
                }
                weight = next;
            }
            weight
        }
    }
}

fn soften(weight: f64, shrink: f64) -> f64 {
    weight.signum() * (weight.abs() - shrink).max(0.0)
}

impl Update for Gradient {
    fn slow_down(&mut self, factor: f64) {
        self.eta *= factor;
    }

    fn asks(&self, _rounds: usize) -> Option<usize> {
        Some(1)
    }

    fn step(&mut self, model: &mut Model, batch: &mut dyn Separate) -> Result<Stepped, Fault> {
        let mut stepped = Stepped::default();
        let mut rows = std::mem::take(&mut self.rows);
        batch.separate(model, 0, &mut rows)?;
        let mut row = 0;
        while row < rows.len() {
            let group = rows.groups[row];
            let end =
                (row..rows.len()).find(|&next| rows.groups[next] != group).unwrap_or(rows.len());
            self.margins.clear();
            for row in row..end {
                let (ids, values) = rows.row(row);
                (0..AHEAD).for_each(|place| self.ask_for(ids, place));
                let mut margin = rows.offsets[row];
                for (place, (&id, value)) in ids.iter().zip(values).enumerate() {
                    self.ask_for(ids, place + AHEAD);
                    self.settle(model, id);
                    margin += self.cells[id as usize].weight * value;
                }
                self.margins.push(rows.margins.get(row).copied().unwrap_or(margin));
            }
            stepped.loss += self.times * self.loss.slopes(&rows.gains[row..end], &mut self.margins);
            for (row, &slope) in (row..end).zip(&self.margins) {
                if slope == 0.0 {
                    continue;
                }
                stepped.updates += 1;
                let (ids, values) = rows.row(row);
                for (&id, &value) in ids.iter().zip(values) {
                    let cell = &mut self.cells[id as usize];
                    // A sum that cancels on the way is listed twice; its second turn is empty.
                    if cell.gradient == 0.0 {
                        self.touched.push(id);
                    }
                    cell.gradient += self.times * slope * value;
                }
            }
            row = end;
        }
        self.step += 1;
        self.behind = true;
        let touched = std::mem::take(&mut self.touched);
        for (place, &id) in touched.iter().enumerate() {
            self.ask_for(&touched, place + AHEAD);
            let cell = &mut self.cells[id as usize];
            let slope = std::mem::take(&mut cell.gradient);
            if slope != 0.0 {
                let before = *cell;
                cell.squares += slope * slope;
                cell.done = self.step;
                let cell = *cell;
                let size = self.step_size(cell);
                let mut weight = model.within_bounds(id, cell.weight - size * slope);
                if self.shrink == Shrink::Late {
                    let idle = self.step - 1 - before.done;
                    weight = self.regularised(id, weight, self.step_size(before), idle);
                }
                self.change(model, id, self.regularised(id, weight, size, 1));
            }
        }
        self.touched = touched;
        self.touched.clear();
        self.rows = rows;
        Ok(stepped)
    }

    fn catch_up(&mut self, model: &mut Model, ids: &[u32]) {
        ids.iter().for_each(|&id| self.settle(model, id));
    }

    fn is_lazy(&self) -> bool {
        let regular = self.l1 > 0.0 || self.l2 > 0.0;
        self.behind && regular && self.shrink == Shrink::Exact
    }

    fn begin_pass(&mut self, model: &Model, watched: bool) {
        self.watched = watched || model.is_averaged();
        if !std::mem::replace(&mut self.loaded, true) {
            self.cells.iter_mut().zip(model.weights()).for_each(|(cell, &w)| cell.weight = w);
        }
    }

    fn weights_replaced(&mut self) {
        self.loaded = false;
    }

    fn end_pass(&mut self, model: &mut Model) {
        for id in 0..self.cells.len() {
            self.settle(model, id as u32);
            if !self.watched {
                model.set(id as u32, self.cells[id].weight);
            }
        }
        self.behind = false;
    }

    fn end_epoch(&mut self, model: &mut Model) {
        if self.shrink == Shrink::Exact || (self.l1 == 0.0 && self.l2 == 0.0) {
            return;
        }
        for id in 0..self.cells.len() {
            let weight = model.weight(id as u32);
            let cell = self.cells[id];
            let steps = if self.shrink == Shrink::Late { self.step - cell.done } else { 1 };
            self.cells[id].done = self.step;
            if weight != 0.0 || !self.anchor.is_empty() {
                let size = self.step_size(cell);
                model.set(id as u32, self.regularised(id as u32, weight, size, steps));
            }
        }
        self.loaded = false;
    }

    fn rearrange(&mut self, places: &[u32], features: usize) -> Result<(), Fault> {
        let new = Cell { done: self.step, ..Cell::default() };
        rearrange(&mut self.cells, places, features, new);
        if !self.anchor.is_empty() {
            rearrange(&mut self.anchor, places, features, 0.0);
        }
        Ok(())
    }

    fn state(&self) -> Vec<f64> {
        let mut state: Vec<f64> = self.cells.iter().map(|cell| cell.squares).collect();
        // Between passes every other kind has settled all coordinates.
        if self.shrink == Shrink::Late {
            state.extend(self.cells.iter().map(|cell| cell.done as f64));
        }
        state.push(self.step as f64);
        state
    }

    fn restore(&mut self, state: &[f64]) -> bool {
        let count = self.cells.len();
        let late = self.shrink == Shrink::Late;
        if state.len() != if late { 2 * count } else { count } + 1 {
            return false;
        }
        self.step = state[state.len() - 1] as u64;
        self.loaded = false;
        for (id, cell) in self.cells.iter_mut().enumerate() {
            let done = if late { state[count + id] as u64 } else { self.step };
            *cell = Cell { squares: state[id], done, ..Cell::default() };
        }
        true
    }
}
