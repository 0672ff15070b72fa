//! Error rate based ultraconservative update (EBUU): the expected error of the lists.

use tunesmith_space::{Block, expect};

use super::{Learnt, Lists, Scaled};

/// `min ½‖W - W_b‖² + λ/K Σ_j Σ_e Err(e) P_α(e | f_j; W)`, `P_α ∝ exp(α W·h)`, `Err = -gain`, by
/// spectral projected gradient (Birgin, Martínez & Raydan 2000) from `W_b`: the objective is not
/// convex, and the minimum next to `W_b` is the one that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Error {
    /// λ
    pub strength: f64,
    /// α
    pub sharpness: f64,
    /// The search ends when no coordinate moves by more than this part of the largest move.
    pub tolerance: f64,
    /// Looks at the lists at most.
    pub passes: usize,
}

/// Steps are shortened as long as they gain less than this part of what the slope promises.
const ARMIJO: f64 = 1e-4;

/// Halvings of a step.
const HALVINGS: usize = 30;

impl Error {
    pub fn learn(&self, lists: &Lists<'_>) -> Learnt {
        let scaled = Scaled::new(lists);
        let mut work = Work::default();
        let features = lists.weights.len();
        let mut moved = vec![0.0; features];
        let mut slope = vec![0.0; features];
        let mut value = self.start(&scaled, &mut slope, &mut work);
        let (mut passes, mut length) = (1, 1.0);
        let mut step = vec![0.0; features];
        let (mut there, mut leaning) = (vec![0.0; features], vec![0.0; features]);
        while passes < self.passes {
            let (mut longest, mut farthest, mut downhill) = (0.0f64, 0.0f64, 0.0);
            for id in 0..features {
                step[id] = scaled.clip(id, moved[id] - length * slope[id]) - moved[id];
                downhill += step[id] * slope[id];
                longest = longest.max(step[id].abs());
                farthest = farthest.max((moved[id] + step[id]).abs());
            }
            if longest <= self.tolerance * farthest || downhill >= 0.0 {
                break;
            }
            let mut part = 1.0;
            let mut found = f64::NAN;
            for _ in 0..HALVINGS {
                for id in 0..features {
                    there[id] = moved[id] + part * step[id];
                }
                found = self.objective(&scaled, &there, &mut leaning, &mut work);
                passes += 1;
                if found <= value + ARMIJO * part * downhill {
                    break;
                }
                part *= 0.5;
            }
            // No part of the step is better than to stay: rounding is all that is left.
            if found.is_nan() || found >= value {
                break;
            }
            let (mut squared, mut bent) = (0.0, 0.0);
            for id in 0..features {
                let went = there[id] - moved[id];
                squared += went * went;
                bent += went * (leaning[id] - slope[id]);
            }
            length = if bent > 0.0 { (squared / bent).clamp(1e-3, 1e3) } else { 1.0 };
            value = found;
            std::mem::swap(&mut moved, &mut there);
            std::mem::swap(&mut slope, &mut leaning);
        }
        Learnt {
            weights: scaled.learnt(&moved),
            spread: scaled.spread,
            objective: value,
            passes,
            gap: f64::NAN,
        }
    }

    /// The objective before any move, and its slope.
    fn start(&self, scaled: &Scaled<'_>, slope: &mut [f64], work: &mut Work) -> f64 {
        slope.fill(0.0);
        let mut expected = 0.0;
        for (list, scores) in scaled.at_start() {
            work.scores.clear();
            work.scores.extend_from_slice(scores);
            expected += self.expected(list, slope, work);
        }
        let moved = vec![0.0; slope.len()];
        self.whole(scaled, expected, &moved, slope)
    }

    /// The objective at a move, and its slope.
    fn objective(
        &self,
        scaled: &Scaled<'_>,
        moved: &[f64],
        slope: &mut [f64],
        work: &mut Work,
    ) -> f64 {
        scaled.weights_at(moved, &mut work.weights);
        slope.fill(0.0);
        let mut expected = 0.0;
        for list in &scaled.filled {
            list.dot(&work.weights, &mut work.room, &mut work.scores);
            expected += self.expected(list, slope, work);
        }
        self.whole(scaled, expected, moved, slope)
    }

    /// The expected gain of a list with the scores of `work`; its slope, with the sign turned, is
    /// added to `slope`.
    fn expected(&self, list: &Block, slope: &mut [f64], work: &mut Work) -> f64 {
        let mean = expect(&mut work.scores, &list.gains, self.sharpness);
        list.weigh(&work.scores, &mut work.room, slope);
        mean
    }

    fn whole(&self, scaled: &Scaled<'_>, expected: f64, moved: &[f64], slope: &mut [f64]) -> f64 {
        let share = scaled.share(self.strength);
        let mut far = 0.0;
        for ((slope, rate), moved) in slope.iter_mut().zip(&scaled.rates).zip(moved) {
            *slope = moved + share * rate * *slope;
            far += moved * moved;
        }
        0.5 * far - share * expected
    }
}

/// Room that every look at the lists uses again.
#[derive(Default)]
struct Work {
    weights: Vec<f64>,
    scores: Vec<f64>,
    room: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tunesmith_space::{Hypothesis, PoolsBuilder};

    use super::*;

    const FEATURES: usize = 3;
    type List = Vec<([i8; FEATURES], u8)>;

    fn blocks_of(lists: &[List]) -> Vec<Block> {
        let mut builder = PoolsBuilder::default();
        let ids: Vec<u32> =
            (0..FEATURES).map(|id| builder.names.intern(&format!("f{id}"))).collect();
        for list in lists {
            builder.sentence(None);
            for (values, _) in list {
                let features: Vec<(u32, f32)> =
                    ids.iter().copied().zip(values.iter().map(|&value| f32::from(value))).collect();
                builder.push(Hypothesis { features: &features, ..Default::default() });
            }
        }
        let pools = builder.finish();
        let gains = |list: &List| list.iter().map(|(_, gain)| f64::from(*gain) / 10.0).collect();
        lists.iter().enumerate().map(|(at, list)| Block::of(&pools, at, gains(list))).collect()
    }

    proptest! {
        #[test]
        fn the_slope_is_that_of_finite_differences(
            lists in prop::collection::vec(
                prop::collection::vec(([-3..4i8, -3..4i8, -3..4i8], 0..11u8), 0..6), 1..5),
            weights in [-2.0..2.0f64, -2.0..2.0, -2.0..2.0],
            at in [-1.0..1.0f64, -1.0..1.0, -1.0..1.0],
            normalise in any::<bool>(),
            sharpness in 0.2..4.0f64,
        ) {
            let blocks = blocks_of(&lists);
            let lists =
                Lists { blocks: &blocks, weights: &weights, bounds: None, normalise };
            let scaled = Scaled::new(&lists);
            let error = Error { strength: 3.0, sharpness, tolerance: 1e-9, passes: 100 };
            let (mut slope, mut other) = (vec![0.0; FEATURES], vec![0.0; FEATURES]);
            let mut work = Work::default();
            error.objective(&scaled, &at, &mut slope, &mut work);
            for id in 0..FEATURES {
                let mut value = |away: f64| {
                    let mut there = at;
                    there[id] += away;
                    error.objective(&scaled, &there, &mut other, &mut work)
                };
                let difference = (value(1e-5) - value(-1e-5)) / 2e-5;
                prop_assert!((difference - slope[id]).abs() < 1e-6 * slope[id].abs().max(1.0));
            }
        }

        #[test]
        fn what_is_found_is_no_worse_than_the_start_and_nearly_flat(
            lists in prop::collection::vec(
                prop::collection::vec(([-3..4i8, -3..4i8, -3..4i8], 0..11u8), 0..6), 1..5),
            weights in [-2.0..2.0f64, -2.0..2.0, -2.0..2.0],
        ) {
            let blocks = blocks_of(&lists);
            let lists = Lists {
                blocks: &blocks, weights: &weights, bounds: None, normalise: false,
            };
            let error = Error { strength: 0.5, sharpness: 2.0, tolerance: 1e-9, passes: 500 };
            let learnt = error.learn(&lists);
            let scaled = Scaled::new(&lists);
            let (mut slope, mut work) = (vec![0.0; FEATURES], Work::default());
            let start = error.start(&scaled, &mut slope, &mut work);
            let mut same = vec![0.0; FEATURES];
            let again = error.objective(&scaled, &[0.0; FEATURES], &mut same, &mut work);
            prop_assert!((again - start).abs() < 1e-9);
            prop_assert!(same.iter().zip(&slope).all(|(one, other)| (one - other).abs() < 1e-9));
            prop_assert!(learnt.objective <= start);
            let moved: Vec<f64> = learnt.weights.iter().zip(&weights)
                .map(|(new, old)| (new - old) / learnt.spread).collect();
            error.objective(&scaled, &moved, &mut slope, &mut work);
            prop_assert!(slope.iter().all(|slope| slope.abs() < 1e-5), "{:?}", slope);
        }
    }
}
