//! From a sentence's hypotheses to constraints.

use std::cmp::Ordering;
use std::sync::Arc;

use tunesmith_metric::Metric;
use tunesmith_space::{Among, Space};

use crate::Fault;
use crate::model::Model;
use crate::rng::Rng;
use crate::rows::{Kind, Rows};

/// One visit to a sentence: its space, its random numbers, and what has been chosen so far.
pub struct Visit<'a> {
    pub space: Box<dyn Space + 'a>,
    pub sentence: usize,
    /// Number within the batch; becomes the group of the rows.
    pub group: u32,
    pub rng: Rng,
    /// y+ of this visit. Set once, kept while an update asks for more constraints.
    pub oracle: Option<usize>,
    /// y- of the first selection, for the report.
    pub prediction: Option<usize>,
    /// What its gains have been multiplied by.
    pub scale: f64,
    /// What tells the plain gain of a candidate.
    pub metric: Arc<dyn Metric>,
    /// The model's best before the update.
    pub best: Option<usize>,
    /// `s(y+) - min s` before the update.
    pub spread: f64,
}

impl Visit<'_> {
    /// The gain of a candidate alone, in [0, 1], whatever gains learning sees.
    pub fn plain(&self, candidate: usize) -> f64 {
        self.metric.sentence_gain(self.space.stats(candidate)).clamp(0.0, 1.0)
    }

    /// The plain gain of y+, where rows want to know it.
    fn plain_oracle(&self, oracle: usize, rows: &Rows) -> f64 {
        if rows.scaled { self.plain(oracle) } else { 1.0 }
    }
}

/// `(space, w, gain, rng) -> constraints`. An update may ask several times during one visit;
/// `round` tells which of the selector's constraint kinds it wants.
pub trait Selector: Send + Sync {
    fn rounds(&self) -> usize {
        1
    }

    /// Whether the choice depends on the weights.
    fn reads_weights(&self) -> bool {
        true
    }

    /// The candidates whose spread of scores is reported.
    fn among(&self) -> Among {
        Among::ALL
    }

    fn select(
        &self,
        visit: &mut Visit<'_>,
        model: &Model,
        round: usize,
        rows: &mut Rows,
    ) -> Result<(), Fault>;
}

/// Adds the constraint that `better` must win over `worse` by the difference of their gains.
pub fn margin_row(visit: &Visit<'_>, better: usize, worse: usize, model: &Model, rows: &mut Rows) {
    let space = visit.space.as_ref();
    let gain = space.gain(better) - space.gain(worse);
    let oracle = visit.plain_oracle(better, rows);
    rows.open(Kind::Margin, visit.group, gain, f64::NAN, oracle);
    rows.difference(space.features(better), space.features(worse), 1.0, model);
}

/// One pair: `y+ = argmax γ⁺s + β⁺G`, `y- = argmax γ⁻s - β⁻G` (Eidelman 2012, eq. 3), each among
/// the candidates that count for it.
#[derive(Debug, Clone)]
pub struct HopeFear {
    pub oracle: (f64, f64),
    pub prediction: (f64, f64),
    pub oracle_among: Among,
    pub among: Among,
    /// Weights under which y+ is chosen, whatever those of the moment are (the concave part of a
    /// ramp loss).
    pub pinned: Option<Vec<f64>>,
}

impl Selector for HopeFear {
    fn among(&self) -> Among {
        self.among
    }

    fn select(
        &self,
        visit: &mut Visit<'_>,
        model: &Model,
        _round: usize,
        rows: &mut Rows,
    ) -> Result<(), Fault> {
        let (score, gain) = self.oracle;
        let oracle = match (visit.oracle, &self.pinned) {
            (Some(oracle), _) => Some(oracle),
            (None, None) => visit.space.argmax(score, gain, self.oracle_among),
            (None, Some(weights)) => {
                visit.space.rescore(weights);
                let oracle = visit.space.argmax(score, gain, self.oracle_among);
                visit.space.rescore(model.weights());
                oracle
            }
        };
        let prediction = visit.space.argmax(self.prediction.0, -self.prediction.1, self.among);
        let (Some(oracle), Some(prediction)) = (oracle, prediction) else { return Ok(()) };
        visit.oracle = Some(oracle);
        visit.prediction.get_or_insert(prediction);
        if oracle != prediction {
            margin_row(visit, oracle, prediction, model, rows);
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    /// All pairs of `n` hopes and `n` fears.
    HopeFear,
    /// Every member of the model's, the hopes' and the fears' list against the best hope.
    ModelHopeFear,
}

/// Several constraints per sentence, as Hasler et al. 2011 form them. Pairs in which y+ is not
/// better than y- are left out.
#[derive(Debug, Clone)]
pub struct Lists {
    pub kind: ListKind,
    pub n: usize,
    pub among: Among,
}

impl Selector for Lists {
    fn among(&self) -> Among {
        self.among
    }

    fn select(
        &self,
        visit: &mut Visit<'_>,
        model: &Model,
        _round: usize,
        rows: &mut Rows,
    ) -> Result<(), Fault> {
        let space = visit.space.as_mut();
        let hopes = space.top(self.n, 1.0, 1.0, self.among, true);
        let fears = space.top(self.n, 1.0, -1.0, self.among, true);
        let Some(&hope) = hopes.first() else { return Ok(()) };
        let oracle = *visit.oracle.get_or_insert(hope);
        visit.prediction.get_or_insert(fears[0]);
        let pairs: Vec<(usize, usize)> = match self.kind {
            ListKind::HopeFear => hopes
                .iter()
                .flat_map(|&better| fears.iter().map(move |&worse| (better, worse)))
                .collect(),
            ListKind::ModelHopeFear => {
                let mut members = visit.space.top(self.n, 1.0, 0.0, self.among, true);
                members.extend(hopes);
                members.extend(fears);
                members.sort_unstable();
                members.dedup();
                members.into_iter().map(|worse| (oracle, worse)).collect()
            }
        };
        for (better, worse) in pairs {
            if visit.space.gain(better) > visit.space.gain(worse) {
                margin_row(visit, better, worse, model, rows);
            }
        }
        Ok(())
    }
}

/// The first candidate against each of the others, which it is to beat by `margin`: for sources
/// that know which one is right and put it first. Gains of the candidates do not matter.
#[derive(Debug, Clone)]
pub struct Against {
    pub margin: f64,
}

impl Selector for Against {
    fn reads_weights(&self) -> bool {
        false
    }

    fn select(
        &self,
        visit: &mut Visit<'_>,
        model: &Model,
        _round: usize,
        rows: &mut Rows,
    ) -> Result<(), Fault> {
        let count = visit.space.len();
        let space = visit.space.as_ref();
        for other in 1..count {
            rows.open(Kind::Margin, visit.group, self.margin, f64::NAN, 1.0);
            rows.difference(space.features(0), space.features(other), 1.0, model);
        }
        Ok(())
    }
}

/// Pairs drawn at random, the most different kept (Hopkins & May 2011). The row of a pair stands
/// for both of its orders: without an intercept their losses are equal.
#[derive(Debug, Clone)]
pub struct Pairs {
    /// Γ: pairs drawn.
    pub samples: usize,
    /// Least difference in gain.
    pub threshold: f64,
    /// Ξ: pairs kept.
    pub keep: usize,
}

impl Selector for Pairs {
    fn reads_weights(&self) -> bool {
        false
    }

    fn select(
        &self,
        visit: &mut Visit<'_>,
        model: &Model,
        _round: usize,
        rows: &mut Rows,
    ) -> Result<(), Fault> {
        let space = visit.space.as_mut();
        let gains: Vec<f64> = (0..space.len()).map(|candidate| space.gain(candidate)).collect();
        for (_, better, worse) in self.draw(&gains, &mut visit.rng) {
            margin_row(visit, better as usize, worse as usize, model, rows);
        }
        Ok(())
    }
}

/// A difference of gains, the better one, the worse one.
type Drawn = (f64, u32, u32);

/// The most different pair first.
fn by_difference(left: &Drawn, right: &Drawn) -> Ordering {
    right.0.total_cmp(&left.0).then((left.1, left.2).cmp(&(right.1, right.2)))
}

impl Pairs {
    /// The pairs to keep, in the order of their differences. As soon as there are enough, the
    /// least of them is the bar for those to come, so that nearly every draw ends with one
    /// comparison.
    fn draw(&self, gains: &[f64], rng: &mut Rng) -> Vec<Drawn> {
        if gains.len() < 2 {
            return Vec::new();
        }
        let keep = if self.keep == 0 { usize::MAX } else { self.keep };
        let mut drawn: Vec<Drawn> = Vec::new();
        let mut bar = self.threshold;
        // A copy stays in registers.
        let mut stream = rng.clone();
        for _ in 0..self.samples {
            let (a, b) = stream.pair_below(gains.len());
            let difference = gains[a] - gains[b];
            let size = difference.abs();
            // At the bar itself the order of the pairs decides.
            if size >= bar && size > self.threshold {
                let (better, worse) = if difference > 0.0 { (a, b) } else { (b, a) };
                drawn.push((size, better as u32, worse as u32));
                if drawn.len() >= keep.saturating_mul(4) {
                    drawn.select_nth_unstable_by(keep - 1, by_difference);
                    drawn.truncate(keep);
                    bar = drawn[keep - 1].0;
                }
            }
        }
        *rng = stream;
        drawn.sort_unstable_by(by_difference);
        drawn.truncate(keep);
        drawn
    }
}

/// The gradient of the expected gain under `p ∝ exp(α s)` as a single row (for the linear loss).
#[derive(Debug, Clone)]
pub struct Expected {
    pub alpha: f64,
    pub k: usize,
}

impl Selector for Expected {
    fn select(
        &self,
        visit: &mut Visit<'_>,
        model: &Model,
        _round: usize,
        rows: &mut Rows,
    ) -> Result<(), Fault> {
        let space = visit.space.as_mut();
        let count = if self.k == 0 { space.len() } else { self.k };
        let members = space.top(count, 1.0, 0.0, Among::ALL, false);
        let Some(&first) = members.first() else { return Ok(()) };
        let top = space.score(first);
        let mass: Vec<f64> = members
            .iter()
            .map(|&member| (self.alpha * (space.score(member) - top)).exp())
            .collect();
        let norm: f64 = mass.iter().sum();
        let mean: f64 =
            members.iter().zip(&mass).map(|(&member, mass)| mass * space.gain(member)).sum::<f64>()
                / norm;
        let mut gradient: Vec<(u32, f64)> = Vec::new();
        for (&member, mass) in members.iter().zip(&mass) {
            let factor = self.alpha * mass / norm * (space.gain(member) - mean);
            let (ids, values) = space.features(member);
            gradient.extend(
                ids.iter().zip(values).map(|(&id, &value)| (id, factor * f64::from(value))),
            );
        }
        gradient.sort_by_key(|&(id, _)| id);
        gradient.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            if same {
                sum.1 += next.1;
            }
            same
        });
        visit.oracle = space.argmax(0.0, 1.0, Among::ALL);
        visit.prediction = Some(first);
        rows.open(Kind::Margin, visit.group, 0.0, f64::NAN, mean);
        for (id, value) in gradient {
            rows.entry(id, value, model);
        }
        Ok(())
    }
}

/// The relative margin (Eidelman et al. 2013): the inner selector's constraints, and
/// `-B <= s(y+) - s(y) <= B` for every candidate, at slack price `price`.
pub struct Bounded {
    pub inner: Box<dyn Selector>,
    pub bound: f64,
    pub price: f64,
    pub among: Among,
    /// Multiply the bound by the plain cost of the candidate that it is about.
    pub by_cost: bool,
}

impl Selector for Bounded {
    fn rounds(&self) -> usize {
        self.inner.rounds() + 2
    }

    fn among(&self) -> Among {
        self.among
    }

    fn select(
        &self,
        visit: &mut Visit<'_>,
        model: &Model,
        round: usize,
        rows: &mut Rows,
    ) -> Result<(), Fault> {
        if round < self.inner.rounds() {
            return self.inner.select(visit, model, round, rows);
        }
        let Some(oracle) = visit.oracle else { return Ok(()) };
        let upper = round == self.inner.rounds();
        let (kind, factor, sign) =
            if upper { (Kind::Upper, -1.0, -1.0) } else { (Kind::Lower, 1.0, 1.0) };
        let Some(other) = visit.space.argmax(factor, 0.0, self.among) else { return Ok(()) };
        if other != oracle {
            let cost = if self.by_cost { 1.0 - visit.plain(other) } else { 1.0 };
            let worth = visit.plain_oracle(oracle, rows);
            rows.open(kind, visit.group, -self.bound * cost, self.price, worth);
            let space = visit.space.as_ref();
            rows.difference(space.features(oracle), space.features(other), sign, model);
        }
        Ok(())
    }
}
