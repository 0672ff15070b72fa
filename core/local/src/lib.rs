//! Examples for local training: sentences with references and n-best lists, in files that are
//! mapped, found by their similarity to a sentence.

mod examples;
mod layout;
mod list;
mod ready;
mod segment;
mod similarity;
mod write;

pub use examples::{Examples, Found, Lists, Size};
pub use segment::Segment;
pub use write::{Example, SegmentWriter, Written};
