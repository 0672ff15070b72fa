//! Derivations in order of score, made one at a time (Huang & Chiang 2005, algorithm 3).

use super::heaps::{Heap, Heaps};
use super::print::{Print, Prints, Seen};
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
    heaps: Heaps,
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

/// What lists of some hundred make, more or less.
const ROOM: usize = 1 << 12;
const UNKNOWN: u32 = u32::MAX;
const NOTHING: u32 = u32::MAX - 1;

#[derive(Clone, Copy)]
struct Node {
    /// Choices, at the top the one that was taken last: what follows it takes its place when one
    /// more is asked for.
    heap: Heap,
    /// The derivation made last.
    end: u32,
}

/// What tells strings apart.
struct Strings {
    rules: Prints,
    /// What opened nodes have.
    seen: Seen,
}

impl Strings {
    /// The print of a rule over what was made.
    #[inline]
    fn print(&self, rule: u32, made: &[Made], tails: [u32; 2]) -> Print {
        self.rules.of(rule, |gap| made[tails[usize::from(gap)] as usize].print)
    }
}

impl<'a> Best<'a> {
    fn new(skeleton: &'a Skeleton, scores: &'a [f64], unique: bool) -> Self {
        let viterbi = Viterbi::new(skeleton, scores);
        let nodes = skeleton.nodes();
        let strings =
            unique.then(|| Strings { rules: Prints::new(skeleton), seen: Seen::default() });
        // Growing costs more than the room.
        let mut made: Vec<Made> = Vec::with_capacity(nodes + ROOM);
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
            heaps: Heaps::with_capacity(ROOM),
            stack: Vec::new(),
            next: goal.map_or(Next::Nothing, |goal| Next::Made(goal as u32)),
        }
    }

    /// An edge over what was made; a tail that is not there adds nothing.
    #[inline]
    fn scored(&self, edge: u32, tails: [u32; 2]) -> Choice {
        let below = |tail: u32| self.made.get(tail as usize).map_or(-0.0, |made| made.score);
        let mut sum = below(tails[0]);
        if tails[1] != Edge::NONE {
            sum += below(tails[1]);
        }
        let score = self.scores[edge as usize] + sum;
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
        let mut heaps = std::mem::take(&mut self.heaps);
        let heap = heaps.open(self.skeleton.incoming(node as usize).filter_map(|edge| {
            let built = |tail: usize| self.made[tail].is_built();
            let all = self.skeleton.edges[edge].tails().all(built);
            all.then(|| self.scored(edge as u32, self.skeleton.edges[edge].tails))
        }));
        self.heaps = heaps;
        if let Some(strings) = &mut self.strings {
            strings.seen.note(self.made[node as usize].print.at(node));
        }
        let place = self.nodes.len();
        self.places[node as usize] = place as u32;
        self.nodes.push(Node { heap, end: node });
        place
    }

    /// Makes one more derivation of a node, if there is one. What must be made below for it is
    /// kept on a stack of our own: derivations can be as deep as sentences are long.
    fn make(&mut self, node: u32) {
        self.stack.push(node);
        'nodes: while let Some(&node) = self.stack.last() {
            let place = self.open(node);
            let Node { mut heap, end } = self.nodes[place];
            while let Some(last) = self.heaps.top(heap) {
                // The second tail moves on from any, the first only while the second is at its
                // best: so every pair is reached once.
                let edge = &self.skeleton.edges[last.edge as usize];
                let (mut one, mut two) = (NOTHING, NOTHING);
                if edge.tails[0] != Edge::NONE && last.tails[1] == edge.tails[1] {
                    one = self.made[last.tails[0] as usize].next;
                    if one == UNKNOWN {
                        self.stack.push(edge.tails[0]);
                        continue 'nodes;
                    }
                }
                if edge.tails[1] != Edge::NONE {
                    two = self.made[last.tails[1] as usize].next;
                    if two == UNKNOWN {
                        self.stack.push(edge.tails[1]);
                        continue 'nodes;
                    }
                }
                if one != NOTHING {
                    let next = self.scored(last.edge, [one, last.tails[1]]);
                    self.heaps.replace(heap, next);
                    if two != NOTHING {
                        let next = self.scored(last.edge, [last.tails[0], two]);
                        self.heaps.push(&mut heap, next);
                    }
                } else if two != NOTHING {
                    let next = self.scored(last.edge, [last.tails[0], two]);
                    self.heaps.replace(heap, next);
                } else {
                    self.heaps.pop(&mut heap);
                }
                self.nodes[place].heap = heap;
                let Some(Choice { score, edge, tails }) = self.heaps.top(heap) else { break };
                let mut print = Print::EMPTY;
                if let Some(strings) = &mut self.strings {
                    let rule = self.skeleton.edges[edge as usize].rule;
                    print = strings.print(rule, &self.made, tails);
                    if !strings.seen.note(print.at(node)) {
                        continue;
                    }
                }
                let number = self.made.len() as u32;
                self.nodes[place].end = number;
                self.made[end as usize].next = number;
                self.made.push(Made { score, print, edge, tails, next: UNKNOWN });
                self.stack.pop();
                continue 'nodes;
            }
            self.made[end as usize].next = NOTHING;
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

impl Iterator for Best<'_> {
    type Item = Derivation;

    fn next(&mut self) -> Option<Derivation> {
        self.advance().map(|number| self.derivation(number))
    }
}
