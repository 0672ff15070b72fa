//! Learning weights: constraints, updates, passes over a corpus, line search, risk.

mod agreement;
mod batch;
mod blocks;
mod chosen;
mod consensus;
mod corpus;
mod expect;
mod gain;
mod line;
pub mod local;
mod loss;
mod model;
mod oracle;
mod pass;
mod prefetch;
mod risk;
mod rng;
mod rows;
mod scatter;
mod select;
pub mod update;
mod violation;

pub use agreement::{Likeness, agreement};
pub use batch::BlockRows;
pub use blocks::{Blocks, Sparse, fold};
pub use chosen::{Chosen, Note, Part};
pub use consensus::{consensus, forest_consensus};
pub use corpus::{Corpus, ForestCorpus, ListCorpus, PartCorpus};
pub use expect::forest_expect;
pub use gain::{Gain, GainKind, GainScale, Worth};
pub use line::{Breaks, ForestSearch, LineSearch, ListSearch, Step, Walker};
pub use loss::Loss;
pub use model::Model;
pub use oracle::{Standing, best_alone, exchange, forest_choices};
pub use pass::{Observed, Pass, Progress, sample_rows};
pub use risk::{Expect, Objective, Probabilities, RowWorth, corpus_worth, expected_gain};
pub use rng::Rng;
pub use rows::{Kind, Rows};
pub use select::{
    Against, Bounded, Expected, HopeFear, ListKind, Lists, Pairs, Selector, Visit, margin_row,
};
pub use update::{Separate, Stepped, Update};
pub use violation::{Rung, Violation};

/// What a selector or an update written elsewhere may fail with.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;
