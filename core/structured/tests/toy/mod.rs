//! A random task: actions of one step or two, several gold derivations, some of which lead nowhere.

use tunesmith_solve::Rng;
use tunesmith_structured::{Contexts, Fault, Method, Settings, Task, Violation};

pub struct Toy {
    pub actions: u32,
}

/// Which actions are gold depends on position and last action.
#[derive(Clone)]
pub struct Line {
    pub letters: Vec<u32>,
    pub seed: u64,
    /// How many of eight actions are gold.
    pub share: usize,
}

/// Position, last action.
pub type At = (u32, u32);

impl Line {
    pub fn random(seed: u64, length: usize, share: usize) -> Self {
        let mut rng = Rng::new(seed, 1, 0);
        let letters = (0..length).map(|_| rng.below(3) as u32).collect();
        Line { letters, seed, share }
    }
}

impl Task for Toy {
    type Input = Line;
    type State = At;
    type View = At;

    fn view(&self, state: &At) -> At {
        *state
    }

    fn start(&self, _: &Line) -> Result<At, Fault> {
        Ok((0, 0))
    }

    fn is_end(&self, input: &Line, state: &At) -> Result<bool, Fault> {
        Ok(state.0 as usize == input.letters.len())
    }

    fn actions(&self, input: &Line, state: &At, out: &mut Vec<u32>) -> Result<(), Fault> {
        let left = input.letters.len() - state.0 as usize;
        // The last action takes two letters.
        out.extend((0..self.actions).filter(|&action| action + 1 < self.actions || left > 1));
        Ok(())
    }

    fn apply(&self, _: &Line, state: &At, action: u32) -> Result<At, Fault> {
        Ok((state.0 + if action + 1 == self.actions { 2 } else { 1 }, action))
    }

    fn contexts(&self, input: &Line, state: &At, out: &mut Contexts<'_>) -> Result<(), Fault> {
        let letter = input.letters[state.0 as usize].to_string();
        out.add(&["letter=", &letter]);
        out.add(&["last=", &state.1.to_string()]);
        out.add_valued(&["both=", &letter, ",", &state.1.to_string()], 0.5);
        Ok(())
    }

    fn is_gold(&self, input: &Line, state: &At, action: u32) -> Result<bool, Fault> {
        let name = u64::from(state.0) << 32 | u64::from(state.1) << 16 | u64::from(action);
        Ok(Rng::new(input.seed, 2, name).below(8) < input.share)
    }
}

pub fn settings(beam: usize, violation: Violation, method: Method) -> Settings {
    Settings { beam, violation, method, batch: 1, voters: 0 }
}

pub fn lines(seed: u64, count: u64, length: usize, share: usize) -> Vec<Line> {
    (0..count).map(|number| Line::random(seed * 1000 + number, length, share)).collect()
}
