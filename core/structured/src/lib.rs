//! Learning with any search that builds its output step by step: the learner knows states, actions
//! and features, never the task.
//!
//! [`Task`] is the protocol; [`beam`](search) searches it; [`Gold`] has the derivations that give
//! the right output; [`Trainer`] learns from where the two part. [`Tagger`] and [`Parser`] are
//! tasks.

mod features;
mod gold;
mod learner;
mod mixing;
mod parser;
mod rows;
mod search;
mod tagger;
mod task;
mod trainer;
mod votes;
mod weights;

pub use features::{ALONE, Contexts, Features};
pub use gold::{Gold, GoldFault};
pub use learner::{Found, Learner, Method, Observed, Settings};
pub use parser::{ParsedSentence, Parser, Transition};
pub use search::{Lattice, NONE, Scratch, Search, UNBOUNDED};
pub use tagger::{TaggedSentence, Tagger, template_names};
pub use task::Task;
pub use trainer::{Example, Trainer, predict};
pub use tunesmith_solve::{Fault, Violation};
pub use weights::Weights;
