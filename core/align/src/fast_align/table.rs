//! Word translation probabilities of both directions, and the counts they are made from.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::pairs::{Pairs, blocks};

/// One, so that sums are of whole numbers and do not depend on their order.
const ONE: f64 = (1u64 << 32) as f64;
/// Parts of the table that threads take.
const BLOCKS: usize = 256;

/// Adds a share of one to a count.
#[inline]
pub fn add(count: &AtomicU64, share: f64) {
    let units = (share * ONE + 0.5) as u64;
    if units > 0 {
        count.fetch_add(units, Ordering::Relaxed);
    }
}

fn take(count: &AtomicU64) -> u64 {
    count.swap(0, Ordering::Relaxed)
}

/// What NULL gives: a probability and a count for each word of one side.
pub struct Null {
    pub probabilities: Vec<f64>,
    pub counts: Vec<AtomicU64>,
}

impl Null {
    fn new(words: usize) -> Self {
        Null { probabilities: vec![1.0; words], counts: zeros(words) }
    }

    fn normalise(&mut self, alpha: f64) {
        let counts: Vec<u64> = self.counts.iter().map(take).collect();
        let scale = 1.0 / exp_digamma(total(counts.iter().sum(), counts.len(), alpha));
        for (probability, count) in self.probabilities.iter_mut().zip(counts) {
            *probability = exp_digamma(count as f64 / ONE + alpha) * scale;
        }
    }
}

/// Probabilities of targets given sources and of sources given targets, side by side: both
/// directions ask for the same pairs.
pub struct Table {
    pub probabilities: Vec<[f32; 2]>,
    pub counts: Vec<[AtomicU64; 2]>,
    pub nulls: [Null; 2],
    /// How many source words each target word occurs with.
    degrees: Vec<u32>,
}

impl Table {
    /// All pairs alike.
    pub fn new(pairs: &Pairs, (sources, targets): (usize, usize)) -> Self {
        let mut degrees = vec![0; targets];
        pairs.targets.iter().for_each(|&target| degrees[target as usize] += 1);
        Table {
            probabilities: vec![[1.0; 2]; pairs.targets.len()],
            counts: (0..pairs.targets.len()).map(|_| Default::default()).collect(),
            nulls: [Null::new(targets), Null::new(sources)],
            degrees,
        }
    }

    /// Probabilities from counts under a Dirichlet prior (variational Bayes); counts become zero.
    pub fn normalise(&mut self, pairs: &Pairs, alpha: f64) {
        self.nulls.iter_mut().for_each(|null| null.normalise(alpha));
        let ends = &pairs.rows[1..];
        let blocks = blocks(ends, BLOCKS);
        let counts = &self.counts;
        let by_target = zeros(self.degrees.len());
        let by_source: Vec<u64> = blocks
            .par_iter()
            .flat_map_iter(|words| words.clone())
            .map(|word| {
                let row = pairs.rows[word]..pairs.rows[word + 1];
                let mut sum = 0;
                for (count, &target) in counts[row.clone()].iter().zip(&pairs.targets[row]) {
                    sum += count[0].load(Ordering::Relaxed);
                    let share = count[1].load(Ordering::Relaxed);
                    by_target[target as usize].fetch_add(share, Ordering::Relaxed);
                }
                sum
            })
            .collect();
        let by_target: Vec<f64> = by_target
            .par_iter()
            .zip(&self.degrees)
            .map(|(sum, &degree)| 1.0 / exp_digamma(total(take(sum), degree as usize, alpha)))
            .collect();
        let unseen = exp_digamma(alpha);
        let weight = |count: &AtomicU64| match take(count) {
            0 => unseen,
            units => exp_digamma(units as f64 / ONE + alpha),
        };
        let mut rest = &mut self.probabilities[..];
        let mut parts = Vec::with_capacity(blocks.len());
        for words in blocks {
            let (part, more) = rest.split_at_mut(pairs.rows[words.end] - pairs.rows[words.start]);
            parts.push((words, part));
            rest = more;
        }
        parts.into_par_iter().for_each(|(words, part)| {
            let mut part = part.iter_mut();
            for word in words {
                let row = pairs.rows[word]..pairs.rows[word + 1];
                let scale = 1.0 / exp_digamma(total(by_source[word], row.len(), alpha));
                for ((count, &target), both) in
                    counts[row.clone()].iter().zip(&pairs.targets[row]).zip(&mut part)
                {
                    let values =
                        [weight(&count[0]) * scale, weight(&count[1]) * by_target[target as usize]];
                    // Never zero, and never so small that arithmetic becomes slow.
                    *both = values.map(|value| (value as f32).max(f32::MIN_POSITIVE));
                }
            }
        });
    }
}

fn zeros(count: usize) -> Vec<AtomicU64> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

fn total(units: u64, entries: usize, alpha: f64) -> f64 {
    units as f64 / ONE + alpha * entries as f64
}

/// exp(ψ(x)), without a logarithm: ψ(x) = ψ(x + 6) − Σ 1/(x + i), and an asymptotic series for
/// exp(ψ(y + ½)).
pub fn exp_digamma(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    // The sum of 1/(x + i) for i = 0 … 5, in pairs x(x + 5), (x + 1)(x + 4), (x + 2)(x + 3).
    let twice = 2.0 * x + 5.0;
    let square = x * (x + 5.0);
    let (a, b, c) = (square, square + 4.0, square + 6.0);
    let sum = twice * (b * c + a * c + a * b) / (a * b * c);
    let y = x + 5.5;
    let z = 1.0 / (y * y);
    let series = y
        * (1.0
            + z * (1.0 / 24.0
                + z * (-37.0 / 5760.0
                    + z * (10313.0 / 2_903_040.0 - z * 5_509_121.0 / 1_393_459_200.0))));
    series * (-sum).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_of_digamma() {
        for (x, psi) in [
            (0.01, -100.560_885_457_868_67),
            (0.5, -1.963_510_026_021_423_5),
            (1.0, -0.577_215_664_901_532_9),
            (2.5, 0.703_156_640_645_243_2),
            (10.0, 2.251_752_589_066_721),
            (12_345.0, 9.420_965_899_004_846),
        ] {
            let found = exp_digamma(x).ln();
            assert!((found - psi).abs() < 1e-8, "{x}: {found} for {psi}");
        }
        assert_eq!(exp_digamma(0.0), 0.0);
    }
}
