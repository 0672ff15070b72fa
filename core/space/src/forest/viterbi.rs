//! The best derivation of every node.

use super::{Derivation, Edge, Skeleton};

/// The best edge of every node and the score of the derivation below it; among equals the first
/// edge.
#[derive(Debug, Clone)]
pub struct Viterbi {
    scores: Vec<f64>,
    /// [`Edge::NONE`] where nothing can be built.
    edges: Vec<u32>,
}

impl Viterbi {
    /// `scores` holds the score of every edge.
    pub fn new(forest: &Skeleton, scores: &[f64]) -> Self {
        assert_eq!(scores.len(), forest.edges.len(), "scores of another forest");
        let mut best = Viterbi {
            scores: Vec::with_capacity(forest.nodes()),
            edges: Vec::with_capacity(forest.nodes()),
        };
        for node in 0..forest.nodes() {
            let (mut top, mut chosen) = (f64::NEG_INFINITY, Edge::NONE);
            for edge in forest.incoming(node) {
                let mut tails = forest.edges[edge].tails();
                let score = scores[edge] + tails.clone().map(|tail| best.scores[tail]).sum::<f64>();
                let is_better = chosen == Edge::NONE || score > top;
                if is_better && tails.all(|tail| best.edges[tail] != Edge::NONE) {
                    (top, chosen) = (score, edge as u32);
                }
            }
            best.scores.push(top);
            best.edges.push(chosen);
        }
        best
    }

    /// The score of the best derivation of a node, if there is one.
    pub fn score(&self, node: usize) -> Option<f64> {
        (self.edges[node] != Edge::NONE).then(|| self.scores[node])
    }

    /// The last edge of the best derivation of a node, if there is one.
    pub fn edge(&self, node: usize) -> Option<usize> {
        Some(self.edges[node]).filter(|&edge| edge != Edge::NONE).map(|edge| edge as usize)
    }
}

impl Skeleton {
    /// The best derivation under the scores of the edges.
    pub fn viterbi(&self, scores: &[f64]) -> Option<Derivation> {
        let goal = self.goal()?;
        let best = Viterbi::new(self, scores);
        let score = best.score(goal)?;
        let mut edges = Vec::new();
        let mut open = vec![goal];
        while let Some(node) = open.pop() {
            let edge = best.edge(node)?;
            edges.push(edge as u32);
            open.extend(self.edges[edge].tails().rev());
        }
        Some(Derivation { score, edges })
    }
}
