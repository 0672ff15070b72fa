//! One pass over a corpus: select, step, observe, sentence by sentence or batch by batch.

use rayon::prelude::*;
use tunesmith_space::Among;

use crate::Fault;
use crate::chosen::{Chosen, Note};
use crate::corpus::Corpus;
use crate::gain::Gain;
use crate::model::Model;
use crate::rng::Rng;
use crate::rows::Rows;
use crate::select::{Selector, Visit};
use crate::update::{Separate, Stepped, Update};

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

impl Batch<'_, '_> {
    /// Notes what the visits saw.
    fn note(&self, corpus: &dyn Corpus, chosen: &mut Chosen) {
        chosen.scored = self.scored;
        for visit in &self.visits {
            let line = corpus.line(visit.sentence);
            let mut note = Note { line: line as u32, ..Note::default() };
            if let Some(best) = visit.best {
                let space = visit.space.as_ref();
                // Reported as they are, whatever they were multiplied by for learning.
                let scale = if visit.scale == 0.0 { 1.0 } else { visit.scale };
                note.seen = true;
                note.whole = visit.sentence + 1 == corpus.of_line(line).end;
                note.model = space.gain(best) / scale;
                if let (Some(oracle), Some(prediction)) = (visit.oracle, visit.prediction) {
                    note.paired = true;
                    note.oracle = space.gain(oracle) / scale;
                    note.prediction = space.gain(prediction) / scale;
                    note.spread = visit.spread;
                }
                let oracle = visit.oracle.unwrap_or(best);
                for candidate in [best, oracle, visit.prediction.unwrap_or(best)] {
                    chosen.stats.extend_from_slice(space.stats(candidate));
                }
            }
            chosen.notes.push(note);
        }
    }
}

/// A pass on its way: what its steps have seen so far.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    observed: Observed,
    chosen: u64,
    spread: f64,
    spread2: f64,
}

impl Progress {
    /// Takes a step on constraints that were chosen before.
    pub fn apply(
        &mut self,
        chosen: &mut Chosen,
        model: &mut Model,
        gain: &mut Gain,
        update: &mut dyn Update,
    ) -> Result<(), Fault> {
        let stepped = update.step(model, chosen)?;
        self.close(stepped, chosen, model, gain);
        Ok(())
    }

    /// Ends a step.
    fn close(&mut self, stepped: Stepped, chosen: &Chosen, model: &mut Model, gain: &mut Gain) {
        if stepped.updates > 0 || !model.skips_idle_steps() {
            model.end_step();
        }
        let observed = &mut self.observed;
        observed.updates += stepped.updates;
        observed.loss += stepped.loss;
        observed.visits += chosen.notes.len() as u64;
        for (note, rows) in chosen.seen() {
            if note.whole {
                gain.observe(note.line as usize, rows[0], rows[1]);
                for (sum, row) in observed.stats.iter_mut().zip(rows) {
                    sum.resize(row.len(), 0.0);
                    sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
                }
            }
            self.chosen += 1;
            observed.model += note.model;
            observed.oracle += note.oracle;
            observed.prediction += note.prediction;
            self.spread += note.spread;
            self.spread2 += note.spread * note.spread;
        }
    }

    /// What all steps have seen.
    pub fn end(self) -> Observed {
        let mut observed = self.observed;
        if self.chosen > 0 {
            let count = self.chosen as f64;
            observed.model /= count;
            observed.oracle /= count;
            observed.prediction /= count;
            let mean = self.spread / count;
            observed.spread = (mean, (self.spread2 / count - mean * mean).max(0.0).sqrt());
        }
        observed
    }
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
            spaces.extend(self.spaces(line));
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

    /// The spaces of a line that are not empty.
    fn spaces(&self, line: u32) -> impl Iterator<Item = usize> {
        let all = self.corpus.of_line(line as usize);
        all.filter(|&space| !self.corpus.is_blank(space))
    }

    /// The lines of each step, if a step is on all spaces of its lines.
    pub fn batches(&self) -> Vec<Vec<u32>> {
        let lines = self.order.iter().copied().filter(|&line| self.spaces(line).next().is_some());
        let lines: Vec<u32> = lines.collect();
        lines.chunks(self.batch.max(1)).map(<[u32]>::to_vec).collect()
    }

    /// Whether model scores are needed.
    pub fn is_scored(&self, gain: &Gain) -> bool {
        self.selector.reads_weights() || gain.is_wide() || self.corpus.is_searched()
    }

    fn batch(&self, spaces: &[usize], gain: &Gain) -> Batch<'_, '_> {
        let visits = spaces.iter().enumerate();
        let visits = visits.map(|(group, &sentence)| self.visit(group, sentence, gain)).collect();
        Batch { selector: self.selector, visits, scored: self.is_scored(gain), fresh: true }
    }

    /// Brings the weights up to date that selecting from the lines of a step reads.
    pub fn catch_up(&self, model: &mut Model, gain: &Gain, update: &mut dyn Update) {
        let spaces: Vec<usize> = self.order.iter().flat_map(|&line| self.spaces(line)).collect();
        self.refresh(&spaces, model, gain, update);
    }

    fn refresh(&self, spaces: &[usize], model: &mut Model, gain: &Gain, update: &mut dyn Update) {
        if self.is_scored(gain) && update.is_lazy() {
            for &sentence in spaces {
                self.corpus.ids(sentence, &mut |ids| update.catch_up(model, ids));
            }
        }
    }

    /// The first half of a step on all lines: chooses their constraints, as many rounds of them as
    /// the update asks for.
    pub fn select(
        &self,
        model: &Model,
        gain: &Gain,
        rounds: usize,
        scaled: bool,
        chosen: &mut Chosen,
    ) -> Result<(), Fault> {
        let spaces: Vec<usize> = self.order.iter().flat_map(|&line| self.spaces(line)).collect();
        self.choose(&spaces, model, gain, rounds, scaled, chosen)
    }

    fn choose(
        &self,
        spaces: &[usize],
        model: &Model,
        gain: &Gain,
        rounds: usize,
        scaled: bool,
        chosen: &mut Chosen,
    ) -> Result<(), Fault> {
        let mut batch = self.batch(spaces, gain);
        chosen.clear(rounds);
        for (round, rows) in chosen.rounds.iter_mut().enumerate() {
            rows.scaled = scaled;
            batch.separate(model, round, rows)?;
        }
        batch.note(self.corpus, chosen);
        Ok(())
    }

    /// Runs the pass. Empty lists are passed over. A stop asked for by `interrupted` is an error.
    pub fn run(
        &self,
        model: &mut Model,
        gain: &mut Gain,
        update: &mut dyn Update,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Observed, Fault> {
        let (spaces, ends) = self.steps();
        let mut progress = Progress::default();
        let mut chosen = Chosen::default();
        update.begin_pass(model, self.is_scored(gain));
        let mut start = 0;
        for end in ends {
            let sentences = &spaces[start..end];
            start = end;
            if interrupted() {
                return Err("interrupted".into());
            }
            self.refresh(sentences, model, gain, update);
            if let Some(rounds) = update.asks(self.selector.rounds()) {
                let scaled = update.is_scaled();
                self.choose(sentences, model, gain, rounds, scaled, &mut chosen)?;
                progress.apply(&mut chosen, model, gain, update)?;
            } else {
                let mut batch = self.batch(sentences, gain);
                let stepped = update.step(model, &mut batch)?;
                chosen.clear(0);
                batch.note(self.corpus, &mut chosen);
                progress.close(stepped, &chosen, model, gain);
            }
        }
        update.end_pass(model);
        Ok(progress.end())
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
