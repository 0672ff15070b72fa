//! Losses of the amount `m = w·x + offset` by which y+ wins.

/// `value` and `slope = d value / d m` for one row whose gain difference is `gain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// `max(0, gain - m)`
    Hinge,
    /// `log(1 + exp(-m))`
    Logistic,
    /// `log(1 + Σ_j exp(-m_j))` over the rows of a sentence
    Softmax,
    /// `-m`: the row already is the gradient (expected gain)
    Linear,
}

impl Loss {
    /// Slopes of all rows of one sentence, written over `margins`; returns the sentence's loss.
    pub fn slopes(self, gains: &[f64], margins: &mut [f64]) -> f64 {
        let mut total = 0.0;
        match self {
            Loss::Hinge => {
                for (margin, gain) in margins.iter_mut().zip(gains) {
                    let gap = gain - *margin;
                    total += gap.max(0.0);
                    *margin = if gap > 0.0 { -1.0 } else { 0.0 };
                }
            }
            Loss::Logistic => {
                // The logarithm of a product is the sum; factors below two fit into it.
                for margins in margins.chunks_mut(512) {
                    let mut product = 1.0;
                    for margin in margins {
                        // One exponential, of what cannot overflow, serves value and slope.
                        let small = (-margin.abs()).exp();
                        total += (-*margin).max(0.0);
                        product *= 1.0 + small;
                        let loses = if *margin > 0.0 { small } else { 1.0 };
                        *margin = -loses / (1.0 + small);
                    }
                    total += product.ln();
                }
            }
            Loss::Softmax => {
                let top = margins.iter().map(|margin| -margin).fold(0.0, f64::max);
                let rest: f64 = margins.iter().map(|margin| (-margin - top).exp()).sum();
                let norm = (-top).exp() + rest;
                total = top + norm.ln();
                for margin in margins.iter_mut() {
                    *margin = -(-*margin - top).exp() / norm;
                }
            }
            Loss::Linear => {
                for margin in margins.iter_mut() {
                    total -= *margin;
                    *margin = -1.0;
                }
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::Loss;

    #[test]
    fn slopes_are_derivatives() {
        let gains = [0.3, 0.1, 0.7];
        let at = [0.2, -1.0, 0.1];
        for loss in [Loss::Hinge, Loss::Logistic, Loss::Softmax, Loss::Linear] {
            let mut slopes = at;
            loss.slopes(&gains, &mut slopes);
            for row in 0..at.len() {
                let value = |shift: f64| {
                    let mut margins = at;
                    margins[row] += shift;
                    loss.slopes(&gains, &mut margins)
                };
                let numeric = (value(1e-6) - value(-1e-6)) / 2e-6;
                assert!((numeric - slopes[row]).abs() < 1e-5, "{loss:?} row {row}");
            }
        }
    }
}
