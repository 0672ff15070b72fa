//! The phrase-based search against one that tries everything.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::check_list;
use proptest::prelude::*;
use tunesmith_lm::{Estimate, Model as Lm, estimate};
use tunesmith_rules::{Table, import_moses};
use tunesmith_search::features::templates::{Resources, make};
use tunesmith_search::features::{Collected, Extras};
use tunesmith_search::phrase::{Decoder, Dense, Kept, Model, Settings};
use tunesmith_search::{Decode, GivenUp, Input, Markup, Named, Outcome, Stop, Weights, decode};
use tunesmith_text::{Lines, Watch};

/// A phrase pair: source, target, four probabilities, six of orientation.
type Pair = (Vec<usize>, Vec<usize>, [f64; 4], [f64; 6]);

const SOURCE: [&str; 4] = ["a", "b", "c", "d"];
const TARGET: [&str; 4] = ["w", "x", "y", "z"];
const TEXT: &str = "w x y z\nx x y\nz y w\nw z\ny x w w\nw x z\n";

fn words<'w>(names: &'w [&'w str], ids: &[usize]) -> Vec<&'w str> {
    ids.iter().map(|&id| names[id]).collect()
}

struct World {
    _folder: tempfile::TempDir,
    decoder: Decoder,
    pairs: Vec<Pair>,
    weights: BTreeMap<String, f64>,
    limit: Option<usize>,
}

fn world(pairs: Vec<Pair>, weights: Vec<f64>, settings: Settings, extras: Extras) -> World {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (mut phrases, mut orders) = (String::new(), String::new());
    for (source, target, scores, lies) in &pairs {
        let (from, to) = (words(&SOURCE, source).join(" "), words(&TARGET, target).join(" "));
        let scores: Vec<String> = scores.iter().map(f64::to_string).collect();
        let lies: Vec<String> = lies.iter().map(f64::to_string).collect();
        phrases += &format!("{from} ||| {to} ||| {} ||| 0-0 ||| 1 1 1\n", scores.join(" "));
        orders += &format!("{from} ||| {to} ||| {}\n", lies.join(" "));
    }
    std::fs::write(at("phrases"), phrases).unwrap();
    std::fs::write(at("orders"), orders).unwrap();
    import_moses(&at("phrases"), Some(&at("orders")), &at("table")).unwrap();
    let table = Table::open(&at("table"), true).unwrap();
    let lines = Lines::new("text", std::io::Cursor::new(TEXT.as_bytes().to_vec()));
    let options = Estimate { order: 3, ..Estimate::default() };
    let lm = estimate([lines], &options, &Watch::default()).unwrap().model().unwrap();
    let dense = Dense::of_moses(&table, "LM0", "TM0", 4, Some("LR0")).unwrap();
    let names: Vec<String> = dense.names().into_iter().map(str::to_owned).collect();
    let weights: BTreeMap<String, f64> = names.into_iter().zip(weights).collect();
    let named = Weights::new(weights.iter().map(|(name, weight)| (name.as_str(), *weight)));
    let limit = settings.distortion_limit;
    let model = Model::new(table, lm, dense, extras).unwrap();
    let decoder = Decoder::new(Arc::new(model), named, settings);
    World { _folder: folder, decoder, pairs, weights, limit }
}

impl World {
    fn lm(&self) -> &Lm {
        self.decoder.model().lm()
    }

    /// Every derivation: its string, features and score.
    fn all(&self, source: &[usize]) -> Vec<(String, BTreeMap<String, f64>, f64)> {
        let mut found = Vec::new();
        self.extend(source, &mut vec![false; source.len()], &mut Vec::new(), &mut found);
        found
    }

    fn options(&self, source: &[usize], start: usize, end: usize) -> Vec<Option<usize>> {
        let matching = |pair: &usize| self.pairs[*pair].0 == source[start..end];
        let found: Vec<usize> = (0..self.pairs.len()).filter(matching).collect();
        if found.is_empty() && end == start + 1 {
            return vec![None];
        }
        found.into_iter().map(Some).collect()
    }

    fn extend(
        &self,
        source: &[usize],
        covered: &mut Vec<bool>,
        steps: &mut Vec<(usize, usize, Option<usize>)>,
        found: &mut Vec<(String, BTreeMap<String, f64>, f64)>,
    ) {
        let limit = self.limit.unwrap_or(usize::MAX);
        let Some(gap) = covered.iter().position(|done| !done) else {
            found.push(self.read(source, steps));
            return;
        };
        let last = steps.last().map_or(0, |step| step.1);
        for start in gap..source.len() {
            for end in start + 1..=source.len() {
                let free = covered[start..end].iter().all(|done| !done);
                let back = start == gap || end - gap <= limit;
                if !free || start.abs_diff(last) > limit || !back {
                    continue;
                }
                for option in self.options(source, start, end) {
                    covered[start..end].fill(true);
                    steps.push((start, end, option));
                    self.extend(source, covered, steps, found);
                    steps.pop();
                    covered[start..end].fill(false);
                }
            }
        }
    }

    fn read(
        &self,
        source: &[usize],
        steps: &[(usize, usize, Option<usize>)],
    ) -> (String, BTreeMap<String, f64>, f64) {
        let mut features: BTreeMap<String, f64> = BTreeMap::new();
        let mut add =
            |name: &str, value: f64| *features.entry(name.to_owned()).or_default() += value;
        let mut string: Vec<&str> = Vec::new();
        let mut before: Option<(usize, usize, Option<usize>)> = None;
        for &(start, end, option) in steps {
            let (from, to) = before.map_or((usize::MAX, 0), |step| (step.0, step.1));
            add("Distortion0", -(start.abs_diff(to) as f64));
            add("PhrasePenalty0", 1.0);
            let lies = if start == to {
                0
            } else if end == from {
                1
            } else {
                2
            };
            if let Some((_, _, Some(pair))) = before {
                let name = format!("LR0_{}", 4 + lies);
                add(&name, self.pairs[pair].3[3 + lies].ln());
            }
            match option {
                None => {
                    add("UnknownWordPenalty0", -100.0);
                    string.push(SOURCE[source[start]]);
                }
                Some(pair) => {
                    let (_, target, scores, orders) = &self.pairs[pair];
                    for (number, score) in scores.iter().enumerate() {
                        add(&format!("TM0_{}", number + 1), score.ln());
                    }
                    add(&format!("LR0_{}", 1 + lies), orders[lies].ln());
                    string.extend(words(&TARGET, target));
                }
            }
            before = Some((start, end, option));
        }
        add("WordPenalty0", -(string.len() as f64));
        let mut state = self.lm().begin();
        let mut log10 = 0.0;
        for word in string.iter().map(|word| self.lm().id(word)).chain([self.lm().end_id()]) {
            let (scored, next) = self.lm().score(&state, word);
            log10 += f64::from(scored.log10);
            state = next;
        }
        add("LM0", log10 * std::f64::consts::LN_10);
        let score = features.iter().map(|(name, value)| self.weights[name] * value).sum();
        (string.join(" "), features, score)
    }
}

fn pair() -> impl Strategy<Value = Pair> {
    let side = |longest| prop::collection::vec(0..3usize, 1..=longest);
    let probability = 1..100u32;
    (
        side(2),
        side(3),
        prop::array::uniform4(probability.clone()),
        prop::array::uniform6(probability),
    )
        .prop_map(|(source, target, scores, lies)| {
            let share = |number: u32| f64::from(number) / 100.0;
            (source, target, scores.map(share), lies.map(share))
        })
}

fn pairs() -> impl Strategy<Value = Vec<Pair>> {
    prop::collection::vec(pair(), 1..12).prop_map(|pairs| {
        let mut seen = BTreeSet::new();
        let new = |pair: &Pair| seen.insert((pair.0.clone(), pair.1.clone()));
        pairs.into_iter().filter(new).collect()
    })
}

fn weights() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-10..30i32).prop_map(|number| f64::from(number) / 20.0), 15)
}

fn sentence() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..SOURCE.len(), 1..5)
}

fn limit() -> impl Strategy<Value = Option<usize>> {
    prop_oneof![Just(None), (0..4usize).prop_map(Some)]
}

fn wide(distortion_limit: Option<usize>) -> Settings {
    Settings {
        stack: 0,
        pop_limit: 0,
        threshold: f32::INFINITY,
        table_limit: 0,
        distortion_limit,
        ..Settings::default()
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-4 * (1.0 + a.abs().max(b.abs()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn wide_enough_is_exhaustive(
        pairs in pairs(), weights in weights(), source in sentence(), limit in limit(),
    ) {
        let world = world(pairs, weights, wide(limit), Extras::default());
        let text = words(&SOURCE, &source).join(" ");
        let found = world.decoder.search(&Input::plain(&text));
        let all = world.all(&source);
        let best = all.iter().map(|one| one.2).fold(f64::NEG_INFINITY, f64::max);
        match found.score() {
            None => prop_assert!(all.is_empty()),
            Some(score) => prop_assert!(close(score, best), "{score} {best}"),
        }
        // And all derivations are listed, with their features.
        let found = decode(&world.decoder, &Input::plain(&text));
        let mut collected = Collected::default();
        let list = found.best(100_000, false, &mut collected);
        prop_assert_eq!(list.len(), all.len());
        prop_assert!(list.is_sorted_by(|a, b| a.score >= b.score));
        let mut scores: Vec<f64> = all.iter().map(|one| one.2).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        for (reading, score) in list.iter().zip(scores) {
            prop_assert!(close(reading.score, score));
        }
        let named = |features: &[(u32, f32)]| {
            features.iter().map(|&(id, value)| {
                let name = collected.names.name(id).unwrap().to_owned();
                (name, f64::from(value))
            }).collect::<BTreeMap<String, f64>>()
        };
        for reading in &list {
            let features = named(&reading.features);
            let sum: f64 = features.iter().map(|(name, value)| world.weights[name] * value).sum();
            prop_assert!(close(sum, reading.score), "{sum} {}", reading.score);
            let same = |one: &&(String, BTreeMap<String, f64>, f64)| {
                one.0 == reading.text
                    && one.1.iter().all(|(name, value)| {
                        close(*value, features.get(name).copied().unwrap_or(0.0))
                    })
            };
            prop_assert!(all.iter().find(same).is_some(), "{:?}", reading);
        }
        let unique = found.best(100_000, true, &mut collected);
        let strings: BTreeSet<&str> = all.iter().map(|one| one.0.as_str()).collect();
        prop_assert_eq!(unique.len(), strings.len());
    }

    #[test]
    fn no_beam_finds_more_than_there_is(
        pairs in pairs(), weights in weights(), source in sentence(), limit in limit(),
        stack in 1..5usize, pop_limit in 1..20usize,
    ) {
        let settings = Settings { stack, pop_limit, ..wide(limit) };
        let world = world(pairs, weights, settings, Extras::default());
        let text = words(&SOURCE, &source).join(" ");
        let found = world.decoder.search(&Input::plain(&text));
        let best = world.all(&source).iter().map(|one| one.2).fold(f64::NEG_INFINITY, f64::max);
        if let Some(score) = found.score() {
            prop_assert!(score <= best + 1e-4 * (1.0 + best.abs()), "{score} {best}");
        }
    }

    #[test]
    fn what_can_be_reached_is_forced(
        pairs in pairs(), weights in weights(), source in sentence(), limit in limit(),
        other in prop::collection::vec(0..3usize, 0..5),
    ) {
        let settings = Settings { stack: 1, pop_limit: 1, ..wide(limit) };
        let world = world(pairs, weights, settings, Extras::default());
        let text = words(&SOURCE, &source).join(" ");
        let all = world.all(&source);
        let other = words(&TARGET, &other).join(" ");
        let strings = all.iter().map(|one| one.0.as_str()).take(20).chain([other.as_str()]);
        for string in strings {
            let reference: Vec<&str> = string.split_whitespace().collect();
            let found = world.decoder.search_for(&Input::plain(&text), &reference);
            let of_it = all.iter().filter(|one| one.0 == string);
            let best = of_it.map(|one| one.2).fold(f64::NEG_INFINITY, f64::max);
            let reached = found.reached();
            prop_assert_eq!(reached.is_whole, best > f64::NEG_INFINITY);
            prop_assert_eq!(found.text(), reference[..reached.words].join(" "));
            if reached.is_whole {
                prop_assert!(close(found.score().unwrap(), best), "{:?} {best}", found.score());
                prop_assert_eq!(reached.words, reference.len());
            }
        }
    }

    #[test]
    fn sparse_features_take_part(
        pairs in pairs(), weights in weights(), source in sentence(), limit in limit(),
    ) {
        let extras = make(&["rule-id", "pairs", "order", "bigrams"], &Resources::default());
        let world = world(pairs, weights, wide(limit), extras.unwrap());
        let text = words(&SOURCE, &source).join(" ");
        let mut collected = Collected::default();
        let names = {
            let found = decode(&world.decoder, &Input::plain(&text));
            let forest = found.forest(&mut collected);
            prop_assert_eq!(forest.goal().is_none(), found.score().is_none());
            collected.names.iter().map(str::to_owned).collect::<Vec<_>>()
        };
        // Weights for all of them: the search and the forest must agree on the best.
        let all: Vec<(String, f64)> = names.iter().enumerate().map(|(number, name)| {
            let known = world.weights.get(name).copied();
            (name.clone(), known.unwrap_or((number * 7 % 11) as f64 / 10.0 - 0.5))
        }).collect();
        let named = Weights::new(all.iter().map(|(name, weight)| (name.as_str(), *weight)));
        let model = world.decoder.model().clone();
        let decoder = Decoder::new(model, named, wide(limit));
        let found = decode(&decoder, &Input::plain(&text));
        let mut collected = Collected::default();
        let best = found.best(1, false, &mut collected);
        match (best.first(), found.score()) {
            (Some(reading), Some(score)) => {
                prop_assert!(close(reading.score, score), "{} {score}", reading.score);
            }
            (reading, score) => prop_assert!(reading.is_none() && score.is_none()),
        }
    }

    #[test]
    fn what_is_kept_of_phrases_hides_no_change_of_a_weight(
        pairs in pairs(), sets in prop::collection::vec(weights(), 2..5), source in sentence(),
        table_limit in 0..4usize,
    ) {
        let extras = make(&["rule-id", "pairs", "deletions", "order", "bigrams"], &Resources::default());
        let settings = Settings { table_limit, ..wide(None) };
        let world = world(pairs, sets[0].clone(), settings.clone(), extras.unwrap());
        let text = words(&SOURCE, &source).join(" ");
        let mut collected = Collected::default();
        decode(&world.decoder, &Input::plain(&text)).forest(&mut collected);
        let names: Vec<&str> = collected.names.iter().collect();
        let kept = Arc::new(Kept::default());
        for weights in &sets {
            // Some features lose their weight, others get one.
            let of = |number: usize| weights[number % weights.len()] * (number % 3) as f64;
            let weights = || Weights::new(names.iter().enumerate().map(|(at, &name)| (name, of(at))));
            let fresh = || {
                let model = world.decoder.model().clone();
                Decoder::new(model, weights(), settings.clone())
            };
            let list = |decoder: Decoder| {
                let mut collected = Collected::default();
                let list = decode(&decoder, &Input::plain(&text)).best(200, false, &mut collected);
                (list, collected.names.iter().map(str::to_owned).collect::<Vec<_>>())
            };
            prop_assert_eq!(list(fresh().keeping(kept.clone())), list(fresh()));
        }
    }

    #[test]
    fn a_list_holds_the_best_strings_of_the_forest(
        pairs in pairs(), weights in weights(), source in sentence(), limit in limit(),
        k in 1..40usize, pop_limit in prop_oneof![Just(0usize), 1..20usize],
        max_words in 2..6usize, sparse in any::<bool>(),
    ) {
        let names: &[&str] = if sparse { &["rule-id", "order", "bigrams"] } else { &[] };
        let extras = make(names, &Resources::default()).unwrap();
        let settings = Settings { pop_limit, max_words, ..wide(limit) };
        let mut world = world(pairs, weights, settings.clone(), extras);
        let more = [("TB:w~x", 0.7), ("TB:<s>~w", -0.4), ("TB:x~</s>", 0.3)];
        world.weights.extend(more.map(|(name, weight)| (name.to_owned(), weight)));
        let named = world.weights.iter().map(|(name, weight)| (name.as_str(), *weight));
        let model = world.decoder.model().clone();
        let decoder = Decoder::new(model.clone(), Weights::new(named), settings);
        let text = words(&SOURCE, &source).join(" ");
        let found = decode(&decoder, &Input::plain(&text));
        check_list(&found, &found.text(), k, &model.dense().names());
    }

    #[test]
    fn bins_hold_what_the_stacks_did(
        pairs in pairs(), weights in weights(), source in sentence(), limit in limit(),
    ) {
        let world = world(pairs, weights, wide(limit), Extras::default());
        let text = words(&SOURCE, &source).join(" ");
        let found = world.decoder.search(&Input::plain(&text));
        let mut collected = Collected::default();
        let bins = found.bins(1, &mut collected).unwrap();
        prop_assert_eq!(bins.len(), source.len());
        let sum = |features: &[(u32, f32)]| -> f64 {
            let weight = |id| world.weights[collected.names.name(id).unwrap()];
            features.iter().map(|&(id, value)| weight(id) * f64::from(value)).sum()
        };
        for (partial, covered) in bins.iter().zip(1..).flat_map(|(bin, at)| bin.iter().map(move |one| (one, at))) {
            let score = sum(&partial.features);
            prop_assert!(close(score, f64::from(partial.score)), "{score} {}", partial.score);
            let estimate = score + sum(&partial.future);
            prop_assert!(close(estimate, f64::from(partial.estimate)), "{estimate} {}", partial.estimate);
            prop_assert_eq!(partial.covered.iter().map(|span| span.len()).sum::<usize>(), covered);
        }
        if let Some(best) = bins.last().and_then(|bin| bin.first()) {
            prop_assert!(close(f64::from(best.score), found.score().unwrap()));
            prop_assert_eq!(&best.text, &found.text());
            prop_assert!(best.after.is_empty() && best.future.is_empty());
        }
    }
}

/// A partial derivation: which words it covers, where its last phrase ends, what it says.
type Place = (Vec<bool>, usize, String);

impl World {
    /// Calls `see` with the places that every derivation goes through, finished or not.
    fn walk(
        &self,
        source: &[usize],
        covered: &mut Vec<bool>,
        path: &mut Vec<Place>,
        see: &mut dyn FnMut(&[Place]),
    ) {
        see(path);
        let limit = self.limit.unwrap_or(usize::MAX);
        let Some(gap) = covered.iter().position(|done| !done) else { return };
        let last = path.last().map_or(0, |place| place.1);
        let before = path.last().map_or("", |place| &place.2).to_owned();
        for start in gap..source.len() {
            for end in start + 1..=source.len() {
                let free = covered[start..end].iter().all(|done| !done);
                let back = start == gap || end - gap <= limit;
                if !free || start.abs_diff(last) > limit || !back {
                    continue;
                }
                for option in self.options(source, start, end) {
                    covered[start..end].fill(true);
                    let more = match option {
                        None => SOURCE[source[start]].to_owned(),
                        Some(pair) => words(&TARGET, &self.pairs[pair].1).join(" "),
                    };
                    let said = format!("{before} {more}").trim().to_owned();
                    path.push((covered.clone(), end, said));
                    self.walk(source, covered, path, see);
                    path.pop();
                    covered[start..end].fill(false);
                }
            }
        }
    }
}

fn begins(text: &str, reference: &str) -> bool {
    let said: Vec<&str> = text.split_whitespace().collect();
    reference.split_whitespace().collect::<Vec<_>>().starts_with(&said)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn gold_is_what_can_be_finished(
        pairs in pairs(), weights in weights(), source in sentence(), limit in limit(),
        other in prop::collection::vec(0..3usize, 0..5),
    ) {
        let world = world(pairs, weights, Settings { stack: 1, ..wide(limit) }, Extras::default());
        let text = words(&SOURCE, &source).join(" ");
        let mut strings: BTreeSet<String> = world.all(&source).into_iter().map(|one| one.0).collect();
        strings.insert(words(&TARGET, &other).join(" "));
        for string in strings.iter().take(8) {
            // The slow way: all paths along the reference, and which of them come furthest.
            let length = |said: &str| said.split_whitespace().count();
            let mut paths: Vec<Vec<Place>> = Vec::new();
            world.walk(&source, &mut vec![false; source.len()], &mut Vec::new(), &mut |path| {
                let whole = path.last().is_some_and(|place| place.0.iter().all(|&done| done));
                let fits = path.last().is_none_or(|place| begins(&place.2, string))
                    && (!whole || path[path.len() - 1].2 == *string);
                if fits {
                    paths.push(path.to_vec());
                }
            });
            let said = |path: &[Place]| path.last().map_or(0, |place| length(&place.2));
            let is_done = |path: &[Place]| {
                path.last().is_some_and(|place| place.2 == *string && place.0.iter().all(|&done| done))
            };
            let is_whole = paths.iter().any(|path| is_done(path));
            let most = paths.iter().map(|path| said(path)).max().unwrap_or(0);
            let goals: Vec<&Vec<Place>> = paths.iter()
                .filter(|path| if is_whole { is_done(path) } else { said(path) == most })
                .collect();
            let gold: BTreeSet<&Place> = goals.iter().flat_map(|path| path.iter()).collect();

            let reference: Vec<&str> = string.split_whitespace().collect();
            let found = world.decoder.search_for(&Input::plain(&text), &reference);
            let reached = found.reached();
            prop_assert_eq!(reached.is_whole, is_whole);
            prop_assert_eq!(reached.words, if is_whole { reference.len() } else { most });
            let started = goals.iter().filter(|path| !path.is_empty()).count();
            prop_assert_eq!(reached.derivations, started as f64);
            let mut collected = Collected::default();
            let bins = found.bins(usize::MAX, &mut collected).unwrap();
            for (number, bin) in bins.iter().enumerate() {
                let held: BTreeSet<(Vec<bool>, String)> = bin.iter().map(|partial| {
                    let is_in = |word: usize| partial.covered.iter().any(|span| span.contains(&word));
                    ((0..source.len()).map(is_in).collect(), partial.text.clone())
                }).collect();
                let wanted: BTreeSet<(Vec<bool>, String)> = gold.iter()
                    .filter(|place| place.0.iter().filter(|done| **done).count() == number + 1)
                    .map(|place| (place.0.clone(), place.2.clone()))
                    .collect();
                prop_assert_eq!(held, wanted);
            }
        }
    }

    #[test]
    fn gold_uses_what_the_search_may_use(
        pairs in pairs(), weights in weights(), source in sentence(), limit in limit(),
        table_limit in 0..3usize, phrase_limit in 1..3usize, wall in 0..6usize,
    ) {
        let settings = Settings { table_limit, phrase_limit, ..wide(limit) };
        let world = world(pairs, weights, settings, Extras::default());
        let text = words(&SOURCE, &source).join(" ");
        let mut input = Input::plain(&text);
        input.walls.extend(Some(wall).filter(|&wall| wall > 0 && wall < source.len()));
        let mut collected = Collected::default();
        let free = decode(&world.decoder, &input).best(100_000, false, &mut collected);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        free.iter().for_each(|one| *counts.entry(&one.text).or_default() += 1);
        // What the table has, whether the search may use it or not.
        let all = world.all(&source);
        for string in all.iter().map(|one| one.0.as_str()).chain(counts.keys().copied()).take(30) {
            let reference: Vec<&str> = string.split_whitespace().collect();
            let reached = world.decoder.search_for(&input, &reference).reached();
            let count = counts.get(string).copied().unwrap_or(0);
            prop_assert_eq!(reached.is_whole, count > 0, "{}", string);
            if reached.is_whole {
                prop_assert_eq!(reached.derivations, count as f64);
            }
        }
    }

    #[test]
    fn a_beam_that_keeps_all_holds_all_gold(
        pairs in pairs(), weights in weights(), source in sentence(), limit in limit(),
        stack in 0..3usize, future in any::<bool>(),
    ) {
        let world = world(pairs, weights, Settings { stack, ..wide(limit) }, Extras::default());
        let text = words(&SOURCE, &source).join(" ");
        let input = Input::plain(&text);
        for (string, _, _) in world.all(&source).iter().take(10) {
            let reference: Vec<&str> = string.split_whitespace().collect();
            let contest = world.decoder.contest(&input, &reference, 1).unwrap();
            let stages = contest.stages(future);
            for stage in &stages {
                let mut collected = Collected::default();
                let gold = contest.gold(stage.covered, future, &mut collected).unwrap();
                let score = if future { gold.estimate } else { gold.score };
                prop_assert!(close(f64::from(score), f64::from(stage.gold)));
                prop_assert!(begins(&gold.text, string));
                let others = contest.others(stage.covered, 3, future, &mut collected);
                let scores: Vec<f32> = others.iter()
                    .map(|one| if future { one.estimate } else { one.score })
                    .collect();
                prop_assert!(scores.windows(2).all(|two| two[0] >= two[1] - 1e-4));
                if !stage.right {
                    prop_assert!(close(f64::from(scores[0]), f64::from(stage.beam)));
                }
                prop_assert!(!stage.right || stage.held);
                if stack == 0 {
                    prop_assert!(stage.held, "{:?}", stage);
                    prop_assert!(stage.beam >= stage.gold - 1e-4);
                }
            }
            if stack == 0 {
                let last = stages.last().unwrap();
                prop_assert_eq!(last.covered, source.len());
                prop_assert!(close(f64::from(last.beam), decode(&world.decoder, &input).score().unwrap()));
            }
        }
    }
}

#[test]
fn a_forced_search_is_given_up_in_time() {
    let pairs = vec![(vec![0], vec![0], [0.5; 4], [0.5; 6])];
    let text = ["a"; 12].join(" ");
    let reference = ["w"; 12];
    for (force_limit, given_up) in [(50, Some(GivenUp::Work)), (0, None)] {
        let settings = Settings { force_limit, ..wide(Some(4)) };
        let world = world(pairs.clone(), vec![0.5; 15], settings, Extras::default());
        let reached = world.decoder.search_for(&Input::plain(&text), &reference).reached();
        assert_eq!(reached.given_up, given_up);
        assert_eq!(reached.is_whole, given_up.is_none());
        let contest = world.decoder.contest(&Input::plain(&text), &reference, 1).unwrap();
        assert_eq!(contest.stages(false).is_empty(), given_up.is_some());
    }
    // A sentence that is cut has no derivation as a whole.
    let world =
        world(pairs, vec![0.5; 15], Settings { max_words: 5, ..wide(None) }, Extras::default());
    let reached = world.decoder.search_for(&Input::plain(&text), &reference).reached();
    assert_eq!((reached.given_up, reached.words), (Some(GivenUp::Length), 0));
}

fn small() -> World {
    let half = [0.5; 4];
    let lies = [0.5, 0.2, 0.3, 0.5, 0.2, 0.3];
    let pairs = vec![
        (vec![0], vec![0], half, lies),
        (vec![1], vec![1], half, lies),
        (vec![0, 1], vec![2], half, lies),
    ];
    let mut weights = vec![1.0; 15];
    weights[5] = -0.1;
    world(pairs, weights, wide(None), Extras::default())
}

#[test]
fn nothing_gives_nothing() {
    let world = small();
    let found = decode(&world.decoder, &Input::plain("  "));
    assert_eq!(found.text(), "");
    assert!(found.score().is_some());
}

#[test]
fn a_search_ends_when_it_is_stopped() {
    let world = small();
    let watch = Watch::default();
    let input = Input { stop: Stop::by(&watch), ..Input::plain("a b") };
    assert!(world.decoder.search(&input).score().is_some());
    watch.stop();
    assert!(world.decoder.search(&input).score().is_none());
    assert_eq!(decode(&world.decoder, &input).text(), "");
}

#[test]
fn unknown_words_pass_through() {
    let world = small();
    let text = decode(&world.decoder, &Input::plain("a übung")).text();
    assert!(text.contains("übung"), "{text}");
}

#[test]
fn what_is_given_is_used() {
    let world = small();
    let given = r#"<n translation="x x">a b</n> b"#;
    let input = Input::parse(given, Markup::Exclusive).unwrap();
    let found = decode(&world.decoder, &input);
    assert!(found.text().contains("x x"), "{}", found.text());
    let walled = Input::parse("a <wall/> b", Markup::Exclusive).unwrap();
    assert_ne!(decode(&world.decoder, &walled).text(), "y");
}

#[test]
fn long_sentences_are_translated_in_pieces_and_nothing_is_lost() {
    let world = small();
    let settings = Settings { max_words: 10, stack: 5, pop_limit: 20, ..Settings::default() };
    let weights = Weights::new([("LM0", 1.0), ("Distortion0", 1.0)]);
    let decoder = Decoder::new(world.decoder.model().clone(), weights, settings);
    let text = vec!["u"; 95].join(" ");
    let found = decode(&decoder, &Input::plain(&text));
    assert_eq!(found.text(), text);
    assert_eq!(found.pieces(), 10);
    let mut collected = Collected::default();
    let best = found.best(3, false, &mut collected);
    assert_eq!(best[0].text, text);
    let score = found.score().unwrap();
    assert!(close(best[0].score, score), "{} {score}", best[0].score);
    let links: Vec<(u32, u32)> = (0..95).map(|place| (place, place)).collect();
    assert_eq!(best[0].links, links);
}

#[test]
fn many_words_fit_a_cover() {
    let world = small();
    let settings = Settings { stack: 3, pop_limit: 5, ..Settings::default() };
    let decoder =
        Decoder::new(world.decoder.model().clone(), Weights::new([("LM0", 1.0)]), settings);
    let text = vec!["u"; 150].join(" ");
    let found = decode(&decoder, &Input::plain(&text));
    assert_eq!(found.pieces(), 1);
    assert_eq!(found.text(), text);
}
