//! Selectors and passes from their definitions, on lists of small whole numbers.

mod common;

use std::sync::Arc;

use common::{ERRORS, List, corpus_of, gain, hypotheses, quarters, score};
use proptest::prelude::*;
use tunesmith_solve::update::{Gradient, PassiveAggressive, Perceptron, Rate};
use tunesmith_solve::{
    Bounded, Chosen, Corpus, Expected, Gain, GainKind, GainScale, HopeFear, Kind, ListCorpus,
    ListKind, Lists, Loss, Model, Observed, Pairs, Part, Pass, Progress, Rng, Rows, Selector,
    Update, Visit, Worth, sample_rows,
};
use tunesmith_space::Among;

const HOPE_FEAR: HopeFear = HopeFear {
    oracle: (1.0, 1.0),
    prediction: (1.0, 1.0),
    oracle_among: Among::ALL,
    among: Among::ALL,
    pinned: None,
};

/// The first sentence of a corpus under some weights, as number 3 of a batch.
fn visit<'a>(corpus: &'a ListCorpus, weights: &[f64], rng: Rng) -> Visit<'a> {
    let mut space = corpus.space(0, Worth::alone(Arc::new(ERRORS)));
    space.rescore(weights);
    Visit {
        space,
        sentence: 0,
        group: 3,
        rng,
        oracle: None,
        prediction: None,
        scale: 1.0,
        metric: Arc::new(ERRORS),
        best: None,
        spread: 0.0,
    }
}

fn selected(selector: &dyn Selector, visit: &mut Visit<'_>, weights: &[f64], round: usize) -> Rows {
    let mut rows = Rows::default();
    rows.scaled = true;
    let model = Model::new(weights.to_vec());
    selector.select(visit, &model, round, &mut rows).expect("lists do not fail");
    rows
}

/// The places of a list by `model · score + gain · gain`, best first, among the k best-scoring.
fn ranked(list: &List, weights: &[f64], factors: (f64, f64), k: usize) -> Vec<usize> {
    let scores: Vec<f64> = list.iter().map(|each| score(each.0, weights)).collect();
    let value = |at: usize| factors.0 * scores[at] + factors.1 * gain(list[at].1);
    let by = |left: f64, right: f64| right.partial_cmp(&left).expect("finite");
    let mut places: Vec<usize> = (0..list.len()).collect();
    places.sort_by(|&a, &b| by(scores[a], scores[b]));
    if k > 0 {
        places.truncate(k);
    }
    places.sort_by(|&a, &b| by(value(a), value(b)).then(by(scores[a], scores[b])).then(a.cmp(&b)));
    places
}

/// The row that asks for `better` to win over `worse`.
fn assert_pair(rows: &Rows, row: usize, list: &List, better: usize, worse: usize) {
    let (ids, values) = rows.row(row);
    let mut x = [0.0; 2];
    ids.iter().zip(values).for_each(|(&id, value)| x[id as usize] = *value);
    for (place, x) in x.into_iter().enumerate() {
        assert_eq!(x, f64::from(list[better].0[place]) - f64::from(list[worse].0[place]));
    }
    assert!((rows.gains[row] - (gain(list[better].1) - gain(list[worse].1))).abs() < 1e-12);
    assert!((rows.oracles[row] - gain(list[better].1)).abs() < 1e-12);
    assert_eq!((rows.kinds[row], rows.groups[row]), (Kind::Margin, 3));
    assert!(rows.caps[row].is_nan());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn hope_and_fear_are_the_best_and_the_worst_mixture(
        list in hypotheses(7), w in quarters(), other in quarters(), k in 0usize..5,
        oracle_k in 0usize..5, model in 0u8..2, cost in 0u8..2, pinned: bool,
    ) {
        let corpus = corpus_of(std::slice::from_ref(&list));
        let prediction = (f64::from(model), f64::from(cost));
        let selector = HopeFear {
            prediction,
            oracle_among: Among::best(oracle_k),
            among: Among::best(k),
            pinned: pinned.then(|| other.to_vec()),
            ..HOPE_FEAR
        };
        let mut visit = visit(&corpus, &w, Rng::new(1, 1, 1));
        let rows = selected(&selector, &mut visit, &w, 0);
        let under = if pinned { other } else { w };
        let hope = ranked(&list, &under, (1.0, 1.0), oracle_k).first().copied();
        let fear = ranked(&list, &w, (prediction.0, -prediction.1), k).first().copied();
        prop_assert_eq!((visit.oracle, visit.prediction), (hope, fear));
        let (Some(hope), Some(fear)) = (hope, fear) else {
            prop_assert!(rows.is_empty());
            return Ok(());
        };
        prop_assert_eq!(rows.len(), usize::from(hope != fear));
        if hope != fear {
            assert_pair(&rows, 0, &list, hope, fear);
        }
        // Asked again under other weights: the hope stays, the fear that is reported too.
        visit.space.rescore(&other);
        selected(&selector, &mut visit, &other, 0);
        prop_assert_eq!((visit.oracle, visit.prediction), (Some(hope), Some(fear)));
    }

    #[test]
    fn lists_hold_every_pair_that_tells_better_from_worse(
        list in hypotheses(8), w in quarters(), n in 1usize..4, k in 0usize..6, model: bool,
    ) {
        let corpus = corpus_of(std::slice::from_ref(&list));
        let kind = if model { ListKind::ModelHopeFear } else { ListKind::HopeFear };
        let mut visit = visit(&corpus, &w, Rng::new(1, 1, 1));
        let rows = selected(&Lists { kind, n, among: Among::best(k) }, &mut visit, &w, 0);
        let top = |factors| {
            let mut places = ranked(&list, &w, factors, k);
            places.truncate(n);
            places
        };
        let (hopes, fears) = (top((1.0, 1.0)), top((1.0, -1.0)));
        prop_assert_eq!(visit.oracle, hopes.first().copied());
        prop_assert_eq!(visit.prediction, fears.first().copied());
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        if model {
            let mut members = [top((1.0, 0.0)), hopes.clone(), fears].concat();
            members.sort_unstable();
            members.dedup();
            pairs.extend(members.into_iter().map(|worse| (hopes[0], worse)));
        } else {
            for &better in &hopes {
                pairs.extend(fears.iter().map(|&worse| (better, worse)));
            }
        }
        pairs.retain(|&(better, worse)| list[better].1 < list[worse].1);
        prop_assert_eq!(rows.len(), pairs.len());
        for (row, (better, worse)) in pairs.into_iter().enumerate() {
            assert_pair(&rows, row, &list, better, worse);
        }
    }

    #[test]
    fn sampled_pairs_are_the_most_different_of_all_that_were_drawn(
        list in hypotheses(30), samples in 0usize..500, keep in 0usize..30, threshold in 0u8..4,
    ) {
        let corpus = corpus_of(std::slice::from_ref(&list));
        let threshold = f64::from(threshold) / 10.0;
        let selector = Pairs { samples, threshold, keep };
        prop_assert!(!selector.reads_weights());
        let mut visit = visit(&corpus, &[0.0; 2], Rng::new(5, 2, 0));
        let rows = selected(&selector, &mut visit, &[0.0; 2], 0);
        let mut rng = Rng::new(5, 2, 0);
        let mut drawn = Vec::new();
        for _ in 0..(if list.len() < 2 { 0 } else { samples }) {
            let (a, b) = rng.pair_below(list.len());
            let difference = visit.space.gain(a) - visit.space.gain(b);
            let (better, worse) = if difference > 0.0 { (a, b) } else { (b, a) };
            if difference.abs() > threshold {
                drawn.push((difference.abs(), better, worse));
            }
        }
        // The stream goes on where the draws ended.
        prop_assert_eq!(visit.rng.next_u64(), rng.next_u64());
        drawn.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        drawn.truncate(if keep == 0 { usize::MAX } else { keep });
        prop_assert_eq!(rows.len(), drawn.len());
        for (row, (_, better, worse)) in drawn.into_iter().enumerate() {
            assert_pair(&rows, row, &list, better, worse);
        }
    }

    #[test]
    fn the_row_of_the_expected_gain_is_its_gradient(
        list in hypotheses(7), w in quarters(), alpha in 0.1f64..2.0, k in 0usize..5,
    ) {
        let corpus = corpus_of(std::slice::from_ref(&list));
        let mut visit = visit(&corpus, &w, Rng::new(1, 1, 1));
        let rows = selected(&Expected { alpha, k }, &mut visit, &w, 0);
        prop_assert_eq!(rows.len(), usize::from(!list.is_empty()));
        if list.is_empty() {
            return Ok(());
        }
        let members = ranked(&list, &w, (1.0, 0.0), k);
        let expected = |weights: [f64; 2]| {
            let mass = |at: &usize| (alpha * score(list[*at].0, &weights)).exp();
            let norm: f64 = members.iter().map(mass).sum();
            members.iter().map(|at| mass(at) / norm * gain(list[*at].1)).sum::<f64>()
        };
        prop_assert_eq!(visit.prediction, Some(members[0]));
        prop_assert_eq!(visit.oracle, Some(ranked(&list, &w, (0.0, 1.0), 0)[0]));
        prop_assert!((rows.oracles[0] - expected(w)).abs() < 1e-9);
        let (ids, values) = rows.row(0);
        for place in 0..2 {
            let found = ids.iter().position(|&id| id as usize == place).map_or(0.0, |at| values[at]);
            let mut at = w;
            at[place] += 1e-5;
            let above = expected(at);
            at[place] -= 2e-5;
            prop_assert!((found - (above - expected(at)) / 2e-5).abs() < 1e-6);
        }
    }

    #[test]
    fn bounds_hold_the_oracle_to_the_highest_and_the_lowest(
        list in hypotheses(7), w in quarters(), k in 0usize..5,
    ) {
        let corpus = corpus_of(std::slice::from_ref(&list));
        let (inner, among) = (Box::new(HOPE_FEAR), Among::best(k));
        let selector = Bounded { inner, bound: 1.5, price: 0.25, among, by_cost: false };
        prop_assert_eq!(selector.rounds(), 3);
        prop_assert!(selector.reads_weights());
        let mut visit = visit(&corpus, &w, Rng::new(1, 1, 1));
        // Without an oracle there is nothing to hold.
        prop_assert!(selected(&selector, &mut visit, &w, 1).is_empty());
        let inner = selected(&selector, &mut visit, &w, 0);
        prop_assert_eq!(visit.oracle.is_none(), list.is_empty());
        let Some(hope) = visit.oracle else { return Ok(()) };
        let fear = ranked(&list, &w, (1.0, -1.0), 0)[0];
        prop_assert_eq!(inner.len(), usize::from(hope != fear));
        for (round, kind, factor) in [(1, Kind::Upper, -1.0), (2, Kind::Lower, 1.0)] {
            let rows = selected(&selector, &mut visit, &w, round);
            let other = ranked(&list, &w, (factor, 0.0), k)[0];
            prop_assert_eq!(rows.len(), usize::from(other != hope));
            if rows.is_empty() {
                continue;
            }
            prop_assert_eq!((rows.kinds[0], rows.gains[0], rows.caps[0]), (kind, -1.5, 0.25));
            prop_assert_eq!(rows.groups[0], 3);
            let apart = score(list[hope].0, &w) - score(list[other].0, &w);
            let model = Model::new(w.to_vec());
            prop_assert_eq!(rows.margin(0, &model), factor * apart);
        }
    }
}

#[test]
fn a_bound_by_cost_is_the_tighter_the_better_the_candidate() {
    let list = vec![([1, 0], 0), ([0, 1], 4), ([2, 1], 8)];
    let corpus = corpus_of(std::slice::from_ref(&list));
    let (inner, among) = (Box::new(HOPE_FEAR), Among::ALL);
    let selector = Bounded { inner, bound: 2.0, price: 0.25, among, by_cost: true };
    let w = [-1.0, -0.5];
    let mut visit = visit(&corpus, &w, Rng::new(1, 1, 1));
    selected(&selector, &mut visit, &w, 0);
    let rows = selected(&selector, &mut visit, &w, 1);
    // The lowest score is that of the third candidate.
    let cost = 1.0 - gain(8).clamp(0.0, 1.0);
    assert!(cost > 0.0 && (rows.gains[0] + 2.0 * cost).abs() < 1e-12);
}

#[test]
fn steps_are_scaled_by_the_plain_gain_of_the_oracle_whatever_gains_are() {
    let list = vec![([1, 0], 2), ([0, 1], 8)];
    let corpus = corpus_of(std::slice::from_ref(&list));
    let gains = Gain::sentence(Arc::new(ERRORS)).in_units(40.0);
    let pass = pass(&corpus, &[0], 1);
    let model = Model::new(vec![0.0, 0.0]);
    let rows = sample_rows(&pass, &model, &gains).expect("lists do not fail");
    assert!((rows.gains[0] - 40.0 * (gain(2) - gain(8))).abs() < 1e-12);
    // Nobody asked for it here.
    assert_eq!(rows.oracles[0], 1.0);
    let mut small = Model::new(vec![0.0, 0.0]);
    let mut scaled = PassiveAggressive::new(0.5, 1.0, true);
    let mut state = gains.clone();
    pass.run(&mut small, &mut state, &mut scaled, &|| false).expect("lists do not fail");
    let mut plain = Model::new(vec![0.0, 0.0]);
    let mut whole = PassiveAggressive::new(0.5, 1.0, false);
    let mut state = gains.clone();
    pass.run(&mut plain, &mut state, &mut whole, &|| false).expect("lists do not fail");
    assert!((small.weights()[0] - gain(2) * plain.weights()[0]).abs() < 1e-12);
}

#[test]
fn a_pass_adds_up_the_statistics_of_the_best_the_oracle_and_the_prediction() {
    let lists = [vec![([1, 0], 0), ([0, 1], 4)], vec![([0, 1], 2), ([1, 0], 8)]];
    let corpus = corpus_of(&lists);
    let mut model = Model::new(vec![0.0, 0.1]);
    let mut update = PassiveAggressive::new(1e-9, 1.0, false);
    let mut gains = Gain::sentence(Arc::new(ERRORS));
    let seen = pass(&corpus, &[0, 1], 1)
        .run(&mut model, &mut gains, &mut update, &|| false)
        .expect("lists do not fail");
    let errors: Vec<f64> = seen.stats.iter().map(|row| row[0]).collect();
    assert_eq!(errors, [6.0, 2.0, 12.0]);
}

#[test]
fn steps_without_an_update_need_not_enter_the_average() {
    let lists = [vec![([1, 0], 0), ([0, 1], 4)], vec![([0, 0], 2), ([0, 0], 2)]];
    let corpus = corpus_of(&lists);
    for (skips, wanted) in [(false, 2), (true, 1)] {
        let mut model = Model::new(vec![0.0, 0.0]);
        if skips {
            model = model.skipping_idle_steps();
        }
        let mut update = PassiveAggressive::new(10.0, 1.0, false);
        let mut gains = Gain::sentence(Arc::new(ERRORS));
        pass(&corpus, &[0, 1], 1)
            .run(&mut model, &mut gains, &mut update, &|| false)
            .expect("lists do not fail");
        assert_eq!(model.average_state().1, wanted);
    }
}

fn pass<'a>(corpus: &'a ListCorpus, order: &'a [u32], batch: usize) -> Pass<'a> {
    Pass { corpus, selector: &HOPE_FEAR, order, batch, seed: 1, epoch: 1 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_pass_is_a_step_for_each_batch_and_reports_what_it_saw(
        lists in proptest::collection::vec(hypotheses(6), 1..5), w in quarters(),
        batch in 0usize..4, long: bool,
    ) {
        let corpus = corpus_of(&lists);
        let order: Vec<u32> = (0..lists.len() as u32).rev().collect();
        let lengths: Vec<f64> = (0..lists.len()).map(|at| at as f64).collect();
        let scale = if long { GainScale::Length } else { GainScale::One };
        let kind = GainKind::Sentence;
        let mut gains = Gain::new(Arc::new(ERRORS), kind, scale, lengths.clone(), &[0.0; 2]);
        let mut model = Model::new(w.to_vec());
        let mut update = PassiveAggressive::new(0.5, 1.0, false);
        let seen = pass(&corpus, &order, batch)
            .run(&mut model, &mut gains, &mut update, &|| false)
            .expect("lists do not fail");

        // The same by hand.
        let mut weights = w;
        let mut wanted = Observed::default();
        let mut spreads = Vec::new();
        let mut chosen = [0.0; 3];
        let mut average = [0.0; 2];
        let mut steps = 0.0;
        let present: Vec<usize> =
            (0..lists.len()).rev().filter(|&at| !lists[at].is_empty()).collect();
        for sentences in present.chunks(batch.max(1)) {
            let mut pairs = Vec::new();
            for &sentence in sentences {
                let (list, times) = (&lists[sentence], if long { lengths[sentence] } else { 1.0 });
                let hope = ranked(list, &weights, (1.0, times), 0)[0];
                let fear = ranked(list, &weights, (1.0, -times), 0)[0];
                let [best, least] = [1.0, -1.0].map(|sign| ranked(list, &weights, (sign, 0.0), 0)[0]);
                pairs.push((list, hope, fear, times));
                for (sum, place) in chosen.iter_mut().zip([best, hope, fear]) {
                    *sum += if times == 0.0 { 0.0 } else { gain(list[place].1) };
                }
                spreads.push(score(list[hope].0, &weights) - score(list[least].0, &weights));
                wanted.visits += 1;
            }
            for (list, hope, fear, times) in pairs {
                let x = [0, 1].map(|at| {
                    f64::from(list[hope].0[at]) - f64::from(list[fear].0[at])
                });
                let norm2 = x[0] * x[0] + x[1] * x[1];
                let target = times * (gain(list[hope].1) - gain(list[fear].1));
                let loss = target - (x[0] * weights[0] + x[1] * weights[1]);
                // Rounding decides whether what is met exactly is violated.
                prop_assume!(loss.abs() > 1e-9 || norm2 == 0.0);
                if loss > 0.0 && norm2 > 0.0 {
                    let step = (loss / norm2).min(0.5);
                    weights.iter_mut().zip(x).for_each(|(weight, x)| *weight += step * x);
                    wanted.updates += 1;
                    wanted.loss += loss;
                }
            }
            average.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight);
            steps += 1.0;
        }
        let close = |found: f64, wanted: f64| (found - wanted).abs() < 1e-6;
        prop_assert_eq!((seen.visits, seen.updates), (wanted.visits, wanted.updates));
        prop_assert!(close(seen.loss, wanted.loss));
        let count = (wanted.visits as f64).max(1.0);
        for (found, sum) in [seen.model, seen.oracle, seen.prediction].into_iter().zip(chosen) {
            prop_assert!(close(found, sum / count), "{found} {}", sum / count);
        }
        let mean = spreads.iter().sum::<f64>() / count;
        let variance = spreads.iter().map(|each| (each - mean) * (each - mean)).sum::<f64>() / count;
        prop_assert!(close(seen.spread.0, mean));
        prop_assert!(close(seen.spread.1 * seen.spread.1, variance));
        for at in 0..2 {
            prop_assert!(close(model.weights()[at], weights[at]));
            let mean = if steps > 0.0 { average[at] / steps } else { weights[at] };
            prop_assert!(close(model.average()[at], mean));
        }
    }

    #[test]
    fn weights_that_shrink_lazily_are_read_as_if_every_step_touched_them(
        lists in proptest::collection::vec(hypotheses(5), 1..5), w in quarters(),
    ) {
        let corpus = corpus_of(&lists);
        let order: Vec<u32> = (0..lists.len() as u32).collect();
        let run = |order: &[u32], w: [f64; 2]| {
            let mut model = Model::new(w.to_vec());
            let mut gains = Gain::sentence(Arc::new(ERRORS));
            let mut update = Gradient::new(Loss::Hinge, Rate::Constant, 0.1, 0.5, 0.0, 2);
            pass(&corpus, order, 1)
                .run(&mut model, &mut gains, &mut update, &|| false)
                .expect("lists do not fail");
            model.weights().to_vec()
        };
        let whole = run(&order, w);
        // Passes settle all weights when they end, so one sentence at a time is the eager way.
        let mut eager = w;
        for sentence in &order {
            let next = run(std::slice::from_ref(sentence), eager);
            eager = [next[0], next[1]];
        }
        for at in 0..2 {
            prop_assert!((whole[at] - eager[at]).abs() < 1e-9, "{whole:?} {eager:?}");
        }
    }

    #[test]
    fn sampled_rows_are_those_of_each_sentence_in_turn(
        lists in proptest::collection::vec(hypotheses(5), 1..80), w in quarters(),
    ) {
        let corpus = corpus_of(&lists);
        let order: Vec<u32> = (0..lists.len() as u32).collect();
        let model = Model::new(w.to_vec());
        let pass = pass(&corpus, &order, 1);
        let rows = sample_rows(&pass, &model, &Gain::sentence(Arc::new(ERRORS))).expect("no fault");
        let mut row = 0;
        for (sentence, list) in lists.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            let (hope, fear) =
                (ranked(list, &w, (1.0, 1.0), 0)[0], ranked(list, &w, (1.0, -1.0), 0)[0]);
            if hope != fear {
                let margin = score(list[hope].0, &w) - score(list[fear].0, &w);
                prop_assert_eq!(rows.groups[row], sentence as u32);
                prop_assert_eq!(rows.margin(row, &model), margin);
                row += 1;
            }
        }
        prop_assert_eq!((rows.len(), rows.is_empty()), (row, row == 0));
        let starts = rows.starts();
        prop_assert_eq!((starts.len(), starts[row]), (row + 1, rows.ids.len()));
        for row in 0..row {
            prop_assert_eq!(starts[row + 1] - starts[row], rows.row(row).0.len());
        }
    }
}

#[test]
fn a_pass_that_is_interrupted_fails() {
    let corpus = corpus_of(&[vec![([1, 0], 1), ([0, 1], 3)]]);
    let mut model = Model::new(vec![0.0; 2]);
    let mut update = PassiveAggressive::new(0.5, 1.0, false);
    let mut gains = Gain::sentence(Arc::new(ERRORS));
    let seen = pass(&corpus, &[0], 1).run(&mut model, &mut gains, &mut update, &|| true);
    assert_eq!(seen.expect_err("it was stopped").to_string(), "interrupted");
    assert_eq!(model.weights(), [0.0; 2]);
}

#[test]
fn a_pass_shows_gains_what_it_chose() {
    // The second sentence sees the background of the first, which follows y+ or the model's best.
    let lists = [vec![([1, 0], 8), ([0, 0], 0)], vec![([1, 0], 1), ([0, 1], 3)]];
    let corpus = corpus_of(&lists);
    let order = [0, 1];
    for (oracle, errors) in [(false, 8.0), (true, 0.0)] {
        let kind = GainKind::Background { decay: 0.5, oracle };
        let first = [0.0, 10.0];
        let mut gains = Gain::new(Arc::new(ERRORS), kind, GainScale::One, vec![1.0; 2], &first);
        let mut model = Model::new(vec![0.1, 0.0]);
        let mut update = PassiveAggressive::new(0.0, 1.0, false);
        pass(&corpus, &order[..1], 1)
            .run(&mut model, &mut gains, &mut update, &|| false)
            .expect("lists do not fail");
        assert_eq!(gains.state()[0], 0.5 * errors);
    }
}

#[test]
fn what_is_reported_of_a_step_with_several_rounds_is_what_was_before_it() {
    // The first round makes the second hypothesis the best; later rounds must not report it.
    let corpus = corpus_of(&[vec![([1, 0], 8), ([0, 1], 0)]]);
    let (inner, among) = (Box::new(HOPE_FEAR), Among::ALL);
    let selector = Bounded { inner, bound: 100.0, price: 0.5, among, by_cost: false };
    let mut model = Model::new(vec![0.1, 0.0]);
    let mut update = PassiveAggressive::new(10.0, 1.0, false);
    let mut gains = Gain::sentence(Arc::new(ERRORS));
    let seen = Pass { selector: &selector, ..pass(&corpus, &[0], 1) }
        .run(&mut model, &mut gains, &mut update, &|| false)
        .expect("lists do not fail");
    assert!(model.weights()[1] > model.weights()[0]);
    assert!((seen.model - 0.2).abs() < 1e-12 && (seen.oracle - 1.0).abs() < 1e-12);
    // y+ scored nothing then, and so did the lowest.
    assert_eq!(seen.spread, (0.0, 0.0));
}

#[test]
fn a_pass_is_its_two_halves_whoever_takes_the_first() {
    let lists = [
        vec![([1, 0], 8), ([0, 1], 0)],
        vec![([2, 1], 3), ([1, 2], 1), ([0, 3], 5)],
        vec![],
        vec![([1, 1], 2), ([3, 0], 0)],
    ];
    let corpus = corpus_of(&lists);
    let order = [3, 0, 2, 1];
    let gain = Gain::new(
        Arc::new(ERRORS),
        GainKind::Background { decay: 0.9, oracle: true },
        GainScale::One,
        vec![1.0; 4],
        &[1.0; 2],
    );
    let rules: [Box<dyn Update>; 3] = [
        Box::new(PassiveAggressive::new(0.3, 1.0, true)),
        Box::new(Gradient::new(Loss::Logistic, Rate::AdaGrad, 0.1, 0.01, 0.0, 2)),
        Box::new(Perceptron::new(0.5)),
    ];
    for mut update in rules {
        let start = Model::new(vec![0.1, 0.2]);
        let (mut whole, mut gains) = (start.clone(), gain.clone());
        let empty = update.state();
        let wanted = pass(&corpus, &order, 2)
            .run(&mut whole, &mut gains, update.as_mut(), &|| false)
            .expect("lists do not fail");
        let after = update.state();
        assert!(update.restore(&empty));
        let (mut model, mut apart) = (start, gain.clone());
        let mut progress = Progress::default();
        update.begin_pass(&model, true);
        let batches = pass(&corpus, &order, 2).batches();
        assert_eq!(batches, [vec![3, 0], vec![1]]);
        for lines in batches {
            pass(&corpus, &lines, 2).catch_up(&mut model, &apart, update.as_mut());
            let selected: Vec<Chosen> = lines
                .iter()
                .rev()
                .map(|line| {
                    let mut chosen = Chosen::default();
                    let (rounds, scaled) = (update.asks(1).expect("one round"), update.is_scaled());
                    pass(&corpus, &[*line], 1)
                        .select(&model, &apart, rounds, scaled, &mut chosen)
                        .expect("lists do not fail");
                    chosen
                })
                .collect();
            let parts: Vec<Part<'_>> =
                selected.iter().map(|chosen| Part { chosen, known: 2, ids: &[] }).collect();
            progress
                .apply(&mut Chosen::joined(&parts, &lines), &mut model, &mut apart, update.as_mut())
                .expect("rows do not fail");
        }
        update.end_pass(&mut model);
        assert_eq!(progress.end(), wanted);
        assert_eq!(model.weights(), whole.weights());
        assert_ne!(model.weights(), [0.1, 0.2]);
        assert_eq!((model.average(), apart.state()), (whole.average(), gains.state()));
        assert_eq!(update.state(), after);
    }
}
