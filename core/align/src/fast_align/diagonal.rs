//! Where a word's partner is expected: near the diagonal, ever less likely away from it.

/// How much likelier a place nearer to the diagonal is; kept within these bounds.
const BOUNDS: (f64, f64) = (0.1, 14.0);
const STEPS: usize = 8;
const RATE: f64 = 20.0;

/// The distance of word `at` of `length` from word `given` of `others`, both from zero, as parts of
/// their sentences.
#[inline]
pub fn distance(at: usize, length: usize, given: usize, others: usize) -> f64 {
    ((at + 1) as f64 / length as f64 - (given + 1) as f64 / others as f64).abs()
}

/// The distance that tension is fitted to: from the end of the word before `given`, as in the
/// authors' program. Measured from the word itself it would be smaller, and tension nearly twice
/// as high, which the published results do not have.
#[inline]
pub fn stretch(at: usize, length: usize, given: usize, others: usize) -> f64 {
    ((at + 1) as f64 / length as f64 - given as f64 / others as f64).abs()
}

/// Calls `put` with every place of a sentence of `length` words and its unnormalised probability,
/// exp(−tension · distance), for word `given` of `others`; returns the sum.
///
/// On either side of the diagonal these are geometric series, so that two exponentials do.
#[inline]
pub fn places(
    length: usize,
    given: usize,
    others: usize,
    tension: f64,
    ratio: f64,
    mut put: impl FnMut(usize, f64),
) -> f64 {
    let split = (given + 1) * length / others;
    let start = |at| (-tension * distance(at, length, given, others)).exp();
    let mut sum = 0.0;
    if split < length {
        let mut value = start(split);
        for at in split..length {
            put(at, value);
            sum += value;
            value *= ratio;
        }
    }
    if split > 0 {
        let mut value = start(split - 1);
        for at in (0..split).rev() {
            put(at, value);
            sum += value;
            value *= ratio;
        }
    }
    sum
}

/// What one place further away multiplies a probability by.
pub fn ratio(length: usize, tension: f64) -> f64 {
    (-tension / length as f64).exp()
}

/// The tension under which the expected distance comes near `seen`, by gradient steps. (The
/// authors' program swaps two lengths in the sum that the expectation is divided by.)
/// `sizes` are numbers of words that are aligned, of words they are aligned to, and of such
/// sentences.
pub fn tighten(mut tension: f64, seen: f64, sizes: &[(usize, usize, u64)]) -> f64 {
    let words: f64 = sizes.iter().map(|&(words, _, count)| words as f64 * count as f64).sum();
    for _ in 0..STEPS {
        let mut expected = 0.0;
        for &(others, length, count) in sizes {
            let ratio = ratio(length, tension);
            for given in 0..others {
                let mut weighted = 0.0;
                let sum = places(length, given, others, tension, ratio, |at, value| {
                    weighted += value * distance(at, length, given, others);
                });
                expected += count as f64 * weighted / sum;
            }
        }
        tension = (tension + RATE * (expected / words.max(1.0) - seen)).clamp(BOUNDS.0, BOUNDS.1);
    }
    tension
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_the_exponentials() {
        for (length, others) in [(1, 1), (7, 3), (3, 7), (12, 12), (1, 9), (9, 1)] {
            for given in 0..others {
                let mut found = vec![0.0; length];
                let tension = 4.2;
                let sum =
                    places(length, given, others, tension, ratio(length, tension), |at, p| {
                        found[at] = p;
                    });
                for (at, value) in found.iter().enumerate() {
                    let expected = (-tension * distance(at, length, given, others)).exp();
                    assert!((value / expected - 1.0).abs() < 1e-12);
                }
                assert!((sum - found.iter().sum::<f64>()).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn tension_follows_the_distance() {
        let sizes = [(10, 12, 5), (7, 7, 3)];
        assert!(tighten(4.0, 0.05, &sizes) > 4.0);
        assert!(tighten(4.0, 0.4, &sizes) < 4.0);
        assert_eq!(tighten(4.0, 9.0, &sizes), BOUNDS.0);
        assert_eq!(tighten(4.0, -9.0, &sizes), BOUNDS.1);
    }
}
