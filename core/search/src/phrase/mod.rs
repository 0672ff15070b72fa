//! Phrases put together from left to right, with a beam for every number of covered words.

mod contest;
mod cover;
mod decoder;
mod facts;
mod force;
mod future;
mod model;
mod options;
mod results;
mod search;
mod targets;

pub use contest::{Contest, Stage};
pub use decoder::{Decoder, Settings};
pub use facts::Kept;
pub use model::{Dense, Model, Reordering};
pub use results::Found;
