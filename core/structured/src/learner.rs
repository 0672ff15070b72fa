//! The learner: where gold and the beam part, and the step that follows.

use rayon::prelude::*;
use tunesmith_solve::update::{Hildreth, PassiveAggressive};
use tunesmith_solve::{Kind, Model, Rows, Rung, Update, Violation};
use tunesmith_text::{Error, Watch};

use crate::rows::{Given, difference};
use crate::search::Scratch;
use crate::trainer::Example;
use crate::votes::Votes;
use crate::{Fault, Features, Search, Task, Weights};

/// The margin by which MIRA wants a gold derivation to win over any other.
const MARGIN: f64 = 1.0;
/// Hildreth's limits, as in the tuners.
const TOLERANCE: f64 = 1e-8;
const SWEEPS: usize = 10_000;

/// How a violation moves the weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// `w += f(gold) - f(rival)`, divided by the size of the batch.
    Perceptron,
    /// The smallest change that lets gold win over the beam's best by the margin.
    Mira { c: f64 },
    /// The same for the beam's `k` best that are not gold.
    KBest { k: usize, c: f64 },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    pub beam: usize,
    pub violation: Violation,
    pub method: Method,
    /// Examples that are searched with the same weights and make one step.
    pub batch: usize,
    /// How many weight vectors vote; 0 asks for the average.
    pub voters: usize,
}

/// What a pass saw.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Observed {
    pub examples: u64,
    /// Examples whose search ended with something else than gold.
    pub wrong: u64,
    /// Examples that moved the weights.
    pub updates: u64,
    /// Updates where gold scored better: only the unchecked update makes these.
    pub invalid: u64,
    /// Sum of the violations that were updated at.
    pub violation: f64,
}

impl Observed {
    pub fn add(&mut self, other: &Observed) {
        self.examples += other.examples;
        self.wrong += other.wrong;
        self.updates += other.updates;
        self.invalid += other.invalid;
        self.violation += other.violation;
    }
}

/// Features and weights while they are learnt.
#[derive(Debug, Clone)]
pub struct Learner {
    pub features: Features,
    pub(crate) model: Model,
    pub(crate) votes: Option<Votes>,
}

/// What an example shows under fixed weights.
pub struct Found<S> {
    pub wrong: bool,
    pub rungs: Vec<Rung>,
    /// The step to update at, from one; `None` if nothing is to be repaired.
    pub step: Option<usize>,
    gold: Vec<(S, u32)>,
    rivals: Vec<Vec<(S, u32)>>,
}

impl Learner {
    pub fn new(voters: usize) -> Self {
        let votes = (voters > 0).then(|| Votes::new(voters));
        Learner { features: Features::default(), model: Model::new(Vec::new()), votes }
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The weights to use: the average of all, or those that vote.
    pub fn weights(&self) -> Weights {
        let cast = match &self.votes {
            Some(votes) => votes.cast(self.model.weights()),
            None => vec![(1, self.model.average())],
        };
        Weights::pruned(&self.features, &cast)
    }

    /// Visits examples in order, batch by batch.
    pub fn pass<T: Task>(
        &mut self,
        task: &T,
        examples: &[Example<T>],
        order: &[u32],
        settings: &Settings,
        watch: &Watch,
    ) -> Result<Observed, Fault> {
        let mut observed = Observed::default();
        for batch in order.chunks(settings.batch) {
            let find = |&place: &u32| {
                let example = &examples[place as usize];
                self.find(task, example, settings).map_err(|fault| example.locate(fault))
            };
            let found: Result<Vec<_>, Fault> = match batch {
                [one] => find(one).map(|found| vec![found]),
                _ => batch.par_iter().map(find).collect(),
            };
            let chosen: Vec<&Example<T>> =
                batch.iter().map(|&place| &examples[place as usize]).collect();
            self.step(task, &chosen, &found?, settings, &mut observed)?;
            watch.step(batch.len() as u64)?;
        }
        Ok(observed)
    }

    /// Searches an example, and finds the step to update at.
    pub fn find<T: Task>(
        &self,
        task: &T,
        example: &Example<T>,
        settings: &Settings,
    ) -> Result<Found<T::State>, Fault> {
        let Example { input, gold, .. } = example;
        let weights = self.model.weights();
        let search = Search { task, features: &self.features, weights, beam: settings.beam };
        let mut scratch = Scratch::new(&self.features);
        let early = settings.violation == Violation::Early;
        let lattice = search.run(input, Some(gold), early, &mut scratch)?;
        let last = lattice.steps.len() - 1;
        let lost = lattice.at(last).iter().all(|item| item.gold.is_none());
        let until = if early && lost { last } else { last.max(gold.length()) };
        let best = gold.best(&search, input, until, &mut scratch)?;
        let rungs: Vec<Rung> = (1..=until)
            .map(|step| {
                let beam = lattice.at(step);
                Rung {
                    gold: best.score(step),
                    beam: beam[0].score,
                    held: beam.iter().any(|item| item.gold.is_some()),
                    right: beam[0].gold.is_some(),
                }
            })
            .collect();
        let wrong = rungs.last().is_some_and(|rung| !rung.right);
        let step = settings.violation.step(&rungs).map(|at| at + 1);
        let (mut right, mut rivals) = (Vec::new(), Vec::new());
        if let Some(step) = step {
            let most = match settings.method {
                Method::KBest { k, .. } => k,
                _ => 1,
            };
            right = gold.derivation(&best, step);
            let others =
                lattice.at(step).iter().enumerate().filter(|(_, item)| item.gold.is_none());
            rivals = others.take(most).map(|(place, _)| lattice.derivation(step, place)).collect();
        }
        Ok(Found { wrong, rungs, step, gold: right, rivals })
    }

    /// One step from what a batch showed.
    fn step<T: Task>(
        &mut self,
        task: &T,
        examples: &[&Example<T>],
        found: &[Found<T::State>],
        settings: &Settings,
        observed: &mut Observed,
    ) -> Result<(), Fault> {
        let mut rows = Rows::default();
        for (group, (example, found)) in examples.iter().zip(found).enumerate() {
            observed.examples += 1;
            observed.wrong += u64::from(found.wrong);
            let before = rows.len();
            for rival in &found.rivals {
                let row = difference(task, &example.input, &found.gold, rival, &mut self.features)?;
                self.model.grow(self.features.len());
                if !row.is_empty() {
                    rows.open(Kind::Margin, group as u32, MARGIN, f64::NAN, MARGIN);
                    row.iter().for_each(|&(id, value)| rows.entry(id, value, &self.model));
                }
            }
            if let Some(step) = found.step.filter(|_| rows.len() > before) {
                let violation = found.rungs[step - 1].violation();
                observed.updates += 1;
                observed.invalid += u64::from(violation < 0.0);
                observed.violation += violation;
            }
        }
        if !rows.is_empty() {
            if let Some(votes) = &mut self.votes {
                votes.retire(self.model.weights());
            }
            self.update(rows, examples.len(), settings)?;
        }
        self.end_step();
        Ok(())
    }

    fn update(&mut self, rows: Rows, batch: usize, settings: &Settings) -> Result<(), Fault> {
        match settings.method {
            // The rule of the tuners looks at each row under the weights that the row before it
            // left, and leaves out rows that are no violations. Here all rows of a batch are
            // chosen under the same weights, and the unchecked update takes any.
            Method::Perceptron => {
                for row in 0..rows.len() {
                    let (ids, values) = rows.row(row);
                    self.model.add(ids, values, 1.0 / batch as f64);
                }
            }
            Method::Mira { c } if batch == 1 => {
                PassiveAggressive::new(c, 1.0, false).step(&mut self.model, &mut Given(rows))?;
            }
            Method::Mira { c } | Method::KBest { c, .. } => {
                let (rate, scale_by_oracle) = (1.0, false);
                let mut solver =
                    Hildreth { c, rate, scale_by_oracle, tolerance: TOLERANCE, sweeps: SWEEPS };
                solver.step(&mut self.model, &mut Given(rows))?;
            }
        }
        Ok(())
    }

    /// The weights as they stand enter the average.
    pub(crate) fn end_step(&mut self) {
        self.model.end_step();
        if let Some(votes) = &mut self.votes {
            votes.survive();
        }
    }
}

impl<T: Task> Example<T> {
    /// Says which example a fault of the task is about.
    fn locate(&self, fault: Fault) -> Fault {
        match fault.downcast::<Error>() {
            Ok(mut error) => {
                error.message = format!("example {}: {}", self.number, error.message);
                error
            }
            Err(other) => other,
        }
    }
}
