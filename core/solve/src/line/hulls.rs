//! The envelopes of all nodes of a forest (Kumar et al. 2009).

use tunesmith_space::{Derivation, Edge, Forest};

use super::envelope::{Envelope, Piece};

/// Along a direction every derivation is a line. The upper envelope of a node is that of the union
/// of its edges' (⊕); an edge's is the Minkowski sum of its tails' (⊗), moved by its own line.
/// Kept from forest to forest only to spare allocations.
#[derive(Default)]
pub struct Hulls {
    pieces: Vec<Piece>,
    /// How each piece is built: an edge, and a piece of each of its tails.
    made: Vec<Made>,
    /// Where the pieces of each node end.
    ends: Vec<u32>,
    lines: Vec<(f64, f64, Made)>,
    envelope: Envelope,
}

#[derive(Debug, Clone, Copy)]
struct Made {
    edge: u32,
    tails: [u32; 2],
}

impl Hulls {
    /// The envelope of the goal over a range of steps, where an edge has `scores[edge] +
    /// step · slopes[edge]`. Pieces that reign only outside of the range are left out at every
    /// node. Equal lines go to the earlier edge.
    pub fn build(
        &mut self,
        forest: &Forest,
        scores: &[f64],
        slopes: &[f64],
        range: (f64, f64),
    ) -> &[Piece] {
        self.pieces.clear();
        self.made.clear();
        self.ends.clear();
        for node in 0..forest.nodes() {
            let edges = forest.incoming(node);
            self.lines.clear();
            for edge in edges {
                self.add(forest, edge, scores[edge], slopes[edge]);
            }
            // Stable, and quick with what is sorted in parts: every edge's lines are.
            self.lines.sort_by(|a, b| a.0.total_cmp(&b.0));
            let lines = &self.lines;
            self.envelope.build(lines.len(), |place| {
                let (slope, intercept, _) = lines[place];
                (slope, intercept, place as u32)
            });
            let hull = &self.envelope.hull;
            let first = hull.partition_point(|piece| piece.from <= range.0).saturating_sub(1);
            let inside = hull[first..]
                .iter()
                .enumerate()
                .take_while(|(n, piece)| *n == 0 || piece.from < range.1);
            for (_, piece) in inside {
                self.made.push(lines[piece.line as usize].2);
                self.pieces.push(Piece { line: self.pieces.len() as u32, ..*piece });
            }
            self.ends.push(self.pieces.len() as u32);
        }
        forest.goal().map_or(&[], |goal| &self.pieces[self.range(goal)])
    }

    fn range(&self, node: usize) -> std::ops::Range<usize> {
        let start = node.checked_sub(1).map_or(0, |last| self.ends[last]);
        start as usize..self.ends[node] as usize
    }

    /// Adds the lines of an edge, slopes ascending.
    fn add(&mut self, forest: &Forest, edge: usize, score: f64, slope: f64) {
        let tails = forest.edges()[edge].tails;
        let edge = edge as u32;
        // Zero added makes one of -0 and 0, between which the place decides.
        if tails[0] == Edge::NONE {
            self.lines.push((slope + 0.0, score, Made { edge, tails: [0; 2] }));
            return;
        }
        let mut first = self.range(tails[0] as usize);
        if tails[1] == Edge::NONE {
            for piece in first {
                let Piece { slope: own, intercept, .. } = self.pieces[piece];
                let made = Made { edge, tails: [piece as u32, 0] };
                self.lines.push((slope + own + 0.0, score + intercept, made));
            }
            return;
        }
        let mut second = self.range(tails[1] as usize);
        while !first.is_empty() && !second.is_empty() {
            let (a, b) = (&self.pieces[first.start], &self.pieces[second.start]);
            let made = Made { edge, tails: [first.start as u32, second.start as u32] };
            self.lines.push((
                slope + (a.slope + b.slope) + 0.0,
                score + (a.intercept + b.intercept),
                made,
            ));
            // To the next breakpoint of either.
            let next = |range: &std::ops::Range<usize>| {
                self.pieces[..range.end]
                    .get(range.start + 1)
                    .map_or(f64::INFINITY, |next| next.from)
            };
            let (left, right) = (next(&first), next(&second));
            first.start += usize::from(left <= right);
            second.start += usize::from(right <= left);
        }
    }

    /// The derivation behind a piece of the last envelope built.
    pub fn derivation(&self, forest: &Forest, piece: u32) -> Derivation {
        let mut edges = Vec::new();
        let mut open = vec![piece];
        while let Some(piece) = open.pop() {
            let Made { edge, tails } = self.made[piece as usize];
            edges.push(edge);
            let count = forest.edges()[edge as usize].tails().count();
            open.extend(tails[..count].iter().rev());
        }
        Derivation { score: self.pieces[piece as usize].intercept, edges }
    }
}
