//! Which words occur together, with a number for each pair of them.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;
use tunesmith_text::{Result, Watch};

use super::text::Text;

/// Parts of the vocabulary that threads take.
const BLOCKS: usize = 64;

/// The pairs of words that stand in a sentence pair together, by source word, and for every pair
/// of places in the text the number of its words: no look-up is left to do.
pub struct Pairs {
    /// Where the pairs of each source word begin; one more for the end.
    pub rows: Vec<usize>,
    /// The target word of each pair.
    pub targets: Vec<u32>,
    /// For each sentence pair, source place and target place: the pair, from the beginning of the
    /// source word's row.
    places: Vec<AtomicU32>,
    starts: Vec<usize>,
}

impl Pairs {
    pub fn new(text: &Text, watch: &Watch) -> Result<Self> {
        let (sources, targets) = text.names();
        let mut starts = Vec::with_capacity(text.len() + 1);
        let mut size = 0;
        starts.push(0);
        for at in 0..text.len() {
            let (source, target) = text.pair(at);
            size += source.len() * target.len();
            starts.push(size);
        }
        watch.enter("pairs of words", size as u64);
        let places: Vec<AtomicU32> = (0..size).into_par_iter().map(|_| AtomicU32::new(0)).collect();
        let (ends, occurrences) = occurrences(text, sources);
        // Every word's row is its own business, so the numbers do not depend on threads.
        let found: Vec<(Vec<u32>, Vec<u32>)> = blocks(&ends, BLOCKS)
            .into_par_iter()
            .map(|words| {
                let mut numbers = vec![(u32::MAX, 0); targets];
                let (mut lengths, mut row) = (Vec::new(), Vec::new());
                for word in words {
                    let begin = row.len();
                    let start = word.checked_sub(1).map_or(0, |last| ends[last]);
                    let mut seen = 0;
                    for &(at, place) in &occurrences[start..ends[word]] {
                        let target = text.pair(at as usize).1;
                        let to = starts[at as usize] + place as usize * target.len();
                        for (&other, number) in target.iter().zip(&places[to..]) {
                            let entry = &mut numbers[other as usize];
                            if entry.0 != word as u32 {
                                *entry = (word as u32, (row.len() - begin) as u32);
                                row.push(other);
                            }
                            number.store(entry.1, Ordering::Relaxed);
                        }
                        seen += target.len() as u64;
                    }
                    watch.step(seen)?;
                    lengths.push((row.len() - begin) as u32);
                }
                Ok((lengths, row))
            })
            .collect::<Result<_>>()?;
        let mut rows = Vec::with_capacity(sources + 1);
        rows.push(0);
        let mut end = 0;
        for length in found.iter().flat_map(|(lengths, _)| lengths) {
            end += *length as usize;
            rows.push(end);
        }
        let targets = found.into_iter().flat_map(|(_, row)| row).collect();
        Ok(Pairs { rows, targets, places, starts })
    }

    /// The numbers of the pairs of source place `place` of sentence pair `at`, target by target.
    #[inline]
    pub fn row(
        &self,
        at: usize,
        place: usize,
        word: u32,
        others: usize,
    ) -> impl Iterator<Item = usize> + '_ {
        let start = self.starts[at] + place * others;
        let row = self.rows[word as usize];
        self.places[start..start + others]
            .iter()
            .map(move |number| row + number.load(Ordering::Relaxed) as usize)
    }
}

/// For each source word where in the list of its sentences and places it ends, and that list.
fn occurrences(text: &Text, sources: usize) -> (Vec<usize>, Vec<(u32, u32)>) {
    let mut ends = vec![0; sources];
    for at in 0..text.len() {
        text.pair(at).0.iter().for_each(|&word| ends[word as usize] += 1);
    }
    let mut sum = 0;
    for end in &mut ends {
        (sum, *end) = (sum + *end, sum);
    }
    let mut list = vec![(0, 0); text.source_words()];
    for at in 0..text.len() {
        for (place, &word) in text.pair(at).0.iter().enumerate() {
            let next = &mut ends[word as usize];
            list[*next] = (at as u32, place as u32);
            *next += 1;
        }
    }
    (ends, list)
}

/// Ranges that cut ascending `ends` into about `count` parts of equal weight.
pub fn blocks(ends: &[usize], count: usize) -> Vec<std::ops::Range<usize>> {
    let whole = ends.last().copied().unwrap_or(0);
    let mut cuts: Vec<usize> = (0..count)
        .map(|part| ends.partition_point(|&end| end <= whole * part / count))
        .chain([ends.len()])
        .collect();
    cuts[0] = 0;
    cuts.dedup();
    cuts.windows(2).map(|cut| cut[0]..cut[1]).collect()
}
