//! A forest as a learner sees it.

use rustc_hash::FxHashMap;
use tunesmith_metric::Segment;

use super::gains::{Aim, GramSearch};
use super::{Derivation, FeatureSum, Forest};
use crate::space::{Among, Space, order_of};

/// The gain of a row of statistics.
pub type Worth<'a> = Box<dyn Fn(&[f64]) -> f64 + 'a>;

/// How far queries look that cannot be answered exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// Strings that stand for the whole where single hypotheses are drawn or summed over, and
    /// where a metric cannot be put together from parts.
    pub list: usize,
    /// Items of each node that a search for score and gain looks at.
    pub pops: usize,
}

impl Default for Reach {
    fn default() -> Self {
        Reach { list: 1500, pops: 20 }
    }
}

/// The forest of one sentence as a [`Space`]. The model's best and worst are exact, and so are `k`
/// best lists, which are unique by string; hope and fear among all hypotheses are found as
/// [`gains`](super::gains) describes where the metric is one of n-grams, among the best
/// [`Reach::list`] strings otherwise. Whatever is found has its exact score, gain and statistics.
pub struct ForestSpace<'a> {
    forest: &'a Forest,
    segment: &'a dyn Segment,
    width: usize,
    worth: Worth<'a>,
    reach: Reach,
    weights: Vec<f64>,
    scores: Vec<f64>,
    search: Option<GramSearch<'a>>,
    candidates: Vec<Candidate>,
    /// Candidates by their edges.
    known: FxHashMap<Box<[u32]>, usize>,
    /// The best strings under the weights of the moment, as far as somebody asked.
    listed: Option<(usize, Vec<usize>)>,
    sum: FeatureSum,
}

struct Candidate {
    derivation: Derivation,
    text: String,
    ids: Vec<u32>,
    values: Vec<f32>,
    stats: Vec<f64>,
    gain: f64,
}

impl<'a> ForestSpace<'a> {
    /// `width` is that of a row of statistics, `worth` gives the gain of one.
    pub fn new(
        forest: &'a Forest,
        segment: &'a dyn Segment,
        width: usize,
        worth: Worth<'a>,
        reach: Reach,
    ) -> Self {
        ForestSpace {
            forest,
            segment,
            width,
            worth,
            reach,
            weights: Vec::new(),
            scores: vec![0.0; forest.edges.len()],
            search: None,
            candidates: Vec::new(),
            known: FxHashMap::default(),
            listed: None,
            sum: FeatureSum::default(),
        }
    }

    /// The text of a candidate.
    pub fn text(&self, candidate: usize) -> &str {
        &self.candidates[candidate].text
    }

    /// The number of a derivation among the candidates.
    fn admit(&mut self, derivation: Derivation) -> usize {
        if let Some(&known) = self.known.get(derivation.edges.as_slice()) {
            return known;
        }
        let text = self.forest.text(&derivation);
        let mut stats = vec![0.0; self.width];
        self.segment.stats(&text, &mut stats);
        let (ids, values) = self.sum.of(self.forest, &derivation).iter().copied().unzip();
        let number = self.candidates.len();
        self.known.insert(derivation.edges.clone().into(), number);
        let gain = (self.worth)(&stats);
        self.candidates.push(Candidate { derivation, text, ids, values, stats, gain });
        number
    }

    /// The `k` best strings, numbered in the order of the forest's edges.
    fn list(&mut self, k: usize) -> Vec<usize> {
        if self.listed.as_ref().is_none_or(|(asked, _)| *asked != k) {
            let mut best: Vec<Derivation> =
                self.forest.best(&self.scores, true).wanting(k).take(k).collect();
            best.sort_by(|a, b| a.edges.cmp(&b.edges));
            let list = best.into_iter().map(|one| self.admit(one)).collect();
            self.listed = Some((k, list));
        }
        self.listed.as_ref().map(|(_, list)| list.clone()).unwrap_or_default()
    }

    /// Sorts candidates by the criterion and cuts them down.
    fn sort(&self, found: &mut Vec<usize>, n: usize, model: f64, gain: f64, unique: bool) {
        let value = |at: usize| model * self.score(at) + gain * self.gain(at);
        found.sort_by(|&a, &b| {
            let edges = |at: usize| &self.candidates[at].derivation.edges;
            order_of(value(b), value(a))
                .then(order_of(self.score(b), self.score(a)))
                .then_with(|| edges(a).cmp(edges(b)))
        });
        if unique {
            let mut seen: Vec<&str> = Vec::new();
            found.retain(|&at| {
                let new = !seen.contains(&self.text(at));
                if new {
                    seen.push(self.text(at));
                }
                new
            });
        }
        found.truncate(n);
    }

    /// What a search for score and gain finds, at least `n` if it can.
    fn search(&mut self, n: usize, model: f64, gain: f64) -> Option<Vec<Derivation>> {
        let (forest, width) = (self.forest, self.width);
        let grams = self.segment.grams()?;
        let search = self.search.get_or_insert_with(|| GramSearch::new(forest, grams, width));
        let pops = self.reach.pops.max(n);
        let (scores, worth) = (&self.scores, self.worth.as_ref());
        Some(search.best(&Aim { scores, model, gain, worth, pops }))
    }
}

impl Space for ForestSpace<'_> {
    fn len(&mut self) -> usize {
        self.list(self.reach.list);
        self.candidates.len()
    }

    fn rescore(&mut self, weights: &[f64]) {
        if self.weights == weights {
            return;
        }
        self.weights = weights.to_vec();
        self.scores = self.forest.scores(weights);
        self.listed = None;
        for candidate in &mut self.candidates {
            let edges = candidate.derivation.edges.iter();
            candidate.derivation.score = edges.map(|&edge| self.scores[edge as usize]).sum();
        }
    }

    fn score(&self, candidate: usize) -> f64 {
        self.candidates[candidate].derivation.score
    }

    fn gain(&self, candidate: usize) -> f64 {
        self.candidates[candidate].gain
    }

    fn features(&self, candidate: usize) -> (&[u32], &[f32]) {
        let Candidate { ids, values, .. } = &self.candidates[candidate];
        (ids, values)
    }

    fn stats(&self, candidate: usize) -> &[f64] {
        &self.candidates[candidate].stats
    }

    fn top(&mut self, n: usize, model: f64, gain: f64, among: Among, unique: bool) -> Vec<usize> {
        let k = if among.whole_forests { 0 } else { among.k };
        if k == 0 && gain == 0.0 {
            // The scores of the forest itself or upside down.
            let sign = if model < 0.0 { -1.0 } else { 1.0 };
            let signed: Vec<f64> = self.scores.iter().map(|score| sign * score).collect();
            let best: Vec<Derivation> = match (n, unique) {
                (1, _) => self.forest.viterbi(&signed).into_iter().collect(),
                _ => self.forest.best(&signed, unique).wanting(n).take(n).collect(),
            };
            let upright = |one: Derivation| Derivation { score: sign * one.score, ..one };
            return best.into_iter().map(|one| self.admit(upright(one))).collect();
        }
        let found = if k == 0 { self.search(n, model, gain) } else { None };
        let mut found: Vec<usize> = match found {
            Some(found) => found.into_iter().map(|one| self.admit(one)).collect(),
            None => self.list(if k == 0 { self.reach.list } else { k }),
        };
        self.sort(&mut found, n, model, gain, unique);
        found
    }
}
