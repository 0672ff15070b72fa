//! All derivations of one sentence in shared form: a hypergraph.

mod agree;
mod derivation;
mod file;
mod gains;
mod inside;
mod kbest;
mod make;
mod print;
mod rounds;
mod rows;
mod skeleton;
mod space;
mod unfold;
mod viterbi;

pub use agree::{Agreement, Expected, Gram, ORDER, counted};
pub use derivation::{Derivation, FeatureSum, Reader};
pub use file::{Decoder, Encoder};
pub use gains::{Aim, GramSearch};
pub use inside::{Join, Marginals};
pub use kbest::{Best, Choice};
pub use rows::Rows;
pub use skeleton::{Edge, Side, Skeleton, SkeletonBuilder};
pub use space::{ForestSpace, Reach};
pub use unfold::Unfolded;
pub use viterbi::Viterbi;

use std::ops::Deref;

/// A hypergraph: a [`Skeleton`] and its features. What an edge contributes is the features of its
/// rule, shared by all edges that use it, and features of its own (language model, distortion),
/// with ids of the [`Names`](tunesmith_text::Names) of whoever keeps the forest.
#[derive(Debug, Clone, Default)]
pub struct Forest {
    skeleton: Skeleton,
    own: Rows,
    rules: Rows,
}

/// What needs no features asks the skeleton.
impl Deref for Forest {
    type Target = Skeleton;

    fn deref(&self) -> &Skeleton {
        &self.skeleton
    }
}

impl Forest {
    /// Features for every rule and every edge of a skeleton, in their order.
    pub fn new(skeleton: Skeleton, rules: Rows, own: Rows) -> Forest {
        assert_eq!(rules.len(), skeleton.rules(), "one row for each rule");
        assert_eq!(own.len(), skeleton.edges().len(), "one row for each edge");
        Forest { skeleton, own, rules }
    }

    /// Features that an edge adds to those of its rule.
    pub fn own(&self, edge: usize) -> (&[u32], &[f32]) {
        self.own.get(edge)
    }

    /// Features of a rule.
    pub fn rule(&self, rule: u32) -> (&[u32], &[f32]) {
        self.rules.get(rule as usize)
    }

    /// The score of every edge.
    pub fn scores(&self, weights: &[f64]) -> Vec<f64> {
        let rules: Vec<f64> = (0..self.rules()).map(|rule| self.rules.dot(rule, weights)).collect();
        let of = |(at, edge): (usize, &Edge)| rules[edge.rule as usize] + self.own.dot(at, weights);
        self.edges.iter().enumerate().map(of).collect()
    }

    /// Gives every feature the id that `map` has for it.
    pub fn rename(&mut self, map: &[u32]) {
        self.own.rename(map);
        self.rules.rename(map);
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.skeleton.heap_bytes() + self.own.heap_bytes() + self.rules.heap_bytes()
    }
}

/// Fills a [`Forest`] as a [`SkeletonBuilder`] fills a skeleton, with features.
#[derive(Debug, Default)]
pub struct ForestBuilder {
    skeleton: SkeletonBuilder,
    own: Rows,
    rules: Rows,
}

impl ForestBuilder {
    /// A word, which target sides and strings name by the number returned.
    pub fn word(&mut self, spelling: &str) -> u32 {
        self.skeleton.word(spelling)
    }

    /// A rule; feature ids must be distinct.
    pub fn rule(
        &mut self,
        features: impl IntoIterator<Item = (u32, f32)>,
        side: impl IntoIterator<Item = Side>,
    ) -> u32 {
        self.rules.push(features);
        self.skeleton.rule(side)
    }

    /// Opens the next node.
    pub fn node(&mut self) -> u32 {
        self.skeleton.node()
    }

    /// Adds a way to build the open node from earlier ones; feature ids must be distinct, and may
    /// be those of the rule (the values then add up).
    pub fn edge(&mut self, edge: Edge, own: impl IntoIterator<Item = (u32, f32)>) {
        self.skeleton.edge(edge);
        self.own.push(own);
    }

    /// The forest; its goal is the last node.
    pub fn finish(self) -> Forest {
        Forest::new(self.skeleton.finish(), self.rules, self.own)
    }
}
