//! What a decoder works with, without weights: rules, a language model, features.

use tunesmith_lm::Model as Lm;
use tunesmith_rules::{Kind, Table};
use tunesmith_text::{Error, Result};

use crate::Lexicon;
use crate::features::Extras;

/// Probabilities of zero have this logarithm, as in Moses.
const LOWEST: f32 = -100.0;

/// A feature that is a function of one column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Score {
    /// The column as it is.
    Value(usize),
    /// The natural logarithm of a probability or count.
    Log(usize),
    /// Whether a count is one.
    Unique(usize),
}

impl Score {
    #[inline]
    pub fn of(self, scores: &[f32]) -> f32 {
        match self {
            Score::Value(column) => scores[column],
            Score::Log(column) => scores[column].ln().max(LOWEST),
            Score::Unique(column) => f32::from(scores[column] == 1.0),
        }
    }
}

/// The features that every model of a kind has.
pub trait Named {
    /// The rules that the kind is made of.
    const KIND: Kind;

    /// All names, in the order in which they are listed.
    fn names(&self) -> Vec<&str>;
}

/// Everything that does not depend on weights; may be shared between threads and decoders.
pub struct Model<D> {
    pub(crate) table: Table,
    pub(crate) lm: Lm,
    pub(crate) lexicon: Lexicon,
    pub(crate) dense: D,
    pub(crate) extras: Extras,
}

impl<D: Named> Model<D> {
    pub fn new(table: Table, lm: Lm, dense: D, extras: Extras) -> Result<Model<D>> {
        if table.kind() != D::KIND {
            let (wanted, kind) = match D::KIND {
                Kind::Phrase => ("phrases", "phrase"),
                Kind::Hiero => ("hierarchical rules", "hiero"),
            };
            return Err(Error::new(format!("this decoder wants a table of {wanted}"))
                .remedy(format!("train with --kind {kind} or --kind both")));
        }
        let lexicon = Lexicon::new(&table, &lm);
        Ok(Model { table, lm, lexicon, dense, extras })
    }

    pub fn dense(&self) -> &D {
        &self.dense
    }

    pub fn table(&self) -> &Table {
        &self.table
    }

    pub fn lm(&self) -> &Lm {
        &self.lm
    }
}
