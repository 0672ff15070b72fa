//! The derivations that give the right output: one, or many where some of it is hidden.

use rustc_hash::FxHashMap;

use crate::search::Scratch;
use crate::{Fault, NONE, Search, Task};

/// States beyond which the gold derivations of one input are not listed.
const MOST: usize = 200_000;

/// All gold states that can be finished, by step; derivations share states. Complete ones stay
/// until the last step.
#[derive(Debug, Clone)]
pub struct Gold<S> {
    steps: Vec<Vec<Node<S>>>,
}

#[derive(Debug, Clone)]
struct Node<S> {
    state: S,
    /// Gold actions, and the places that they lead to in the next step.
    arcs: Vec<(u32, u32)>,
    end: bool,
}

/// Why an input cannot be learnt from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoldFault {
    /// No derivation is gold up to its end.
    Unreachable,
    /// There are too many gold states.
    TooMany,
}

impl<S: Clone + Eq + std::hash::Hash> Gold<S> {
    /// Follows all gold actions, and forgets what cannot be finished.
    pub fn new<T: Task<State = S>>(
        task: &T,
        input: &T::Input,
    ) -> Result<Result<Self, GoldFault>, Fault> {
        let start = task.start(input)?;
        let end = task.is_end(input, &start)?;
        let mut steps = vec![vec![Node { state: start, arcs: Vec::new(), end }]];
        let mut count = 0;
        let mut actions = Vec::new();
        while steps.last().is_some_and(|step| step.iter().any(|node| !node.end)) {
            let mut next: Vec<Node<S>> = Vec::new();
            let mut places: FxHashMap<S, u32> = FxHashMap::default();
            let Some(step) = steps.last_mut() else { break };
            for node in step {
                actions.clear();
                if node.end {
                    actions.push(NONE);
                } else {
                    task.actions(input, &node.state, &mut actions)?;
                }
                for &action in &actions {
                    let (state, end) = match action {
                        NONE => (node.state.clone(), true),
                        _ if !task.is_gold(input, &node.state, action)? => continue,
                        _ => {
                            let state = task.apply(input, &node.state, action)?;
                            let end = task.is_end(input, &state)?;
                            (state, end)
                        }
                    };
                    let place = *places.entry(state.clone()).or_insert_with(|| {
                        next.push(Node { state, arcs: Vec::new(), end });
                        next.len() as u32 - 1
                    });
                    node.arcs.push((action, place));
                }
            }
            count += next.len();
            if count > MOST {
                return Ok(Err(GoldFault::TooMany));
            }
            if next.is_empty() {
                return Ok(Err(GoldFault::Unreachable));
            }
            steps.push(next);
        }
        Ok(prune(steps).map(|steps| Gold { steps }).ok_or(GoldFault::Unreachable))
    }

    /// The number of actions of the longest gold derivation.
    pub fn length(&self) -> usize {
        self.steps.len() - 1
    }

    /// How many gold derivations there are.
    pub fn derivations(&self) -> f64 {
        let mut counts = vec![1.0];
        for step in &self.steps[..self.length()] {
            let most = step.iter().flat_map(|node| &node.arcs).map(|&(_, place)| place).max();
            let mut next = vec![0.0; most.map_or(0, |place| place as usize + 1)];
            for (node, count) in step.iter().zip(&counts) {
                node.arcs.iter().for_each(|&(_, place)| next[place as usize] += count);
            }
            counts = next;
        }
        counts.iter().sum()
    }

    /// Where an action leads a gold derivation after `step`; `None` if it is not gold.
    pub fn follow(&self, step: usize, place: u32, action: u32) -> Option<u32> {
        if step >= self.length() {
            return (action == NONE).then_some(place);
        }
        let arcs = &self.steps[step][place as usize].arcs;
        arcs.iter().find(|&&(known, _)| known == action).map(|&(_, target)| target)
    }

    /// The best gold derivations under weights, up to every step; exact.
    pub fn best<'a, T: Task<State = S>>(
        &self,
        search: &Search<'a, T>,
        input: &T::Input,
        until: usize,
        scratch: &mut Scratch<'a, T>,
    ) -> Result<Best, Fault> {
        let mut steps = vec![vec![Reached { score: 0.0, parent: 0, action: NONE }]];
        for (step, nodes) in self.steps[..self.length().min(until)].iter().enumerate() {
            let unseen = Reached { score: f64::NEG_INFINITY, parent: 0, action: NONE };
            let mut next = vec![unseen; self.steps[step + 1].len()];
            for (place, node) in nodes.iter().enumerate() {
                let scores = match node.end {
                    true => &[],
                    false => search.score(input, &node.state, scratch)?,
                };
                let before = steps[step][place].score;
                for &(action, target) in &node.arcs {
                    // Complete derivations have no score to add.
                    let listed = scores.iter().find(|&&(each, _)| each == action);
                    let score = listed.map_or(0.0, |&(_, score)| score);
                    let reached = &mut next[target as usize];
                    if before + score > reached.score {
                        *reached = Reached { score: before + score, parent: place as u32, action };
                    }
                }
            }
            steps.push(next);
        }
        Ok(Best { steps })
    }

    /// States and actions of the best gold derivation after `step`.
    pub fn derivation(&self, best: &Best, step: usize) -> Vec<(S, u32)> {
        let mut step = step.min(best.steps.len() - 1);
        let mut place = best.place(step);
        let mut path = Vec::with_capacity(step);
        while step > 0 {
            let reached = best.steps[step][place];
            step -= 1;
            place = reached.parent as usize;
            if reached.action != NONE {
                path.push((self.steps[step][place].state.clone(), reached.action));
            }
        }
        path.reverse();
        path
    }
}

/// Scores of the best gold derivations that lead to each gold state.
#[derive(Debug, Clone)]
pub struct Best {
    steps: Vec<Vec<Reached>>,
}

#[derive(Debug, Clone, Copy)]
struct Reached {
    score: f64,
    parent: u32,
    action: u32,
}

impl Best {
    fn place(&self, step: usize) -> usize {
        let mut best = 0;
        for (place, reached) in self.steps[step].iter().enumerate() {
            if reached.score > self.steps[step][best].score {
                best = place;
            }
        }
        best
    }

    /// The best score after a step; complete derivations keep theirs.
    pub fn score(&self, step: usize) -> f64 {
        let step = step.min(self.steps.len() - 1);
        self.steps[step][self.place(step)].score
    }
}

/// Leaves out nodes that lead to no end; `None` if the start is one of them.
fn prune<S>(steps: Vec<Vec<Node<S>>>) -> Option<Vec<Vec<Node<S>>>> {
    let mut kept = Vec::with_capacity(steps.len());
    // New places of the next step's nodes.
    let mut places: Vec<Option<u32>> = Vec::new();
    for (number, mut step) in steps.into_iter().rev().enumerate() {
        let mut own = Vec::with_capacity(step.len());
        let mut count = 0;
        for node in &mut step {
            let arcs = std::mem::take(&mut node.arcs);
            let alive = arcs.iter().filter_map(|&(action, place)| {
                places[place as usize].map(|target| (action, target))
            });
            node.arcs = alive.collect();
            let lives = if number == 0 { node.end } else { !node.arcs.is_empty() };
            own.push(lives.then_some(count));
            count += u32::from(lives);
        }
        let mut keep = own.iter();
        step.retain(|_| keep.next().is_some_and(Option::is_some));
        if step.is_empty() {
            return None;
        }
        kept.push(step);
        places = own;
    }
    kept.reverse();
    Some(kept)
}
