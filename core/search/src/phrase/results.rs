//! What a search found: the best translation, and the forest of all.

use tunesmith_space::{Edge, FeatureSum, Forest, ForestBuilder, Side};

use super::options::{Choice, Choices, From};
use super::search::{Arc, Graph, NONE, join, orientations};
use crate::features::{Collected, Neighbour, Orientation};
use crate::outcome::{Origin, Outcome, Partial, Step};

/// The outcome for one sentence.
pub struct Found<'d> {
    pub(crate) choices: Choices<'d>,
    pub(crate) graph: Graph,
}

impl<'d> Found<'d> {
    pub(crate) fn new(choices: Choices<'d>, graph: Graph) -> Found<'d> {
        Found { choices, graph }
    }

    /// Phrases of the best translation, from left to right; empty if there is none.
    pub fn best(&self) -> Vec<u32> {
        let mut chosen = Vec::new();
        let mut node = self.graph.goal;
        while let Some(at) = node {
            let arc = self.graph.nodes[at as usize].arc;
            if arc == NONE {
                break;
            }
            let arc = self.graph.arcs[arc as usize];
            chosen.push(arc.choice);
            node = Some(arc.from);
        }
        chosen.reverse();
        chosen
    }

    fn word(&self, word: u32) -> &str {
        self.choices.sentence.target_word(word)
    }

    /// How many words of the reference were reached, from its beginning, by a forced search.
    pub fn prefix(&self) -> usize {
        let nodes = self.graph.stacks.iter().flat_map(|stack| &stack.nodes);
        let reached = nodes.map(|&node| self.graph.nodes[node as usize].position);
        reached.max().unwrap_or(0) as usize
    }

    fn partial(
        &self,
        last: usize,
        complete: bool,
        ids: &Ids,
        collected: &mut Collected,
        sum: &mut FeatureSum,
    ) -> Partial {
        let mut chain = Vec::new();
        let mut own = Vec::new();
        let mut at = last;
        loop {
            let arc = self.graph.arcs[at];
            let choice = &self.choices.list[arc.choice as usize];
            chain.push(arc.choice);
            self.rule_features(choice, ids, collected);
            collected.take().into_iter().for_each(|(id, value)| sum.add_one(id, value));
            self.own_features(&arc, complete && at == last, ids, collected, &mut own);
            own.iter().for_each(|&(id, value)| sum.add_one(id, value));
            at = match self.graph.nodes[arc.from as usize].arc {
                NONE => break,
                before => before as usize,
            };
        }
        chain.reverse();
        let arc = &self.graph.arcs[last];
        let choice = &self.choices.list[arc.choice as usize];
        let before = self.graph.nodes[arc.from as usize].cover;
        let gaps = self.graph.covers.gaps(before).into_iter().flat_map(|gap| {
            // What is left after the last phrase.
            let taken = usize::from(choice.start)..usize::from(choice.end);
            [gap.start..gap.end.min(taken.start), gap.start.max(taken.end)..gap.end]
        });
        let mut spans = Vec::new();
        let mut future = 0.0;
        for gap in gaps.filter(|gap| gap.start < gap.end) {
            future += self.choices.future.best(gap.start, gap.end);
            self.choices.future.phrases(gap.start, gap.end, &mut spans);
        }
        let rest = spans.into_iter().flat_map(|span| {
            let best = self.choices.of(span.start, span.end).first();
            best.map_or(&[][..], |choice| self.choices.target(choice))
        });
        let words = |choice: &u32| self.choices.target(&self.choices.list[*choice as usize]);
        Partial {
            text: self.joined(chain.iter().flat_map(words)),
            rest: self.joined(rest),
            score: arc.score,
            estimate: arc.score + future,
            features: sum.total().to_vec(),
        }
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

    fn arcs(&self, node: u32) -> impl Iterator<Item = usize> + '_ {
        let first = self.graph.nodes[node as usize].arc;
        let known = |arc: u32| (arc != NONE).then_some(arc as usize);
        std::iter::successors(known(first), move |&arc| known(self.graph.arcs[arc].next))
    }

    fn rule_features(&self, choice: &Choice, ids: &Ids, out: &mut Collected) {
        let model = &self.choices.decoder.model;
        let list = &self.choices.lists[choice.list as usize];
        out.put(ids.words, model.dense.words.1 * f32::from(choice.length));
        out.put(ids.phrases, model.dense.phrases.1);
        match list.from {
            From::Table(_) => {}
            From::Unknown => out.put(ids.unknown, model.dense.unknown.1),
            From::Given(score) => out.put(ids.given, score),
        }
        self.choices.with_rule(choice, |rule| {
            if !rule.scores.is_empty() {
                for (&id, (_, score)) in ids.scores.iter().zip(&model.dense.scores) {
                    out.put(id, score.of(rule.scores));
                }
            }
            model.extras.rule.iter().for_each(|feature| feature.find(rule, out));
            for feature in &model.extras.string {
                feature.join(rule.target, &[], rule.words, out);
            }
            for feature in &model.extras.place {
                feature.find(rule, &self.choices.sentence, list.span.clone(), &[], out);
            }
        });
    }

    /// What a phrase adds behind a node: ids in ascending order but for those of extra features.
    fn own_features(
        &self,
        arc: &Arc,
        complete: bool,
        ids: &Ids,
        collected: &mut Collected,
        out: &mut Vec<(u32, f32)>,
    ) {
        let model = &self.choices.decoder.model;
        let node = &self.graph.nodes[arc.from as usize];
        let choice = &self.choices.list[arc.choice as usize];
        let last = self.choices.list.get(node.last as usize);
        let blocks = model.dense.reordering.as_ref().is_some_and(|model| model.blocks);
        let lies = orientations(&self.graph, blocks, node, choice);
        out.clear();
        out.push((ids.lm, arc.lm * std::f32::consts::LN_10));
        let jump = usize::from(choice.start).abs_diff(usize::from(node.end));
        if jump > 0 {
            out.push((ids.distortion, -(jump as f32)));
        }
        if !ids.reordering.is_empty() {
            out.push((ids.reordering[lies[0]], self.choices.orders(choice)[lies[0]]));
            if let Some(last) = last {
                out.push((ids.reordering[3 + lies[1]], self.choices.orders(last)[3 + lies[1]]));
            }
        }
        if model.extras.order.is_empty() && model.extras.string.is_empty() {
            return;
        }
        let phrases = [Some(choice), last];
        for ((side, phrase), lies) in Neighbour::ALL.into_iter().zip(phrases).zip(lies) {
            let Some(phrase) = phrase else { continue };
            self.choices.with_rule(phrase, |rule| {
                for feature in &model.extras.order {
                    feature.find(rule, side, Orientation::ALL[lies], collected);
                }
            });
        }
        let width = model.extras.string.len();
        let states = &self.graph.strings[arc.from as usize * width..][..width];
        join(&self.choices, states, choice, complete, collected, |_| {});
        out.extend(collected.take());
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

    fn forest(&self, collected: &mut Collected) -> Forest {
        let mut builder = ForestBuilder::default();
        let Some(goal) = self.graph.goal else { return builder.finish() };
        // Nodes are numbered in the order of their stacks; what leads to the goal is marked.
        let mut wanted = vec![false; goal as usize + 1];
        wanted[goal as usize] = true;
        for node in (0..=goal).rev() {
            if wanted[node as usize] {
                self.arcs(node).for_each(|arc| wanted[self.graph.arcs[arc].from as usize] = true);
            }
        }
        let ids = Ids::new(&self.choices, collected);
        let mut rules = vec![NONE; self.choices.list.len()];
        let mut spelled = rustc_hash::FxHashMap::default();
        let mut numbers = vec![NONE; goal as usize + 1];
        let mut own = Vec::new();
        for node in (0..=goal).filter(|&node| wanted[node as usize]) {
            numbers[node as usize] = builder.node();
            if self.graph.nodes[node as usize].arc == NONE {
                // Where every derivation begins.
                let rule = builder.rule([], []);
                builder.edge(Edge { tails: [Edge::NONE; 2], rule, label: NONE }, []);
            }
            for arc in self.arcs(node) {
                let arc = self.graph.arcs[arc];
                let choice = &self.choices.list[arc.choice as usize];
                if rules[arc.choice as usize] == NONE {
                    let mut side = vec![Side::Gap(0)];
                    for &word in self.choices.target(choice) {
                        let spell = || builder.word(self.word(word));
                        side.push(Side::Word(*spelled.entry(word).or_insert_with(spell)));
                    }
                    self.rule_features(choice, &ids, collected);
                    rules[arc.choice as usize] = builder.rule(collected.take(), side);
                }
                self.own_features(&arc, node == goal, &ids, collected, &mut own);
                let edge = Edge {
                    tails: [numbers[arc.from as usize], Edge::NONE],
                    rule: rules[arc.choice as usize],
                    label: arc.choice,
                };
                builder.edge(edge, own.iter().copied());
            }
        }
        builder.finish()
    }

    fn step(&self, label: u32) -> Option<Step> {
        let choice = self.choices.list.get(label as usize)?;
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
        self.choices.list.len() as u32
    }

    fn bins(&self, collected: &mut Collected) -> Option<Vec<Vec<Partial>>> {
        let ids = Ids::new(&self.choices, collected);
        let mut sum = FeatureSum::default();
        let mut made = Vec::new();
        for (covered, stack) in self.graph.stacks.iter().enumerate().skip(1) {
            let complete = covered == self.graph.stacks.len() - 1;
            let mut bin: Vec<Partial> = Vec::new();
            for &node in &stack.nodes {
                let arcs: Vec<usize> = match complete {
                    true => self.arcs(node).collect(),
                    false => vec![self.graph.nodes[node as usize].arc as usize],
                };
                for arc in arcs {
                    bin.push(self.partial(arc, complete, &ids, collected, &mut sum));
                }
            }
            bin.sort_by(|a, b| b.estimate.total_cmp(&a.estimate));
            made.push(bin);
        }
        Some(made)
    }
}

/// Ids of the features that every model has.
struct Ids {
    lm: u32,
    words: u32,
    phrases: u32,
    unknown: u32,
    given: u32,
    distortion: u32,
    scores: Vec<u32>,
    reordering: Vec<u32>,
}

impl Ids {
    fn new(choices: &Choices<'_>, out: &mut Collected) -> Ids {
        let dense = &choices.decoder.model.dense;
        let reordering = dense.reordering.iter().flat_map(|model| &model.names);
        Ids {
            lm: out.id(&dense.lm),
            scores: dense.scores.iter().map(|(name, _)| out.id(name)).collect(),
            words: out.id(&dense.words.0),
            phrases: out.id(&dense.phrases.0),
            unknown: out.id(&dense.unknown.0),
            distortion: out.id(&dense.distortion),
            reordering: reordering.map(|name| out.id(name)).collect(),
            given: out.id("given"),
        }
    }
}
