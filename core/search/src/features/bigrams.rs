//! Neighbours in the target string, as words (Eidelman 2012), as classes or as tags (Hasler et al.
//! 2011): `TB:the~house`, `TC:<s>~17`, `TT:DET~NOUN`.

use tunesmith_rules::Symbol;
use tunesmith_text::{Classes, Names, Piece};

use super::{OnString, Sink};
use crate::weights::KeyMap;
use crate::{Spell, Spelling};

static WORDS: Spelling = Spelling::constant("TB:");
static CLASSES: Spelling = Spelling::constant("TC:");
static TAGS: Spelling = Spelling::constant("TT:");
static BETWEEN: Spelling = Spelling::constant("~");
static BEGIN: Spelling = Spelling::constant("<s>");
static END: Spelling = Spelling::constant("</s>");
static OTHER: Spelling = Spelling::constant("<unk>");

/// What a bigram is made of. Numbers from [`FIRST`] on are labels.
pub trait Labels: Send + Sync {
    fn prefix(&self) -> &'static Spelling;

    fn label(&self, word: u32, words: &dyn Spell) -> u32;

    /// Tells the label of each of some words that follow one another in a rule.
    fn each(&self, run: &[Symbol], words: &dyn Spell, tell: &mut dyn FnMut(u32)) {
        in_run(run).for_each(|word| tell(self.label(word, words)));
    }

    fn spell<'a>(&'a self, label: u32, words: &'a dyn Spell) -> &'a Spelling;
}

const NOTHING: u32 = 0;
const START: u32 = 1;
const FIRST: u32 = 2;

/// Bigrams of labels. A string is known by its first and its last label.
pub struct Bigrams<L>(pub L);

impl<L: Labels> Bigrams<L> {
    fn tell(&self, left: u32, right: u32, words: &dyn Spell, out: &mut dyn Sink) {
        let left = if left == START { &BEGIN } else { self.0.spell(left, words) };
        out.add(&[self.0.prefix(), left, &BETWEEN, self.0.spell(right, words)], 1.0);
    }
}

impl<L: Labels> OnString for Bigrams<L> {
    fn begin(&self) -> u64 {
        state(START, START)
    }

    fn join(&self, target: &[Symbol], tails: &[u64], words: &dyn Spell, out: &mut dyn Sink) -> u64 {
        let (mut first, mut last) = (NOTHING, NOTHING);
        let mut pass = |left: u32, right: u32| {
            // The string under a gap may be empty.
            if left == NOTHING {
                return;
            }
            if last == NOTHING {
                first = left;
            } else {
                self.tell(last, left, words, out);
            }
            last = right;
        };
        let mut rest = target;
        while let Some(symbol) = rest.first() {
            let mut length = 1;
            if let Symbol::Gap(number) = *symbol {
                let (left, right) = ends(tails[usize::from(number) - 1]);
                pass(left, right);
            } else {
                length = in_run(rest).count();
                self.0.each(&rest[..length], words, &mut |label| pass(label, label));
            }
            rest = &rest[length..];
        }
        state(first, last)
    }

    fn end(&self, state: u64, words: &dyn Spell, out: &mut dyn Sink) {
        let (_, last) = ends(state);
        let last = if last == START { &BEGIN } else { self.0.spell(last, words) };
        out.add(&[self.0.prefix(), last, &BETWEEN, &END], 1.0);
    }
}

/// The words up to the next gap.
fn in_run(symbols: &[Symbol]) -> impl Iterator<Item = u32> {
    symbols.iter().map_while(|symbol| match *symbol {
        Symbol::Word(word) => Some(word),
        Symbol::Gap(_) => None,
    })
}

fn state(first: u32, last: u32) -> u64 {
    u64::from(first) << 32 | u64::from(last)
}

fn ends(state: u64) -> (u32, u32) {
    ((state >> 32) as u32, state as u32)
}

/// Words as they are.
pub struct AsWords;

impl Labels for AsWords {
    fn prefix(&self) -> &'static Spelling {
        &WORDS
    }

    fn label(&self, word: u32, _: &dyn Spell) -> u32 {
        word + FIRST
    }

    fn spell<'a>(&'a self, label: u32, words: &'a dyn Spell) -> &'a Spelling {
        words.target(label - FIRST)
    }
}

/// The classes of words; those without one share `<unk>`.
pub struct AsClasses {
    of: KeyMap<u32>,
    names: Vec<Spelling>,
}

impl AsClasses {
    pub fn new(classes: &Classes) -> AsClasses {
        let label = |(word, class)| (Spelling::word(word).piece().key(), class + FIRST + 1);
        let names = classes.names().map(Spelling::word);
        AsClasses {
            of: classes.iter().map(label).collect(),
            names: std::iter::once(OTHER.clone()).chain(names).collect(),
        }
    }
}

impl Labels for AsClasses {
    fn prefix(&self) -> &'static Spelling {
        &CLASSES
    }

    fn label(&self, word: u32, words: &dyn Spell) -> u32 {
        self.of.get(&words.target(word).piece().key()).copied().unwrap_or(FIRST)
    }

    fn spell<'a>(&'a self, label: u32, _: &'a dyn Spell) -> &'a Spelling {
        &self.names[(label - FIRST) as usize]
    }
}

/// The tags of words in their phrase; words without one share `<unk>`.
pub struct AsTags {
    /// Of single words, and of phrases whose words have other tags there.
    of: KeyMap<Box<[u32]>>,
    names: Vec<Spelling>,
}

impl AsTags {
    /// The first phrase that has not as many tags as words is returned as an error.
    pub fn new(phrases: &Classes) -> Result<AsTags, String> {
        let mut tags = Names::default();
        let rows: Vec<Box<[u32]>> = phrases
            .names()
            .map(|row| row.split(' ').map(|tag| tags.intern(tag) + FIRST + 1).collect())
            .collect();
        let mut of = KeyMap::default();
        for (phrase, row) in phrases.iter() {
            let row = &rows[row as usize];
            if phrase.split(' ').count() != row.len() {
                return Err(phrase.to_owned());
            }
            let words = phrase.split(' ').map(|word| Spelling::word(word).piece());
            of.insert(joined(words), row.clone());
        }
        let names = tags.iter().map(Spelling::word);
        Ok(AsTags { of, names: std::iter::once(OTHER.clone()).chain(names).collect() })
    }
}

/// The key of words with a mark between them that no spelling has.
fn joined(words: impl Iterator<Item = Piece>) -> u64 {
    let mark = BETWEEN.piece();
    words.fold(Piece::EMPTY, |front, word| front.then(mark).then(word)).key()
}

impl Labels for AsTags {
    fn prefix(&self) -> &'static Spelling {
        &TAGS
    }

    fn label(&self, word: u32, words: &dyn Spell) -> u32 {
        let key = joined(std::iter::once(words.target(word).piece()));
        self.of.get(&key).map_or(FIRST, |tags| tags[0])
    }

    fn each(&self, run: &[Symbol], words: &dyn Spell, tell: &mut dyn FnMut(u32)) {
        match self.of.get(&joined(in_run(run).map(|word| words.target(word).piece()))) {
            Some(tags) => tags.iter().for_each(|&tag| tell(tag)),
            None => in_run(run).for_each(|word| tell(self.label(word, words))),
        }
    }

    fn spell<'a>(&'a self, label: u32, _: &'a dyn Spell) -> &'a Spelling {
        &self.names[(label - FIRST) as usize]
    }
}
