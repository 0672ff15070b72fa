//! Statistics of whole corpora, in parallel over sentences.

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

/// The table of candidate lists: `starts` holds the first hypothesis of each sentence and the
/// end, `text` gives a hypothesis by its position, `references[i]` belong to sentence i. A text
/// that a list has several times is scored once. The same for any number of threads.
pub fn text_table<'a>(
    metric: &dyn TextMetric,
    starts: &[usize],
    text: impl Fn(usize) -> &'a str + Sync,
    references: &[Vec<String>],
) -> Table {
    assert_eq!(starts.len(), references.len() + 1, "sentences without references");
    let lists: Vec<Rows> = starts
        .par_windows(2)
        .zip(references)
        .map(|(list, references)| {
            let segment = segment(metric, references);
            let mut seen: FxHashMap<&str, u32> = FxHashMap::default();
            let mut row = vec![0.0; metric.width()];
            let mut rows = Rows::default();
            for text in (list[0]..list[1]).map(&text) {
                if let Some(&known) = seen.get(text) {
                    rows.repeat(known);
                } else {
                    segment.stats(text, &mut row);
                    seen.insert(text, rows.push(&row));
                }
            }
            rows.shut()
        })
        .collect();
    Table::join(metric.width(), lists)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bleu;

    #[test]
    fn a_table_holds_the_rows_of_its_texts() {
        let texts = ["a b", "a c", "a b", "x y", "c d e"];
        let references: Vec<Vec<String>> =
            vec![vec!["a b".into(), "c".into()], vec![], vec!["c d".into()]];
        let bleu = Bleu::default();
        let table = text_table(&bleu, &[0, 4, 4, 5], |at| texts[at], &references);
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
