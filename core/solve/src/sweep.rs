//! Exact line search over lists (Och 2003): upper envelopes and one sweep over their breakpoints.

use std::sync::Arc;

use rayon::prelude::*;
use tunesmith_metric::{Metric, Table};
use tunesmith_space::Pools;

/// The best step along a direction: how far, and the corpus gain it reaches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    pub step: f64,
    pub gain: f64,
}

/// Lists prepared for line search along some coordinates. Along an axis the slopes are feature
/// values, so each list is sorted by each of them once and for all; a list in which the feature
/// does not vary is not looked at.
pub struct LineSearch {
    pools: Arc<Pools>,
    table: Arc<Table>,
    metric: Arc<dyn Metric>,
    axes: Vec<Axis>,
}

/// A coordinate: the lists in which it varies, hypotheses sorted by its value.
struct Axis {
    id: u32,
    sentences: Vec<u32>,
    /// Where each of these lists starts in `lines`.
    starts: Vec<usize>,
    /// (slope, position in the list), slopes ascending.
    lines: Vec<(f32, u32)>,
}

/// A breakpoint: from `at` on, the best hypothesis of `sentence` is `hypothesis` (whole-corpus
/// position).
#[derive(Debug, Clone, Copy)]
struct Change {
    at: f64,
    sentence: u32,
    hypothesis: u32,
}

impl LineSearch {
    /// `coordinates` are the feature ids that may move.
    pub fn new(
        pools: Arc<Pools>,
        table: Arc<Table>,
        metric: Arc<dyn Metric>,
        coordinates: &[u32],
    ) -> Self {
        let axes = coordinates.par_iter().map(|&id| Axis::new(&pools, id)).collect();
        LineSearch { pools, table, metric, axes }
    }

    pub fn axes(&self) -> usize {
        self.axes.len()
    }

    fn stats(&self, sentence: usize, hypothesis: u32) -> &[f64] {
        self.table.stats(sentence, hypothesis as usize)
    }
}

impl Axis {
    fn new(pools: &Pools, id: u32) -> Self {
        let mut axis = Axis { id, sentences: Vec::new(), starts: vec![0], lines: Vec::new() };
        for sentence in 0..pools.sentences() {
            let list = pools.list(sentence);
            let start = axis.lines.len();
            axis.lines.extend(list.enumerate().map(|(position, hypothesis)| {
                let (ids, values) = pools.features(hypothesis);
                // Zero added makes one of -0 and 0, between which the place decides.
                let slope = ids.binary_search(&id).map_or(0.0, |place| values[place] + 0.0);
                (slope, position as u32)
            }));
            let lines = &mut axis.lines[start..];
            lines.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let varies = lines.first().map(|line| line.0) != lines.last().map(|line| line.0);
            if varies {
                axis.sentences.push(sentence as u32);
                axis.starts.push(axis.lines.len());
            } else {
                axis.lines.truncate(start);
            }
        }
        axis.lines.shrink_to_fit();
        axis
    }

    fn lists(&self) -> impl Iterator<Item = (usize, &[(f32, u32)])> {
        self.sentences
            .iter()
            .zip(self.starts.windows(2))
            .map(|(&sentence, window)| (sentence as usize, &self.lines[window[0]..window[1]]))
    }
}

/// The upper envelope of lines `intercept + t · slope`: which line is on top from where on.
#[derive(Default)]
struct Envelope {
    hull: Vec<Piece>,
    records: Vec<Piece>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Where its reign starts.
    from: f64,
    slope: f64,
    intercept: f64,
    line: u32,
}

impl Envelope {
    /// Lines in ascending order of slope; among equal lines the first is kept.
    ///
    /// Left of zero only a line that is higher at zero than every line of smaller slope can win,
    /// right of zero only one that is higher than every line of larger slope. Few lines are, so
    /// the hull itself is built from a handful.
    fn build(&mut self, count: usize, line: impl Fn(usize) -> (f64, f64, u32)) {
        let piece = |(slope, intercept, line)| Piece { from: 0.0, slope, intercept, line };
        self.records.clear();
        self.hull.clear();
        let (mut highest, mut peak) = (f64::NEG_INFINITY, 0);
        for place in 0..count {
            let (slope, intercept, name) = line(place);
            if intercept > highest {
                (highest, peak) = (intercept, place);
                self.records.push(piece((slope, intercept, name)));
            }
        }
        let left = self.records.len();
        highest = f64::NEG_INFINITY;
        for place in (peak + 1..count).rev() {
            let (slope, intercept, name) = line(place);
            if intercept > highest {
                highest = intercept;
                self.records.push(piece((slope, intercept, name)));
            } else if intercept == highest
                && let Some(last) = self.records.last_mut()
                && last.slope == slope
            {
                last.line = name;
            }
        }
        self.records[left..].reverse();
        for index in 0..self.records.len() {
            self.add(self.records[index]);
        }
    }

    fn add(&mut self, mut new: Piece) {
        new.from = f64::NEG_INFINITY;
        while let Some(top) = self.hull.last() {
            if top.slope == new.slope {
                if new.intercept <= top.intercept {
                    return;
                }
            } else {
                new.from = (top.intercept - new.intercept) / (new.slope - top.slope);
                if new.from > top.from {
                    break;
                }
            }
            self.hull.pop();
            new.from = f64::NEG_INFINITY;
        }
        self.hull.push(new);
    }
}

/// A point in weight space with everything that line search keeps about it.
#[derive(Debug, Clone)]
pub struct Walker {
    weights: Vec<f64>,
    /// Model score of every hypothesis.
    scores: Vec<f64>,
    /// The best hypothesis of every sentence (`u32::MAX` for an empty list).
    best: Vec<u32>,
    total: Vec<f64>,
}

impl Walker {
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }
}

impl LineSearch {
    /// The point of some weights; all scores are computed from them, so rounding does not add up.
    pub fn walker(&self, weights: Vec<f64>) -> Walker {
        let sentences = self.pools.sentences();
        let mut walker = Walker {
            weights,
            scores: Vec::with_capacity(self.pools.hypotheses()),
            best: vec![u32::MAX; sentences],
            total: vec![0.0; self.metric.width()],
        };
        let mut scores = Vec::new();
        for sentence in 0..sentences {
            self.pools.dot(sentence, &walker.weights, &mut scores);
            walker.scores.extend_from_slice(&scores);
        }
        (0..sentences).for_each(|sentence| self.find_best(&mut walker, sentence));
        self.sum_up(&mut walker);
        walker
    }

    fn find_best(&self, walker: &mut Walker, sentence: usize) {
        let list = self.pools.list(sentence);
        let start = list.start;
        walker.best[sentence] = tunesmith_space::argmax(walker.scores[list].iter().copied())
            .map_or(u32::MAX, |(best, _)| (start + best) as u32);
    }

    fn sum_up(&self, walker: &mut Walker) {
        walker.total.fill(0.0);
        for (sentence, &best) in
            walker.best.iter().enumerate().filter(|(_, best)| **best != u32::MAX)
        {
            let row = self.stats(sentence, best);
            walker.total.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    }

    /// Corpus gain at a point.
    pub fn gain(&self, walker: &Walker) -> f64 {
        self.metric.gain(&walker.total)
    }

    /// The best step along an axis, between the weight's bounds.
    pub fn axis(&self, walker: &Walker, axis: usize, bounds: (f64, f64)) -> Step {
        let axis = &self.axes[axis];
        let here = walker.weights[axis.id as usize];
        let mut envelope = Envelope::default();
        let mut sweep = Sweep::new(self, walker, (bounds.0 - here, bounds.1 - here));
        for (sentence, lines) in axis.lists() {
            let start = self.pools.list(sentence).start;
            let scores = &walker.scores[start..start + lines.len()];
            envelope.build(lines.len(), |place| {
                let (slope, position) = lines[place];
                (f64::from(slope), scores[position as usize], position)
            });
            sweep.add(sentence, start, &envelope);
        }
        sweep.best()
    }

    /// The best step along any direction within a range of steps.
    pub fn direction(&self, walker: &Walker, direction: &[f64], range: (f64, f64)) -> Step {
        let mut envelope = Envelope::default();
        let mut sweep = Sweep::new(self, walker, range);
        let mut slopes = Vec::new();
        let mut lines = Vec::new();
        for sentence in 0..self.pools.sentences() {
            let list = self.pools.list(sentence);
            self.pools.dot(sentence, direction, &mut slopes);
            lines.clear();
            lines.extend(
                slopes
                    .iter()
                    .zip(&walker.scores[list.clone()])
                    .enumerate()
                    .map(|(position, (&slope, &score))| (slope + 0.0, score, position as u32)),
            );
            lines.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
            envelope.build(lines.len(), |place| lines[place]);
            if envelope.hull.len() > 1 {
                sweep.add(sentence, list.start, &envelope);
            }
        }
        sweep.best()
    }

    /// Goes a step along an axis.
    pub fn move_axis(&self, walker: &mut Walker, axis: usize, step: f64) {
        let axis = &self.axes[axis];
        walker.weights[axis.id as usize] += step;
        for (sentence, lines) in axis.lists() {
            let start = self.pools.list(sentence).start;
            for &(slope, position) in lines {
                walker.scores[start + position as usize] += step * f64::from(slope);
            }
            self.find_best(walker, sentence);
        }
        self.sum_up(walker);
    }
}

/// All breakpoints of a line, and the statistics at its far left.
struct Sweep<'a> {
    search: &'a LineSearch,
    walker: &'a Walker,
    range: (f64, f64),
    changes: Vec<Change>,
    total: Vec<f64>,
    /// The hypothesis of each swept sentence before its first change.
    current: Vec<u32>,
}

impl<'a> Sweep<'a> {
    fn new(search: &'a LineSearch, walker: &'a Walker, range: (f64, f64)) -> Self {
        Sweep {
            search,
            walker,
            range,
            changes: Vec::new(),
            total: walker.total.clone(),
            current: walker.best.clone(),
        }
    }

    fn add(&mut self, sentence: usize, start: usize, envelope: &Envelope) {
        let hull = &envelope.hull;
        // Only the part of the envelope over the range of steps counts.
        let first = hull.partition_point(|piece| piece.from <= self.range.0).saturating_sub(1);
        let Some(piece) = hull.get(first) else { return };
        let hypothesis = (start + piece.line as usize) as u32;
        let search = self.search;
        let (old, new) =
            (search.stats(sentence, self.current[sentence]), search.stats(sentence, hypothesis));
        self.total
            .iter_mut()
            .zip(old.iter().zip(new))
            .for_each(|(sum, (old, new))| *sum += new - old);
        self.current[sentence] = hypothesis;
        let inside = hull[first + 1..].iter().take_while(|piece| piece.from < self.range.1);
        self.changes.extend(inside.map(|piece| Change {
            at: piece.from,
            sentence: sentence as u32,
            hypothesis: (start + piece.line as usize) as u32,
        }));
    }

    /// Sweeps from left to right. Among equally good intervals the one nearest to no step wins;
    /// intervals too narrow to be hit by a number are passed over.
    fn best(mut self) -> Step {
        let search = self.search;
        self.changes
            .sort_unstable_by(|a, b| a.at.total_cmp(&b.at).then(a.sentence.cmp(&b.sentence)));
        let mut best = Step { step: 0.0, gain: search.gain(self.walker) };
        let mut left = self.range.0;
        let mut next = 0;
        loop {
            let right = self.changes.get(next).map_or(self.range.1, |change| change.at);
            if right - left > 1e-9 * left.abs().min(right.abs()).max(1e-6) {
                let gain = search.metric.gain(&self.total);
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
                let old = search.stats(sentence, self.current[sentence]);
                let new = search.stats(sentence, change.hypothesis);
                for (sum, (old, new)) in self.total.iter_mut().zip(old.iter().zip(new)) {
                    *sum += new - old;
                }
                self.current[sentence] = change.hypothesis;
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
