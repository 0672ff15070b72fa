//! Word and character error rate.

use std::borrow::Cow;

use rapidfuzz::distance::levenshtein::BatchComparator;

use crate::column::rate;
use crate::ngrams::Vocabulary;
use crate::tokenize::words;
use crate::{Metric, Segment, TextMetric};

/// What an edit is made on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Words between white space: WER.
    Word,
    /// Characters, runs of white space counted as one space, none at the ends: CER.
    Character,
}

/// Insertions, deletions and substitutions over the length of the reference. Statistics:
/// `[edits, reference length]`. Of several references the one with the lowest rate counts, the
/// first among equals; a blank one has an infinite rate unless the hypothesis is blank too.
#[derive(Debug, Clone)]
pub struct ErrorRate {
    pub unit: Unit,
    pub lowercase: bool,
}

impl ErrorRate {
    /// The text as numbers: `id` of each word, or the characters themselves.
    fn symbols(&self, text: &str, id: impl FnMut(&str) -> u32) -> Vec<u32> {
        let text =
            if self.lowercase { Cow::Owned(text.to_lowercase()) } else { Cow::Borrowed(text) };
        match self.unit {
            Unit::Word => words(&text).map(id).collect(),
            Unit::Character => {
                let mut symbols = Vec::with_capacity(text.len());
                for word in words(&text) {
                    if !symbols.is_empty() {
                        symbols.push(u32::from(' '));
                    }
                    symbols.extend(word.chars().map(u32::from));
                }
                symbols
            }
        }
    }
}

impl Metric for ErrorRate {
    fn width(&self) -> usize {
        2
    }

    /// Against blank references only: 100 if there is an edit, else 0.
    fn score(&self, stats: &[f64]) -> f64 {
        100.0 * rate(stats[0], stats[1])
    }

    /// Below zero where there are more edits than there is reference.
    fn gain(&self, stats: &[f64]) -> f64 {
        1.0 - rate(stats[0], stats[1])
    }
}

struct References {
    rate: ErrorRate,
    vocabulary: Vocabulary,
    references: Vec<(BatchComparator<u32>, usize)>,
}

impl TextMetric for ErrorRate {
    fn segment(&self, references: &[&str]) -> Box<dyn Segment> {
        let mut vocabulary = Vocabulary::default();
        let texts = if references.is_empty() { &[""] } else { references };
        let references = texts
            .iter()
            .map(|text| {
                let symbols = self.symbols(text, |word| vocabulary.intern(word));
                let length = symbols.len();
                (BatchComparator::new(symbols), length)
            })
            .collect();
        Box::new(References { rate: self.clone(), vocabulary, references })
    }
}

impl Segment for References {
    fn stats(&self, hypothesis: &str, out: &mut [f64]) {
        let symbols = self.rate.symbols(hypothesis, |word| self.vocabulary.get(word));
        let mut lowest = f64::INFINITY;
        for (place, (reference, length)) in self.references.iter().enumerate() {
            let edits = reference.distance(symbols.iter().copied()) as f64;
            let rate = if edits > 0.0 { edits / *length as f64 } else { 0.0 };
            if place == 0 || rate < lowest {
                lowest = rate;
                out.copy_from_slice(&[edits, *length as f64]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats_of;

    const WER: ErrorRate = ErrorRate { unit: Unit::Word, lowercase: false };
    const CER: ErrorRate = ErrorRate { unit: Unit::Character, lowercase: false };

    #[test]
    fn edits_over_reference_length() {
        assert_eq!(stats_of(&WER, "a x c d", &["a b c"]), [2.0, 3.0]);
        assert_eq!(stats_of(&CER, " kitten\t in ", &["sitting in"]), [3.0, 10.0]);
    }

    #[test]
    fn the_reference_with_the_lowest_rate_counts() {
        assert_eq!(stats_of(&WER, "a b c d", &["x b", "a x x d", ""]), [2.0, 4.0]);
        assert_eq!(stats_of(&WER, "a", &["", "b b"]), [2.0, 2.0]);
        assert_eq!(stats_of(&WER, "", &["a", ""]), [0.0, 0.0]);
        assert_eq!(stats_of(&WER, "a b", &[]), [2.0, 0.0]);
    }

    #[test]
    fn a_blank_reference_is_not_a_division_by_zero() {
        assert_eq!(WER.score(&[2.0, 0.0]), 100.0);
        assert_eq!(WER.score(&[0.0, 0.0]), 0.0);
        assert_eq!(WER.gain(&[0.0, 0.0]), 1.0);
    }

    fn slow(from: &[char], to: &[char]) -> usize {
        let mut row: Vec<usize> = (0..=to.len()).collect();
        for (i, a) in from.iter().enumerate() {
            let mut corner = i;
            row[0] = i + 1;
            for (j, b) in to.iter().enumerate() {
                let cost = (corner + usize::from(a != b)).min(row[j] + 1).min(row[j + 1] + 1);
                corner = std::mem::replace(&mut row[j + 1], cost);
            }
        }
        row[to.len()]
    }

    proptest! {
        #[test]
        fn edits_are_the_levenshtein_distance(from in "[a-cé]{0,90}", to in "[a-cé]{0,90}") {
            let row = stats_of(&CER, &from, &[&to]);
            let (a, b): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
            prop_assert_eq!(row, [slow(&a, &b) as f64, b.len() as f64]);
        }
    }
}
