//! chrF (Popović 2015) and chrF++ (Popović 2017), as sacreBLEU prints them.

use std::borrow::Cow;

use crate::ngrams::{Ngrams, Vocabulary, total};
use crate::tokenize::{is_space, words};
use crate::{Metric, Segment, TextMetric};

/// The F-score of character n-grams, and of word n-grams if `word_order` is not 0.
/// Statistics: `[n-grams of the hypothesis, of the reference, matches]` for every order,
/// characters first. Of several references the one with the best F-score counts.
#[derive(Debug, Clone)]
pub struct Chrf {
    pub char_order: usize,
    pub word_order: usize,
    /// How many times more recall counts than precision.
    pub beta: f64,
    pub lowercase: bool,
    /// Keep white space in the character n-grams.
    pub whitespace: bool,
    /// Average F-scores with a tiny value for empty orders, as chrF++.py does, in place of the
    /// F-score of the average over orders that have n-grams.
    pub eps_smoothing: bool,
}

impl Default for Chrf {
    fn default() -> Self {
        Chrf {
            char_order: 6,
            word_order: 0,
            beta: 2.0,
            lowercase: false,
            whitespace: false,
            eps_smoothing: false,
        }
    }
}

const EPSILON: f64 = 1e-16;

impl Chrf {
    fn prepare<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.lowercase { Cow::Owned(text.to_lowercase()) } else { Cow::Borrowed(text) }
    }

    fn characters(&self, text: &str) -> Vec<u32> {
        text.chars().filter(|&c| self.whitespace || !is_space(c)).map(u32::from).collect()
    }
}

impl Metric for Chrf {
    fn width(&self) -> usize {
        3 * (self.char_order + self.word_order)
    }

    fn score(&self, stats: &[f64]) -> f64 {
        let factor = self.beta * self.beta;
        let share = |count: f64, of: f64| if of > 0.0 { count / of } else { EPSILON };
        let (mut score, mut precision, mut recall, mut orders) = (0.0, 0.0, 0.0, 0.0);
        for order in stats.chunks_exact(3) {
            let &[hypothesis, reference, matches] = order else { unreachable!() };
            let (p, r) = (share(matches, hypothesis), share(matches, reference));
            let denominator = factor * p + r;
            score += if denominator > 0.0 { (1.0 + factor) * p * r / denominator } else { EPSILON };
            if hypothesis > 0.0 && reference > 0.0 {
                precision += p;
                recall += r;
                orders += 1.0;
            }
        }
        if self.eps_smoothing {
            return 100.0 * score / (self.width() / 3) as f64;
        }
        if precision + recall <= 0.0 {
            return 0.0;
        }
        precision /= orders;
        recall /= orders;
        100.0 * ((1.0 + factor) * precision * recall / (factor * precision + recall))
    }

    fn gain(&self, stats: &[f64]) -> f64 {
        self.score(stats) / 100.0
    }
}

/// Words with one mark of punctuation taken off the end, or else off the beginning.
fn split_punctuation(text: &str) -> impl Iterator<Item = &str> {
    words(text).flat_map(|word| {
        let mark = |c: char| c.is_ascii_punctuation();
        let at = match (word.chars().next(), word.chars().next_back()) {
            (_, Some(last)) if mark(last) => word.len() - 1,
            (Some(first), _) if mark(first) => 1,
            _ => 0,
        };
        let (head, tail) = word.split_at(at);
        [head, tail].into_iter().filter(|part| !part.is_empty())
    })
}

/// The n-grams of one reference.
struct Reference {
    characters: Ngrams,
    words: Ngrams,
    /// Number of characters and words.
    lengths: [usize; 2],
}

struct References {
    chrf: Chrf,
    vocabulary: Vocabulary,
    references: Vec<Reference>,
}

impl TextMetric for Chrf {
    fn segment(&self, references: &[&str]) -> Box<dyn Segment> {
        let mut vocabulary = Vocabulary::default();
        // No reference at all is the same as a blank one.
        let texts = if references.is_empty() { &[""] } else { references };
        let references = texts
            .iter()
            .map(|text| {
                let text = self.prepare(text);
                let letters = self.characters(&text);
                let mut characters = Ngrams::new(self.char_order);
                characters.add(&letters);
                let mut words = Ngrams::new(self.word_order);
                let mut tokens = Vec::new();
                if self.word_order > 0 {
                    tokens.extend(split_punctuation(&text).map(|word| vocabulary.intern(word)));
                    words.add(&tokens);
                }
                Reference { characters, words, lengths: [letters.len(), tokens.len()] }
            })
            .collect();
        Box::new(References { chrf: self.clone(), vocabulary, references })
    }
}

impl Segment for References {
    fn stats(&self, hypothesis: &str, out: &mut [f64]) {
        let chrf = &self.chrf;
        let text = chrf.prepare(hypothesis);
        let letters = chrf.characters(&text);
        let mut tokens = Vec::new();
        if chrf.word_order > 0 {
            tokens.extend(split_punctuation(&text).map(|word| self.vocabulary.get(word)));
        }
        let mut best = -1.0;
        let mut row = vec![0.0; out.len()];
        let mut matches = vec![0.0; chrf.char_order + chrf.word_order];
        for reference in &self.references {
            matches.fill(0.0);
            let (of_letters, of_words) = matches.split_at_mut(chrf.char_order);
            reference.characters.matches(&letters, of_letters);
            reference.words.matches(&tokens, of_words);
            for (order, (cells, &matches)) in row.chunks_exact_mut(3).zip(&matches).enumerate() {
                let (n, own, theirs) = if order < chrf.char_order {
                    (order + 1, letters.len(), reference.lengths[0])
                } else {
                    (order + 1 - chrf.char_order, tokens.len(), reference.lengths[1])
                };
                let there = total(theirs, n);
                let here = if there > 0.0 { total(own, n) } else { 0.0 };
                cells.copy_from_slice(&[here, there, matches]);
            }
            let score = chrf.score(&row);
            if score > best {
                best = score;
                out.copy_from_slice(&row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats_of;

    #[test]
    fn punctuation_goes_off_one_end_only() {
        let parts: Vec<&str> = split_punctuation("(hi) \"so ! don't é, ü").collect();
        assert_eq!(parts, ["(hi", ")", "\"", "so", "!", "don't", "é", ",", "ü"]);
    }

    #[test]
    fn the_best_reference_counts() {
        let chrf = Chrf { char_order: 2, word_order: 1, ..Chrf::default() };
        let row = stats_of(&chrf, "ab c", &["xyz", "abd"]);
        assert_eq!(row, [3.0, 3.0, 2.0, 2.0, 2.0, 1.0, 2.0, 1.0, 0.0]);
    }

    #[test]
    fn blank_text_scores_nothing_and_never_nan() {
        for eps_smoothing in [false, true] {
            let chrf = Chrf { eps_smoothing, word_order: 2, ..Chrf::default() };
            for (hypothesis, references) in
                [("", vec![""]), ("", vec!["a b"]), ("a", vec![""]), ("a", vec![])]
            {
                let score = chrf.score(&stats_of(&chrf, hypothesis, &references));
                assert!((0.0..1e-10).contains(&score));
            }
        }
    }

    proptest! {
        #[test]
        fn identical_text_is_perfect_and_all_scores_are_within_bounds(
            text in "[a-c .]{0,20}[a-c]", other in "\\PC{0,20}"
        ) {
            let chrf = Chrf { word_order: 2, ..Chrf::default() };
            let same = chrf.score(&stats_of(&chrf, &text, &[&other, &text]));
            prop_assert!((same - 100.0).abs() < 1e-9);
            let score = chrf.score(&stats_of(&chrf, &text, &[&other]));
            prop_assert!((0.0..=100.0 + 1e-9).contains(&score));
        }
    }
}
