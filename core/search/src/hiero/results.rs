//! What a search found: the best translation, and the forest of all.

use rustc_hash::FxHashMap;
use tunesmith_rules::Symbol;
use tunesmith_space::{Edge, Forest, ForestBuilder, Side};

use super::chart::{Bundle, Chart, From, NONE, Way};
use super::decoder::Decoder;
use super::search::{ranges, source_side};
use crate::Sentence;
use crate::features::{Collected, Rule, Sink, Total};
use crate::outcome::{Origin, Outcome, Step};

/// The outcome for one sentence.
pub struct Found<'d> {
    decoder: &'d Decoder,
    sentence: Sentence<'d>,
    chart: Chart,
    /// The vertices of the whole sentence.
    goal: Vec<u32>,
    /// The best of them, and its score with the end of the sentence.
    best: (u32, f32),
    evaluated: u64,
}

impl<'d> Found<'d> {
    pub(super) fn new(
        decoder: &'d Decoder,
        sentence: Sentence<'d>,
        chart: Chart,
        goal: Vec<u32>,
        evaluated: u64,
    ) -> Found<'d> {
        let best = (NONE, f32::NEG_INFINITY);
        let mut found = Found { decoder, sentence, chart, goal, best, evaluated };
        for at in 0..found.goal.len() {
            let vertex = found.goal[at];
            let mut total = Total { weights: &decoder.weighted.named, sum: 0.0 };
            found.end_strings(vertex, &mut total);
            let score = found.chart.vertices[vertex as usize].score
                + decoder.weighted.lm * found.end(vertex)
                + total.sum as f32;
            if score > found.best.1 {
                found.best = (vertex, score);
            }
        }
        found
    }

    /// What the language model gives for the end of the sentence.
    fn end(&self, vertex: u32) -> f32 {
        let lm = &self.decoder.model.lm;
        lm.score(self.chart.vertices[vertex as usize].ends.right(), lm.end_id()).0.log10
    }

    fn end_strings(&self, vertex: u32, out: &mut dyn Sink) {
        let features = &self.decoder.model.extras.string;
        let states = &self.chart.strings[vertex as usize * features.len()..];
        for (feature, &state) in features.iter().zip(states) {
            feature.end(state, &self.sentence, out);
        }
    }

    fn best_way(&self, vertex: u32) -> Option<&Way> {
        self.chart.ways.get(self.chart.vertices.get(vertex as usize)?.best as usize)
    }

    fn target(&self, way: &Way) -> &[Symbol] {
        let bundle = &self.chart.bundles[way.bundle as usize];
        self.chart.group(bundle).target(way.entry as usize)
    }

    /// How often an exact score was asked for.
    pub fn evaluated(&self) -> u64 {
        self.evaluated
    }

    pub fn nodes(&self) -> usize {
        self.chart.vertices.len()
    }

    /// A way's rule as features see it.
    fn with_rule<T>(&self, way: &Way, look: impl FnOnce(&Rule<'_>) -> T) -> T {
        let bundle = &self.chart.bundles[way.bundle as usize];
        let mut source = Vec::new();
        let span = bundle.span.0 as usize..bundle.span.1 as usize;
        source_side(self.sentence.source(), &span, &bundle.gaps, &mut source);
        let entry = match self.chart.from(bundle) {
            From::Table(node) => {
                let place = self.chart.entry(way).place as usize;
                self.decoder.model.table.entries(node).nth(place)
            }
            _ => None,
        };
        let links = match &entry {
            Some(entry) => entry.links().collect(),
            None if source.len() == 1 && self.target(way).len() == 1 => vec![(0, 0)],
            None => Vec::new(),
        };
        look(&Rule {
            source: &source,
            target: self.target(way),
            links: &links,
            scores: entry.map_or(&[], |entry| entry.scores),
            words: &self.sentence,
        })
    }

    /// Whether the beginning of the sentence is in the first gap, which has no string.
    fn is_first(&self, bundle: &Bundle) -> bool {
        self.chart.from(bundle) == From::First
    }

    fn rule_features(&self, way: &Way, ids: &Ids, out: &mut Collected) {
        let model = &self.decoder.model;
        let dense = &model.dense;
        let bundle = &self.chart.bundles[way.bundle as usize];
        match self.chart.from(bundle) {
            From::First => return,
            From::Glue => return out.put(ids.glue, 1.0),
            From::PassThrough => out.put(ids.unknown, 1.0),
            From::Given(score) => out.put(ids.given, score),
            From::Table(_) => {
                if let Some(arity) = &ids.arity {
                    out.put(arity[self.chart.group(bundle).gaps], 1.0);
                }
            }
        }
        let (mut words, mut unknown) = (0, 0);
        for &symbol in self.target(way) {
            if let Symbol::Word(word) = symbol {
                words += 1;
                unknown += u32::from(self.sentence.lm_id(word) == 0);
            }
        }
        out.put(ids.words, dense.words.1 * words as f32);
        out.put(ids.lm_unknown, unknown as f32);
        self.with_rule(way, |rule| {
            if !rule.scores.is_empty() {
                for (&id, (_, score)) in ids.scores.iter().zip(&dense.scores) {
                    out.put(id, score.of(rule.scores));
                }
            }
            model.extras.rule.iter().for_each(|feature| feature.find(rule, out));
        });
        if !matches!(self.chart.from(bundle), From::Table(_)) {
            self.place_features(way, out);
        }
    }

    fn place_features(&self, way: &Way, out: &mut Collected) {
        let (span, gaps) = ranges(&self.chart.bundles[way.bundle as usize]);
        self.with_rule(way, |rule| {
            for feature in &self.decoder.model.extras.place {
                feature.find(rule, &self.sentence, span.clone(), &gaps, out);
            }
        });
    }

    fn own_features(&self, way: &Way, ids: &Ids, out: &mut Collected) {
        let model = &self.decoder.model;
        out.put(ids.lm, way.lm * model.dense.lm.1);
        let bundle = &self.chart.bundles[way.bundle as usize];
        if !model.extras.place.is_empty() && matches!(self.chart.from(bundle), From::Table(_)) {
            self.place_features(way, out);
        }
        let width = model.extras.string.len();
        for (at, feature) in model.extras.string.iter().enumerate() {
            let tails = way.tails.iter().filter(|&&tail| tail != NONE);
            let states: Vec<u64> =
                tails.map(|&tail| self.chart.strings[tail as usize * width + at]).collect();
            feature.join(self.target(way), &states, &self.sentence, out);
        }
    }

    fn end_features(&self, vertex: u32, ids: &Ids, out: &mut Collected) {
        out.put(ids.lm, self.end(vertex) * self.decoder.model.dense.lm.1);
        self.end_strings(vertex, out);
    }
}

impl Outcome for Found<'_> {
    fn score(&self) -> Option<f64> {
        (self.best.1 > f32::NEG_INFINITY).then_some(f64::from(self.best.1))
    }

    fn text(&self) -> String {
        let mut words = Vec::new();
        // What is still to be written, the next at the end.
        let mut stack = vec![Side::Gap(self.best.0 as usize)];
        while let Some(side) = stack.pop() {
            match side {
                Side::Word(word) => words.push(self.sentence.target_word(word)),
                Side::Gap(vertex) => {
                    let Some(way) = self.best_way(vertex as u32) else { continue };
                    let target = self.target(way).iter().rev();
                    stack.extend(target.map(|&symbol| match symbol {
                        Symbol::Word(word) => Side::Word(word),
                        Symbol::Gap(gap) => Side::Gap(way.tails[usize::from(gap) - 1] as usize),
                    }));
                }
            }
        }
        words.join(" ")
    }

    fn forest(&self, collected: &mut Collected) -> Forest {
        let ids = Ids::new(self, collected);
        let mut export = Export {
            found: self,
            builder: ForestBuilder::default(),
            rules: FxHashMap::default(),
            words: FxHashMap::default(),
            ids,
        };
        let size = self.chart.vertices.len();
        let mut wanted = vec![false; size];
        self.goal.iter().for_each(|&vertex| wanted[vertex as usize] = true);
        for &vertex in self.chart.order.iter().rev() {
            if wanted[vertex as usize] {
                let tails =
                    self.chart.ways_to(vertex).flat_map(|way| self.chart.ways[way as usize].tails);
                tails.filter(|&tail| tail != NONE).for_each(|tail| wanted[tail as usize] = true);
            }
        }
        let mut numbers = vec![Edge::NONE; size];
        for &vertex in self.chart.order.iter().filter(|&&vertex| wanted[vertex as usize]) {
            if self.chart.vertices[vertex as usize].ways == NONE {
                continue;
            }
            numbers[vertex as usize] = export.builder.node();
            for number in self.chart.ways_to(vertex) {
                export.edge(number, &numbers, collected);
            }
        }
        export.builder.node();
        for &vertex in &self.goal {
            let tail = numbers[vertex as usize];
            let side = (tail != Edge::NONE).then_some(Side::Gap(0));
            let rule = export.builder.rule([], side);
            self.end_features(vertex, &export.ids, collected);
            let edge = Edge { tails: [tail, Edge::NONE], rule, label: NONE };
            export.builder.edge(edge, collected.take());
        }
        export.builder.finish()
    }

    fn step(&self, label: u32) -> Option<Step> {
        let way = self.chart.ways.get(label as usize)?;
        let bundle = &self.chart.bundles[way.bundle as usize];
        let (span, gaps) = ranges(bundle);
        let mut places = Vec::new();
        let mut at = span.start;
        while at < span.end {
            let gap = gaps.iter().find(|gap| gap.start == at);
            places.push(gap.is_none().then_some(at));
            at = gap.map_or(at + 1, |gap| gap.end);
        }
        let mut target: Vec<String> = (self.target(way).iter())
            .map(|&symbol| match symbol {
                Symbol::Word(word) => self.sentence.target_word(word).to_owned(),
                Symbol::Gap(gap) => format!("[X,{gap}]"),
            })
            .collect();
        if self.chart.from(bundle) == From::First {
            target = vec!["[X,1]".to_owned()];
        }
        Some(Step {
            span,
            places,
            target,
            links: self.with_rule(way, |rule| rule.links.to_vec()),
            origin: match self.chart.from(bundle) {
                From::Table(_) => Origin::Table,
                From::PassThrough => Origin::Unknown,
                From::Given(_) => Origin::Given,
                From::First | From::Glue => Origin::Glue,
            },
        })
    }

    fn labels(&self) -> u32 {
        self.chart.ways.len() as u32
    }
}

/// What the making of a forest keeps.
struct Export<'f, 'd> {
    found: &'f Found<'d>,
    builder: ForestBuilder,
    /// By group and entry.
    rules: FxHashMap<(u32, u32), u32>,
    words: FxHashMap<u32, u32>,
    ids: Ids,
}

impl Export<'_, '_> {
    fn edge(&mut self, label: u32, numbers: &[u32], collected: &mut Collected) {
        let found = self.found;
        let way = &found.chart.ways[label as usize];
        let bundle = &found.chart.bundles[way.bundle as usize];
        let known = self.rules.get(&(bundle.group, way.entry)).copied();
        let rule = known.unwrap_or_else(|| {
            found.rule_features(way, &self.ids, collected);
            let mut side = Vec::new();
            for &symbol in found.target(way) {
                side.push(match symbol {
                    Symbol::Gap(_) if found.is_first(bundle) => Side::Gap(0),
                    Symbol::Gap(number) => Side::Gap(usize::from(number) - 1),
                    Symbol::Word(word) => {
                        let builder = &mut self.builder;
                        let spell = || builder.word(found.sentence.target_word(word));
                        Side::Word(*self.words.entry(word).or_insert_with(spell))
                    }
                });
            }
            side.truncate(if found.is_first(bundle) { 1 } else { side.len() });
            let rule = self.builder.rule(collected.take(), side);
            self.rules.insert((bundle.group, way.entry), rule);
            rule
        });
        let number = |tail: u32| numbers.get(tail as usize).copied().unwrap_or(Edge::NONE);
        let mut tails = way.tails.map(number);
        if found.is_first(bundle) {
            tails = [tails[1], Edge::NONE];
        }
        let edge = Edge { tails, rule, label };
        let extras = &found.decoder.model.extras;
        if extras.place.is_empty() && extras.string.is_empty() {
            let lm = way.lm * found.decoder.model.dense.lm.1;
            return self.builder.edge(edge, [(self.ids.lm, lm)]);
        }
        found.own_features(way, &self.ids, collected);
        self.builder.edge(edge, collected.take());
    }
}

/// Ids of the features that every model has.
struct Ids {
    lm: u32,
    lm_unknown: u32,
    words: u32,
    glue: u32,
    unknown: u32,
    given: u32,
    arity: Option<[u32; 3]>,
    scores: Vec<u32>,
}

impl Ids {
    fn new(found: &Found<'_>, out: &mut Collected) -> Ids {
        let dense = &found.decoder.model.dense;
        Ids {
            lm: out.id(&dense.lm.0),
            lm_unknown: out.id(&dense.lm_unknown),
            scores: dense.scores.iter().map(|(name, _)| out.id(name)).collect(),
            words: out.id(&dense.words.0),
            glue: out.id(&dense.glue),
            unknown: out.id(&dense.unknown),
            given: out.id("given"),
            arity: dense.arity.as_ref().map(|names| names.each_ref().map(|name| out.id(name))),
        }
    }
}
