//! N-gram language models: estimated from text, read from ARPA files, queried from mapped memory.

mod arpa;
mod batch;
mod binary;
mod build;
mod ends;
mod estimate;
mod grams;
mod hash;
mod line;
mod model;
mod sentence;
mod state;
mod table;
mod vocabulary;

pub use batch::Batch;
pub use ends::Ends;
pub use estimate::{Discounts, Estimate, Estimated, OrderStats, Symbols, estimate};
pub use grams::Grams;
pub use model::{Model, Scored};
pub use sentence::{Perplexity, words};
pub use state::State;

/// The longest n-gram that a model may hold.
pub const MAX_ORDER: usize = 6;

/// What a model without `<unk>` gives to words it does not know, as other readers do.
pub const MISSING_UNKNOWN: f32 = -100.0;
