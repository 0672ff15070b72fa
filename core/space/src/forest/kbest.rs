//! Derivations in order of score, made one at a time (Huang & Chiang 2005, algorithm 3).

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;

use super::print::{Print, Prints};
use super::{Derivation, Edge, Forest, Viterbi};

const UNOPENED: u32 = u32::MAX;

impl Forest {
    /// All derivations, best first, made as they are asked for; among equals those with earlier
    /// edges come first. With `unique` only the best derivation of each string.
    ///
    /// Strings are told apart at every node, not only at the goal, so that spurious ambiguity is
    /// cut where it arises. Nothing is lost by it: put the best derivation of the same string in
    /// the place of any part of a derivation, and the whole has the same string and no lower
    /// score, so the best derivation of a string can be built of parts that are each the best of
    /// theirs.
    pub fn best(&self, scores: &[f64], unique: bool) -> Best<'_> {
        Best::new(self, scores, unique)
    }
}

/// The derivations of a forest, best first.
pub struct Best<'a> {
    forest: &'a Forest,
    scores: Vec<f64>,
    viterbi: Viterbi,
    /// For strings that must differ: of the words, and of the best string of each node.
    prints: Option<(Prints, Vec<Print>)>,
    /// Where the opened nodes are in `nodes`. One that nobody asked for a second derivation stays
    /// closed; the first is Viterbi's.
    places: Vec<u32>,
    nodes: Vec<Node>,
    next: u32,
}

/// An edge and which derivation of each tail it takes.
#[derive(Debug, Clone, Copy)]
struct Choice {
    score: f64,
    edge: u32,
    ranks: [u32; 2],
}

impl Ord for Choice {
    fn cmp(&self, other: &Self) -> Ordering {
        // Zero added: -0 and 0 are equal.
        (self.score + 0.0)
            .total_cmp(&(other.score + 0.0))
            .then(other.edge.cmp(&self.edge))
            .then(other.ranks.cmp(&self.ranks))
    }
}

impl PartialOrd for Choice {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Choice {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Choice {}

#[derive(Default)]
struct Node {
    made: Vec<Choice>,
    /// Of what was made, for strings that must differ.
    prints: Vec<Print>,
    seen: FxHashSet<Print>,
    heap: BinaryHeap<Choice>,
    /// What the last choice leads to, with the tail that must first make one more.
    pending: [Option<(Choice, u32)>; 2],
    exhausted: bool,
}

impl Node {
    /// Notes a string; false if it is known. A few are looked through, many are looked up.
    fn note(&mut self, print: Print) -> bool {
        const FEW: usize = 12;
        let new = if self.prints.len() < FEW {
            !self.prints.contains(&print)
        } else {
            if self.seen.is_empty() {
                self.seen.extend(&self.prints);
            }
            self.seen.insert(print)
        };
        if new {
            self.prints.push(print);
        }
        new
    }
}

impl<'a> Best<'a> {
    fn new(forest: &'a Forest, scores: &[f64], unique: bool) -> Self {
        let viterbi = Viterbi::new(forest, scores);
        let prints = unique.then(|| {
            let words = Prints::new(forest);
            let mut of: Vec<Print> = Vec::with_capacity(forest.nodes());
            for node in 0..forest.nodes() {
                let print = viterbi.edge(node).map_or(Print::EMPTY, |edge| {
                    words.edge(forest, edge, |gap| of[forest.edges[edge].tails[gap] as usize])
                });
                of.push(print);
            }
            (words, of)
        });
        Best {
            forest,
            scores: scores.to_vec(),
            viterbi,
            prints,
            places: vec![UNOPENED; forest.nodes()],
            nodes: Vec::new(),
            next: 0,
        }
    }

    /// The place of a node, opened if need be: every edge with the best of its tails.
    fn open(&mut self, node: u32) -> usize {
        let node = node as usize;
        if self.places[node] == UNOPENED {
            let choice = |edge: usize| {
                let tails = self.forest.edges[edge].tails();
                let below = tails.map(|tail| self.viterbi.score(tail)).sum::<Option<f64>>()?;
                Some(Choice { score: self.scores[edge] + below, edge: edge as u32, ranks: [0; 2] })
            };
            let choices: Vec<Choice> = self.forest.incoming(node).filter_map(choice).collect();
            self.places[node] = self.nodes.len() as u32;
            self.nodes.push(Node { heap: BinaryHeap::from(choices), ..Node::default() });
        }
        self.places[node] as usize
    }

    /// The derivation of a node with a rank; None if it has not been made.
    fn choice(&self, node: u32, rank: u32) -> Option<Choice> {
        let node = node as usize;
        let opened = self.nodes.get(self.places[node] as usize);
        match opened.map(|opened| &opened.made).filter(|made| !made.is_empty()) {
            Some(made) => made.get(rank as usize).copied(),
            None if rank == 0 => Some(Choice {
                score: self.viterbi.score(node)?,
                edge: self.viterbi.edge(node)? as u32,
                ranks: [0; 2],
            }),
            None => None,
        }
    }

    fn score(&self, choice: &Choice) -> Option<f64> {
        let edge = &self.forest.edges[choice.edge as usize];
        let tails = edge.tails.iter().zip(choice.ranks).filter(|&(&tail, _)| tail != Edge::NONE);
        let below = tails.map(|(&tail, rank)| Some(self.choice(tail, rank)?.score));
        Some(self.scores[choice.edge as usize] + below.sum::<Option<f64>>()?)
    }

    fn print(&self, choice: &Choice) -> Option<Print> {
        let (words, best) = self.prints.as_ref()?;
        let edge = choice.edge as usize;
        Some(words.edge(self.forest, edge, |gap| {
            let tail = self.forest.edges[edge].tails[gap] as usize;
            match self.nodes.get(self.places[tail] as usize) {
                Some(opened) if !opened.made.is_empty() => {
                    opened.prints[choice.ranks[gap] as usize]
                }
                _ => best[tail],
            }
        }))
    }

    /// Makes one more derivation of a node, if there is one. What must be made below for it is
    /// kept on a stack of our own: derivations can be as deep as sentences are long.
    fn make(&mut self, node: u32) {
        let mut stack = vec![node];
        while let Some(&node) = stack.last() {
            let place = self.open(node);
            let waiting = self.nodes[place].pending.iter().position(Option::is_some);
            if let Some(slot) = waiting {
                let (choice, tail) = self.nodes[place].pending[slot].expect("just found");
                if let Some(score) = self.score(&choice) {
                    self.nodes[place].heap.push(Choice { score, ..choice });
                } else {
                    let below = self.open(tail);
                    if !self.nodes[below].exhausted {
                        stack.push(tail);
                        continue;
                    }
                }
                self.nodes[place].pending[slot] = None;
                continue;
            }
            let Some(choice) = self.nodes[place].heap.pop() else {
                self.nodes[place].exhausted = true;
                stack.pop();
                continue;
            };
            // The second rank grows from any, the first only while the second is zero: so every
            // pair of ranks is reached once.
            let tails = self.forest.edges[choice.edge as usize].tails;
            let after = |gap: usize| {
                let reached = tails[gap] != Edge::NONE && (gap == 1 || choice.ranks[1] == 0);
                reached.then(|| {
                    let mut ranks = choice.ranks;
                    ranks[gap] += 1;
                    (Choice { ranks, ..choice }, tails[gap])
                })
            };
            let print = self.print(&choice);
            let node = &mut self.nodes[place];
            node.pending = [after(0), after(1)];
            if print.is_some_and(|print| !node.note(print)) {
                continue;
            }
            node.made.push(choice);
            stack.pop();
        }
    }

    fn derivation(&self, goal: u32, rank: u32) -> Option<Derivation> {
        let score = self.choice(goal, rank)?.score;
        let mut edges = Vec::new();
        let mut open = vec![(goal, rank)];
        while let Some((node, rank)) = open.pop() {
            let choice = self.choice(node, rank)?;
            edges.push(choice.edge);
            let tails = self.forest.edges[choice.edge as usize].tails;
            let below = tails.into_iter().zip(choice.ranks).rev();
            open.extend(below.filter(|&(tail, _)| tail != Edge::NONE));
        }
        Some(Derivation { score, edges })
    }
}

impl Iterator for Best<'_> {
    type Item = Derivation;

    fn next(&mut self) -> Option<Derivation> {
        let goal = self.forest.goal()? as u32;
        if self.next > 0 {
            // The first is known without opening anything, but it opens the second.
            while self
                .nodes
                .get(self.places[goal as usize] as usize)
                .is_none_or(|node| node.made.len() <= self.next as usize && !node.exhausted)
            {
                self.make(goal);
            }
        }
        let derivation = self.derivation(goal, self.next)?;
        self.next += 1;
        Some(derivation)
    }
}
