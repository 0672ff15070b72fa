//! The n-grams of a model as plain lists, between a file or an estimate and the query tables.

use tunesmith_text::{Error, Names, Result};

use crate::{MAX_ORDER, MISSING_UNKNOWN};

/// The n-grams of one order.
#[derive(Debug, Clone, Default)]
pub struct Order {
    /// `length` ids each, the last word first.
    pub words: Vec<u32>,
    /// Log-probability and backoff, both to base ten.
    pub values: Vec<(f32, f32)>,
}

/// All n-grams of a model. Word 0 is `<unk>`; unigrams are in order of their ids.
#[derive(Debug, Clone, Default)]
pub struct Grams {
    pub names: Names,
    pub begin: u32,
    pub end: u32,
    /// Whether `<unk>` had to be added.
    pub added_unknown: bool,
    pub orders: Vec<Order>,
}

/// The special words, under the names that files use for them.
pub const UNKNOWN: &str = "<unk>";
pub const BEGIN: &str = "<s>";
pub const END: &str = "</s>";

impl Grams {
    /// Room for a model of the given order, with `<unk>` as its first word.
    pub fn new(order: usize) -> Self {
        debug_assert!((1..=MAX_ORDER).contains(&order));
        let mut grams = Grams { orders: vec![Order::default(); order], ..Grams::default() };
        grams.names.intern(UNKNOWN);
        grams.orders[0].words.push(0);
        grams.orders[0].values.push((MISSING_UNKNOWN, 0.0));
        grams.added_unknown = true;
        grams
    }

    pub fn order(&self) -> usize {
        self.orders.len()
    }

    /// Adds a word; refuses one that is there already.
    pub fn push_word(&mut self, word: &str, prob: f32, backoff: f32) -> Result<()> {
        // Some programs write it in capitals.
        if word == UNKNOWN || word == "<UNK>" {
            if !self.added_unknown {
                return Err(twice(word));
            }
            self.added_unknown = false;
            self.orders[0].values[0] = (prob, backoff);
            return Ok(());
        }
        let id = self.names.intern(word);
        if (id as usize) < self.orders[0].values.len() {
            return Err(twice(word));
        }
        self.orders[0].words.push(id);
        self.orders[0].values.push((prob, backoff));
        Ok(())
    }

    /// Finds the words that mark the ends of a sentence, once all words are there.
    pub fn find_marks(&mut self) -> Result<()> {
        let find = |word: &str| {
            self.names.id(word).ok_or_else(|| {
                Error::new(format!("the 1-grams have no {word}"))
                    .remedy("estimate the model with marks at the ends of sentences")
            })
        };
        (self.begin, self.end) = (find(BEGIN)?, find(END)?);
        Ok(())
    }

    /// An n-gram as text, given last word first.
    pub fn text(&self, reversed: &[u32]) -> String {
        let words: Vec<&str> =
            reversed.iter().rev().map(|&id| self.names.name(id).unwrap_or("?")).collect();
        words.join(" ")
    }
}

fn twice(word: &str) -> Error {
    Error::new(format!("the 1-gram {word:?} is given twice")).remedy("remove one of them")
}
