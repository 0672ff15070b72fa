//! Forests against everything that is in them, written down.

mod common;

use std::collections::{HashMap, HashSet};

use common::{all, forests, text_of, weights};
use proptest::prelude::*;
use tunesmith_space::{Derivation, Forest, Forests, Hypothesis, Join, PoolsBuilder};

/// All derivations of a node, best first; among equals by edges, then by the places of what is below
/// them; `unique` at every node.
fn sorted(forest: &Forest, scores: &[f64], unique: bool, node: usize) -> Vec<Derivation> {
    let mut all: Vec<(usize, [usize; 2], Derivation)> = Vec::new();
    for edge in forest.incoming(node) {
        let tails = forest.edges()[edge].tails();
        let below: Vec<_> = tails.map(|tail| sorted(forest, scores, unique, tail)).collect();
        let nothing = vec![Derivation { score: -0.0, edges: Vec::new() }];
        let [first, second] = [0, 1].map(|gap| below.get(gap).unwrap_or(&nothing));
        for (i, one) in first.iter().enumerate() {
            for (j, two) in second.iter().enumerate() {
                let edges = [&[edge as u32], &one.edges[..], &two.edges[..]].concat();
                let score = scores[edge] + (one.score + two.score);
                all.push((edge, [i, j], Derivation { score, edges }));
            }
        }
    }
    let order = |score: f64| score + 0.0;
    all.sort_by(|a, b| {
        order(b.2.score).total_cmp(&order(a.2.score)).then((a.0, a.1).cmp(&(b.0, b.1)))
    });
    let mut seen = HashSet::new();
    all.retain(|(.., one)| !unique || seen.insert(text_of(forest, &one.edges).0));
    all.into_iter().map(|(.., one)| one).collect()
}

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

    #[test]
    fn derivations_come_as_if_every_node_had_sorted_its_own(
        forest in forests(), weights in weights(), unique: bool
    ) {
        let scores = forest.scores(&weights);
        let found: Vec<Derivation> = forest.best(&scores, unique).collect();
        let wanted = forest.goal().map(|goal| sorted(&forest, &scores, unique, goal));
        prop_assert_eq!(found, wanted.unwrap_or_default());
    }

    #[test]
    fn a_great_many_equals_come_once_each(
        levels in 1usize..5,
        values in proptest::collection::vec(prop_oneof![6 => Just(1u8), 1 => 0u8..3], 1..9),
        pair: bool,
        unique: bool,
        wanted in prop_oneof![0usize..2_000, Just(usize::MAX)],
    ) {
        // Values that are equal but for rounding, or some lower.
        let scores = [0.1 + 0.2, 0.3, -0.7];
        let forest = common::levels(levels, values.len(), values.len(), pair);
        let scores: Vec<f64> = forest
            .edges()
            .iter()
            .map(|edge| if edge.label == 0 { 0.0 } else {
                scores[usize::from(values[edge.label as usize - 1])]
            })
            .collect();
        let found: Vec<Derivation> = forest.best(&scores, unique).wanting(wanted).collect();
        prop_assert_eq!(found.len(), values.len().pow(levels as u32));
        prop_assert!(found.is_sorted_by(|a, b| a.score >= b.score));
        let edges: HashSet<&Vec<u32>> = found.iter().map(|one| &one.edges).collect();
        prop_assert_eq!(edges.len(), found.len());
        for one in &found {
            let sum: f64 = one.edges.iter().map(|&edge| scores[edge as usize]).sum();
            prop_assert!((one.score - sum).abs() < 1e-9);
        }
    }

    #[test]
    fn of_a_great_many_derivations_the_best_of_each_string_comes(
        levels in 6usize..8,
        values in proptest::collection::vec(-9i8..1, 4..9),
        pair: bool,
        wanted in prop_oneof![0usize..2_000, Just(usize::MAX)],
    ) {
        // Longer lists than are gathered anew at each visit.
        let spellings = 4;
        let forest = common::levels(levels, values.len(), spellings, pair);
        let value = |word: usize| f64::from(values[word]);
        let scores: Vec<f64> = forest
            .edges()
            .iter()
            .map(|edge| (edge.label as usize).checked_sub(1).map_or(0.0, value))
            .collect();
        let alike = |spelling: usize| (spelling..values.len()).step_by(spellings).map(value);
        let best = [0, 1, 2, 3].map(|spelling| alike(spelling).fold(f64::NEG_INFINITY, f64::max));
        let found: Vec<Derivation> = forest.best(&scores, true).wanting(wanted).collect();
        prop_assert!(found.is_sorted_by(|a, b| a.score >= b.score));
        let texts: HashSet<String> = found.iter().map(|one| forest.text(one)).collect();
        prop_assert_eq!(texts.len(), found.len());
        prop_assert_eq!(found.len(), spellings.pow(levels as u32));
        for one in &found {
            let text = forest.text(one);
            let sum: f64 = text.split(' ').map(|word| best[word.parse::<usize>().unwrap()]).sum();
            prop_assert_eq!(one.score, sum);
        }
    }

    #[test]
    fn sums_over_derivations_are_those_of_the_written_out(
        forest in forests(), weights in weights()
    ) {
        let scores = forest.scores(&weights);
        let found: Vec<Derivation> = forest.best(&scores, false).collect();
        let mass: f64 = found.iter().map(|one| one.score.exp()).sum();
        let near = |a: f64, b: f64| a == b || (a - b).abs() < 1e-9 * a.abs().max(1.0);
        let marginals = forest.marginals(&scores, Join::Sum);
        let best = forest.marginals(&scores, Join::Max);
        prop_assert!(near(marginals.whole, mass.ln()));
        prop_assert!(near(10f64.powf(forest.derivations()), found.len() as f64));
        let mut features = [0.0; common::FEATURES];
        for edge in 0..forest.edges().len() {
            let using = found.iter().filter(|one| one.edges.contains(&(edge as u32)));
            let top = using.clone().map(|one| one.score).fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(near(best.edges[edge], top - best.whole) || top == f64::NEG_INFINITY);
            // Counted as often as it is used.
            let uses = |one: &Derivation| {
                one.edges.iter().filter(|&&other| other == edge as u32).count() as f64
            };
            let count: f64 = using.map(|one| one.score.exp() * uses(one)).sum();
            prop_assert!(near(marginals.edges[edge].exp(), count / mass) || found.is_empty());
        }
        for one in &found {
            for (id, value) in forest.features(one) {
                features[id as usize] += one.score.exp() / mass * f64::from(value);
            }
        }
        for (id, value) in forest.expectations(&scores) {
            features[id as usize] -= value;
        }
        prop_assert!(features.iter().all(|rest| rest.abs() < 1e-9));
    }

    #[test]
    fn pruning_keeps_what_is_near_the_best_and_no_more_than_it_must(
        forest in forests(), weights in weights(), beam in 0u8..6
    ) {
        let beam = f64::from(beam) / 2.0;
        let scores = forest.scores(&weights);
        let named = |forest: &Forest, one: &Derivation| (forest.text(one), one.score.to_bits());
        let mut kept: Vec<_> = Vec::new();
        let best = forest.viterbi(&scores);
        for one in forest.best(&scores, false) {
            if one.score >= best.as_ref().map_or(0.0, |best| best.score) - beam {
                kept.push(named(&forest, &one));
            }
        }
        let pruned = forest.prune_by_score(&scores, beam);
        let count = kept.len();
        let mut found: Vec<_> =
            pruned.best(&pruned.scores(&weights), false).map(|one| named(&pruned, &one)).collect();
        let worst = found.get(count.max(1) - 1).cloned();
        found.truncate(count);
        kept.sort();
        found.sort();
        prop_assert_eq!(found, kept);
        prop_assert_eq!(worst.is_some(), best.is_some());
        let marginals = pruned.marginals(&pruned.scores(&weights), Join::Max);
        prop_assert!(marginals.edges.iter().all(|&edge| edge >= -beam));
        let sure = forest.prune_by_posterior(&scores, 1e9);
        prop_assert_eq!(sure.viterbi(&sure.scores(&weights)).map(|one| one.score),
            best.map(|one| one.score));
        prop_assert!(sure.derivations() <= 0.0);
    }

    #[test]
    fn density_keeps_the_best_edges_whatever_the_size_of_scores(
        forest in forests(), weights in weights(), density in 0.0f64..3.0
    ) {
        let scores = forest.scores(&weights);
        let Some(best) = forest.viterbi(&scores) else { return Ok(()) };
        let pruned = forest.prune_by_density(&scores, density);
        prop_assert_eq!(pruned.viterbi(&pruned.scores(&weights)).map(|one| one.score),
            Some(best.score));
        let words = forest.yielded(&best).len().max(1);
        let wanted = (density * words as f64).ceil() as usize;
        let marginals = forest.marginals(&scores, Join::Max).edges;
        let good = marginals.iter().filter(|&&edge| edge >= -1e-9).count();
        prop_assert!(pruned.edges().len() <= wanted.max(good));
        // Twice the scores, the same edges.
        let doubled: Vec<f64> = scores.iter().map(|score| 2.0 * score).collect();
        let twin = forest.prune_by_density(&doubled, density);
        prop_assert_eq!(pruned.edges(), twin.edges());
        let whole = forest.prune_by_density(&scores, f64::INFINITY);
        prop_assert_eq!(whole.derivations(), forest.keep(|_| true).derivations());
    }

    #[test]
    fn forests_come_back_from_a_file_and_no_damage_is_overlooked(
        forest in forests(), other in forests(), weights in weights(), cut: u16, flip: (u16, u8)
    ) {
        let mut corpus = Forests::default();
        for name in ["a", "b", "ü", ""] {
            corpus.names.intern(name);
        }
        corpus.forests = vec![forest, Forest::default(), other];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("forests");
        corpus.save(&path).unwrap();
        let back = Forests::load(&path).unwrap();
        prop_assert!(back.names.iter().eq(corpus.names.iter()));
        for (one, twin) in corpus.forests.iter().zip(&back.forests) {
            prop_assert_eq!(format!("{one:?}"), format!("{twin:?}"));
        }
        prop_assert_eq!(corpus.best(&weights), back.best(&weights));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..usize::from(cut) % bytes.len()]).unwrap();
        prop_assert!(Forests::load(&path).is_err());
        let mut damaged = bytes.clone();
        damaged[usize::from(flip.0) % bytes.len()] ^= flip.1;
        std::fs::write(&path, &damaged).unwrap();
        prop_assert_eq!(Forests::load(&path).is_err(), damaged != bytes);
        // With the checksum made to fit, whatever is read must still be a forest.
        let end = damaged.len() - 4;
        let sum = crc32fast::hash(&damaged[..end]);
        damaged[end..].copy_from_slice(&sum.to_le_bytes());
        std::fs::write(&path, &damaged).unwrap();
        if let Ok(forests) = Forests::load(&path) {
            for forest in &forests.forests {
                if let Some(best) = forest.viterbi(&forest.scores(&weights)) {
                    forest.text(&best);
                }
            }
        }
    }

    #[test]
    fn a_union_holds_what_its_parts_hold(
        one in forests(), other in forests(), weights in weights()
    ) {
        let named = |forest: &Forest| -> Vec<(String, u64)> {
            let scores = forest.scores(&weights);
            let best = forest.best(&scores, false);
            best.map(|found| (forest.text(&found), found.score.to_bits())).collect()
        };
        let mut wanted = [named(&one), named(&other)].concat();
        let mut found = named(&Forest::union([&one, &Forest::default(), &other]));
        wanted.sort();
        found.sort();
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn a_forest_of_a_list_holds_the_list(
        list in proptest::collection::vec(("[ab ]{0,4}", -4i8..5), 0..6)
    ) {
        let mut builder = PoolsBuilder::default();
        let id = builder.names.intern("score");
        builder.sentence(None);
        for (text, value) in &list {
            let features = &[(id, f32::from(*value))];
            builder.push(Hypothesis { text, features, ..Hypothesis::default() });
        }
        let forests = Forests::of_lists(&builder.finish());
        let lists = forests.lists(&[1.0], 100, false);
        let mut wanted: Vec<(&str, f64)> =
            list.iter().map(|(text, value)| (text.as_str(), f64::from(*value))).collect();
        wanted.sort_by(|a, b| b.1.total_cmp(&a.1));
        let found: Vec<(&str, f64)> =
            lists.list(0).map(|at| (lists.text(at), lists.score(at))).collect();
        prop_assert_eq!(found, wanted);
    }
}

#[test]
fn a_round_that_had_too_much_to_do_leaves_nothing_behind() {
    // A list that is long, and then far more at once that is equal.
    let (good, others) = (33, 600);
    let forest = common::levels(2, good + others, good + others, false);
    let score = |label: usize| if label <= good { 0.0 } else { -1.0 };
    let scores: Vec<f64> = forest.edges().iter().map(|edge| score(edge.label as usize)).collect();
    let near = good * good + 2 * good * others;
    let found: Vec<Derivation> = forest.best(&scores, true).take(near + 1).collect();
    assert_eq!(found.iter().filter(|one| one.score == 0.0).count(), good * good);
    assert_eq!(found.iter().filter(|one| one.score >= -1.0).count(), near);
    let texts: HashSet<String> = found.iter().map(|one| forest.text(one)).collect();
    assert_eq!(texts.len(), near + 1);
}
