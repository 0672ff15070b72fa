//! What a search found: the best translation, and the forest of all.

use rustc_hash::FxHashMap;
use tunesmith_lm::Ends;
use tunesmith_rules::Symbol;
use tunesmith_space::{Edge, Side, Skeleton, SkeletonBuilder};

use super::bins;
use super::chart::{Chart, From, NONE, Way};
use super::decoder::Decoder;
use super::search::{ranges, source_side};
use crate::Sentence;
use crate::features::{Collected, OnString, Rule, Sink, Total};
use crate::outcome::{Features, Origin, Outcome, Partial, Step};

/// The outcome for one sentence.
pub struct Found<'d> {
    pub(super) decoder: &'d Decoder,
    pub(super) sentence: Sentence<'d>,
    pub(super) chart: Chart,
    /// The vertices of the whole sentence.
    pub(super) goal: Vec<u32>,
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
            let score = found.chart.vertices[vertex as usize].score + found.end_score(vertex);
            if score > found.best.1 {
                found.best = (vertex, score);
            }
        }
        found
    }

    /// What the language model gives for the end of the sentence.
    fn end(&self, ends: &Ends) -> f32 {
        let lm = &self.decoder.model.lm;
        lm.score(ends.right(), lm.end_id()).0.log10
    }

    /// What the end of the sentence adds to the score of a vertex.
    pub(super) fn end_score(&self, vertex: u32) -> f32 {
        self.end_score_of(&self.chart.vertices[vertex as usize].ends, self.strings(vertex))
    }

    /// What the end of the sentence adds to the score of a string, given by what matters of it.
    pub(super) fn end_score_of(&self, ends: &Ends, strings: &[u64]) -> f32 {
        let weighted = &self.decoder.weighted;
        let mut total = Total { weights: &weighted.named, sum: 0.0 };
        self.end_strings(strings, &mut total);
        weighted.lm * self.end(ends) + total.sum as f32
    }

    fn end_strings(&self, strings: &[u64], out: &mut dyn Sink) {
        for (feature, &state) in self.decoder.model.extras.string.iter().zip(strings) {
            feature.end(state, &self.sentence, out);
        }
    }

    /// The states of the string features of a vertex.
    pub(super) fn strings(&self, vertex: u32) -> &[u64] {
        let width = self.decoder.model.extras.string.len();
        self.chart.strings.get(vertex as usize * width..).map_or(&[], |states| &states[..width])
    }

    /// Finds the string features of a way over tails with these states; gives the states of the
    /// whole.
    pub(super) fn join(&self, way: &Way, tails: [&[u64]; 2], out: &mut dyn Sink) -> Vec<u64> {
        let gaps = self.chart.group(&self.chart.bundles[way.bundle as usize]).gaps;
        let mut join = |at: usize, feature: &dyn OnString| {
            let states = tails.map(|tail| tail.get(at).copied().unwrap_or(0));
            feature.join(self.target(way), &states[..gaps], &self.sentence, out)
        };
        let features = self.decoder.model.extras.string.iter().enumerate();
        features.map(|(at, feature)| join(at, &**feature)).collect()
    }

    pub(super) fn best_way(&self, vertex: u32) -> Option<&Way> {
        self.chart.ways.get(self.chart.vertices.get(vertex as usize)?.best as usize)
    }

    pub(super) fn target(&self, way: &Way) -> &[Symbol] {
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
                let place = self.chart.entry(way).shape.place as usize;
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

    fn skeleton(&self) -> (Skeleton, Vec<f64>) {
        let chart = &self.chart;
        let mut entries = 0;
        let mut groups = Vec::with_capacity(chart.groups.len());
        for (group, from) in &chart.groups {
            groups.push(Start { rules: entries, is_first: *from == From::First });
            entries += group.entries.len() as u32;
        }
        let mut export = Export {
            found: self,
            builder: SkeletonBuilder::default(),
            scores: Vec::new(),
            rules: vec![NONE; entries as usize],
            groups,
            words: FxHashMap::default(),
            side: Vec::new(),
        };
        let mut wanted = vec![false; chart.vertices.len()];
        self.goal.iter().for_each(|&vertex| wanted[vertex as usize] = true);
        for &vertex in chart.order.iter().rev() {
            if wanted[vertex as usize] {
                let tails = chart.ways_to(vertex).flat_map(|way| chart.ways[way as usize].tails);
                tails.filter(|&tail| tail != NONE).for_each(|tail| wanted[tail as usize] = true);
            }
        }
        let edges = chart.ways.len() + self.goal.len();
        export.builder.reserve(chart.order.len() + 1, edges);
        export.scores.reserve(edges);
        let mut numbers = vec![Edge::NONE; chart.vertices.len()];
        for &vertex in chart.order.iter().filter(|&&vertex| wanted[vertex as usize]) {
            if chart.vertices[vertex as usize].ways == NONE {
                continue;
            }
            numbers[vertex as usize] = export.builder.node();
            for number in chart.ways_to(vertex) {
                export.edge(number, &numbers);
            }
        }
        export.builder.node();
        for (label, &vertex) in (chart.ways.len() as u32..).zip(&self.goal) {
            let tail = numbers[vertex as usize];
            let rule = export.builder.rule((tail != Edge::NONE).then_some(Side::Gap(0)));
            export.builder.edge(Edge { tails: [tail, Edge::NONE], rule, label });
            export.scores.push(f64::from(self.end_score(vertex)));
        }
        (export.builder.finish(), export.scores)
    }

    fn features<'f>(&'f self, collected: &mut Collected) -> Box<dyn Features + 'f> {
        Box::new(Told::new(self, collected))
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
        (self.chart.ways.len() + self.goal.len()) as u32
    }

    fn bins(&self, ways: usize, collected: &mut Collected) -> Option<Vec<Vec<Partial>>> {
        Some(bins::bins(self, ways, collected))
    }
}

/// Where the rules of a group begin among all, and whether the beginning of the sentence is in
/// their first gap: it has no string.
#[derive(Clone, Copy)]
struct Start {
    rules: u32,
    is_first: bool,
}

/// What the making of a skeleton keeps.
struct Export<'f, 'd> {
    found: &'f Found<'d>,
    builder: SkeletonBuilder,
    scores: Vec<f64>,
    /// The rules of all groups, and where those of each begin.
    rules: Vec<u32>,
    groups: Vec<Start>,
    words: FxHashMap<u32, u32>,
    /// Room for a target side, empty between two of them.
    side: Vec<Side>,
}

impl Export<'_, '_> {
    #[inline]
    fn edge(&mut self, label: u32, numbers: &[u32]) {
        let way = &self.found.chart.ways[label as usize];
        let bundle = &self.found.chart.bundles[way.bundle as usize];
        let Start { rules, is_first } = self.groups[bundle.group as usize];
        let entry = (rules + way.entry) as usize;
        if self.rules[entry] == NONE {
            self.rules[entry] = self.rule(way, is_first);
        }
        let rule = self.rules[entry];
        let number = |tail: u32| numbers.get(tail as usize).copied().unwrap_or(Edge::NONE);
        let mut tails = way.tails.map(number);
        if is_first {
            tails = [tails[1], Edge::NONE];
        }
        self.builder.edge(Edge { tails, rule, label });
        self.scores.push(f64::from(way.own));
    }

    #[cold]
    fn rule(&mut self, way: &Way, is_first: bool) -> u32 {
        for &symbol in self.found.target(way) {
            self.side.push(match symbol {
                Symbol::Gap(_) if is_first => Side::Gap(0),
                Symbol::Gap(number) => Side::Gap(usize::from(number) - 1),
                Symbol::Word(word) => {
                    let spell = || self.builder.word(self.found.sentence.target_word(word));
                    Side::Word(*self.words.entry(word).or_insert_with(spell))
                }
            });
        }
        let length = if is_first { 1 } else { self.side.len() };
        self.builder.rule(self.side.drain(..).take(length))
    }
}

/// The features of ways, and of the end of the sentence.
pub(super) struct Told<'f, 'd> {
    found: &'f Found<'d>,
    ids: Ids,
}

impl<'f, 'd> Told<'f, 'd> {
    pub(super) fn new(found: &'f Found<'d>, collected: &mut Collected) -> Told<'f, 'd> {
        Told { found, ids: Ids::new(found, collected) }
    }

    /// Those of a way that are the same whatever its tails are.
    pub(super) fn alone(&self, label: u32, out: &mut Collected) {
        self.rule(label, out);
        let Some(way) = self.found.chart.ways.get(label as usize) else { return };
        if self.is_from_table(way) {
            self.place(way, out);
        }
    }

    /// The others: those of the language model, whose decimal logarithm is given, and of strings,
    /// over tails with these states. Gives the states of the whole.
    pub(super) fn over(
        &self,
        way: &Way,
        lm: f32,
        tails: [&[u64]; 2],
        out: &mut Collected,
    ) -> Vec<u64> {
        out.put(self.ids.lm, lm * self.found.decoder.model.dense.lm.1);
        self.found.join(way, tails, out)
    }

    /// Those of the end of the sentence behind a string, given by what matters of it.
    pub(super) fn end(&self, ends: &Ends, strings: &[u64], out: &mut Collected) {
        out.put(self.ids.lm, self.found.end(ends) * self.found.decoder.model.dense.lm.1);
        self.found.end_strings(strings, out);
    }

    fn is_from_table(&self, way: &Way) -> bool {
        let chart = &self.found.chart;
        matches!(chart.from(&chart.bundles[way.bundle as usize]), From::Table(_))
    }

    fn place(&self, way: &Way, out: &mut Collected) {
        let found = self.found;
        if found.decoder.model.extras.place.is_empty() {
            return;
        }
        let (span, gaps) = ranges(&found.chart.bundles[way.bundle as usize]);
        found.with_rule(way, |rule| {
            for feature in &found.decoder.model.extras.place {
                feature.find(rule, &found.sentence, span.clone(), &gaps, out);
            }
        });
    }
}

impl Features for Told<'_, '_> {
    fn rule(&self, label: u32, out: &mut Collected) {
        let (found, ids) = (self.found, &self.ids);
        let Some(way) = found.chart.ways.get(label as usize) else { return };
        let model = &found.decoder.model;
        let dense = &model.dense;
        let bundle = &found.chart.bundles[way.bundle as usize];
        match found.chart.from(bundle) {
            From::First => return,
            From::Glue => return out.put(ids.glue, 1.0),
            From::PassThrough => out.put(ids.unknown, 1.0),
            From::Given(score) => ids.given.into_iter().for_each(|id| out.put(id, score)),
            From::Table(node) => {
                if let Some(arity) = &ids.arity {
                    out.put(arity[found.chart.group(bundle).gaps], 1.0);
                }
                let place = found.chart.entry(way).shape.place as usize;
                let columns = model.table.entries(node).scores(place);
                for (&id, (_, score)) in ids.scores.iter().zip(&dense.scores) {
                    out.put(id, columns.map_or(0.0, |columns| score.of(columns)));
                }
            }
        }
        let (mut words, mut unknown) = (0, 0);
        for &symbol in found.target(way) {
            if let Symbol::Word(word) = symbol {
                words += 1;
                unknown += u32::from(found.sentence.lm_id(word) == 0);
            }
        }
        out.put(ids.words, dense.words.1 * words as f32);
        out.put(ids.lm_unknown, unknown as f32);
        if !model.extras.rule.is_empty() {
            found.with_rule(way, |rule| {
                model.extras.rule.iter().for_each(|feature| feature.find(rule, out));
            });
        }
        if !matches!(found.chart.from(bundle), From::Table(_)) {
            self.place(way, out);
        }
    }

    fn own(&self, label: u32, out: &mut Collected) {
        let found = self.found;
        let Some(way) = found.chart.ways.get(label as usize) else {
            let goal = (label as usize).checked_sub(found.chart.ways.len());
            if let Some(&vertex) = goal.and_then(|goal| found.goal.get(goal)) {
                let ends = &found.chart.vertices[vertex as usize].ends;
                self.end(ends, found.strings(vertex), out);
            }
            return;
        };
        if self.is_from_table(way) {
            self.place(way, out);
        }
        self.over(way, way.lm, way.tails.map(|tail| found.strings(tail)), out);
    }
}

/// Ids of the features that every model has.
struct Ids {
    lm: u32,
    lm_unknown: u32,
    words: u32,
    glue: u32,
    unknown: u32,
    /// If anything was given.
    given: Option<u32>,
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
            given: (found.chart.groups.iter().any(|(_, from)| matches!(from, From::Given(_))))
                .then(|| out.id("given")),
            arity: dense.arity.as_ref().map(|names| names.each_ref().map(|name| out.id(name))),
        }
    }
}
