//! Margin based ultraconservative update (MBUU): one quadratic program over all lists.

use tunesmith_space::{Block, argmax_with_gain};

use super::{Learnt, Lists, Scaled};

/// `min ½‖W - W_b‖² + λ/K Σ_j max_n (l_jn - W·Δh_jn)`, `l_jn` and `Δh_jn` what the oracle of list j
/// has more of than hypothesis n: gain and features. The oracle has the best gain, and among equals
/// the best score under `W_b`.
///
/// The dual has a simplex of mass λ/K for each list. Hypotheses enter a list's working set when
/// they are the most violated; mass moves between two of them at a time, list by list, until the
/// gap between the two objectives is small. Bounds of weights are met exactly: the move is the
/// nearest one that they allow to the sum of the rows.
#[derive(Debug, Clone, Copy)]
pub struct Margin {
    /// λ
    pub strength: f64,
    /// The duality gap at which the search ends, as a part of the loss at the start.
    pub tolerance: f64,
    /// Looks at the lists at most.
    pub passes: usize,
}

/// Times that mass is moved in every list between two looks at all of them.
const SWEEPS: usize = 100;

/// A hypothesis that an oracle is to win against.
struct Rival {
    place: usize,
    ids: Vec<u32>,
    /// Differences of features that may move, in the scale of the move.
    values: Vec<f64>,
    /// What is lost at the start.
    target: f64,
    mass: f64,
}

impl Rival {
    fn loss(&self, moved: &[f64]) -> f64 {
        let won: f64 =
            self.ids.iter().zip(&self.values).map(|(&id, value)| moved[id as usize] * value).sum();
        self.target - won
    }
}

/// An oracle and its rivals; what mass they do not have belongs to the oracle itself.
struct Contest<'a> {
    list: &'a Block,
    oracle: usize,
    /// Scores before any move.
    start: &'a [f64],
    rest: f64,
    rivals: Vec<Rival>,
}

/// The move, and the sum of rows times mass that it is the nearest allowed one to.
struct Sum {
    moved: Vec<f64>,
    sum: Vec<f64>,
}

impl Sum {
    fn add(&mut self, scaled: &Scaled<'_>, rival: &Rival, factor: f64) {
        for (&id, value) in rival.ids.iter().zip(&rival.values) {
            let at = id as usize;
            self.sum[at] += factor * value;
            self.moved[at] = scaled.clip(at, self.sum[at]);
        }
    }

    /// `½‖d‖² - d·u`, least for the move that belongs to the sum.
    fn dual(&self) -> f64 {
        let both = self.moved.iter().zip(&self.sum);
        both.map(|(moved, sum)| moved * (0.5 * moved - sum)).sum()
    }

    fn far(&self) -> f64 {
        0.5 * self.moved.iter().map(|moved| moved * moved).sum::<f64>()
    }
}

impl Margin {
    pub fn learn(&self, lists: &Lists<'_>) -> Learnt {
        let scaled = Scaled::new(lists);
        let features = lists.weights.len();
        let mut sum = Sum { moved: vec![0.0; features], sum: vec![0.0; features] };
        let share = scaled.share(self.strength);
        let mut contests = contests(&scaled, share);
        let (mut weights, mut scores, mut room) = (Vec::new(), Vec::new(), Vec::new());
        let (mut passes, mut gap, mut enough) = (0, f64::INFINITY, 0.0);
        let mut objective = f64::NAN;
        while passes < self.passes.max(1) {
            scaled.weights_at(&sum.moved, &mut weights);
            let mut loss = 0.0;
            for contest in &mut contests {
                let scores = match passes {
                    0 => contest.start,
                    _ => {
                        contest.list.dot(&weights, &mut room, &mut scores);
                        &scores
                    }
                };
                loss += contest.look(&scaled, scores);
            }
            if passes == 0 {
                enough = self.tolerance * share * loss;
            }
            passes += 1;
            objective = sum.far() + share * loss;
            let masses = contests.iter().flat_map(|contest| &contest.rivals);
            let dual = masses.map(|rival| rival.mass * rival.target).sum::<f64>() + sum.dual();
            gap = objective - dual;
            // Without λ there is no mass to move.
            if share <= 0.0 || gap <= enough {
                break;
            }
            for _ in 0..SWEEPS {
                let left: f64 =
                    contests.iter_mut().map(|contest| contest.settle(&scaled, &mut sum)).sum();
                if left <= 0.1 * gap.max(enough) {
                    break;
                }
            }
        }
        Learnt { weights: scaled.learnt(&sum.moved), spread: scaled.spread, objective, passes, gap }
    }
}

/// A contest for each list.
fn contests<'a>(scaled: &'a Scaled<'_>, share: f64) -> Vec<Contest<'a>> {
    let mut contests = Vec::with_capacity(scaled.filled.len());
    for (list, start) in scaled.at_start() {
        if let Some(oracle) = argmax_with_gain(start, &list.gains, 0.0, 1.0) {
            contests.push(Contest { list, oracle, start, rest: share, rivals: Vec::new() });
        }
    }
    contests
}

impl Contest<'_> {
    /// The largest loss against any hypothesis; its owner becomes a rival.
    fn look(&mut self, scaled: &Scaled<'_>, scores: &[f64]) -> f64 {
        let gains = &self.list.gains;
        let Some(worst) = argmax_with_gain(scores, gains, 1.0, -1.0) else { return 0.0 };
        let won = |place: usize| scores[place] - gains[place];
        let loss = won(worst) - won(self.oracle);
        if worst != self.oracle && !self.rivals.iter().any(|rival| rival.place == worst) {
            let start = |place: usize| self.start[place] - gains[place];
            let (ids, values) = difference(self.list, self.oracle, worst, scaled);
            let target = start(worst) - start(self.oracle);
            self.rivals.push(Rival { place: worst, ids, values, target, mass: 0.0 });
        }
        loss
    }

    /// Moves mass from those that lose least to those that lose most; returns what could be gained
    /// before.
    fn settle(&mut self, scaled: &Scaled<'_>, sum: &mut Sum) -> f64 {
        let mut left = None;
        for _ in 0..=self.rivals.len() {
            // The oracle is a rival of its own that loses nothing.
            let (mut to, mut most) = (None, 0.0);
            let (mut from, mut least) = (None, if self.rest > 0.0 { 0.0 } else { f64::INFINITY });
            let (mut total, mut held) = (self.rest, 0.0);
            for (place, rival) in self.rivals.iter().enumerate() {
                let loss = rival.loss(&sum.moved);
                total += rival.mass;
                held += rival.mass * loss;
                if loss > most {
                    (to, most) = (Some(place), loss);
                }
                if rival.mass > 0.0 && loss < least {
                    (from, least) = (Some(place), loss);
                }
            }
            left.get_or_insert(total * most - held);
            if to == from || most <= least {
                break;
            }
            let norm = self.distance(to, from);
            let there = from.map_or(self.rest, |place| self.rivals[place].mass);
            let mass = if norm > 0.0 { ((most - least) / norm).min(there) } else { there };
            for (place, mass) in [(to, mass), (from, -mass)] {
                match place {
                    None => self.rest += mass,
                    Some(place) => {
                        sum.add(scaled, &self.rivals[place], mass);
                        self.rivals[place].mass += mass;
                    }
                }
            }
            if mass == there {
                match from {
                    None => self.rest = 0.0,
                    Some(place) => self.rivals[place].mass = 0.0,
                }
            }
        }
        left.unwrap_or(0.0)
    }

    /// The squared distance of two rows; that of the oracle itself is empty.
    fn distance(&self, one: Option<usize>, other: Option<usize>) -> f64 {
        let empty: (&[u32], &[f64]) = (&[], &[]);
        let row = |place: Option<usize>| {
            place.map_or(empty, |place| (&self.rivals[place].ids, &self.rivals[place].values))
        };
        let mut squared = 0.0;
        merge(row(one), row(other), |_, one, other| squared += (one - other) * (one - other));
        squared
    }
}

/// What a hypothesis has more than another of features that may move, in the scale of the move.
fn difference(list: &Block, one: usize, other: usize, scaled: &Scaled<'_>) -> (Vec<u32>, Vec<f64>) {
    let all = list.difference(one, other).into_iter();
    all.filter(|&(id, _)| !scaled.is_fixed(id as usize))
        .map(|(id, value)| (id, value * scaled.rates[id as usize]))
        .unzip()
}

/// Shows the values of each id that one of two rows has, zero where it is missing.
fn merge(one: (&[u32], &[f64]), other: (&[u32], &[f64]), mut show: impl FnMut(u32, f64, f64)) {
    let (mut left, mut right) = (0, 0);
    loop {
        let (a, b) = (one.0.get(left), other.0.get(right));
        let id = match (a, b) {
            (Some(&a), Some(&b)) => a.min(b),
            (Some(&only), None) | (None, Some(&only)) => only,
            (None, None) => return,
        };
        let mut values = [0.0; 2];
        if a == Some(&id) {
            values[0] = one.1[left];
            left += 1;
        }
        if b == Some(&id) {
            values[1] = other.1[right];
            right += 1;
        }
        show(id, values[0], values[1]);
    }
}
