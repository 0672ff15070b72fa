//! The best and the worst that lists and forests hold.

use rayon::prelude::*;
use tunesmith_metric::{Metric, Table};
use tunesmith_space::{Among, Pools, Space};

use crate::corpus::ForestCorpus;
use crate::gain::Worth;

/// Passes of exchange; in practice two or three suffice.
const PASSES: usize = 20;

/// Chosen positions, -1 for empty lists: the best (or worst) corpus gain reached by exchanging one
/// sentence at a time, starting from the best (worst) of every sentence alone. Exact for metrics
/// whose sentences do not interact; for BLEU a close bound.
pub fn oracle(pools: &Pools, table: &Table, metric: &dyn Metric, best: bool) -> Vec<i64> {
    let width = metric.width();
    let sign = if best { 1.0 } else { -1.0 };
    let mut total = vec![0.0; width];
    let mut gains = Vec::new();
    let mut row_of: Vec<Option<usize>> = Vec::with_capacity(pools.sentences());
    for sentence in 0..pools.sentences() {
        metric.sentence_gains(table.rows(sentence), &mut gains);
        let row = tunesmith_space::argmax(gains.iter().map(|gain| sign * gain)).map(|(row, _)| row);
        if let Some(row) = row {
            let stats = &table.rows(sentence)[row * width..(row + 1) * width];
            total.iter_mut().zip(stats).for_each(|(sum, value)| *sum += value);
        }
        row_of.push(row);
    }
    for _ in 0..PASSES {
        let mut changed = false;
        for (sentence, chosen) in row_of.iter_mut().enumerate() {
            let Some(row) = chosen else { continue };
            let rows = table.rows(sentence);
            let own = &rows[*row * width..(*row + 1) * width];
            let base: Vec<f64> = total.iter().zip(own).map(|(sum, own)| sum - own).collect();
            metric.gains(&base, rows, &mut gains);
            let Some((other, top)) = tunesmith_space::argmax(gains.iter().map(|gain| sign * gain))
            else {
                continue;
            };
            if top > sign * gains[*row] {
                let stats = &rows[other * width..(other + 1) * width];
                total = base.iter().zip(stats).map(|(base, value)| base + value).collect();
                *row = other;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    row_of
        .into_iter()
        .enumerate()
        .map(|(sentence, row)| {
            let list = pools.list(sentence);
            let start = list.start;
            let place =
                row.and_then(|row| table.of(list).iter().position(|&other| other as usize == row));
            place.map_or(-1, |place| (start + place) as i64)
        })
        .collect()
}

/// Rounds over a corpus of forests; in practice the second changes little, the third nothing.
const ROUNDS: usize = 3;

/// The same over forests: texts and rows of statistics, blank where there is no derivation. Every
/// sentence is searched alone first, then within what the round before chose for all others; a
/// choice is kept unless a better one is found, and a round unless the corpus gain fell. The model
/// decides only among equals, and what the search expects of the rest of a sentence.
pub fn forest_oracle(
    corpus: &ForestCorpus,
    weights: &[f64],
    best: bool,
) -> (Vec<String>, Vec<f64>) {
    let metric = corpus.numbers();
    let width = metric.width();
    let sentences = corpus.forests().len();
    let sign = if best { 1.0 } else { -1.0 };
    let choose = |sentence: usize, worth: Worth, old: Option<&(String, Vec<f64>)>| {
        let mut space = corpus.forest_space(sentence, worth.clone());
        space.rescore(weights);
        let found = space
            .argmax(0.0, sign, Among::ALL)
            .map(|found| (space.text(found).to_owned(), space.stats(found).to_vec()));
        let value = |choice: &(String, Vec<f64>)| sign * worth.gain(&choice.1);
        match (found, old) {
            (Some(found), Some(old)) if value(&found) <= value(old) => old.clone(),
            (Some(found), _) => found,
            (None, _) => (String::new(), vec![0.0; width]),
        }
    };
    let total = |chosen: &[(String, Vec<f64>)]| {
        let mut total = vec![0.0; width];
        for (_, row) in chosen {
            total.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        total
    };
    let mut chosen: Vec<(String, Vec<f64>)> = (0..sentences)
        .into_par_iter()
        .map(|sentence| choose(sentence, Worth::alone(metric.clone()), None))
        .collect();
    for _ in 1..ROUNDS {
        let sum = total(&chosen);
        let next: Vec<(String, Vec<f64>)> = chosen
            .par_iter()
            .enumerate()
            .map(|(sentence, own)| {
                let base = sum.iter().zip(&own.1).map(|(sum, own)| sum - own).collect();
                choose(sentence, Worth::over(metric.clone(), base, 0.0, 1.0), Some(own))
            })
            .collect();
        if sign * metric.gain(&total(&next)) <= sign * metric.gain(&sum) {
            break;
        }
        chosen = next;
    }
    let rows = chosen.iter().flat_map(|(_, row)| row).copied().collect();
    (chosen.into_iter().map(|(text, _)| text).collect(), rows)
}
