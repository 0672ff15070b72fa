//! The best and the worst that lists and forests hold.

use rayon::prelude::*;
use tunesmith_metric::{Metric, Table};
use tunesmith_space::{Among, Pools, Space};

use crate::corpus::ForestCorpus;
use crate::gain::Worth;

/// Positions of the best (or worst) hypothesis of every list alone, -1 for empty lists.
pub fn best_alone(pools: &Pools, table: &Table, metric: &dyn Metric, best: bool) -> Vec<i64> {
    let sign = if best { 1.0 } else { -1.0 };
    let mut gains = Vec::new();
    (0..pools.sentences())
        .map(|sentence| {
            metric.sentence_gains(table.rows(sentence), &mut gains);
            tunesmith_space::argmax(gains.iter().map(|gain| sign * gain))
                .map_or(-1, |(row, _)| position(pools, table, sentence, row))
        })
        .collect()
}

/// Goes once over the lists from `first` on, of which `chosen` has the positions, and exchanges a
/// choice for another one of its list where that makes the gain of the corpus better (or worse).
/// `total` is the sum of the statistics of all choices, of other lists too. Each list sees the
/// exchanges of those before it. Repeated until nothing changes, this is exact for metrics whose
/// sentences do not interact; for BLEU a close bound.
pub fn exchange(
    pools: &Pools,
    table: &Table,
    metric: &dyn Metric,
    best: bool,
    first: usize,
    chosen: &mut [i64],
    total: &mut Vec<f64>,
) {
    let width = metric.width();
    let sign = if best { 1.0 } else { -1.0 };
    let mut gains = Vec::new();
    for (sentence, chosen) in (first..).zip(chosen) {
        let Ok(place) = usize::try_from(*chosen) else { continue };
        let list = pools.list(sentence);
        let row = table.of(list.clone())[place - list.start] as usize;
        let rows = table.rows(sentence);
        let own = &rows[row * width..(row + 1) * width];
        let base: Vec<f64> = total.iter().zip(own).map(|(sum, own)| sum - own).collect();
        metric.gains(&base, rows, &mut gains);
        let Some((other, top)) = tunesmith_space::argmax(gains.iter().map(|gain| sign * gain))
        else {
            continue;
        };
        if top > sign * gains[row] {
            let stats = &rows[other * width..(other + 1) * width];
            *total = base.iter().zip(stats).map(|(base, value)| base + value).collect();
            *chosen = position(pools, table, sentence, other);
        }
    }
}

/// The first hypothesis of a list that has a row of the table.
fn position(pools: &Pools, table: &Table, sentence: usize, row: usize) -> i64 {
    let list = pools.list(sentence);
    let start = list.start;
    let place = table.of(list).iter().position(|&other| other as usize == row);
    place.map_or(-1, |place| (start + place) as i64)
}

/// What was chosen for the sentences of a corpus so far.
pub struct Standing<'a> {
    pub texts: &'a [String],
    /// The statistics of each.
    pub rows: &'a [f64],
    /// The sum of the statistics of all choices, of other sentences too.
    pub total: &'a [f64],
}

/// The best (or worst) strings of forests that a search finds, blank where there is no derivation:
/// of every sentence alone, or within what was chosen for all others. A choice is kept unless a
/// better one is found. The model decides only among equals, and what the search expects of the
/// rest of a sentence.
pub fn forest_choices(
    corpus: &ForestCorpus,
    weights: &[f64],
    best: bool,
    before: Option<Standing<'_>>,
) -> Vec<String> {
    let metric = corpus.numbers();
    let width = metric.width();
    let sign = if best { 1.0 } else { -1.0 };
    let choose = |sentence: usize| {
        let old = before.as_ref().map(|all| {
            (&all.texts[sentence], &all.rows[sentence * width..(sentence + 1) * width], all.total)
        });
        let worth = match old {
            None => Worth::alone(metric.clone()),
            Some((_, own, total)) => {
                let base = total.iter().zip(own).map(|(sum, own)| sum - own).collect();
                Worth::over(metric.clone(), base, 0.0, 1.0)
            }
        };
        let mut space = corpus.forest_space(sentence, worth.clone());
        space.rescore(weights);
        let Some(found) = space.argmax(0.0, sign, Among::ALL) else { return String::new() };
        let value = |row: &[f64]| sign * worth.gain(row);
        match old {
            Some((text, own, _)) if value(space.stats(found)) <= value(own) => text.clone(),
            _ => space.text(found).to_owned(),
        }
    };
    (0..corpus.forests().len()).into_par_iter().map(choose).collect()
}
