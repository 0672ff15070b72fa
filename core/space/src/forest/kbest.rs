//! Derivations in order of score, made one at a time (Huang & Chiang 2005, algorithm 3).

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use hashbrown::HashTable;

use super::print::{Print, Prints};
use super::{Derivation, Edge, Skeleton, Viterbi};

impl Skeleton {
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
    skeleton: &'a Skeleton,
    scores: Vec<f64>,
    /// What was made for any node: first the best of every node, numbered as the nodes are.
    made: Vec<Made>,
    /// For strings that must differ.
    strings: Option<Strings>,
    /// Where the opened nodes are in `nodes`. One that nobody asked for a second derivation stays
    /// closed.
    places: Vec<u32>,
    nodes: Vec<Node>,
    /// The nodes that must make one more, each for the one before it.
    stack: Vec<u32>,
    /// The derivation of the goal that comes next.
    next: Next,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Next {
    Made(u32),
    /// Behind this one, and not made yet.
    Behind(u32),
    Nothing,
}

/// An edge over derivations of its tails.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    pub score: f64,
    pub edge: u32,
    /// Numbers of what was made, lower than the number of this; [`Edge::NONE`] without a tail.
    pub tails: [u32; 2],
}

/// A derivation of a node.
#[derive(Debug, Clone, Copy)]
struct Made {
    choice: Choice,
    node: u32,
    /// The next best of the same node, [`UNKNOWN`] or [`NOTHING`].
    next: u32,
}

const UNKNOWN: u32 = u32::MAX;
const NOTHING: u32 = u32::MAX - 1;

impl Ord for Choice {
    fn cmp(&self, other: &Self) -> Ordering {
        // Zero added: -0 and 0 are equal. Of one tail, what was made later is numbered higher.
        (self.score + 0.0)
            .total_cmp(&(other.score + 0.0))
            .then(other.edge.cmp(&self.edge))
            .then(other.tails.cmp(&self.tails))
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

struct Node {
    heap: BinaryHeap<Choice>,
    /// The last choice, and whether what follows it in each of its tails is still to be queued.
    last: Choice,
    pending: [bool; 2],
    /// The derivation made last.
    end: u32,
}

/// The strings of all that was made.
struct Strings {
    words: Prints,
    prints: Vec<Print>,
    /// What was made for opened nodes, by node and string.
    seen: HashTable<u32>,
}

impl Strings {
    fn print(&self, skeleton: &Skeleton, choice: &Choice) -> Print {
        let print = |gap: usize| self.prints[choice.tails[gap] as usize];
        self.words.edge(skeleton, choice.edge as usize, print)
    }

    /// Notes what is made next, or the best, of a node; false if the node has such a string.
    fn note(&mut self, made: &[Made], node: u32, print: Print, number: u32) -> bool {
        let prints = &self.prints;
        let same = |&at: &u32| prints[at as usize] == print && made[at as usize].node == node;
        let hash = |at: &u32| prints[*at as usize].mixed(made[*at as usize].node);
        let key = print.mixed(node);
        if self.seen.find(key, same).is_some() {
            return false;
        }
        self.seen.insert_unique(key, number, hash);
        true
    }
}

impl<'a> Best<'a> {
    fn new(skeleton: &'a Skeleton, scores: &[f64], unique: bool) -> Self {
        let viterbi = Viterbi::new(skeleton, scores);
        let best = |node: usize| {
            let edge = viterbi.edge(node);
            Made {
                choice: Choice {
                    score: viterbi.score(node).unwrap_or(f64::NEG_INFINITY),
                    edge: edge.map_or(Edge::NONE, |edge| edge as u32),
                    // The best of a tail has the tail's number.
                    tails: edge.map_or([Edge::NONE; 2], |edge| skeleton.edges[edge].tails),
                },
                node: node as u32,
                next: if edge.is_some() { UNKNOWN } else { NOTHING },
            }
        };
        let made: Vec<Made> = (0..skeleton.nodes()).map(best).collect();
        let strings = unique.then(|| {
            let mut strings = Strings {
                words: Prints::new(skeleton),
                prints: Vec::with_capacity(made.len()),
                // Growing costs more than the room.
                seen: HashTable::with_capacity(made.len() + skeleton.edges.len()),
            };
            for Made { choice, .. } in &made {
                let print = match choice.edge {
                    Edge::NONE => Print::EMPTY,
                    _ => strings.print(skeleton, choice),
                };
                strings.prints.push(print);
            }
            strings
        });
        let goal = skeleton.goal().filter(|&goal| made[goal].choice.edge != Edge::NONE);
        Best {
            skeleton,
            scores: scores.to_vec(),
            strings,
            places: vec![UNKNOWN; made.len()],
            made,
            nodes: Vec::new(),
            stack: Vec::new(),
            next: goal.map_or(Next::Nothing, |goal| Next::Made(goal as u32)),
        }
    }

    fn scored(&self, edge: u32, tails: [u32; 2]) -> Choice {
        let below = tails.iter().filter(|&&tail| tail != Edge::NONE);
        let below: f64 = below.map(|&tail| self.made[tail as usize].choice.score).sum();
        Choice { score: self.scores[edge as usize] + below, edge, tails }
    }

    /// The place of a node, opened if need be: every edge with the best of its tails.
    fn open(&mut self, node: u32) -> usize {
        if self.places[node as usize] == UNKNOWN {
            let best = self.made[node as usize].choice;
            let built = |tail: usize| self.made[tail].choice.edge != Edge::NONE;
            let choice = |edge: usize| {
                let tails = self.skeleton.edges[edge].tails;
                let wanted =
                    edge as u32 != best.edge && self.skeleton.edges[edge].tails().all(built);
                wanted.then(|| self.scored(edge as u32, tails))
            };
            let choices: Vec<Choice> =
                self.skeleton.incoming(node as usize).filter_map(choice).collect();
            self.places[node as usize] = self.nodes.len() as u32;
            self.nodes.push(Node {
                heap: BinaryHeap::from(choices),
                last: best,
                pending: best.tails.map(|tail| tail != Edge::NONE),
                end: node,
            });
            if let Some(strings) = &mut self.strings {
                let print = strings.prints[node as usize];
                strings.note(&self.made, node, print, node);
            }
        }
        self.places[node as usize] as usize
    }

    /// Makes one more derivation of a node, if there is one. What must be made below for it is
    /// kept on a stack of our own: derivations can be as deep as sentences are long.
    fn make(&mut self, node: u32) {
        self.stack.push(node);
        while let Some(&node) = self.stack.last() {
            let place = self.open(node);
            let Node { last, pending, end, .. } = self.nodes[place];
            if let Some(gap) = pending.iter().position(|&pending| pending) {
                let next = self.made[last.tails[gap] as usize].next;
                if next == UNKNOWN {
                    self.stack.push(self.skeleton.edges[last.edge as usize].tails[gap]);
                    continue;
                }
                if next != NOTHING {
                    let mut tails = last.tails;
                    tails[gap] = next;
                    let choice = self.scored(last.edge, tails);
                    self.nodes[place].heap.push(choice);
                }
                self.nodes[place].pending[gap] = false;
                continue;
            }
            let Some(choice) = self.nodes[place].heap.pop() else {
                self.made[end as usize].next = NOTHING;
                self.stack.pop();
                continue;
            };
            // The second tail moves on from any, the first only while the second is at its best:
            // so every pair is reached once.
            let tails = self.skeleton.edges[choice.edge as usize].tails;
            let first = tails[0] != Edge::NONE && choice.tails[1] == tails[1];
            let opened = &mut self.nodes[place];
            opened.last = choice;
            opened.pending = [first, tails[1] != Edge::NONE];
            if let Some(strings) = &mut self.strings {
                let print = strings.print(self.skeleton, &choice);
                if !strings.note(&self.made, node, print, self.made.len() as u32) {
                    continue;
                }
                strings.prints.push(print);
            }
            self.nodes[place].end = self.made.len() as u32;
            self.made[end as usize].next = self.made.len() as u32;
            self.made.push(Made { choice, node, next: UNKNOWN });
            self.stack.pop();
        }
    }

    /// Makes the next derivation of the goal; returns its number among all that was made.
    pub fn advance(&mut self) -> Option<u32> {
        if let Next::Behind(last) = self.next {
            if self.made[last as usize].next == UNKNOWN
                && let Some(goal) = self.skeleton.goal()
            {
                self.make(goal as u32);
            }
            self.next = match self.made[last as usize].next {
                NOTHING | UNKNOWN => Next::Nothing,
                made => Next::Made(made),
            };
        }
        let Next::Made(number) = self.next else { return None };
        self.next = Next::Behind(number);
        Some(number)
    }

    /// What was made with a number.
    pub fn choice(&self, number: u32) -> Choice {
        self.made[number as usize].choice
    }

    /// What was made with a number, down to its leaves.
    pub fn derivation(&self, number: u32) -> Derivation {
        let mut edges = Vec::new();
        let mut walk = vec![number];
        while let Some(at) = walk.pop() {
            let choice = self.choice(at);
            edges.push(choice.edge);
            walk.extend(choice.tails.into_iter().rev().filter(|&tail| tail != Edge::NONE));
        }
        Derivation { score: self.choice(number).score, edges }
    }
}

impl Iterator for Best<'_> {
    type Item = Derivation;

    fn next(&mut self) -> Option<Derivation> {
        self.advance().map(|number| self.derivation(number))
    }
}
