//! Edit distance along the diagonal, and the alignment it leaves.

/// Tercom's beam: cells this far from the diagonal are looked at.
const BEAM: usize = 25;
const FAR: u32 = u32::MAX / 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Keep,
    Replace,
    /// A word of the hypothesis too many.
    Drop,
    /// A word of the reference that is missing.
    Add,
    Unseen,
}

/// Which cells of a row are looked at, for a hypothesis of a given length.
struct Band {
    hypothesis: usize,
    reference: usize,
    slope: f64,
    beam: usize,
}

impl Band {
    fn new(hypothesis: usize, reference: usize) -> Self {
        let slope = if hypothesis == 0 { 1.0 } else { reference as f64 / hypothesis as f64 };
        // Steep diagonals need a wider beam for neighbouring rows to touch.
        let beam = if (BEAM as f64) < slope / 2.0 {
            (slope / 2.0 + BEAM as f64).ceil() as usize
        } else {
            BEAM
        };
        Band { hypothesis, reference, slope, beam }
    }

    fn row(&self, row: usize) -> (usize, usize) {
        let diagonal = (row as f64 * self.slope).floor() as usize;
        let end = if row == self.hypothesis { self.reference + 1 } else { diagonal + self.beam };
        (diagonal.saturating_sub(self.beam), end.min(self.reference + 1))
    }
}

/// A hypothesis edited into a reference.
pub(super) struct Alignment {
    pub distance: usize,
    /// Reference position -> where a block would be put to follow what is aligned to it.
    pub behind: Vec<usize>,
    /// How many of the first words of the hypothesis are not right.
    pub wrong: Vec<usize>,
    /// How many of the first words of the reference are not met.
    pub missed: Vec<usize>,
    /// Costs of all cells, row by row, kept for distances of shifted hypotheses.
    costs: Vec<u32>,
}

impl Alignment {
    pub fn new(hypothesis: &[u32], reference: &[u32]) -> Self {
        let columns = reference.len() + 1;
        let mut costs = vec![FAR; (hypothesis.len() + 1) * columns];
        let mut edits = vec![Edit::Unseen; costs.len()];
        for column in 0..columns {
            costs[column] = column as u32;
            edits[column] = Edit::Add;
        }
        let band = Band::new(hypothesis.len(), reference.len());
        for (row, &word) in (1..).zip(hypothesis) {
            let (above, here) = costs[(row - 1) * columns..][..2 * columns].split_at_mut(columns);
            let edits = &mut edits[row * columns..][..columns];
            let (mut column, end) = band.row(row);
            if column == 0 {
                here[0] = above[0] + 1;
                edits[0] = Edit::Drop;
                column = 1;
            }
            for column in column..end {
                let same = word == reference[column - 1];
                // Ties go to the first: keep or replace, then drop, then add.
                let mut best = if same {
                    (above[column - 1], Edit::Keep)
                } else {
                    (above[column - 1] + 1, Edit::Replace)
                };
                if above[column] + 1 < best.0 {
                    best = (above[column] + 1, Edit::Drop);
                }
                if here[column - 1] + 1 < best.0 {
                    best = (here[column - 1] + 1, Edit::Add);
                }
                if best.0 < FAR {
                    (here[column], edits[column]) = best;
                }
            }
        }
        Alignment::trace(costs, &edits, hypothesis.len(), reference.len())
    }

    fn trace(costs: Vec<u32>, edits: &[Edit], hypothesis: usize, reference: usize) -> Self {
        let mut alignment = Alignment {
            distance: costs[costs.len() - 1] as usize,
            behind: vec![0; reference],
            wrong: vec![0; hypothesis + 1],
            missed: vec![0; reference + 1],
            costs,
        };
        let (mut row, mut column) = (hypothesis, reference);
        while row > 0 || column > 0 {
            let edit = edits[row * (reference + 1) + column];
            let error = usize::from(edit != Edit::Keep);
            if edit != Edit::Drop {
                alignment.behind[column - 1] = row;
                alignment.missed[column] = error;
                column -= 1;
            }
            if edit != Edit::Add {
                alignment.wrong[row] = error;
                row -= 1;
            }
        }
        for counts in [&mut alignment.wrong, &mut alignment.missed] {
            (1..counts.len()).for_each(|at| counts[at] += counts[at - 1]);
        }
        alignment
    }

    /// The distance of the first `kept` words of the aligned hypothesis followed by others.
    pub fn distance_of(
        &self,
        kept: usize,
        others: impl Iterator<Item = u32>,
        reference: &[u32],
    ) -> usize {
        let columns = reference.len() + 1;
        let band = Band::new(self.wrong.len() - 1, reference.len());
        let mut above = self.costs[kept * columns..][..columns].to_vec();
        let mut here = vec![FAR; columns];
        for (row, word) in (kept + 1..).zip(others) {
            here.fill(FAR);
            let (mut column, end) = band.row(row);
            if column == 0 {
                here[0] = above[0] + 1;
                column = 1;
            }
            for column in column..end {
                let diagonal = above[column - 1] + u32::from(word != reference[column - 1]);
                here[column] = diagonal.min(above[column] + 1).min(here[column - 1] + 1).min(FAR);
            }
            std::mem::swap(&mut above, &mut here);
        }
        above[columns - 1] as usize
    }
}

/// Whether a distance found without the beam is the one within it. A path with that many edits
/// strays no further from the diagonal than its edits and the difference in length.
pub(super) fn within_beam(distance: usize, hypothesis: usize, reference: usize) -> bool {
    reference < BEAM || distance + hypothesis.abs_diff(reference) < BEAM - 1
}
