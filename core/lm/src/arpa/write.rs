//! Writing ARPA, one order after the other.

use std::path::Path;

use tunesmith_text::{AtomicWriter, Names, Result};

use super::number;

const BUFFER: usize = 1 << 16;

/// A file in the making; it appears whole on [`finish`](Writer::finish).
pub struct Writer<'a> {
    out: AtomicWriter,
    buffer: Vec<u8>,
    names: &'a Names,
    orders: usize,
    section: usize,
}

impl<'a> Writer<'a> {
    pub fn create(path: &Path, names: &'a Names, counts: &[u64]) -> Result<Self> {
        let mut buffer = Vec::with_capacity(BUFFER + 4096);
        buffer.extend(b"\\data\\\n");
        for (at, count) in counts.iter().enumerate() {
            buffer.extend(format!("ngram {}={count}\n", at + 1).as_bytes());
        }
        let out = AtomicWriter::create(path)?;
        Ok(Writer { out, buffer, names, orders: counts.len(), section: 0 })
    }

    /// Begins the section of the next order.
    pub fn section(&mut self) {
        self.section += 1;
        self.buffer.extend(format!("\n\\{}-grams:\n", self.section).as_bytes());
    }

    /// Writes an n-gram, given last word first.
    pub fn gram(&mut self, reversed: &[u32], prob: f32, backoff: f32) -> Result<()> {
        number::push(&mut self.buffer, prob);
        let mut separator = b'\t';
        for &word in reversed.iter().rev() {
            self.buffer.push(separator);
            self.buffer.extend(self.names.name(word).unwrap_or_default().as_bytes());
            separator = b' ';
        }
        if self.section < self.orders {
            self.buffer.push(b'\t');
            number::push(&mut self.buffer, backoff);
        }
        self.buffer.push(b'\n');
        if self.buffer.len() >= BUFFER {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<()> {
        self.buffer.extend(b"\n\\end\\\n");
        self.out.write_all(&self.buffer)?;
        self.out.finish()
    }
}
