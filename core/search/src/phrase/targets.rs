//! The translations of a source phrase under some weights: scored and sorted once, kept for all
//! sentences.

use tunesmith_align::Link;
use tunesmith_lm::State;
use tunesmith_rules::Symbol;

use super::decoder::Weighted;
use super::facts::Facts;
use super::model::{CLASSES, Model, SLOTS};
use crate::Spell;
use crate::cache::Held as Kept;
use crate::words::Held;

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
    pub previous: [f32; CLASSES],
    /// By orientation to the next phrase.
    pub next: [f32; CLASSES],
    /// The columns of the table behind both, before they are weighted.
    pub raw: [f32; SLOTS],
    /// Equal for phrases whose features of the next phrase's orientation are equal, whatever the
    /// weights.
    pub class: u64,
}

/// The best translations of a source phrase, best estimate first.
#[derive(Debug, Clone, Default)]
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
    /// The best `limit` translations (all if 0) of those that are known. `columns` are those of an
    /// entry of the table.
    pub fn new<'t>(
        facts: &Facts,
        model: &Model,
        weighted: &Weighted,
        source: &[Symbol],
        words: &dyn Spell,
        limit: usize,
        columns: impl Fn(u32) -> &'t [f32],
    ) -> Targets {
        let scored = |place: usize| {
            let (score, estimate) = facts.score(weighted, place);
            (estimate, place, score)
        };
        let mut best: Vec<(f32, usize, f32)> = (0..facts.list.len()).map(scored).collect();
        let order =
            |a: &(f32, usize, f32), b: &(f32, usize, f32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if limit > 0 && best.len() > limit {
            best.select_nth_unstable_by(limit, order);
            best.truncate(limit);
        }
        best.sort_unstable_by(order);
        let length = best.iter().map(|&(_, place, _)| facts.words(place).len()).sum();
        let mut targets = Targets {
            list: Vec::with_capacity(best.len()),
            words: Vec::with_capacity(length),
            lm: Vec::with_capacity(length),
            inner: Vec::with_capacity(length),
            links: Vec::with_capacity(best.iter().map(|&(_, at, _)| facts.links(at).len()).sum()),
        };
        for (estimate, place, score) in best {
            let fact = &facts.list[place];
            let orders = facts.orders(model, source, columns(fact.entry), words, place);
            let range = facts.words(place);
            let (start, links) = (targets.words.len() as u32, targets.links.len() as u32);
            targets.words.extend_from_slice(&facts.words[range.clone()]);
            targets.lm.extend_from_slice(&facts.lm[range.clone()]);
            targets.inner.extend_from_slice(&facts.inner[range.clone()]);
            targets.links.extend_from_slice(&facts.links[facts.links(place)]);
            let [previous, next] = orders.weighted(weighted);
            targets.list.push(Target {
                entry: fact.entry,
                start,
                length: range.len() as u32,
                links: (links, targets.links.len() as u32),
                score,
                estimate,
                strings: facts.strings(model, place).into(),
                orders: Orders { previous, next, raw: orders.raw, class: orders.class },
                state: fact.state,
            });
        }
        targets
    }

    /// The same with entities where placeholders of the source phrase, which begins at `start`, are
    /// translated; without translations that lose one.
    pub fn holding<'h>(&self, held: impl Iterator<Item = &'h Held> + Clone, start: usize) -> Self {
        let mut kept = self.clone();
        kept.list.retain(|target| {
            let range = target.start as usize..(target.start + target.length) as usize;
            held.clone().all(|held| {
                let words = kept.words[range.clone()].iter();
                let side: Vec<Symbol> = words.map(|&word| Symbol::Word(word)).collect();
                let found = held.find(held.at - start, self.links(target), &side);
                found.map(|at| kept.words[range.start + at] = held.entity).is_some()
            })
        });
        kept
    }

    pub fn words(&self, target: &Target) -> &[u32] {
        &self.words[target.start as usize..][..target.length as usize]
    }

    pub fn links(&self, target: &Target) -> &[Link] {
        &self.links[target.links.0 as usize..target.links.1 as usize]
    }
}

impl Kept for Targets {
    fn bytes(&self) -> usize {
        let strings: usize = self.list.iter().map(|target| size_of_val(&*target.strings)).sum();
        size_of::<Targets>()
            + self.list.capacity() * size_of::<Target>()
            + (self.words.capacity() + self.lm.capacity() + self.inner.capacity()) * 4
            + self.links.capacity() * size_of::<Link>()
            + strings
    }
}
