//! The best and the worst that lists hold.

use tunesmith_metric::{Metric, Table};
use tunesmith_space::Pools;

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
