//! Steps on constraints that others have chosen, and what these others have to know of them.

use std::collections::HashMap;

use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tunesmith_solve::{Chosen, Part, Rows};

use super::Learner;
use crate::selected::Selected;
use crate::update::fault;

/// What those who select for a learner know of it.
#[derive(Default)]
pub struct Told {
    weights: Vec<f64>,
    /// Lines that were visited since, and the statistics of the model's best and of y+ of each.
    lines: Vec<u32>,
    stats: Vec<f64>,
}

impl Learner {
    pub(super) fn meet_parts(
        &mut self,
        parts: &[Bound<'_, Selected>],
        lines: &[u32],
    ) -> PyResult<()> {
        let before = self.features.names.len();
        for part in in_order(parts, lines)? {
            for name in &part.names {
                self.features.names.intern(name);
            }
        }
        self.features.complete();
        if self.features.names.len() > before {
            self.resize(&(0..before as u32).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    pub(super) fn apply_parts(
        &mut self,
        py: Python<'_>,
        parts: &[Bound<'_, Selected>],
        lines: &[u32],
    ) -> PyResult<()> {
        in_order(parts, lines)?;
        let features = self.model.weights().len();
        let mut ids: Vec<Vec<u32>> = Vec::new();
        for part in parts.iter().map(Bound::get) {
            let id = |name: &String| self.features.names.id(name);
            let own: Option<Vec<u32>> = part.names.iter().map(id).collect();
            let own = own.ok_or_else(|| PyValueError::new_err("features that were not met"))?;
            let limit = part.known + own.len();
            let bad = |rows: &Rows| rows.ids.iter().any(|&id| id as usize >= limit);
            if part.known > features || part.chosen().rounds.iter().any(bad) {
                return Err(PyValueError::new_err("constraints on features of another learner"));
            }
            ids.push(own);
        }
        let mut progress =
            self.progress.take().ok_or_else(|| PyValueError::new_err("no pass is open"))?;
        let chosen: Vec<_> = parts.iter().map(|part| part.get().chosen()).collect();
        let joined: Vec<Part<'_>> = parts
            .iter()
            .zip(&chosen)
            .zip(&ids)
            .map(|((part, chosen), ids)| Part { chosen, known: part.get().known, ids })
            .collect();
        let mut whole = Chosen::joined(&joined, lines);
        if !whole.notes.is_empty() {
            if self.gain.is_wide() {
                for (note, rows) in whole.seen().filter(|(note, _)| note.whole) {
                    self.told.lines.push(note.line);
                    self.told.stats.extend(rows[..2].iter().copied().flatten());
                }
            }
            py.detach(|| {
                let update = self.update.as_mut();
                progress.apply(&mut whole, &mut self.model, &mut self.gain, update)
            })
            .map_err(fault)?;
        }
        self.progress = Some(progress);
        Ok(())
    }

    pub(super) fn tell<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let weights = self.model.weights();
        let known = self.told.weights.len();
        self.told.weights.resize(weights.len(), 0.0);
        let (mut ids, mut values) = (Vec::new(), Vec::new());
        for (id, (told, &weight)) in self.told.weights.iter_mut().zip(weights).enumerate() {
            if told.to_bits() != weight.to_bits() {
                *told = weight;
                ids.push(id as u32);
                values.push(weight);
            }
        }
        let names: Vec<&str> = self.features.names.iter().skip(known).collect();
        let dict = PyDict::new(py);
        dict.set_item("names", names)?;
        dict.set_item("ids", ids.into_pyarray(py))?;
        dict.set_item("values", values.into_pyarray(py))?;
        dict.set_item("lines", std::mem::take(&mut self.told.lines).into_pyarray(py))?;
        dict.set_item("stats", std::mem::take(&mut self.told.stats).into_pyarray(py))?;
        Ok(dict)
    }

    pub(super) fn follow_changes(
        &mut self,
        (ids, values): (&[u32], &[f64]),
        (lines, stats): (&[u32], &[f64]),
    ) -> PyResult<()> {
        let width = self.metric.get().inner().width();
        let features = self.model.weights().len();
        if ids.len() != values.len()
            || ids.iter().any(|&id| id as usize >= features)
            || stats.len() != 2 * width * lines.len()
            || lines.iter().any(|&line| line as usize >= self.corpus.lines())
        {
            return Err(PyValueError::new_err("changes of another learner"));
        }
        ids.iter().zip(values).for_each(|(&id, &value)| self.model.set(id, value));
        for (&line, rows) in lines.iter().zip(stats.chunks_exact(2 * width)) {
            self.gain.observe(line as usize, &rows[..width], &rows[width..]);
        }
        Ok(())
    }
}

/// The part of each line; an error unless the parts have each line once.
fn in_order<'a>(parts: &'a [Bound<'_, Selected>], lines: &[u32]) -> PyResult<Vec<&'a Selected>> {
    let wrong = || PyValueError::new_err("a line was selected twice, or not at all");
    let mut own: HashMap<u32, &Selected> = HashMap::new();
    for part in parts.iter().map(Bound::get) {
        for &line in &part.lines {
            if own.insert(line, part).is_some() {
                return Err(wrong());
            }
        }
    }
    if own.len() != lines.len() {
        return Err(wrong());
    }
    lines.iter().map(|line| own.get(line).copied().ok_or_else(wrong)).collect()
}
