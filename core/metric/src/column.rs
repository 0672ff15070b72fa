//! Metrics over numbers that came with the hypotheses: a mean, or a ratio of sums.

use crate::Metric;

/// `numerator / denominator`; with nothing to divide by, an error is a full one.
pub(crate) fn rate(numerator: f64, denominator: f64) -> f64 {
    if denominator > 0.0 {
        numerator / denominator
    } else if numerator > 0.0 {
        1.0
    } else {
        0.0
    }
}

fn gain(score: f64, higher: bool) -> f64 {
    if higher { score / 100.0 } else { 1.0 - score / 100.0 }
}

/// The mean of one value per hypothesis, times `scale`. Statistics: `[value, 1]`.
#[derive(Debug, Clone)]
pub struct Mean {
    /// 100 for values between 0 and 1, 1 for values that are on a scale of 100 already.
    pub scale: f64,
    /// Higher is better.
    pub higher: bool,
}

impl Default for Mean {
    fn default() -> Self {
        Mean { scale: 100.0, higher: true }
    }
}

impl Metric for Mean {
    fn width(&self) -> usize {
        2
    }

    /// Zero for no hypotheses.
    fn score(&self, stats: &[f64]) -> f64 {
        if stats[1] > 0.0 { self.scale * (stats[0] / stats[1]) } else { 0.0 }
    }

    fn gain(&self, stats: &[f64]) -> f64 {
        gain(self.score(stats), self.higher)
    }
}

/// The ratio of two sums, such as errors and length, times `scale`. Statistics:
/// `[numerator, denominator]`.
#[derive(Debug, Clone)]
pub struct Ratio {
    pub scale: f64,
    /// Higher is better.
    pub higher: bool,
}

impl Default for Ratio {
    fn default() -> Self {
        Ratio { scale: 100.0, higher: false }
    }
}

impl Metric for Ratio {
    fn width(&self) -> usize {
        2
    }

    /// Where the denominators add up to nothing: `scale` if there is a numerator, else zero.
    fn score(&self, stats: &[f64]) -> f64 {
        self.scale * rate(stats[0], stats[1])
    }

    fn gain(&self, stats: &[f64]) -> f64 {
        gain(self.score(stats), self.higher)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_a_mean_and_errors_become_gains() {
        let mean = Mean::default();
        assert_eq!(mean.score(&[1.5, 2.0]), 75.0);
        assert_eq!(mean.gain(&[1.5, 2.0]), 0.75);
        assert_eq!(mean.score(&[0.0, 0.0]), 0.0);
        assert_eq!(Mean { scale: 1.0, higher: false }.gain(&[30.0, 1.0]), 0.7);
    }

    #[test]
    fn a_ratio_of_sums_survives_an_empty_denominator() {
        let ratio = Ratio::default();
        assert_eq!(ratio.score(&[1.0, 4.0]), 25.0);
        assert_eq!(ratio.gain(&[1.0, 4.0]), 0.75);
        assert_eq!(ratio.score(&[2.0, 0.0]), 100.0);
        assert_eq!(ratio.score(&[0.0, 0.0]), 0.0);
    }
}
