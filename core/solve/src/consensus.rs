//! Consensus decoding: the hypothesis that the others agree with (DeNero, Chiang & Knight 2009).
//!
//! That of the highest BLEU against the expected n-gram counts and the expected length under
//! `p ∝ exp(α s)`; among equals the higher score, then the first. Minimum Bayes risk, with the gain
//! of an expectation in place of the expectation of gains: linear in the number of hypotheses,
//! where all pairs would be quadratic. Words are what white space separates; sentence gains are
//! smoothed as BLEU+1.

use rayon::prelude::*;
use tunesmith_metric::{Bleu, Metric};
use tunesmith_space::{
    Agreement, Aim, Derivation, Expected, Forest, Forests, GramSearch, ORDER, Pools, counted,
};

/// How much less the logarithm of the hundredth string's probability is than that of the best, in
/// lists and in forests, where nobody says how sharp probabilities are to be. Scores have any size,
/// so their own spread is the unit; a forest has many more strings behind the hundredth.
const SHARPNESS: (f64, f64) = (3.0, 10.0);
const HUNDREDTH: usize = 99;

/// Expected n-grams that the search in a forest knows of; those it finds are compared by all.
const KNOWN: usize = 500;

/// The position of each list's consensus, -1 for an empty list.
///
/// Without `alpha` it is chosen for each sentence by the spread of its scores.
pub fn consensus(pools: &Pools, weights: &[f64], alpha: Option<f64>) -> Vec<i64> {
    let choose = |sentence: usize| {
        let list = pools.list(sentence);
        let mut scores = Vec::new();
        pools.dot(sentence, weights, &mut scores);
        let texts: Vec<&str> = list.clone().map(|hypothesis| pools.text(hypothesis)).collect();
        let alpha = alpha.unwrap_or_else(|| {
            let mut sorted = scores.clone();
            sorted.sort_unstable_by(|a, b| b.total_cmp(a));
            sharpened(SHARPNESS.0, sorted.into_iter())
        });
        agreed(&texts, &scores, alpha).map_or(-1, |place| (list.start + place) as i64)
    };
    (0..pools.sentences()).into_par_iter().map(choose).collect()
}

/// What to multiply scores by, given those of the best strings in order.
fn sharpened(sharpness: f64, mut best: impl Iterator<Item = f64>) -> f64 {
    let first = best.next().unwrap_or(0.0);
    let last = best.take(HUNDREDTH).last().unwrap_or(first);
    if first > last { sharpness / (first - last) } else { 1.0 }
}

fn agreed(texts: &[&str], scores: &[f64], alpha: f64) -> Option<usize> {
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mass: Vec<f64> = scores.iter().map(|score| (alpha * (score - top)).exp()).collect();
    let norm: f64 = mass.iter().sum();
    let mut agreement = Agreement::default();
    let mut lists: Vec<Vec<u32>> = Vec::with_capacity(texts.len());
    for (text, mass) in texts.iter().zip(&mass) {
        let mut tokens = Vec::new();
        agreement.tokens(text, &mut tokens);
        let share = mass / norm;
        agreement.length += share * tokens.len() as f64;
        for (gram, count) in counted(&tokens) {
            *agreement.grams.entry(gram).or_default() += share * f64::from(count);
        }
        lists.push(tokens);
    }
    best(&agreement, lists.iter().map(Vec::as_slice).zip(scores.iter().copied()))
}

/// The place of the string that agrees best, by its tokens and its score.
fn best<'a>(
    agreement: &Agreement,
    strings: impl Iterator<Item = (&'a [u32], f64)>,
) -> Option<usize> {
    let bleu = Bleu::new(ORDER);
    let mut best: Option<(f64, f64, usize)> = None;
    for (place, (tokens, score)) in strings.enumerate() {
        let gain = bleu.sentence_gain(&agreement.row(tokens));
        if best.is_none_or(|(top, other, _)| gain > top || (gain == top && score > other)) {
            best = Some((gain, score, place));
        }
    }
    best.map(|(_, _, place)| place)
}

/// The string of each forest's consensus, nothing where there is no derivation. Counts are those of
/// the forest itself; the search for the best is that for hope and fear, and looks at `pops` items
/// of each node.
pub fn forest_consensus(
    forests: &Forests,
    weights: &[f64],
    alpha: Option<f64>,
    pops: usize,
) -> Vec<Option<String>> {
    let choose = |forest: &Forest| {
        let scores = forest.scores(weights);
        let first = forest.viterbi(&scores)?;
        let alpha = alpha.unwrap_or_else(|| {
            let best = forest.best(&scores, true).wanting(HUNDREDTH + 1).take(HUNDREDTH + 1);
            sharpened(SHARPNESS.1, best.map(|one| one.score))
        });
        let mut agreement = forest.agreement(&scores, alpha, pops);
        let expected = Expected::new(&agreement, KNOWN);
        let bleu = Bleu::new(ORDER);
        let worth = |row: &[f64]| bleu.sentence_gain(row);
        let search = GramSearch::new(forest, &expected, bleu.width());
        // Every hypothesis of a forest of a list is an edge of its goal.
        let goal = forest.goal().map_or(0, |goal| forest.incoming(goal).len());
        let pops = pops.max(goal);
        let aim = Aim { scores: &scores, model: 0.0, gain: 1.0, worth: &worth, pops };
        let mut found = search.best(&aim);
        found.push(first);
        found.sort_by(|a, b| a.edges.cmp(&b.edges));
        let texts: Vec<String> = found.iter().map(|one| forest.text(one)).collect();
        let mut tokens: Vec<Vec<u32>> = vec![Vec::new(); texts.len()];
        for (text, tokens) in texts.iter().zip(&mut tokens) {
            agreement.tokens(text, tokens);
        }
        let scores = found.iter().map(|one: &Derivation| one.score);
        let place = best(&agreement, tokens.iter().map(Vec::as_slice).zip(scores))?;
        texts.into_iter().nth(place)
    };
    forests.forests.par_iter().map(choose).collect()
}
