//! Cube pruning of one span.
//!
//! Every rule is a cube: its axes are the vertices for its gaps, best first. As in cdec, all rules
//! of a span begin at the corner, and each that is taken brings in its neighbours. What is taken
//! is the best by exact score; but rules wait unscored, by what they can hope for: that words
//! whose score is preliminary turn out to be more probable in their context. Many never get their
//! turn.

use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;
use tunesmith_lm::{Ends, Model as Lm};

use super::chart::{Cell, Chart, From, NONE, Vertex, Way};
use super::decoder::Decoder;
use super::group::{Entry, Group};
use crate::Sentence;
use crate::features::Total;
use crate::weights::KeyMap;

/// A rule over vertices with its exact score.
struct Candidate {
    bundle: u32,
    entry: u32,
    /// Ranks of the vertices in their cells.
    ranks: [u32; 2],
    /// What the place of the rule adds to its score.
    extra: f32,
    score: f32,
    lm: f32,
    ends: Ends,
}

/// Builds one span after the other, keeping its buffers.
#[derive(Default)]
pub struct Cube {
    /// Scores in an order-preserving code, and behind them what has the score: a candidate
    /// (even), or the next rule of a bundle (odd).
    heap: BinaryHeap<u64>,
    candidates: Vec<Candidate>,
    strings: Vec<u64>,
    /// The rank of the next rule, for each bundle of the span.
    next: Vec<u32>,
    /// Places inside cubes that were reached; those at their sides have one way to reach them.
    seen: FxHashSet<(u32, u32, u32, u32)>,
    vertices: Vec<Vertex>,
    vertex_strings: Vec<u64>,
    index: KeyMap<u32>,
    order: Vec<u32>,
    /// Exact scores computed so far.
    pub evaluated: u64,
}

/// Numbers sort as the scores do.
fn code(score: f32) -> u64 {
    let bits = score.to_bits();
    let flipped = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    u64::from(flipped) << 32
}

impl Cube {
    /// Builds a span from the bundles `first..`.
    pub fn build(
        &mut self,
        decoder: &Decoder,
        sentence: &Sentence<'_>,
        chart: &mut Chart,
        first: usize,
    ) -> Cell {
        let mut span = Span { cube: self, decoder, sentence, chart, first };
        span.run();
        self.finish(chart, decoder.model.extras.string.len())
    }

    /// Moves what was built to the chart, best first.
    fn finish(&mut self, chart: &mut Chart, width: usize) -> Cell {
        let start = chart.vertices.len();
        self.order.clear();
        self.order.extend(0..self.vertices.len() as u32);
        let score = |&vertex: &u32| self.vertices[vertex as usize].score;
        self.order.sort_by(|a, b| score(b).total_cmp(&score(a)));
        for &vertex in &self.order {
            let vertex = vertex as usize;
            chart.vertices.push(self.vertices[vertex]);
            chart.strings.extend_from_slice(&self.vertex_strings[vertex * width..][..width]);
        }
        self.vertices.clear();
        self.vertex_strings.clear();
        self.index.clear();
        self.candidates.clear();
        self.strings.clear();
        self.seen.clear();
        self.heap.clear();
        Cell { start: start as u32, end: chart.vertices.len() as u32 }
    }
}

struct Span<'c> {
    cube: &'c mut Cube,
    decoder: &'c Decoder,
    sentence: &'c Sentence<'c>,
    chart: &'c mut Chart,
    first: usize,
}

impl Span<'_> {
    fn run(&mut self) {
        let bundles = self.chart.bundles.len() - self.first;
        self.cube.next.clear();
        self.cube.next.resize(bundles, 0);
        let mut heap = std::mem::take(&mut self.cube.heap).into_vec();
        heap.extend((0..bundles as u32).filter_map(|bundle| self.hope(bundle)));
        self.cube.heap = heap.into();
        let mut left = match self.decoder.settings.pop_limit {
            0 => usize::MAX,
            limit => limit,
        };
        while left > 0
            && let Some(top) = self.cube.heap.pop()
        {
            let number = (top as u32) >> 1;
            let candidate = if top & 1 == 1 { self.next(number) } else { number };
            let exact = code(self.cube.candidates[candidate as usize].score);
            let waits = self.cube.heap.peek().is_some_and(|&other| other >> 32 > exact >> 32);
            if top & 1 == 1 && waits {
                self.cube.heap.push(exact | u64::from(candidate << 1));
                continue;
            }
            self.take(candidate);
            left -= 1;
        }
    }

    /// What the next rule of a bundle could reach.
    fn hope(&self, number: u32) -> Option<u64> {
        let bundle = &self.chart.bundles[self.first + number as usize];
        let group = self.chart.group(bundle);
        let rank = self.cube.next[number as usize];
        if rank as usize >= group.entries.len() {
            return None;
        }
        let (entry, extra) = self.chart.ranked(bundle, rank);
        let mut hope = group.entries[entry as usize].hope + extra;
        let gain = self.decoder.weighted.gain;
        for cell in &bundle.tails[..group.gaps] {
            let best = &self.chart.vertices[cell.start as usize];
            hope += best.score - gain * best.ends.preliminary();
        }
        Some(code(hope) | u64::from(number << 1 | 1))
    }

    /// Scores the next rule of a bundle at the corner of its cube, and lets the one behind it wait.
    fn next(&mut self, number: u32) -> u32 {
        let bundle = &self.chart.bundles[self.first + number as usize];
        let (entry, extra) = self.chart.ranked(bundle, self.cube.next[number as usize]);
        self.cube.next[number as usize] += 1;
        if let Some(hope) = self.hope(number) {
            self.cube.heap.push(hope);
        }
        let corner = self.evaluate(number, entry, [0, 0], extra);
        if self.chart.from(&self.chart.bundles[self.first + number as usize]) == From::First {
            self.begin_all(number);
        }
        corner
    }

    /// What follows the beginning of the sentence is scored at once, each for itself: strings
    /// that do not sound like a beginning would hide better ones behind them.
    fn begin_all(&mut self, number: u32) {
        let cell = self.chart.bundles[self.first + number as usize].tails[1];
        for rank in 1..cell.len() as u32 {
            self.reach(number, 0, [0, rank], 1, 0.0);
        }
    }

    /// The exact score of a rule over vertices.
    fn evaluate(&mut self, number: u32, entry: u32, ranks: [u32; 2], extra: f32) -> u32 {
        self.cube.evaluated += 1;
        let model = &*self.decoder.model;
        let bundle = &self.chart.bundles[self.first + number as usize];
        let group = self.chart.group(bundle);
        let rule = &group.entries[entry as usize];
        let vertex =
            |gap: usize| &self.chart.vertices[(bundle.tails[gap].start + ranks[gap]) as usize];
        let mut score = rule.score + extra;
        let mut lm = rule.lm;
        let ends = match group.gaps {
            0 => group.run(rule, 0).unwrap_or(Ends::EMPTY),
            1 => {
                let tail = vertex(0);
                score += tail.score;
                let (change, ends) = fill(&model.lm, group, rule, &tail.ends, None);
                lm += change;
                score += self.decoder.weighted.lm * change;
                ends
            }
            _ => {
                let (tails, order) = ([vertex(0), vertex(1)], usize::from(rule.swapped));
                score += tails[0].score + tails[1].score;
                let (one, two) = (&tails[order].ends, &tails[1 - order].ends);
                let (change, ends) = fill(&model.lm, group, rule, one, Some(two));
                lm += change;
                score += self.decoder.weighted.lm * change;
                ends
            }
        };
        if !model.extras.string.is_empty() {
            let width = model.extras.string.len();
            let mut total = Total { weights: &self.decoder.weighted.named, sum: 0.0 };
            for (at, feature) in model.extras.string.iter().enumerate() {
                let states = [0, 1].map(|gap| match gap < group.gaps {
                    true => {
                        let tail = (bundle.tails[gap].start + ranks[gap]) as usize;
                        self.chart.strings[tail * width + at]
                    }
                    false => 0,
                });
                let target = group.target(entry as usize);
                let tails = &states[..group.gaps];
                let state = feature.join(target, tails, self.sentence, &mut total);
                self.cube.strings.push(state);
            }
            score += total.sum as f32;
        }
        self.cube.candidates.push(Candidate {
            bundle: number,
            entry,
            ranks,
            extra,
            score,
            lm,
            ends,
        });
        self.cube.candidates.len() as u32 - 1
    }

    /// Adds a candidate to the vertex it belongs to, and its neighbours to the heap.
    fn take(&mut self, number: u32) {
        let width = self.decoder.model.extras.string.len();
        let cube = &mut *self.cube;
        let candidate = &cube.candidates[number as usize];
        let bundle = &self.chart.bundles[self.first + candidate.bundle as usize];
        let gaps = self.chart.group(bundle).gaps;
        let mut way = Way {
            bundle: self.first as u32 + candidate.bundle,
            entry: candidate.entry,
            tails: [NONE; 2],
            lm: candidate.lm,
            next: NONE,
        };
        for gap in 0..gaps {
            way.tails[gap] = bundle.tails[gap].start + candidate.ranks[gap];
        }
        let strings = &cube.strings[number as usize * width..][..width];
        let mut key = strings.iter().fold(candidate.ends.key(), |key, state| {
            (key ^ state).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        let added = self.chart.ways.len() as u32;
        loop {
            let at = *cube.index.entry(key).or_insert(cube.vertices.len() as u32) as usize;
            let Some(vertex) = cube.vertices.get_mut(at) else {
                let Candidate { score, ends, .. } = *candidate;
                cube.vertices.push(Vertex { score, best: added, ways: added, ends });
                cube.vertex_strings.extend_from_slice(strings);
                break;
            };
            let same = vertex.ends == candidate.ends
                && cube.vertex_strings[at * width..][..width] == *strings;
            if same {
                way.next = vertex.ways;
                vertex.ways = added;
                if candidate.score > vertex.score {
                    (vertex.score, vertex.best) = (candidate.score, added);
                }
                break;
            }
            key = key.wrapping_add(1);
        }
        self.chart.ways.push(way);
        let Candidate { bundle, entry, ranks, extra, .. } = *candidate;
        let from = self.chart.from(&self.chart.bundles[self.first + bundle as usize]);
        for gap in (0..gaps).filter(|_| from != From::First) {
            let mut ranks = ranks;
            ranks[gap] += 1;
            self.reach(bundle, entry, ranks, gap, extra);
        }
    }

    /// Scores a place in a cube if there is one and it was not reached before.
    fn reach(&mut self, number: u32, entry: u32, ranks: [u32; 2], gap: usize, extra: f32) {
        let bundle = &self.chart.bundles[self.first + number as usize];
        let inside = (ranks[gap] as usize) < bundle.tails[gap].len();
        if !inside
            || ranks[0] > 0
                && ranks[1] > 0
                && !self.cube.seen.insert((number, entry, ranks[0], ranks[1]))
        {
            return;
        }
        let candidate = self.evaluate(number, entry, ranks, extra);
        let score = self.cube.candidates[candidate as usize].score;
        self.cube.heap.push(code(score) | u64::from(candidate << 1));
    }
}

/// Puts strings into the gaps of a rule, in the order of the target side; gives what the language
/// model's score changes by, and the ends of the whole.
#[inline]
fn fill(lm: &Lm, group: &Group, rule: &Entry, one: &Ends, two: Option<&Ends>) -> (f32, Ends) {
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
