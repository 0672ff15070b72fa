//! One sweep over the breakpoints of all sentences, with running corpus statistics.

use tunesmith_metric::Metric;

use super::Step;
use super::envelope::Piece;
use crate::blocks::{Blocks, fold};

/// From `at` on, the statistics of a sentence differ by a row of differences.
#[derive(Debug, Clone, Copy)]
struct Change {
    at: f64,
    sentence: u32,
    difference: u32,
}

/// Breakpoints along a line, of all sentences or of some. Whoever has them all can sweep.
#[derive(Debug, Clone, Default)]
pub struct Breaks {
    /// By how much the statistics of each block change from no step to the far left.
    pub left: Vec<f64>,
    /// Where something changes.
    pub at: Vec<f64>,
    /// The sentence that changes there, by its number in the whole corpus.
    pub sentences: Vec<u32>,
    /// By how much its statistics change, a row for each.
    pub differences: Vec<f64>,
}

/// Collects breakpoints, sentence by sentence.
pub(super) struct Collect<'a> {
    blocks: &'a Blocks,
    width: usize,
    range: (f64, f64),
    breaks: Breaks,
}

impl<'a> Collect<'a> {
    pub fn new(blocks: &'a Blocks, width: usize, range: (f64, f64)) -> Self {
        let left = vec![0.0; blocks.len() * width];
        Collect { blocks, width, range, breaks: Breaks { left, ..Breaks::default() } }
    }

    /// Adds the envelope of a sentence. Sentences come in their order; `now` are its statistics
    /// without a step, `row` gives those of a line.
    pub fn add<'r>(
        &mut self,
        sentence: usize,
        hull: &[Piece],
        now: &[f64],
        row: impl Fn(u32) -> &'r [f64],
    ) {
        // Only the part of the envelope over the range of steps counts.
        let first = hull.partition_point(|piece| piece.from <= self.range.0).saturating_sub(1);
        let Some(piece) = hull.get(first) else { return };
        let mut old = row(piece.line);
        let start = self.blocks.of(sentence) * self.width;
        let left = &mut self.breaks.left[start..start + self.width];
        for (sum, (new, now)) in left.iter_mut().zip(old.iter().zip(now)) {
            *sum += new - now;
        }
        let number = self.blocks.number(sentence);
        for piece in hull[first + 1..].iter().take_while(|piece| piece.from < self.range.1) {
            let new = row(piece.line);
            self.breaks.at.push(piece.from);
            self.breaks.sentences.push(number);
            self.breaks.differences.extend(new.iter().zip(old).map(|(new, old)| new - old));
            old = new;
        }
    }

    pub fn finish(self) -> Breaks {
        self.breaks
    }
}

impl Breaks {
    /// Sweeps from left to right, given the statistics of each block without a step, and the gain
    /// there. Among equally good intervals the one nearest to no step wins; intervals too narrow to
    /// be hit by a number are passed over.
    pub fn best(&self, metric: &dyn Metric, sums: &[f64], here: f64, range: (f64, f64)) -> Step {
        let width = metric.width();
        let mut total = fold(sums, width);
        total.iter_mut().zip(fold(&self.left, width)).for_each(|(sum, left)| *sum += left);
        let places = self.at.iter().zip(&self.sentences).enumerate();
        let mut changes: Vec<Change> = places
            .map(|(place, (&at, &sentence))| Change { at, sentence, difference: place as u32 })
            .collect();
        changes.sort_unstable_by(|a, b| a.at.total_cmp(&b.at).then(a.sentence.cmp(&b.sentence)));
        let mut best = Step { step: 0.0, gain: here };
        let mut left = range.0;
        let mut next = 0;
        loop {
            let right = changes.get(next).map_or(range.1, |change| change.at);
            if right - left > 1e-9 * left.abs().min(right.abs()).max(1e-6) {
                let gain = metric.gain(&total);
                let step = inside(left, right);
                let better =
                    gain > best.gain || (gain == best.gain && step.abs() < best.step.abs());
                if better {
                    best = Step { step, gain };
                }
            }
            let Some(&Change { at, .. }) = changes.get(next) else { break };
            while let Some(change) = changes.get(next).filter(|change| change.at == at) {
                let start = change.difference as usize * width;
                let difference = &self.differences[start..start + width];
                total.iter_mut().zip(difference).for_each(|(sum, value)| *sum += value);
                next += 1;
            }
            left = at;
        }
        best
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
