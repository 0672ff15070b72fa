//! Metrics as sufficient statistics that add up, and a score of their sum.

mod table;

pub use table::{Table, TableBuilder};

/// A metric. Statistics are rows of `width` numbers; rows add up over sentences.
pub trait Metric: Send + Sync {
    fn width(&self) -> usize;

    /// The corpus score of summed statistics, as the metric's own program prints it (0-100).
    fn score(&self, stats: &[f64]) -> f64;

    /// The same as a gain: higher is better, 1 is perfect. Errors become gains here and
    /// nowhere else.
    fn gain(&self, stats: &[f64]) -> f64;

    /// The gain of a single sentence, smoothed where the metric needs it (BLEU+1).
    fn sentence_gain(&self, stats: &[f64]) -> f64 {
        self.gain(stats)
    }

    /// Gains of many rows at once, each added to `base`: `out[i] = gain(base + rows[i])`.
    fn gains(&self, base: &[f64], rows: &[f64], out: &mut Vec<f64>) {
        let width = self.width();
        let mut sum = vec![0.0; width];
        out.clear();
        out.extend(rows.chunks_exact(width).map(|row| {
            sum.iter_mut().zip(base).zip(row).for_each(|((sum, base), row)| *sum = base + row);
            self.gain(&sum)
        }));
    }
}

/// A metric that reads text. References are prepared once per sentence.
pub trait TextMetric: Metric {
    fn segment(&self, references: &[&str]) -> Box<dyn Segment>;
}

/// One sentence's references, ready to score hypotheses.
pub trait Segment: Send + Sync {
    fn stats(&self, hypothesis: &str, out: &mut [f64]);
}
