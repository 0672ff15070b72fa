//! The translations of a source phrase under some weights: scored and sorted once, kept for all
//! sentences.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use tunesmith_align::Link;
use tunesmith_lm::State;
use tunesmith_rules::{Entry, Node, Symbol};

use super::decoder::Weighted;
use super::model::Model;
use crate::cache::Held;
use crate::features::{Neighbour, Orientation, Rule, Total, TotalOfRule};
use crate::{ModelWords, Score, Spell};

/// One translation of a source phrase.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its place among the entries of the source phrase.
    pub entry: u32,
    /// Words: a range of [`Targets::words`] and [`Targets::inner`].
    pub start: u32,
    pub length: u32,
    /// Links between the words of the two sides: a range of [`Targets::links`].
    links: (u32, u32),
    /// All that does not depend on what surrounds it.
    pub score: f32,
    /// `score` and what the language model says of the words by themselves.
    pub estimate: f32,
    /// States of the features of the string, of the words by themselves.
    pub strings: Box<[u64]>,
    pub orders: Orders,
    /// The language model's state after the words by themselves.
    pub state: State,
}

/// What orientations are worth.
#[derive(Debug, Clone, Copy, Default)]
pub struct Orders {
    /// By orientation to the previous phrase.
    pub previous: [f32; 3],
    /// By orientation to the next phrase.
    pub next: [f32; 3],
    /// The columns of the table behind both, before they are weighted.
    pub raw: [f32; 6],
    /// Equal for phrases whose features of the next phrase's orientation are equal, whatever the
    /// weights.
    pub class: u64,
}

impl Orders {
    fn new(model: &Model, weighted: &Weighted, rule: &Rule<'_>) -> Orders {
        let mut orders = Orders::default();
        let mut class = FxHasher::default();
        if let (Some(reordering), false) = (&model.dense.reordering, rule.scores.is_empty()) {
            for (number, &column) in reordering.columns.iter().enumerate() {
                orders.raw[number] = Score::Log(column).of(rule.scores);
                let side = if number < 3 { &mut orders.previous } else { &mut orders.next };
                side[number % 3] = weighted.reordering[number] * orders.raw[number];
                if number >= 3 {
                    rule.scores[column].to_bits().hash(&mut class);
                }
            }
        }
        if !model.extras.order.is_empty() {
            let mut total = TotalOfRule::new(&weighted.named);
            let sides = [&mut orders.previous, &mut orders.next];
            for (side, row) in Neighbour::ALL.into_iter().zip(sides) {
                for (lies, order) in Orientation::ALL.into_iter().zip(row) {
                    model.extras.order.iter().for_each(|f| f.find(rule, side, lies, &mut total));
                    *order += total.take() as f32;
                }
            }
            (rule.source, rule.target).hash(&mut class);
        }
        orders.class = class.finish();
        orders
    }
}

/// The best translations of a source phrase, best estimate first.
#[derive(Debug, Default)]
pub struct Targets {
    pub list: Vec<Target>,
    /// Ids of the table.
    pub words: Vec<u32>,
    /// The same as ids of the language model.
    pub lm: Vec<u32>,
    /// For each word the language model's score (to base ten) of it and those behind it, nothing
    /// known of what comes before.
    pub inner: Vec<f32>,
    links: Vec<Link>,
}

impl Targets {
    /// The best `limit` translations in the table (all if 0) whose words are `wanted`.
    pub fn of_node(
        model: &Model,
        weighted: &Weighted,
        source: &[Symbol],
        node: Node,
        limit: usize,
        wanted: impl Fn(&[u32]) -> bool,
    ) -> Targets {
        let mut targets = Targets::default();
        targets.list.reserve(model.table.entries(node).size_hint().1.unwrap_or(0));
        let words = ModelWords::new(&model.table, &model.lexicon);
        let mut shown = Shown::default();
        let mut ids = Vec::new();
        for (place, entry) in model.table.entries(node).enumerate() {
            let rule = shown.rule(source, &entry, &words);
            ids.clear();
            ids.extend(words_of(rule.target));
            if wanted(&ids) {
                targets.add(model, weighted, &rule, place as u32, |word| model.lexicon.lm_id(word));
            }
        }
        targets.keep(limit);
        // Only now, and not for the many that were left out.
        let mut places: Vec<(u32, usize)> =
            targets.list.iter().enumerate().map(|(place, target)| (target.entry, place)).collect();
        places.sort_unstable_by(|a, b| b.cmp(a));
        for (number, entry) in model.table.entries(node).enumerate() {
            if let Some((_, place)) = places.pop_if(|next| next.0 == number as u32) {
                let rule = shown.rule(source, &entry, &words);
                targets.list[place].orders = Orders::new(model, weighted, &rule);
            }
        }
        targets
    }

    /// The only translation of a source phrase that is not in the table.
    pub fn alone(
        model: &Model,
        weighted: &Weighted,
        rule: &Rule<'_>,
        lm_id: impl Fn(u32) -> u32,
    ) -> Targets {
        let mut targets = Targets::default();
        targets.add(model, weighted, rule, 0, lm_id);
        targets.list[0].orders = Orders::new(model, weighted, rule);
        targets
    }

    /// Adds a translation, its orientations left out.
    fn add(
        &mut self,
        model: &Model,
        weighted: &Weighted,
        rule: &Rule<'_>,
        entry: u32,
        lm_id: impl Fn(u32) -> u32,
    ) {
        let start = self.words.len();
        self.words.extend(words_of(rule.target));
        let length = self.words.len() - start;
        let mut state = State::EMPTY;
        self.lm.extend(self.words[start..].iter().map(|&word| lm_id(word)));
        for &word in &self.lm[start..] {
            let (scored, next) = model.lm.score(&state, word);
            self.inner.push(scored.log10);
            state = next;
        }
        for at in (start + 1..start + length).rev() {
            self.inner[at - 1] += self.inner[at];
        }
        let mut total = Total { weights: &weighted.named, sum: 0.0 };
        model.extras.rule.iter().for_each(|feature| feature.find(rule, &mut total));
        let strings = model.extras.string.iter();
        let strings =
            strings.map(|feature| feature.join(rule.target, &[], rule.words, &mut total)).collect();
        let mut score = total.sum as f32 + weighted.phrase + weighted.word * length as f32;
        if !rule.scores.is_empty() {
            for (&weight, (_, column)) in weighted.scores.iter().zip(&model.dense.scores) {
                if weight != 0.0 {
                    score += weight * column.of(rule.scores);
                }
            }
        }
        let inner = if length == 0 { 0.0 } else { self.inner[start] };
        let links = self.links.len() as u32;
        self.links.extend_from_slice(rule.links);
        self.list.push(Target {
            entry,
            start: start as u32,
            length: length as u32,
            links: (links, self.links.len() as u32),
            score,
            estimate: score + weighted.lm * inner,
            strings,
            orders: Orders::default(),
            state,
        });
    }

    /// Sorts, keeps the best `limit` (all if 0) and forgets the words of the others.
    fn keep(&mut self, limit: usize) {
        self.list.sort_by(|a, b| b.estimate.total_cmp(&a.estimate).then(a.entry.cmp(&b.entry)));
        if limit > 0 {
            self.list.truncate(limit);
        }
        let old = std::mem::take(self);
        for mut target in old.list {
            let range = target.start as usize..(target.start + target.length) as usize;
            target.start = self.words.len() as u32;
            self.words.extend_from_slice(&old.words[range.clone()]);
            self.lm.extend_from_slice(&old.lm[range.clone()]);
            self.inner.extend_from_slice(&old.inner[range]);
            let links = target.links.0 as usize..target.links.1 as usize;
            target.links.0 = self.links.len() as u32;
            self.links.extend_from_slice(&old.links[links]);
            target.links.1 = self.links.len() as u32;
            self.list.push(target);
        }
    }

    pub fn words(&self, target: &Target) -> &[u32] {
        &self.words[target.start as usize..][..target.length as usize]
    }

    pub fn links(&self, target: &Target) -> &[Link] {
        &self.links[target.links.0 as usize..target.links.1 as usize]
    }
}

/// Room for a rule of the table.
#[derive(Default)]
struct Shown {
    target: Vec<Symbol>,
    links: Vec<Link>,
}

impl Shown {
    fn rule<'a>(
        &'a mut self,
        source: &'a [Symbol],
        entry: &Entry<'a>,
        words: &'a dyn Spell,
    ) -> Rule<'a> {
        self.target.clear();
        self.target.extend(entry.target());
        self.links.clear();
        self.links.extend(entry.links());
        Rule { source, target: &self.target, links: &self.links, scores: entry.scores, words }
    }
}

fn words_of(side: &[Symbol]) -> impl Iterator<Item = u32> + '_ {
    side.iter().filter_map(|&symbol| match symbol {
        Symbol::Word(word) => Some(word),
        Symbol::Gap(_) => None,
    })
}

impl Held for Targets {
    fn bytes(&self) -> usize {
        let strings: usize = self.list.iter().map(|target| size_of_val(&*target.strings)).sum();
        size_of::<Targets>()
            + self.list.capacity() * size_of::<Target>()
            + (self.words.capacity() + self.lm.capacity() + self.inner.capacity()) * 4
            + self.links.capacity() * size_of::<Link>()
            + strings
    }
}
