//! Names, compressed text files and errors that say where and what to do.

mod error;
mod names;

pub use error::{Error, Result};
pub use names::Names;
