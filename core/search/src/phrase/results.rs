//! What a search found: the best translation, and the forest of all.

use tunesmith_space::{Edge, Forest, ForestBuilder, Side};

use super::model::Score;
use super::options::{Choice, Choices, From};
use super::search::{Graph, NONE, join, orientation};
use crate::features::{Collected, Neighbour, Orientation};
use crate::outcome::{Origin, Outcome, Step};

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
            for feature in &model.extras.place {
                feature.find(rule, &self.choices.sentence, list.span.clone(), &[], out);
            }
        });
    }

    fn own_features(
        &self,
        from: u32,
        lm: f32,
        choice: &Choice,
        complete: bool,
        ids: &Ids,
        out: &mut Collected,
    ) {
        let model = &self.choices.decoder.model;
        let node = &self.graph.nodes[from as usize];
        out.put(ids.lm, lm * std::f32::consts::LN_10);
        let jump = usize::from(choice.start).abs_diff(usize::from(node.end));
        if jump > 0 {
            out.put(ids.distortion, -(jump as f32));
        }
        let lies = orientation(node, choice);
        for (side, phrase) in [(0, Some(choice)), (1, self.choices.list.get(node.last as usize))] {
            let Some(phrase) = phrase else { continue };
            self.choices.with_rule(phrase, |rule| {
                if let (Some(reordering), false) = (&model.dense.reordering, rule.scores.is_empty())
                {
                    let number = 3 * side + lies;
                    let score = Score::Log(reordering.columns[number]);
                    out.put(ids.reordering[number], score.of(rule.scores));
                }
                for feature in &model.extras.order {
                    feature.find(rule, Neighbour::ALL[side], Orientation::ALL[lies], out);
                }
            });
        }
        let width = model.extras.string.len();
        if width > 0 {
            let states = &self.graph.strings[from as usize * width..][..width];
            join(&self.choices, states, choice, complete, out, |_| {});
        }
    }
}

impl Outcome for Found<'_> {
    fn score(&self) -> Option<f64> {
        self.graph.goal.map(|goal| f64::from(self.graph.nodes[goal as usize].score))
    }

    fn text(&self) -> String {
        let words = self.best().into_iter().flat_map(|choice| {
            self.choices.target(&self.choices.list[choice as usize]).iter().copied()
        });
        words.map(|word| self.word(word)).collect::<Vec<_>>().join(" ")
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
                self.own_features(arc.from, arc.lm, choice, node == goal, &ids, collected);
                let edge = Edge {
                    tails: [numbers[arc.from as usize], Edge::NONE],
                    rule: rules[arc.choice as usize],
                    label: arc.choice,
                };
                builder.edge(edge, collected.take());
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
