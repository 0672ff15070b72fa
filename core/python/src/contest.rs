//! `Contest`: how far a reference can be reached, and where the beam loses it.

use pyo3::prelude::*;
use tunesmith_search::{GivenUp, Input, Partial, Reached, phrase};
use tunesmith_solve::{Rung, Violation};
use tunesmith_space::{FeatureSum, Hypothesis, PoolsBuilder};
use tunesmith_text::Error;

use crate::decoder::Translator;
use crate::error::py_err;

/// What is to be corrected of a sentence.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    pub violation: Violation,
    /// Derivations of the beam that gold is to beat.
    pub k: usize,
    /// Whether scores have what is hoped for the rest.
    pub future: bool,
    /// Words that must be reached of a reference that cannot be reached as a whole.
    pub least: usize,
}

/// An update by its name.
pub fn violation_of(name: &str) -> PyResult<Violation> {
    Violation::named(name).ok_or_else(|| {
        let known = Violation::ALL.map(|(name, _)| name).join(", ");
        py_err(Error::new(format!("no update named {name}")).remedy(format!("use one of {known}")))
    })
}

/// How far a reference can be reached, and where the beam loses it.
#[pyclass(frozen, get_all, module = "tunesmith._core")]
#[derive(Clone, Default)]
pub struct Contest {
    /// Words of the reference that are reached, from its beginning.
    words: usize,
    /// Whether the reference is a translation of the whole line.
    whole: bool,
    /// Hypotheses that lead there.
    states: usize,
    derivations: f64,
    /// `work` or `length` if the search was given up.
    given_up: Option<&'static str>,
    /// Of each step: covered words, best scores of gold and of the beam, whether the beam holds
    /// gold, whether its best is gold.
    rungs: Vec<(usize, f64, f64, bool, bool)>,
    /// The covered words at the step to be corrected.
    step: Option<usize>,
}

impl Contest {
    pub fn new(reached: Reached) -> Contest {
        Contest {
            words: reached.words,
            whole: reached.is_whole,
            states: reached.states,
            derivations: reached.derivations,
            given_up: reached.given_up.map(|why| match why {
                GivenUp::Work => "work",
                GivenUp::Length => "length",
            }),
            ..Contest::default()
        }
    }
}

impl Wanted {
    /// Adds a list of the gold derivation and those that it is to beat; of gold alone where nothing
    /// is to be corrected, and an empty one for a reference of no use. `None` for decoders that
    /// cannot be forced.
    pub fn find(
        &self,
        translator: &Translator,
        input: &Input<'_>,
        reference: &[&str],
        list: &mut PoolsBuilder,
    ) -> Option<Contest> {
        let contest = translator.decoder.contest(input, reference, self.least)?;
        let stages = contest.stages(self.future);
        let rungs: Vec<Rung> = stages.iter().map(rung).collect();
        let step = self.violation.step(&rungs).map(|step| stages[step].covered);
        let mut collected = translator.collected();
        list.sentence(None);
        if let Some(at) = step.or(stages.last().map(|stage| stage.covered)) {
            let mut all: Vec<Partial> =
                contest.gold(at, self.future, &mut collected).into_iter().collect();
            if step.is_some() {
                all.extend(contest.others(at, self.k, self.future, &mut collected));
            }
            all.iter().for_each(|partial| self.push(translator, partial, list));
        }
        list.names = collected.names;
        let told = |(stage, rung): (&phrase::Stage, &Rung)| {
            (stage.covered, rung.gold, rung.beam, rung.held, rung.right)
        };
        let rungs = stages.iter().zip(&rungs).map(told).collect();
        Some(Contest { rungs, step, ..Contest::new(contest.reached()) })
    }

    fn push(&self, translator: &Translator, partial: &Partial, list: &mut PoolsBuilder) {
        let mut sum = FeatureSum::default();
        sum.extend(partial.features.iter().copied());
        if self.future {
            sum.extend(partial.future.iter().copied());
        }
        list.push(Hypothesis {
            text: &partial.text,
            features: &translator.with_dense(sum.total()),
            score: Some(f64::from(if self.future { partial.estimate } else { partial.score })),
            ..Hypothesis::default()
        });
    }
}

fn rung(stage: &phrase::Stage) -> Rung {
    Rung {
        gold: f64::from(stage.gold),
        beam: f64::from(stage.beam),
        held: stage.held,
        right: stage.right,
    }
}
