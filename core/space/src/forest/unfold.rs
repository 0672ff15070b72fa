//! A forest unfolded until every way to build its goal has one row of statistics.
//!
//! For sums over derivations that weigh each by what its string is worth, nodes are split by what
//! BLEU has to know of strings, as in the search for hope and fear ([`gains`](super::gains)):
//! derivations of a node whose strings do not differ in it are one item. Items, and the ways to
//! build them, are a forest of their own, over which inside and outside are exact. A node's items
//! are built of the best way over each of its edges and of `pops` more, the best by score; all
//! other derivations are left out. A forest of whole hypotheses is unfolded completely.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use super::gains::{Ends, GramSearch};
use super::{Edge, Forest};
use crate::space::order_of;

/// One way to build an item: an edge of the forest over items.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub edge: u32,
    pub tails: [u32; 2],
}

/// An unfolded forest. Items are numbered so that tails come before heads; the last stands for
/// all derivations.
#[derive(Debug, Clone)]
pub struct Unfolded {
    /// Where the ways to build each item begin; one more than items.
    starts: Vec<u32>,
    ways: Vec<Way>,
    of: Vec<u32>,
    rows: Vec<f64>,
}

/// A way that was looked at, or is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found {
    pub score: f64,
    pub edge: u32,
    pub ranks: [u32; 2],
}

impl Eq for Found {}

impl Ord for Found {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |found: &Found| (found.edge, found.ranks);
        order_of(self.score, other.score).then_with(|| place(other).cmp(&place(self)))
    }
}

impl PartialOrd for Found {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An item while its node is open: its best score, and the ways to build it.
struct Item {
    score: f64,
    ends: Ends,
    counts: usize,
    ways: Vec<Way>,
}

/// An item that others can be built of.
#[derive(Clone, Copy)]
struct Built {
    score: f64,
    ends: Ends,
    counts: usize,
    number: u32,
}

impl Unfolded {
    /// The rows of statistics of the ways to build the whole, each once, one after the other.
    pub fn rows(&self) -> &[f64] {
        &self.rows
    }

    /// Which row each way to build the whole has.
    pub fn of(&self) -> &[u32] {
        &self.of
    }

    /// The share that each way has of its item's probability under `p ∝ exp(α s)`; the last are
    /// those of the whole, one for each of [`of`](Self::of).
    pub fn shares(&self, scores: &[f64], alpha: f64) -> Vec<f64> {
        let mut shares: Vec<f64> = Vec::with_capacity(self.ways.len());
        let mut inside: Vec<f64> = Vec::with_capacity(self.starts.len());
        for item in self.starts.windows(2) {
            let start = shares.len();
            for way in &self.ways[item[0] as usize..item[1] as usize] {
                let below: f64 = tails(way).map(|tail| inside[tail]).sum();
                shares.push(scores[way.edge as usize] + below);
            }
            let own = &mut shares[start..];
            let top = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            own.iter_mut().for_each(|value| *value = (alpha * (*value - top)).exp());
            let sum = own.iter().sum::<f64>();
            let norm = 1.0 / sum;
            own.iter_mut().for_each(|value| *value *= norm);
            inside.push(top + if alpha == 0.0 { 0.0 } else { sum.ln() / alpha });
        }
        shares
    }

    /// What comes to each way when those of the whole have some and every item hands on to what
    /// it is built of, as shares have it: posteriors, if the whole has its shares.
    pub(super) fn posteriors(&self, shares: &[f64], whole: &[f64]) -> Vec<f64> {
        let mut ways = vec![0.0; self.ways.len()];
        let mut items = vec![0.0; self.starts.len()];
        let first = self.ways.len() - whole.len();
        ways[first..].copy_from_slice(whole);
        for item in (1..self.starts.len()).rev() {
            for at in self.starts[item - 1] as usize..self.starts[item] as usize {
                if at < first {
                    ways[at] = items[item - 1] * shares[at];
                }
                tails(&self.ways[at]).for_each(|tail| items[tail] += ways[at]);
            }
        }
        ways
    }

    /// The same for each edge of the forest.
    pub fn flow(&self, forest: &Forest, shares: &[f64], whole: &[f64]) -> Vec<f64> {
        let mut edges = vec![0.0; forest.edges.len()];
        for (way, flow) in self.ways.iter().zip(self.posteriors(shares, whole)) {
            edges[way.edge as usize] += flow;
        }
        edges
    }

    /// Adds an item; returns its number.
    pub(super) fn push(&mut self, ways: impl IntoIterator<Item = Way>) -> u32 {
        self.ways.extend(ways);
        self.starts.push(self.ways.len() as u32);
        self.starts.len() as u32 - 2
    }

    pub(super) fn ways(&self) -> &[Way] {
        &self.ways
    }

    /// The ways to build the whole, which are those of the last item.
    pub(super) fn whole(&self) -> &[Way] {
        let start = self.starts.len().checked_sub(2).map_or(0, |last| self.starts[last]);
        &self.ways[start as usize..]
    }
}

impl Default for Unfolded {
    fn default() -> Self {
        Unfolded { starts: vec![0], ways: Vec::new(), of: Vec::new(), rows: Vec::new() }
    }
}

fn tails(way: &Way) -> impl Iterator<Item = usize> + use<> {
    way.tails.into_iter().filter(|&tail| tail != Edge::NONE).map(|tail| tail as usize)
}

/// The ways to build a node that are looked at, in the order of its edges: the best over each edge,
/// and `pops` more. `best` gives the score of an item of a tail by its rank.
pub(super) fn ways(
    forest: &Forest,
    node: usize,
    scores: &[f64],
    best: impl Fn(usize, usize) -> Option<f64>,
    pops: usize,
) -> Vec<Found> {
    let make = |edge: usize, ranks: [u32; 2]| {
        let mut score = scores[edge];
        for (tail, rank) in forest.edges[edge].tails().zip(ranks) {
            score += best(tail, rank as usize)?;
        }
        Some(Found { score, edge: edge as u32, ranks })
    };
    let next = |found: &Found, heap: &mut BinaryHeap<Found>| {
        // As in the lazy search, every pair of ranks is reached once.
        for gap in 0..forest.edges[found.edge as usize].tails().count() {
            if gap == 1 || found.ranks[1] == 0 {
                let mut ranks = found.ranks;
                ranks[gap] += 1;
                heap.extend(make(found.edge as usize, ranks));
            }
        }
    };
    let mut ways: Vec<Found> =
        forest.incoming(node).filter_map(|edge| make(edge, [0; 2])).collect();
    let mut heap = BinaryHeap::new();
    ways.iter().for_each(|found| next(found, &mut heap));
    for _ in 0..pops {
        let Some(found) = heap.pop() else { break };
        next(&found, &mut heap);
        ways.push(found);
    }
    ways.sort_by_key(|found| (found.edge, found.ranks));
    ways
}

impl GramSearch<'_> {
    /// The part of the forest that is best under the scores of its edges, unfolded.
    pub fn unfold(&self, scores: &[f64], pops: usize) -> Unfolded {
        let forest = self.forest;
        let mut unfolded = Unfolded::default();
        let mut arena: Vec<u8> = Vec::new();
        let mut nodes: Vec<Vec<Built>> = Vec::with_capacity(forest.nodes());
        for node in 0..forest.nodes() {
            let score = |tail: usize, rank: usize| nodes[tail].get(rank).map(|item| item.score);
            let ways = ways(forest, node, scores, score, pops);
            if Some(node) == forest.goal() {
                self.close(ways, &nodes, &arena, &mut unfolded);
                break;
            }
            let built = self.items(&ways, &nodes, &mut arena, &mut unfolded);
            nodes.push(built);
        }
        unfolded
    }

    /// The string that a way builds, and the way over items.
    fn string(
        &self,
        found: &Found,
        nodes: &[Vec<Built>],
        arena: &[u8],
        counts: &mut [u8],
    ) -> (Ends, Way) {
        let tails = self.forest.edges[found.edge as usize].tails;
        let item = |gap: usize| &nodes[tails[gap] as usize][found.ranks[gap] as usize];
        let below = |gap: usize| (item(gap).ends, item(gap).counts);
        let ends = self.build(found.edge as usize, counts, below, arena);
        let number = |gap: usize| match tails[gap] {
            Edge::NONE => Edge::NONE,
            _ => item(gap).number,
        };
        (ends, Way { edge: found.edge, tails: [number(0), number(1)] })
    }

    /// Adds the items of a node; returns them, the best first.
    fn items(
        &self,
        ways: &[Found],
        nodes: &[Vec<Built>],
        arena: &mut Vec<u8>,
        unfolded: &mut Unfolded,
    ) -> Vec<Built> {
        let size = self.grams.limits().len();
        let mut counts = vec![0; size];
        let mut items: Vec<Item> = Vec::new();
        let mut seen: FxHashMap<u64, usize> = FxHashMap::default();
        for found in ways {
            let (ends, way) = self.string(found, nodes, arena, &mut counts);
            let mut hasher = FxHasher::default();
            (ends, &counts).hash(&mut hasher);
            let twin = *seen.entry(hasher.finish()).or_insert(items.len());
            match items.get_mut(twin) {
                Some(twin)
                    if twin.ends == ends && arena[twin.counts..twin.counts + size] == counts =>
                {
                    twin.score = twin.score.max(found.score);
                    twin.ways.push(way);
                }
                _ => {
                    let score = found.score;
                    items.push(Item { score, ends, counts: arena.len(), ways: vec![way] });
                    arena.extend_from_slice(&counts);
                }
            }
        }
        items.sort_by(|a, b| order_of(b.score, a.score));
        let close = |item: Item| {
            let Item { score, ends, counts, ways } = item;
            Built { score, ends, counts, number: unfolded.push(ways) }
        };
        items.into_iter().map(close).collect()
    }

    /// Makes the ways to build the goal those of the whole, with their statistics.
    fn close(&self, ways: Vec<Found>, nodes: &[Vec<Built>], arena: &[u8], unfolded: &mut Unfolded) {
        let mut counts = vec![0; self.grams.limits().len()];
        let mut row = vec![0.0; self.width];
        let mut known: FxHashMap<Vec<u64>, u32> = FxHashMap::default();
        let mut whole = Vec::with_capacity(ways.len());
        for found in ways {
            let (ends, way) = self.string(&found, nodes, arena, &mut counts);
            let matches = self.matches(&counts);
            self.grams.row(ends.length as usize, &matches[..self.grams.order()], &mut row);
            let next = known.len() as u32;
            let bits = row.iter().map(|value| value.to_bits()).collect();
            let place = *known.entry(bits).or_insert(next);
            if place == next {
                unfolded.rows.extend_from_slice(&row);
            }
            unfolded.of.push(place);
            whole.push(way);
        }
        unfolded.push(whole);
    }
}

impl Forest {
    /// Adds up features: those of each edge as often as it has a number.
    pub fn weigh(&self, edges: &[f64], mut add: impl FnMut(u32, f64)) {
        let mut rules = vec![0.0; self.rules()];
        for (edge, flow) in self.edges.iter().zip(edges) {
            rules[edge.rule as usize] += flow;
        }
        let rows = rules.iter().enumerate().map(|(rule, &flow)| (self.rule(rule as u32), flow));
        let own = edges.iter().enumerate().map(|(edge, &flow)| (self.own(edge), flow));
        for ((ids, values), flow) in rows.chain(own) {
            // Most of a forest has no mass to speak of.
            if flow.abs() < 1e-18 {
                continue;
            }
            for (&id, &value) in ids.iter().zip(values) {
                add(id, flow * f64::from(value));
            }
        }
    }
}
