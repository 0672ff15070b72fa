//! Passes over examples, and predictions.

use std::sync::Arc;

use rayon::prelude::*;
use tunesmith_solve::Rng;
use tunesmith_text::Watch;

use crate::mixing::mix;
use crate::search::Scratch;
use crate::{Fault, Gold, GoldFault, Learner, Observed, Search, Settings, Task, Weights};

/// An input with its gold derivations.
pub struct Example<T: Task> {
    pub input: T::Input,
    pub gold: Gold<T::State>,
    /// Its place among all that were given, from one.
    pub number: usize,
}

/// Examples and the learner that passes over them.
pub struct Trainer<T: Task> {
    task: Arc<T>,
    examples: Vec<Example<T>>,
    pub learner: Learner,
    settings: Settings,
    seed: u64,
    /// Inputs without any gold derivation, and those with too many.
    pub skipped: (usize, usize),
}

impl<T: Task> Trainer<T> {
    /// Finds the gold derivations of all inputs. Inputs without any are counted and left out.
    pub fn new(
        task: Arc<T>,
        inputs: Vec<T::Input>,
        settings: Settings,
        seed: u64,
    ) -> Result<Self, Fault> {
        let mut learner = Learner::new(settings.voters);
        let mut examples = Vec::with_capacity(inputs.len());
        let mut skipped = (0, 0);
        let mut contexts = learner.features.grow();
        for (place, mut input) in inputs.into_iter().enumerate() {
            match Gold::new(task.as_ref(), &input)? {
                Ok(gold) => {
                    task.prepare(&mut input, &mut contexts);
                    examples.push(Example { input, gold, number: place + 1 });
                }
                Err(GoldFault::Unreachable) => skipped.0 += 1,
                Err(GoldFault::TooMany) => skipped.1 += 1,
            }
        }
        drop(contexts);
        Ok(Trainer { task, examples, learner, settings, seed, skipped })
    }

    pub fn examples(&self) -> &[Example<T>] {
        &self.examples
    }

    /// One pass in an order that depends on seed and epoch.
    pub fn pass(&mut self, epoch: u64, watch: &Watch) -> Result<Observed, Fault> {
        watch.enter("learning", self.examples.len() as u64);
        let order = order(self.seed, epoch, 0, self.examples.len());
        let Trainer { task, examples, learner, settings, .. } = self;
        learner.pass(task.as_ref(), examples, &order, settings, watch)
    }

    /// One pass by several learners, each over its own share of the examples, that are then mixed.
    /// The shares are the same in every pass; one learner makes the serial pass.
    pub fn mixed_pass(
        &mut self,
        shards: usize,
        epoch: u64,
        watch: &Watch,
    ) -> Result<Observed, Fault> {
        watch.enter("learning", self.examples.len() as u64);
        let Trainer { task, examples, learner, settings, seed, .. } = self;
        let ran: Result<Vec<(Learner, Observed)>, Fault> = (0..shards)
            .into_par_iter()
            .map(|shard| {
                let own: Vec<u32> =
                    (shard..examples.len()).step_by(shards).map(|n| n as u32).collect();
                let order = order(*seed, epoch, shard, own.len());
                let order: Vec<u32> = order.iter().map(|&place| own[place as usize]).collect();
                let mut copy = learner.clone();
                let observed = copy.pass(task.as_ref(), examples, &order, settings, watch)?;
                Ok((copy, observed))
            })
            .collect();
        let (copies, seen): (Vec<_>, Vec<_>) = ran?.into_iter().unzip();
        mix(learner, copies);
        let mut all = Observed::default();
        seen.iter().for_each(|each| all.add(each));
        Ok(all)
    }
}

/// The order in which a learner visits its examples.
fn order(seed: u64, epoch: u64, shard: usize, length: usize) -> Vec<u32> {
    // Sentence numbers never reach these streams' names.
    Rng::new(seed, epoch, u64::MAX - shard as u64).permutation(length)
}

/// The actions of the best derivation of every input; of several voters, those with most votes.
pub fn predict<T: Task>(
    task: &T,
    weights: &Weights,
    inputs: &mut [T::Input],
    beam: usize,
    watch: &Watch,
) -> Result<Vec<Vec<u32>>, Fault> {
    let features = &weights.features;
    watch.enter("predicting", inputs.len() as u64);
    inputs
        .par_iter_mut()
        .map(|input| {
            task.prepare(input, &mut features.lookup());
            let mut tally: Vec<(Vec<u32>, f64)> = Vec::new();
            for (voter, &votes) in weights.voters.iter().zip(&weights.votes) {
                let search = Search { task, features, weights: voter, beam };
                let mut scratch = Scratch::new(features);
                let actions = search.run(input, None, false, &mut scratch)?.best();
                match tally.iter_mut().find(|(known, _)| *known == actions) {
                    Some((_, sum)) => *sum += votes,
                    None => tally.push((actions, votes)),
                }
            }
            watch.step(1)?;
            let mut best = 0;
            for (place, (_, votes)) in tally.iter().enumerate() {
                if *votes > tally[best].1 {
                    best = place;
                }
            }
            Ok(tally.swap_remove(best).0)
        })
        .collect()
}
