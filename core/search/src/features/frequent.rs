//! Features of the most frequent words only (Eidelman et al. 2013): what stands beside the source
//! word of a frequent pair, and frequent words that are added or left out.

use std::ops::Range;

use tunesmith_rules::{Frequent, Symbol};

use super::{OnPlace, OnRule, Rule, Sink, key, word};
use crate::weights::KeyMap;
use crate::{Sentence, Spell, Spelling};

static LEFT: Spelling = Spelling::constant("CX-1:");
static RIGHT: Spelling = Spelling::constant("CX+1:");
static DELETION: Spelling = Spelling::constant("FD:");
static INSERTION: Spelling = Spelling::constant("FI:");
static BETWEEN: Spelling = Spelling::constant("~");
static BEGIN: Spelling = Spelling::constant("<s>");
static END: Spelling = Spelling::constant("</s>");
static OTHER: Spelling = Spelling::constant("<unk>");

/// Words by the keys of their spellings.
struct Words(KeyMap<()>);

impl Words {
    fn new<'a>(words: impl Iterator<Item = &'a String>) -> Words {
        Words(words.map(|word| (Spelling::word(word).piece().key(), ())).collect())
    }

    fn has(&self, word: &Spelling) -> bool {
        self.0.contains_key(&word.piece().key())
    }
}

/// A frequent pair and the source word before or behind it, which is one of those of frequent
/// pairs or `<unk>`: `CX-1:haus~house~das`, `CX+1:haus~house~<unk>`.
pub struct Contexts {
    sources: Words,
    pairs: KeyMap<()>,
}

impl Contexts {
    pub fn new(frequent: &Frequent) -> Contexts {
        let spelled = |(from, to, _): &(String, String, u64)| {
            (key(&[&Spelling::word(from), &BETWEEN, &Spelling::word(to)]), ())
        };
        Contexts {
            sources: Words::new(frequent.pairs.iter().map(|(from, ..)| from)),
            pairs: frequent.pairs.iter().map(spelled).collect(),
        }
    }

    fn beside<'a>(&self, sentence: &'a Sentence<'_>, at: usize) -> &'a Spelling {
        let word = Spell::source(sentence, sentence.source()[at]);
        if self.sources.has(word) { word } else { &OTHER }
    }
}

impl OnPlace for Contexts {
    fn find(
        &self,
        rule: &Rule<'_>,
        sentence: &Sentence<'_>,
        span: Range<usize>,
        gaps: &[Range<usize>],
        out: &mut dyn Sink,
    ) {
        let mut at = span.start;
        let mut gaps = gaps.iter();
        for (place, symbol) in rule.source.iter().enumerate() {
            let Symbol::Word(id) = *symbol else {
                at = gaps.next().map_or(at, |gap| gap.end);
                continue;
            };
            let here = at;
            at += 1;
            let from = rule.words.source(id);
            if !self.sources.has(from) {
                continue;
            }
            for &(_, to) in rule.links.iter().filter(|&&(from, _)| usize::from(from) == place) {
                let Some(to) = word(rule.target, usize::from(to)) else { continue };
                let to = rule.words.target(to);
                if !self.pairs.contains_key(&key(&[from, &BETWEEN, to])) {
                    continue;
                }
                let left = if here == 0 { &BEGIN } else { self.beside(sentence, here - 1) };
                let last = here + 1 == sentence.source().len();
                let right = if last { &END } else { self.beside(sentence, here + 1) };
                out.add(&[&LEFT, from, &BETWEEN, to, &BETWEEN, left], 1.0);
                out.add(&[&RIGHT, from, &BETWEEN, to, &BETWEEN, right], 1.0);
            }
        }
    }
}

/// Source words that are often without a link, where they are: `FD:ja`.
pub struct FrequentDeletions(Words);

impl FrequentDeletions {
    pub fn new(frequent: &Frequent) -> FrequentDeletions {
        FrequentDeletions(Words::new(frequent.source.iter().map(|(word, _)| word)))
    }
}

impl OnRule for FrequentDeletions {
    fn find(&self, rule: &Rule<'_>, out: &mut dyn Sink) {
        let words = rule.free_source().map(|word| rule.words.source(word));
        words.filter(|word| self.0.has(word)).for_each(|word| out.add(&[&DELETION, word], 1.0));
    }
}

/// Target words that are often without a link, where they are: `FI:of`.
pub struct FrequentInsertions(Words);

impl FrequentInsertions {
    pub fn new(frequent: &Frequent) -> FrequentInsertions {
        FrequentInsertions(Words::new(frequent.target.iter().map(|(word, _)| word)))
    }
}

impl OnRule for FrequentInsertions {
    fn find(&self, rule: &Rule<'_>, out: &mut dyn Sink) {
        let words = rule.free_target().map(|word| rule.words.target(word));
        words.filter(|word| self.0.has(word)).for_each(|word| out.add(&[&INSERTION, word], 1.0));
    }
}
