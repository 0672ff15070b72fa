//! Line search over forests (Kumar et al. 2009).

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use tunesmith_metric::Metric;
use tunesmith_space::Derivation;

use super::sweep::{Breaks, Collect};
use super::tops::{Along, Tops};
use super::{LineSearch, Walker};
use crate::blocks::Blocks;
use crate::corpus::ForestCorpus;

type Known = FxHashMap<Box<[u32]>, Box<[f64]>>;

/// Forests prepared for line search. Strings are read off the forest only for the pieces of each
/// sentence's envelope, and most of them are on the envelopes of many directions: statistics are
/// computed once and kept.
pub struct ForestSearch {
    corpus: Arc<ForestCorpus>,
    blocks: Blocks,
    coordinates: Vec<u32>,
    /// For each sentence the statistics of strings, by their words.
    known: Vec<Mutex<Known>>,
}

impl ForestSearch {
    /// `coordinates` are the feature ids that may move, `blocks` those of the forests.
    pub fn new(corpus: Arc<ForestCorpus>, blocks: Blocks, coordinates: &[u32]) -> Self {
        assert_eq!(corpus.forests().len(), blocks.sentences(), "blocks of other forests");
        let known = corpus.forests().iter().map(|_| Mutex::default()).collect();
        ForestSearch { corpus, blocks, coordinates: coordinates.to_vec(), known }
    }

    /// Adds the statistics of a derivation to rows.
    fn add_stats(&self, sentence: usize, derivation: &Derivation, rows: &mut Vec<f64>) {
        let forest = &self.corpus.forests()[sentence];
        let words = forest.yielded(derivation);
        let mut known = self.known[sentence].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(row) = known.get(words.as_slice()) {
            rows.extend_from_slice(row);
            return;
        }
        let mut row = vec![0.0; self.corpus.metric().width()];
        self.corpus.stats(sentence, &forest.text(derivation), &mut row);
        rows.extend_from_slice(&row);
        known.insert(words.into(), row.into());
    }
}

impl LineSearch for ForestSearch {
    fn metric(&self) -> &dyn Metric {
        self.corpus.metric()
    }

    fn axes(&self) -> usize {
        self.coordinates.len()
    }

    fn coordinate(&self, axis: usize) -> usize {
        self.coordinates[axis] as usize
    }

    fn walker(&self, weights: Vec<f64>) -> Walker {
        let width = self.corpus.metric().width();
        let mut walker = Walker {
            weights,
            scores: Vec::new(),
            rows: Vec::new(),
            stats: Vec::new(),
            sums: vec![0.0; self.blocks.len() * width],
        };
        for (sentence, forest) in self.corpus.forests().iter().enumerate() {
            let scores = forest.scores(&walker.weights);
            match forest.viterbi(&scores) {
                Some(best) => {
                    let start = walker.stats.len();
                    walker.rows.push((start / width) as u32);
                    self.add_stats(sentence, &best, &mut walker.stats);
                    let at = self.blocks.of(sentence) * width;
                    let sums = walker.sums[at..at + width].iter_mut();
                    sums.zip(&walker.stats[start..]).for_each(|(sum, value)| *sum += value);
                }
                None => walker.rows.push(u32::MAX),
            }
            walker.scores.extend(scores);
        }
        walker
    }

    fn axis_breaks(&self, walker: &Walker, axis: usize, range: (f64, f64)) -> Breaks {
        let id = self.coordinate(axis);
        // Ids past the end weigh nothing.
        let mut direction = vec![0.0; id + 1];
        direction[id] = 1.0;
        self.breaks(walker, &direction, range)
    }

    fn breaks(&self, walker: &Walker, direction: &[f64], range: (f64, f64)) -> Breaks {
        let width = self.metric().width();
        let mut tops = Tops::default();
        let mut found = Collect::new(&self.blocks, width, range);
        let mut rows = Vec::new();
        let mut start = 0;
        for (sentence, forest) in self.corpus.forests().iter().enumerate() {
            let scores = &walker.scores[start..start + forest.edges().len()];
            start += scores.len();
            let slopes = forest.scores(direction);
            if walker.rows[sentence] == u32::MAX || slopes.iter().all(|&slope| slope == 0.0) {
                continue;
            }
            let along = Along { forest, scores, slopes: &slopes };
            let mut hull = tops.build(along, range).to_vec();
            if hull.len() > 1 {
                rows.clear();
                for (row, piece) in hull.iter_mut().enumerate() {
                    self.add_stats(sentence, &tops.of(piece), &mut rows);
                    piece.line = row as u32;
                }
                let place = |row: u32| row as usize * width..(row as usize + 1) * width;
                let now = &walker.stats[place(walker.rows[sentence])];
                found.add(sentence, &hull, now, |line| &rows[place(line)]);
            }
        }
        found.finish()
    }

    fn move_axis(&self, walker: &mut Walker, axis: usize, step: f64) {
        let mut weights = std::mem::take(&mut walker.weights);
        weights[self.coordinates[axis] as usize] += step;
        *walker = self.walker(weights);
    }
}
