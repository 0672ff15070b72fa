//! What is known of the translations of a source phrase, whatever the weights are. Where weights
//! change often, it is kept, and new weights cost no more than their products.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::OnceLock;

use rustc_hash::FxHasher;
use tunesmith_align::Link;
use tunesmith_lm::State;
use tunesmith_rules::{Node, Symbol};

use super::decoder::Weighted;
use super::model::{CLASSES, Model, SLOTS};
use crate::cache::{self, Held};
use crate::features::{Keyed, Neighbour, Orientation, Rule};
use crate::{ModelWords, Score, Spell};

/// Facts of the phrases of a model that were asked for lately, for all decoders that share them.
pub type Kept = cache::Kept<Facts>;

/// The translations of a source phrase.
#[derive(Debug, Default)]
pub struct Facts {
    pub list: Vec<Fact>,
    /// Ids of the table.
    pub words: Vec<u32>,
    /// The same as ids of the language model.
    pub lm: Vec<u32>,
    /// For each word the language model's score (to base ten) of it and those behind it, nothing
    /// known of what comes before.
    pub inner: Vec<f32>,
    pub links: Vec<Link>,
    /// The features that every model has for a phrase, so many for each; none for those that are
    /// not from the table.
    scores: Vec<f32>,
    features: Features,
    /// States of the features of the string, so many for each.
    strings: Vec<u64>,
}

/// One translation; what it has is what lies behind that of the one before it.
#[derive(Debug)]
pub struct Fact {
    /// Its place among the entries of the source phrase.
    pub entry: u32,
    words: u32,
    links: u32,
    features: u32,
    /// The language model's state after the words by themselves.
    pub state: State,
    /// Known for those that were good enough once.
    orders: OnceLock<Box<Orders>>,
}

/// Keys and values.
type Features = Vec<(u64, f32)>;

/// What orientations are about.
#[derive(Debug, Default)]
pub struct Orders {
    /// The columns of the table, before they are weighted: by orientation to the previous phrase,
    /// then to the next.
    pub raw: [f32; SLOTS],
    /// Equal for phrases whose features of the next phrase's orientation are equal.
    pub class: u64,
    features: Features,
    /// Where the features of each orientation end.
    ends: [u32; SLOTS],
}

impl Facts {
    /// The translations in the table.
    pub fn of_node(model: &Model, source: &[Symbol], node: Node) -> Facts {
        let mut facts = Facts::default();
        let entries = model.table.entries(node);
        facts.list.reserve(entries.size_hint().1.unwrap_or(0));
        let words = ModelWords::new(&model.table, &model.lexicon);
        let (mut target, mut links) = (Vec::new(), Vec::new());
        let known = model.table.target_words();
        for (place, entry) in entries.enumerate() {
            target.clear();
            target.extend(entry.target());
            // A damaged table must not lead out of bounds, and phrases have no gaps to fill.
            let is_word =
                |symbol: &Symbol| matches!(symbol, Symbol::Word(id) if (*id as usize) < known);
            if target.iter().all(is_word) {
                links.clear();
                links.extend(entry.links());
                let scores = entry.scores;
                let rule = Rule { source, target: &target, links: &links, scores, words: &words };
                facts.add(model, &rule, place as u32, |word| model.lexicon.lm_id(word));
            }
        }
        facts
    }

    /// The only translation of a source phrase that is not in the table.
    pub fn alone(model: &Model, rule: &Rule<'_>, lm_id: impl Fn(u32) -> u32) -> Facts {
        let mut facts = Facts::default();
        facts.add(model, rule, 0, lm_id);
        facts
    }

    fn add(&mut self, model: &Model, rule: &Rule<'_>, entry: u32, lm_id: impl Fn(u32) -> u32) {
        let start = self.words.len();
        self.words.extend(words_of(rule.target));
        let mut state = State::EMPTY;
        self.lm.extend(self.words[start..].iter().map(|&word| lm_id(word)));
        for &word in &self.lm[start..] {
            let (scored, next) = model.lm.score(&state, word);
            self.inner.push(scored.log10);
            state = next;
        }
        for at in (start + 1..self.inner.len()).rev() {
            self.inner[at - 1] += self.inner[at];
        }
        self.links.extend_from_slice(rule.links);
        if !rule.scores.is_empty() {
            self.scores.extend(model.dense.scores.iter().map(|(_, score)| score.of(rule.scores)));
        }
        let mut keyed = Keyed::new(&mut self.features);
        model.extras.rule.iter().for_each(|feature| feature.find(rule, &mut keyed));
        for feature in &model.extras.string {
            self.strings.push(feature.join(rule.target, &[], rule.words, &mut keyed));
        }
        self.list.push(Fact {
            entry,
            words: self.words.len() as u32,
            links: self.links.len() as u32,
            features: self.features.len() as u32,
            state,
            orders: OnceLock::new(),
        });
    }

    /// Where what the translation at a place has begins and ends.
    fn range(&self, place: usize, end: impl Fn(&Fact) -> u32) -> Range<usize> {
        let start = place.checked_sub(1).map_or(0, |before| end(&self.list[before]));
        start as usize..end(&self.list[place]) as usize
    }

    /// The words of a translation, as a range of [`words`](Self::words).
    pub fn words(&self, place: usize) -> Range<usize> {
        self.range(place, |fact| fact.words)
    }

    /// Its links, as a range of [`links`](Self::links).
    pub fn links(&self, place: usize) -> Range<usize> {
        self.range(place, |fact| fact.links)
    }

    /// States of the features of the string, of its words by themselves.
    pub fn strings(&self, model: &Model, place: usize) -> &[u64] {
        let width = model.extras.string.len();
        &self.strings[place * width..(place + 1) * width]
    }

    /// All that does not depend on what surrounds it, and with it what the language model says of
    /// the words by themselves.
    pub fn score(&self, weighted: &Weighted, place: usize) -> (f32, f32) {
        let words = self.words(place);
        let features = &self.features[self.range(place, |fact| fact.features)];
        let mut score = weighted.named.total(features) as f32
            + weighted.phrase
            + weighted.word * words.len() as f32;
        let width = self.scores.len() / self.list.len();
        let scores = &self.scores[place * width..(place + 1) * width];
        for (&weight, value) in weighted.scores.iter().zip(scores) {
            if weight != 0.0 {
                score += weight * value;
            }
        }
        let inner = if words.is_empty() { 0.0 } else { self.inner[words.start] };
        (score, score + weighted.lm * inner)
    }

    /// What the orientations of a translation are about.
    pub fn orders(
        &self,
        model: &Model,
        source: &[Symbol],
        scores: &[f32],
        words: &dyn Spell,
        place: usize,
    ) -> &Orders {
        self.list[place].orders.get_or_init(|| {
            let target: Vec<Symbol> =
                self.words[self.words(place)].iter().map(|&word| Symbol::Word(word)).collect();
            let links = &self.links[self.links(place)];
            let rule = Rule { source, target: &target, links, scores, words };
            Box::new(Orders::new(model, &rule))
        })
    }
}

impl Orders {
    fn new(model: &Model, rule: &Rule<'_>) -> Orders {
        let mut orders = Orders::default();
        let mut class = FxHasher::default();
        if let (Some(reordering), false) = (&model.dense.reordering, rule.scores.is_empty()) {
            for (number, &column) in reordering.columns.iter().enumerate() {
                orders.raw[number] = Score::Log(column).of(rule.scores);
                if number >= CLASSES {
                    rule.scores[column].to_bits().hash(&mut class);
                }
            }
        }
        if !model.extras.order.is_empty() {
            let mut keyed = Keyed::new(&mut orders.features);
            let sides = Neighbour::ALL.into_iter();
            let all = sides.flat_map(|side| Orientation::SLOTS.map(|lies| (side, lies)));
            for (end, (side, lies)) in orders.ends.iter_mut().zip(all) {
                model.extras.order.iter().for_each(|f| f.find(rule, side, lies, &mut keyed));
                *end = keyed.len() as u32;
            }
            (rule.source, rule.target).hash(&mut class);
        }
        orders.class = class.finish();
        orders
    }

    /// What orientations to the previous phrase are worth, and what those to the next.
    pub fn weighted(&self, weighted: &Weighted) -> [[f32; CLASSES]; 2] {
        let mut worth = [[0.0; CLASSES]; 2];
        let mut start = 0;
        for (number, &end) in self.ends.iter().enumerate() {
            let slot = &mut worth[number / CLASSES][number % CLASSES];
            *slot = weighted.reordering[number] * self.raw[number];
            *slot += weighted.named.total(&self.features[start..end as usize]) as f32;
            start = end as usize;
        }
        worth
    }
}

fn words_of(side: &[Symbol]) -> impl Iterator<Item = u32> + '_ {
    side.iter().filter_map(|&symbol| match symbol {
        Symbol::Word(word) => Some(word),
        Symbol::Gap(_) => None,
    })
}

impl Held for Facts {
    /// With all orientations, as if each translation were good enough at some time.
    fn bytes(&self) -> usize {
        let orders = size_of::<Orders>() + 12 * size_of::<(u64, f32)>();
        size_of::<Facts>()
            + self.list.capacity() * (size_of::<Fact>() + orders)
            + (self.words.capacity() + self.lm.capacity() + self.inner.capacity()) * 4
            + self.links.capacity() * size_of::<Link>()
            + self.scores.capacity() * 4
            + self.features.capacity() * size_of::<(u64, f32)>()
            + self.strings.capacity() * 8
    }
}
