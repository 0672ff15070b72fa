//! Derivations in order of score, made one at a time (Huang & Chiang 2005, algorithm 3).

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

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
    pub fn best<'a>(&'a self, scores: &'a [f64], unique: bool) -> Best<'a> {
        Best::new(self, scores, unique)
    }
}

/// The derivations of a forest, best first.
pub struct Best<'a> {
    skeleton: &'a Skeleton,
    scores: &'a [f64],
    /// What was made for any node: first the best of every node, numbered as the nodes are.
    made: Vec<Made>,
    /// If strings must differ.
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
    score: f64,
    /// Of its string, if strings must differ.
    print: Print,
    edge: u32,
    tails: [u32; 2],
    /// The next best of the same node, [`UNKNOWN`] or [`NOTHING`].
    next: u32,
}

impl Made {
    fn is_built(&self) -> bool {
        self.edge != Edge::NONE
    }
}

const UNKNOWN: u32 = u32::MAX;
const NOTHING: u32 = u32::MAX - 1;

impl Ord for Choice {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        if self.score > other.score {
            return Ordering::Greater;
        }
        if self.score < other.score {
            return Ordering::Less;
        }
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
    /// Choices, at the top the one that was taken last: what follows it takes its place when one
    /// more is asked for.
    heap: BinaryHeap<Choice>,
    /// The derivation made last.
    end: u32,
}

/// What tells strings apart.
struct Strings {
    rules: Prints,
    /// What opened nodes have, by [`Print::at`].
    seen: HashTable<u64>,
}

impl Strings {
    /// The print of a rule over what was made.
    #[inline]
    fn print(&self, rule: u32, made: &[Made], tails: [u32; 2]) -> Print {
        self.rules.of(rule, |gap| made[tails[gap] as usize].print)
    }

    /// Notes a string of a node; false if the node has it.
    #[inline]
    fn note(&mut self, node: u32, print: Print) -> bool {
        let key = print.at(node);
        match self.seen.entry(key, |&seen| seen == key, |&seen| seen) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(key);
                true
            }
        }
    }
}

impl<'a> Best<'a> {
    fn new(skeleton: &'a Skeleton, scores: &'a [f64], unique: bool) -> Self {
        let viterbi = Viterbi::new(skeleton, scores);
        let nodes = skeleton.nodes();
        // Growing costs more than the room.
        let room = 4 * nodes;
        let strings = unique.then(|| Strings {
            rules: Prints::new(skeleton),
            seen: HashTable::with_capacity(room),
        });
        let mut made: Vec<Made> = Vec::with_capacity(room);
        for node in 0..nodes {
            made.push(match viterbi.edge(node) {
                None => Made {
                    score: f64::NEG_INFINITY,
                    print: Print::EMPTY,
                    edge: Edge::NONE,
                    tails: [Edge::NONE; 2],
                    next: NOTHING,
                },
                Some(edge) => {
                    // The best of a tail has the tail's number.
                    let Edge { tails, rule, .. } = skeleton.edges[edge];
                    let strings = strings.as_ref();
                    Made {
                        score: viterbi.score(node).unwrap_or(f64::NEG_INFINITY),
                        print: strings.map_or(Print::EMPTY, |one| one.print(rule, &made, tails)),
                        edge: edge as u32,
                        tails,
                        next: UNKNOWN,
                    }
                }
            });
        }
        let goal = skeleton.goal().filter(|&goal| made[goal].is_built());
        Best {
            skeleton,
            scores,
            strings,
            places: vec![UNKNOWN; nodes],
            made,
            nodes: Vec::new(),
            stack: Vec::new(),
            next: goal.map_or(Next::Nothing, |goal| Next::Made(goal as u32)),
        }
    }

    /// An edge over what was made; a tail that is not there adds nothing.
    #[inline]
    fn scored(&self, edge: u32, tails: [u32; 2]) -> Choice {
        let below = |tail: u32| self.made.get(tail as usize).map_or(-0.0, |made| made.score);
        let score = self.scores[edge as usize] + (below(tails[0]) + below(tails[1]));
        Choice { score, edge, tails }
    }

    /// The place of a node, opened if need be: every edge with the best of its tails.
    fn open(&mut self, node: u32) -> usize {
        match self.places[node as usize] {
            UNKNOWN => self.opened(node),
            known => known as usize,
        }
    }

    #[cold]
    fn opened(&mut self, node: u32) -> usize {
        let edges = self.skeleton.incoming(node as usize);
        let mut choices = Vec::with_capacity(edges.len());
        for edge in edges {
            let built = |tail: usize| self.made[tail].is_built();
            if self.skeleton.edges[edge].tails().all(built) {
                choices.push(self.scored(edge as u32, self.skeleton.edges[edge].tails));
            }
        }
        if let Some(strings) = &mut self.strings {
            strings.note(node, self.made[node as usize].print);
        }
        let place = self.nodes.len();
        self.places[node as usize] = place as u32;
        self.nodes.push(Node { heap: BinaryHeap::from(choices), end: node });
        place
    }

    /// Makes one more derivation of a node, if there is one. What must be made below for it is
    /// kept on a stack of our own: derivations can be as deep as sentences are long.
    fn make(&mut self, node: u32) {
        self.stack.push(node);
        'nodes: while let Some(&node) = self.stack.last() {
            let place = self.open(node);
            let end = self.nodes[place].end as usize;
            while let Some(&last) = self.nodes[place].heap.peek() {
                // The second tail moves on from any, the first only while the second is at its
                // best: so every pair is reached once.
                let tails = self.skeleton.edges[last.edge as usize].tails;
                let first = tails[0] != Edge::NONE && last.tails[1] == tails[1];
                let moves = [first, tails[1] != Edge::NONE];
                let mut next = [NOTHING; 2];
                for gap in 0..2 {
                    if moves[gap] {
                        next[gap] = self.made[last.tails[gap] as usize].next;
                        if next[gap] == UNKNOWN {
                            self.stack.push(tails[gap]);
                            continue 'nodes;
                        }
                    }
                }
                let one = self.scored(last.edge, [next[0], last.tails[1]]);
                let two = self.scored(last.edge, [last.tails[0], next[1]]);
                let heap = &mut self.nodes[place].heap;
                let top = heap.peek_mut().expect("it was looked at");
                match next {
                    [NOTHING, NOTHING] => drop(PeekMut::pop(top)),
                    [_, NOTHING] => put(top, one),
                    [NOTHING, _] => put(top, two),
                    _ => {
                        put(top, one);
                        heap.push(two);
                    }
                }
                let Some(&Choice { score, edge, tails }) = heap.peek() else { break };
                let mut print = Print::EMPTY;
                if let Some(strings) = &mut self.strings {
                    let rule = self.skeleton.edges[edge as usize].rule;
                    print = strings.print(rule, &self.made, tails);
                    if !strings.note(node, print) {
                        continue;
                    }
                }
                let number = self.made.len() as u32;
                self.nodes[place].end = number;
                self.made[end].next = number;
                self.made.push(Made { score, print, edge, tails, next: UNKNOWN });
                self.stack.pop();
                continue 'nodes;
            }
            self.made[end].next = NOTHING;
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
        let Made { score, edge, tails, .. } = self.made[number as usize];
        Choice { score, edge, tails }
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

/// Puts a choice in the place of the best.
#[inline]
fn put(mut top: PeekMut<'_, Choice>, choice: Choice) {
    *top = choice;
}

impl Iterator for Best<'_> {
    type Item = Derivation;

    fn next(&mut self) -> Option<Derivation> {
        self.advance().map(|number| self.derivation(number))
    }
}
