//! Forests against everything that is in them, written down.

mod common;

use std::collections::HashMap;

use common::{all, forests, text_of, weights};
use proptest::prelude::*;
use tunesmith_space::Derivation;

proptest! {
    #[test]
    fn all_derivations_come_once_and_in_order(forest in forests(), weights in weights()) {
        let scores = forest.scores(&weights);
        let found: Vec<Derivation> = forest.best(&scores, false).collect();
        prop_assert!(found.is_sorted_by(|a, b| a.score >= b.score));
        let mut edges: Vec<&Vec<u32>> = found.iter().map(|one| &one.edges).collect();
        let mut wanted = all(&forest);
        edges.sort_unstable();
        wanted.sort_unstable();
        prop_assert!(edges.into_iter().eq(&wanted));
        prop_assert_eq!(found.into_iter().next(), forest.viterbi(&scores));
    }

    #[test]
    fn the_text_and_the_features_of_a_derivation_are_those_of_its_edges(
        forest in forests(), weights in weights()
    ) {
        for derivation in forest.best(&forest.scores(&weights), false) {
            let (words, used) = text_of(&forest, &derivation.edges);
            prop_assert_eq!(used, derivation.edges.len());
            prop_assert_eq!(forest.text(&derivation), words.join(" "));
            let features = forest.features(&derivation);
            prop_assert!(features.is_sorted_by(|a, b| a.0 < b.0));
            let score: f64 =
                features.iter().map(|&(id, value)| weights[id as usize] * f64::from(value)).sum();
            prop_assert_eq!(score, derivation.score);
        }
    }

    #[test]
    fn every_string_comes_once_with_its_best_score(forest in forests(), weights in weights()) {
        let scores = forest.scores(&weights);
        let mut wanted: HashMap<String, f64> = HashMap::new();
        for edges in all(&forest) {
            let score = edges.iter().map(|&edge| scores[edge as usize]).sum();
            let best = wanted.entry(text_of(&forest, &edges).0.join(" ")).or_insert(score);
            *best = best.max(score);
        }
        let found: Vec<Derivation> = forest.best(&scores, true).collect();
        prop_assert!(found.is_sorted_by(|a, b| a.score >= b.score));
        prop_assert_eq!(found.len(), wanted.len());
        for derivation in &found {
            prop_assert_eq!(wanted.get(&forest.text(derivation)), Some(&derivation.score));
        }
    }
}
