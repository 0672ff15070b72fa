//! Sums over all derivations: inside and outside, posteriors, expectations.

use super::{Forest, Viterbi};
use crate::forest::derivation::FeatureSum;

/// How the values of alternatives are joined; those of the parts of a derivation add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// The logarithm of the sum of their exponentials.
    Sum,
    /// The best of them.
    Max,
}

impl Join {
    fn join(self, a: f64, b: f64) -> f64 {
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        match self {
            Join::Max => high,
            Join::Sum if low == f64::NEG_INFINITY => high,
            Join::Sum => high + (low - high).exp().ln_1p(),
        }
    }
}

/// What each edge has of all derivations.
#[derive(Debug, Clone)]
pub struct Marginals {
    /// The value of all derivations; minus infinity if there is none.
    pub whole: f64,
    /// For each edge the value of the derivations that use it, relative to the whole: the
    /// logarithm of its posterior probability, or how much the best derivation with it falls
    /// short of the best. Minus infinity for an edge that is in none.
    pub edges: Vec<f64>,
}

impl Forest {
    /// The value of what is below each node.
    pub fn inside(&self, scores: &[f64], join: Join) -> Vec<f64> {
        assert_eq!(scores.len(), self.edges.len(), "scores of another forest");
        let mut inside: Vec<f64> = Vec::with_capacity(self.nodes());
        for node in 0..self.nodes() {
            let values = self.incoming(node).map(|edge| {
                scores[edge] + self.edges[edge].tails().map(|tail| inside[tail]).sum::<f64>()
            });
            let value = values.fold(f64::NEG_INFINITY, |a, b| join.join(a, b));
            inside.push(value);
        }
        inside
    }

    /// The value of the derivations through each edge.
    pub fn marginals(&self, scores: &[f64], join: Join) -> Marginals {
        let inside = self.inside(scores, join);
        let Some(goal) = self.goal() else {
            return Marginals { whole: f64::NEG_INFINITY, edges: Vec::new() };
        };
        let mut outside = vec![f64::NEG_INFINITY; self.nodes()];
        let mut edges = vec![f64::NEG_INFINITY; self.edges.len()];
        let whole = inside[goal];
        // Relative to the whole from the start.
        outside[goal] = -whole;
        for node in (0..self.nodes()).rev().filter(|&node| inside[node] > f64::NEG_INFINITY) {
            for edge in self.incoming(node) {
                let tails = self.edges[edge].tails();
                let below: f64 = tails.clone().map(|tail| inside[tail]).sum();
                let above = outside[node] + scores[edge];
                edges[edge] = above + below;
                if edges[edge] == f64::NEG_INFINITY {
                    continue;
                }
                let count = tails.clone().count();
                for (place, tail) in tails.enumerate() {
                    let other = if count == 2 {
                        inside[self.edges[edge].tails[1 - place] as usize]
                    } else {
                        0.0
                    };
                    outside[tail] = join.join(outside[tail], above + other);
                }
            }
        }
        Marginals { whole, edges }
    }

    /// The expected features under `p ∝ exp(score)`, ids ascending.
    pub fn expectations(&self, scores: &[f64]) -> Vec<(u32, f64)> {
        let marginals = self.marginals(scores, Join::Sum);
        let mut sum = FeatureSum::default();
        let mut rules = vec![0.0; self.rules()];
        for (edge, value) in marginals.edges.iter().enumerate() {
            let posterior = value.exp();
            rules[self.edges[edge].rule as usize] += posterior;
            sum.add(self.own(edge), posterior);
        }
        for (rule, posterior) in rules.into_iter().enumerate() {
            sum.add(self.rule(rule as u32), posterior);
        }
        sum.drain().collect()
    }

    /// How many derivations there are, as a logarithm to base 10.
    pub fn derivations(&self) -> f64 {
        let count = self.inside(&vec![0.0; self.edges.len()], Join::Sum).pop();
        count.unwrap_or(f64::NEG_INFINITY) / std::f64::consts::LN_10
    }

    /// The edges of derivations whose score is within `beam` of the best, and nothing else.
    pub fn prune_by_score(&self, scores: &[f64], beam: f64) -> Forest {
        // The best derivation stays whatever rounding says.
        let least = -beam.max(0.0) - 1e-9;
        let marginals = self.marginals(scores, Join::Max);
        self.keep(|edge| marginals.edges[edge] >= least)
    }

    /// The edges with a posterior of at least `least` under `p ∝ exp(score)`, and the best
    /// derivation.
    pub fn prune_by_posterior(&self, scores: &[f64], least: f64) -> Forest {
        let marginals = self.marginals(scores, Join::Sum);
        let best = self.best_edges(&Viterbi::new(self, scores));
        self.keep(|edge| best[edge] || marginals.edges[edge].exp() >= least)
    }

    /// The best edges by the best derivation that uses each, about `density` for each word of the
    /// best string: unlike the other two, not a question of how large scores are.
    pub fn prune_by_density(&self, scores: &[f64], density: f64) -> Forest {
        let words = self.viterbi(scores).map_or(0, |best| self.yielded(&best).len());
        let wanted = (density.max(0.0) * words.max(1) as f64).ceil() as usize;
        let marginals = self.marginals(scores, Join::Max);
        let mut order = marginals.edges.clone();
        order.sort_unstable_by(|a, b| b.total_cmp(a));
        let least = order.get(wanted).copied().unwrap_or(f64::NEG_INFINITY);
        // The best derivation stays whatever rounding says; of equals all go or all stay.
        self.keep(|edge| marginals.edges[edge] > least || marginals.edges[edge] >= -1e-9)
    }

    fn best_edges(&self, viterbi: &Viterbi) -> Vec<bool> {
        let mut kept = vec![false; self.edges.len()];
        let mut open = Vec::from_iter(self.goal());
        while let Some(node) = open.pop() {
            if let Some(edge) = viterbi.edge(node).filter(|&edge| !kept[edge]) {
                kept[edge] = true;
                open.extend(self.edges[edge].tails());
            }
        }
        kept
    }
}
