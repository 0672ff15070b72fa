//! Line search over forests (Kumar et al. 2009).

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use tunesmith_space::Derivation;

use super::sweep::Sweep;
use super::tops::{Along, Tops};
use super::{LineSearch, Step, Walker};
use crate::corpus::ForestCorpus;

type Known = FxHashMap<Box<[u32]>, Box<[f64]>>;

/// Forests prepared for line search. Strings are read off the forest only for the pieces of each
/// sentence's envelope, and most of them are on the envelopes of many directions: statistics are
/// computed once and kept.
pub struct ForestSearch {
    corpus: Arc<ForestCorpus>,
    coordinates: Vec<u32>,
    /// For each sentence the statistics of strings, by their words.
    known: Vec<Mutex<Known>>,
}

impl ForestSearch {
    /// `coordinates` are the feature ids that may move.
    pub fn new(corpus: Arc<ForestCorpus>, coordinates: &[u32]) -> Self {
        let known = corpus.forests().iter().map(|_| Mutex::default()).collect();
        ForestSearch { corpus, coordinates: coordinates.to_vec(), known }
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
    fn axes(&self) -> usize {
        self.coordinates.len()
    }

    fn walker(&self, weights: Vec<f64>) -> Walker {
        let width = self.corpus.metric().width();
        let mut walker = Walker {
            weights,
            scores: Vec::new(),
            rows: Vec::new(),
            stats: Vec::new(),
            total: vec![0.0; width],
            gain: 0.0,
        };
        for (sentence, forest) in self.corpus.forests().iter().enumerate() {
            let scores = forest.scores(&walker.weights);
            match forest.viterbi(&scores) {
                Some(best) => {
                    let start = walker.stats.len();
                    walker.rows.push((start / width) as u32);
                    self.add_stats(sentence, &best, &mut walker.stats);
                    let row = &walker.stats[start..];
                    walker.total.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
                }
                None => walker.rows.push(u32::MAX),
            }
            walker.scores.extend(scores);
        }
        walker.gain = self.corpus.metric().gain(&walker.total);
        walker
    }

    fn axis(&self, walker: &Walker, axis: usize, bounds: (f64, f64)) -> Step {
        let id = self.coordinates[axis] as usize;
        let here = walker.weights[id];
        // Ids past the end weigh nothing.
        let mut direction = vec![0.0; id + 1];
        direction[id] = 1.0;
        self.direction(walker, &direction, (bounds.0 - here, bounds.1 - here))
    }

    fn direction(&self, walker: &Walker, direction: &[f64], range: (f64, f64)) -> Step {
        let width = self.corpus.metric().width();
        let mut tops = Tops::default();
        let mut rows = walker.stats.clone();
        let mut envelopes = Vec::new();
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
                for piece in &mut hull {
                    let row = (rows.len() / width) as u32;
                    self.add_stats(sentence, &tops.of(piece), &mut rows);
                    piece.line = row;
                }
                envelopes.push((sentence, hull));
            }
        }
        let stats = |_, row: u32| &rows[row as usize * width..(row as usize + 1) * width];
        let metric = self.corpus.metric();
        let mut sweep = Sweep::new(metric, stats, range, &walker.total, &walker.rows);
        for (sentence, hull) in &envelopes {
            sweep.add(*sentence, hull, |row| row);
        }
        sweep.best()
    }

    fn move_axis(&self, walker: &mut Walker, axis: usize, step: f64) {
        let mut weights = std::mem::take(&mut walker.weights);
        weights[self.coordinates[axis] as usize] += step;
        *walker = self.walker(weights);
    }
}
