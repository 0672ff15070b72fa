//! What a search found: the best translation, and the forest of all.

use std::cell::RefCell;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tunesmith_space::{Edge, FeatureSum, Side, Skeleton, SkeletonBuilder};

use super::model::CLASSES;
use super::options::{Choice, Choices, From};
use super::search::{Graph, NONE, join, orientations};
use crate::features::{Collected, Extras, Neighbour, Orientation};
use crate::outcome::{Features, GivenUp, Origin, Outcome, Partial, Reached, Step};

/// The outcome for one sentence.
pub struct Found<'d> {
    pub(crate) choices: Choices<'d>,
    pub(crate) graph: Graph,
    given_up: Option<GivenUp>,
}

impl<'d> Found<'d> {
    pub(crate) fn new(choices: Choices<'d>, graph: Graph) -> Found<'d> {
        let given_up = graph.is_given_up.then_some(GivenUp::Work);
        Found { choices, graph, given_up }
    }

    pub(super) fn given_up(self, why: GivenUp) -> Found<'d> {
        Found { given_up: Some(why), ..self }
    }

    /// Phrases of the best translation, from left to right; empty if there is none.
    pub fn best(&self) -> Vec<u32> {
        let last = self.graph.goal.and_then(|goal| self.arcs(goal).next());
        last.map_or_else(Vec::new, |last| self.phrases(last))
    }

    /// Phrases of the best derivation that ends with an arc, from left to right.
    pub(super) fn phrases(&self, last: usize) -> Vec<u32> {
        let before = |&arc: &usize| self.arcs(self.graph.arcs[arc].from).next();
        let arcs = std::iter::successors(Some(last), before);
        let mut chosen: Vec<u32> = arcs.map(|arc| self.graph.arcs[arc].choice).collect();
        chosen.reverse();
        chosen
    }

    fn word(&self, word: u32) -> &str {
        self.choices.sentence.target_word(word)
    }

    /// How far a forced search came.
    pub fn reached(&self) -> Reached {
        let goal = self.graph.goal.map(|goal| &self.graph.nodes[goal as usize]);
        let (states, derivations) = self.counts();
        Reached {
            words: goal.map_or(0, |goal| goal.position) as usize,
            is_whole: self.graph.is_whole,
            states,
            derivations,
            given_up: self.given_up,
        }
    }

    /// Hypotheses of a forced search, and the ways to those that say the most.
    fn counts(&self) -> (usize, f64) {
        let graph = &self.graph;
        let most = graph.goal.map(|goal| graph.nodes[goal as usize].position);
        let mut ways = vec![0.0; graph.nodes.len()];
        let (mut states, mut derivations) = (0, 0.0);
        for &node in graph.stacks.iter().flat_map(|stack| &stack.nodes) {
            let to_it: f64 = self.arcs(node).map(|arc| ways[graph.arcs[arc].from as usize]).sum();
            let is_start = graph.nodes[node as usize].arc == NONE;
            ways[node as usize] = if is_start { 1.0 } else { to_it };
            states += usize::from(!is_start);
            if !is_start && Some(graph.nodes[node as usize].position) == most {
                derivations += to_it;
            }
        }
        (states, derivations)
    }

    /// The translations that end with some arcs.
    pub(super) fn partials(&self, arcs: &[usize], collected: &mut Collected) -> Vec<Partial> {
        let told = Told::new(self, collected);
        let (mut rests, mut sum) = (Rests::default(), FeatureSum::default());
        let one = |&arc: &usize| self.partial(arc, &told, &mut rests, collected, &mut sum);
        arcs.iter().map(one).collect()
    }

    /// The translation that ends with an arc.
    fn partial(
        &self,
        last: usize,
        told: &Told<'_, '_>,
        rests: &mut Rests,
        collected: &mut Collected,
        sum: &mut FeatureSum,
    ) -> Partial {
        let mut chain = Vec::new();
        let mut at = last;
        loop {
            let arc = self.graph.arcs[at];
            chain.push(arc.choice);
            told.rule(at as u32, collected);
            told.own(at as u32, collected);
            sum.extend(collected.take());
            at = match self.graph.nodes[arc.from as usize].arc {
                NONE => break,
                before => before as usize,
            };
        }
        let features = sum.total().to_vec();
        let arc = &self.graph.arcs[last];
        let choice = &self.choices.list[arc.choice as usize];
        let before = self.graph.nodes[arc.from as usize].cover;
        let span = usize::from(choice.start)..usize::from(choice.end);
        let rest = rests.entry((before, span)).or_insert_with_key(|(before, span)| {
            self.rest(*before, span.clone(), told, collected, sum)
        });
        let words = |choice: &u32| self.choices.target(&self.choices.list[*choice as usize]);
        Partial {
            covered: rest.covered.clone(),
            before: String::new(),
            text: self.joined(chain.iter().rev().flat_map(words)),
            after: rest.text.clone(),
            score: arc.score,
            estimate: arc.score + rest.score,
            features,
            future: rest.features.clone(),
        }
    }

    /// What is hoped for the words that neither a cover nor a span of the last phrase has.
    fn rest(
        &self,
        cover: u32,
        last: Range<usize>,
        told: &Told<'_, '_>,
        collected: &mut Collected,
        sum: &mut FeatureSum,
    ) -> Rest {
        let gaps =
            self.graph.covers.gaps(cover).into_iter().flat_map(|gap| {
                [gap.start..gap.end.min(last.start), gap.start.max(last.end)..gap.end]
            });
        let (mut spans, mut covered) = (Vec::new(), Vec::new());
        let (mut score, mut end) = (0.0, 0);
        for gap in gaps.filter(|gap| gap.start < gap.end) {
            score += self.choices.future.best(gap.start, gap.end);
            self.choices.future.phrases(gap.start, gap.end, &mut spans);
            if end < gap.start {
                covered.push(end..gap.start);
            }
            end = gap.end;
        }
        let words = self.graph.stacks.len() - 1;
        if end < words {
            covered.push(end..words);
        }
        let best =
            spans.into_iter().filter_map(|span| self.choices.of(span.start, span.end).first());
        let chosen: Vec<&Choice> = best.collect();
        for choice in &chosen {
            told.choice(choice, collected);
            if choice.length > 0 {
                let inner = self.choices.inner[choice.words as usize];
                collected.put(told.ids.lm, inner * std::f32::consts::LN_10);
            }
            sum.extend(collected.take());
        }
        let text = self.joined(chosen.into_iter().flat_map(|choice| self.choices.target(choice)));
        Rest { covered, text, score, features: sum.total().to_vec() }
    }

    fn joined<'w>(&self, words: impl Iterator<Item = &'w u32>) -> String {
        words.map(|&word| self.word(word)).collect::<Vec<_>>().join(" ")
    }

    /// Cells whose exact score was asked for.
    pub fn evaluated(&self) -> u64 {
        self.graph.evaluated
    }

    pub fn nodes(&self) -> usize {
        self.graph.nodes.len()
    }

    /// The best ways to a node, at most so many.
    pub(super) fn best_arcs(&self, node: u32, ways: usize) -> Vec<usize> {
        let mut arcs: Vec<usize> = self.arcs(node).collect();
        // The best comes first already; the others are in no order.
        if ways > 1 {
            let score = |arc: usize| self.graph.arcs[arc].score;
            arcs.sort_by(|&a, &b| score(b).total_cmp(&score(a)).then(a.cmp(&b)));
        }
        arcs.truncate(ways);
        arcs
    }

    pub(super) fn arcs(&self, node: u32) -> impl Iterator<Item = usize> + '_ {
        let first = self.graph.nodes[node as usize].arc;
        let known = |arc: u32| (arc != NONE).then_some(arc as usize);
        std::iter::successors(known(first), move |&arc| known(self.graph.arcs[arc].next))
    }
}

impl Outcome for Found<'_> {
    fn score(&self) -> Option<f64> {
        self.graph.goal.map(|goal| f64::from(self.graph.nodes[goal as usize].score))
    }

    fn text(&self) -> String {
        let words = |choice| self.choices.target(&self.choices.list[choice as usize]);
        self.joined(self.best().into_iter().flat_map(words))
    }

    fn skeleton(&self) -> (Skeleton, Vec<f64>) {
        let mut builder = SkeletonBuilder::default();
        let mut scores = Vec::new();
        let Some(goal) = self.graph.goal else { return (builder.finish(), scores) };
        // Nodes are numbered in the order of their stacks; what leads to the goal is marked.
        let mut wanted = vec![false; goal as usize + 1];
        wanted[goal as usize] = true;
        let (mut nodes, mut edges) = (0, 1);
        for node in (0..=goal).rev() {
            if !wanted[node as usize] {
                continue;
            }
            nodes += 1;
            for arc in self.arcs(node) {
                wanted[self.graph.arcs[arc].from as usize] = true;
                edges += 1;
            }
        }
        builder.reserve(nodes, edges);
        scores.reserve(edges);
        let mut rules = vec![NONE; self.choices.list.len()];
        let mut side = Vec::new();
        let mut spelled = FxHashMap::default();
        let mut numbers = vec![NONE; goal as usize + 1];
        for node in (0..=goal).filter(|&node| wanted[node as usize]) {
            numbers[node as usize] = builder.node();
            if self.graph.nodes[node as usize].arc == NONE {
                // Where every derivation begins.
                let rule = builder.rule([]);
                builder.edge(Edge { tails: [Edge::NONE; 2], rule, label: NONE });
                scores.push(0.0);
            }
            for number in self.arcs(node) {
                let arc = &self.graph.arcs[number];
                let rule = &mut rules[arc.choice as usize];
                if *rule == NONE {
                    side.push(Side::Gap(0));
                    let choice = &self.choices.list[arc.choice as usize];
                    for &word in self.choices.target(choice) {
                        let spell = || builder.word(self.word(word));
                        side.push(Side::Word(*spelled.entry(word).or_insert_with(spell)));
                    }
                    *rule = builder.rule(side.drain(..));
                }
                let tails = [numbers[arc.from as usize], Edge::NONE];
                builder.edge(Edge { tails, rule: *rule, label: number as u32 });
                let before = self.graph.nodes[arc.from as usize].score;
                scores.push(f64::from(arc.score) - f64::from(before));
            }
        }
        (builder.finish(), scores)
    }

    fn features<'f>(&'f self, collected: &mut Collected) -> Box<dyn Features + 'f> {
        Box::new(Told::new(self, collected))
    }

    fn step(&self, label: u32) -> Option<Step> {
        let arc = self.graph.arcs.get(label as usize)?;
        let choice = &self.choices.list[arc.choice as usize];
        let span = usize::from(choice.start)..usize::from(choice.end);
        let words = self.choices.target(choice);
        Some(Step {
            places: span.clone().map(Some).collect(),
            span,
            target: words.iter().map(|&word| self.word(word).to_owned()).collect(),
            links: self.choices.with_rule(choice, |rule| rule.links.to_vec()),
            origin: match self.choices.lists[choice.list as usize].from {
                From::Table(_) => Origin::Table,
                From::Unknown => Origin::Unknown,
                From::Given(_) => Origin::Given,
            },
        })
    }

    fn labels(&self) -> u32 {
        self.graph.arcs.len() as u32
    }

    fn bins(&self, ways: usize, collected: &mut Collected) -> Option<Vec<Vec<Partial>>> {
        let told = Told::new(self, collected);
        let (mut rests, mut sum) = (Rests::default(), FeatureSum::default());
        let bins = self.graph.stacks.iter().skip(1).map(|stack| {
            let mut bin: Vec<Partial> = Vec::new();
            for &node in &stack.nodes {
                for arc in self.best_arcs(node, ways) {
                    bin.push(self.partial(arc, &told, &mut rests, collected, &mut sum));
                }
            }
            bin.sort_by(|a, b| b.score.total_cmp(&a.score));
            bin
        });
        Some(bins.collect())
    }
}

/// What a partial translation leaves to the rest of the search.
struct Rest {
    covered: Vec<Range<usize>>,
    text: String,
    score: f32,
    features: Vec<(u32, f32)>,
}

/// By what was covered before the last phrase, and by its span.
type Rests = FxHashMap<(u32, Range<usize>), Rest>;

/// The features of arcs.
struct Told<'f, 'd> {
    found: &'f Found<'d>,
    ids: Ids,
    orders: RefCell<Orders>,
}

/// Sparse features of phrases that lie so to a neighbour: many arcs have the same.
#[derive(Default)]
struct Orders {
    /// Where those of a phrase, side and orientation are among the entries.
    places: FxHashMap<(u32, Neighbour, usize), Range<usize>>,
    entries: Vec<(u32, f32)>,
}

impl<'f, 'd> Told<'f, 'd> {
    fn new(found: &'f Found<'d>, collected: &mut Collected) -> Told<'f, 'd> {
        Told { found, ids: Ids::new(&found.choices, collected), orders: RefCell::default() }
    }

    /// Those of a phrase, whatever surrounds it.
    fn choice(&self, choice: &Choice, out: &mut Collected) {
        let (choices, ids) = (&self.found.choices, &self.ids);
        let model = &choices.decoder.model;
        let list = &choices.lists[choice.list as usize];
        out.put(ids.words, model.dense.words.1 * f32::from(choice.length));
        out.put(ids.phrases, model.dense.phrases.1);
        match list.from {
            From::Table(node) => {
                let entry = list.targets.list[choice.place as usize].entry;
                let columns = model.table.entries(node).scores(entry as usize);
                for (&id, (_, score)) in ids.scores.iter().zip(&model.dense.scores) {
                    out.put(id, columns.map_or(0.0, |columns| score.of(columns)));
                }
            }
            From::Unknown => out.put(ids.unknown, model.dense.unknown.1),
            From::Given(score) => ids.given.into_iter().for_each(|id| out.put(id, score)),
        }
        let Extras { rule, string, place, .. } = &model.extras;
        if rule.is_empty() && string.is_empty() && place.is_empty() {
            return;
        }
        choices.with_rule(choice, |found| {
            rule.iter().for_each(|feature| feature.find(found, out));
            for feature in string {
                feature.join(found.target, &[], found.words, out);
            }
            for feature in place {
                feature.find(found, &choices.sentence, list.span.clone(), &[], out);
            }
        });
    }
}

impl Features for Told<'_, '_> {
    fn rule(&self, label: u32, out: &mut Collected) {
        let Some(arc) = self.found.graph.arcs.get(label as usize) else { return };
        self.choice(&self.found.choices.list[arc.choice as usize], out);
    }

    fn own(&self, label: u32, out: &mut Collected) {
        let (choices, ids, graph) = (&self.found.choices, &self.ids, &self.found.graph);
        let Some(arc) = graph.arcs.get(label as usize) else { return };
        let model = &choices.decoder.model;
        let node = &graph.nodes[arc.from as usize];
        let choice = &choices.list[arc.choice as usize];
        let last = choices.list.get(node.last as usize);
        let blocks = model.dense.reordering.as_ref().is_some_and(|model| model.blocks);
        let lies = orientations(graph, blocks, node, choice);
        out.put(ids.lm, arc.lm * std::f32::consts::LN_10);
        let jump = usize::from(choice.start).abs_diff(usize::from(node.end));
        if jump > 0 {
            out.put(ids.distortion, -(jump as f32));
        }
        if !ids.reordering.is_empty() {
            out.put(ids.reordering[lies[0]], choices.orders(choice)[lies[0]]);
            if let Some(last) = last {
                let slot = CLASSES + lies[1];
                out.put(ids.reordering[slot], choices.orders(last)[slot]);
            }
        }
        let sides = Neighbour::ALL.into_iter().zip([arc.choice, node.last]).zip(lies);
        for ((side, number), lies) in sides.filter(|_| !model.extras.order.is_empty()) {
            let Some(phrase) = choices.list.get(number as usize) else { continue };
            let Orders { places, entries } = &mut *self.orders.borrow_mut();
            let place = places.entry((number, side, lies)).or_insert_with(|| {
                let start = entries.len();
                out.aside(entries, |out| {
                    choices.with_rule(phrase, |rule| {
                        for feature in &model.extras.order {
                            feature.find(rule, side, Orientation::SLOTS[lies], out);
                        }
                    });
                });
                start..entries.len()
            });
            entries[place.clone()].iter().for_each(|&(id, value)| out.put(id, value));
        }
        let width = model.extras.string.len();
        let states = &graph.strings[arc.from as usize * width..][..width];
        join(choices, states, choice, label >= graph.last, out, |_| {});
    }
}

/// Ids of the features that every model has.
struct Ids {
    lm: u32,
    words: u32,
    phrases: u32,
    unknown: u32,
    /// If anything was given.
    given: Option<u32>,
    distortion: u32,
    scores: Vec<u32>,
    /// By slot.
    reordering: Vec<u32>,
}

impl Ids {
    fn new(choices: &Choices<'_>, out: &mut Collected) -> Ids {
        let dense = &choices.decoder.model.dense;
        let reordering = dense.reordering.iter().flat_map(|model| {
            let ids: Vec<u32> = model.names.iter().map(|name| out.id(name)).collect();
            model.features.map(|feature| ids[feature])
        });
        let reordering = reordering.collect();
        Ids {
            lm: out.id(&dense.lm),
            scores: dense.scores.iter().map(|(name, _)| out.id(name)).collect(),
            words: out.id(&dense.words.0),
            phrases: out.id(&dense.phrases.0),
            unknown: out.id(&dense.unknown.0),
            distortion: out.id(&dense.distortion),
            reordering,
            given: (choices.lists.iter().any(|list| matches!(list.from, From::Given(_))))
                .then(|| out.id("given")),
        }
    }
}
