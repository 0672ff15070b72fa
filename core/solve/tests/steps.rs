//! Update rules on rows with groups, caps, oracles and kinds: single steps and what they report.

use proptest::prelude::*;
use tunesmith_solve::update::{
    Arow, CuttingPlane, Gradient, Hildreth, PassiveAggressive, Perceptron, Rate,
};
use tunesmith_solve::{Fault, Kind, Loss, Model, Rows, Separate, Stepped, Update};

const FEATURES: usize = 3;

#[derive(Debug, Clone)]
struct Row {
    x: [i8; FEATURES],
    gain: f64,
    kind: Kind,
    group: u32,
    cap: f64,
    oracle: f64,
}

fn row(x: [i8; FEATURES], gain: f64) -> Row {
    Row { x, gain, kind: Kind::Margin, group: 0, cap: f64::NAN, oracle: 1.0 }
}

/// The same rows whatever the weights, with features at these ids.
struct Given<'a>(&'a [Row], [u32; FEATURES]);

const IDS: [u32; FEATURES] = [0, 1, 2];

impl Separate for Given<'_> {
    fn rounds(&self) -> usize {
        1
    }

    fn separate(&mut self, model: &Model, _: usize, rows: &mut Rows) -> Result<(), Fault> {
        rows.clear();
        for row in self.0 {
            rows.open(row.kind, row.group, row.gain, row.cap, row.oracle);
            let mut entries: Vec<(u32, i8)> = self.1.into_iter().zip(row.x).collect();
            entries.sort_unstable();
            entries.into_iter().for_each(|(id, value)| rows.entry(id, f64::from(value), model));
        }
        Ok(())
    }
}

fn step(update: &mut dyn Update, model: &mut Model, rows: &[Row]) -> Stepped {
    update.begin_pass(model, true);
    let stepped = update.step(model, &mut Given(rows, IDS)).expect("rows by hand do not fail");
    update.end_pass(model);
    stepped
}

fn moved(update: &mut dyn Update, w: &[f64], rows: &[Row]) -> Vec<f64> {
    let mut model = Model::new(w.to_vec());
    step(update, &mut model, rows);
    model.weights().iter().zip(w).map(|(new, old)| new - old).collect()
}

fn dot(x: &[i8; FEATURES], weights: &[f64]) -> f64 {
    x.iter().zip(weights).map(|(&value, weight)| f64::from(value) * weight).sum()
}

fn assert_close(found: &[f64], wanted: &[f64]) {
    let close = found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9);
    assert!(close && found.len() == wanted.len(), "{found:?} {wanted:?}");
}

fn hildreth(c: f64, rate: f64, scale_by_oracle: bool) -> Hildreth {
    Hildreth { c, rate, scale_by_oracle, tolerance: 1e-12, sweeps: 3000 }
}

fn planes(c: f64) -> CuttingPlane {
    CuttingPlane { c, epsilon: 1e-9, epsilon_bound: 1e-9, moves: 400, planes: 60 }
}

fn hinge(eta: f64) -> Gradient {
    Gradient::new(Loss::Hinge, Rate::Constant, eta, 0.0, 0.0, FEATURES)
}

#[test]
fn steps_report_their_updates_and_the_loss_before() {
    // The first row is violated by three, the second is met, the third cannot be met at all.
    let rows = [row([1, 0, 0], 2.0), row([0, 1, 0], -1.0), row([0, 0, 0], -2.0)];
    let updates: [(Box<dyn Update>, f64); 6] = [
        (Box::new(PassiveAggressive::new(0.5, 1.0, false)), 3.0),
        (Box::new(hildreth(0.5, 1.0, false)), 3.0),
        (Box::new(planes(0.5)), 3.0),
        (Box::new(Arow::new(0.1, 1.0, 1.0, false, FEATURES)), 3.0),
        (Box::new(hinge(0.5)), 3.0),
        (Box::new(Perceptron::new(0.5)), 1.0),
    ];
    for (mut update, loss) in updates {
        let mut model = Model::new(vec![-1.0, 0.0, 0.0]);
        let seen = step(update.as_mut(), &mut model, &rows);
        assert_eq!((seen.updates, seen.loss), (1, loss));
        assert!(model.weight(0) > -1.0);
        assert_eq!(&model.weights()[1..], [0.0, 0.0]);
    }
}

#[test]
fn the_perceptron_learns_from_ties_and_from_nothing_else() {
    let tie = moved(&mut Perceptron::new(0.5), &[0.0; 3], &[row([1, 0, 2], 1.0)]);
    assert_eq!(tie, [0.5, 0.0, 1.0]);
    for (w, gain) in [([0.5, 0.0, 0.0], 1.0), ([-1.0, 0.0, 0.0], 0.0)] {
        assert_eq!(moved(&mut Perceptron::new(0.5), &w, &[row([1, 0, 2], gain)]), [0.0; 3]);
    }
}

#[test]
fn rates_multiply_steps_and_slowing_down_multiplies_rates() {
    let rows = [row([1, -2, 0], 2.0), row([0, 1, 3], 1.0)];
    let w = [-0.5, 0.25, -1.0];
    let make: [fn(f64) -> Box<dyn Update>; 6] = [
        |rate| Box::new(PassiveAggressive::new(0.01, rate, false)),
        |rate| Box::new(hildreth(0.01, rate, false)),
        |rate| Box::new(Perceptron::new(rate)),
        |rate| Box::new(Arow::new(1e9, 1e6 * rate, 1.0, false, FEATURES)),
        |rate| Box::new(Arow::new(1e9, rate, 1.0, true, FEATURES)),
        |rate| Box::new(hinge(rate)),
    ];
    for make in make {
        let whole = moved(make(0.1).as_mut(), &w, &rows);
        let half: Vec<f64> = whole.iter().map(|step| step / 2.0).collect();
        let mut slow = make(0.1);
        slow.slow_down(0.5);
        for found in [moved(make(0.05).as_mut(), &w, &rows), moved(slow.as_mut(), &w, &rows)] {
            let close = found.iter().zip(&half).all(|(a, b)| (a - b).abs() < 2e-3 * b.abs());
            assert!(close && whole.iter().any(|&step| step != 0.0), "{found:?} {half:?}");
        }
    }
    let mut slow = planes(0.2);
    slow.slow_down(0.5);
    assert_close(&moved(&mut slow, &w, &rows), &moved(&mut planes(0.1), &w, &rows));
}

#[test]
fn caps_of_rows_and_gains_of_the_oracle_shorten_steps() {
    let rows = [Row { cap: 0.05, oracle: 0.25, ..row([2, 0, 0], 9.0) }];
    let one = |update: &mut dyn Update| moved(update, &[0.0; 3], &rows)[0];
    assert_eq!(one(&mut PassiveAggressive::new(0.5, 1.0, false)), 0.1);
    assert_eq!(one(&mut PassiveAggressive::new(0.5, 1.0, true)), 0.025);
    assert_eq!(one(&mut hildreth(0.5, 1.0, false)), 0.1);
    assert_eq!(one(&mut hildreth(0.5, 1.0, true)), 0.025);
    assert_eq!(one(&mut planes(0.5)), 0.1);
}

#[test]
fn arow_is_its_closed_form() {
    let rows = [row([1, -2, 0], 2.0), row([1, 0, 3], 4.0)];
    for linear in [false, true] {
        let (r, rate) = (0.5, 0.75);
        let mut variance = [2.0; FEATURES];
        let mut w = [0.25, 0.5, -1.0];
        let found = moved(&mut Arow::new(r, rate, 2.0, linear, FEATURES), &w, &rows);
        let start = w;
        for row in &rows {
            let loss = row.gain - dot(&row.x, &w);
            let x = row.x.map(f64::from);
            let spread: f64 = x.iter().zip(variance).map(|(x, v)| v * x * x).sum();
            for at in 0..FEATURES {
                let old = variance[at];
                if linear {
                    variance[at] = 1.0 / (1.0 / old + x[at] * x[at] / r);
                    w[at] += rate * variance[at] * x[at];
                } else {
                    variance[at] -= (old * x[at]) * (old * x[at]) / (spread + r);
                    w[at] += rate * loss / (spread + r) * old * x[at];
                }
            }
        }
        assert_close(&found, &[w[0] - start[0], w[1] - start[1], w[2] - start[2]]);
    }
}

#[test]
fn features_that_are_new_shrink_from_then_on() {
    let mut update = Gradient::new(Loss::Hinge, Rate::Constant, 0.1, 0.5, 0.0, FEATURES);
    let mut model = Model::new(vec![0.0; FEATURES]);
    for _ in 0..5 {
        step(&mut update, &mut model, &[]);
    }
    model.rearrange(&IDS, FEATURES + 1);
    update.rearrange(&IDS, FEATURES + 1).expect("no fault");
    // A weight that another learner has found.
    model.set(3, 2.0);
    update.weights_replaced();
    step(&mut update, &mut model, &[]);
    assert_close(model.weights(), &[0.0, 0.0, 0.0, 2.0 - 0.1 * 0.5]);
}

fn some_rows(most: usize) -> impl Strategy<Value = Vec<Row>> {
    let one = ([-3i8..4, -3i8..4, -3i8..4], -2i8..6, 0u32..2, 0u8..3);
    proptest::collection::vec(one, 1..most).prop_map(|rows| {
        let mut rows: Vec<Row> = rows
            .into_iter()
            .map(|(x, gain, group, kind)| {
                let kind = [Kind::Margin, Kind::Upper, Kind::Lower][usize::from(kind)];
                let cap = if kind == Kind::Margin { f64::NAN } else { 0.3 };
                Row { kind, group, cap, ..row(x, f64::from(gain)) }
            })
            .collect();
        rows.sort_by_key(|row| row.group);
        rows
    })
}

fn start() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(-2.0..2.0, FEATURES)
}

/// What shrinks a weight at every step: first towards the anchor, then towards zero.
fn shrunk(weight: f64, size: f64, (l1, l2): (f64, f64), anchor: f64) -> f64 {
    let pulled = anchor + (1.0 - size * l2).max(0.0) * (weight - anchor);
    pulled.signum() * (pulled.abs() - size * l1).max(0.0)
}

/// Each group and kind has one slack: ½‖v - w‖² + Σ price · max(0, worst violation).
fn optimal_after_cutting_planes(rows: &[Row], w: Vec<f64>, c: f64) {
    let mut model = Model::new(w.clone());
    step(&mut planes(c), &mut model, rows);
    let primal = |v: &[f64]| {
        let far: f64 = v.iter().zip(&w).map(|(a, b)| (a - b) * (a - b)).sum();
        let mut sum = 0.5 * far;
        for group in 0..2 {
            for kind in [Kind::Margin, Kind::Upper, Kind::Lower] {
                let same = rows.iter().filter(|row| row.group == group && row.kind == kind);
                let worst = same.map(|row| row.gain - dot(&row.x, v)).fold(0.0, f64::max);
                sum += if kind == Kind::Margin { c } else { 0.3 } * worst;
            }
        }
        sum
    };
    let here = primal(model.weights());
    for direction in 0..27_i32 {
        let unit = [direction % 3 - 1, direction / 3 % 3 - 1, direction / 9 - 1];
        for size in [1e-3, 1e-2, 0.3] {
            let there: Vec<f64> = model
                .weights()
                .iter()
                .zip(unit)
                .map(|(v, side)| v + size * f64::from(side))
                .collect();
            assert!(primal(&there) >= here - 1e-5, "{} {here}", primal(&there));
        }
    }
}

#[test]
fn cutting_planes_move_the_mass_of_rows_with_equal_features() {
    let upper = |x, gain| Row { kind: Kind::Upper, group: 0, cap: 0.3, ..row(x, gain) };
    // The row without features is worth the start's features, and has another target.
    let rows = [upper([0, 0, 0], 1.0), upper([-1, 2, 2], 2.0)];
    let w = vec![0.0, 1.900_686_036_984_037_3, -1.854_435_597_433_518];
    optimal_after_cutting_planes(&rows, w, 0.05);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn cutting_planes_meet_the_conditions_of_an_optimum(
        rows in some_rows(6), w in start(), c in 0.05..1.0,
    ) {
        optimal_after_cutting_planes(&rows, w, c);
    }

    #[test]
    fn lazy_gradient_steps_are_those_that_touch_every_weight(
        batches in proptest::collection::vec(some_rows(4), 1..5), w in start(),
        adagrad: bool, l1 in 0u8..3, l2 in 0u8..3, anchored: bool,
    ) {
        let (l1, l2) = (f64::from(l1) / 20.0, f64::from(l2) / 20.0);
        let anchor = if anchored { [0.5, -0.25, 1.0] } else { [0.0; FEATURES] };
        let rate = if adagrad { Rate::AdaGrad } else { Rate::Constant };
        let mut update = Gradient::new(Loss::Hinge, rate, 0.1, l1, l2, FEATURES);
        if anchored {
            update = update.anchored(anchor.to_vec());
        }
        let mut model = Model::new(w.clone());
        let (mut eager, mut squares) = (w, [0.0; FEATURES]);
        update.begin_pass(&model, true);
        for rows in &batches {
            update.step(&mut model, &mut Given(rows, IDS)).expect("no fault");
            let mut gradient = [0.0; FEATURES];
            for row in rows.iter().filter(|row| row.gain > dot(&row.x, &eager)) {
                gradient.iter_mut().zip(row.x).for_each(|(sum, x)| *sum -= f64::from(x));
            }
            for at in 0..FEATURES {
                squares[at] += gradient[at] * gradient[at];
                let size = match rate {
                    Rate::AdaGrad if squares[at] == 0.0 => 0.0,
                    Rate::AdaGrad => 0.1 / squares[at].sqrt(),
                    _ => 0.1,
                };
                let weight = eager[at] - size * gradient[at];
                eager[at] = shrunk(weight, size, (l1, l2), anchor[at]);
            }
            prop_assert_eq!(update.is_lazy(), l1 > 0.0 || l2 > 0.0);
            update.catch_up(&mut model, &[1]);
            prop_assert!((model.weight(1) - eager[1]).abs() < 1e-9);
        }
        update.end_pass(&mut model);
        prop_assert!(!update.is_lazy());
        assert_close(model.weights(), &eager);
        // Weights that somebody else has set count from then on.
        model.set(0, 7.0);
        update.weights_replaced();
        update.begin_pass(&model, true);
        update.step(&mut model, &mut Given(&[], IDS)).expect("no fault");
        update.end_pass(&mut model);
        let size = match rate {
            Rate::AdaGrad if squares[0] == 0.0 => 0.0,
            Rate::AdaGrad => 0.1 / squares[0].sqrt(),
            _ => 0.1,
        };
        prop_assert!((model.weight(0) - shrunk(7.0, size, (l1, l2), anchor[0])).abs() < 1e-9);
    }

    #[test]
    fn features_that_move_to_other_ids_take_their_state_along(
        first in some_rows(4), second in some_rows(4), w in start(), which in 0usize..3,
    ) {
        let make = || -> Box<dyn Update> {
            match which {
                0 => Box::new(Arow::new(0.5, 1.0, 2.0, false, FEATURES)),
                1 => Box::new(Gradient::new(Loss::Hinge, Rate::AdaGrad, 0.1, 0.1, 0.0, FEATURES)),
                _ => Box::new(
                    Gradient::new(Loss::Hinge, Rate::Constant, 0.1, 0.0, 0.1, FEATURES)
                        .anchored(vec![0.5, -0.25, 1.0]),
                ),
            }
        };
        let places = [4, 0, 2];
        let (mut still, mut moving) = (make(), make());
        let mut model = Model::new(w.clone());
        step(still.as_mut(), &mut model, &first);
        let mut other = Model::new(w);
        step(moving.as_mut(), &mut other, &first);
        other.rearrange(&places, 5);
        moving.rearrange(&places, 5).expect("no fault");
        step(still.as_mut(), &mut model, &second);
        moving.begin_pass(&other, true);
        moving.step(&mut other, &mut Given(&second, places)).expect("no fault");
        moving.end_pass(&mut other);
        for (at, place) in places.into_iter().enumerate() {
            prop_assert!((model.weights()[at] - other.weight(place)).abs() < 1e-9);
        }
        prop_assert_eq!((other.weight(1), other.weight(3)), (0.0, 0.0));
    }
}
