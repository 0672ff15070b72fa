//! What a feature may look at, and where it says what it found.
//!
//! | a feature | looks at | is asked |
//! | --- | --- | --- |
//! | [`OnRule`] | a rule | once for each entry of the table and each set of weights; where a decoder follows a learner, once for all of them |
//! | [`OnPlace`] | a rule and the sentence around it | once for each rule that matches a span |
//! | [`OnOrder`] | a phrase and how it lies to its neighbour | as [`OnRule`] |
//! | [`OnString`] | words of the target string, across rules | while searching |
//!
//! Names are put together from [`Spelling`]s, so that the key of a name is found without making
//! the name: `PT:das_haus~the_house` is a string only when a result is read off.

mod bigrams;
mod distortion;
mod frequent;
mod order;
mod pairs;
mod rule_id;
mod shape;
pub mod templates;
mod written;

#[cfg(test)]
mod tests;

use std::ops::Range;

use rustc_hash::FxHashMap;
use tunesmith_align::Link;
use tunesmith_rules::Symbol;
use tunesmith_text::{Names, Piece};

pub use written::WrittenRule;

use crate::weights::KeyMap;
use crate::{Sentence, Spell, Spelling, Weights};

/// A rule as features see it. Words are ids of the table, or, behind those, of the sentence.
#[derive(Clone, Copy)]
pub struct Rule<'a> {
    pub source: &'a [Symbol],
    pub target: &'a [Symbol],
    /// Between places on the two sides.
    pub links: &'a [Link],
    /// The columns of the table; empty for a rule that is not from there.
    pub scores: &'a [f32],
    pub words: &'a dyn Spell,
}

impl<'a> Rule<'a> {
    /// The words that are linked, source first; links of gaps are left out.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        let (source, target) = (self.source, self.target);
        self.links.iter().filter_map(move |&(from, to)| {
            Some((word(source, usize::from(from))?, word(target, usize::from(to))?))
        })
    }

    /// The source words without a link.
    pub fn free_source(&self) -> impl Iterator<Item = u32> + use<'a> {
        let (source, links) = (self.source, self.links);
        let free = move |&at: &usize| links.iter().all(|&(from, _)| usize::from(from) != at);
        (0..source.len()).filter(free).filter_map(move |at| word(source, at))
    }

    /// The target words without a link.
    pub fn free_target(&self) -> impl Iterator<Item = u32> + use<'a> {
        let (target, links) = (self.target, self.links);
        let free = move |&at: &usize| links.iter().all(|&(_, to)| usize::from(to) != at);
        (0..target.len()).filter(free).filter_map(move |at| word(target, at))
    }
}

fn word(side: &[Symbol], at: usize) -> Option<u32> {
    match side.get(at)? {
        Symbol::Word(id) => Some(*id),
        Symbol::Gap(_) => None,
    }
}

/// The other side of a phrase that an orientation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Neighbour {
    Previous,
    Next,
}

impl Neighbour {
    pub const ALL: [Neighbour; 2] = [Neighbour::Previous, Neighbour::Next];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Orientation {
    Monotone,
    Swap,
    Discontinuous,
}

impl Orientation {
    /// For each class that a search tells apart.
    pub const SLOTS: [Orientation; 4] = [
        Orientation::Monotone,
        Orientation::Swap,
        Orientation::Discontinuous,
        Orientation::Discontinuous,
    ];
    pub const ALL: [Orientation; 3] =
        [Orientation::Monotone, Orientation::Swap, Orientation::Discontinuous];
}

/// Where a rule's features are told.
pub trait Sink {
    /// The name is that of all parts one after the other.
    fn add(&mut self, name: &[&Spelling], value: f32);

    /// The name is that of the rule, behind a prefix.
    fn add_rule(&mut self, prefix: &Spelling, rule: &Rule<'_>, value: f32) {
        self.add(&rule_id::name(prefix, rule), value);
    }
}

pub trait OnRule: Send + Sync {
    fn find(&self, rule: &Rule<'_>, out: &mut dyn Sink);
}

pub trait OnPlace: Send + Sync {
    /// `span`: the words of the sentence that the rule covers; `gaps`: those under its gaps, in
    /// the order of the source side.
    fn find(
        &self,
        rule: &Rule<'_>,
        sentence: &Sentence<'_>,
        span: Range<usize>,
        gaps: &[Range<usize>],
        out: &mut dyn Sink,
    );
}

pub trait OnOrder: Send + Sync {
    fn find(&self, rule: &Rule<'_>, side: Neighbour, lies: Orientation, out: &mut dyn Sink);
}

/// A feature of the target string. A partial string is known by a number that holds what matters
/// at its two ends; equal numbers have equal futures. Phrases from left to right are rules whose
/// target side begins with a gap, that of the string so far.
///
/// How a string is put together must not matter: joining the words between gaps first, once for
/// each rule, and those strings with the tails while searching tells the same features.
pub trait OnString: Send + Sync {
    /// The string that a sentence begins with.
    fn begin(&self) -> u64;

    /// The string of `target`, with those of `tails` in its gaps.
    fn join(&self, target: &[Symbol], tails: &[u64], words: &dyn Spell, out: &mut dyn Sink) -> u64;

    /// The string as a whole sentence; it begins with that of [`begin`](Self::begin).
    fn end(&self, state: u64, words: &dyn Spell, out: &mut dyn Sink);
}

/// The features of a model beyond those that the decoders know themselves.
#[derive(Default)]
pub struct Extras {
    pub rule: Vec<Box<dyn OnRule>>,
    pub place: Vec<Box<dyn OnPlace>>,
    pub order: Vec<Box<dyn OnOrder>>,
    pub string: Vec<Box<dyn OnString>>,
}

/// Sums up weights.
pub struct Total<'w> {
    pub weights: &'w Weights,
    pub sum: f64,
}

impl Sink for Total<'_> {
    fn add(&mut self, name: &[&Spelling], value: f32) {
        self.sum += self.weights.of_key(key(name)) * f64::from(value);
    }
}

/// Keeps keys and values of the features of one rule, whose name is looked at once.
pub struct Keyed<'f> {
    found: &'f mut Vec<(u64, f32)>,
    own: Option<Piece>,
}

impl<'f> Keyed<'f> {
    pub fn new(found: &'f mut Vec<(u64, f32)>) -> Keyed<'f> {
        Keyed { found, own: None }
    }

    /// How many there are by now.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

impl Sink for Keyed<'_> {
    fn add(&mut self, name: &[&Spelling], value: f32) {
        self.found.push((key(name), value));
    }

    fn add_rule(&mut self, prefix: &Spelling, rule: &Rule<'_>, value: f32) {
        let own = *self.own.get_or_insert_with(|| rule_id::piece(rule));
        self.found.push((own.key_behind(prefix.piece().key()), value));
    }
}

/// The features of one result, by ids of the [`Names`] that gives them out. Values of a name that
/// comes several times add up.
#[derive(Debug, Default)]
pub struct Collected {
    ids: KeyMap<u32>,
    pub names: Names,
    /// What was found since the last [`take`](Self::take): values of the first ids, as far as they
    /// are kept apart, and of others.
    dense: Vec<f32>,
    row: Vec<(u32, f32)>,
    at: FxHashMap<u32, usize>,
}

impl Collected {
    /// The id of a name.
    pub fn id(&mut self, name: &str) -> u32 {
        *self.ids.entry(Piece::of(name).key()).or_insert_with(|| self.names.intern(name))
    }

    /// Keeps the values of the first ids apart, to be taken by [`add_to`](Self::add_to).
    pub fn keep_apart(&mut self, ids: usize) {
        self.dense.resize(ids, 0.0);
    }

    #[inline]
    pub fn put(&mut self, id: u32, value: f32) {
        match self.dense.get_mut(id as usize) {
            Some(slot) => *slot += value,
            None => self.put_sparse(id, value),
        }
    }

    fn put_sparse(&mut self, id: u32, value: f32) {
        // A few are looked through, many are looked up.
        const FEW: usize = 16;
        let known = match self.row.len() {
            ..FEW => self.row.iter().position(|entry| entry.0 == id),
            _ => self.at.get(&id).copied(),
        };
        if let Some(known) = known {
            self.row[known].1 += value;
            return;
        }
        self.row.push((id, value));
        match self.row.len() {
            ..FEW => {}
            FEW => self.at.extend(self.row.iter().enumerate().map(|(at, entry)| (entry.0, at))),
            more => drop(self.at.insert(id, more - 1)),
        }
    }

    /// Puts what `find` adds, by itself, behind `found`; the row at hand stays as it is.
    pub fn aside(&mut self, found: &mut Vec<(u32, f32)>, find: impl FnOnce(&mut Self)) {
        let dense = std::mem::take(&mut self.dense);
        let (row, at) = (std::mem::take(&mut self.row), std::mem::take(&mut self.at));
        find(self);
        found.extend(self.take());
        (self.dense, self.row, self.at) = (dense, row, at);
    }

    /// Adds what was kept apart to other values, and the rest behind other entries; the next row
    /// begins.
    pub fn add_to(&mut self, values: &mut [f32], entries: &mut Vec<(u32, f32)>) {
        for (value, found) in values.iter_mut().zip(&mut self.dense) {
            *value += std::mem::take(found);
        }
        entries.extend(self.take());
    }

    /// The row that was collected; the next one begins. For those who keep nothing apart.
    pub fn take(&mut self) -> impl Iterator<Item = (u32, f32)> + '_ {
        self.at.clear();
        self.row.drain(..)
    }
}

impl Sink for Collected {
    fn add(&mut self, name: &[&Spelling], value: f32) {
        let id = *self.ids.entry(key(name)).or_insert_with(|| {
            let text: String = name.iter().map(|part| part.text()).collect();
            self.names.intern(&text)
        });
        self.put(id, value);
    }
}

#[inline]
fn key(name: &[&Spelling]) -> u64 {
    name.iter().fold(Piece::EMPTY.key(), |front, part| part.piece().key_behind(front))
}
