//! Neighbours in the target string, as words (Eidelman 2012) or as classes (Hasler et al. 2011):
//! `TB:the~house`, `TC:<s>~17`.

use tunesmith_rules::Symbol;
use tunesmith_text::Classes;

use super::{OnString, Sink};
use crate::weights::KeyMap;
use crate::{Spell, Spelling};

static WORDS: Spelling = Spelling::constant("TB:");
static CLASSES: Spelling = Spelling::constant("TC:");
static BETWEEN: Spelling = Spelling::constant("~");
static BEGIN: Spelling = Spelling::constant("<s>");
static END: Spelling = Spelling::constant("</s>");
static OTHER: Spelling = Spelling::constant("<unk>");

/// What a bigram is made of. Numbers from [`FIRST`] on are labels.
pub trait Labels: Send + Sync {
    fn prefix(&self) -> &'static Spelling;

    fn label(&self, word: u32, words: &dyn Spell) -> u32;

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
        for symbol in target {
            let (left, right) = match *symbol {
                Symbol::Gap(number) => ends(tails[usize::from(number) - 1]),
                Symbol::Word(word) => {
                    let label = self.0.label(word, words);
                    (label, label)
                }
            };
            // The string under a gap may be empty.
            if left == NOTHING {
                continue;
            }
            if last == NOTHING {
                first = left;
            } else {
                self.tell(last, left, words, out);
            }
            last = right;
        }
        state(first, last)
    }

    fn end(&self, state: u64, words: &dyn Spell, out: &mut dyn Sink) {
        let (_, last) = ends(state);
        let last = if last == START { &BEGIN } else { self.0.spell(last, words) };
        out.add(&[self.0.prefix(), last, &BETWEEN, &END], 1.0);
    }
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
