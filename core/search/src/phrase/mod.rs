//! Phrases put together from left to right, with a beam for every number of covered words.

mod cover;
mod decoder;
mod facts;
mod future;
mod model;
mod options;
mod results;
mod search;
mod targets;

pub use decoder::{Decoder, Settings};
pub use facts::Kept;
pub use model::{Dense, Model, Reordering};
pub use results::Found;
