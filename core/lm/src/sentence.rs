//! Words of a line, and what a model thinks of a text.

use crate::{Batch, Model};

/// The words of a line: what stands between spaces, tabs, carriage returns and zero bytes.
#[inline]
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t' | b'\r' | 0)).filter(|word| !word.is_empty())
}

/// What a text costs under a model; parts add up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Perplexity {
    pub sentences: u64,
    /// Words and ends of sentences.
    pub tokens: u64,
    /// Words the model does not know.
    pub unknown: u64,
    /// Log-probability to base ten of everything, and of the unknown words alone.
    pub log10: f64,
    pub unknown_log10: f64,
}

impl Perplexity {
    /// Adds sentences, each with its end.
    pub fn add(&mut self, model: &Model, batch: &Batch) {
        self.sentences += batch.ends().len() as u64;
        self.tokens += batch.ids().len() as u64;
        model.score_batch(batch, true, |at, scored| {
            self.log10 += f64::from(scored.log10);
            if batch.ids()[at] == 0 {
                self.unknown += 1;
                self.unknown_log10 += f64::from(scored.log10);
            }
        });
    }

    /// Perplexity per token, unknown words included.
    pub fn with_unknown(&self) -> f64 {
        perplexity(self.log10, self.tokens)
    }

    /// Perplexity per token that the model knows.
    pub fn without_unknown(&self) -> f64 {
        perplexity(self.log10 - self.unknown_log10, self.tokens - self.unknown)
    }
}

fn perplexity(log10: f64, tokens: u64) -> f64 {
    10f64.powf(-log10 / tokens as f64)
}
