//! One pass over a corpus: select, step, observe, sentence by sentence or batch by batch.

use rayon::prelude::*;
use tunesmith_space::Among;

use crate::Fault;
use crate::corpus::Corpus;
use crate::gain::Gain;
use crate::model::Model;
use crate::rng::Rng;
use crate::rows::Rows;
use crate::select::{Selector, Visit};
use crate::update::{Separate, Update};

/// What a pass saw, for the learning curves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    pub visits: u64,
    pub updates: u64,
    pub loss: f64,
    /// Mean gains of the model's best, of y+ and of y-, as they were when visited.
    pub model: f64,
    pub oracle: f64,
    pub prediction: f64,
    /// Mean and standard deviation of `s(y+) - min s`.
    pub spread: (f64, f64),
    /// Summed statistics of the model's best, of y+ and of y-, for the scores of the corpus that
    /// they would make; of whole translations only.
    pub stats: [Vec<f64>; 3],
}

/// The parts of a pass. Lines are visited in `order`, `batch` at a time; those of a batch see the
/// same weights. Where a line has several spaces, each of them is a step of its own, unless lines are
/// taken together.
pub struct Pass<'a> {
    pub corpus: &'a dyn Corpus,
    pub selector: &'a dyn Selector,
    pub order: &'a [u32],
    pub batch: usize,
    pub seed: u64,
    pub epoch: u64,
}

struct Batch<'a, 'b> {
    selector: &'a dyn Selector,
    visits: Vec<Visit<'b>>,
    /// Whether anyone asks for model scores.
    scored: bool,
    /// Nothing has been selected yet.
    fresh: bool,
}

impl Separate for Batch<'_, '_> {
    fn rounds(&self) -> usize {
        self.selector.rounds()
    }

    fn separate(&mut self, model: &Model, round: usize, rows: &mut Rows) -> Result<(), Fault> {
        rows.clear();
        for visit in &mut self.visits {
            if self.scored {
                visit.space.rescore(model.weights());
            }
            self.selector.select(visit, model, round, rows)?;
            if self.fresh && self.scored {
                visit.best = visit.space.argmax(1.0, 0.0, Among::ALL);
                let lowest = visit.space.argmax(-1.0, 0.0, self.selector.among());
                if let (Some(oracle), Some(lowest)) = (visit.oracle, lowest) {
                    visit.spread = visit.space.score(oracle) - visit.space.score(lowest);
                }
            }
        }
        self.fresh = false;
        Ok(())
    }
}

/// Sums for [`Observed`].
#[derive(Default)]
struct Sums {
    chosen: u64,
    model: f64,
    oracle: f64,
    prediction: f64,
    spread: f64,
    spread2: f64,
}

impl Pass<'_> {
    fn visit<'b>(&'b self, group: usize, sentence: usize, gain: &Gain) -> Visit<'b> {
        let line = self.corpus.line(sentence);
        let place = sentence - self.corpus.of_line(line).start;
        Visit {
            space: self.corpus.space(sentence, gain.worth(line)),
            sentence,
            group: group as u32,
            // No corpus has so many lines that a line and a place in it could be mistaken for
            // others.
            rng: Rng::new(self.seed, self.epoch, line as u64 + ((place as u64) << 40)),
            oracle: None,
            prediction: None,
            scale: gain.scale(line),
            metric: gain.metric(),
            best: None,
            spread: 0.0,
        }
    }

    /// The spaces that are not empty, in the order of their lines, and where each step ends.
    fn steps(&self) -> (Vec<usize>, Vec<usize>) {
        let (mut spaces, mut ends) = (Vec::new(), Vec::new());
        let mut lines = 0;
        for &line in self.order {
            let before = spaces.len();
            let all = self.corpus.of_line(line as usize);
            spaces.extend(all.filter(|&space| !self.corpus.is_blank(space)));
            if spaces.len() == before {
                continue;
            }
            lines += 1;
            match self.batch {
                0 | 1 => ends.extend(before + 1..=spaces.len()),
                batch if lines % batch == 0 => ends.push(spaces.len()),
                _ => {}
            }
        }
        if ends.last().copied().unwrap_or(0) < spaces.len() {
            ends.push(spaces.len());
        }
        (spaces, ends)
    }

    /// Runs the pass. Empty lists are passed over. A stop asked for by `interrupted` is an error.
    pub fn run(
        &self,
        model: &mut Model,
        gain: &mut Gain,
        update: &mut dyn Update,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Observed, Fault> {
        let mut observed = Observed::default();
        let mut sums = Sums::default();
        let (spaces, ends) = self.steps();
        let scored = self.selector.reads_weights() || gain.is_wide() || self.corpus.is_searched();
        update.begin_pass(model, scored);
        let mut start = 0;
        for end in ends {
            let sentences = &spaces[start..end];
            start = end;
            if interrupted() {
                return Err("interrupted".into());
            }
            if scored && update.is_lazy() {
                for &sentence in sentences {
                    self.corpus.ids(sentence, &mut |ids| update.catch_up(model, ids));
                }
            }
            let visits: Vec<Visit<'_>> = sentences
                .iter()
                .enumerate()
                .map(|(group, &sentence)| self.visit(group, sentence, gain))
                .collect();
            let mut batch = Batch { selector: self.selector, visits, scored, fresh: true };
            let stepped = update.step(model, &mut batch)?;
            if stepped.updates > 0 || !model.skips_idle_steps() {
                model.end_step();
            }
            observed.updates += stepped.updates;
            observed.loss += stepped.loss;
            observed.visits += batch.visits.len() as u64;
            for visit in &batch.visits {
                let Some(best) = visit.best else { continue };
                let space = visit.space.as_ref();
                let oracle = visit.oracle.unwrap_or(best);
                let line = self.corpus.line(visit.sentence);
                // A partial translation is no output that others could be seen in the context of.
                if visit.sentence + 1 == self.corpus.of_line(line).end {
                    gain.observe(line, space.stats(best), space.stats(oracle));
                    let prediction = visit.prediction.unwrap_or(best);
                    for (sum, chosen) in observed.stats.iter_mut().zip([best, oracle, prediction]) {
                        let row = space.stats(chosen);
                        sum.resize(row.len(), 0.0);
                        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
                    }
                }
                sums.add(visit, best);
            }
        }
        update.end_pass(model);
        if sums.chosen > 0 {
            let count = sums.chosen as f64;
            observed.model = sums.model / count;
            observed.oracle = sums.oracle / count;
            observed.prediction = sums.prediction / count;
            let mean = sums.spread / count;
            observed.spread = (mean, (sums.spread2 / count - mean * mean).max(0.0).sqrt());
        }
        Ok(observed)
    }
}

impl Sums {
    fn add(&mut self, visit: &Visit<'_>, best: usize) {
        let space = visit.space.as_ref();
        self.chosen += 1;
        // Reported as they are, whatever they were multiplied by for learning.
        let scale = if visit.scale == 0.0 { 1.0 } else { visit.scale };
        self.model += space.gain(best) / scale;
        let (Some(oracle), Some(prediction)) = (visit.oracle, visit.prediction) else { return };
        self.oracle += space.gain(oracle) / scale;
        self.prediction += space.gain(prediction) / scale;
        self.spread += visit.spread;
        self.spread2 += visit.spread * visit.spread;
    }
}

/// Rows of every sentence under fixed weights, in sentence order, for batch optimisers; groups are
/// sentence numbers. Sentences are worked on in parallel, the result does not depend on how.
pub fn sample_rows(pass: &Pass<'_>, model: &Model, gain: &Gain) -> Result<Rows, Fault> {
    let parts: Result<Vec<Rows>, Fault> = pass
        .order
        .par_chunks(32)
        .map(|chunk| {
            let mut rows = Rows::default();
            for sentence in chunk.iter().flat_map(|&line| pass.corpus.of_line(line as usize)) {
                if pass.corpus.is_blank(sentence) {
                    continue;
                }
                let mut visit = pass.visit(sentence, sentence, gain);
                if pass.selector.reads_weights() || pass.corpus.is_searched() {
                    visit.space.rescore(model.weights());
                }
                pass.selector.select(&mut visit, model, 0, &mut rows)?;
            }
            Ok(rows)
        })
        .collect();
    let mut all = Rows::default();
    for part in parts? {
        all.append(part);
    }
    Ok(all)
}
