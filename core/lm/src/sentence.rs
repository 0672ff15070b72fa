//! Words of a line, and what a model thinks of a text.

use rayon::prelude::*;
use tunesmith_text::{Lines, Result, utf8};

use crate::{Batch, Model};

/// Sentences that one thread takes at a time, and such parts that are read at once.
const CHUNK: usize = 512;
const PARTS: usize = 64;

/// The words of a line: what stands between spaces, tabs, ends of lines and zero bytes.
#[inline]
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0))
        .filter(|word| !word.is_empty())
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

    /// Adds a part that was measured by itself.
    pub fn join(&mut self, other: &Perplexity) {
        self.sentences += other.sentences;
        self.tokens += other.tokens;
        self.unknown += other.unknown;
        self.log10 += other.log10;
        self.unknown_log10 += other.unknown_log10;
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

impl Model {
    /// The log-probabilities of sentences, on all threads of the pool.
    pub fn score_texts(
        &self,
        sentences: &[impl AsRef<str> + Sync],
        begin: bool,
        end: bool,
    ) -> Vec<f64> {
        let chunks = sentences.par_chunks(CHUNK).map_init(Batch::default, |batch, chunk| {
            batch.clear();
            for sentence in chunk {
                batch.push_text(self, sentence.as_ref().as_bytes(), end);
            }
            let mut sums = vec![0.0; chunk.len()];
            let mut at = 0;
            self.score_batch(batch, begin, |place, scored| {
                while place >= batch.ends()[at] {
                    at += 1;
                }
                sums[at] += f64::from(scored.log10);
            });
            sums
        });
        chunks.flatten_iter().collect()
    }

    /// Measures a text of one sentence per line, on all threads of the pool. The sums are taken
    /// in the order of the text, so that they do not depend on their number.
    pub fn measure(&self, mut lines: Lines) -> Result<Perplexity> {
        let file = lines.file().to_owned();
        let mut found = Perplexity::default();
        let mut ended = false;
        while !ended {
            let mut parts: Vec<Batch> = Vec::with_capacity(PARTS);
            while parts.len() < PARTS && !ended {
                let mut batch = Batch::default();
                while batch.ends().len() < CHUNK {
                    let number = lines.line() + 1;
                    let Some(line) = lines.next()? else {
                        ended = true;
                        break;
                    };
                    utf8(line, &file, number)?;
                    batch.push_text(self, line, true);
                }
                parts.push(batch);
            }
            let measured: Vec<Perplexity> = parts
                .par_iter()
                .map(|batch| {
                    let mut part = Perplexity::default();
                    part.add(self, batch);
                    part
                })
                .collect();
            measured.iter().for_each(|part| found.join(part));
        }
        Ok(found)
    }
}
