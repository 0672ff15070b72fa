//! One sweep over the breakpoints of all sentences, with running corpus statistics.

use tunesmith_metric::Metric;

use super::Step;
use super::envelope::Piece;

/// A breakpoint: from `at` on, the statistics of `sentence` are those of `row`.
#[derive(Debug, Clone, Copy)]
struct Change {
    at: f64,
    sentence: u32,
    row: u32,
}

/// All breakpoints of a line, and the statistics at its far left.
pub struct Sweep<'a, F> {
    metric: &'a dyn Metric,
    /// The statistics of a sentence by the number of a row.
    stats: F,
    range: (f64, f64),
    changes: Vec<Change>,
    here: f64,
    total: Vec<f64>,
    /// The row of each swept sentence before its first change.
    current: Vec<u32>,
}

impl<'a, F: Fn(usize, u32) -> &'a [f64]> Sweep<'a, F> {
    /// `total` are the corpus statistics without a step, `rows` the row of each sentence there.
    pub fn new(
        metric: &'a dyn Metric,
        stats: F,
        range: (f64, f64),
        total: &[f64],
        rows: &[u32],
    ) -> Self {
        Sweep {
            metric,
            stats,
            range,
            changes: Vec::new(),
            here: metric.gain(total),
            total: total.to_vec(),
            current: rows.to_vec(),
        }
    }

    /// Adds the envelope of a sentence; `row` gives the row of a line.
    pub fn add(&mut self, sentence: usize, hull: &[Piece], row: impl Fn(u32) -> u32) {
        // Only the part of the envelope over the range of steps counts.
        let first = hull.partition_point(|piece| piece.from <= self.range.0).saturating_sub(1);
        let Some(piece) = hull.get(first) else { return };
        let start = row(piece.line);
        let (old, new) =
            ((self.stats)(sentence, self.current[sentence]), (self.stats)(sentence, start));
        exchange(&mut self.total, old, new);
        self.current[sentence] = start;
        let inside = hull[first + 1..].iter().take_while(|piece| piece.from < self.range.1);
        self.changes.extend(inside.map(|piece| Change {
            at: piece.from,
            sentence: sentence as u32,
            row: row(piece.line),
        }));
    }

    /// Sweeps from left to right. Among equally good intervals the one nearest to no step wins;
    /// intervals too narrow to be hit by a number are passed over.
    pub fn best(mut self) -> Step {
        self.changes
            .sort_unstable_by(|a, b| a.at.total_cmp(&b.at).then(a.sentence.cmp(&b.sentence)));
        let mut best = Step { step: 0.0, gain: self.here };
        let mut left = self.range.0;
        let mut next = 0;
        loop {
            let right = self.changes.get(next).map_or(self.range.1, |change| change.at);
            if right - left > 1e-9 * left.abs().min(right.abs()).max(1e-6) {
                let gain = self.metric.gain(&self.total);
                let step = inside(left, right);
                let better =
                    gain > best.gain || (gain == best.gain && step.abs() < best.step.abs());
                if better {
                    best = Step { step, gain };
                }
            }
            let Some(&Change { at, .. }) = self.changes.get(next) else { break };
            while let Some(change) = self.changes.get(next).filter(|change| change.at == at) {
                let sentence = change.sentence as usize;
                let old = (self.stats)(sentence, self.current[sentence]);
                exchange(&mut self.total, old, (self.stats)(sentence, change.row));
                self.current[sentence] = change.row;
                next += 1;
            }
            left = at;
        }
        best
    }
}

fn exchange(total: &mut [f64], old: &[f64], new: &[f64]) {
    for (sum, (old, new)) in total.iter_mut().zip(old.iter().zip(new)) {
        *sum += new - old;
    }
}

/// A point of the interval: its middle, or a little way into it where it has no end.
fn inside(left: f64, right: f64) -> f64 {
    match (left.is_finite(), right.is_finite()) {
        (true, true) => 0.5 * (left + right),
        (true, false) => left + 0.1 * left.abs().max(0.1),
        (false, true) => right - 0.1 * right.abs().max(0.1),
        (false, false) => 0.0,
    }
}
