//! Equalities that must hold for any task.

mod toy;

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use rayon::ThreadPoolBuilder;
use toy::{At, Line, Toy, lines, settings};
use tunesmith_structured::{
    Features, Gold, Learner, Method, Observed, Scratch, Search, Settings, Task, Trainer, UNBOUNDED,
    Violation, Weights, predict,
};
use tunesmith_text::Watch;

const ALL: [Violation; 4] =
    [Violation::Unchecked, Violation::Standard, Violation::Early, Violation::Max];

/// Weights by name.
fn named(weights: &Weights) -> BTreeMap<String, Vec<f64>> {
    let features = &weights.features;
    (0..features.len() as u32)
        .map(|id| {
            let (context, action) = features.owner(id);
            let name = format!("{} {action}", features.names().name(context).unwrap());
            (name, weights.voters.iter().map(|voter| voter[id as usize]).collect())
        })
        .collect()
}

fn trainer(inputs: Vec<Line>, settings: Settings) -> Trainer<Toy> {
    Trainer::new(Arc::new(Toy { actions: 4 }), inputs, settings, 7).unwrap()
}

/// Weights and observations after three passes; with `shards`, through the mixing.
fn learn(
    inputs: Vec<Line>,
    settings: Settings,
    shards: usize,
) -> (BTreeMap<String, Vec<f64>>, Vec<Observed>) {
    let mut trainer = trainer(inputs, settings);
    let watch = Watch::default();
    let seen = (0..3)
        .map(|epoch| match shards {
            0 => trainer.pass(epoch, &watch).unwrap(),
            _ => trainer.mixed_pass(shards, epoch, &watch).unwrap(),
        })
        .collect();
    (named(&trainer.learner.weights()), seen)
}

/// Scores of all derivations of some actions, by trying them all.
fn all_scores(search: &Search<'_, Toy>, input: &Line, state: At, sum: f64, out: &mut Vec<f64>) {
    if search.task.is_end(input, &state).unwrap() {
        out.push(sum);
        return;
    }
    let mut scratch = Scratch::new(search.features);
    let scores = search.score(input, &state, &mut scratch).unwrap().to_vec();
    for (action, score) in scores {
        let next = search.task.apply(input, &state, action).unwrap();
        all_scores(search, input, next, sum + score, out);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn without_a_beam_early_is_standard(seed in 0u64..1000, share in 1usize..6) {
        let inputs = lines(seed, 6, 5, share);
        for method in [Method::Perceptron, Method::Mira { c: 0.5 }] {
            let (early, _) = learn(inputs.clone(), settings(UNBOUNDED, Violation::Early, method), 0);
            let (standard, _) =
                learn(inputs.clone(), settings(UNBOUNDED, Violation::Standard, method), 0);
            prop_assert_eq!(early, standard);
        }
    }

    #[test]
    fn without_a_beam_max_is_standard_where_the_last_violation_is_the_largest(
        seed in 0u64..1000,
    ) {
        let watch = Watch::default();
        let mut trainer =
            trainer(lines(seed, 6, 5, 3), settings(UNBOUNDED, Violation::Max, Method::Perceptron));
        trainer.pass(0, &watch).unwrap();
        let task = Toy { actions: 4 };
        for example in trainer.examples() {
            let of = |violation| {
                let settings = settings(UNBOUNDED, violation, Method::Perceptron);
                trainer.learner.find(&task, example, &settings).unwrap()
            };
            let (max, standard) = (of(Violation::Max), of(Violation::Standard));
            let last = max.rungs.last().unwrap();
            let largest =
                max.rungs[..max.rungs.len() - 1].iter().all(|r| r.violation() < last.violation());
            if standard.step.is_some() && largest {
                prop_assert_eq!(max.step, standard.step);
            }
        }
    }

    #[test]
    fn a_single_step_makes_all_updates_equal(seed in 0u64..1000, beam in 1usize..4) {
        let all = ALL.map(|violation| {
            learn(lines(seed, 8, 1, 3), settings(beam, violation, Method::Perceptron), 0).0
        });
        prop_assert!(all.iter().all(|each| *each == all[0]));
    }

    #[test]
    fn one_shard_through_mixing_is_serial(seed in 0u64..1000, voters in 0usize..3) {
        for method in [Method::Perceptron, Method::KBest { k: 3, c: 0.5 }] {
            let settings = Settings { voters, ..settings(2, Violation::Max, method) };
            let (serial, mixed) =
                (learn(lines(seed, 9, 5, 3), settings, 0), learn(lines(seed, 9, 5, 3), settings, 1));
            prop_assert_eq!(serial, mixed);
        }
    }

    #[test]
    fn a_batch_of_copies_is_one_example(seed in 0u64..1000, power in 0u32..3) {
        // Powers of two divide without rounding.
        let copies = 1 << power;
        let one = lines(seed, 1, 5, 3);
        let serial = settings(2, Violation::Max, Method::Perceptron);
        let batch = Settings { batch: copies, ..serial };
        let (alone, _) = learn(one.clone(), serial, 0);
        let (together, _) = learn(vec![one[0].clone(); copies], batch, 0);
        prop_assert_eq!(alone.len(), together.len());
        for (name, weights) in &alone {
            prop_assert!((weights[0] - together[name][0]).abs() < 1e-9);
        }
    }

    #[test]
    fn the_best_of_one_is_mira(seed in 0u64..1000, beam in 1usize..5) {
        // One step: the two round differently, and later ties may then fall otherwise.
        let step = |method| {
            let mut trainer = trainer(lines(seed, 1, 5, 3), settings(beam, Violation::Max, method));
            trainer.pass(0, &Watch::default()).unwrap();
            named(&trainer.learner.weights())
        };
        let one = step(Method::Mira { c: 0.3 });
        let k = step(Method::KBest { k: 1, c: 0.3 });
        prop_assert_eq!(one.keys().collect::<Vec<_>>(), k.keys().collect::<Vec<_>>());
        for (name, weights) in &one {
            prop_assert!((weights[0] - k[name][0]).abs() < 1e-9);
        }
    }

    #[test]
    fn updates_fix_violations_and_max_fixes_the_largest(seed in 0u64..1000, beam in 1usize..4) {
        let watch = Watch::default();
        for violation in [Violation::Standard, Violation::Early, Violation::Max] {
            let settings = settings(beam, violation, Method::Perceptron);
            let mut trainer = trainer(lines(seed, 6, 6, 3), settings);
            for epoch in 0..3 {
                prop_assert_eq!(trainer.pass(epoch, &watch).unwrap().invalid, 0);
                for example in trainer.examples() {
                    let found =
                        trainer.learner.find(&Toy { actions: 4 }, example, &settings).unwrap();
                    let Some(step) = found.step else { continue };
                    let violation = found.rungs[step - 1].violation();
                    prop_assert!(violation >= 0.0);
                    if settings.violation == Violation::Max {
                        let others = found.rungs.iter().filter(|rung| !rung.right);
                        prop_assert!(others.fold(0.0, |m: f64, r| m.max(r.violation())) <= violation);
                    }
                }
            }
        }
    }

    #[test]
    fn a_search_that_drops_nothing_finds_the_best(seed in 0u64..1000) {
        let watch = Watch::default();
        let one = settings(UNBOUNDED, Violation::Max, Method::Perceptron);
        let mut trainer = trainer(lines(seed, 5, 6, 3), one);
        trainer.pass(0, &watch).unwrap();
        let learner: &Learner = &trainer.learner;
        let (features, weights): (&Features, _) = (&learner.features, learner.model().weights());
        let task = Toy { actions: 4 };
        let search = Search { task: &task, features, weights, beam: UNBOUNDED };
        for input in lines(seed, 5, 6, 3) {
            let lattice =
                search.run(&input, None, false, &mut Scratch::new(features)).unwrap();
            let mut scores = Vec::new();
            all_scores(&search, &input, (0, 0), 0.0, &mut scores);
            let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!((lattice.steps.last().unwrap()[0].score - best).abs() < 1e-9);
        }
    }

    #[test]
    fn threads_change_nothing(seed in 0u64..200) {
        let run = |threads: usize| {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let settings = Settings {
                    batch: 4,
                    ..settings(3, Violation::Max, Method::KBest { k: 2, c: 0.5 })
                };
                let mut trainer = trainer(lines(seed, 20, 5, 3), settings);
                let watch = Watch::default();
                for epoch in 0..2 {
                    trainer.mixed_pass(3, epoch, &watch).unwrap();
                }
                let weights = trainer.learner.weights();
                let mut inputs = lines(seed + 1, 9, 5, 3);
                let found =
                    predict(&Toy { actions: 4 }, &weights, &mut inputs, 3, &watch).unwrap();
                (named(&weights), found)
            })
        };
        prop_assert_eq!(run(1), run(3));
    }
}

#[test]
fn max_violation_is_not_standard_even_without_a_beam() {
    // In some example a prefix is a violation, and the end is not.
    let found = (0..200).any(|seed| {
        let watch = Watch::default();
        let exact = |violation| settings(UNBOUNDED, violation, Method::Perceptron);
        let mut trainer = trainer(lines(seed, 4, 5, 3), exact(Violation::Max));
        trainer.pass(0, &watch).unwrap();
        trainer.examples().iter().any(|example| {
            let of = |violation| {
                trainer.learner.find(&Toy { actions: 4 }, example, &exact(violation)).unwrap().step
            };
            of(Violation::Standard).is_none() && of(Violation::Max).is_some()
        })
    });
    assert!(found);
}

#[test]
fn unchecked_updates_are_sometimes_no_violations() {
    let invalid: u64 = (0..50)
        .map(|seed| {
            let one = settings(1, Violation::Unchecked, Method::Perceptron);
            learn(lines(seed, 6, 6, 3), one, 0).1.iter().map(|seen| seen.invalid).sum::<u64>()
        })
        .sum();
    assert!(invalid > 0);
}

/// Counts derivations that are gold up to an end, by trying all.
fn gold_derivations(task: &Toy, input: &Line, state: At) -> f64 {
    if task.is_end(input, &state).unwrap() {
        return 1.0;
    }
    let mut actions = Vec::new();
    task.actions(input, &state, &mut actions).unwrap();
    let gold = actions.into_iter().filter(|&action| task.is_gold(input, &state, action).unwrap());
    gold.map(|action| gold_derivations(task, input, task.apply(input, &state, action).unwrap()))
        .sum()
}

#[test]
fn gold_is_all_that_can_be_finished_and_nothing_else() {
    let task = Toy { actions: 4 };
    let (mut several, mut dead, mut none) = (0, 0, 0);
    for input in lines(3, 200, 5, 3) {
        let wanted = gold_derivations(&task, &input, (0, 0));
        let Ok(gold) = Gold::new(&task, &input).unwrap() else {
            assert_eq!(wanted, 0.0);
            none += 1;
            continue;
        };
        assert_eq!(gold.derivations(), wanted);
        several += u32::from(wanted > 1.0);
        for action in 0..4 {
            if task.is_gold(&input, &(0, 0), action).unwrap() {
                let next = task.apply(&input, &(0, 0), action).unwrap();
                let lives = gold_derivations(&task, &input, next) > 0.0;
                assert_eq!(gold.follow(0, 0, action).is_some(), lives);
                dead += u32::from(!lives);
            }
        }
    }
    assert!(several > 10 && dead > 10 && none > 10, "{several} {dead} {none}");
}

#[test]
fn weights_that_no_training_wrote_are_refused() {
    let good = || (b"ab".to_vec(), vec![1u64, 2], vec![0u32, 1], vec![0u32, 5]);
    let (letters, ends, contexts, actions) = good();
    let make = |letters: &[u8], ends: &[u64], contexts: &[u32], actions: &[u32], weight: f64| {
        Weights::new(letters, ends, contexts, actions, vec![vec![weight, 1.0]], vec![1.0])
    };
    assert!(make(&letters, &ends, &contexts, &actions, 1.0).is_ok());
    assert!(make(&letters, &ends, &contexts, &actions, f64::NAN).is_err());
    assert!(make(&letters, &[2, 1], &contexts, &actions, 1.0).is_err());
    assert!(make(&letters, &[1, 9], &contexts, &actions, 1.0).is_err());
    assert!(make(b"aa", &ends, &contexts, &actions, 1.0).is_err());
    assert!(make(&[0xff, 0xff], &ends, &contexts, &actions, 1.0).is_err());
    assert!(make(&letters, &ends, &[0, 2], &actions, 1.0).is_err());
    assert!(make(&letters, &ends, &[0, 0], &[5, 5], 1.0).is_err());
    assert!(make(&letters, &ends, &[0], &actions, 1.0).is_err());
    let votes = |votes: Vec<f64>| {
        Weights::new(&letters, &ends, &contexts, &actions, vec![vec![1.0, 1.0]], votes)
    };
    assert!(votes(vec![]).is_err() && votes(vec![0.0]).is_err() && votes(vec![2.0]).is_ok());
}
