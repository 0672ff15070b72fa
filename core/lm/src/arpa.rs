//! ARPA files, as the programs that make language models write them.

mod number;
mod read;
mod write;

pub use read::read;
pub use write::{Writer, log10};
