//! The cells of a chart as bins of the search.
//!
//! A bin is a cell: the strings of one span, which the search ranked and pruned among themselves.
//! The prefixes that the glue rules build (S) are cells of their own beside the spans (X): they are
//! pruned, too, and their scores know how the sentence begins. Every cell has its place, whatever
//! was found for it. It is empty if no whole derivation that the search kept goes through it. Cells
//! of one item stay: another search may find more for them.
//!
//! All strings of a bin are put into the same surroundings: those that they have in the best
//! derivation through the cell, found by a pass from the goal down (Viterbi outside scores). Any of
//! them fits there, so what comes out is a translation that the grammar allows, even if the search
//! pruned it. Its score is that of the whole derivation, no estimate: the language model and the
//! features of strings look across the edges of the span again. An item that recombines with the
//! one of the best derivation is known to have the same future; for others the rules around it are
//! joined anew, up to where the string looks the same from outside.

use rustc_hash::FxHashMap;
use tunesmith_rules::Symbol;
use tunesmith_space::FeatureSum;

use super::chart::{From, NONE};
use super::cube::fill;
use super::results::{Found, Told};
use crate::features::{Collected, Total};
use crate::outcome::{Features, Partial, joined};

/// Items of a cell that are told, the best ones, and always the one that the best derivation uses.
/// A sentence has many more cells than a search from left to right has stacks: with more of each,
/// the bins of several decodings of a tuning set would not fit into memory.
const MOST: usize = 5;

/// Features by their ids.
type Row = Vec<(u32, f32)>;

/// See [`Outcome::bins`](crate::Outcome::bins): by the length of the span, then by its start; a
/// prefix behind the span with the same words, the whole sentence last.
pub fn bins(found: &Found<'_>, ways: usize, collected: &mut Collected) -> Vec<Vec<Partial>> {
    let outside = outside(found);
    let cells = cells(found, &outside, ways);
    let mut reader = Reader {
        told: Told::new(found, collected),
        found,
        collected,
        sum: FeatureSum::default(),
        insides: Vec::new(),
        arounds: Vec::new(),
        outside,
    };
    reader.read(&cells);
    cells.iter().map(|cell| reader.bin(cell)).collect()
}

/// The best of what surrounds a vertex.
#[derive(Clone, Copy)]
struct Outside {
    score: f32,
    /// What is built of the vertex there, and how; `NONE` where the sentence ends.
    head: u32,
    way: u32,
    /// Which gap of the way's rule it fills.
    gap: usize,
}

/// The best surroundings of all vertices under the weights of the search; those that lead nowhere
/// have a score of minus infinity.
fn outside(found: &Found<'_>) -> Vec<Outside> {
    let chart = &found.chart;
    let none = Outside { score: f32::NEG_INFINITY, head: NONE, way: NONE, gap: 0 };
    let mut outside = vec![none; chart.vertices.len()];
    for &goal in &found.goal {
        outside[goal as usize].score = found.end_score(goal);
    }
    for &head in chart.order.iter().rev() {
        let above = outside[head as usize].score;
        if above == f32::NEG_INFINITY {
            continue;
        }
        for number in chart.ways_to(head) {
            let way = &chart.ways[number as usize];
            for (gap, &tail) in way.tails.iter().enumerate() {
                let other = chart.vertices.get(way.tails[1 - gap] as usize);
                let score = above + way.own + other.map_or(0.0, |other| other.score);
                if let Some(known) = outside.get_mut(tail as usize)
                    && score > known.score
                {
                    *known = Outside { score, head, way: number, gap };
                }
            }
        }
    }
    outside
}

/// A way to build a vertex.
struct Item {
    vertex: u32,
    way: u32,
    score: f32,
}

#[derive(Default)]
struct Cell {
    /// Best first.
    items: Vec<Item>,
    /// The vertex that the best derivation through the cell uses.
    used: Option<u32>,
    /// The whole sentence: scores are those with its end.
    is_goal: bool,
}

/// The cells in their order, with at most so many ways to each vertex.
fn cells(found: &Found<'_>, outside: &[Outside], ways: usize) -> Vec<Cell> {
    let chart = &found.chart;
    let places = places(found);
    let mut cells: Vec<Cell> = Vec::new();
    cells.resize_with(places.len(), Cell::default);
    if let Some(last) = cells.last_mut() {
        last.is_goal = true;
    }
    let through = |at: u32| chart.vertices[at as usize].score + outside[at as usize].score;
    for &vertex in &chart.order {
        let Some(way) = found.best_way(vertex) else { continue };
        let bundle = &chart.bundles[way.bundle as usize];
        let is_prefix = matches!(chart.from(bundle), From::First | From::Glue);
        let cell = &mut cells[places[&(bundle.span, is_prefix)]];
        let end = if cell.is_goal { found.end_score(vertex) } else { 0.0 };
        let item = |way| Item { vertex, way, score: chart.score(way) + end };
        let best = chart.vertices[vertex as usize].best;
        let mut items = vec![item(best)];
        items.extend(chart.ways_to(vertex).filter(|&way| way != best && ways > 1).map(item));
        items.sort_by(|a, b| b.score.total_cmp(&a.score));
        cell.items.extend(items.into_iter().take(ways));
        if through(vertex) > cell.used.map_or(f32::NEG_INFINITY, through) {
            cell.used = Some(vertex);
        }
    }
    for cell in &mut cells {
        let Some(used) = cell.used else {
            cell.items.clear();
            continue;
        };
        cell.items.sort_by(|a, b| b.score.total_cmp(&a.score));
        let place = cell.items.iter().position(|item| item.vertex == used);
        if let Some(place) = place.filter(|&place| place >= MOST) {
            cell.items.swap(MOST - 1, place);
        }
        cell.items.truncate(MOST);
    }
    cells
}

/// The numbers of all cells, by their spans and by whether they are of prefixes.
fn places(found: &Found<'_>) -> FxHashMap<((u32, u32), bool), usize> {
    let words = found.sentence.source().len() as u32;
    // Spans may be longer than those of rules where the user gave a translation.
    let given = found
        .chart
        .bundles
        .iter()
        .filter(|bundle| matches!(found.chart.from(bundle), From::Given(_)));
    let longest = given.map(|bundle| bundle.span.1 - bundle.span.0).max().unwrap_or(1);
    let longest = found.decoder.settings.max_span.max(longest as usize);
    let mut places = FxHashMap::default();
    for length in 1..=words {
        for start in 0..=words - length {
            let span = (start, start + length);
            if length as usize <= longest {
                places.insert((span, false), places.len());
            }
            if start == 0 {
                places.insert((span, true), places.len());
            }
        }
    }
    places
}

/// The best derivation of a vertex.
#[derive(Default, Clone)]
struct Inside {
    text: String,
    features: Row,
}

/// What surrounds a vertex at its best.
#[derive(Default)]
struct Around {
    before: String,
    after: String,
    /// Of the rule that the vertex is a part of, and of what is in the other gap of the rule, as
    /// far as they are the same whatever the vertex is.
    step: Row,
    /// What the string features of that rule score.
    strings: f64,
    /// Of all surroundings, from the rule to the end of the sentence.
    features: Row,
}

/// Reads strings and features off a chart.
struct Reader<'f, 'd> {
    found: &'f Found<'d>,
    told: Told<'f, 'd>,
    collected: &'f mut Collected,
    sum: FeatureSum,
    outside: Vec<Outside>,
    /// Of the vertices that are asked for.
    insides: Vec<Option<Inside>>,
    arounds: Vec<Option<Around>>,
}

/// Marks those of some vertices that are there.
fn mark(marks: &mut [bool], vertices: &[u32]) {
    let there = vertices.iter().filter(|&&vertex| vertex != NONE);
    there.for_each(|&vertex| marks[vertex as usize] = true);
}

impl Reader<'_, '_> {
    /// Reads what surrounds the cells, and what the items and their surroundings consist of.
    fn read(&mut self, cells: &[Cell]) {
        let chart = &self.found.chart;
        let mut around = vec![false; self.outside.len()];
        let mut inside = around.clone();
        cells.iter().filter_map(|cell| cell.used).for_each(|used| mark(&mut around, &[used]));
        for item in cells.iter().flat_map(|cell| &cell.items) {
            inside[item.vertex as usize] |= self.is_best(item);
            mark(&mut inside, &chart.ways[item.way as usize].tails);
        }
        for &vertex in &chart.order {
            let Outside { head, way, gap, .. } = self.outside[vertex as usize];
            if around[vertex as usize] && head != NONE {
                mark(&mut around, &[head]);
                mark(&mut inside, &[chart.ways[way as usize].tails[1 - gap]]);
            }
        }
        for &vertex in chart.order.iter().rev() {
            if inside[vertex as usize]
                && let Some(way) = self.found.best_way(vertex)
            {
                mark(&mut inside, &way.tails);
            }
        }
        self.insides.resize_with(inside.len(), || None);
        for &vertex in chart.order.iter().filter(|&&vertex| inside[vertex as usize]) {
            let best = chart.vertices[vertex as usize].best;
            // A sentence that has just begun was built by nothing.
            let found = if best == NONE { Inside::default() } else { self.derive(best) };
            self.insides[vertex as usize] = Some(found);
        }
        self.arounds.resize_with(around.len(), || None);
        for &vertex in chart.order.iter().rev().filter(|&&vertex| around[vertex as usize]) {
            self.arounds[vertex as usize] = Some(self.around(vertex));
        }
    }

    /// Whether no other way to the vertex of an item is better.
    fn is_best(&self, item: &Item) -> bool {
        item.way == self.found.chart.vertices[item.vertex as usize].best
    }

    /// The best derivation that ends with a way.
    fn derive(&mut self, number: u32) -> Inside {
        let found = self.found;
        let way = &found.chart.ways[number as usize];
        self.told.rule(number, self.collected);
        self.told.own(number, self.collected);
        self.sum.extend(self.collected.take());
        let below = |tail: u32| self.insides.get(tail as usize).and_then(Option::as_ref);
        for tail in way.tails.into_iter().filter_map(below) {
            self.sum.extend(tail.features.iter().copied());
        }
        let text = joined(found.target(way).iter().map(|&symbol| match symbol {
            Symbol::Word(word) => found.sentence.target_word(word),
            Symbol::Gap(gap) => {
                below(way.tails[usize::from(gap) - 1]).map_or("", |tail| tail.text.as_str())
            }
        }));
        Inside { text, features: self.sum.total().to_vec() }
    }

    /// What surrounds a vertex; what surrounds its head was read.
    fn around(&mut self, vertex: u32) -> Around {
        let (found, collected) = (self.found, &mut *self.collected);
        let Outside { head, way: number, gap, .. } = self.outside[vertex as usize];
        let Some(way) = found.chart.ways.get(number as usize) else {
            let ends = &found.chart.vertices[vertex as usize].ends;
            self.told.end(ends, found.strings(vertex), collected);
            return Around { features: collected.take().collect(), ..Around::default() };
        };
        let known = |at: u32| self.insides.get(at as usize).and_then(Option::as_ref);
        let other = known(way.tails[1 - gap]);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut is_behind = false;
        for &symbol in found.target(way) {
            let text = match symbol {
                Symbol::Gap(number) if usize::from(number) == gap + 1 => {
                    is_behind = true;
                    continue;
                }
                Symbol::Gap(_) => other.map_or("", |other| other.text.as_str()),
                Symbol::Word(word) => found.sentence.target_word(word),
            };
            if is_behind { &mut after } else { &mut before }.push(text);
        }
        self.told.alone(number, collected);
        self.sum.extend(collected.take());
        other.iter().for_each(|other| self.sum.extend(other.features.iter().copied()));
        let step = self.sum.total().to_vec();
        let tails = way.tails.map(|tail| found.strings(tail));
        self.told.over(way, way.lm, tails, collected);
        self.sum.extend(collected.take());
        self.sum.extend(step.iter().copied());
        let mut total = Total { weights: &found.decoder.weighted.named, sum: 0.0 };
        found.join(way, tails, &mut total);
        let none = Around::default();
        let above = self.arounds[head as usize].as_ref().unwrap_or(&none);
        self.sum.extend(above.features.iter().copied());
        Around {
            before: joined([above.before.as_str()].into_iter().chain(before)),
            after: joined(after.into_iter().chain([above.after.as_str()])),
            step,
            strings: total.sum,
            features: self.sum.total().to_vec(),
        }
    }

    fn bin(&mut self, cell: &Cell) -> Vec<Partial> {
        let Some(used) = cell.used else { return Vec::new() };
        cell.items.iter().map(|item| self.partial(item, used, cell.is_goal)).collect()
    }

    /// An item in the surroundings of a vertex.
    fn partial(&mut self, item: &Item, used: u32, is_whole: bool) -> Partial {
        let chart = &self.found.chart;
        let (start, end) = chart.bundles[chart.ways[item.way as usize].bundle as usize].span;
        let span = start as usize..end as usize;
        let known = self.insides[item.vertex as usize].as_ref();
        let known = known.filter(|_| self.is_best(item)).cloned();
        let Inside { text, mut features } = known.unwrap_or_else(|| self.derive(item.way));
        let (rest, mut future) = self.future(item.vertex, used);
        let mut estimate = item.score + rest;
        if is_whole {
            self.sum.extend(features.drain(..).chain(future.drain(..)));
            features.extend_from_slice(self.sum.total());
            estimate = item.score;
        }
        let texts = |around: &Around| (around.before.clone(), around.after.clone());
        let (before, after) = self.arounds[used as usize].as_ref().map(texts).unwrap_or_default();
        Partial {
            covered: vec![span],
            before,
            text,
            after,
            score: item.score,
            estimate,
            features,
            future,
        }
    }

    /// What the surroundings of a vertex add to another one of its cell: score and features.
    fn future(&mut self, vertex: u32, used: u32) -> (f32, Row) {
        let (found, chart) = (self.found, &self.found.chart);
        let (model, weighted) = (&found.decoder.model, &found.decoder.weighted);
        let mut ends = chart.vertices[vertex as usize].ends;
        let mut strings = found.strings(vertex).to_vec();
        let (mut at, mut score) = (used, 0.0);
        while let Some(around) = &self.arounds[at as usize] {
            let Outside { score: known, head, way, gap } = self.outside[at as usize];
            if ends == chart.vertices[at as usize].ends && strings == found.strings(at) {
                // From here on it looks the same.
                score += known;
                self.sum.extend(around.features.iter().copied());
                break;
            }
            let Some(way) = chart.ways.get(way as usize) else {
                score += found.end_score_of(&ends, &strings);
                self.told.end(&ends, &strings, self.collected);
                self.sum.extend(self.collected.take());
                break;
            };
            let group = chart.group(&chart.bundles[way.bundle as usize]);
            let rule = chart.entry(way);
            let other = chart.vertices.get(way.tails[1 - gap] as usize);
            let (change, whole) = match other {
                None => fill(&model.lm, group, rule, &ends, None),
                Some(other) if gap == 0 => fill(&model.lm, group, rule, &ends, Some(&other.ends)),
                Some(other) => fill(&model.lm, group, rule, &other.ends, Some(&ends)),
            };
            let lm = rule.shape.lm + change;
            let beside = found.strings(way.tails[1 - gap]);
            let tails = if gap == 0 { [&strings, beside] } else { [beside, &strings] };
            let mut total = Total { weights: &weighted.named, sum: 0.0 };
            found.join(way, tails, &mut total);
            score += way.own + other.map_or(0.0, |other| other.score);
            score += weighted.lm * (lm - way.lm) + (total.sum - around.strings) as f32;
            self.sum.extend(around.step.iter().copied());
            strings = self.told.over(way, lm, tails, self.collected);
            self.sum.extend(self.collected.take());
            (at, ends) = (head, whole);
        }
        (score, self.sum.total().to_vec())
    }
}
