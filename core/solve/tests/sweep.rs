//! Line search on lists of small whole numbers, where every sum is exact.

use std::sync::Arc;

use proptest::prelude::*;
use tunesmith_metric::{Metric, Ratio, TableBuilder};
use tunesmith_solve::{Blocks, Breaks, LineSearch, ListSearch, fold};
use tunesmith_space::{Hypothesis, PoolsBuilder};

const ERRORS: Ratio = Ratio { scale: 100.0, higher: false };

/// ((feature, feature), errors) of each hypothesis.
type List = Vec<([i8; 2], u8)>;

fn search_of(lists: &[List]) -> ListSearch {
    part_of(lists, Blocks::whole(lists.len()), 1.0)
}

/// The lists of some blocks; an error counts so much.
fn part_of(lists: &[List], blocks: Blocks, error: f64) -> ListSearch {
    let mut builder = PoolsBuilder::default();
    let ids = [builder.names.intern("a"), builder.names.intern("b")];
    let mut table = TableBuilder::new(2);
    for list in lists {
        builder.sentence(None);
        for (values, errors) in list {
            let features = [(ids[0], f32::from(values[0])), (ids[1], f32::from(values[1]))];
            builder.push(Hypothesis { features: &features, ..Hypothesis::default() });
            table.push(&[error * f64::from(*errors), 10.0]);
        }
        table.close();
    }
    let (pools, table) = (Arc::new(builder.finish()), Arc::new(table.finish()));
    ListSearch::new(pools, table, Arc::new(ERRORS), blocks, &ids)
}

/// Corpus gain from the definition: the first of the best-scoring of each list.
fn gain_at(lists: &[List], weights: [f64; 2]) -> f64 {
    let (mut errors, mut words) = (0.0, 0.0);
    for list in lists.iter().filter(|list| !list.is_empty()) {
        let score = |f: [i8; 2]| f64::from(f[0]) * weights[0] + f64::from(f[1]) * weights[1];
        let mut best = 0;
        for (place, (values, _)) in list.iter().enumerate() {
            if score(*values) > score(list[best].0) {
                best = place;
            }
        }
        errors += f64::from(list[best].1);
        words += 10.0;
    }
    ERRORS.gain(&[errors, words])
}

fn lists() -> impl Strategy<Value = Vec<List>> {
    let hypothesis = ([-4i8..5, -4i8..5], 0u8..11);
    proptest::collection::vec(proptest::collection::vec(hypothesis, 0..7), 1..5)
        .prop_filter("something to choose from", |lists| lists.iter().any(|list| !list.is_empty()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_sweep_is_at_least_every_grid_and_attained(
        lists in lists(), start in [-8i8..9, -8i8..9], axis in 0usize..2, bounded: bool,
    ) {
        let search = search_of(&lists);
        let weights = start.map(|value| f64::from(value) / 4.0);
        let mut walker = search.walker(weights.to_vec());
        prop_assert_eq!(search.gain(&walker), gain_at(&lists, weights));
        let bounds = if bounded {
            (weights[axis] - 0.375, weights[axis] + 1.125)
        } else {
            (f64::NEG_INFINITY, f64::INFINITY)
        };
        let found = search.axis(&walker, axis, bounds);
        let at = |step: f64| {
            let mut moved = weights;
            moved[axis] += step;
            gain_at(&lists, moved)
        };
        prop_assert_eq!(found.gain, at(found.step));
        prop_assert!((bounds.0..=bounds.1).contains(&(weights[axis] + found.step)));
        // Breakpoints are fractions of small numbers; a grid that is off by this meets none.
        for step in -1024..1024 {
            let step = f64::from(step) / 128.0 + 0.00123;
            if (bounds.0..=bounds.1).contains(&(weights[axis] + step)) {
                prop_assert!(at(step) <= found.gain);
            }
        }
        search.move_axis(&mut walker, axis, found.step);
        prop_assert_eq!(search.gain(&walker), found.gain);
        prop_assert_eq!(walker.weights()[axis], weights[axis] + found.step);
    }

    #[test]
    fn a_direction_along_an_axis_is_the_axis(
        lists in lists(), start in [-8i8..9, -8i8..9], axis in 0usize..2,
    ) {
        let search = search_of(&lists);
        let walker = search.walker(start.map(|value| f64::from(value) / 4.0).to_vec());
        let mut direction = [0.0; 2];
        direction[axis] = 1.0;
        let everywhere = (f64::NEG_INFINITY, f64::INFINITY);
        prop_assert_eq!(
            search.axis(&walker, axis, everywhere),
            search.direction(&walker, &direction, everywhere)
        );
        prop_assert_eq!(search.direction(&walker, &[0.0; 2], everywhere).step, 0.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn breakpoints_of_parts_are_swept_as_those_of_the_whole(
        lists in lists(), start in [-8i8..9, -8i8..9], axis in 0usize..2, parts in 1usize..4,
    ) {
        // Sums of tenths depend on their order.
        let error = 0.1;
        let weights = start.map(|value| f64::from(value) / 4.0).to_vec();
        let everywhere = (f64::NEG_INFINITY, f64::INFINITY);
        let whole = part_of(&lists, Blocks::whole(lists.len()), error);
        let wanted = whole.axis(&whole.walker(weights.clone()), axis, everywhere);
        // Each list is a block here, and list n is in part n modulo parts.
        let mut all = Breaks { left: vec![0.0; 2 * lists.len()], ..Breaks::default() };
        let mut sums = vec![0.0; 2 * lists.len()];
        for part in (0..parts).rev() {
            let held: Vec<usize> = (part..lists.len()).step_by(parts).collect();
            let own: Vec<List> = held.iter().map(|&list| lists[list].clone()).collect();
            let numbers = held.iter().map(|&list| list as u32).collect();
            let blocks = Blocks::new((1..=held.len()).collect(), numbers).expect("these fit");
            let search = part_of(&own, blocks, error);
            let walker = search.walker(weights.clone());
            let found = search.axis_breaks(&walker, axis, everywhere);
            for (place, &list) in held.iter().enumerate() {
                let (own, row) = (2 * place..2 * place + 2, 2 * list..2 * list + 2);
                sums[row.clone()].copy_from_slice(&walker.sums()[own.clone()]);
                all.left[row].copy_from_slice(&found.left[own]);
            }
            all.at.extend(found.at);
            all.sentences.extend(found.sentences);
            all.differences.extend(found.differences);
        }
        let here = ERRORS.gain(&fold(&sums, 2));
        prop_assert_eq!(all.best(&ERRORS, &sums, here, everywhere), wanted);
    }
}

#[test]
fn a_step_into_an_interval_without_end_goes_a_tenth_of_the_way_to_its_edge() {
    // The second hypothesis is better, and wins from some step on or up to some step.
    let everywhere = (f64::NEG_INFINITY, f64::INFINITY);
    for (edge, step) in [(2.0, 2.0 + 0.2), (0.05, 0.05 + 0.01)] {
        for sign in [1i8, -1] {
            let search = search_of(&[vec![([0, 0], 5), ([sign, 0], 1)]]);
            let side = f64::from(sign);
            let walker = search.walker(vec![-side * edge, 0.0]);
            let found = search.axis(&walker, 0, everywhere);
            assert!((found.step - side * step).abs() < 1e-12, "{found:?}");
            assert_eq!(found.gain, 0.9);
        }
    }
}

#[test]
fn among_intervals_that_are_as_good_the_nearest_wins() {
    let everywhere = (f64::NEG_INFINITY, f64::INFINITY);
    for (left, right, step) in [(-1, -3, -1.1), (-3, -1, 1.1)] {
        // The outer two are equally good; each wins where the first weight is past its second value.
        let search = search_of(&[vec![([-1, left], 1), ([0, 0], 5), ([1, right], 1)]]);
        let found = search.axis(&search.walker(vec![0.0, 1.0]), 0, everywhere);
        assert!((found.step - step).abs() < 1e-12, "{found:?}");
        assert_eq!(found.gain, 0.9);
        // Where nothing is better, nothing moves.
        let search = search_of(&[vec![([-1, left], 5), ([0, 0], 5), ([1, right], 5)]]);
        let found = search.axis(&search.walker(vec![0.0, 1.0]), 0, everywhere);
        assert_eq!(found.step, 0.0);
    }
}
