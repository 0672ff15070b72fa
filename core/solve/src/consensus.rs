//! Consensus decoding: the hypothesis that the others agree with (DeNero, Chiang & Knight 2009).

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tunesmith_metric::{Bleu, Metric};
use tunesmith_space::Pools;

const ORDER: usize = 4;

/// An n-gram: token numbers from 1, zeros behind shorter ones.
type Gram = [u32; ORDER];

/// The hypothesis of each list with the highest BLEU against the expected n-gram counts and the
/// expected length under `p ∝ exp(α s)`, -1 for an empty list; among equals the higher score, then
/// the first. Minimum Bayes risk, with the gain of an expectation in place of the expectation of
/// gains: linear in the length of the list, where all pairs would be quadratic. Words are what
/// white space separates; sentence gains are smoothed as BLEU+1.
pub fn consensus(pools: &Pools, weights: &[f64], alpha: f64) -> Vec<i64> {
    let choose = |sentence: usize| {
        let list = pools.list(sentence);
        let mut scores = Vec::new();
        pools.dot(sentence, weights, &mut scores);
        let texts: Vec<&str> = list.clone().map(|hypothesis| pools.text(hypothesis)).collect();
        agreed(&texts, &scores, alpha).map_or(-1, |place| (list.start + place) as i64)
    };
    (0..pools.sentences()).into_par_iter().map(choose).collect()
}

fn agreed(texts: &[&str], scores: &[f64], alpha: f64) -> Option<usize> {
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mass: Vec<f64> = scores.iter().map(|score| (alpha * (score - top)).exp()).collect();
    let norm: f64 = mass.iter().sum();
    let mut vocabulary: FxHashMap<&str, u32> = FxHashMap::default();
    let mut expected: FxHashMap<Gram, f64> = FxHashMap::default();
    let mut length = 0.0;
    let lists: Vec<(usize, Vec<(Gram, u32)>)> = texts
        .iter()
        .map(|text| {
            let next = |word| {
                let next = vocabulary.len() as u32 + 1;
                *vocabulary.entry(word).or_insert(next)
            };
            let tokens: Vec<u32> = text.split_whitespace().map(next).collect();
            (tokens.len(), counted(&tokens))
        })
        .collect();
    for ((tokens, grams), mass) in lists.iter().zip(&mass) {
        let share = mass / norm;
        length += share * *tokens as f64;
        for &(gram, count) in grams {
            *expected.entry(gram).or_default() += share * f64::from(count);
        }
    }
    let bleu = Bleu::new(ORDER);
    let mut best: Option<(f64, usize)> = None;
    for (place, (tokens, grams)) in lists.iter().enumerate() {
        let mut row = [0.0; 2 + 2 * ORDER];
        (row[0], row[1]) = (*tokens as f64, length);
        for (gram, count) in grams {
            let order = gram.iter().filter(|&&token| token > 0).count();
            row[1 + order] += expected[gram].min(f64::from(*count));
            row[1 + ORDER + order] += f64::from(*count);
        }
        let gain = bleu.sentence_gain(&row);
        let better = |&(top, other): &(f64, usize)| {
            gain > top || (gain == top && scores[place] > scores[other])
        };
        if best.as_ref().is_none_or(better) {
            best = Some((gain, place));
        }
    }
    best.map(|(_, place)| place)
}

/// The n-grams of a string, each once, with their counts.
fn counted(tokens: &[u32]) -> Vec<(Gram, u32)> {
    let mut grams: Vec<Gram> = Vec::with_capacity(tokens.len() * ORDER);
    for start in 0..tokens.len() {
        let mut gram = [0; ORDER];
        for (place, &token) in tokens[start..].iter().take(ORDER).enumerate() {
            gram[place] = token;
            grams.push(gram);
        }
    }
    grams.sort_unstable();
    grams.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect()
}
