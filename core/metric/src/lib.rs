//! Metrics as sufficient statistics that add up, and a score of their sum.

mod blend;
mod bleu;
mod chrf;
mod column;
mod edit;
mod ngrams;
mod statistics;
mod table;
mod ter;
mod tokenize;

pub use blend::Blend;
pub use bleu::{Bleu, Length};
pub use chrf::Chrf;
pub use column::{Mean, Ratio};
pub use edit::{ErrorRate, Unit};
pub use statistics::{Lists, PlainLists, text_stats, text_table};
pub use table::{Table, TableBuilder};
pub use ter::Ter;
pub use tokenize::Tokenizer;

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

    /// Scores of many rows at once.
    fn scores(&self, rows: &[f64], out: &mut Vec<f64>) {
        out.clear();
        out.extend(rows.chunks_exact(self.width()).map(|row| self.score(row)));
    }

    /// Sentence gains of many rows at once.
    fn sentence_gains(&self, rows: &[f64], out: &mut Vec<f64>) {
        out.clear();
        out.extend(rows.chunks_exact(self.width()).map(|row| self.sentence_gain(row)));
    }
}

/// A metric that reads text. References are prepared once per sentence.
pub trait TextMetric: Metric {
    /// No references are the same as a blank one.
    fn segment(&self, references: &[&str]) -> Box<dyn Segment>;
}

/// One sentence's references, ready to score hypotheses.
pub trait Segment: Send + Sync {
    /// Writes the statistics of a hypothesis over `out`.
    fn stats(&self, hypothesis: &str, out: &mut [f64]);

    /// The same for a translation of a part of the sentence, with references as much shorter;
    /// false where the metric cannot say what that means.
    fn partial_stats(&self, hypothesis: &str, share: f64, out: &mut [f64]) -> bool {
        let _ = (hypothesis, share, out);
        false
    }

    /// The references' n-grams, for a metric that needs to know nothing else of a hypothesis but
    /// its length: what lets a search put statistics together from those of parts.
    fn grams(&self) -> Option<&dyn Grams> {
        None
    }
}

/// The n-grams of a sentence's references, numbered from 0, shorter ones first.
pub trait Grams: Send + Sync {
    /// Of the longest n-grams.
    fn order(&self) -> usize;

    /// Adds the tokens of a word taken by itself; one that no reference has is [`UNSEEN`].
    fn tokens(&self, word: &str, out: &mut Vec<u32>);

    /// The n-gram with a token more at its end, if a reference has it; nothing is lengthened to a
    /// single token.
    fn longer(&self, gram: Option<u32>, token: u32) -> Option<u32>;

    /// How often each n-gram may match.
    fn limits(&self) -> &[u8];

    /// Where the n-grams of each length end.
    fn ends(&self) -> &[usize];

    /// Writes the matches of each order, where a hypothesis has each n-gram so often, up to its
    /// limit.
    fn matches(&self, counts: &[u8], out: &mut [f64]) {
        let mut start = 0;
        for (sum, &end) in out.iter_mut().zip(self.ends()) {
            *sum = f64::from(counts[start..end].iter().map(|&count| u32::from(count)).sum::<u32>());
            start = end;
        }
    }

    /// Writes the statistics of a hypothesis with a length in tokens and matches of each order.
    fn row(&self, length: usize, matches: &[f64], out: &mut [f64]);
}

/// The token of a word that no reference has.
pub const UNSEEN: u32 = ngrams::UNKNOWN;

#[cfg(test)]
fn stats_of(metric: &dyn TextMetric, hypothesis: &str, references: &[&str]) -> Vec<f64> {
    let mut row = vec![f64::NAN; metric.width()];
    metric.segment(references).stats(hypothesis, &mut row);
    row
}
