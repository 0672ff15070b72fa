//! Counts of pairs, discounted: seldom seen pairs are less certain than their frequency says.

use crate::groups::{Counts, Total};

/// How relative frequencies of phrase pairs are smoothed (Foster, Kuhn & Johnson 2006).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Smoothing {
    #[default]
    None,
    GoodTuring,
    KneserNey,
}

/// Discounts for one set of counts, in single precision as Moses has them.
#[derive(Debug, Clone)]
pub enum Discount {
    None,
    /// Factors for counts from one on.
    GoodTuring(Vec<f32>),
    /// Absolute discounts for counts of one, two, and more, and the number of pairs.
    KneserNey([f32; 3], f32),
}

impl Discount {
    pub fn new(smoothing: Smoothing, counts: &Counts) -> Discount {
        let of = |count: usize| counts.of_counts[count] as f32;
        match smoothing {
            Smoothing::None => Discount::None,
            Smoothing::GoodTuring => {
                let mut factors = vec![0.01f32];
                for count in 1..10 {
                    let next = (count as f64 + 1.0) as f32 / count as f32
                        * ((f64::from(of(count + 1)) + 0.1) / (f64::from(of(count)) + 0.1)) as f32;
                    factors.push(next.min(1.0).max(factors[count - 1]));
                }
                Discount::GoodTuring(factors)
            }
            Smoothing::KneserNey => {
                let ratio = |a: f32, b: f32| if b > 0.0 { a / b } else { 0.0 };
                let common = ratio(of(1), of(1) + 2.0 * of(2));
                let discount = |count: usize| {
                    let size = count as f32;
                    let raw = size - (size + 1.0) * common * ratio(of(count + 1), of(count));
                    raw.min(size - 0.1)
                };
                Discount::KneserNey([discount(1), discount(2), discount(3)], counts.pairs as f32)
            }
        }
    }

    /// p(f | e) and p(e | f) of a pair from its count and the totals of both sides.
    pub fn probabilities(&self, count: u64, source: Total, target: Total) -> (f32, f32) {
        let pair = count as f32;
        let (by_source, by_target) = (source.count as f32, target.count as f32);
        match self {
            Discount::None => (pair / by_target, pair / by_source),
            Discount::GoodTuring(factors) => {
                let adjusted = match factors.get(count as usize) {
                    Some(factor) if (count as usize) < factors.len() - 1 => pair * factor,
                    _ => pair,
                };
                (adjusted / by_target, adjusted / by_source)
            }
            Discount::KneserNey(discounts, pairs) => {
                let mut discount = discounts[(count as usize).clamp(1, 3) - 1];
                if discount > pair {
                    discount = pair - 0.01;
                }
                // What is taken away goes to all pairs of the side, by how many others they have.
                let share = |own: Total, total: f32, other: Total| {
                    let mass = discount * own.distinct as f32 / total;
                    pair - discount + total * mass * (other.distinct as f32 / pairs)
                };
                let inverse = share(target, by_target, source);
                let direct = share(source, by_source, target);
                (inverse / by_target, direct / by_source)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts() -> Counts {
        let mut counts = Counts { pairs: 100, ..Counts::default() };
        counts.of_counts[1..5].copy_from_slice(&[60, 20, 10, 5]);
        counts
    }

    #[test]
    fn plain_frequencies() {
        let total = |count| Total { count, ..Total::default() };
        let (inverse, direct) = Discount::None.probabilities(2, total(4), total(8));
        assert_eq!((inverse, direct), (0.25, 0.5));
    }

    #[test]
    fn seldom_pairs_lose_most() {
        let total = Total { count: 10, distinct: 4, weight: 0 };
        for smoothing in [Smoothing::GoodTuring, Smoothing::KneserNey] {
            let discount = Discount::new(smoothing, &counts());
            let kept = |count: u64| {
                let (inverse, direct) = discount.probabilities(count, total, total);
                assert!(inverse > 0.0 && (inverse - direct).abs() < 1e-6);
                f64::from(direct) / (count as f64 / 10.0)
            };
            assert!(kept(1) < kept(10), "{smoothing:?}");
            assert!(kept(3) <= 1.0 && kept(10) <= 1.0);
        }
        assert!(
            (Discount::new(Smoothing::GoodTuring, &counts()).probabilities(1, total, total).0
                - 0.1 * 2.0 * 20.1 / 60.1)
                .abs()
                < 1e-6
        );
    }

    #[test]
    fn empty_counts_divide_by_nothing() {
        let total = Total { count: 1, distinct: 1, weight: 0 };
        for smoothing in [Smoothing::GoodTuring, Smoothing::KneserNey] {
            let mut counts = Counts { pairs: 1, ..Counts::default() };
            counts.of_counts[1] = 1;
            let (inverse, direct) =
                Discount::new(smoothing, &counts).probabilities(1, total, total);
            assert!(inverse.is_finite() && direct.is_finite() && direct > 0.0);
        }
    }
}
