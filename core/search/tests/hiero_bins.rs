//! What the bins of the hierarchical decoder promise, against all derivations.

#[path = "common/grammar.rs"]
mod grammar;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use grammar::{CDEC, Rule, SPARSE, model, rules, sentence, sparse};
use proptest::prelude::*;
use tunesmith_lm::Model as Lm;
use tunesmith_search::features::{Collected, Extras};
use tunesmith_search::hiero::{Decoder, Model, Settings};
use tunesmith_search::{Beam, Given, Input, Origin, Outcome, Partial, Weights, decode};

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 2e-4 * (1.0 + a.abs().max(b.abs()))
}

fn settings(pop_limit: usize, growing: bool) -> Settings {
    Settings { pop_limit, max_span: 3, growing, ..Settings::default() }
}

fn weights() -> Weights {
    let dense = [("lm", 0.4), ("words", -0.1), ("unknown", -1.0), ("arity-1", 0.2), ("glue", 0.1)];
    Weights::new([&dense[..], &CDEC[..1], &SPARSE].concat())
}

/// A span, and whether it is a prefix that glue rules build.
type Cell = (Range<usize>, bool);

/// The cells that bins are of, in their order.
fn cells(words: usize, longest: usize) -> Vec<Cell> {
    let mut all: Vec<Cell> = (1..=words).map(|end| (0..end, true)).collect();
    for start in 0..words {
        all.extend((start + 1..=words.min(start + longest)).map(|end| (start..end, false)));
    }
    all.sort_by_key(|(span, prefix)| (span.len(), span.start, *prefix));
    all
}

/// A value of the features of the whole translation.
fn of(partial: &Partial, collected: &Collected, name: &str) -> f64 {
    let both = partial.features.iter().chain(&partial.future);
    let values = both.filter(|&&(id, _)| collected.names.name(id) == Some(name));
    values.map(|&(_, value)| f64::from(value)).sum()
}

fn log_probability(lm: &Lm, text: &str) -> f64 {
    let (mut state, mut total) = (lm.begin(), 0.0);
    let ids = text.split_whitespace().map(|word| lm.id(word));
    for word in ids.chain([lm.end_id()]) {
        let (scored, next) = lm.score(&state, word);
        (total, state) = (total + f64::from(scored.log10), next);
    }
    total * std::f64::consts::LN_10
}

/// Features are those of the scores, and those of the whole translation are right.
fn check_sums(partial: &Partial, collected: &Collected, model: &Model) {
    let weights = weights();
    let sum = |features: &[(u32, f32)]| -> f64 {
        let weight = |id| weights.of(collected.names.name(id).unwrap());
        features.iter().map(|&(id, value)| weight(id) * f64::from(value)).sum()
    };
    let score = sum(&partial.features);
    assert!(close(score, f64::from(partial.score)), "{score} {partial:?}");
    let estimate = score + sum(&partial.future);
    assert!(close(estimate, f64::from(partial.estimate)), "{estimate} {partial:?}");
    let whole = partial.whole();
    let lm = log_probability(model.lm(), &whole);
    assert!(close(of(partial, collected, "lm"), lm), "{lm} {partial:?}");
    let words = whole.split_whitespace().count() as f64;
    assert!(close(of(partial, collected, "words"), words), "{partial:?}");
}

/// Scores and strings of derivations, by the cells that they go through.
type Through = BTreeMap<(usize, usize, bool), Vec<(f64, String)>>;

/// All derivations; `None` if there are too many.
fn derivations(model: &Arc<Model>, settings: Settings, input: &Input<'_>) -> Option<Through> {
    const MANY: usize = 3000;
    let decoder = Decoder::new(model.clone(), weights(), settings);
    let found = decode(&decoder, input);
    let all = found.best(MANY, false, &mut Collected::default());
    if all.len() == MANY {
        return None;
    }
    let mut through = Through::new();
    for reading in all {
        for step in reading.steps.iter().filter_map(|&label| found.step(label)) {
            let cell = (step.span.start, step.span.end, step.origin == Origin::Glue);
            through.entry(cell).or_default().push((reading.score, reading.text.clone()));
        }
    }
    Some(through)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn bins_hold_what_the_cells_did(
        rules in rules(),
        text in sentence(7),
        pop_limit in prop_oneof![Just(0usize), 1..30usize],
        ways in 1..4usize,
        growing in any::<bool>(),
        order in 1..=3usize,
    ) {
        let model = model(&rules, order, false, sparse());
        let decoder = Decoder::new(model.clone(), weights(), settings(pop_limit, growing));
        let found = decoder.search(&Input::plain(&text));
        let mut collected = Collected::default();
        let bins = found.bins(ways, &mut collected).unwrap();
        let cells = cells(text.split_whitespace().count(), 3);
        prop_assert_eq!(bins.len(), cells.len());
        for (bin, (span, _)) in bins.iter().zip(&cells) {
            prop_assert!(bin.is_sorted_by(|a, b| a.score >= b.score));
            for partial in bin {
                prop_assert_eq!(&partial.covered[..], std::slice::from_ref(span));
                prop_assert_eq!((&partial.before, &partial.after), (&bin[0].before, &bin[0].after));
                check_sums(partial, &collected, &model);
            }
        }
        if let Some(last) = bins.last() {
            let best = &last[0];
            prop_assert!(close(f64::from(best.score), found.score().unwrap()));
            prop_assert_eq!(&best.text, &found.text());
            for whole in last {
                prop_assert!(whole.before.is_empty() && whole.after.is_empty());
                prop_assert!(whole.future.is_empty() && whole.estimate == whole.score);
            }
        }
    }

    #[test]
    fn strings_are_put_into_the_best_derivation_around_them(
        rules in rules(),
        text in sentence(5),
        pop_limit in prop_oneof![Just(0usize), 1..30usize],
        ways in 1..3usize,
        growing in any::<bool>(),
        order in 1..=3usize,
    ) {
        let model = model(&rules, order, false, sparse());
        let input = Input::plain(&text);
        let kept = derivations(&model, settings(pop_limit, growing), &input);
        let all = derivations(&model, settings(0, false), &input);
        prop_assume!(kept.is_some() && all.is_some());
        let (kept, all) = (kept.unwrap(), all.unwrap());
        let decoder = Decoder::new(model.clone(), weights(), settings(pop_limit, growing));
        let found = decoder.search(&input);
        let bins = found.bins(ways, &mut Collected::default()).unwrap();
        for (bin, (span, prefix)) in bins.iter().zip(cells(text.split_whitespace().count(), 3)) {
            let cell = (span.start, span.end, prefix);
            // Cells outside all derivations that the search kept are empty, and no others.
            let Some(through) = kept.get(&cell) else {
                prop_assert!(bin.is_empty());
                continue;
            };
            // One item is that of the best derivation, and the surroundings are, too.
            let best = through.iter().map(|one| one.0).fold(f64::NEG_INFINITY, f64::max);
            let is_best = |partial: &Partial| {
                let whole = partial.whole();
                close(f64::from(partial.estimate), best)
                    && through.iter().any(|one| close(one.0, best) && one.1 == whole)
            };
            prop_assert!(bin.iter().any(is_best), "{cell:?} {best} {bin:?}");
            // All are derivations of the grammar, with their scores.
            for partial in bin {
                let (whole, score) = (partial.whole(), f64::from(partial.estimate));
                let same = |one: &(f64, String)| one.1 == whole && close(one.0, score);
                prop_assert!(all[&cell].iter().any(same), "{cell:?} {partial:?}");
            }
        }
    }

    #[test]
    fn the_bins_of_pieces_stand_among_the_others(
        rules in rules(),
        text in sentence(9),
        max_words in 2..5usize,
    ) {
        let model = model(&rules, 3, false, Extras::default());
        let settings = Settings { max_words, ..settings(5, false) };
        let decoder = Decoder::new(model.clone(), weights(), settings);
        let found = decode(&decoder, &Input::plain(&text));
        let mut collected = Collected::default();
        let bins = found.bins(Beam { ways: 1, list: 7 }, &mut collected).unwrap();
        let weights = found.weights(&collected.names);
        let (score, mut used) = (found.score().unwrap(), 0);
        if let Some(last) = bins.last() {
            prop_assert!(close(f64::from(last[0].score), score) && last.len() <= 7);
        }
        for partial in bins.iter().flatten() {
            let both = partial.features.iter().chain(&partial.future);
            let sum: f64 = both.map(|&(id, value)| weights[id as usize] * f64::from(value)).sum();
            prop_assert!(close(sum, f64::from(partial.estimate)), "{sum} {partial:?}");
            used += usize::from(close(sum, score));
        }
        // The best derivation goes through at least one cell of each piece.
        prop_assert!(used >= found.pieces() || text.is_empty(), "{used} {bins:?}");
    }
}

fn pairs(pairs: &[(&'static str, &'static str, f64)]) -> Vec<Rule> {
    let side = |text: &'static str| text.split(' ').map(|word| word.parse().map_err(|_| word));
    let rule = |&(source, target, value)| Rule {
        source: side(source).collect(),
        target: side(target).collect(),
        value,
    };
    pairs.iter().map(rule).collect()
}

#[test]
fn a_string_stands_between_the_words_of_the_rule_around_it() {
    let rules = [("b", "y", 0.0), ("b", "z", -1.0), ("a 0 c", "x 0 rare", 9.0), ("c", "x", 0.0)];
    let model = model(&pairs(&rules), 3, false, Extras::default());
    let decoder = Decoder::new(model, weights(), settings(0, false));
    let found = decoder.search(&Input::plain("a b c"));
    let bins = found.bins(1, &mut Collected::default()).unwrap();
    // The spans 0-1, the prefix 0-1, then 1-2.
    let bin: Vec<(&str, &str, &str)> = (bins[2].iter())
        .map(|one| (one.before.as_str(), one.text.as_str(), one.after.as_str()))
        .collect();
    assert_eq!(bin, [("x", "y", "rare"), ("x", "z", "rare")]);
    assert_eq!(bins.last().unwrap()[0].text, "x y rare");
}

#[test]
fn bins_have_places_for_what_the_user_gives() {
    let model = model(&pairs(&[("a", "x", 0.0), ("b", "y", 0.0)]), 3, false, Extras::default());
    let decoder = Decoder::new(model, weights(), settings(0, false));
    let mut input = Input::plain("a b a b a");
    let words = vec!["z".to_owned()];
    input.given = vec![Given { span: 0..5, words, score: 1.0, exclusive: true }];
    let found = decoder.search(&input);
    let bins = found.bins(1, &mut Collected::default()).unwrap();
    assert_eq!(bins.len(), cells(5, 5).len());
    let [.., span, whole] = &bins[..] else { panic!("{bins:?}") };
    assert_eq!((span[0].text.as_str(), whole[0].text.as_str()), ("z", "z"));
    // Words by themselves lead nowhere.
    assert!(bins[..bins.len() - 2].iter().all(Vec::is_empty));
}
