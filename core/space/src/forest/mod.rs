//! All derivations of one sentence in shared form: a hypergraph.

mod agree;
mod derivation;
mod file;
mod gains;
mod inside;
mod kbest;
mod make;
mod print;
mod rows;
mod space;
mod unfold;
mod viterbi;

pub use agree::{Agreement, Expected, Gram, ORDER, counted};
pub use derivation::{Derivation, FeatureSum};
pub use file::{Decoder, Encoder};
pub use gains::{Aim, GramSearch};
pub use inside::{Join, Marginals};
pub use kbest::Best;
pub use rows::Rows;
pub use space::{ForestSpace, Reach};
pub use unfold::Unfolded;
pub use viterbi::Viterbi;

use crate::texts::Texts;

/// One way to build a node: a rule over at most two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The nodes in the rule's first and second gap; [`Edge::NONE`] where there is no gap.
    pub tails: [u32; 2],
    pub rule: u32,
    /// Whatever the decoder wants to find again (which words of the source it covered).
    pub label: u32,
}

impl Edge {
    pub const NONE: u32 = u32::MAX;

    pub fn tails(&self) -> impl DoubleEndedIterator<Item = usize> + Clone + use<> {
        self.tails.into_iter().filter(|&tail| tail != Edge::NONE).map(|tail| tail as usize)
    }
}

/// A symbol of a rule's target side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// A word of the forest.
    Word(u32),
    /// Where the string of that tail goes: 0 or 1.
    Gap(usize),
}

impl Side {
    fn code(self) -> u32 {
        match self {
            Side::Word(word) => word,
            Side::Gap(gap) => u32::MAX - gap as u32,
        }
    }

    fn from_code(code: u32) -> Side {
        match u32::MAX - code {
            gap @ 0..=1 => Side::Gap(gap as usize),
            _ => Side::Word(code),
        }
    }
}

/// A hypergraph. Nodes are numbered so that tails come before heads, the last is the goal; the
/// edges that build a node lie side by side. What an edge contributes is the features of its rule,
/// shared by all edges that use it, and features of its own (language model, distortion), with ids
/// of the [`Names`](tunesmith_text::Names) of whoever keeps the forest.
#[derive(Debug, Clone, Default)]
pub struct Forest {
    /// Where the edges of each node begin; one more than nodes.
    starts: Vec<u32>,
    edges: Vec<Edge>,
    own: Rows,
    rules: Rows,
    /// Target sides of the rules, in codes of [`Side`].
    sides: Vec<u32>,
    /// Where the target side of each rule ends.
    ends: Vec<u32>,
    words: Texts,
}

impl Forest {
    /// The number of nodes; 0 if there is no derivation at all.
    pub fn nodes(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    pub fn goal(&self) -> Option<usize> {
        self.nodes().checked_sub(1)
    }

    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The edges that build a node, as positions in [`edges`](Self::edges).
    pub fn incoming(&self, node: usize) -> std::ops::Range<usize> {
        self.starts[node] as usize..self.starts[node + 1] as usize
    }

    /// Features that an edge adds to those of its rule.
    pub fn own(&self, edge: usize) -> (&[u32], &[f32]) {
        self.own.get(edge)
    }

    /// The number of rules.
    pub fn rules(&self) -> usize {
        self.ends.len()
    }

    /// Features of a rule.
    pub fn rule(&self, rule: u32) -> (&[u32], &[f32]) {
        self.rules.get(rule as usize)
    }

    /// The target side of a rule.
    pub fn side(&self, rule: u32) -> impl DoubleEndedIterator<Item = Side> + ExactSizeIterator {
        let start = (rule as usize).checked_sub(1).map_or(0, |last| self.ends[last]) as usize;
        let end = self.ends[rule as usize] as usize;
        self.sides[start..end].iter().map(|&code| Side::from_code(code))
    }

    /// The spelling of a word.
    pub fn word(&self, word: u32) -> &str {
        self.words.get(word as usize)
    }

    pub fn words(&self) -> &Texts {
        &self.words
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
        (self.starts.capacity() + self.sides.capacity() + self.ends.capacity()) * 4
            + self.edges.capacity() * size_of::<Edge>()
            + self.own.heap_bytes()
            + self.rules.heap_bytes()
            + self.words.heap_bytes()
    }
}

/// Fills a [`Forest`]: rules and words first or as they come, then node by node the edges that
/// build it.
#[derive(Debug, Default)]
pub struct ForestBuilder {
    forest: Forest,
}

impl ForestBuilder {
    /// A word, which target sides and strings name by the number returned.
    pub fn word(&mut self, spelling: &str) -> u32 {
        self.forest.words.push(spelling);
        self.forest.words.len() as u32 - 1
    }

    /// A rule; feature ids must be distinct.
    pub fn rule(
        &mut self,
        features: impl IntoIterator<Item = (u32, f32)>,
        side: impl IntoIterator<Item = Side>,
    ) -> u32 {
        self.forest.rules.push(features);
        self.forest.sides.extend(side.into_iter().map(Side::code));
        self.forest.ends.push(self.forest.sides.len() as u32);
        self.forest.ends.len() as u32 - 1
    }

    /// Opens the next node.
    pub fn node(&mut self) -> u32 {
        self.forest.starts.push(self.forest.edges.len() as u32);
        self.forest.starts.len() as u32 - 1
    }

    /// Adds a way to build the open node from earlier ones; feature ids must be distinct, and may
    /// be those of the rule (the values then add up).
    pub fn edge(&mut self, edge: Edge, own: impl IntoIterator<Item = (u32, f32)>) {
        let open = self.forest.starts.len().checked_sub(1).expect("edge before the first node");
        assert!(edge.tails().all(|tail| tail < open), "tails come before heads");
        assert!((edge.rule as usize) < self.forest.rules(), "an edge without a rule");
        self.forest.edges.push(edge);
        self.forest.own.push(own);
    }

    /// Adds all of another forest with the same feature ids, its labels raised by `labels`;
    /// returns its goal.
    pub fn graft(&mut self, forest: &Forest, labels: u32) -> Option<u32> {
        let words: Vec<u32> = forest.words.iter().map(|word| self.word(word)).collect();
        let moved = |side| match side {
            Side::Word(word) => Side::Word(words[word as usize]),
            Side::Gap(gap) => Side::Gap(gap),
        };
        let entries = |(ids, values): (&[u32], &[f32])| {
            ids.iter().copied().zip(values.iter().copied()).collect::<Vec<_>>()
        };
        let rules = self.forest.rules() as u32;
        for rule in 0..forest.rules() as u32 {
            self.rule(entries(forest.rule(rule)), forest.side(rule).map(moved));
        }
        let nodes = self.forest.starts.len() as u32;
        for node in 0..forest.nodes() {
            self.node();
            for number in forest.incoming(node) {
                let mut edge = forest.edges[number];
                edge.rule += rules;
                edge.tails.iter_mut().filter(|tail| **tail != Edge::NONE).for_each(|t| *t += nodes);
                edge.label = edge.label.saturating_add(labels);
                self.edge(edge, entries(forest.own(number)));
            }
        }
        forest.goal().map(|goal| goal as u32 + nodes)
    }

    /// The forest; its goal is the last node.
    pub fn finish(mut self) -> Forest {
        if !self.forest.starts.is_empty() {
            self.forest.starts.push(self.forest.edges.len() as u32);
        }
        self.forest
    }
}
