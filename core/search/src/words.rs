//! Words as numbers: those of a model, and behind them those that only one sentence has.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use tunesmith_align::Link;
use tunesmith_lm::Model;
use tunesmith_rules::{Symbol, Table};
use tunesmith_text::Piece;

use crate::input::{Input, Placeholder};

/// A string that may become part of a feature's name.
#[derive(Debug, Clone)]
pub struct Spelling {
    text: Cow<'static, str>,
    piece: Piece,
    /// The word, where it is not written as it is.
    word: Option<Box<str>>,
}

impl Spelling {
    /// Text that belongs to the form of a name.
    pub fn literal(text: &str) -> Spelling {
        Spelling { text: text.to_owned().into(), piece: Piece::of(text), word: None }
    }

    /// The same, known when the program is made.
    pub const fn constant(text: &'static str) -> Spelling {
        Spelling { text: Cow::Borrowed(text), piece: Piece::of(text), word: None }
    }

    /// A word, in which the characters that names are put together with are escaped.
    pub fn word(word: &str) -> Spelling {
        match escaped(word) {
            Cow::Borrowed(same) => Spelling::literal(same),
            Cow::Owned(text) => Spelling { word: Some(word.into()), ..Spelling::literal(&text) },
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The word as the model knows it.
    pub fn plain(&self) -> &str {
        self.word.as_deref().unwrap_or(&self.text)
    }

    pub fn piece(&self) -> Piece {
        self.piece
    }
}

fn escaped(word: &str) -> Cow<'_, str> {
    let special = |letter: char| matches!(letter, '_' | '~' | '=' | '|') || letter.is_whitespace();
    if !word.contains(special) {
        return word.into();
    }
    let mut out = String::with_capacity(word.len() + 8);
    for letter in word.chars() {
        if special(letter) {
            out.push_str(&format!("&#{};", letter as u32));
        } else {
            out.push(letter);
        }
    }
    out.into()
}

/// How words are written in names of features.
pub trait Spell {
    fn source(&self, word: u32) -> &Spelling;

    fn target(&self, word: u32) -> &Spelling;
}

/// The words of a rule table, with their spellings made when first asked for, and what the
/// language model calls those of the target side.
pub struct Lexicon {
    source: Vec<OnceLock<Spelling>>,
    target: Vec<OnceLock<Spelling>>,
    lm: Vec<u32>,
}

impl Lexicon {
    pub fn new(table: &Table, lm: &Model) -> Lexicon {
        let word = |id| table.target_word(id).map_or(0, |word| lm.id(word));
        Lexicon {
            source: (0..table.source_words()).map(|_| OnceLock::new()).collect(),
            target: (0..table.target_words()).map(|_| OnceLock::new()).collect(),
            lm: (0..table.target_words() as u32).map(word).collect(),
        }
    }

    /// What the language model calls a target word of the table.
    #[inline]
    pub fn lm_id(&self, target_word: u32) -> u32 {
        self.lm[target_word as usize]
    }
}

/// The words of one sentence: ids of the table where it has them, larger ones for the rest.
pub struct Sentence<'m> {
    table: &'m Table,
    lexicon: &'m Lexicon,
    lm: &'m Model,
    source: Vec<u32>,
    more_source: Vec<Spelled>,
    more_target: Vec<Spelled>,
    held: Vec<Held>,
}

struct Spelled {
    word: String,
    spelling: Spelling,
    lm: u32,
}

/// A placeholder: features and language model see its word, the translation its entity.
#[derive(Debug, Clone, Copy)]
pub struct Held {
    /// Its place in the sentence.
    pub at: usize,
    /// Target words: what translations have in its place, and what comes out instead.
    word: u32,
    pub entity: u32,
}

impl Held {
    /// Where the word is in a target side: linked to a symbol of the source side, or else where it
    /// is first.
    pub fn find(&self, symbol: usize, links: &[Link], target: &[Symbol]) -> Option<usize> {
        let is_word = |at: &usize| target.get(*at) == Some(&Symbol::Word(self.word));
        let linked = links.iter().filter(|link| usize::from(link.0) == symbol);
        linked
            .map(|link| usize::from(link.1))
            .find(is_word)
            .or_else(|| (0..target.len()).find(is_word))
    }
}

impl<'m> Sentence<'m> {
    pub fn new(
        input: &Input<'_>,
        table: &'m Table,
        lexicon: &'m Lexicon,
        lm: &'m Model,
    ) -> Sentence<'m> {
        let mut sentence = Sentence {
            table,
            lexicon,
            lm,
            source: Vec::new(),
            more_source: Vec::new(),
            more_target: Vec::new(),
            held: Vec::new(),
        };
        for word in &input.words {
            let id = table.source_id(word).unwrap_or_else(|| {
                more(&mut sentence.more_source, word, 0) + table.source_words() as u32
            });
            sentence.source.push(id);
        }
        for Placeholder { at, word, entity } in &input.placeholders {
            let word = sentence.target_id(word);
            let known = sentence
                .held
                .iter()
                .find(|held| held.word == word && sentence.target_word(held.entity) == entity);
            let entity = known.map(|held| held.entity).unwrap_or_else(|| {
                let (spelling, lm) = (sentence.target(word).clone(), sentence.lm_id(word));
                sentence.more_target.push(Spelled { word: entity.clone(), spelling, lm });
                (table.target_words() + sentence.more_target.len() - 1) as u32
            });
            sentence.held.push(Held { at: *at, word, entity });
        }
        sentence
    }

    /// The placeholders within a span.
    pub fn held(&self, span: Range<usize>) -> impl Iterator<Item = &Held> + Clone {
        self.held.iter().filter(move |held| span.contains(&held.at))
    }

    /// The target word that is spelled so: an entity, if there is one.
    pub fn spelled_id(&mut self, word: &str) -> u32 {
        let entity = self.held.iter().find(|held| self.target_word(held.entity) == word);
        match entity {
            Some(held) => held.entity,
            None => self.target_id(word),
        }
    }

    /// The target word for a word of the sentence that stands for itself.
    pub fn itself(&mut self, at: usize) -> u32 {
        if let Some(held) = self.held(at..at + 1).next() {
            return held.entity;
        }
        let word = self.source_word(self.source[at]).to_owned();
        self.target_id(&word)
    }

    /// The words of the sentence.
    pub fn source(&self) -> &[u32] {
        &self.source
    }

    pub fn is_known(&self, source_word: u32) -> bool {
        (source_word as usize) < self.table.source_words()
    }

    /// The id of a target word, a new one if need be.
    pub fn target_id(&mut self, word: &str) -> u32 {
        self.table.target_id(word).unwrap_or_else(|| {
            more(&mut self.more_target, word, self.lm.id(word)) + self.table.target_words() as u32
        })
    }

    pub fn source_word(&self, word: u32) -> &str {
        match (word as usize).checked_sub(self.table.source_words()) {
            Some(extra) => &self.more_source[extra].word,
            None => self.table.source_word(word).unwrap_or_default(),
        }
    }

    pub fn target_word(&self, word: u32) -> &str {
        match (word as usize).checked_sub(self.table.target_words()) {
            Some(extra) => &self.more_target[extra].word,
            None => self.table.target_word(word).unwrap_or_default(),
        }
    }

    /// What the language model calls a target word.
    #[inline]
    pub fn lm_id(&self, target_word: u32) -> u32 {
        match (target_word as usize).checked_sub(self.lexicon.lm.len()) {
            Some(extra) => self.more_target[extra].lm,
            None => self.lexicon.lm[target_word as usize],
        }
    }

    /// How the words of the table are written.
    pub fn model_words(&self) -> ModelWords<'m> {
        ModelWords { table: self.table, lexicon: self.lexicon }
    }
}

fn more(words: &mut Vec<Spelled>, word: &str, lm: u32) -> u32 {
    // Entities come out as words that they are not.
    let is_it = |known: &Spelled| known.word == word && known.spelling.plain() == word;
    let known = words.iter().position(is_it);
    known.unwrap_or_else(|| {
        words.push(Spelled { word: word.to_owned(), spelling: Spelling::word(word), lm });
        words.len() - 1
    }) as u32
}

/// The words of a table as parts of names.
#[derive(Clone, Copy)]
pub struct ModelWords<'m> {
    table: &'m Table,
    lexicon: &'m Lexicon,
}

impl<'m> ModelWords<'m> {
    pub fn new(table: &'m Table, lexicon: &'m Lexicon) -> ModelWords<'m> {
        ModelWords { table, lexicon }
    }

    fn source_spelling(self, word: u32) -> &'m Spelling {
        let spell = || Spelling::word(self.table.source_word(word).unwrap_or_default());
        self.lexicon.source[word as usize].get_or_init(spell)
    }

    fn target_spelling(self, word: u32) -> &'m Spelling {
        let spell = || Spelling::word(self.table.target_word(word).unwrap_or_default());
        self.lexicon.target[word as usize].get_or_init(spell)
    }
}

impl Spell for ModelWords<'_> {
    fn source(&self, word: u32) -> &Spelling {
        self.source_spelling(word)
    }

    fn target(&self, word: u32) -> &Spelling {
        self.target_spelling(word)
    }
}

impl Spell for Sentence<'_> {
    fn source(&self, word: u32) -> &Spelling {
        match (word as usize).checked_sub(self.lexicon.source.len()) {
            Some(extra) => &self.more_source[extra].spelling,
            None => self.model_words().source_spelling(word),
        }
    }

    fn target(&self, word: u32) -> &Spelling {
        match (word as usize).checked_sub(self.lexicon.target.len()) {
            Some(extra) => &self.more_target[extra].spelling,
            None => self.model_words().target_spelling(word),
        }
    }
}
