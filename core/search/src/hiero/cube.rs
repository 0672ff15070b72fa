//! Cubes of one span: the best first, as many as are wanted.
//!
//! Every rule is a cube: its axes are the vertices for its gaps, best first. As in cdec, all rules
//! of a span begin at the corner, and each that is taken brings in its neighbours. What is taken
//! is the best by exact score; but rules wait unscored, by what they can hope for: that words
//! whose score is preliminary turn out to be more probable in their context. Many never get their
//! turn.

use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;
use tunesmith_lm::{Ends, Model as Lm};

use super::chart::{Chart, From, NONE, Vertex, Way};
use super::decoder::Decoder;
use super::group::{Entry, Group};
use crate::Sentence;
use crate::features::Total;
use crate::weights::KeyMap;

/// What a search is about.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    pub decoder: &'c Decoder,
    pub sentence: &'c Sentence<'c>,
}

impl Context<'_> {
    /// States of string features that each vertex has.
    fn width(&self) -> usize {
        self.decoder.model.extras.string.len()
    }
}

/// Where the vertices for gaps come from.
pub trait Tails {
    /// Whether all of them have been built.
    const BUILT: bool;

    /// A vertex of a cell by its rank, if the cell has so many.
    fn vertex(
        &mut self,
        context: Context<'_>,
        chart: &mut Chart,
        cell: u32,
        rank: u32,
    ) -> Option<u32>;
}

/// A rule over vertices with its exact score.
struct Candidate {
    bundle: u32,
    entry: u32,
    /// Ranks of the vertices in their cells.
    ranks: [u32; 2],
    tails: [u32; 2],
    /// What the place of the rule adds to its score.
    extra: f32,
    score: f32,
    /// What is not the score of the tails.
    own: f32,
    lm: f32,
    ends: Ends,
}

/// What is known of the cubes of a span.
#[derive(Default)]
pub struct Frontier {
    /// The bundles of the span, and the rank of the next rule of each.
    first: usize,
    next: Vec<u32>,
    begun: bool,
    /// Scores in an order-preserving code, and behind them what has the score: a candidate
    /// (even), or the next rule of a bundle (odd).
    heap: BinaryHeap<u64>,
    candidates: Vec<Candidate>,
    strings: Vec<u64>,
    /// Places inside cubes that were reached; those at their sides have one way to reach them.
    seen: FxHashSet<(u32, u32, u32, u32)>,
    index: KeyMap<u32>,
    /// The vertices in the order in which they were found.
    pub list: Vec<u32>,
    pub taken: usize,
    /// Exact scores computed so far.
    pub evaluated: u64,
}

impl Frontier {
    /// Turns to the bundles `first..end`; buffers are kept.
    pub fn turn(&mut self, first: usize, end: usize) {
        self.first = first;
        self.next.clear();
        self.next.resize(end - first, 0);
        self.begun = false;
        self.heap.clear();
        self.candidates.clear();
        self.strings.clear();
        self.seen.clear();
        self.index.clear();
        self.list.clear();
        self.taken = 0;
    }

    /// Takes the best candidates until `enough` says so or there are none.
    pub fn run(
        &mut self,
        context: Context<'_>,
        chart: &mut Chart,
        tails: &mut impl Tails,
        enough: impl Fn(&Frontier) -> bool,
    ) {
        let mut span = Span { frontier: self, context, chart, tails };
        if !span.frontier.begun {
            span.begin();
        }
        while !enough(span.frontier) && span.step() {}
    }
}

/// Numbers sort as the scores do.
fn code(score: f32) -> u64 {
    let bits = score.to_bits();
    let flipped = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    u64::from(flipped) << 32
}

struct Span<'f, T> {
    frontier: &'f mut Frontier,
    context: Context<'f>,
    chart: &'f mut Chart,
    tails: &'f mut T,
}

impl<T: Tails> Span<'_, T> {
    fn begin(&mut self) {
        self.frontier.begun = true;
        let mut heap = std::mem::take(&mut self.frontier.heap).into_vec();
        heap.extend((0..self.frontier.next.len() as u32).filter_map(|bundle| self.hope(bundle)));
        self.frontier.heap = heap.into();
    }

    /// Takes the best candidate, if there is one.
    fn step(&mut self) -> bool {
        while let Some(top) = self.frontier.heap.pop() {
            let number = (top as u32) >> 1;
            if top & 1 == 0 {
                self.take(number);
                return true;
            }
            let candidate = self.next(number);
            let exact = code(self.frontier.candidates[candidate as usize].score);
            if self.frontier.heap.peek().is_none_or(|&other| other >> 32 <= exact >> 32) {
                self.take(candidate);
                return true;
            }
            self.frontier.heap.push(exact | u64::from(candidate << 1));
        }
        false
    }

    fn vertex(&mut self, cell: u32, rank: u32) -> Option<u32> {
        self.tails.vertex(self.context, self.chart, cell, rank)
    }

    /// What the next rule of a bundle could reach.
    fn hope(&mut self, number: u32) -> Option<u64> {
        let bundle = self.chart.bundles[self.frontier.first + number as usize];
        let group = self.chart.group(&bundle);
        let gaps = group.gaps;
        let rank = self.frontier.next[number as usize];
        if rank as usize >= group.entries.len() {
            return None;
        }
        let (entry, extra) = self.chart.ranked(&bundle, rank);
        let mut hope = group.entries[entry as usize].hope + extra;
        let gain = self.context.decoder.weighted.gain;
        for &cell in &bundle.tails[..gaps] {
            let best = self.vertex(cell, 0)?;
            let best = &self.chart.vertices[best as usize];
            hope += best.score - gain * best.ends.preliminary();
        }
        Some(code(hope) | u64::from(number << 1 | 1))
    }

    /// Scores the next rule of a bundle at the corner of its cube, and lets the one behind it wait.
    fn next(&mut self, number: u32) -> u32 {
        let bundle = self.chart.bundles[self.frontier.first + number as usize];
        let (entry, extra) = self.chart.ranked(&bundle, self.frontier.next[number as usize]);
        self.frontier.next[number as usize] += 1;
        if let Some(hope) = self.hope(number) {
            self.frontier.heap.push(hope);
        }
        let mut tails = [NONE; 2];
        let gaps = self.chart.group(&bundle).gaps;
        for (tail, cell) in tails.iter_mut().zip(bundle.tails).take(gaps) {
            *tail = self.vertex(cell, 0).unwrap_or(NONE);
        }
        let corner = self.evaluate(number, entry, [0, 0], tails, extra);
        if self.begins(number) {
            // What follows the beginning of the sentence is scored at once, each for itself:
            // strings that do not sound like a beginning would hide better ones behind them.
            for rank in 1.. {
                let Some(tail) = self.vertex(bundle.tails[1], rank) else { break };
                self.push(number, entry, [0, rank], [tails[0], tail], extra);
            }
        }
        corner
    }

    /// Whether all places of a cube are reached at once.
    fn begins(&self, number: u32) -> bool {
        let bundle = &self.chart.bundles[self.frontier.first + number as usize];
        T::BUILT && self.chart.from(bundle) == From::First
    }

    /// The exact score of a rule over vertices.
    fn evaluate(
        &mut self,
        number: u32,
        entry: u32,
        ranks: [u32; 2],
        tails: [u32; 2],
        extra: f32,
    ) -> u32 {
        self.frontier.evaluated += 1;
        let decoder = self.context.decoder;
        let model = &*decoder.model;
        let bundle = &self.chart.bundles[self.frontier.first + number as usize];
        let group = self.chart.group(bundle);
        let rule = &group.entries[entry as usize];
        let vertex = |gap: usize| &self.chart.vertices[tails[gap] as usize];
        let (mut own, mut below) = (rule.score + extra, 0.0);
        let mut lm = rule.shape.lm;
        let ends = match group.gaps {
            0 => group.run(rule, 0).unwrap_or(Ends::EMPTY),
            1 => {
                let tail = vertex(0);
                below = tail.score;
                let (change, ends) = fill(&model.lm, group, rule, &tail.ends, None);
                lm += change;
                own += decoder.weighted.lm * change;
                ends
            }
            _ => {
                let (one, two) = (vertex(0), vertex(1));
                below = one.score + two.score;
                let (change, ends) = fill(&model.lm, group, rule, &one.ends, Some(&two.ends));
                lm += change;
                own += decoder.weighted.lm * change;
                ends
            }
        };
        let width = self.context.width();
        if width > 0 {
            let mut total = Total { weights: &decoder.weighted.named, sum: 0.0 };
            for (at, feature) in model.extras.string.iter().enumerate() {
                let state = |tail: u32| self.chart.strings[tail as usize * width + at];
                let states = tails.map(|tail| if tail == NONE { 0 } else { state(tail) });
                let target = group.target(entry as usize);
                let states = &states[..group.gaps];
                let state = feature.join(target, states, self.context.sentence, &mut total);
                self.frontier.strings.push(state);
            }
            own += total.sum as f32;
        }
        let score = own + below;
        let candidate =
            Candidate { bundle: number, entry, ranks, tails, extra, score, own, lm, ends };
        self.frontier.candidates.push(candidate);
        self.frontier.candidates.len() as u32 - 1
    }

    /// Adds a candidate to the vertex it belongs to, and its neighbours to the heap.
    fn take(&mut self, number: u32) {
        let width = self.context.width();
        let frontier = &mut *self.frontier;
        let candidate = &frontier.candidates[number as usize];
        let Candidate { bundle, entry, ranks, tails, extra, score, own, lm, .. } = *candidate;
        let number_of_bundle = (frontier.first + bundle as usize) as u32;
        let mut way = Way { bundle: number_of_bundle, entry, tails, own, lm, next: NONE };
        let strings = &frontier.strings[number as usize * width..][..width];
        let mut key = strings.iter().fold(candidate.ends.key(), |key, state| {
            (key ^ state).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        let (added, new) = (self.chart.ways.len() as u32, self.chart.vertices.len() as u32);
        loop {
            let at = *frontier.index.entry(key).or_insert(new);
            if at == new {
                let ends = candidate.ends;
                self.chart.vertices.push(Vertex { score, best: added, ways: added, ends });
                self.chart.strings.extend_from_slice(strings);
                frontier.list.push(new);
                break;
            }
            let vertex = &mut self.chart.vertices[at as usize];
            let same = vertex.ends == candidate.ends
                && self.chart.strings[at as usize * width..][..width] == *strings;
            if same {
                way.next = vertex.ways;
                vertex.ways = added;
                if score > vertex.score {
                    (vertex.score, vertex.best) = (score, added);
                }
                break;
            }
            key = key.wrapping_add(1);
        }
        self.chart.ways.push(way);
        frontier.taken += 1;
        if self.begins(bundle) {
            return;
        }
        for gap in (0..2).filter(|&gap| tails[gap] != NONE) {
            let mut ranks = ranks;
            ranks[gap] += 1;
            self.reach(bundle, entry, ranks, tails, gap, extra);
        }
    }

    /// Scores the next place in a cube along one axis, if there is one that was not reached
    /// before.
    fn reach(
        &mut self,
        number: u32,
        entry: u32,
        ranks: [u32; 2],
        mut tails: [u32; 2],
        gap: usize,
        extra: f32,
    ) {
        let place = (number, entry, ranks[0], ranks[1]);
        if ranks[0] > 0 && ranks[1] > 0 && !self.frontier.seen.insert(place) {
            return;
        }
        let cell = self.chart.bundles[self.frontier.first + number as usize].tails[gap];
        if let Some(tail) = self.vertex(cell, ranks[gap]) {
            tails[gap] = tail;
            self.push(number, entry, ranks, tails, extra);
        }
    }

    /// Scores a place in a cube and lets it wait for its turn.
    fn push(&mut self, number: u32, entry: u32, ranks: [u32; 2], tails: [u32; 2], extra: f32) {
        let candidate = self.evaluate(number, entry, ranks, tails, extra);
        let score = self.frontier.candidates[candidate as usize].score;
        self.frontier.heap.push(code(score) | u64::from(candidate << 1));
    }
}

/// Puts strings into the gaps of a rule; gives what the language model's score changes by, and the
/// ends of the whole.
#[inline]
pub fn fill(lm: &Lm, group: &Group, rule: &Entry, one: &Ends, two: Option<&Ends>) -> (f32, Ends) {
    let (one, two) = match two {
        Some(two) if rule.shape.swapped => (two, Some(one)),
        two => (one, two),
    };
    let mut change = 0.0;
    let mut ends = match group.run(rule, 0) {
        Some(mut ends) => {
            change += lm.join(&mut ends, one);
            ends
        }
        None => *one,
    };
    if let Some(run) = group.run(rule, 1) {
        change += lm.join(&mut ends, &run);
    }
    if let Some(two) = two {
        change += lm.join(&mut ends, two);
        if let Some(run) = group.run(rule, 2) {
            change += lm.join(&mut ends, &run);
        }
    }
    (change, ends)
}
