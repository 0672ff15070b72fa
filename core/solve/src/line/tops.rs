//! The upper envelope of all derivations of a forest.

use tunesmith_space::{Derivation, Forest};

use super::envelope::{Envelope, Piece};

/// Steps that one pass over a forest looks at.
const LANES: usize = 4;
/// What rounding may add to the score of a derivation, relative to its parts.
const ROUNDING: f64 = 1e-12;

/// Along a direction every derivation is a line. Where two lines of the envelope meet, either the
/// best derivation is higher, and its line lies between them, or they are neighbours (Eisner &
/// Severance 1976): an envelope of n pieces takes about 2n searches for the best derivation, and
/// those of one round are made together. It is the envelope that a semiring of envelopes gives
/// (Kumar et al. 2009), without one for every node. Kept from forest to forest only to spare
/// allocations.
#[derive(Default)]
pub struct Tops {
    /// The best score of each node at each step, from 1 on; 0 stands for a tail that is not there.
    best: Vec<[f64; LANES]>,
    lines: Vec<Line>,
    /// Pairs of lines that may have others between them.
    open: Vec<(usize, usize)>,
    envelope: Envelope,
}

struct Line {
    slope: f64,
    intercept: f64,
    edges: Vec<u32>,
}

impl Line {
    fn at(&self, step: f64) -> f64 {
        self.intercept + step * self.slope
    }
}

/// The scores of edges along a direction: `scores[edge] + step · slopes[edge]`.
#[derive(Clone, Copy)]
pub struct Along<'a> {
    pub forest: &'a Forest,
    pub scores: &'a [f64],
    pub slopes: &'a [f64],
}

impl Along<'_> {
    fn line(&self, edges: Vec<u32>) -> Line {
        let sum = |of: &[f64]| edges.iter().map(|&edge| of[edge as usize]).sum::<f64>();
        // Zero added makes one of -0 and 0, between which the place decides.
        Line { slope: sum(self.slopes) + 0.0, intercept: sum(self.scores), edges }
    }

    /// The places of an edge's tails among the best scores.
    fn tails(&self, edge: usize) -> [usize; 2] {
        self.forest.edges()[edge].tails.map(|tail| tail.wrapping_add(1) as usize)
    }

    /// The derivation that `choose` leads to from the goal down.
    fn follow(&self, choose: impl Fn(usize) -> usize) -> Vec<u32> {
        let mut edges = Vec::new();
        let mut open = Vec::from_iter(self.forest.goal());
        while let Some(node) = open.pop() {
            let edge = choose(node);
            edges.push(edge as u32);
            open.extend(self.forest.edges()[edge].tails().rev());
        }
        edges
    }
}

impl Tops {
    /// The envelope over a range of steps; pieces that reign only outside of it may be there or
    /// not. Equal lines go to the earlier edge. The forest must have a derivation.
    pub fn build(&mut self, along: Along<'_>, range: (f64, f64)) -> &[Piece] {
        self.lines.clear();
        for (side, step) in [range.0, range.1].into_iter().enumerate() {
            let line = if step.is_finite() {
                self.search(along, &[step]);
                along.line(self.derivation(along, step, 0))
            } else {
                if side == 0 || range.0.is_finite() {
                    self.search_ends(along);
                }
                along.line(self.end(along, side))
            };
            self.lines.push(line);
        }
        self.open.clear();
        self.open.push((0, 1));
        while !self.open.is_empty() {
            self.round(along);
        }
        let mut order: Vec<u32> = (0..self.lines.len() as u32).collect();
        let line = |at: u32| &self.lines[at as usize];
        order.sort_by(|&a, &b| line(a).slope.total_cmp(&line(b).slope));
        self.envelope.build(order.len(), |place| {
            let Line { slope, intercept, .. } = *line(order[place]);
            (slope, intercept, order[place])
        });
        &self.envelope.hull
    }

    /// Looks at the meeting points of some open pairs.
    fn round(&mut self, along: Along<'_>) {
        let start = self.open.len().saturating_sub(LANES);
        let mut pairs: Vec<(f64, (usize, usize))> = Vec::with_capacity(LANES);
        for (left, right) in self.open.drain(start..) {
            let (a, b) = (&self.lines[left], &self.lines[right]);
            // Equal slopes: one and the same, or one below the other.
            if a.slope < b.slope {
                let step = (a.intercept - b.intercept) / (b.slope - a.slope);
                pairs.push((step, (left, right)));
            }
        }
        if pairs.is_empty() {
            return;
        }
        let steps: Vec<f64> = pairs.iter().map(|&(step, _)| step).collect();
        self.search(along, &steps);
        for (lane, (step, (left, right))) in pairs.into_iter().enumerate() {
            let (a, b) = (&self.lines[left], &self.lines[right]);
            let rounding = ROUNDING * (a.intercept.abs() + (step * a.slope).abs());
            let least = a.at(step) + rounding;
            if self.best.last().is_none_or(|best| best[lane] <= least) {
                continue;
            }
            let new = along.line(self.derivation(along, step, lane));
            if new.at(step) > least && a.slope < new.slope && new.slope < b.slope {
                let middle = self.lines.len();
                self.lines.push(new);
                self.open.extend([(left, middle), (middle, right)]);
            }
        }
    }

    /// Finds the best score of every node at up to as many steps as there are lanes.
    fn search(&mut self, along: Along<'_>, steps: &[f64]) {
        let mut lanes = [0.0; LANES];
        lanes[..steps.len()].copy_from_slice(steps);
        self.best.clear();
        self.best.push([0.0; LANES]);
        for node in 0..along.forest.nodes() {
            let mut top = [f64::NEG_INFINITY; LANES];
            for edge in along.forest.incoming(node) {
                let value = self.value(along, edge, &lanes);
                for (top, value) in top.iter_mut().zip(value) {
                    *top = if value > *top { value } else { *top };
                }
            }
            self.best.push(top);
        }
    }

    /// The best score of an edge over its tails at each step.
    #[inline]
    fn value(&self, along: Along<'_>, edge: usize, steps: &[f64; LANES]) -> [f64; LANES] {
        let (score, slope) = (along.scores[edge], along.slopes[edge]);
        let [first, second] = along.tails(edge).map(|tail| &self.best[tail]);
        std::array::from_fn(|lane| score + steps[lane] * slope + (first[lane] + second[lane]))
    }

    /// The best derivation at the step of a lane of the last search, the first among equals.
    fn derivation(&self, along: Along<'_>, step: f64, lane: usize) -> Vec<u32> {
        let mut steps = [0.0; LANES];
        steps[lane] = step;
        along.follow(|node| {
            let top = self.best[node + 1][lane];
            let reaches = |edge: &usize| self.value(along, *edge, &steps)[lane] == top;
            along.forest.incoming(node).find(reaches).expect("some edge is the best")
        })
    }

    /// Finds for every node what is on top where steps have no end: to the left the least slope,
    /// to the right the greatest, and of these the highest score. Lanes are
    /// `[-slope, score, slope, score]`.
    fn search_ends(&mut self, along: Along<'_>) {
        self.best.clear();
        self.best.push([0.0; LANES]);
        for node in 0..along.forest.nodes() {
            let mut top = [f64::NEG_INFINITY; LANES];
            for edge in along.forest.incoming(node) {
                let value = self.end_value(along, edge);
                for side in [0, 2] {
                    let (a, b) = (value[side], value[side + 1]);
                    // Without branches: which is better is hard to foresee.
                    let better = (a > top[side]) | ((a == top[side]) & (b > top[side + 1]));
                    top[side] = if better { a } else { top[side] };
                    top[side + 1] = if better { b } else { top[side + 1] };
                }
            }
            self.best.push(top);
        }
    }

    #[inline]
    fn end_value(&self, along: Along<'_>, edge: usize) -> [f64; LANES] {
        let (score, slope) = (along.scores[edge], along.slopes[edge]);
        let [first, second] = along.tails(edge).map(|tail| &self.best[tail]);
        let own = [-slope, score, slope, score];
        std::array::from_fn(|lane| own[lane] + (first[lane] + second[lane]))
    }

    /// The derivation on top at an end, left or right, after a search for both.
    fn end(&self, along: Along<'_>, side: usize) -> Vec<u32> {
        let lanes = 2 * side..2 * side + 2;
        along.follow(|node| {
            let top = &self.best[node + 1][lanes.clone()];
            let reaches = |edge: &usize| self.end_value(along, *edge)[lanes.clone()] == *top;
            along.forest.incoming(node).find(reaches).expect("some edge is the best")
        })
    }

    /// The derivation behind a piece of the last envelope built.
    pub fn of(&self, piece: &Piece) -> Derivation {
        let Line { intercept, ref edges, .. } = self.lines[piece.line as usize];
        Derivation { score: intercept, edges: edges.clone() }
    }
}
