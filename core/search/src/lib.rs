//! The two decoders: phrases from left to right, hierarchical rules from the bottom up.

pub mod features;
pub mod phrase;
mod weights;
mod words;

pub use weights::Weights;
pub use words::{Lexicon, ModelWords, Sentence, Spell, Spelling};
