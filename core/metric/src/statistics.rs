//! Statistics of whole corpora, in parallel over sentences.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::table::{Rows, Table};
use crate::{Segment, TextMetric};

fn segment(metric: &dyn TextMetric, references: &[String]) -> Box<dyn Segment> {
    let references: Vec<&str> = references.iter().map(String::as_str).collect();
    metric.segment(&references)
}

/// One row per hypothesis, one after the other; `references[i]` belong to `hypotheses[i]`.
pub fn text_stats(
    metric: &dyn TextMetric,
    hypotheses: &[String],
    references: &[Vec<String>],
) -> Vec<f64> {
    assert_eq!(hypotheses.len(), references.len(), "hypotheses without references");
    let mut rows = vec![0.0; hypotheses.len() * metric.width()];
    rows.par_chunks_exact_mut(metric.width())
        .zip(hypotheses.par_iter().zip(references))
        .for_each(|(row, (text, references))| segment(metric, references).stats(text, row));
    rows
}

/// The lists of a corpus as a table of statistics wants them.
pub trait Lists: Sync {
    /// The first hypothesis of each list, and the end.
    fn starts(&self) -> &[usize];

    /// The lists of each line.
    fn of_line(&self, line: usize) -> Range<usize>;

    /// What is scored of a hypothesis; with a share, a translation of that much of the sentence.
    fn text(&self, hypothesis: usize) -> (Cow<'_, str>, Option<f64>);
}

/// Lists of whole translations, one for each line: where each begins, and the texts.
pub struct PlainLists<'a, T>(pub &'a [usize], pub T);

impl<'a, T: Fn(usize) -> &'a str + Sync> Lists for PlainLists<'a, T> {
    fn starts(&self) -> &[usize] {
        self.0
    }

    fn of_line(&self, line: usize) -> Range<usize> {
        line..line + 1
    }

    fn text(&self, hypothesis: usize) -> (Cow<'_, str>, Option<f64>) {
        (self.1(hypothesis).into(), None)
    }
}

/// The table of candidate lists; `references[i]` belong to line i. A text that a line has several
/// times is scored once. `None` where the metric cannot score a part of a sentence. The same for
/// any number of threads.
pub fn text_table(
    metric: &dyn TextMetric,
    lists: &dyn Lists,
    references: &[Vec<String>],
) -> Option<Table> {
    let width = metric.width();
    let of_line = |(line, references): (usize, &Vec<String>)| {
        let segment = segment(metric, references);
        // Of each text its statistics, and where a list has them.
        let mut seen: FxHashMap<(Cow<'_, str>, u64), (usize, usize, u32)> = FxHashMap::default();
        let mut known: Vec<f64> = Vec::new();
        let mut made = Vec::new();
        for list in lists.of_line(line) {
            let mut rows = Rows::default();
            for hypothesis in lists.starts()[list]..lists.starts()[list + 1] {
                let (text, share) = lists.text(hypothesis);
                let key = (text, share.unwrap_or(1.0).to_bits());
                match seen.get_mut(&key) {
                    Some(&mut (_, there, row)) if there == list => rows.repeat(row),
                    Some((at, there, row)) => {
                        *row = rows.push(&known[*at..*at + width]);
                        *there = list;
                    }
                    None => {
                        let at = known.len();
                        known.resize(at + width, 0.0);
                        match share {
                            None => segment.stats(&key.0, &mut known[at..]),
                            Some(share) => {
                                if !segment.partial_stats(&key.0, share, &mut known[at..]) {
                                    return None;
                                }
                            }
                        }
                        seen.insert(key, (at, list, rows.push(&known[at..])));
                    }
                }
            }
            made.push(rows.shut());
        }
        Some(made)
    };
    let lines: Option<Vec<Vec<Rows>>> = references.par_iter().enumerate().map(of_line).collect();
    Some(Table::join(width, lines?.into_iter().flatten().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bleu, Chrf};

    /// Two bins of one line of four words, whose hypotheses cover one and two words.
    struct Bins;

    impl Lists for Bins {
        fn starts(&self) -> &[usize] {
            &[0, 1, 3]
        }

        fn of_line(&self, _: usize) -> Range<usize> {
            0..2
        }

        fn text(&self, hypothesis: usize) -> (Cow<'_, str>, Option<f64>) {
            (["a", "a b", "a"][hypothesis].into(), Some([0.25, 0.5, 0.5][hypothesis]))
        }
    }

    #[test]
    fn parts_are_held_against_parts_of_the_references() {
        let references = vec![vec!["a b c d e f g h".into(), "a b c d".into()]];
        let table = text_table(&Bleu::default(), &Bins, &references).unwrap();
        // The nearest of 8 and 4 words, times the share.
        let lengths: Vec<f64> =
            [(0, 0), (1, 1), (1, 2)].map(|(list, at)| table.stats(list, at)[1]).to_vec();
        assert_eq!(lengths, [1.0, 2.0, 2.0]);
        assert_eq!(table.stats(1, 1)[..4], [2.0, 2.0, 2.0, 1.0]);
        assert!(text_table(&Chrf::default(), &Bins, &references).is_none());
    }

    #[test]
    fn a_table_holds_the_rows_of_its_texts() {
        let texts = ["a b", "a c", "a b", "x y", "c d e"];
        let references: Vec<Vec<String>> =
            vec![vec!["a b".into(), "c".into()], vec![], vec!["c d".into()]];
        let bleu = Bleu::default();
        let lists = PlainLists(&[0, 4, 4, 5], |at: usize| texts[at]);
        let table = text_table(&bleu, &lists, &references).unwrap();
        assert_eq!((table.sentences(), table.hypotheses(), table.distinct()), (3, 5, 4));
        let of: Vec<Vec<String>> =
            [0, 0, 0, 0, 2].iter().map(|&sentence: &usize| references[sentence].clone()).collect();
        let owned: Vec<String> = texts.iter().map(|text| text.to_string()).collect();
        let rows = text_stats(&bleu, &owned, &of);
        for (hypothesis, sentence) in [0, 0, 0, 0, 2].into_iter().enumerate() {
            let width = table.width();
            let row = &rows[hypothesis * width..(hypothesis + 1) * width];
            assert_eq!(table.stats(sentence, hypothesis), row);
        }
    }
}
