//! Phrase and hierarchical rules: extraction, scores, reordering, and tables of them.

mod bitext;
mod blocks;
mod code;
mod coded;
mod collect;
mod frequent;
mod groups;
mod hiero;
mod lexical;
mod links;
mod orientation;
mod phrases;
mod places;
mod score;
mod smoothing;
mod store;
mod table;
mod text;
mod totals;
mod train;
mod vocabulary;

pub use bitext::{Corpus, Reading, Sentence, Skip};
pub use code::Symbol;
pub use frequent::Frequent;
pub use hiero::HieroOptions;
pub use lexical::{Lexicon, Precision};
pub use phrases::PhraseOptions;
pub use score::{Column, Scale, orientation_columns};
pub use smoothing::Smoothing;
pub use table::{Entries, Entry, Kind, Node, Table};
pub use text::{
    GLUE, Imported, export_cdec, export_phrases, export_reordering, import_cdec, import_moses,
};
pub use train::{Made, Making, hiero_table, phrase_table};
pub use vocabulary::Vocabulary;
