//! What the hierarchical decoder promises, on grammars small enough to try all derivations.

mod common;
#[path = "common/grammar.rs"]
mod grammar;

use std::sync::Arc;

use common::check_list;
use grammar::{CDEC, Rule, SPARSE, Side, model, rules, sentence, sparse};
use proptest::prelude::*;
use tunesmith_lm::Model as Lm;
use tunesmith_search::features::{Collected, Extras};
use tunesmith_search::hiero::{Decoder, Kept, Model, Settings};
use tunesmith_search::{Given, Input, Named, Outcome, Stop, Weights, decode};
use tunesmith_text::Watch;

fn decoder(model: &Arc<Model>, weights: &[(&str, f64)], pop_limit: usize) -> Decoder {
    let settings = Settings { pop_limit, max_span: 3, ..Settings::default() };
    Decoder::new(model.clone(), Weights::new(weights.iter().copied()), settings)
}

/// A string and the score of its rules without the language model.
type Partial = (Vec<String>, f64);

/// All derivations, the slow way; `None` if there are too many.
struct Twin<'a> {
    rules: &'a [Rule],
    words: Vec<&'a str>,
    max_span: usize,
}

const MANY: usize = 3000;

impl Twin<'_> {
    /// All ways to read a source side as a span: the spans under its gaps.
    fn fillings(
        &self,
        source: &[Result<usize, &str>],
        start: usize,
        end: usize,
    ) -> Vec<Vec<(usize, usize)>> {
        match source.split_first() {
            None => {
                if start == end {
                    vec![vec![]]
                } else {
                    vec![]
                }
            }
            Some((Err(word), rest)) if start < end && self.words[start] == *word => {
                self.fillings(rest, start + 1, end)
            }
            Some((Err(_), _)) => vec![],
            Some((Ok(_), rest)) => (start + 1..=end)
                .flat_map(|middle| {
                    let further = self.fillings(rest, middle, end).into_iter();
                    further.map(move |spans| [vec![(start, middle)], spans].concat())
                })
                .collect(),
        }
    }

    fn span(&self, start: usize, end: usize) -> Option<Vec<Partial>> {
        let mut found = Vec::new();
        if end - start > self.max_span {
            return Some(found);
        }
        if end == start + 1 {
            found.push((vec![self.words[start].to_owned()], CDEC[5].1));
        }
        for rule in self.rules {
            for spans in self.fillings(&rule.source, start, end) {
                let mut partial: Vec<(Vec<Vec<String>>, f64)> =
                    vec![(vec![], CDEC[0].1 * rule.value)];
                for (from, to) in spans {
                    let inner = self.span(from, to)?;
                    partial = partial
                        .iter()
                        .flat_map(|(gaps, score)| {
                            inner.iter().map(move |(words, more)| {
                                ([gaps.clone(), vec![words.clone()]].concat(), score + more)
                            })
                        })
                        .collect();
                }
                for (gaps, score) in partial {
                    let words = rule.target.iter().flat_map(|symbol| match symbol {
                        Ok(gap) => gaps[*gap].clone(),
                        Err(word) => vec![word.to_string()],
                    });
                    found.push((words.collect(), score));
                }
            }
        }
        (found.len() <= MANY).then_some(found)
    }

    fn prefix(&self, end: usize) -> Option<Vec<Partial>> {
        if end == 0 {
            return Some(vec![(vec![], 0.0)]);
        }
        let mut found = Vec::new();
        for middle in 0..end {
            let glue = if middle == 0 { 0.0 } else { CDEC[4].1 };
            let (before, after) = (self.prefix(middle)?, self.span(middle, end)?);
            for (left, score) in &before {
                for (right, more) in &after {
                    found.push(([left.clone(), right.clone()].concat(), score + more + glue));
                }
            }
        }
        (found.len() <= MANY).then_some(found)
    }

    /// Strings and scores of all derivations, best first.
    fn all(&self, lm: &Lm) -> Option<Vec<(f64, String)>> {
        let scored = |(words, score): Partial| {
            let mut state = lm.begin();
            let mut total = score;
            for word in &words {
                let (scored, next) = lm.score(&state, lm.id(word));
                state = next;
                total += CDEC[1].1 * f64::from(scored.log10);
                total += CDEC[2].1 * f64::from(u8::from(lm.id(word) == 0));
                total -= CDEC[3].1 * std::f64::consts::LOG10_E;
            }
            total += CDEC[1].1 * f64::from(lm.score(&state, lm.end_id()).0.log10);
            (total, words.join(" "))
        };
        let mut all: Vec<_> = self.prefix(self.words.len())?.into_iter().map(scored).collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        Some(all)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn without_a_limit_all_derivations_are_found(
        rules in rules(),
        text in sentence(5),
        order in 1..=4usize,
        growing in any::<bool>(),
    ) {
        let model = model(&rules, order, true, Extras::default());
        let words = text.split(' ').filter(|word| !word.is_empty()).collect();
        let all = Twin { rules: &rules, words, max_span: 3 }.all(model.lm());
        prop_assume!(all.is_some());
        let all = all.unwrap();
        let settings = Settings { pop_limit: 0, max_span: 3, growing, ..Settings::default() };
        let decoder = Decoder::new(model.clone(), Weights::new(CDEC), settings);
        let found = decode(&decoder, &Input::plain(&text));
        prop_assert!((found.score().unwrap() - all[0].0).abs() < 1e-4);
        let mut collected = Collected::default();
        let forest = found.forest(&mut collected);
        prop_assert_eq!(10f64.powf(forest.derivations()).round() as usize, all.len());
        let best = found.best(all.len(), false, &mut collected);
        prop_assert_eq!(best.len(), all.len());
        for (reading, (score, _)) in best.iter().zip(&all) {
            prop_assert!((reading.score - score).abs() < 1e-3, "{} {}", reading.score, score);
        }
        let mut strings: Vec<&str> = best.iter().map(|reading| reading.text.as_str()).collect();
        let mut expected: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
        strings.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(strings, expected);
    }

    #[test]
    fn a_search_finds_the_best_of_its_forest_and_scores_are_products(
        rules in rules(),
        text in sentence(7),
        pop_limit in prop_oneof![Just(0usize), 1..30usize],
        limit in 0..3usize,
        growing in any::<bool>(),
    ) {
        let model = model(&rules, 3, false, sparse());
        let weights = [("lm", 0.4), ("words", -0.1), ("unknown", -1.0), ("arity-1", 0.2)];
        let weights = [&weights[..], &CDEC[..1], &SPARSE].concat();
        let settings = Settings { pop_limit, table_limit: limit, growing, ..Settings::default() };
        let named = Weights::new(weights.iter().copied());
        let decoder = Decoder::new(model.clone(), named, settings);
        let found = decode(&decoder, &Input::plain(&text));
        let mut collected = Collected::default();
        let best = found.best(20, false, &mut collected);
        prop_assert!((best[0].score - found.score().unwrap()).abs() < 1e-4);
        let weights = found.weights(&collected.names);
        for reading in &best {
            let terms = reading.features.iter();
            let sum: f64 = terms.map(|&(id, value)| weights[id as usize] * f64::from(value)).sum();
            prop_assert!((reading.score - sum).abs() < 1e-4);
            let mut lm = model.lm().begin();
            let mut total = 0.0;
            let ids = reading.text.split_whitespace().map(|word| model.lm().id(word));
            for word in ids.chain([model.lm().end_id()]) {
                let (scored, next) = model.lm().score(&lm, word);
                (total, lm) = (total + scored.log10 * std::f32::consts::LN_10, next);
            }
            let of = |name: &str| {
                let id = collected.names.id(name).unwrap();
                reading.features.iter().find(|pair| pair.0 == id).map_or(0.0, |pair| pair.1)
            };
            prop_assert!((of("lm") - total).abs() < 1e-3, "{} {}", of("lm"), total);
            prop_assert_eq!(of("words") as usize, reading.text.split_whitespace().count());
        }
    }

    #[test]
    fn what_is_kept_of_rules_hides_no_change_of_a_weight(
        rules in rules(),
        text in sentence(6),
        limit in 0..3usize,
        sets in proptest::collection::vec(proptest::collection::vec(-1.0..1.0f64, 3..7), 2..5),
    ) {
        let model = model(&rules, 3, false, sparse());
        let settings =
            Settings { pop_limit: 10, max_span: 3, table_limit: limit, ..Settings::default() };
        let list = |decoder: Decoder| {
            let mut collected = Collected::default();
            let list = decode(&decoder, &Input::plain(&text)).best(50, false, &mut collected);
            (list, collected.names.iter().map(str::to_owned).collect::<Vec<_>>())
        };
        let (_, names) = list(decoder(&model, &SPARSE, 0));
        let kept = Arc::new(Kept::default());
        for weights in &sets {
            // Some features lose their weight, others get one.
            let of = |number: usize| weights[number % weights.len()] * (number % 3) as f64;
            let named = || names.iter().enumerate().map(|(at, name)| (name.as_str(), of(at)));
            let fresh = || Decoder::new(model.clone(), Weights::new(named()), settings.clone());
            prop_assert_eq!(list(fresh().keeping(kept.clone())), list(fresh()));
        }
    }

    #[test]
    fn a_list_holds_the_best_strings_of_the_forest(
        rules in rules(),
        text in sentence(5),
        pop_limit in prop_oneof![Just(0usize), 1..30usize],
        k in 1..40usize,
        max_words in 2..7usize,
        growing in any::<bool>(),
    ) {
        let model = model(&rules, 3, false, sparse());
        let weights = [("lm", 0.4), ("words", -0.1), ("unknown", -1.0), ("arity-1", 0.2)];
        let weights = [&weights[..], &CDEC[..1], &SPARSE].concat();
        let settings =
            Settings { pop_limit, max_span: 3, growing, max_words, ..Settings::default() };
        let decoder = Decoder::new(model.clone(), Weights::new(weights), settings);
        let found = decode(&decoder, &Input::plain(&text));
        check_list(&found, &found.text(), k, &model.dense().names());
    }

    #[test]
    fn threads_that_share_a_decoder_find_the_same(
        rules in rules(),
        texts in proptest::collection::vec(sentence(8), 6),
    ) {
        let model = model(&rules, 3, true, Extras::default());
        let alone: Vec<(Option<f64>, String)> = texts
            .iter()
            .map(|text| {
                let decoder = decoder(&model, &CDEC, 5);
                let found = decoder.search(&Input::plain(text));
                (found.score(), found.text())
            })
            .collect();
        let shared = decoder(&model, &CDEC, 5);
        let together: Vec<(Option<f64>, String)> = std::thread::scope(|scope| {
            let work = |text| {
                let found = shared.search(&Input::plain(text));
                (found.score(), found.text())
            };
            let threads: Vec<_> = texts.iter().map(|text| scope.spawn(move || work(text))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        prop_assert_eq!(alone, together);
    }
}

fn fixed() -> Arc<Model> {
    let words = |text: &'static str| -> Side {
        text.split(' ').map(|word| word.parse().map_err(|_| word)).collect()
    };
    let rules = [("a", "x"), ("b", "y"), ("a 0 b", "0 z"), ("0 c 1", "1 x 0")];
    let rules = rules.map(|(source, target)| Rule {
        source: words(source),
        target: words(target),
        value: 1.0,
    });
    model(&rules, 3, true, Extras::default())
}

#[test]
fn a_search_ends_when_it_is_stopped() {
    let model = fixed();
    let decoder = decoder(&model, &CDEC, 30);
    let watch = Watch::default();
    let input = Input { stop: Stop::by(&watch), ..Input::plain("a neu b") };
    assert!(decoder.search(&input).score().is_some());
    watch.stop();
    assert!(decoder.search(&input).score().is_none());
}

#[test]
fn words_without_rules_stand_for_themselves() {
    let model = fixed();
    let decoder = decoder(&model, &CDEC, 30);
    assert_eq!(decoder.search(&Input::plain("neu")).text(), "neu");
    assert_eq!(decoder.search(&Input::plain("")).text(), "");
    assert!(decoder.search(&Input::plain("")).score().is_some());
}

#[test]
fn steps_show_rules_and_links_follow_the_words() {
    let model = fixed();
    let weights = [("value", 5.0), ("Glue", -9.0), ("PassThrough", -9.0)];
    let decoder = decoder(&model, &weights, 30);
    let found = decode(&decoder, &Input::plain("a neu b"));
    let mut collected = Collected::default();
    let best = found.best(1, false, &mut collected).remove(0);
    assert_eq!(best.text, "neu z");
    let steps: Vec<_> = best.steps.iter().filter_map(|&label| found.step(label)).collect();
    let rule = steps.iter().find(|step| step.target.len() == 2).unwrap();
    assert_eq!((rule.span.clone(), &rule.places[..]), (0..3, &[Some(0), None, Some(2)][..]));
    assert_eq!(rule.target, ["[X,1]", "z"]);
    assert_eq!(best.links, [(1, 0)]);
}

#[test]
fn what_the_user_gives_is_used_and_may_be_moved() {
    let model = fixed();
    let weights = [("value", 5.0), ("Glue", -9.0), ("PassThrough", -9.0)];
    let decoder = decoder(&model, &weights, 30);
    let given = |span, exclusive| Given {
        span,
        words: vec!["given".to_owned(), "words".to_owned()],
        score: 0.0,
        exclusive,
    };
    let mut input = Input::plain("a c b");
    input.given = vec![given(0..1, true)];
    assert_eq!(decoder.search(&input).text(), "y x given words");
    input.given = vec![given(0..3, true)];
    assert_eq!(decoder.search(&input).text(), "given words");
    input.given = vec![];
    input.walls = vec![1];
    let text = decoder.search(&input).text();
    assert!(text.starts_with('x') || text.starts_with('a'), "{text}");
}

#[test]
fn settings_are_checked() {
    let mut settings = Settings::default();
    settings.set("pop_limit", 30.0).unwrap();
    assert_eq!(settings.pop_limit, 30);
    for (name, value) in [
        ("max_span", 0.0),
        ("pop_limit", 0.5),
        ("pop_limit", f64::NAN),
        ("hope", 2.0),
        ("stack", 1.0),
    ] {
        assert!(settings.set(name, value).unwrap_err().remedy.is_some());
    }
}
