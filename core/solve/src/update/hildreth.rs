//! The smallest change that satisfies all rows, up to slack: Hildreth's dual coordinate ascent.

use super::{Separate, Stepped, Update};
use crate::Fault;
use crate::model::Model;
use crate::rows::Rows;

/// Minimises `½‖w' - w‖² + C Σξ` subject to `w'·x_j >= l_j - ξ_j`:
/// `α_j <- clip(α_j + (l_j - w'·x_j) / ‖x_j‖², 0, C)` until no α moves by more than `tolerance`.
/// All rounds of the selector enter one problem, chosen under the weights at its start.
#[derive(Debug, Clone)]
pub struct Hildreth {
    /// Infinity asks for hard constraints.
    pub c: f64,
    pub rate: f64,
    pub scale_by_oracle: bool,
    pub tolerance: f64,
    pub sweeps: usize,
}

impl Update for Hildreth {
    fn slow_down(&mut self, factor: f64) {
        self.rate *= factor;
    }

    fn asks(&self, rounds: usize) -> Option<usize> {
        Some(rounds)
    }

    fn is_scaled(&self) -> bool {
        self.scale_by_oracle
    }

    fn step(&mut self, model: &mut Model, batch: &mut dyn Separate) -> Result<Stepped, Fault> {
        let mut stepped = Stepped::default();
        let mut part = Rows::default();
        part.scaled = self.is_scaled();
        let mut problem: Vec<Dual> = Vec::new();
        for round in 0..batch.rounds() {
            batch.separate(model, round, &mut part)?;
            for row in 0..part.len() {
                let (ids, values) = part.row(row);
                let norm2 = model.norm2(ids, values);
                if norm2 == 0.0 {
                    continue;
                }
                stepped.loss += part.violation(row, model).max(0.0);
                problem.push(Dual {
                    ids: ids.to_vec(),
                    values: values.to_vec(),
                    along: model.along(ids, values),
                    norm2,
                    target: part.gains[row] - part.offsets[row],
                    cap: if part.caps[row].is_nan() { self.c } else { part.caps[row] },
                    factor: if self.scale_by_oracle { part.oracles[row] } else { 1.0 },
                    alpha: 0.0,
                });
            }
        }
        // The dual is solved on a private copy of the touched weights: bounds, rates and the
        // average see one change per coordinate.
        let mut near: std::collections::BTreeMap<u32, f64> = problem
            .iter()
            .flat_map(|dual| dual.ids.iter())
            .map(|&id| (id, model.weight(id)))
            .collect();
        let mut weights: Vec<f64> = near.values().copied().collect();
        let places: Vec<u32> = near.keys().copied().collect();
        for dual in &mut problem {
            for id in &mut dual.ids {
                *id = places.binary_search(id).unwrap_or_default() as u32;
            }
        }
        for _ in 0..self.sweeps {
            let mut moved = 0.0_f64;
            for dual in &mut problem {
                let score: f64 = dual
                    .ids
                    .iter()
                    .zip(&dual.values)
                    .map(|(&place, value)| weights[place as usize] * value)
                    .sum();
                let wanted = dual.alpha + (dual.target - score) / dual.norm2;
                let change = wanted.clamp(0.0, dual.cap) - dual.alpha;
                if change != 0.0 {
                    dual.alpha += change;
                    for (&place, value) in dual.ids.iter().zip(&dual.along) {
                        weights[place as usize] += change * value;
                    }
                    moved = moved.max(change.abs());
                }
            }
            if moved < self.tolerance {
                break;
            }
        }
        for dual in problem.iter().filter(|dual| dual.alpha > 0.0) {
            stepped.updates += 1;
            for (&place, value) in dual.ids.iter().zip(&dual.along) {
                if let Some(weight) = near.get_mut(&places[place as usize]) {
                    *weight += self.rate * dual.factor * dual.alpha * value;
                }
            }
        }
        near.into_iter().for_each(|(id, weight)| model.set(id, weight));
        Ok(stepped)
    }
}

struct Dual {
    /// Feature ids, later places among the touched weights.
    ids: Vec<u32>,
    values: Vec<f64>,
    /// Where a step goes.
    along: Vec<f64>,
    norm2: f64,
    target: f64,
    cap: f64,
    factor: f64,
    alpha: f64,
}
