//! The two decoders: phrases from left to right, hierarchical rules from the bottom up.

mod cache;
pub mod features;
pub mod hiero;
mod input;
mod lists;
mod model;
mod outcome;
pub mod phrase;
mod settings;
mod weights;
mod words;

pub use input::{Given, Input, Markup, Placeholder, Stop};
pub use lists::Reading;
pub use model::{Model, Named, Score};
pub use outcome::{
    Beam, Decode, Features, GivenUp, Origin, Outcome, Partial, Reached, Step, Translated, decode,
    force,
};
pub use weights::Weights;
pub use words::{Lexicon, ModelWords, Sentence, Spell, Spelling};
