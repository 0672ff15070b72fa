//! Constraints: sparse rows that ask `w·x + offset >= gain`.

use crate::model::Model;

/// What a row asks for; cutting planes keep one working set for each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// y+ must win over y- by the difference of their gains.
    Margin,
    /// y+ may win over the worst candidate by at most the bound.
    Upper,
    /// y+ may lose to the best candidate by at most the bound.
    Lower,
}

/// Rows in compressed form. `x` is a difference of feature vectors; fixed weights are left out
/// of it and contribute through `offset`.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    starts: Vec<usize>,
    pub ids: Vec<u32>,
    pub values: Vec<f64>,
    pub gains: Vec<f64>,
    pub offsets: Vec<f64>,
    /// Largest dual weight of the row; NaN leaves it to the update.
    pub caps: Vec<f64>,
    /// Which sentence of the batch the row belongs to.
    pub groups: Vec<u32>,
    pub kinds: Vec<Kind>,
    /// The plain gain of y+ in [0, 1], for updates that are scaled by it; 1 unless
    /// [`scaled`](Self::scaled).
    pub oracles: Vec<f64>,
    /// Somebody wants to know the plain gain of y+.
    pub scaled: bool,
    /// By how much y+ of each row won under the weights that it was chosen with; empty where an
    /// update takes the margins of the moment.
    pub margins: Vec<f64>,
}

impl Rows {
    /// Rows from arrays, with four [`numbers`](Self::numbers) of each; nothing if these do not
    /// belong together.
    pub fn of_arrays(
        mut starts: Vec<usize>,
        (ids, values): (Vec<u32>, Vec<f64>),
        (groups, kinds): (Vec<u32>, Vec<Kind>),
        numbers: &[f64],
        margins: Vec<f64>,
    ) -> Option<Self> {
        let count = groups.len();
        let fits = starts.len() == count + 1
            && starts.is_sorted()
            && starts.pop() == Some(ids.len())
            && values.len() == ids.len()
            && kinds.len() == count
            && numbers.len() == 4 * count
            && (margins.is_empty() || margins.len() == count);
        let column = |which: usize| numbers.chunks_exact(4).map(|each| each[which]).collect();
        fits.then(|| Rows {
            starts,
            ids,
            values,
            gains: column(0),
            offsets: column(1),
            caps: column(2),
            groups,
            kinds,
            oracles: column(3),
            scaled: false,
            margins,
        })
    }

    /// Gain, offset, cap and oracle of a row.
    pub fn numbers(&self, row: usize) -> [f64; 4] {
        [self.gains[row], self.offsets[row], self.caps[row], self.oracles[row]]
    }

    pub fn clear(&mut self) {
        self.starts.clear();
        self.ids.clear();
        self.values.clear();
        self.gains.clear();
        self.offsets.clear();
        self.caps.clear();
        self.groups.clear();
        self.kinds.clear();
        self.oracles.clear();
        self.margins.clear();
    }

    pub fn len(&self) -> usize {
        self.gains.len()
    }

    pub fn is_empty(&self) -> bool {
        self.gains.is_empty()
    }

    /// Adds the rows of another.
    pub fn append(&mut self, other: Rows) {
        let shift = self.ids.len();
        self.starts.extend(other.starts.iter().map(|start| start + shift));
        self.ids.extend(other.ids);
        self.values.extend(other.values);
        self.gains.extend(other.gains);
        self.offsets.extend(other.offsets);
        self.caps.extend(other.caps);
        self.groups.extend(other.groups);
        self.kinds.extend(other.kinds);
        self.oracles.extend(other.oracles);
        self.margins.extend(other.margins);
    }

    /// First entry of each row, and the end of the last.
    pub fn starts(&self) -> Vec<usize> {
        self.starts.iter().copied().chain([self.ids.len()]).collect()
    }

    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let end = self.starts.get(row + 1).copied().unwrap_or(self.ids.len());
        (&self.ids[self.starts[row]..end], &self.values[self.starts[row]..end])
    }

    pub fn norm2(&self, row: usize) -> f64 {
        self.row(row).1.iter().map(|value| value * value).sum()
    }

    /// `w·x + offset`: by how much y+ wins.
    pub fn margin(&self, row: usize, model: &Model) -> f64 {
        let (ids, values) = self.row(row);
        let products = ids.iter().zip(values).map(|(&id, value)| model.weight(id) * value);
        products.fold(self.offsets[row], |sum, product| sum + product)
    }

    /// The margin that the row was chosen with, or that of the moment.
    pub fn margin_then(&self, row: usize, model: &Model) -> f64 {
        self.margins.get(row).copied().unwrap_or_else(|| self.margin(row, model))
    }

    /// Keeps the margins of all rows as they are now.
    pub fn keep_margins(&mut self, model: &Model) {
        self.margins = (0..self.len()).map(|row| self.margin(row, model)).collect();
    }

    /// Adds a row of another, which has other ids from `known` on: that of `known + i` is `ids[i]`.
    pub fn copy(&mut self, other: &Rows, row: usize, group: u32, known: usize, ids: &[u32]) {
        self.starts.push(self.ids.len());
        self.gains.push(other.gains[row]);
        self.offsets.push(other.offsets[row]);
        self.caps.push(other.caps[row]);
        self.groups.push(group);
        self.kinds.push(other.kinds[row]);
        self.oracles.push(other.oracles[row]);
        self.margins.extend(other.margins.get(row));
        let (from, values) = other.row(row);
        let old = from.partition_point(|&id| (id as usize) < known);
        self.ids.extend_from_slice(&from[..old]);
        self.values.extend_from_slice(&values[..old]);
        let new = from[old..].iter().map(|&id| ids[id as usize - known]);
        let mut new: Vec<(u32, f64)> = new.zip(values[old..].iter().copied()).collect();
        new.sort_unstable_by_key(|&(id, _)| id);
        // New ids come after all that were known.
        self.ids.extend(new.iter().map(|&(id, _)| id));
        self.values.extend(new.iter().map(|&(_, value)| value));
    }

    /// How far the row is from being satisfied; negative when it is.
    pub fn violation(&self, row: usize, model: &Model) -> f64 {
        self.gains[row] - self.margin(row, model)
    }

    /// Opens a row; entries follow through [`entry`](Self::entry).
    pub fn open(&mut self, kind: Kind, group: u32, gain: f64, cap: f64, oracle: f64) {
        self.starts.push(self.ids.len());
        self.gains.push(gain);
        self.offsets.push(0.0);
        self.caps.push(cap);
        self.groups.push(group);
        self.kinds.push(kind);
        self.oracles.push(oracle);
    }

    /// Adds an entry to the open row. Ids must come in ascending order.
    pub fn entry(&mut self, id: u32, value: f64, model: &Model) {
        if value == 0.0 {
            return;
        }
        if model.is_fixed(id) {
            if let Some(offset) = self.offsets.last_mut() {
                *offset += value * model.weight(id);
            }
        } else {
            self.ids.push(id);
            self.values.push(value);
        }
    }

    /// Entries of `sign · (f(p) - f(q))` for the open row.
    pub fn difference(
        &mut self,
        (p_ids, p_values): (&[u32], &[f32]),
        (q_ids, q_values): (&[u32], &[f32]),
        sign: f64,
        model: &Model,
    ) {
        if p_ids == q_ids {
            // Dense features, mostly.
            for (&id, (p, q)) in p_ids.iter().zip(p_values.iter().zip(q_values)) {
                self.entry(id, sign * (f64::from(*p) - f64::from(*q)), model);
            }
            return;
        }
        let (mut p, mut q) = (0, 0);
        while p < p_ids.len() || q < q_ids.len() {
            let left = p_ids.get(p).copied().unwrap_or(u32::MAX);
            let right = q_ids.get(q).copied().unwrap_or(u32::MAX);
            let id = left.min(right);
            let mut value = 0.0;
            if left == id {
                value += f64::from(p_values[p]);
                p += 1;
            }
            if right == id {
                value -= f64::from(q_values[q]);
                q += 1;
            }
            self.entry(id, sign * value, model);
        }
    }
}
