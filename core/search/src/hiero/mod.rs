//! Rules with gaps put together from the bottom up (Chiang 2007).

mod bins;
mod cells;
mod chart;
mod cube;
mod decoder;
mod facts;
mod group;
mod matches;
mod model;
mod results;
mod search;

pub use decoder::{Decoder, Settings};
pub use facts::Kept;
pub use model::{Dense, Model, PassThrough};
pub use results::Found;
