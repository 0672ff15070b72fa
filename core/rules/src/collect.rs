//! From sentences to sorted partitions: every record of a source side ends up in one place.

use std::sync::Arc;

use rayon::prelude::*;
use tunesmith_text::{Result, Watch};

use crate::bitext::{Corpus, Sentence};
use crate::code::{put, take};
use crate::hiero::HieroExtractor;
use crate::phrases::PhraseExtractor;
use crate::store::{Budget, Store};

/// Sentences that one thread takes at a time.
const CHUNK: usize = 256;
/// Sentences that show how records spread.
const SAMPLE: usize = 400;

/// Turns sentences into records: source side, target side, links, and what else is counted.
pub trait Extractor {
    fn extract(&mut self, sentence: Sentence<'_>, emit: &mut dyn FnMut(&[u8]));
}

impl Extractor for PhraseExtractor<'_> {
    fn extract(&mut self, sentence: Sentence<'_>, emit: &mut dyn FnMut(&[u8])) {
        PhraseExtractor::extract(self, sentence, emit);
    }
}

impl Extractor for HieroExtractor<'_> {
    fn extract(&mut self, sentence: Sentence<'_>, emit: &mut dyn FnMut(&[u8])) {
        HieroExtractor::extract(self, sentence, emit);
    }
}

/// Extracts everything into partitions that follow each other in the order of source sides.
pub fn collect<E: Extractor>(
    corpus: &Corpus,
    make: impl Fn() -> E + Sync,
    budget: &Arc<Budget>,
    memory: usize,
    watch: &Watch,
) -> Result<Store> {
    watch.enter("extracting", corpus.len() as u64);
    let splits = plan(corpus, &make, memory);
    let store = Store::new(splits.len() + 1, Arc::clone(budget));
    let chunks: Vec<usize> = (0..corpus.len()).step_by(CHUNK).collect();
    // Few long pieces, so that few half-empty segments are handed over.
    let pieces = chunks.len().div_ceil(64).max(1);
    chunks.par_chunks(pieces).try_for_each(|chunks| {
        let mut extractor = make();
        let mut writer = store.writer();
        let mut outcome = Ok(());
        for &start in chunks {
            let end = (start + CHUNK).min(corpus.len());
            for at in start..end {
                extractor.extract(corpus.sentence(at), &mut |record| {
                    let partition = splits.partition_point(|split| &split[..] <= record);
                    let open = writer.open(partition);
                    put(record.len() as u32, open);
                    open.extend_from_slice(record);
                    if let Err(error) = writer.full(partition) {
                        outcome = Err(error);
                    }
                });
            }
            std::mem::replace(&mut outcome, Ok(()))?;
            watch.step((end - start) as u64)?;
        }
        writer.finish()
    })?;
    Ok(store)
}

/// Source sides that cut what a sample of sentences gives into parts of equal size.
fn plan<E: Extractor>(corpus: &Corpus, make: impl Fn() -> E, memory: usize) -> Vec<Vec<u8>> {
    let step = corpus.len().div_ceil(SAMPLE).max(1);
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let mut bytes = 0;
    let mut sampled = 0;
    let mut extractor = make();
    for at in (0..corpus.len()).step_by(step) {
        sampled += 1;
        extractor.extract(corpus.sentence(at), &mut |record| {
            bytes += record.len() + 1;
            let mut rest = record;
            while take(&mut rest).is_some_and(|code| code != 0) {}
            keys.push(record[..record.len() - rest.len()].to_vec());
        });
    }
    let whole = bytes as f64 * corpus.len() as f64 / sampled.max(1) as f64;
    // Sorting takes about as much again as the records, and several partitions are open at once.
    let part = (memory / 16).clamp(1 << 16, 8 << 20);
    let parts = ((whole / part as f64).ceil() as usize).clamp(8, 1024);
    keys.sort_unstable();
    let mut splits: Vec<Vec<u8>> =
        (1..parts).filter_map(|cut| keys.get(cut * keys.len() / parts).cloned()).collect();
    splits.dedup();
    splits
}

/// The records of a partition, sorted.
pub struct Sorted<'a> {
    bytes: &'a [u8],
    /// The first eight bytes, which settle most comparisons, and the place.
    order: Vec<(u64, u32, u32)>,
}

impl<'a> Sorted<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        assert!(bytes.len() < u32::MAX as usize, "a partition beyond 4 GB");
        let mut order = Vec::new();
        let mut rest = bytes;
        while let Some(length) = take(&mut rest) {
            let start = bytes.len() - rest.len();
            let end = start + length as usize;
            let mut prefix = [0; 8];
            let known = &rest[..(length as usize).min(8)];
            prefix[..known.len()].copy_from_slice(known);
            order.push((u64::from_be_bytes(prefix), start as u32, end as u32));
            rest = &bytes[end..];
        }
        order.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| {
                bytes[a.1 as usize..a.2 as usize].cmp(&bytes[b.1 as usize..b.2 as usize])
            })
        });
        Sorted { bytes, order }
    }

    pub fn len(&self) -> usize {
        self.order.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.order.iter().map(|&(_, start, end)| &self.bytes[start as usize..end as usize])
    }
}
