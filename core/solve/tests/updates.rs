//! Update rules on rows given by hand: what a step promises about the constraints.

use proptest::prelude::*;
use tunesmith_solve::update::{
    Arow, CuttingPlane, Gradient, Hildreth, PassiveAggressive, Perceptron, Rate,
};
use tunesmith_solve::{Fault, Kind, Loss, Model, Rows, Separate, Update};

const FEATURES: usize = 3;

/// (x, gain) of each row.
type Given = Vec<([i8; FEATURES], i8)>;

/// The same rows whatever the weights.
struct Fixed(Given);

impl Separate for Fixed {
    fn rounds(&self) -> usize {
        1
    }

    fn separate(&mut self, model: &Model, _: usize, rows: &mut Rows) -> Result<(), Fault> {
        rows.clear();
        for (x, gain) in &self.0 {
            rows.open(Kind::Margin, 0, f64::from(*gain), f64::NAN, 1.0);
            for (id, &value) in (0..).zip(x) {
                rows.entry(id, f64::from(value), model);
            }
        }
        Ok(())
    }
}

fn step(update: &mut dyn Update, weights: &[f64], given: &Given) -> Vec<f64> {
    let mut model = Model::new(weights.to_vec());
    update.begin_pass(&model, true);
    update.step(&mut model, &mut Fixed(given.clone())).expect("rows by hand do not fail");
    model.weights().to_vec()
}

fn dot(x: &[i8; FEATURES], weights: &[f64]) -> f64 {
    x.iter().zip(weights).map(|(&value, weight)| f64::from(value) * weight).sum()
}

fn close(left: &[f64], right: &[f64], tolerance: f64) -> bool {
    left.iter().zip(right).all(|(a, b)| (a - b).abs() <= tolerance)
}

fn row() -> impl Strategy<Value = ([i8; FEATURES], i8)> {
    ([-3i8..4, -3i8..4, -3i8..4], -2i8..6)
}

fn start() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(-2.0..2.0, FEATURES)
}

fn hildreth(c: f64) -> Hildreth {
    Hildreth { c, rate: 1.0, scale_by_oracle: false, tolerance: 1e-12, sweeps: 3000 }
}

fn plane(c: f64) -> CuttingPlane {
    CuttingPlane { c, epsilon: 0.0, epsilon_bound: 0.0, moves: 1000, planes: 1 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn one_row_is_one_step_for_all_margin_updates(given in row(), w in start(), c in 0.001..2.0) {
        let given = vec![given];
        let closed = step(&mut PassiveAggressive::new(c, 1.0, false), &w, &given);
        prop_assert!(close(&closed, &step(&mut hildreth(c), &w, &given), 1e-12));
        prop_assert!(close(&closed, &step(&mut plane(c), &w, &given), 1e-12));
        // The smallest change: the row is met exactly, or the cap is reached, or nothing moved.
        let (x, gain) = &given[0];
        let norm2 = dot(x, &x.map(f64::from));
        let loss = f64::from(*gain) - dot(x, &w);
        if loss <= 0.0 || norm2 == 0.0 {
            prop_assert_eq!(closed, w);
        } else if loss / norm2 <= c {
            prop_assert!((dot(x, &closed) - f64::from(*gain)).abs() < 1e-9);
        } else {
            let capped: Vec<f64> = w.iter().zip(x).map(|(w, &x)| w + c * f64::from(x)).collect();
            prop_assert!(close(&closed, &capped, 1e-12));
        }
    }

    #[test]
    fn hildreth_meets_the_conditions_of_an_optimum(
        given in proptest::collection::vec(row(), 1..5), w in start(), c in 0.01..1.0,
    ) {
        // The change is a sum of rows with weights in [0, C]; a row below its target has all of C
        // at the optimum, one above it none. Checked through the primal: no step in any direction
        // makes ½‖v - w‖² + C Σξ smaller.
        let v = step(&mut hildreth(c), &w, &given);
        let primal = |v: &[f64]| {
            let far: f64 = v.iter().zip(&w).map(|(a, b)| (a - b) * (a - b)).sum();
            let slack: f64 =
                given.iter().map(|(x, gain)| (f64::from(*gain) - dot(x, v)).max(0.0)).sum();
            0.5 * far + c * slack
        };
        let here = primal(&v);
        for direction in 0..27_i32 {
            let unit = [direction % 3 - 1, direction / 3 % 3 - 1, direction / 9 - 1];
            for size in [1e-4, 1e-2, 0.3] {
                let moved: Vec<f64> =
                    v.iter().zip(unit).map(|(v, side)| v + size * f64::from(side)).collect();
                prop_assert!(primal(&moved) >= here - 1e-7);
            }
        }
    }

    #[test]
    fn fixed_weights_do_not_move_and_others_make_up_for_them(
        given in proptest::collection::vec(row(), 1..4), w in start(), low in -1.0..0.0,
    ) {
        let updates: Vec<Box<dyn Update>> = vec![
            Box::new(PassiveAggressive::new(0.5, 1.0, false)),
            Box::new(hildreth(0.5)),
            Box::new(CuttingPlane { planes: 20, moves: 50, ..plane(0.5) }),
            Box::new(Perceptron::new(0.5)),
            Box::new(Arow::new(0.1, 1.0, 1.0, false, FEATURES)),
            Box::new(Arow::new(0.1, 1.0, 1.0, true, FEATURES)),
            Box::new(Gradient::new(Loss::Hinge, Rate::AdaGrad, 0.5, 0.1, 0.0, FEATURES)),
            Box::new(Gradient::new(Loss::Softmax, Rate::Constant, 0.5, 0.0, 0.1, FEATURES)),
        ];
        for mut update in updates {
            let mut model = Model::new(w.clone())
                .bounded(vec![0.25, low, f64::NEG_INFINITY], vec![0.25, low + 1.5, f64::INFINITY]);
            for _ in 0..3 {
                update.begin_pass(&model, true);
                update.step(&mut model, &mut Fixed(given.clone())).expect("no fault");
                update.end_pass(&mut model);
                prop_assert_eq!(model.weight(0), 0.25);
                prop_assert!((low..=low + 1.5).contains(&model.weight(1)));
                prop_assert!(model.weight(2).is_finite());
            }
        }
        // A hard constraint is met by the free weights alone.
        let (x, gain) = given[0];
        if x[2] != 0 {
            let mut model = Model::new(w.clone()).bounded(
                vec![0.25, -0.5, f64::NEG_INFINITY], vec![0.25, -0.5, f64::INFINITY]);
            let mut update = PassiveAggressive::new(f64::INFINITY, 1.0, false);
            update.step(&mut model, &mut Fixed(vec![(x, gain)])).expect("no fault");
            prop_assert!(dot(&x, model.weights()) >= f64::from(gain) - 1e-9);
        }
    }

    #[test]
    fn saved_state_goes_on_as_if_nothing_had_happened(
        first in proptest::collection::vec(row(), 1..4),
        second in proptest::collection::vec(row(), 1..4),
        w in start(),
    ) {
        let make: [fn() -> Box<dyn Update>; 5] = [
            || Box::new(PassiveAggressive::new(0.5, 1.0, false)),
            || Box::new(Arow::new(0.1, 1.0, 1.0, false, FEATURES)),
            || Box::new(Gradient::new(Loss::Logistic, Rate::AdaGrad, 0.5, 0.05, 0.1, FEATURES)),
            || Box::new(Gradient::new(Loss::Logistic, Rate::Decreasing, 0.5, 0.05, 0.0, FEATURES)),
            || Box::new(Perceptron::new(0.1)),
        ];
        for make in make {
            let mut whole = make();
            let mut model = Model::new(w.clone());
            whole.begin_pass(&model, true);
            whole.step(&mut model, &mut Fixed(first.clone())).expect("no fault");
            whole.end_pass(&mut model);
            let mut restored = make();
            prop_assert!(restored.restore(&whole.state()));
            let mut other = model.clone();
            whole.begin_pass(&model, true);
            restored.begin_pass(&other, false);
            whole.step(&mut model, &mut Fixed(second.clone())).expect("no fault");
            restored.step(&mut other, &mut Fixed(second.clone())).expect("no fault");
            whole.end_pass(&mut model);
            restored.end_pass(&mut other);
            prop_assert_eq!(model.weights(), other.weights());
            prop_assert_eq!(whole.state(), restored.state());
        }
    }

    #[test]
    fn the_average_is_the_mean_of_the_weights_after_each_step(
        steps in proptest::collection::vec(proptest::collection::vec(row(), 0..3), 1..6),
        w in start(),
    ) {
        let mut update = PassiveAggressive::new(0.3, 1.0, false);
        let mut model = Model::new(w);
        let mut sum = [0.0; FEATURES];
        for given in &steps {
            update.step(&mut model, &mut Fixed(given.clone())).expect("no fault");
            model.end_step();
            sum.iter_mut().zip(model.weights()).for_each(|(sum, weight)| *sum += weight);
        }
        let mean = sum.map(|sum| sum / steps.len() as f64);
        prop_assert!(close(&model.average(), &mean, 1e-12));
    }
}

#[test]
fn state_of_another_size_is_refused() {
    assert!(!Arow::new(0.1, 1.0, 1.0, false, 3).restore(&[1.0; 2]));
    assert!(!Gradient::new(Loss::Hinge, Rate::AdaGrad, 0.1, 0.0, 0.0, 3).restore(&[1.0; 3]));
    assert!(!Perceptron::new(0.1).restore(&[1.0]));
}
