//! A sentence side as bytes, so that the bytes of a phrase are a slice of it.

use crate::code::put;

#[derive(Debug, Default)]
pub struct Coded {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl Coded {
    pub fn set(&mut self, words: &[u32]) {
        self.bytes.clear();
        self.starts.clear();
        for &word in words {
            self.starts.push(self.bytes.len());
            put(word, &mut self.bytes);
        }
        self.starts.push(self.bytes.len());
    }

    /// The bytes of the words from `first` to `last`, both included.
    pub fn span(&self, first: usize, last: usize) -> &[u8] {
        &self.bytes[self.starts[first]..self.starts[last + 1]]
    }
}
