//! The compact table: a trie over source sides, memory-mapped, checked before use.

mod layout;
mod read;
mod write;

pub use layout::Kind;
pub use read::{Entries, Entry, Node, Table};
pub use write::TableWriter;
