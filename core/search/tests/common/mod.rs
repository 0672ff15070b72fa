//! What the lists of both decoders must be.

use std::collections::{BTreeMap, BTreeSet};

use tunesmith_search::Translated;
use tunesmith_search::features::Collected;
use tunesmith_space::PoolsBuilder;

/// The list of a sentence against its forest: each string once, with the score of its best
/// derivation, and features that add up to it, those that are always there first.
pub fn check_list(found: &Translated<'_>, text: &str, k: usize, always: &[&str]) {
    let mut named = Collected::default();
    always.iter().for_each(|name| assert!((named.id(name) as usize) < always.len()));
    let mut list = PoolsBuilder::default();
    found.list(k, true, false, named, &mut list);
    let list = list.finish();
    let mut collected = Collected::default();
    let forest = found.forest(&mut collected);
    let scores = forest.scores(&found.weights(&collected.names));
    let mut best: BTreeMap<String, f64> = BTreeMap::new();
    for one in forest.best(&scores, true).take(5_000) {
        best.entry(forest.text(&one)).or_insert(one.score);
    }
    assert_eq!(list.hypotheses(), best.len().min(k));
    assert!(list.scores().is_sorted_by(|a, b| a >= b));
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-4 * (1.0 + a.abs().max(b.abs()));
    let weights = found.weights(&list.names);
    let mut seen = BTreeSet::new();
    for at in 0..list.hypotheses() {
        assert!(seen.insert(list.text(at)), "{} twice", list.text(at));
        assert!(near(list.score(at), best[list.text(at)]), "{}", list.text(at));
        let (ids, values) = list.features(at);
        assert!(ids.iter().take(always.len()).copied().eq(0..always.len() as u32));
        let product = |(&id, &value): (&u32, &f32)| weights[id as usize] * f64::from(value);
        assert!(near(list.score(at), ids.iter().zip(values).map(product).sum()));
    }
    if let Some(score) = found.score() {
        assert!(near(list.score(0), score));
        assert!(list.text(0) == text || near(best[text], score));
    }
}
