//! Sums within lists: what features add up to, list by list and pair by pair.

use crate::pools::Pools;

/// Sums over the hypotheses of a list, one cell per list and feature that occurs in the list.
///
/// Lists are in order. Features of a list stand in the order in which its hypotheses bring them.
#[derive(Debug, Default)]
pub struct Cells {
    pub lists: Vec<usize>,
    pub ids: Vec<u32>,
    /// Σ x of each cell.
    pub sums: Vec<f64>,
    /// Σ x² of each cell.
    pub squares: Vec<f64>,
}

impl Pools {
    /// Sums of every list, added up from the first hypothesis to the last.
    pub fn cells(&self) -> Cells {
        let mut cells = Cells::default();
        // The cell of each feature; cells of earlier lists do not count.
        let mut places = vec![usize::MAX; self.names.len()];
        for list in 0..self.sentences() {
            let first = cells.ids.len();
            for hypothesis in self.list(list) {
                let (ids, values) = self.features(hypothesis);
                for (&id, &value) in ids.iter().zip(values) {
                    let value = f64::from(value);
                    let place = &mut places[id as usize];
                    if *place == usize::MAX || *place < first {
                        *place = cells.ids.len();
                        cells.lists.push(list);
                        cells.ids.push(id);
                        cells.sums.push(0.0);
                        cells.squares.push(0.0);
                    }
                    cells.sums[*place] += value;
                    cells.squares[*place] += value * value;
                }
            }
        }
        cells
    }

    /// Σ x xᵀ over all hypotheses, features × features, where x is a difference to the mean of its
    /// list. The matrix is dense: it suits hundreds of features, not millions.
    pub fn gram(&self) -> Vec<f64> {
        let width = self.names.len();
        let mut gram = vec![0.0; width * width];
        for hypothesis in 0..self.hypotheses() {
            let (ids, values) = self.features(hypothesis);
            for (&id, &value) in ids.iter().zip(values) {
                let row = &mut gram[id as usize * width..][..width];
                for (&other, &factor) in ids.iter().zip(values) {
                    row[other as usize] += f64::from(value) * f64::from(factor);
                }
            }
        }
        let cells = self.cells();
        let mut means = vec![0.0; width * width];
        for list in cells.lists.chunk_by(|one, other| one == other).scan(0, |start, chunk| {
            *start += chunk.len();
            Some(*start - chunk.len()..*start)
        }) {
            let share = 1.0 / self.list(cells.lists[list.start]).len() as f64;
            for one in list.clone() {
                let row = &mut means[cells.ids[one] as usize * width..][..width];
                for other in list.clone() {
                    row[cells.ids[other] as usize] += cells.sums[one] * (cells.sums[other] * share);
                }
            }
        }
        gram.iter_mut().zip(means).for_each(|(sum, mean)| *sum -= mean);
        gram
    }
}
