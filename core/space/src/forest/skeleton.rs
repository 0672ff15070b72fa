//! Derivations in shared form, without features: what lists of strings need.

use std::ops::Range;

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

/// Nodes, edges and target sides. Nodes are numbered so that tails come before heads, the last is
/// the goal; the edges that build a node lie side by side.
#[derive(Debug, Clone, Default)]
pub struct Skeleton {
    /// Where the edges of each node begin; one more than nodes.
    starts: Vec<u32>,
    pub(super) edges: Vec<Edge>,
    /// Target sides of the rules, in codes of [`Side`].
    sides: Vec<u32>,
    /// Where the target side of each rule ends.
    ends: Vec<u32>,
    pub(super) words: Texts,
}

impl Skeleton {
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
    pub fn incoming(&self, node: usize) -> Range<usize> {
        self.starts[node] as usize..self.starts[node + 1] as usize
    }

    /// The number of rules.
    pub fn rules(&self) -> usize {
        self.ends.len()
    }

    /// The target side of a rule.
    pub fn side(&self, rule: u32) -> impl DoubleEndedIterator<Item = Side> + ExactSizeIterator {
        let Range { start, end } = self.side_range(rule);
        let codes = &self.sides[start as usize..end as usize];
        codes.iter().map(|&code| Side::from_code(code))
    }

    /// Where the target side of a rule is among all symbols.
    pub(super) fn side_range(&self, rule: u32) -> Range<u32> {
        let start = (rule as usize).checked_sub(1).map_or(0, |last| self.ends[last]);
        start..self.ends[rule as usize]
    }

    pub(super) fn symbol(&self, at: u32) -> Side {
        Side::from_code(self.sides[at as usize])
    }

    /// The spelling of a word.
    pub fn word(&self, word: u32) -> &str {
        self.words.get(word as usize)
    }

    pub fn words(&self) -> &Texts {
        &self.words
    }

    pub(super) fn heap_bytes(&self) -> usize {
        (self.starts.capacity() + self.sides.capacity() + self.ends.capacity()) * 4
            + self.edges.capacity() * size_of::<Edge>()
            + self.words.heap_bytes()
    }
}

/// Fills a [`Skeleton`]: rules and words first or as they come, then node by node the edges that
/// build it.
#[derive(Debug, Default)]
pub struct SkeletonBuilder {
    skeleton: Skeleton,
}

impl SkeletonBuilder {
    /// Makes room for so many nodes and edges.
    pub fn reserve(&mut self, nodes: usize, edges: usize) {
        self.skeleton.starts.reserve(nodes + 1);
        self.skeleton.edges.reserve(edges);
    }

    /// A word, which target sides and strings name by the number returned.
    pub fn word(&mut self, spelling: &str) -> u32 {
        self.skeleton.words.push(spelling);
        self.skeleton.words.len() as u32 - 1
    }

    /// A rule by its target side.
    pub fn rule(&mut self, side: impl IntoIterator<Item = Side>) -> u32 {
        self.skeleton.sides.extend(side.into_iter().map(Side::code));
        self.skeleton.ends.push(self.skeleton.sides.len() as u32);
        self.skeleton.ends.len() as u32 - 1
    }

    /// Opens the next node.
    #[inline]
    pub fn node(&mut self) -> u32 {
        self.skeleton.starts.push(self.skeleton.edges.len() as u32);
        self.skeleton.starts.len() as u32 - 1
    }

    /// Adds a way to build the open node from earlier ones.
    #[inline]
    pub fn edge(&mut self, edge: Edge) {
        let open = self.skeleton.starts.len().checked_sub(1).expect("edge before the first node");
        assert!(edge.tails().all(|tail| tail < open), "tails come before heads");
        assert!((edge.rule as usize) < self.skeleton.rules(), "an edge without a rule");
        self.skeleton.edges.push(edge);
    }

    /// Adds all of another skeleton, its labels raised by `labels`; returns its goal.
    pub fn graft(&mut self, other: &Skeleton, labels: u32) -> Option<u32> {
        let words: Vec<u32> = other.words.iter().map(|word| self.word(word)).collect();
        let rules = self.skeleton.rules() as u32;
        for rule in 0..other.rules() as u32 {
            self.rule(other.side(rule).map(|side| match side {
                Side::Word(word) => Side::Word(words[word as usize]),
                Side::Gap(gap) => Side::Gap(gap),
            }));
        }
        let nodes = self.skeleton.starts.len() as u32;
        for node in 0..other.nodes() {
            self.node();
            for &edge in &other.edges[other.incoming(node)] {
                let moved = |tail| if tail == Edge::NONE { tail } else { tail + nodes };
                self.edge(Edge {
                    tails: edge.tails.map(moved),
                    rule: edge.rule + rules,
                    label: edge.label.saturating_add(labels),
                });
            }
        }
        other.goal().map(|goal| goal as u32 + nodes)
    }

    /// The skeleton; its goal is the last node.
    pub fn finish(mut self) -> Skeleton {
        if !self.skeleton.starts.is_empty() {
            self.skeleton.starts.push(self.skeleton.edges.len() as u32);
        }
        self.skeleton
    }
}
