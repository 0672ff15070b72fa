//! The search: spans from right to left and from short to long, then the sentence from left to
//! right.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tunesmith_align::Link;
use tunesmith_rules::{Node, Symbol};

use super::cells::Cells;
use super::chart::{Bundle, Chart, From, NONE, Placed, Vertex};
use super::cube::Context;
use super::decoder::Decoder;
use super::facts::Facts;
use super::group::Group;
use super::matches::{Match, Walk};
use super::model::PassThrough;
use super::results::Found;
use crate::features::{Rule, Total};
use crate::words::Held;
use crate::{Input, Sentence};

pub fn search<'d>(decoder: &'d Decoder, input: &Input<'_>) -> Found<'d> {
    let model = &*decoder.model;
    let mut sentence = Sentence::new(input, &model.table, &model.lexicon, &model.lm);
    let mut chart = Chart::default();
    let lone = lone(decoder, input, &mut sentence, &mut chart);
    let glue = glue(decoder, &mut chart);
    let length = sentence.source().len();
    let given = input.given.iter().map(|given| given.span.len());
    let longest = given.fold(decoder.settings.max_span, usize::max);
    let mut search = Search {
        context: Context { decoder, sentence: &sentence },
        chart,
        cells: Cells::new(decoder.settings.growing),
        known: FxHashMap::default(),
        spans: Spans::new(length, longest),
        source: Vec::new(),
        frame: Input { words: Vec::new(), given: Vec::new(), ..input.clone() },
        exclusive: (input.given.iter().filter(|given| given.exclusive))
            .map(|given| given.span.clone())
            .collect(),
    };
    search.spans(&lone);
    let goal = search.sentence(glue);
    let (chart, evaluated) = (search.chart, search.cells.evaluated());
    Found::new(decoder, sentence, chart, goal, evaluated)
}

/// A group of rules that is for one span only.
struct Lone {
    span: Range<usize>,
    group: u32,
}

/// Rules for words that may stand for themselves, and those that the user gives.
fn lone(
    decoder: &Decoder,
    input: &Input<'_>,
    sentence: &mut Sentence<'_>,
    chart: &mut Chart,
) -> Vec<Lone> {
    let model = &*decoder.model;
    let mut list = Vec::new();
    for at in 0..sentence.source().len() {
        let word = sentence.source()[at];
        let held = sentence.held(at..at + 1).next();
        let translated = || {
            model.table.lookup(&[Symbol::Word(word)]).any(|entry| {
                held.is_none_or(|held| {
                    let (target, links) = (entry.target().collect::<Vec<_>>(), entry.links());
                    held.find(0, &links.collect::<Vec<_>>(), &target).is_some()
                })
            })
        };
        let taken = input.given.iter().any(|given| given.exclusive && given.span.contains(&at));
        if taken || model.dense.pass == PassThrough::Untranslated && translated() {
            continue;
        }
        let target = [Symbol::Word(sentence.itself(at))];
        let group = single(decoder, sentence, at..at + 1, &target, decoder.weighted.unknown);
        let group = chart.add(Arc::new(group), From::PassThrough);
        list.push(Lone { span: at..at + 1, group });
    }
    for given in &input.given {
        let words = given.words.iter().map(|word| Symbol::Word(sentence.target_id(word)));
        let target: Vec<Symbol> = words.collect();
        let group = single(decoder, sentence, given.span.clone(), &target, given.score);
        let group = chart.add(Arc::new(group), From::Given(given.score));
        list.push(Lone { span: given.span.clone(), group });
    }
    list
}

/// The group of one rule without gaps that is not from the table.
fn single(
    decoder: &Decoder,
    sentence: &Sentence<'_>,
    span: Range<usize>,
    target: &[Symbol],
    score: f32,
) -> Group {
    let words = sentence.source()[span.clone()].iter();
    let source: Vec<Symbol> = words.copied().map(Symbol::Word).collect();
    let links: &[Link] = if source.len() == 1 && target.len() == 1 { &[(0, 0)] } else { &[] };
    let rule = Rule { source: &source, target, links, scores: &[], words: sentence };
    let (model, weighted) = (&*decoder.model, &decoder.weighted);
    let mut total = Total { weights: &weighted.named, sum: 0.0 };
    for feature in &model.extras.place {
        feature.find(&rule, sentence, span.clone(), &[], &mut total);
    }
    let facts = Facts::alone(model, target, Some(&rule), |id| sentence.lm_id(id));
    Group::new(&facts, weighted, score + total.sum as f32, 0)
}

/// The rules S → X and S → S X.
fn glue(decoder: &Decoder, chart: &mut Chart) -> [u32; 2] {
    let target = [Symbol::Gap(1), Symbol::Gap(2)];
    [(From::First, 0.0), (From::Glue, decoder.weighted.glue)].map(|(from, score)| {
        let facts = Facts::alone(&decoder.model, &target, None, |_| 0);
        chart.add(Arc::new(Group::new(&facts, &decoder.weighted, score, 0)), from)
    })
}

/// The cells of spans that rules may cover.
struct Spans {
    width: usize,
    list: Vec<Option<u32>>,
}

impl Spans {
    fn new(words: usize, max_span: usize) -> Spans {
        let width = max_span.clamp(1, words.max(1));
        Spans { width, list: vec![None; words * width] }
    }

    fn get(&self, span: Range<usize>) -> Option<u32> {
        self.list[span.start * self.width + span.len() - 1]
    }

    fn set(&mut self, span: Range<usize>, cell: Option<u32>) {
        self.list[span.start * self.width + span.len() - 1] = cell;
    }
}

struct Search<'s> {
    context: Context<'s>,
    chart: Chart,
    cells: Cells,
    /// Groups of the nodes seen in this sentence.
    known: FxHashMap<u32, Option<u32>>,
    spans: Spans,
    source: Vec<Symbol>,
    /// Walls and zones.
    frame: Input<'s>,
    /// Spans that only the user translates.
    exclusive: Vec<Range<usize>>,
}

impl Search<'_> {
    /// Builds all spans.
    fn spans(&mut self, lone: &[Lone]) {
        let Context { decoder, sentence } = self.context;
        let words = sentence.source();
        let mut walk = Walk::new(&decoder.model.table, words);
        let mut matches = Vec::new();
        for start in (0..words.len()).rev() {
            let rest = words.len() - start;
            walk.begin(start, decoder.settings.max_span.min(rest));
            for end in start + 1..=start + self.spans.width.min(rest) {
                if self.frame.stop.is_asked() {
                    return;
                }
                let first = self.chart.bundles.len();
                let matched = end - start <= decoder.settings.max_span;
                if matched {
                    matches.clear();
                    let built = |span| self.spans.get(span).is_some();
                    walk.advance(end, built, |found| matches.push(found));
                    if self.frame.allows(&(start..end)) {
                        matches.iter().for_each(|found| self.add(start..end, found));
                    }
                }
                for lone in lone.iter().filter(|lone| lone.span == (start..end)) {
                    self.bundle(lone.group, start..end, [(0, 0); 2], [None; 2]);
                }
                let cell = self.cells.add(self.context, &mut self.chart, first);
                self.spans.set(start..end, cell);
                if matched && cell.is_some() {
                    walk.built(end);
                }
            }
        }
    }

    /// Strings spans together; gives the vertices of the whole sentence.
    fn sentence(&mut self, [first, glue]: [u32; 2]) -> Vec<u32> {
        let Context { decoder, sentence } = self.context;
        let ends = decoder.model.lm.begin_ends();
        self.chart.vertices.push(Vertex { score: 0.0, best: NONE, ways: NONE, ends });
        let strings = decoder.model.extras.string.iter().map(|feature| feature.begin());
        self.chart.strings.extend(strings);
        let mut prefixes = vec![Some(self.cells.single(&self.chart))];
        for end in 1..=sentence.source().len() {
            if self.frame.stop.is_asked() {
                return Vec::new();
            }
            let bundles = self.chart.bundles.len();
            let reached = end.saturating_sub(self.spans.width);
            for (split, &prefix) in prefixes.iter().enumerate().skip(reached) {
                let tails = [prefix, self.spans.get(split..end)];
                let group = if split == 0 { first } else { glue };
                let gaps = [(0, split as u32), (split as u32, end as u32)];
                self.bundle(group, 0..end, gaps, tails);
            }
            prefixes.push(self.cells.add(self.context, &mut self.chart, bundles));
        }
        match prefixes[sentence.source().len()] {
            Some(cell) => self.cells.finish(self.context, &mut self.chart, cell),
            None => Vec::new(),
        }
    }

    /// Adds the rules of a source side at a place.
    fn add(&mut self, span: Range<usize>, found: &Match) {
        if !self.exclusive.iter().all(|given| leaves(found, &span, given)) {
            return;
        }
        let key = found.node.index() as u32;
        let held = self.held(&span, found);
        let group = match self.known.get(&key) {
            Some(&group) if held.is_empty() => group,
            _ => {
                self.read_source(&span, found);
                let group = self.group(found.node, &held);
                if held.is_empty() {
                    self.known.insert(key, group);
                }
                group
            }
        };
        let Some(group) = group else { return };
        let cell = |(start, end): (u32, u32)| match end {
            0 => None,
            _ => self.spans.get(start as usize..end as usize),
        };
        let tails = found.gaps.map(cell);
        self.bundle(group, span.clone(), found.gaps, tails);
        if !self.context.decoder.model.extras.place.is_empty() {
            self.read_source(&span, found);
            self.place(found.node);
        }
    }

    /// The source side of a match.
    fn read_source(&mut self, span: &Range<usize>, found: &Match) {
        self.source.clear();
        source_side(self.context.sentence.source(), span, &found.gaps, &mut self.source);
    }

    /// The placeholders that a match has words for, and which symbols of its source side these are.
    fn held(&self, span: &Range<usize>, found: &Match) -> Vec<(Held, usize)> {
        let gaps = || found.gaps.iter().map(|&(start, end)| start as usize..end as usize);
        let held = self.context.sentence.held(span.clone());
        held.filter(|held| !gaps().any(|gap| gap.contains(&held.at)))
            .map(|held| {
                let before = gaps().filter(|gap| gap.end <= held.at && !gap.is_empty());
                (*held, held.at - span.start - before.map(|gap| gap.len() - 1).sum::<usize>())
            })
            .collect()
    }

    /// The group of a node whose source side was read, if it has rules that keep placeholders.
    fn group(&mut self, node: Node, held: &[(Held, usize)]) -> Option<u32> {
        let model = &*self.context.decoder.model;
        model.table.entries(node).next()?;
        let decoder = self.context.decoder;
        let group = decoder.cache.get(node, || decoder.group(&self.source, node));
        if held.is_empty() {
            return Some(self.chart.add(group, From::Table(node)));
        }
        let links: Vec<Vec<Link>> =
            model.table.entries(node).map(|entry| entry.links().collect()).collect();
        let group = group.holding(held, &links);
        (!group.entries.is_empty()).then(|| self.chart.add(Arc::new(group), From::Table(node)))
    }

    fn bundle(
        &mut self,
        group: u32,
        span: Range<usize>,
        gaps: [(u32, u32); 2],
        tails: [Option<u32>; 2],
    ) {
        let filled = self.chart.groups[group as usize].0.gaps;
        if tails[..filled].iter().all(Option::is_some) {
            let span = (span.start as u32, span.end as u32);
            let tails = tails.map(|cell| cell.unwrap_or(NONE));
            self.chart.bundles.push(Bundle { group, span, gaps, tails, placed: NONE });
        }
    }

    /// Scores the rules of the last bundle at their place, and sorts them again.
    fn place(&mut self, node: Node) {
        let model = &*self.context.decoder.model;
        let Some(&bundle) = self.chart.bundles.last() else { return };
        let mut scores = Vec::new();
        let (mut target, mut links) = (Vec::new(), Vec::new());
        for entry in model.table.entries(node) {
            target.clear();
            target.extend(entry.target());
            links.clear();
            links.extend(entry.links());
            let rule = Rule {
                source: &self.source,
                target: &target,
                links: &links,
                scores: entry.scores,
                words: self.context.sentence,
            };
            let mut total = Total { weights: &self.context.decoder.weighted.named, sum: 0.0 };
            let (span, gaps) = ranges(&bundle);
            for feature in &model.extras.place {
                feature.find(&rule, self.context.sentence, span.clone(), &gaps, &mut total);
            }
            scores.push(total.sum as f32);
        }
        let entries = &self.chart.groups[bundle.group as usize].0.entries;
        let start = self.chart.placed.len();
        self.chart.placed.extend(entries.iter().enumerate().map(|(number, entry)| Placed {
            entry: number as u32,
            score: scores[entry.shape.place as usize],
        }));
        let hope = |placed: &Placed| entries[placed.entry as usize].hope + placed.score;
        self.chart.placed[start..].sort_by(|a, b| hope(b).total_cmp(&hope(a)));
        if let Some(bundle) = self.chart.bundles.last_mut() {
            bundle.placed = start as u32;
        }
    }
}

/// Whether a match has no word inside a span.
fn leaves(found: &Match, span: &Range<usize>, other: &Range<usize>) -> bool {
    let meets = other.start < span.end && span.start < other.end;
    let covers = |gap: &(u32, u32)| gap.0 as usize <= other.start && other.end <= gap.1 as usize;
    !meets || found.gaps.iter().any(covers)
}

/// The source side that covers a span with gaps.
pub fn source_side(
    words: &[u32],
    span: &Range<usize>,
    gaps: &[(u32, u32); 2],
    out: &mut Vec<Symbol>,
) {
    let mut at = span.start;
    let mut number = 0;
    while at < span.end {
        match gaps.get(number) {
            Some(&(start, end)) if start as usize == at && end > start => {
                number += 1;
                out.push(Symbol::Gap(number as u8));
                at = end as usize;
            }
            _ => {
                out.push(Symbol::Word(words[at]));
                at += 1;
            }
        }
    }
}

/// The span of a bundle, and those of its gaps.
pub fn ranges(bundle: &Bundle) -> (Range<usize>, Vec<Range<usize>>) {
    let range = |(start, end): (u32, u32)| start as usize..end as usize;
    let gaps = bundle.gaps.iter().filter(|gap| gap.1 > gap.0);
    (range(bundle.span), gaps.map(|&gap| range(gap)).collect())
}
