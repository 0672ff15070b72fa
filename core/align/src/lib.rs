//! Word alignments: made from text, read from Pharaoh files, and one alignment out of two directed ones.

mod fast_align;
mod file;
mod pharaoh;
mod symmetrise;

pub use fast_align::{FastAlign, Outcome, fast_align};
pub use file::symmetrise_files;
pub use pharaoh::{format, parse, parse_into};
pub use symmetrise::{Heuristic, symmetrise};

/// A source and a target position, both from zero.
pub type Link = (u16, u16);
