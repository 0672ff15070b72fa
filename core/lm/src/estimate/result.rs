//! What an estimate found, to be written or to be asked.

use std::path::Path;

use tunesmith_text::{Names, Result};

use super::discount::OrderStats;
use super::spool::Spool;
use super::text::Read;
use crate::arpa::{Writer, log10};
use crate::{Grams, Model};

/// N-grams that are written at once.
const BLOCK: usize = 1 << 15;

/// An estimated model, in memory or in temporary files.
pub struct Estimated {
    pub(super) names: Names,
    pub(super) orders: Vec<Spool>,
    pub(super) counts: Vec<u64>,
    pub(super) stats: Vec<OrderStats>,
    pub(super) read: Read,
}

impl Estimated {
    /// N-grams of each order.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Discounts of each order, and its size before pruning.
    pub fn stats(&self) -> &[OrderStats] {
        &self.stats
    }

    pub fn sentences(&self) -> u64 {
        self.read.sentences
    }

    pub fn words(&self) -> u64 {
        self.read.words
    }

    /// Special words in the text that were skipped.
    pub fn skipped(&self) -> u64 {
        self.read.skipped
    }

    /// Writes ARPA, compressed if the name ends in `.gz` or `.zst`.
    pub fn write_arpa(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let mut out = Writer::create(path.as_ref(), &self.names, &self.counts)?;
        for (at, spool) in self.orders.iter_mut().enumerate() {
            out.section();
            let mut block = Vec::with_capacity(BLOCK * (at + 3));
            let mut reader = spool.reader()?;
            while let Some(record) = reader.next()? {
                block.extend_from_slice(record);
                if block.len() == BLOCK * (at + 3) {
                    out.grams(&block)?;
                    block.clear();
                }
            }
            out.grams(&block)?;
        }
        out.finish()
    }

    /// The n-grams as lists; they must fit into memory.
    pub fn grams(&mut self) -> Result<Grams> {
        let mut grams = Grams::new(self.orders.len());
        // Pruned words leave gaps among the ids.
        let mut ids = vec![0; self.names.len()];
        for (at, spool) in self.orders.iter_mut().enumerate() {
            let mut reader = spool.reader()?;
            while let Some(record) = reader.next()? {
                let (words, values) = record.split_at(at + 1);
                let (prob, backoff) = (log10(values[0]).min(0.0), log10(values[1]));
                if let [word] = *words {
                    grams.push_word(self.names.name(word).unwrap_or_default(), prob, backoff)?;
                    ids[word as usize] = if word == 0 { 0 } else { grams.names.len() as u32 - 1 };
                } else {
                    grams.orders[at].words.extend(words.iter().map(|&word| ids[word as usize]));
                    grams.orders[at].values.push((prob, backoff));
                }
            }
        }
        grams.find_marks()?;
        Ok(grams)
    }

    pub fn model(&mut self) -> Result<Model> {
        Model::from_grams(self.grams()?)
    }
}
