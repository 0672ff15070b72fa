//! Each order interpolated with the one below, and joined with its backoffs.

use std::cmp::Ordering;

use tunesmith_text::{Result, Steps, Watch};

use super::discount::OrderStats;
use super::initial::{Initial, Sums};
use super::spool::{Reader, Spool};
use super::{BOS, UNK};

/// All orders as records of words, last first, probability and backoff (neither a logarithm).
pub fn interpolate(
    unigrams: &[(u64, bool)],
    stats: &OrderStats,
    parts: Vec<Initial>,
    new: impl Fn(usize) -> Spool,
    watch: &Watch,
) -> Result<Vec<Spool>> {
    let mut steps = Steps::new(watch);
    let (mut streams, mut contexts): (Vec<_>, Vec<_>) =
        parts.into_iter().map(|part| (part.grams, part.contexts)).unzip();
    let mut finished: Vec<Spool> = Vec::with_capacity(streams.len() + 1);
    let mut first = new(1);
    {
        let mut backoffs = Backoffs::new(contexts.first_mut())?;
        for (word, prob) in unigram_probabilities(unigrams, stats) {
            let backoff = backoffs.of(&[word])?;
            first.push(&[word, (prob as f32).to_bits(), backoff.to_bits()])?;
        }
    }
    finished.push(first);
    for (at, grams) in streams.iter_mut().enumerate() {
        let length = at + 2;
        let mut spool = new(length);
        let mut lower = finished[at].reader()?;
        let mut backoffs = Backoffs::new(contexts.get_mut(at + 1))?;
        let mut ending = [0; crate::MAX_ORDER];
        let mut below = 0.0;
        let mut started = false;
        while let Some(record) = grams.next()? {
            steps.one()?;
            // Both are sorted, and no n-gram is without its ending.
            while !started || ending[..length - 1] != record[..length - 1] {
                let Some(found) = lower.next()? else { break };
                ending[..length - 1].copy_from_slice(&found[..length - 1]);
                below = f64::from(f32::from_bits(found[length - 1]));
                started = true;
            }
            let own = f64::from(f32::from_bits(record[length]));
            let weight = f64::from(f32::from_bits(record[length + 1]));
            let prob = (own + weight * below) as f32;
            let backoff = backoffs.of(&record[..length])?;
            let mut line = [0; crate::MAX_ORDER + 2];
            line[..length].copy_from_slice(&record[..length]);
            line[length] = prob.to_bits();
            line[length + 1] = backoff.to_bits();
            spool.push(&line[..length + 2])?;
        }
        drop(lower);
        finished.push(spool);
    }
    Ok(finished)
}

/// Words that stay, with their probabilities: interpolated with the same share for every word but
/// `<s>`, which is never predicted.
fn unigram_probabilities(
    unigrams: &[(u64, bool)],
    stats: &OrderStats,
) -> impl Iterator<Item = (u32, f64)> {
    let mut sums = Sums::default();
    for &(count, pruned) in unigrams {
        sums.add(count, pruned);
    }
    let (total, weight) = (sums.total(), sums.weight(stats));
    let kept = unigrams.iter().filter(|(_, pruned)| !pruned).count() - 1;
    let uniform = weight / kept as f64;
    unigrams.iter().enumerate().filter(|(_, (_, pruned))| !pruned).map(
        move |(word, &(count, _))| {
            let prob = match word as u32 {
                BOS => 1.0,
                UNK => uniform,
                _ => (count as f64 - stats.discounts.of(count)) / total + uniform,
            };
            (word as u32, prob)
        },
    )
}

/// The backoffs of an order, asked for in ascending order.
struct Backoffs<'a> {
    reader: Option<Reader<'a>>,
    held: Vec<u32>,
}

impl<'a> Backoffs<'a> {
    fn new(contexts: Option<&'a mut Spool>) -> Result<Self> {
        let reader = contexts.map(Spool::reader).transpose()?;
        Ok(Backoffs { reader, held: Vec::new() })
    }

    /// One for an n-gram that is no context.
    fn of(&mut self, words: &[u32]) -> Result<f32> {
        let Some(reader) = &mut self.reader else { return Ok(1.0) };
        loop {
            if let Some((&weight, context)) = self.held.split_last() {
                match context.cmp(words) {
                    Ordering::Equal => return Ok(f32::from_bits(weight)),
                    Ordering::Greater => return Ok(1.0),
                    Ordering::Less => {}
                }
            }
            match reader.next()? {
                Some(record) => {
                    self.held.clear();
                    self.held.extend_from_slice(record);
                }
                None => {
                    self.reader = None;
                    return Ok(1.0);
                }
            }
        }
    }
}
