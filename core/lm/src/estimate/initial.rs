//! Probabilities before interpolation, context by context.

use tunesmith_text::{Result, Steps, Watch};

use super::adjust::PRUNED;
use super::discount::OrderStats;
use super::sorter::{Sort, Stream};
use super::spool::Spool;
use crate::MAX_ORDER;

/// One order on its way to interpolation.
pub struct Initial {
    /// Words, last first, then probability and the weight of the order below.
    pub grams: Box<dyn Stream>,
    /// Contexts, last word first, with the weight of backing off, sorted.
    pub contexts: Spool,
}

/// The sums of one context.
#[derive(Default)]
pub struct Sums {
    total: u64,
    pruned: u64,
    with: [u64; 3],
}

impl Sums {
    pub fn add(&mut self, count: u64, pruned: bool) {
        self.total += count;
        if pruned {
            self.pruned += count;
        } else if count > 0 {
            self.with[count.min(3) as usize - 1] += 1;
        }
    }

    pub fn total(&self) -> f64 {
        self.total as f64
    }

    /// What was taken off, and what was pruned, as a share of everything.
    pub fn weight(&self, stats: &OrderStats) -> f64 {
        let taken: f64 =
            self.with.iter().zip(stats.discounts.0).map(|(&n, amount)| n as f64 * amount).sum();
        (taken + self.pruned as f64) / self.total as f64
    }
}

/// Reads n-grams sorted by context. Pruned ones leave their share to backing off and go no further.
pub fn initial(
    mut sorted: Box<dyn Stream>,
    length: usize,
    stats: &OrderStats,
    mut out: Box<dyn Sort>,
    mut contexts: Spool,
    watch: &Watch,
) -> Result<Initial> {
    let mut steps = Steps::new(watch);
    let mut context = [u32::MAX; MAX_ORDER];
    let mut members: Vec<(u32, u64)> = Vec::new();
    let mut sums = Sums::default();
    loop {
        let record = sorted.next()?;
        let same = record.is_some_and(|record| record[..length - 1] == context[..length - 1]);
        if !same && sums.total > 0 {
            let weight = sums.weight(stats) as f32;
            let mut line = [0; MAX_ORDER + 2];
            line[..length - 1].copy_from_slice(&context[..length - 1]);
            line[length - 1] = weight.to_bits();
            contexts.push(&line[..length])?;
            line.copy_within(..length - 1, 1);
            line[length + 1] = weight.to_bits();
            for &(word, count) in &members {
                line[0] = word;
                let kept = count as f64 - stats.discounts.of(count);
                line[length] = ((kept / sums.total()) as f32).to_bits();
                out.push(&line[..length + 2])?;
            }
            members.clear();
            sums = Sums::default();
        }
        let Some(record) = record else { break };
        steps.one()?;
        context[..length - 1].copy_from_slice(&record[..length - 1]);
        let upper = record[length + 1];
        let count = u64::from(record[length]) | u64::from(upper & !PRUNED) << 32;
        let pruned = upper & PRUNED != 0;
        sums.add(count, pruned);
        if !pruned {
            members.push((record[length - 1], count));
        }
    }
    // Only the result is needed from here on, and it wants the memory.
    drop(sorted);
    Ok(Initial { grams: out.finish()?, contexts })
}
