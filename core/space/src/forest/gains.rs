//! Search for the derivation with the best mixture of score and gain.
//!
//! The gain of a string is no sum over the edges of its derivation, so the best cannot be found
//! exactly in a forest of any size. As on lattices and forests in Chiang (2012) and Cherry & Foster
//! (2012), items of a node carry what BLEU needs to know of their strings: the length, how often
//! each n-gram of the references was matched, and the words at both ends, which further n-grams
//! will span. Statistics of an item are so exact, clipping included. Two things are not:
//!
//! - A node keeps its best items only, found by cube pruning: `pops` of them are looked at.
//! - Items that are not yet whole sentences are compared by the gain of the sentence they would
//!   become: with the rest that the model's best derivation through their node has.
//!
//! A forest of whole hypotheses is searched exactly: every edge of a node is looked at once.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use tunesmith_metric::{Grams, UNSEEN};

use super::{Derivation, Edge, Forest, Join, Side, Viterbi};
use crate::space::order_of;

/// Words at the edges of an item that longer n-grams can span: one less than the highest order.
const EDGE: usize = 3;

/// What is known of the string of a derivation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Ends {
    /// Its length in tokens.
    pub length: u32,
    /// The first tokens; behind one that no reference has they are all the same.
    left: [u32; EDGE],
    /// The n-grams that its last 1, 2 and 3 tokens are.
    right: [Option<u32>; EDGE],
}

/// A derivation of a node: what it is worth, how it is built.
#[derive(Debug, Clone, Copy)]
struct Item {
    value: f64,
    score: f64,
    ends: Ends,
    edge: u32,
    ranks: [u32; 2],
    /// Where its counts are.
    counts: usize,
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> Ordering {
        order_of(self.value, other.value)
            .then(order_of(self.score, other.score))
            .then(other.edge.cmp(&self.edge))
            .then(other.ranks.cmp(&self.ranks))
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Item {}

/// What the rest of a sentence adds to the statistics of a node's items.
#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    length: u32,
    matches: [f64; EDGE + 1],
}

/// The references' n-grams in a forest's words.
pub struct GramSearch<'a> {
    pub(super) forest: &'a Forest,
    pub(super) grams: &'a dyn Grams,
    /// The tokens of each word.
    tokens: Vec<u32>,
    ends: Vec<u32>,
    pub(super) width: usize,
}

/// What is looked for: `model·score + gain·gain`.
pub struct Aim<'a> {
    pub scores: &'a [f64],
    pub model: f64,
    pub gain: f64,
    /// The gain of a row of statistics.
    pub worth: &'a dyn Fn(&[f64]) -> f64,
    /// How many items of each node are looked at, and at most kept.
    pub pops: usize,
}

impl<'a> GramSearch<'a> {
    /// `width` is that of a row of statistics.
    pub fn new(forest: &'a Forest, grams: &'a dyn Grams, width: usize) -> Self {
        let mut search = GramSearch { forest, grams, tokens: Vec::new(), ends: Vec::new(), width };
        for word in forest.words.iter() {
            grams.tokens(word, &mut search.tokens);
            search.ends.push(search.tokens.len() as u32);
        }
        search
    }

    fn tokens(&self, word: u32) -> &[u32] {
        let start = (word as usize).checked_sub(1).map_or(0, |last| self.ends[last]);
        &self.tokens[start as usize..self.ends[word as usize] as usize]
    }

    /// How many tokens at the beginning of a string n-grams from before can reach.
    fn lefts(&self, ends: &Ends) -> usize {
        (ends.length as usize).min(self.grams.order() - 1)
    }

    /// Notes a token at the beginning of a string with `at` tokens.
    fn note(&self, ends: &mut Ends, at: usize, token: u32) {
        if at < self.grams.order() - 1 {
            let cut = at > 0 && ends.left[at - 1] == UNSEEN;
            ends.left[at] = if cut { UNSEEN } else { token };
        }
    }

    /// Puts a token behind a string and counts the n-grams that end with it.
    fn push(&self, ends: &mut Ends, counts: &mut [u8], token: u32) {
        let order = self.grams.order();
        self.note(ends, ends.length as usize, token);
        ends.length += 1;
        let mut grams = [None; EDGE + 1];
        if token != UNSEEN {
            grams[0] = self.grams.longer(None, token);
            for (n, right) in ends.right[..order - 1].iter().enumerate() {
                grams[n + 1] = right.and_then(|gram| self.grams.longer(Some(gram), token));
            }
            for gram in grams.iter().flatten() {
                counts[*gram as usize] = counts[*gram as usize].saturating_add(1);
            }
        }
        ends.right[..order - 1].copy_from_slice(&grams[..order - 1]);
    }

    /// Puts one string behind another and counts the n-grams that span both.
    fn join(&self, ends: &mut Ends, counts: &mut [u8], next: &Ends, next_counts: &[u8]) {
        for (count, more) in counts.iter_mut().zip(next_counts) {
            *count = count.saturating_add(*more);
        }
        let order = self.grams.order();
        let length = next.length as usize;
        // The n-grams that begin before and reach into the next string, by their length before.
        let mut spanning = ends.right;
        for (reached, &token) in next.left[..self.lefts(next)].iter().enumerate() {
            for (before, gram) in (1..order).zip(&mut spanning) {
                *gram = gram
                    .filter(|_| before + reached < order && token != UNSEEN)
                    .and_then(|gram| self.grams.longer(Some(gram), token));
                if let Some(gram) = *gram {
                    counts[gram as usize] = counts[gram as usize].saturating_add(1);
                }
            }
            self.note(ends, ends.length as usize + reached, token);
        }
        ends.right = next.right;
        // A string shorter than the edge ends with n-grams that begin before it.
        for before in 1..order.saturating_sub(length) {
            ends.right[before + length - 1] = spanning[before - 1];
        }
        ends.length += next.length;
    }

    /// Matches of each order.
    pub(super) fn matches(&self, counts: &[u8]) -> [f64; EDGE + 1] {
        let mut matches = [0.0; EDGE + 1];
        self.grams.matches(counts, &mut matches);
        matches
    }

    /// The string of an edge over strings of its tails.
    pub(super) fn build(
        &self,
        edge: usize,
        counts: &mut [u8],
        tail: impl Fn(usize) -> (Ends, usize),
        arena: &[u8],
    ) -> Ends {
        counts.fill(0);
        let mut ends = Ends::default();
        for symbol in self.forest.side(self.forest.edges[edge].rule) {
            match symbol {
                Side::Word(word) => {
                    for &token in self.tokens(word) {
                        self.push(&mut ends, counts, token);
                    }
                }
                Side::Gap(gap) => {
                    let (next, at) = tail(gap);
                    self.join(&mut ends, counts, &next, &arena[at..at + counts.len()]);
                }
            }
        }
        // Beyond what may match, one more or less makes no difference to anything that follows.
        for (count, &limit) in counts.iter_mut().zip(self.grams.limits()) {
            *count = limit.min(*count);
        }
        ends
    }

    /// For each node what the model's best derivation through it has besides.
    fn rests(&self, scores: &[f64]) -> Vec<Rest> {
        let forest = self.forest;
        let size = self.grams.limits().len();
        let viterbi = Viterbi::new(forest, scores);
        let mut arena: Vec<u8> = Vec::new();
        let mut best: Vec<(Ends, usize)> = Vec::with_capacity(forest.nodes());
        let mut counts = vec![0; size];
        let of = |edge: usize, best: &[(Ends, usize)], arena: &[u8], counts: &mut [u8]| {
            let tails = forest.edges[edge].tails;
            self.build(edge, counts, |gap| best[tails[gap] as usize], arena)
        };
        for node in 0..forest.nodes() {
            let ends = viterbi
                .edge(node)
                .map_or_else(Ends::default, |edge| of(edge, &best, &arena, &mut counts));
            best.push((ends, arena.len()));
            arena.extend_from_slice(&counts);
        }
        // The best edge above each node.
        let marginals = forest.marginals(scores, Join::Max);
        let mut above = vec![(f64::NEG_INFINITY, Edge::NONE); forest.nodes()];
        let mut heads = vec![0; forest.edges.len()];
        for node in 0..forest.nodes() {
            for edge in forest.incoming(node) {
                heads[edge] = node;
                for tail in forest.edges[edge].tails() {
                    if marginals.edges[edge] > above[tail].0 {
                        above[tail] = (marginals.edges[edge], edge as u32);
                    }
                }
            }
        }
        let mut rests = vec![Rest::default(); forest.nodes()];
        for node in (0..forest.nodes()).rev() {
            let (_, edge) = above[node];
            if edge == Edge::NONE {
                continue;
            }
            let whole = of(edge as usize, &best, &arena, &mut counts);
            let (own, at) = best[node];
            let with = self.matches(&counts);
            let without = self.matches(&arena[at..at + size]);
            let mut rest = rests[heads[edge as usize]];
            rest.length += whole.length.saturating_sub(own.length);
            for ((sum, with), without) in rest.matches.iter_mut().zip(with).zip(without) {
                *sum += (with - without).max(0.0);
            }
            rests[node] = rest;
        }
        rests
    }

    /// The best derivations that are found, best first by the aim, at most `pops`.
    pub fn best(&self, aim: &Aim<'_>) -> Vec<Derivation> {
        let forest = self.forest;
        let Some(goal) = forest.goal() else { return Vec::new() };
        let rests = self.rests(aim.scores);
        let size = self.grams.limits().len();
        let order = self.grams.order();
        let mut arena: Vec<u8> = Vec::new();
        let mut nodes: Vec<Vec<Item>> = Vec::with_capacity(forest.nodes());
        let mut counts = vec![0; size];
        let mut row = vec![0.0; self.width];
        // Items with the same counts and ends are worth the same in whatever they become part of.
        let mut seen: FxHashMap<u64, usize> = FxHashMap::default();
        for (node, rest) in rests.into_iter().enumerate() {
            // Counts of items that will not be kept are forgotten.
            let start = arena.len();
            let mut make = |edge: usize,
                            ranks: [u32; 2],
                            nodes: &[Vec<Item>],
                            arena: &mut Vec<u8>| {
                let tails = forest.edges[edge].tails;
                let mut score = aim.scores[edge];
                for (&tail, rank) in
                    tails.iter().zip(ranks).filter(|&(&tail, _)| tail != Edge::NONE)
                {
                    score += nodes[tail as usize].get(rank as usize)?.score;
                }
                let item = |gap: usize| &nodes[tails[gap] as usize][ranks[gap] as usize];
                let ends =
                    self.build(edge, &mut counts, |gap| (item(gap).ends, item(gap).counts), arena);
                let mut matches = self.matches(&counts);
                matches.iter_mut().zip(rest.matches).for_each(|(sum, more)| *sum += more);
                let length = (ends.length + rest.length) as usize;
                self.grams.row(length, &matches[..order], &mut row);
                let value = aim.model * score + aim.gain * (aim.worth)(&row);
                let item =
                    Item { value, score, ends, edge: edge as u32, ranks, counts: arena.len() };
                arena.extend_from_slice(&counts);
                Some(item)
            };
            let mut heap: BinaryHeap<Item> = forest
                .incoming(node)
                .filter_map(|edge| make(edge, [0; 2], &nodes, &mut arena))
                .collect();
            seen.clear();
            let mut items: Vec<Item> = Vec::new();
            for _ in 0..aim.pops.max(1) {
                let Some(item) = heap.pop() else { break };
                // As in the lazy search, every pair of ranks is reached once.
                let tails = forest.edges[item.edge as usize].tails;
                for gap in 0..2 {
                    if tails[gap] != Edge::NONE && (gap == 1 || item.ranks[1] == 0) {
                        let mut ranks = item.ranks;
                        ranks[gap] += 1;
                        heap.extend(make(item.edge as usize, ranks, &nodes, &mut arena));
                    }
                }
                if node == goal {
                    // Nothing follows; whoever asked for several wants all of them.
                    items.push(item);
                    continue;
                }
                let mut hasher = FxHasher::default();
                let state = |item: &Item| (item.ends, &arena[item.counts..item.counts + size]);
                state(&item).hash(&mut hasher);
                let twin = *seen.entry(hasher.finish()).or_insert(items.len());
                match items.get_mut(twin) {
                    Some(twin) if state(twin) == state(&item) => *twin = item.max(*twin),
                    _ => items.push(item),
                }
            }
            items.sort_by(|a, b| b.cmp(a));
            let mut kept: Vec<u8> = Vec::with_capacity(items.len() * size);
            for item in &mut items {
                kept.extend_from_slice(&arena[item.counts..item.counts + size]);
                item.counts = start + kept.len() - size;
            }
            arena.truncate(start);
            arena.extend(kept);
            nodes.push(items);
        }
        (0..nodes[goal].len() as u32)
            .map(|rank| self.derivation(&nodes, goal as u32, rank))
            .collect()
    }

    fn derivation(&self, nodes: &[Vec<Item>], goal: u32, rank: u32) -> Derivation {
        let mut edges = Vec::new();
        let mut open = vec![(goal, rank)];
        while let Some((node, rank)) = open.pop() {
            let item = &nodes[node as usize][rank as usize];
            edges.push(item.edge);
            let tails = self.forest.edges[item.edge as usize].tails;
            let below = tails.into_iter().zip(item.ranks).rev();
            open.extend(below.filter(|&(tail, _)| tail != Edge::NONE));
        }
        Derivation { score: nodes[goal as usize][rank as usize].score, edges }
    }
}
