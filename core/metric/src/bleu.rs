//! BLEU (Papineni et al. 2002), as sacreBLEU prints it.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::ngrams::{Ngrams, Numbered, Vocabulary, total};
use crate::tokenize::{Tokenizer, words};
use crate::{Grams, Metric, Segment, TextMetric};

/// Which length of several references a hypothesis is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Length {
    /// The one nearest to the hypothesis' own, the shorter of two as near.
    #[default]
    Closest,
    Shortest,
    Average,
}

impl Length {
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "closest" => Some(Length::Closest),
            "shortest" => Some(Length::Shortest),
            "average" => Some(Length::Average),
            _ => None,
        }
    }

    /// The same where each reference counts with a share of its length only.
    fn of_share(self, hypothesis: usize, references: &[usize], share: f64) -> f64 {
        let lengths = references.iter().map(|&length| length as f64 * share);
        let away = |length: f64| (length - hypothesis as f64).abs();
        match self {
            Length::Closest => lengths
                .min_by(|a, b| away(*a).total_cmp(&away(*b)).then(a.total_cmp(b)))
                .unwrap_or(0.0),
            Length::Shortest | Length::Average => share * self.of(hypothesis, references),
        }
    }

    fn of(self, hypothesis: usize, references: &[usize]) -> f64 {
        let chosen = match self {
            Length::Closest => {
                references.iter().min_by_key(|&&length| (length.abs_diff(hypothesis), length))
            }
            Length::Shortest => references.iter().min(),
            Length::Average => {
                let sum: usize = references.iter().sum();
                return sum as f64 / references.len().max(1) as f64;
            }
        };
        chosen.map_or(0.0, |&length| length as f64)
    }
}

/// BLEU up to an order of at most four. Statistics:
/// `[hypothesis length, reference length, matches 1..order, totals 1..order]`.
///
/// An order without a match is smoothed as in mteval ("exp"): half a match for the first such
/// order, a quarter for the next, and so on. Without any match, or without any n-gram of the
/// highest order, the score is zero.
#[derive(Debug, Clone)]
pub struct Bleu {
    order: usize,
    pub tokenizer: Tokenizer,
    pub lowercase: bool,
    pub length: Length,
}

impl Default for Bleu {
    fn default() -> Self {
        Bleu::new(4)
    }
}

/// Rows taken together in [`Bleu::gains`].
const LANES: usize = 8;

impl Bleu {
    /// Highest order of n-grams, 1 to 4.
    pub fn new(order: usize) -> Self {
        assert!((1..=4).contains(&order), "BLEU has orders 1 to 4");
        Bleu { order, tokenizer: Tokenizer::default(), lowercase: false, length: Length::default() }
    }

    fn prepare<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.lowercase {
            Cow::Owned(self.tokenizer.apply(&text.to_lowercase()).into_owned())
        } else {
            self.tokenizer.apply(text)
        }
    }

    fn root(&self, product: f64) -> f64 {
        match self.order {
            1 => product,
            2 => product.sqrt(),
            3 => product.cbrt(),
            _ => product.sqrt().sqrt(),
        }
    }

    fn matches<'a>(&self, stats: &'a [f64]) -> &'a [f64] {
        &stats[2..2 + self.order]
    }

    fn totals<'a>(&self, stats: &'a [f64]) -> &'a [f64] {
        &stats[2 + self.order..]
    }
}

fn brevity(hypothesis: f64, reference: f64) -> f64 {
    if hypothesis >= reference {
        1.0
    } else if hypothesis > 0.0 {
        (1.0 - reference / hypothesis).exp()
    } else {
        0.0
    }
}

impl Metric for Bleu {
    fn width(&self) -> usize {
        2 + 2 * self.order
    }

    fn score(&self, stats: &[f64]) -> f64 {
        let (matches, totals) = (self.matches(stats), self.totals(stats));
        if matches.iter().all(|&count| count <= 0.0) || totals.iter().any(|&total| total <= 0.0) {
            return 0.0;
        }
        let mut smooth = 1.0;
        let mut logs = 0.0;
        for (&count, &total) in matches.iter().zip(totals) {
            logs += if count > 0.0 {
                100.0 * count / total
            } else {
                smooth *= 2.0;
                100.0 / (smooth * total)
            }
            .ln();
        }
        brevity(stats[0], stats[1]) * (logs / self.order as f64).exp()
    }

    fn gain(&self, stats: &[f64]) -> f64 {
        let (matches, totals) = (self.matches(stats), self.totals(stats));
        if matches.iter().chain(totals).any(|&count| count <= 0.0) {
            return self.score(stats) / 100.0;
        }
        let ratio = matches.iter().product::<f64>() / totals.iter().product::<f64>();
        self.root(ratio) * brevity(stats[0], stats[1])
    }

    /// BLEU+1: one more match and one more n-gram in every order but the first.
    fn sentence_gain(&self, stats: &[f64]) -> f64 {
        if stats[0] <= 0.0 {
            return 0.0;
        }
        let (matches, totals) = (self.matches(stats), self.totals(stats));
        let mut ratio = matches[0] / totals[0];
        for (count, total) in matches.iter().zip(totals).skip(1) {
            ratio *= (count + 1.0) / (total + 1.0);
        }
        self.root(ratio) * brevity(stats[0], stats[1])
    }

    /// Equal to [`gain`](Metric::gain) row by row, to the last bit. Logarithms are needed only
    /// for a row with an order without a match, the exponential only for one that is too short.
    fn gains(&self, base: &[f64], rows: &[f64], out: &mut Vec<f64>) {
        out.clear();
        match self.order {
            1 => self.gains_of::<1>(base, rows, out),
            2 => self.gains_of::<2>(base, rows, out),
            3 => self.gains_of::<3>(base, rows, out),
            _ => self.gains_of::<4>(base, rows, out),
        }
    }
}

impl Bleu {
    fn gains_of<const ORDER: usize>(&self, base: &[f64], rows: &[f64], out: &mut Vec<f64>) {
        let width = 2 + 2 * ORDER;
        let base = &base[..width];
        for block in rows.chunks(LANES * width) {
            let mut least = [f64::INFINITY; LANES];
            let mut matches = [1.0; LANES];
            let mut totals = [1.0; LANES];
            let mut lengths = [[1.0; LANES]; 2];
            for (lane, row) in block.chunks_exact(width).enumerate() {
                lengths[0][lane] = base[0] + row[0];
                lengths[1][lane] = base[1] + row[1];
                for n in 2..2 + ORDER {
                    let count = base[n] + row[n];
                    let total = base[n + ORDER] + row[n + ORDER];
                    let less = if count < total { count } else { total };
                    least[lane] = if less < least[lane] { less } else { least[lane] };
                    matches[lane] *= count;
                    totals[lane] *= total;
                }
            }
            let mut gains = [0.0; LANES];
            for lane in 0..LANES {
                let ratio: f64 = matches[lane] / totals[lane];
                gains[lane] = match ORDER {
                    1 => ratio,
                    2 => ratio.sqrt(),
                    3 => ratio.cbrt(),
                    _ => ratio.sqrt().sqrt(),
                };
            }
            for (lane, row) in block.chunks_exact(width).enumerate() {
                if least[lane] <= 0.0 {
                    let sum: Vec<f64> =
                        base.iter().zip(row).map(|(base, row)| base + row).collect();
                    gains[lane] = self.score(&sum) / 100.0;
                } else if lengths[0][lane] < lengths[1][lane] {
                    gains[lane] *= brevity(lengths[0][lane], lengths[1][lane]);
                }
            }
            out.extend_from_slice(&gains[..block.len() / width]);
        }
    }
}

impl TextMetric for Bleu {
    fn segment(&self, references: &[&str]) -> Box<dyn Segment> {
        let mut vocabulary = Vocabulary::default();
        let mut ngrams = Ngrams::new(self.order);
        let mut lengths = Vec::with_capacity(references.len());
        for reference in references {
            let tokens: Vec<u32> =
                words(&self.prepare(reference)).map(|word| vocabulary.intern(word)).collect();
            lengths.push(tokens.len());
            ngrams.add(&tokens);
        }
        let numbered = OnceLock::new();
        Box::new(References { bleu: self.clone(), vocabulary, ngrams, numbered, lengths })
    }
}

struct References {
    bleu: Bleu,
    vocabulary: Vocabulary,
    ngrams: Ngrams,
    /// Made when somebody asks for it.
    numbered: OnceLock<Numbered>,
    lengths: Vec<usize>,
}

impl Segment for References {
    fn stats(&self, hypothesis: &str, out: &mut [f64]) {
        let tokens: Vec<u32> =
            words(&self.bleu.prepare(hypothesis)).map(|word| self.vocabulary.get(word)).collect();
        let mut matches = [0.0; 4];
        let matches = &mut matches[..self.bleu.order];
        self.ngrams.matches(&tokens, matches);
        self.row(tokens.len(), matches, out);
    }

    /// The references' n-grams all count, their length by the share (Liu & Huang 2014).
    fn partial_stats(&self, hypothesis: &str, share: f64, out: &mut [f64]) -> bool {
        self.stats(hypothesis, out);
        out[1] = self.bleu.length.of_share(out[0] as usize, &self.lengths, share);
        true
    }

    fn grams(&self) -> Option<&dyn Grams> {
        Some(self)
    }
}

impl References {
    fn numbered(&self) -> &Numbered {
        self.numbered.get_or_init(|| self.ngrams.numbered())
    }
}

impl Grams for References {
    fn order(&self) -> usize {
        self.bleu.order
    }

    fn tokens(&self, word: &str, out: &mut Vec<u32>) {
        out.extend(words(&self.bleu.prepare(word)).map(|word| self.vocabulary.get(word)));
    }

    fn longer(&self, gram: Option<u32>, token: u32) -> Option<u32> {
        self.ngrams.lengthen(self.numbered(), gram, token)
    }

    fn limits(&self) -> &[u8] {
        &self.numbered().limits
    }

    fn ends(&self) -> &[usize] {
        &self.numbered().ends
    }

    fn row(&self, length: usize, matches: &[f64], out: &mut [f64]) {
        let order = self.bleu.order;
        out[0] = length as f64;
        out[1] = self.bleu.length.of(length, &self.lengths);
        out[2..2 + order].copy_from_slice(matches);
        for n in 1..=order {
            out[1 + order + n] = total(length, n);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats_of;

    #[test]
    fn matches_are_clipped_by_the_highest_count_of_any_reference() {
        let row =
            stats_of(&Bleu::default(), "the the the cat", &["the cat", "the the dog sat down"]);
        assert_eq!(row, [4.0, 5.0, 3.0, 2.0, 0.0, 0.0, 4.0, 3.0, 2.0, 1.0]);
    }

    #[test]
    fn reference_length_follows_the_option() {
        for (length, expected) in
            [(Length::Closest, 2.0), (Length::Shortest, 2.0), (Length::Average, 3.0)]
        {
            let bleu = Bleu { length, ..Bleu::default() };
            assert_eq!(stats_of(&bleu, "a b c", &["a b c d", "a b"])[1], expected);
        }
    }

    #[test]
    fn blank_text_scores_nothing_and_never_nan() {
        let bleu = Bleu::default();
        for (hypothesis, references) in
            [("", vec![""]), ("", vec!["a b"]), ("a", vec![""]), ("a", vec![])]
        {
            let row = stats_of(&bleu, hypothesis, &references);
            assert_eq!(bleu.score(&row), 0.0);
            assert_eq!(bleu.gain(&row), 0.0);
            assert_eq!(bleu.sentence_gain(&row), 0.0);
        }
    }

    fn row(order: usize) -> impl Strategy<Value = Vec<f64>> {
        let counts = proptest::collection::vec((0u32..9, 0u32..9), order);
        (0u32..20, 0u32..20, counts).prop_map(|(hypothesis, reference, counts)| {
            let mut row = vec![f64::from(hypothesis), f64::from(reference)];
            row.extend(counts.iter().map(|&(count, _)| f64::from(count)));
            row.extend(counts.iter().map(|&(count, rest)| f64::from(count + rest)));
            row
        })
    }

    proptest! {
        #[test]
        fn many_gains_are_the_single_ones_to_the_last_bit(
            (order, base, rows) in (1usize..5).prop_flat_map(|order| {
                (Just(order), row(order), proptest::collection::vec(row(order), 0..40))
            })
        ) {
            let bleu = Bleu::new(order);
            let mut out = Vec::new();
            bleu.gains(&base, &rows.concat(), &mut out);
            prop_assert_eq!(out.len(), rows.len());
            for (gain, row) in out.iter().zip(&rows) {
                let sum: Vec<f64> = base.iter().zip(row).map(|(base, row)| base + row).collect();
                prop_assert_eq!(gain.to_bits(), bleu.gain(&sum).to_bits());
                prop_assert!((gain - bleu.score(&sum) / 100.0).abs() < 1e-12);
                prop_assert!(gain.is_finite());
            }
        }

        #[test]
        fn identical_text_is_perfect(words in proptest::collection::vec("[a-z]{1,3}", 4..12)) {
            let text = words.join(" ");
            let bleu = Bleu::default();
            let row = stats_of(&bleu, &text, &[&text, "x"]);
            prop_assert!((bleu.score(&row) - 100.0).abs() < 1e-9);
            prop_assert_eq!(bleu.gain(&row), 1.0);
            prop_assert_eq!(bleu.sentence_gain(&row), 1.0);
        }
    }
}
