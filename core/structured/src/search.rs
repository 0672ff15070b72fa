//! Beam search over a task.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use tunesmith_text::Error;

use crate::gold::Gold;
use crate::{ALONE, Contexts, Fault, Features, Task};

/// The action of a step in which a complete derivation waits for the others.
pub const NONE: u32 = u32::MAX;
/// A beam that drops nothing.
pub const UNBOUNDED: usize = usize::MAX;
/// Steps after which a task is taken for one that never ends.
const LONGEST: usize = 100_000;

/// Scores under weights.
#[derive(Clone, Copy)]
pub struct Search<'a, T: Task> {
    pub task: &'a T,
    pub features: &'a Features,
    pub weights: &'a [f64],
    /// How many derivations survive a step.
    pub beam: usize,
}

/// The best derivation that leads to a state.
#[derive(Debug, Clone)]
pub struct Item<S> {
    pub state: S,
    pub score: f64,
    /// Its place in the step before.
    pub parent: u32,
    pub action: u32,
    /// Its place among the gold states of this step, if all its actions are gold.
    pub gold: Option<u32>,
    pub end: bool,
}

/// What a search kept, step by step, best first. The first step holds the start alone.
#[derive(Debug, Clone)]
pub struct Lattice<S> {
    pub steps: Vec<Vec<Item<S>>>,
}

impl<S: Clone> Lattice<S> {
    /// States and actions of a derivation that the search kept after `step`.
    pub fn derivation(&self, step: usize, place: usize) -> Vec<(S, u32)> {
        let mut path = Vec::with_capacity(step);
        let (mut place, mut step) = (place, step.min(self.steps.len() - 1));
        while step > 0 {
            let item = &self.steps[step][place];
            place = item.parent as usize;
            step -= 1;
            if item.action != NONE {
                path.push((self.steps[step][place].state.clone(), item.action));
            }
        }
        path.reverse();
        path
    }

    /// What was kept after a step; a search that ended before keeps its last.
    pub fn at(&self, step: usize) -> &[Item<S>] {
        &self.steps[step.min(self.steps.len() - 1)]
    }

    /// The actions of the best derivation.
    pub fn best(&self) -> Vec<u32> {
        let last = self.steps.len() - 1;
        self.derivation(last, 0).into_iter().map(|(_, action)| action).collect()
    }
}

/// Buffers of one input's searches, and what they know already.
pub struct Scratch<'a, T: Task> {
    contexts: Contexts<'a>,
    found: Vec<(u32, f64)>,
    listed: Vec<u32>,
    /// Scores by action; only those that are listed count.
    by_action: Vec<f64>,
    /// Actions and scores of all views that were seen, one after the other.
    scored: Vec<(u32, f64)>,
    views: FxHashMap<T::View, (usize, usize)>,
}

impl<'a, T: Task> Scratch<'a, T> {
    pub fn new(features: &'a Features) -> Self {
        Scratch {
            contexts: features.lookup(),
            found: Vec::new(),
            listed: Vec::new(),
            by_action: Vec::new(),
            scored: Vec::new(),
            views: FxHashMap::default(),
        }
    }
}

#[derive(Clone, Copy)]
struct Candidate {
    score: f64,
    /// By parent and action: the first among equals is the better.
    number: u32,
    parent: u32,
    action: u32,
    gold: Option<u32>,
}

impl Candidate {
    fn order(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.number.cmp(&other.number))
    }
}

impl<'a, T: Task> Search<'a, T> {
    /// The actions of a state that is not an end, and their scores.
    pub fn score<'b>(
        &self,
        input: &T::Input,
        state: &T::State,
        scratch: &'b mut Scratch<'a, T>,
    ) -> Result<&'b [(u32, f64)], Fault> {
        let Scratch { contexts, found, listed, by_action, scored, views } = scratch;
        let view = self.task.view(state);
        if let Some(&(start, end)) = views.get(&view) {
            return Ok(&scored[start..end]);
        }
        listed.clear();
        self.task.actions(input, state, listed)?;
        let Some(&most) = listed.iter().max() else {
            let error = Error::new("the task has no action in a state that is not an end");
            return Err(error.remedy("return an action, or make is_end true there").into());
        };
        self.task.contexts(input, state, contexts)?;
        contexts.take(found)?;
        by_action.clear();
        by_action.resize(most as usize + 1, 0.0);
        for &(context, value) in found.iter() {
            for &(action, id) in self.features.row(context) {
                // Actions past the end are impossible here.
                if let Some(score) = by_action.get_mut(action as usize) {
                    *score += value * self.weights[id as usize];
                }
            }
        }
        let start = scored.len();
        scored.extend(listed.iter().map(|&action| (action, by_action[action as usize])));
        if self.task.has_features() {
            for (action, score) in &mut scored[start..] {
                self.task.features(input, state, *action, contexts)?;
                contexts.take(found)?;
                for &(context, value) in found.iter() {
                    for &(key, id) in self.features.row(context) {
                        if key == ALONE {
                            *score += value * self.weights[id as usize];
                        }
                    }
                }
            }
        }
        views.insert(view, (start, scored.len()));
        Ok(&scored[start..])
    }

    /// Searches until all that is kept is complete. With `gold`, items know whether they are gold;
    /// with `stop`, the search ends at the first step that keeps nothing gold.
    pub fn run(
        &self,
        input: &T::Input,
        gold: Option<&Gold<T::State>>,
        stop: bool,
        scratch: &mut Scratch<'a, T>,
    ) -> Result<Lattice<T::State>, Fault> {
        let start = self.task.start(input)?;
        let end = self.task.is_end(input, &start)?;
        let first = Item { state: start, score: 0.0, parent: 0, action: NONE, gold: None, end };
        let mut steps = vec![vec![Item { gold: gold.map(|_| 0), ..first }]];
        let mut candidates: Vec<Candidate> = Vec::new();
        loop {
            let step = steps.len() - 1;
            let beam = &steps[step];
            if beam.iter().all(|item| item.end) {
                break;
            }
            if stop && beam.iter().all(|item| item.gold.is_none()) {
                break;
            }
            if step == LONGEST {
                let error = Error::new(format!("the task does not end within {LONGEST} steps"));
                return Err(error.remedy("make is_end true when the output is complete").into());
            }
            candidates.clear();
            for (place, item) in beam.iter().enumerate() {
                let parent = place as u32;
                let follow = |action| match (gold, item.gold) {
                    (Some(gold), Some(node)) => gold.follow(step, node, action),
                    _ => None,
                };
                if item.end {
                    let (score, gold) = (item.score, follow(NONE));
                    let number = candidates.len() as u32;
                    candidates.push(Candidate { score, number, parent, action: NONE, gold });
                    continue;
                }
                for &(action, score) in self.score(input, &item.state, scratch)? {
                    let (score, gold) = (item.score + score, follow(action));
                    let number = candidates.len() as u32;
                    candidates.push(Candidate { score, number, parent, action, gold });
                }
            }
            let next = self.keep(input, beam, &mut candidates)?;
            steps.push(next);
        }
        Ok(Lattice { steps })
    }

    /// The best candidates, the first among equals, one for each state. A gold derivation and one
    /// that is not stay apart even in the same state: a beam that drops nothing never loses gold.
    fn keep(
        &self,
        input: &T::Input,
        beam: &[Item<T::State>],
        candidates: &mut [Candidate],
    ) -> Result<Vec<Item<T::State>>, Fault> {
        let mut next: Vec<Item<T::State>> = Vec::with_capacity(self.beam.min(candidates.len()));
        let mut seen: FxHashMap<(T::State, bool), ()> = FxHashMap::default();
        let mut rest = candidates;
        while !rest.is_empty() && next.len() < self.beam {
            // Sorts no more than it needs; equal states may ask for a second round.
            let count = rest.len().min(self.beam.saturating_mul(2));
            if count < rest.len() {
                rest.select_nth_unstable_by(count, Candidate::order);
            }
            let (best, others) = std::mem::take(&mut rest).split_at_mut(count);
            best.sort_unstable_by(Candidate::order);
            rest = others;
            for &mut Candidate { score, parent, action, gold, .. } in best {
                if next.len() == self.beam {
                    break;
                }
                let before = &beam[parent as usize].state;
                let state = match action {
                    NONE => before.clone(),
                    _ => self.task.apply(input, before, action)?,
                };
                // A beam of one has nothing to compare with.
                if self.beam > 1 {
                    match seen.entry((state.clone(), gold.is_some())) {
                        Entry::Occupied(_) => continue,
                        Entry::Vacant(entry) => entry.insert(()),
                    };
                }
                let end = action == NONE || self.task.is_end(input, &state)?;
                next.push(Item { state, score, parent, action, gold, end });
            }
        }
        Ok(next)
    }
}
