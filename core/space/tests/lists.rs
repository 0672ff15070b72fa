//! Lists answer every query as a plain sort would.

use proptest::prelude::*;
use tunesmith_metric::TableBuilder;
use tunesmith_space::{Among, Hypothesis, PoolSpace, Pools, PoolsBuilder, Space, argmax};
use tunesmith_text::Names;

/// (text, score feature, gain) of each hypothesis.
type List = Vec<(u8, i8, i8)>;

fn pools_of(lists: &[List]) -> Pools {
    let mut builder = PoolsBuilder::default();
    let score = builder.names.intern("score");
    let other = builder.names.intern("other");
    for list in lists {
        builder.sentence(None);
        for &(text, value, gain) in list {
            // Features in the wrong order, and one that is missing now and then.
            let all = [(other, f32::from(gain)), (score, f32::from(value))];
            let features = if gain == 0 { &all[1..] } else { &all[..] };
            builder.push(Hypothesis {
                text: &format!("t{text}"),
                features,
                ..Hypothesis::default()
            });
        }
    }
    builder.finish()
}

fn lists() -> impl Strategy<Value = Vec<List>> {
    let hypothesis = (0u8..4, -3i8..4, -2i8..3);
    proptest::collection::vec(proptest::collection::vec(hypothesis, 0..9), 1..4)
}

proptest! {
    #[test]
    fn the_best_by_any_mixture_are_those_of_a_sort(
        lists in lists(), model in -1i8..2, gain in -1i8..2, n in 0usize..6, k in 0usize..6,
        unique: bool,
    ) {
        let pools = pools_of(&lists);
        let mut builder = TableBuilder::new(1);
        for list in &lists {
            list.iter().for_each(|&(_, _, gain)| builder.push(&[f64::from(gain)]));
            builder.close();
        }
        let table = builder.finish();
        for (sentence, list) in lists.iter().enumerate() {
            let row_gains = table.rows(sentence).to_vec();
            let mut space = PoolSpace::new(&pools, &table, sentence, &row_gains);
            space.rescore(&[1.0, 0.0]);
            prop_assert_eq!(space.len(), list.len());
            let score = |y: usize| i32::from(list[y].1);
            let value = |y: usize| {
                i32::from(model) * score(y) + i32::from(gain) * i32::from(list[y].2)
            };
            let mut order: Vec<usize> = (0..list.len()).collect();
            if k > 0 {
                order.sort_by_key(|&y| (-score(y), y));
                order.truncate(k);
            }
            order.sort_by_key(|&y| (-value(y), -score(y), y));
            let best = order.first().copied();
            if unique {
                let mut seen = Vec::new();
                order.retain(|&y| {
                    let new = !seen.contains(&list[y].0);
                    seen.push(list[y].0);
                    new
                });
            }
            order.truncate(n);
            let (model, gain) = (f64::from(model), f64::from(gain));
            prop_assert_eq!(space.top(n, model, gain, Among::best(k), unique), order);
            prop_assert_eq!(space.argmax(model, gain, Among::best(k)), best);
            // The best derivation of each string, then the k best of these.
            let mut strings: Vec<usize> = (0..list.len()).collect();
            strings.sort_by_key(|&y| (-score(y), y));
            let mut seen = Vec::new();
            strings.retain(|&y| {
                let new = !seen.contains(&list[y].0);
                seen.push(list[y].0);
                new
            });
            if k > 0 {
                strings.truncate(k);
            }
            let worst = strings.iter().copied().min_by_key(|&y| (score(y), y));
            let among = Among { k, unique: true, whole_forests: false };
            prop_assert_eq!(space.argmax(-1.0, 0.0, among), worst);
            strings.truncate(n);
            prop_assert_eq!(space.top(n, 1.0, 0.0, among, false), strings);
            for (y, &(_, value, gain)) in list.iter().enumerate() {
                prop_assert_eq!(space.score(y), f64::from(value));
                prop_assert_eq!(space.gain(y), f64::from(gain));
                prop_assert_eq!(space.stats(y), [f64::from(gain)]);
            }
        }
    }

    #[test]
    fn scores_are_sums_whatever_the_shape_of_the_list(
        rows in proptest::collection::vec(
            proptest::collection::btree_map(0u32..12, -4i8..5, 0..12), 1..20),
        dense: bool,
        weights in proptest::collection::vec(-4i8..5, 12),
    ) {
        let mut builder = PoolsBuilder::default();
        for id in 0..12 {
            builder.names.intern(&format!("f{id}"));
        }
        builder.sentence(None);
        let mut wanted = Vec::new();
        for row in &rows {
            let features: Vec<(u32, f32)> = if dense {
                (0..12).map(|id| (id, f32::from(row.get(&id).copied().unwrap_or(0)))).collect()
            } else {
                row.iter().map(|(&id, &value)| (id, f32::from(value))).collect()
            };
            builder.push(Hypothesis { features: &features, ..Hypothesis::default() });
            wanted.push(f64::from(
                row.iter().map(|(&id, &x)| i32::from(x) * i32::from(weights[id as usize])).sum::<i32>(),
            ));
        }
        let pools = builder.finish();
        let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
        let mut scores = vec![f64::NAN; 3];
        pools.dot(0, &weights, &mut scores);
        prop_assert_eq!(&scores, &wanted);
        let best = argmax(wanted.iter().copied()).map_or(usize::MAX, |(place, _)| place);
        prop_assert_eq!(pools.best(&weights), vec![best]);
        // Weights that end early weigh the rest nothing.
        let cut: Vec<f64> = weights.iter().take(5).copied().collect();
        let mut padded = cut.clone();
        padded.resize(12, 0.0);
        let mut longer = Vec::new();
        pools.dot(0, &cut, &mut scores);
        pools.dot(0, &padded, &mut longer);
        prop_assert_eq!(scores, longer);
    }

    #[test]
    fn the_first_of_the_largest_wins_and_nothing_that_is_no_number(
        values in proptest::collection::vec(
            prop_oneof![Just(f64::NAN), Just(f64::NEG_INFINITY), (-3i8..3).prop_map(f64::from)], 0..8)
    ) {
        let found = argmax(values.iter().copied());
        let numbers: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        match found {
            None => prop_assert!(values.is_empty()),
            Some((place, top)) if numbers.is_empty() => {
                prop_assert_eq!(place, 0);
                prop_assert!(top.is_nan());
            }
            Some((place, top)) => {
                let largest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                prop_assert_eq!(top, largest);
                prop_assert_eq!(values.iter().position(|&value| value == largest), Some(place));
            }
        }
    }
}

/// A hypothesis: text, features by name, what is kept behind the score.
type Whole = (u8, Vec<(u8, i8)>, bool);

fn push(builder: &mut PoolsBuilder, (text, named, extra): &Whole) {
    let mut features: Vec<(u32, f32)> = Vec::new();
    for (name, value) in named {
        let id = builder.names.intern(&format!("f{name}"));
        if features.iter().all(|known| known.0 != id) {
            features.push((id, f32::from(*value)));
        }
    }
    let (text, extra) = (format!("t{text}"), if *extra { "0-0" } else { "" });
    let hypothesis = Hypothesis { text: &text, features: &features, extra, ..Default::default() };
    builder.push(Hypothesis { score: Some(named.len() as f64), ..hypothesis });
}

proptest! {
    #[test]
    fn lists_that_are_appended_are_those_that_were_pushed(
        lists in prop::collection::vec(prop::collection::vec(
            (0u8..9, prop::collection::vec((0u8..6, -3i8..4), 0..5), any::<bool>()), 0..4), 0..5),
    ) {
        let (mut pushed, mut parts) = (PoolsBuilder::default(), Vec::new());
        for list in &lists {
            // Each part has names of its own, in its own order.
            let mut part = PoolsBuilder::default();
            for builder in [&mut pushed, &mut part] {
                builder.sentence(None);
                list.iter().for_each(|one| push(builder, one));
            }
            parts.push(part);
        }
        let mut appended = PoolsBuilder::default();
        parts.iter().for_each(|part| appended.append(part));
        let (pushed, appended) = (pushed.finish(), appended.finish());
        prop_assert!(pushed.names.iter().eq(appended.names.iter()));
        prop_assert_eq!(pushed.starts(), appended.starts());
        prop_assert_eq!(pushed.scores(), appended.scores());
        for at in 0..pushed.hypotheses() {
            prop_assert_eq!(pushed.features(at), appended.features(at));
            prop_assert_eq!(pushed.text(at), appended.text(at));
            prop_assert_eq!(pushed.extra(at), appended.extra(at));
        }
        for sentence in 0..lists.len() {
            prop_assert_eq!(pushed.uniform(sentence), appended.uniform(sentence));
        }
    }

    #[test]
    fn lists_of_many_threads_are_those_that_were_pushed(
        lists in prop::collection::vec(prop::collection::vec(
            (0u8..9, prop::collection::vec((0u8..6, -3i8..4), 0..5), any::<bool>()), 0..4), 0..9),
        threads in 1usize..4,
    ) {
        let mut pushed = PoolsBuilder::default();
        for list in &lists {
            pushed.sentence(None);
            list.iter().for_each(|one| push(&mut pushed, one));
        }
        let mut gathered = PoolsBuilder::default();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let lengths = pool.install(|| gathered.gather(&lists, |list, part| {
            part.sentence(None);
            list.iter().for_each(|one| push(part, one));
            list.len()
        }));
        prop_assert_eq!(lengths, lists.iter().map(Vec::len).collect::<Vec<_>>());
        let (pushed, gathered) = (pushed.finish(), gathered.finish());
        prop_assert!(pushed.names.iter().eq(gathered.names.iter()));
        prop_assert_eq!(pushed.starts(), gathered.starts());
        for at in 0..pushed.hypotheses() {
            prop_assert_eq!(pushed.features(at), gathered.features(at));
            prop_assert_eq!(pushed.text(at), gathered.text(at));
            prop_assert_eq!(pushed.extra(at), gathered.extra(at));
        }
    }

    #[test]
    fn dense_values_are_features_with_the_first_ids(
        rows in prop::collection::vec(
            (prop::collection::vec(-3i8..4, 0..4), prop::collection::vec(-3i8..4, 0..3)), 1..7),
    ) {
        let (mut whole, mut split) = (PoolsBuilder::default(), PoolsBuilder::default());
        for builder in [&mut whole, &mut split] {
            for id in 0..9 {
                builder.names.intern(&format!("f{id}"));
            }
            builder.sentence(None);
        }
        for (dense, rest) in &rows {
            let dense: Vec<f32> = dense.iter().map(|&value| f32::from(value)).collect();
            let rest = rest.iter().map(|&value| f32::from(value));
            let rest: Vec<(u32, f32)> = (5..).zip(rest).collect();
            let all: Vec<(u32, f32)> =
                (0..).zip(dense.iter().copied()).chain(rest.iter().copied()).collect();
            whole.push(Hypothesis { features: &all, ..Default::default() });
            split.push(Hypothesis { dense: &dense, features: &rest, ..Default::default() });
        }
        let (whole, split) = (whole.finish(), split.finish());
        prop_assert_eq!(whole.uniform(0), split.uniform(0));
        prop_assert!(whole.ids().eq(split.ids()));
        for at in 0..whole.hypotheses() {
            prop_assert_eq!(whole.features(at), split.features(at));
        }
    }
}

#[test]
fn rows_with_the_same_ids_keep_them_once() {
    let bytes = |alike: bool| {
        let mut builder = PoolsBuilder::default();
        for id in 0..40 {
            builder.names.intern(&format!("f{id}"));
        }
        builder.sentence(None);
        for row in 0..100 {
            let first = if alike { 0 } else { row % 2 };
            let features: Vec<(u32, f32)> = (first..first + 20).map(|id| (id, 1.0)).collect();
            builder.push(Hypothesis { features: &features, ..Default::default() });
        }
        builder.finish().heap_bytes()
    };
    assert_eq!(bytes(false) - bytes(true), 99 * 20 * 4);
}

/// Each hypothesis as numbers of features, of which every list has names in its own order.
fn rows() -> impl Strategy<Value = Vec<Vec<Vec<u32>>>> {
    let row = proptest::collection::btree_set(0u32..12, 0..8);
    let row = row.prop_map(|row| row.into_iter().collect::<Vec<u32>>()).prop_shuffle();
    proptest::collection::vec(proptest::collection::vec(row, 0..6), 0..5)
}

proptest! {
    #[test]
    fn rows_that_share_ids_are_put_in_order_one_by_one(lists in rows()) {
        let mut builder = PoolsBuilder::default();
        let mut names = Names::default();
        (0..12).for_each(|number| assert!(names.intern(&format!("f{}", 11 - number)) < 12));
        (0..12).for_each(|number| assert!(builder.names.intern(&format!("f{number}")) < 12));
        for list in &lists {
            builder.sentence(None);
            for row in list.iter().flat_map(|row| [row, row]) {
                let features: Vec<(u32, f32)> = row.iter().map(|&n| (n, n as f32)).collect();
                builder.push(Hypothesis { features: &features, ..Hypothesis::default() });
            }
        }
        let pools = builder.finish();
        let turned = pools.renamed(&mut names);
        for (at, row) in lists.iter().flatten().flat_map(|row| [row, row]).enumerate() {
            let mut sorted = row.clone();
            sorted.sort_unstable();
            let (ids, values) = pools.features(at);
            prop_assert_eq!(ids, sorted.as_slice());
            prop_assert!(values.iter().map(|&value| value as u32).eq(sorted.iter().copied()));
            let (ids, values) = turned.features(at);
            prop_assert!(ids.iter().copied().eq(sorted.iter().rev().map(|n| 11 - n)));
            prop_assert!(values.iter().map(|&value| value as u32).eq(sorted.iter().rev().copied()));
        }
    }

    #[test]
    fn lists_with_names_of_their_own_get_common_ids(
        lists in rows(), known in proptest::collection::vec(0u32..12, 0..6),
    ) {
        let name = |number: u32| format!("f{number}");
        let mut parts = Vec::new();
        let mut expected = Names::default();
        known.iter().for_each(|&number| assert!(expected.intern(&name(number)) < 12));
        let mut names = expected.clone();
        for list in &lists {
            let mut part = PoolsBuilder::default();
            part.sentence(None);
            for row in list {
                let features: Vec<(u32, f32)> =
                    row.iter().map(|&n| (part.names.intern(&name(n)), n as f32)).collect();
                part.push(Hypothesis { features: &features, ..Hypothesis::default() });
            }
            part.names.iter().for_each(|name| assert!(expected.intern(name) < 12));
            parts.push(part);
        }
        let joined = PoolsBuilder::joined(&parts, &mut names);
        prop_assert!(names.iter().eq(expected.iter()));
        // The same in two steps.
        let mut all = PoolsBuilder::default();
        parts.iter().for_each(|part| all.append(part));
        let all = all.finish();
        let renamed = all.renamed(&mut names);
        prop_assert!(names.iter().eq(expected.iter()));
        prop_assert_eq!((joined.sentences(), all.sentences()), (lists.len(), lists.len()));
        for (at, row) in lists.iter().flatten().enumerate() {
            for (pools, names) in [(&joined, &names), (&renamed, &names), (&all, &all.names)] {
                let mut features: Vec<(u32, f32)> =
                    row.iter().map(|&n| (names.id(&name(n)).unwrap(), n as f32)).collect();
                features.sort_by_key(|&(id, _)| id);
                let (ids, values) = pools.features(at);
                prop_assert!(features.into_iter().eq(ids.iter().copied().zip(values.iter().copied())));
            }
        }
    }
}
