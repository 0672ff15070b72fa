//! Derivations in order of score, made when they are asked for.
//!
//! As in the lazy search of Huang & Chiang (2005, algorithm 3) every node keeps a list of its own,
//! the best first, which grows only as far as the goal's list needs it. Lists grow in rounds
//! instead of one by one: a round makes all that can be part of a derivation that the best one
//! leads by no more than so much. The best that can be made around a node is known, so a node
//! knows by itself what to make; it is visited once in a round, after its tails, and there are no
//! heaps and no recursion. How far a round goes is guessed from what is asked for and from how
//! lists grew before ([`Rounds`]).

use std::borrow::Cow;
use std::iter::successors;

use rustc_hash::FxHashMap;

use super::print::{Print, Prints, Seen, Target};
use super::rounds::{Round, Rounds};
use super::{Derivation, Edge, Skeleton, Viterbi};

impl Skeleton {
    /// All derivations, best first, made as they are asked for; among equals those with earlier
    /// edges come first, unless there are thousands of equals. With `unique` only the best
    /// derivation of each string.
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
    scores: Cow<'a, [f64]>,
    /// What was made for any node: first the best of every node, numbered as the nodes are.
    made: Vec<Made>,
    /// The derivation made last of each node that was visited.
    ends: Vec<u32>,
    /// If strings must differ.
    strings: Option<Strings>,
    leads: Leads,
    /// The ways of all edges: first one of each edge, numbered as the edges are.
    ways: Vec<Way>,
    /// Nodes of which edges need more than they have made, although it is within reach.
    short: Vec<bool>,
    rounds: Rounds,
    /// What the list of the node at hand grows by, and its order.
    found: Vec<Made>,
    order: Vec<(u64, u32)>,
    /// The ways that were followed at that node, and where they were before.
    followed: Vec<(u32, u32)>,
    /// How many derivations of the goal were made.
    listed: usize,
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
    /// The next best of the same node, if it was made.
    next: u32,
}

/// What lists of some hundred make, more or less.
const ROOM: usize = 1 << 12;
const NONE: u32 = u32::MAX;

/// What tells strings apart, node by node.
struct Strings {
    rules: Prints,
    /// The strings of the node at hand, unless they are many.
    few: Seen,
    /// Those of nodes that have more than [`MANY`], which are not gathered again at each visit.
    many: FxHashMap<u32, Seen>,
    /// How many strings were found so far, and before the node at hand was visited.
    count: u32,
    before: u32,
}

/// Gathering fewer strings costs less than finding them again in a large table.
const MANY: usize = 1 << 10;

impl Strings {
    fn new(skeleton: &Skeleton) -> Strings {
        Strings {
            rules: Prints::new(skeleton),
            few: Seen::default(),
            many: FxHashMap::default(),
            count: 1,
            before: 1,
        }
    }

    /// Begins to visit a node that has a list.
    fn begin(&mut self, node: u32, list: impl Iterator<Item = Print>) {
        self.before = self.count;
        if !self.many.contains_key(&node) {
            self.few.clear();
            for print in list {
                self.few.note(print.key(), 0);
            }
        }
    }

    /// A target side, and the notes on the node at hand.
    #[inline]
    fn at(&mut self, node: u32, rule: u32) -> (Target<'_>, Notes<'_>) {
        let seen = match self.many.is_empty() {
            true => &mut self.few,
            false => self.many.get_mut(&node).unwrap_or(&mut self.few),
        };
        (self.rules.of(rule), Notes { seen, count: &mut self.count, before: self.before })
    }

    /// Ends a visit; what was found is kept or not.
    fn end(&mut self, node: u32, is_kept: bool) {
        if !is_kept {
            self.many.remove(&node);
        } else if self.few.len() > MANY && !self.many.contains_key(&node) {
            self.many.insert(node, std::mem::take(&mut self.few));
        }
    }
}

/// The strings of a node; those of the visit at hand are numbered from `before` on.
struct Notes<'s> {
    seen: &'s mut Seen,
    count: &'s mut u32,
    before: u32,
}

impl Notes<'_> {
    /// Notes what was found; of the same string the best is kept.
    #[inline]
    fn add(&mut self, found: Made, all: &mut Vec<Made>) {
        match self.seen.note(found.print.key(), *self.count) {
            None => {
                *self.count += 1;
                all.push(found);
            }
            Some(known) if known >= self.before => {
                let twin = &mut all[(known - self.before) as usize];
                let place = |made: &Made| (made.edge, made.tails);
                let is_equal = found.score == twin.score;
                if found.score > twin.score || is_equal && place(&found) < place(twin) {
                    *twin = found;
                }
            }
            Some(_) => {}
        }
    }
}

fn is_made(number: &u32) -> bool {
    *number != NONE
}

/// A number that is lower for a higher score; -0 and 0 are equal.
fn descending(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    let ascending = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    !ascending
}

/// Scores whose sums are numbers, however many there are: a rule or a weight beyond all bounds is as
/// good or as bad as can be.
fn bounded(scores: &[f64]) -> Cow<'_, [f64]> {
    const MOST: f64 = 1e200;
    let bound = |&score: &f64| if score.is_nan() { -MOST } else { score.clamp(-MOST, MOST) };
    match scores.iter().all(|score| score.abs() <= MOST) {
        true => Cow::Borrowed(scores),
        false => Cow::Owned(scores.iter().map(bound).collect()),
    }
}

/// By how much the best derivation leads what was not made, at least.
struct Leads {
    /// The score of the best derivation, less what can be made around each node at best: a part of
    /// a derivation is led by this less its own score.
    parts: Vec<f64>,
    /// The lead over whatever is not made of each node, and with each edge.
    nodes: Vec<f64>,
    edges: Vec<f64>,
}

impl Leads {
    fn new(skeleton: &Skeleton, scores: &[f64], made: &[Made], slack: f64) -> Leads {
        let best = made.last().map_or(f64::NEG_INFINITY, |goal| goal.score);
        let mut outside = vec![f64::NEG_INFINITY; made.len()];
        if let Some(goal) = outside.last_mut() {
            *goal = 0.0;
        }
        let mut edges = vec![f64::INFINITY; scores.len()];
        for node in (0..made.len()).rev().filter(|&node| made[node].edge != Edge::NONE) {
            let around = outside[node];
            if around == f64::NEG_INFINITY {
                continue;
            }
            for edge in skeleton.incoming(node) {
                let below = |tail: u32| made.get(tail as usize).map_or(0.0, |made| made.score);
                let [first, second] = skeleton.edges[edge].tails;
                let (one, two) = (below(first), below(second));
                // What a node needs must be in the lists of its tails, however sums are rounded.
                let own = scores[edge] + around + slack;
                edges[edge] = best - (own + one + two);
                if let Some(tail) = outside.get_mut(first as usize) {
                    *tail = tail.max(own + two);
                }
                if let Some(tail) = outside.get_mut(second as usize) {
                    *tail = tail.max(own + one);
                }
            }
        }
        let parts: Vec<f64> = outside.iter().map(|around| best - around).collect();
        let nodes = parts.iter().zip(made).map(|(part, made)| part - made.score).collect();
        Leads { parts, nodes, edges }
    }
}

/// How far an edge was followed. An edge over two tails has a way for each derivation of the
/// second: the first is that of longer lists where translations are put together from left to
/// right.
#[derive(Clone, Copy)]
struct Way {
    /// The derivation of the second tail.
    row: u32,
    /// That of the first that was taken last; without tails, anything but [`NONE`].
    last: u32,
    /// The way with the next row.
    next: u32,
    /// By how much the best derivation leads what comes next, at least.
    lead: f64,
}

impl Way {
    fn new(row: u32) -> Way {
        Way { row, last: NONE, next: NONE, lead: f64::NEG_INFINITY }
    }
}

impl<'a> Best<'a> {
    fn new(skeleton: &'a Skeleton, scores: &'a [f64], unique: bool) -> Self {
        let scores = bounded(scores);
        let viterbi = Viterbi::new(skeleton, &scores);
        let nodes = skeleton.nodes();
        let strings = unique.then(|| Strings::new(skeleton));
        // Growing costs more than the room.
        let mut made: Vec<Made> = Vec::with_capacity(nodes + ROOM);
        let mut largest = 1.0_f64;
        for node in 0..nodes {
            let (mut score, mut print, mut tails) =
                (f64::NEG_INFINITY, Print::EMPTY, [Edge::NONE; 2]);
            let edge = viterbi.edge(node);
            if let Some(edge) = edge {
                // The best of a tail has the tail's number.
                tails = skeleton.edges[edge].tails;
                score = viterbi.score(node).unwrap_or(score);
                largest = largest.max(score.abs());
                if let Some(strings) = &strings {
                    let target = strings.rules.of(skeleton.edges[edge].rule);
                    print = target.print(|gap| made[tails[gap] as usize].print);
                }
            }
            let edge = edge.map_or(Edge::NONE, |edge| edge as u32);
            made.push(Made { score, print, edge, tails, next: NONE });
        }
        let slack = 1e-13 * largest;
        let leads = Leads::new(skeleton, &scores, &made, slack);
        let mut ways = Vec::with_capacity(scores.len() + ROOM);
        ways.extend(skeleton.edges.iter().map(|edge| Way::new(edge.tails[1])));
        let goal = skeleton.goal().filter(|&goal| made[goal].edge != Edge::NONE);
        Best {
            skeleton,
            scores,
            strings,
            rounds: Rounds::new(&leads.edges, slack),
            leads,
            ways,
            short: vec![false; nodes],
            ends: vec![NONE; nodes],
            made,
            found: Vec::new(),
            order: Vec::new(),
            followed: Vec::new(),
            listed: 0,
            next: goal.map_or(Next::Nothing, |goal| Next::Made(goal as u32)),
        }
    }

    /// Tells how many will be asked for: lists grow to about as many at once.
    pub fn wanting(mut self, wanted: usize) -> Self {
        self.rounds.want(wanted);
        self
    }

    /// Makes more derivations of any node; false if there are none.
    fn grow(&mut self) -> bool {
        let Some(&pending) = self.leads.nodes.last() else { return false };
        let Some(mut round) = self.rounds.begin(pending, self.listed) else { return false };
        let listed = self.listed;
        let goal = self.skeleton.nodes() - 1;
        for node in 0..=goal {
            let is_due = !round.is_limited() || self.short[node] || node == goal;
            if self.leads.nodes[node] > round.reach || !is_due {
                continue;
            }
            let lead = self.find(node, &mut round);
            if round.is_crowded() {
                self.forget(node);
                break;
            }
            self.leads.nodes[node] = lead;
            self.short[node] = false;
            self.make(node);
        }
        self.rounds.end(&round, self.leads.nodes[goal], self.listed > listed);
        true
    }

    /// Finds what a node can make of its tails in a round; returns the lead over the rest.
    fn find(&mut self, node: usize, round: &mut Round) -> f64 {
        self.found.clear();
        self.followed.clear();
        if let Some(strings) = &mut self.strings {
            // The best is found again at the first visit.
            let is_first = self.ends[node] == NONE;
            let listed = (!is_first).then_some(node as u32);
            let listed =
                successors(listed, |&at| Some(self.made[at as usize].next).filter(is_made));
            strings.begin(node as u32, listed.map(|at| self.made[at as usize].print));
        }
        let mut least = f64::INFINITY;
        for edge in self.skeleton.incoming(node) {
            if self.leads.edges[edge] <= round.reach {
                self.leads.edges[edge] = self.follow(node, edge, round);
            }
            least = least.min(self.leads.edges[edge]);
        }
        least
    }

    /// Finds what an edge makes in a round; returns the lead over the rest.
    fn follow(&mut self, node: usize, edge: usize, round: &mut Round) -> f64 {
        let Best { skeleton, scores, made, strings, leads, ways, short, found, followed, .. } =
            self;
        let Edge { tails, rule, .. } = skeleton.edges[edge];
        let (own, part) = (scores[edge], leads.parts[node]);
        let is_pair = tails[1] != Edge::NONE;
        let tail = tails[0];
        // What a tail has not made is no better in a whole.
        let unmade = |tail: u32| leads.nodes.get(tail as usize).copied().unwrap_or(f64::INFINITY);
        // A tail that is not there adds nothing.
        let score_of = |number: u32| made.get(number as usize).map_or(-0.0, |made| made.score);
        let after = |last: u32| if tail == Edge::NONE { NONE } else { made[last as usize].next };
        let mut strings = strings.as_mut().map(|strings| strings.at(node as u32, rule));
        let mut least = f64::INFINITY;
        let mut at = edge as u32;
        let mut rows = round.most;
        loop {
            let Way { row, last, next, mut lead } = ways[at as usize];
            if lead <= round.reach {
                let beside = score_of(row);
                let mut below = if last == NONE { tail } else { after(last) };
                let mut more = last == NONE || below != NONE;
                let mut left = round.most;
                let mut taken = last;
                lead = unmade(tail);
                while more {
                    let score = own + (score_of(below) + beside);
                    if part - score > round.reach || left == 0 {
                        lead = part - score;
                        break;
                    }
                    left -= 1;
                    // An array that is written by halves and read as a whole would be waited for.
                    let in_gap = |gap| made[if gap == 0 { below } else { row } as usize].print;
                    let one = |print| {
                        let tails = [below, row];
                        Made { score, print, edge: edge as u32, tails, next: NONE }
                    };
                    match &mut strings {
                        None => found.push(one(Print::EMPTY)),
                        Some((target, notes)) => notes.add(one(target.print(in_gap)), found),
                    }
                    taken = if below == Edge::NONE { 0 } else { below };
                    below = after(below);
                    more = below != NONE;
                }
                if !more && lead <= round.reach {
                    short[tail as usize] = true;
                }
                followed.push((at, last));
                ways[at as usize].last = taken;
                ways[at as usize].lead = lead;
                if !round.affords(round.most - left) {
                    return least;
                }
            }
            least = least.min(lead);
            if !is_pair {
                return least;
            }
            if next != NONE {
                at = next;
                continue;
            }
            let row = made[row as usize].next;
            if row == NONE {
                short[tails[1] as usize] |= unmade(tails[1]) <= round.reach;
                return least.min(unmade(tails[1]));
            }
            let score = own + (score_of(tail) + score_of(row));
            if part - score > round.reach || rows == 0 {
                return least.min(part - score);
            }
            rows -= 1;
            let new = ways.len() as u32;
            ways.push(Way::new(row));
            ways[at as usize].next = new;
            at = new;
        }
    }

    /// Forgets what was found at a node.
    #[cold]
    fn forget(&mut self, node: usize) {
        self.leads.edges[self.skeleton.incoming(node)].fill(f64::NEG_INFINITY);
        for &(way, last) in &self.followed {
            self.ways[way as usize].last = last;
            self.ways[way as usize].lead = f64::NEG_INFINITY;
        }
        if let Some(strings) = &mut self.strings {
            strings.end(node as u32, false);
        }
    }

    /// Adds what was found to a node's list.
    fn make(&mut self, node: usize) {
        if let Some(strings) = &mut self.strings {
            strings.end(node as u32, true);
        }
        self.order.clear();
        let keys = self.found.iter().map(|found| descending(found.score)).zip(0..);
        self.order.extend(keys);
        self.order.sort_unstable_by_key(|&(key, _)| key);
        for equals in self.order.chunk_by_mut(|a, b| a.0 == b.0).filter(|run| run.len() > 1) {
            equals.sort_unstable_by_key(|&(_, at)| {
                let Made { edge, tails, .. } = self.found[at as usize];
                (edge, tails)
            });
        }
        let mut end = self.ends[node];
        for &(_, at) in &self.order {
            if end == NONE {
                // The best is there.
                end = node as u32;
                continue;
            }
            let mut found = self.found[at as usize];
            let number = self.made.len() as u32;
            let last = &mut self.made[end as usize];
            last.next = number;
            // Where nodes may not make everything at once, equals are equal to a rounding error.
            found.score = found.score.min(last.score);
            self.made.push(found);
            end = number;
        }
        self.ends[node] = end;
        if node + 1 == self.skeleton.nodes() {
            self.listed += self.order.len();
        }
    }

    /// Makes the next derivation of the goal; returns its number among all that was made.
    pub fn advance(&mut self) -> Option<u32> {
        if let Next::Behind(last) = self.next {
            while self.made[last as usize].next == NONE {
                if !self.grow() {
                    self.next = Next::Nothing;
                    return None;
                }
            }
            self.next = Next::Made(self.made[last as usize].next);
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
