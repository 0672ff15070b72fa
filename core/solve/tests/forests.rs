//! Forests against the lists of everything that is in them.

#[path = "../../space/tests/common/mod.rs"]
mod common;

use std::sync::Arc;

use common::{FEATURES, forests_without_ties};
use proptest::prelude::*;
use tunesmith_metric::{Bleu, Metric, PlainLists, text_stats, text_table};
use tunesmith_solve::{
    Blocks, Corpus, ForestCorpus, ForestSearch, LineSearch, ListCorpus, ListSearch, Objective,
    Worth, consensus, expected_gain, forest_consensus, forest_expect,
};
use tunesmith_space::{
    Agreement, Among, Forest, Forests, Hypothesis, Pools, PoolsBuilder, Reach, counted,
};

const EVERYWHERE: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

fn references(count: usize) -> Vec<Vec<String>> {
    let some = [vec!["a b c a"], vec!["b a", "c b a b"], vec![""], vec!["c c c c c"]];
    some.iter()
        .cycle()
        .take(count)
        .map(|them| them.iter().map(|&one| one.into()).collect())
        .collect()
}

fn corpus(forests: Vec<Forest>) -> Forests {
    let mut corpus = Forests { forests, ..Forests::default() };
    for id in 0..=FEATURES {
        corpus.names.intern(&id.to_string());
    }
    corpus
}

fn list_corpus(pools: Pools, references: &[Vec<String>]) -> ListCorpus {
    let table =
        text_table(&Bleu::default(), &PlainLists(pools.starts(), |at| pools.text(at)), references)
            .unwrap();
    ListCorpus::new(Arc::new(pools), Arc::new(table))
}

fn forest_corpus(forests: &Forests, references: &[Vec<String>], reach: Reach) -> ForestCorpus {
    ForestCorpus::new(Arc::new(forests.clone()), Arc::new(Bleu::default()), references, reach)
}

fn many() -> impl Strategy<Value = Vec<Forest>> {
    proptest::collection::vec(forests_without_ties(), 1..4)
}

fn point() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(-1.0f64..1.0, FEATURES + 1)
}

/// What is decoded with some weights, and the gain of it.
fn decoded(forests: &Forests, references: &[Vec<String>], weights: &[f64]) -> f64 {
    let mut total = vec![0.0; Bleu::default().width()];
    for (sentence, best) in forests.best(weights).into_iter().enumerate() {
        let Some(best) = best else { continue };
        let text = forests.forests[sentence].text(&best);
        let row = text_stats(&Bleu::default(), &[text], &references[sentence..=sentence]);
        total.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    Bleu::default().gain(&total)
}

/// Lists with distinct strings, best first, features in halves.
fn lists() -> impl Strategy<Value = Pools> {
    let hypothesis = (proptest::collection::vec("[abc]", 0..5), [-4i8..5, -4i8..5]);
    let lists = proptest::collection::vec(proptest::collection::vec(hypothesis, 0..7), 1..4);
    lists.prop_map(|lists| {
        let mut builder = PoolsBuilder::default();
        let ids = [builder.names.intern("0"), builder.names.intern("1")];
        for mut list in lists {
            builder.sentence(None);
            list.sort_by_key(|(_, values)| -values[0]);
            let mut seen = Vec::new();
            for (words, values) in list {
                let text = words.join(" ");
                if seen.contains(&text) {
                    continue;
                }
                let values = values.map(|value| f32::from(value) / 2.0);
                let features = [(ids[0], values[0]), (ids[1], values[1])];
                builder.push(Hypothesis {
                    text: &text,
                    features: &features,
                    ..Hypothesis::default()
                });
                seen.push(text);
            }
        }
        builder.finish()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn line_search_over_forests_is_that_over_all_their_derivations(
        forests in many(), here in point(), direction in point(), bounded: bool
    ) {
        let forests = corpus(forests);
        let references = references(forests.forests.len());
        let lists = list_corpus(forests.lists(&here, usize::MAX, false), &references);
        let (blocks, bleu) = (Blocks::whole(references.len()), Arc::new(Bleu::default()));
        let lists = ListSearch::new(lists.pools, lists.table, bleu, blocks.clone(), &[0, 2]);
        let search = Arc::new(forest_corpus(&forests, &references, Reach::default()));
        let search = ForestSearch::new(search, blocks, &[0, 2]);
        prop_assert_eq!((search.axes(), lists.axes()), (2, 2));
        let (walker, twin) = (search.walker(here.clone()), lists.walker(here.clone()));
        prop_assert_eq!(search.gain(&walker), lists.gain(&twin));
        let range = if bounded { (-0.7, 1.1) } else { EVERYWHERE };
        let (found, wanted) = (
            search.direction(&walker, &direction, range),
            lists.direction(&twin, &direction, range),
        );
        prop_assert!((found.step - wanted.step).abs() < 1e-6 * wanted.step.abs().max(1.0));
        prop_assert!((found.gain - wanted.gain).abs() < 1e-12);
        // What is projected is what is decoded.
        let there: Vec<f64> = here.iter().zip(&direction).map(|(w, d)| w + found.step * d).collect();
        prop_assert!((decoded(&forests, &references, &there) - found.gain).abs() < 1e-12);
        let along = search.axis(&walker, 1, EVERYWHERE);
        let other = lists.axis(&twin, 1, EVERYWHERE);
        prop_assert!((along.step - other.step).abs() < 1e-6 * other.step.abs().max(1.0));
        prop_assert!((along.gain - other.gain).abs() < 1e-12);
    }

    #[test]
    fn a_forest_of_a_list_is_searched_as_the_list(
        pools in lists(), here in [-8i8..9, -8i8..9], axis in 0usize..2
    ) {
        let references = references(pools.sentences());
        let forests = Forests::of_lists(&pools);
        let lists = list_corpus(pools, &references);
        let (blocks, bleu) = (Blocks::whole(references.len()), Arc::new(Bleu::default()));
        let lists = ListSearch::new(lists.pools, lists.table, bleu, blocks.clone(), &[0, 1]);
        let search = Arc::new(forest_corpus(&forests, &references, Reach::default()));
        let search = ForestSearch::new(search, blocks, &[0, 1]);
        let here = here.map(|value| f64::from(value) / 4.0).to_vec();
        let (walker, twin) = (search.walker(here.clone()), lists.walker(here));
        prop_assert_eq!(
            search.axis(&walker, axis, EVERYWHERE),
            lists.axis(&twin, axis, EVERYWHERE)
        );
    }

    #[test]
    fn a_forest_of_a_list_answers_every_query_as_the_list(
        pools in lists(), here in [-8i8..9, -8i8..9], model in -1i8..2, gain in -1i8..2,
        n in 1usize..5, k in 0usize..5, unique: bool,
    ) {
        let references = references(pools.sentences());
        let forests = Forests::of_lists(&pools);
        let forest = forest_corpus(&forests, &references, Reach::default());
        let lists = list_corpus(pools, &references);
        let here = here.map(|value| f64::from(value) / 4.0);
        for sentence in 0..lists.sentences() {
            prop_assert_eq!(lists.is_blank(sentence), forest.is_blank(sentence));
            let worth = Worth::alone(Arc::new(Bleu::default()));
            let mut list = lists.space(sentence, worth.clone());
            let mut space = forest.space(sentence, worth);
            list.rescore(&here);
            space.rescore(&here);
            prop_assert_eq!(list.len(), space.len());
            if model == 0 && gain == 0 {
                continue;
            }
            let (model, gain) = (f64::from(model), f64::from(gain));
            let wanted = list.top(n, model, gain, Among::best(k), unique);
            prop_assert_eq!(space.top(n, model, gain, Among::best(k), unique), wanted.clone());
            prop_assert_eq!(
                space.argmax(model, gain, Among::best(k)).into_iter().collect::<Vec<_>>(),
                &wanted[..wanted.len().min(1)]
            );
            for candidate in 0..list.len() {
                prop_assert_eq!(list.score(candidate), space.score(candidate));
                prop_assert_eq!(list.gain(candidate), space.gain(candidate));
                prop_assert_eq!(list.stats(candidate), space.stats(candidate));
            }
        }
    }

    #[test]
    fn the_expected_gain_of_a_forest_is_that_of_all_its_derivations(
        forests in many(), near in point(), here in point(), alpha in 0.0f64..3.0, whole: bool
    ) {
        let forests = corpus(forests);
        let references = references(forests.forests.len());
        let lists = list_corpus(forests.lists(&here, usize::MAX, false), &references);
        let forest = forest_corpus(&forests, &references, Reach { list: 1, pops: usize::MAX });
        let forest = forest_expect(&forest, &near);
        let objective = if whole { Objective::Corpus } else { Objective::Sentence };
        let (bleu, blocks) = (Bleu::default(), Blocks::whole(references.len()));
        let gain = |weights: &[f64]| {
            expected_gain(forest.as_ref(), &bleu, &blocks, weights, alpha, objective)
        };
        let (found, gradient) = gain(&here);
        let (wanted, other) = expected_gain(&lists, &bleu, &blocks, &here, alpha, objective);
        prop_assert!((found - wanted).abs() < 1e-6, "{found} {wanted}");
        for (place, (found, wanted)) in gradient.iter().zip(&other).enumerate() {
            // Lists have sums of features in single precision.
            let close = |other: &f64, much: f64| (found - other).abs() < much * (1.0 + other.abs());
            prop_assert!(close(wanted, 1e-5), "{found} {wanted}");
            // The slope of the corpus gain is one of differences itself.
            if !whole {
                let mut at = here.clone();
                at[place] += 1e-5;
                let above = gain(&at).0;
                at[place] -= 2e-5;
                let slope = (above - gain(&at).0) / 2e-5;
                prop_assert!(close(&slope, 1e-4), "{found} {slope}");
            }
        }
    }

    #[test]
    fn a_forest_of_a_list_expects_what_the_list_does(
        pools in lists(), here in [-8i8..9, -8i8..9], alpha in 0.0f64..3.0, pops in 0usize..3,
        whole: bool,
    ) {
        let references = references(pools.sentences());
        let forests = Forests::of_lists(&pools);
        let lists = list_corpus(pools, &references);
        let here = here.map(|value| f64::from(value) / 4.0);
        let forest = forest_corpus(&forests, &references, Reach { list: 1, pops });
        let forest = forest_expect(&forest, &[0.0; 2]);
        let objective = if whole { Objective::Corpus } else { Objective::Sentence };
        let (bleu, blocks) = (Bleu::default(), Blocks::whole(references.len()));
        prop_assert_eq!(
            expected_gain(forest.as_ref(), &bleu, &blocks, &here, alpha, objective),
            expected_gain(&lists, &bleu, &blocks, &here, alpha, objective)
        );
    }

    #[test]
    fn what_a_forest_agrees_on_is_what_all_its_derivations_do(
        forests in many(), here in point(), alpha in 0.1f64..3.0
    ) {
        let forests = corpus(forests);
        let pools = forests.lists(&here, usize::MAX, false);
        for (sentence, forest) in forests.forests.iter().enumerate() {
            let scores = forest.scores(&here);
            let Some(best) = forest.viterbi(&scores) else { continue };
            let found = forest.agreement(&scores, alpha, usize::MAX);
            let mut wanted = Agreement { vocabulary: found.vocabulary.clone(), ..Default::default() };
            let every: Vec<_> = forest.best(&scores, false).collect();
            let mass = |score: f64| (alpha * (score - best.score)).exp();
            let norm: f64 = every.iter().map(|one| mass(one.score)).sum();
            for one in &every {
                let share = mass(one.score) / norm;
                let mut tokens = Vec::new();
                wanted.tokens(&forest.text(one), &mut tokens);
                wanted.length += share * tokens.len() as f64;
                for (gram, count) in counted(&tokens) {
                    *wanted.grams.entry(gram).or_default() += share * f64::from(count);
                }
            }
            prop_assert!((found.length - wanted.length).abs() < 1e-9);
            prop_assert_eq!(found.grams.len(), wanted.grams.len());
            for (gram, count) in &wanted.grams {
                prop_assert!((found.grams[gram] - count).abs() < 1e-9);
            }
            // With counts that are exact and a search without limits, the string is as good as
            // any of the list.
            let text = forest_consensus(&forests, &here, Some(alpha), usize::MAX)[sentence].clone();
            let place = consensus(&pools, &here, Some(alpha))[sentence] as usize;
            let gain = |text: &str| {
                let mut tokens = Vec::new();
                let mut with = wanted.clone();
                with.tokens(text, &mut tokens);
                Bleu::default().sentence_gain(&with.row(&tokens))
            };
            prop_assert!((gain(&text.unwrap()) - gain(pools.text(place))).abs() < 1e-6);
        }
    }

    #[test]
    fn a_forest_of_a_list_agrees_as_the_list_does(
        pools in lists(), here in [-8i8..9, -8i8..9], alpha in 0.1f64..3.0, pops in 0usize..3
    ) {
        let here = here.map(|value| f64::from(value) / 4.0);
        let found = forest_consensus(&Forests::of_lists(&pools), &here, Some(alpha), pops);
        for (found, place) in found.iter().zip(consensus(&pools, &here, Some(alpha))) {
            let wanted = usize::try_from(place).ok().map(|place| pools.text(place));
            prop_assert_eq!(found.as_deref(), wanted);
        }
    }

    #[test]
    fn a_search_without_limits_finds_the_best_mixture_of_score_and_gain(
        forests in many(), here in point(), model in -1i8..2, sign: bool
    ) {
        let forests = corpus(forests);
        let references = references(forests.forests.len());
        let lists = list_corpus(forests.lists(&here, usize::MAX, false), &references);
        let forest = forest_corpus(&forests, &references, Reach { list: 10, pops: usize::MAX });
        let (model, gain) = (f64::from(model), if sign { 1.0 } else { -1.0 });
        for sentence in (0..lists.sentences()).filter(|&sentence| !lists.is_blank(sentence)) {
            let worth = Worth::alone(Arc::new(Bleu::default()));
            let mut list = lists.space(sentence, worth.clone());
            let mut space = forest.space(sentence, worth);
            list.rescore(&here);
            space.rescore(&here);
            let (wanted, found) = (
                list.argmax(model, gain, Among::ALL).unwrap(),
                space.argmax(model, gain, Among::ALL).unwrap(),
            );
            prop_assert!((list.gain(wanted) - space.gain(found)).abs() < 1e-12);
            prop_assert!((list.score(wanted) - space.score(found)).abs() < 1e-5);
        }
    }
}
