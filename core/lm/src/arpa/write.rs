//! Writing ARPA, one order after the other.

use std::path::Path;

use rayon::prelude::*;
use tunesmith_text::{AtomicWriter, Names, Result};

use super::number;

/// N-grams that one thread takes at a time.
const CHUNK: usize = 1 << 11;

/// A file in the making; it appears whole on [`finish`](Writer::finish).
pub struct Writer<'a> {
    out: AtomicWriter,
    /// Headers that are not yet written.
    head: Vec<u8>,
    names: &'a Names,
    orders: usize,
    section: usize,
}

impl<'a> Writer<'a> {
    pub fn create(path: &Path, names: &'a Names, counts: &[u64]) -> Result<Self> {
        let mut head = Vec::new();
        head.extend(b"\\data\\\n");
        for (at, count) in counts.iter().enumerate() {
            head.extend(format!("ngram {}={count}\n", at + 1).as_bytes());
        }
        let out = AtomicWriter::create(path)?;
        Ok(Writer { out, head, names, orders: counts.len(), section: 0 })
    }

    /// Begins the section of the next order.
    pub fn section(&mut self) {
        self.section += 1;
        self.head.extend(format!("\n\\{}-grams:\n", self.section).as_bytes());
    }

    /// Writes n-grams, each the ids of its words, last first, and two numbers whose logarithms are
    /// the log-probability and the backoff. The text is made on all threads of the pool.
    pub fn grams(&mut self, records: &[u32]) -> Result<()> {
        let parts: Vec<Vec<u8>> = records
            .par_chunks(CHUNK * (self.section + 2))
            .map(|chunk| {
                let mut text = Vec::with_capacity(CHUNK * 64);
                for record in chunk.chunks_exact(self.section + 2) {
                    self.gram(record, &mut text);
                }
                text
            })
            .collect();
        self.out.write_all(&std::mem::take(&mut self.head))?;
        parts.iter().try_for_each(|part| self.out.write_all(part))
    }

    fn gram(&self, record: &[u32], text: &mut Vec<u8>) {
        let (words, values) = record.split_at(self.section);
        // Rounding must not lift a probability above one.
        number::push(text, log10(values[0]).min(0.0));
        let mut separator = b'\t';
        for &word in words.iter().rev() {
            text.push(separator);
            text.extend_from_slice(self.names.name(word).unwrap_or_default().as_bytes());
            separator = b' ';
        }
        if self.section < self.orders {
            text.push(b'\t');
            number::push(text, log10(values[1]));
        }
        text.push(b'\n');
    }

    pub fn finish(mut self) -> Result<()> {
        self.head.extend(b"\n\\end\\\n");
        self.out.write_all(&self.head)?;
        self.out.finish()
    }
}

/// The logarithm of a number in single precision.
pub fn log10(bits: u32) -> f32 {
    f64::from(f32::from_bits(bits)).log10() as f32
}
