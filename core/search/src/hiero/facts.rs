//! What is known of the rules of a source side, whatever the weights are. Where weights change
//! often, it is kept, and new weights cost no more than their products.

use std::sync::Arc;

use tunesmith_lm::Ends;
use tunesmith_rules::{Node, Symbol};

use super::decoder::Weighted;
use super::model::Model;
use crate::ModelWords;
use crate::cache::{self, Held};
use crate::features::{Keyed, Rule};

/// Facts of the rules of a model that were asked for lately, for all decoders that share them.
pub type Kept = cache::Kept<Facts>;

/// The rules of one source side.
#[derive(Debug, Default)]
pub struct Facts {
    pub gaps: usize,
    pub list: Vec<Fact>,
    pub sides: Sides,
    /// The features that every model has for a rule of the table, so many for each; none for those
    /// that are not from there.
    scores: Vec<f32>,
    /// Keys and values of others.
    features: Vec<(u64, f32)>,
}

/// One rule.
#[derive(Debug, Clone, Copy)]
pub struct Fact {
    pub shape: Shape,
    words: u32,
    unknown: u32,
    /// What the language model's preliminary scores of words behind gaps lack to certainty.
    open: f32,
    /// Where its features end; they begin where those of the rule before it end.
    features: u32,
}

/// Words, a gap, words, another gap, words; none of them need be there.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The rule's place among those of the source side.
    pub place: u32,
    /// Decimal logarithm that the language model gives to its words by themselves.
    pub lm: f32,
    /// Whether the second gap comes first on the target side.
    pub swapped: bool,
    /// Where runs of words before, between and behind the gaps are, or [`NO_RUN`].
    runs: [u32; 3],
    /// The target side: a range of symbols.
    start: u32,
    end: u32,
}

const NO_RUN: u32 = u32::MAX;

/// The target sides of some rules; copies share them.
#[derive(Debug, Clone, Default)]
pub struct Sides {
    /// Ends of runs of words, packed.
    runs: Arc<[u32]>,
    symbols: Arc<[Symbol]>,
}

impl Sides {
    /// The run of words before (0), between (1) or behind (2) the gaps.
    #[inline]
    pub fn run(&self, shape: &Shape, number: usize) -> Option<Ends> {
        self.runs.get(shape.runs[number] as usize..).map(Ends::unpack)
    }

    pub fn target(&self, shape: &Shape) -> &[Symbol] {
        &self.symbols[shape.start as usize..shape.end as usize]
    }

    /// The same to be changed, for this copy.
    pub fn target_mut(&mut self, shape: &Shape) -> &mut [Symbol] {
        &mut Arc::make_mut(&mut self.symbols)[shape.start as usize..shape.end as usize]
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&self.runs[..]) + size_of_val(&self.symbols[..])
    }
}

impl Facts {
    /// The rules in the table.
    pub fn of_node(model: &Model, source: &[Symbol], node: Node) -> Facts {
        let mut building = Building::new(model);
        let entries = model.table.entries(node);
        let count = entries.size_hint().1.unwrap_or(0);
        building.facts.list.reserve_exact(count);
        building.facts.scores.reserve_exact(count * model.dense.scores.len());
        let words = ModelWords::new(&model.table, &model.lexicon);
        let (mut target, mut links) = (Vec::new(), Vec::new());
        for (place, entry) in entries.enumerate() {
            target.clear();
            target.extend(entry.target());
            let gaps = count_gaps(&target);
            // A damaged table must not lead out of bounds.
            let known = |symbol: &Symbol| match symbol {
                Symbol::Word(word) => (*word as usize) < model.table.target_words(),
                Symbol::Gap(gap) => (1..=gaps).contains(&usize::from(*gap)),
            };
            if gaps != count_gaps(source) || target.is_empty() || !target.iter().all(known) {
                continue;
            }
            links.clear();
            if !model.extras.rule.is_empty() {
                links.extend(entry.links());
            }
            let scores = entry.scores;
            let rule = Rule { source, target: &target, links: &links, scores, words: &words };
            building.add(&target, Some(&rule), place as u32, |word| model.lexicon.lm_id(word));
        }
        building.finish()
    }

    /// The only rule of a source side that is not in the table; without a `rule`, features do not
    /// look at it.
    pub fn alone(
        model: &Model,
        target: &[Symbol],
        rule: Option<&Rule<'_>>,
        lm_id: impl Fn(u32) -> u32,
    ) -> Facts {
        let mut building = Building::new(model);
        building.add(target, rule, 0, lm_id);
        building.finish()
    }

    /// The scores of all rules before their gaps are filled, `base` included, and what each may
    /// become when the words behind its gaps are in their context.
    pub fn scores(&self, weighted: &Weighted, base: f32) -> impl Iterator<Item = (f32, f32)> {
        let width = self.scores.len() / self.list.len().max(1);
        let mut start = 0;
        self.list.iter().enumerate().map(move |(number, fact)| {
            let columns = &self.scores[number * width..(number + 1) * width];
            let products =
                weighted.scores.iter().zip(columns).map(|(weight, value)| weight * value);
            let mut score: f32 = products.sum();
            let features = &self.features[start..fact.features as usize];
            start = fact.features as usize;
            score += weighted.named.total(features) as f32;
            score += base;
            let score = score
                + weighted.lm * fact.shape.lm
                + weighted.words * fact.words as f32
                + weighted.lm_unknown * fact.unknown as f32;
            (score, score + weighted.gain * fact.open)
        })
    }
}

impl Held for Facts {
    fn bytes(&self) -> usize {
        size_of::<Facts>()
            + size_of_val(&self.list[..])
            + self.sides.bytes()
            + size_of_val(&self.scores[..])
            + size_of_val(&self.features[..])
    }
}

/// Facts that are being gathered.
struct Building<'m> {
    model: &'m Model,
    facts: Facts,
    runs: Vec<u32>,
    symbols: Vec<Symbol>,
}

impl<'m> Building<'m> {
    fn new(model: &'m Model) -> Building<'m> {
        Building { model, facts: Facts::default(), runs: Vec::new(), symbols: Vec::new() }
    }

    fn add(
        &mut self,
        target: &[Symbol],
        rule: Option<&Rule<'_>>,
        place: u32,
        lm_id: impl Fn(u32) -> u32,
    ) {
        let (model, facts) = (self.model, &mut self.facts);
        if let Some(rule) = rule {
            if !rule.scores.is_empty() {
                let scores = model.dense.scores.iter().map(|(_, score)| score.of(rule.scores));
                facts.scores.extend(scores);
            }
            let mut keyed = Keyed::new(&mut facts.features);
            model.extras.rule.iter().for_each(|feature| feature.find(rule, &mut keyed));
        }
        let start = self.symbols.len() as u32;
        self.symbols.extend_from_slice(target);
        let (mut words, mut unknown, mut lm, mut open) = (0, 0, 0.0, 0.0);
        let mut runs = [NO_RUN; 3];
        let (mut gaps, mut swapped) = (0, false);
        let mut run = Ends::EMPTY;
        for (at, &symbol) in target.iter().enumerate() {
            match symbol {
                Symbol::Gap(number) => {
                    swapped |= gaps == 0 && number == 2;
                    gaps += 1;
                }
                Symbol::Word(word) => {
                    let word = lm_id(word);
                    words += 1;
                    unknown += u32::from(word == 0);
                    lm += model.lm.append(&mut run, word);
                }
            }
            let ends = !matches!(target.get(at + 1), Some(Symbol::Word(_)));
            if ends && !run.is_empty() {
                if gaps > 0 {
                    open -= run.preliminary();
                }
                runs[gaps.min(2)] = self.runs.len() as u32;
                run.pack(&mut self.runs);
                run = Ends::EMPTY;
            }
        }
        facts.gaps = gaps;
        let end = self.symbols.len() as u32;
        let shape = Shape { place, lm, swapped, runs, start, end };
        let features = facts.features.len() as u32;
        facts.list.push(Fact { shape, words, unknown, open, features });
    }

    fn finish(mut self) -> Facts {
        self.facts.features.shrink_to_fit();
        let sides = Sides { runs: self.runs.into(), symbols: self.symbols.into() };
        Facts { sides, ..self.facts }
    }
}

fn count_gaps(side: &[Symbol]) -> usize {
    side.iter().filter(|symbol| matches!(symbol, Symbol::Gap(_))).count()
}
