//! TER (Snover et al. 2006), with Tercom's shifts and limits as sacreBLEU applies them.

mod align;
mod shift;
mod text;

use crate::column::rate;
use crate::ngrams::Vocabulary;
use crate::tokenize::words;
use crate::{Metric, Segment, TextMetric};
use shift::Reference;

/// Word edits and shifts of blocks over the average length of the references. Statistics:
/// `[edits against the nearest reference, average reference length]`.
#[derive(Debug, Clone, Default)]
pub struct Ter {
    /// Set punctuation apart and undo XML escapes, as Tercom's `-N` does.
    pub normalized: bool,
    /// Leave punctuation out.
    pub no_punct: bool,
    /// Let the two above see Chinese and Japanese characters and marks.
    pub asian_support: bool,
    pub case_sensitive: bool,
}

impl Metric for Ter {
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
    ter: Ter,
    vocabulary: Vocabulary,
    references: Vec<Reference>,
    length: f64,
}

impl TextMetric for Ter {
    fn segment(&self, references: &[&str]) -> Box<dyn Segment> {
        let mut vocabulary = Vocabulary::default();
        let texts = if references.is_empty() { &[""] } else { references };
        let mut lists: Vec<Vec<u32>> = Vec::with_capacity(texts.len());
        for text in texts {
            // sacreBLEU prepares a reference twice, and ",35" comes apart only the second time.
            let once = words(&self.prepare(text)).collect::<Vec<_>>().join(" ");
            let twice = self.prepare(&once);
            lists.push(words(&twice).map(|word| vocabulary.intern(word)).collect());
        }
        let total: usize = lists.iter().map(Vec::len).sum();
        let length = total as f64 / lists.len() as f64;
        let references =
            lists.into_iter().map(|words| Reference::new(words, vocabulary.len())).collect();
        Box::new(References { ter: self.clone(), vocabulary, references, length })
    }
}

impl Segment for References {
    fn stats(&self, hypothesis: &str, out: &mut [f64]) {
        let tokens: Vec<u32> =
            words(&self.ter.prepare(hypothesis)).map(|word| self.vocabulary.get(word)).collect();
        let edits = self.references.iter().map(|reference| reference.edits(&tokens)).min();
        out.copy_from_slice(&[edits.unwrap_or(0) as f64, self.length]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats_of;

    #[test]
    fn a_moved_block_is_one_edit() {
        let ter = Ter::default();
        assert_eq!(stats_of(&ter, "d e a b c", &["a b c d e"]), [1.0, 5.0]);
        assert_eq!(stats_of(&ter, "A b", &["a B c", "x"]), [1.0, 2.0]);
    }

    #[test]
    fn references_are_prepared_twice() {
        let ter = Ter { normalized: true, ..Ter::default() };
        assert_eq!(stats_of(&ter, "a,,35", &["a,,35"]), [2.0, 4.0]);
    }

    #[test]
    fn blank_text_never_crashes() {
        let ter = Ter::default();
        assert_eq!(stats_of(&ter, "", &["a b"]), [2.0, 2.0]);
        assert_eq!(stats_of(&ter, "a b", &[""]), [2.0, 0.0]);
        assert_eq!(stats_of(&ter, "a b", &[]), [2.0, 0.0]);
        assert_eq!(stats_of(&ter, " ", &["\n"]), [0.0, 0.0]);
        assert_eq!(ter.score(&[2.0, 0.0]), 100.0);
        assert_eq!(ter.gain(&[0.0, 0.0]), 1.0);
    }

    proptest! {
        #[test]
        fn identical_text_has_no_edits_and_others_at_most_all(
            a in proptest::collection::vec("[a-d]", 0..40),
            b in proptest::collection::vec("[a-d]", 0..40),
        ) {
            let ter = Ter::default();
            let (left, right) = (a.join(" "), b.join(" "));
            prop_assert_eq!(stats_of(&ter, &left, &[&right, &left])[0], 0.0);
            let edits = stats_of(&ter, &left, &[&right])[0];
            prop_assert!(edits >= a.len().abs_diff(b.len()) as f64);
            prop_assert!(edits <= a.len().max(b.len()) as f64);
        }
    }
}
