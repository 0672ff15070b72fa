//! The weights while they are being learnt: bounds, fixed coordinates, running average.

/// Weights under constraint. Every change goes through [`set`](Self::set), so that bounds hold
/// and the average stays exact at the cost of the touched coordinates only.
#[derive(Debug, Clone)]
pub struct Model {
    weights: Vec<f64>,
    /// Sum over changes of (steps made before it) × (change): what the average lacks.
    lag: Vec<f64>,
    steps: u64,
    averaged: bool,
    /// Steps that change nothing do not enter the average.
    skips_idle: bool,
    /// What changes of each coordinate are multiplied by; empty where all are 1.
    paces: Vec<f64>,
    /// Per coordinate, or empty where nothing is bounded.
    lower: Vec<f64>,
    upper: Vec<f64>,
}

impl Model {
    pub fn new(weights: Vec<f64>) -> Self {
        let lag = vec![0.0; weights.len()];
        let (lower, upper) = (Vec::new(), Vec::new());
        Model {
            weights,
            lag,
            steps: 0,
            averaged: true,
            skips_idle: false,
            paces: Vec::new(),
            lower,
            upper,
        }
    }

    /// Averages over the steps that changed something only.
    pub fn skipping_idle_steps(mut self) -> Self {
        self.skips_idle = true;
        self
    }

    pub fn skips_idle_steps(&self) -> bool {
        self.skips_idle
    }

    /// Measures each feature in a unit of its own: with features `x_j / u_j` and weights `w_j u_j`,
    /// a step along x moves `w_j` by `x_j / u_j²`. The paces are `1 / u_j²`; a feature that comes
    /// later has a unit of 1.
    pub fn paced(mut self, paces: Vec<f64>) -> Self {
        assert_eq!(paces.len(), self.weights.len());
        self.paces = paces;
        self
    }

    fn pace(&self, id: u32) -> f64 {
        self.paces.get(id as usize).copied().unwrap_or(1.0)
    }

    /// The squared length of a difference of features, each in its unit.
    pub fn norm2(&self, ids: &[u32], values: &[f64]) -> f64 {
        if self.paces.is_empty() {
            return values.iter().map(|value| value * value).sum();
        }
        ids.iter().zip(values).map(|(&id, value)| self.pace(id) * value * value).sum()
    }

    /// The direction in which a step along x goes.
    pub fn along(&self, ids: &[u32], values: &[f64]) -> Vec<f64> {
        ids.iter().zip(values).map(|(&id, value)| self.pace(id) * value).collect()
    }

    /// Keeps no average: one array less to touch. [`average`](Self::average) is then the weights.
    pub fn without_average(mut self) -> Self {
        self.averaged = false;
        self
    }

    /// Bounds for every coordinate; equal ones fix a weight.
    pub fn bounded(mut self, lower: Vec<f64>, upper: Vec<f64>) -> Self {
        assert!(lower.len() == self.weights.len() && upper.len() == self.weights.len());
        for ((weight, low), high) in self.weights.iter_mut().zip(&lower).zip(&upper) {
            *weight = weight.clamp(*low, *high);
        }
        self.lower = lower;
        self.upper = upper;
        self
    }

    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    pub fn weight(&self, id: u32) -> f64 {
        self.weights[id as usize]
    }

    pub fn is_fixed(&self, id: u32) -> bool {
        let id = id as usize;
        !self.lower.is_empty() && self.lower[id] == self.upper[id]
    }

    pub fn dot(&self, ids: &[u32], values: &[f64]) -> f64 {
        ids.iter().zip(values).map(|(&id, &value)| self.weights[id as usize] * value).sum()
    }

    pub fn is_averaged(&self) -> bool {
        self.averaged
    }

    /// The nearest weight that the bounds allow.
    pub fn within_bounds(&self, id: u32, weight: f64) -> f64 {
        let id = id as usize;
        match self.lower.get(id) {
            Some(&low) => weight.clamp(low, self.upper[id]),
            None => weight,
        }
    }

    /// Sets a weight, kept within its bounds.
    pub fn set(&mut self, id: u32, weight: f64) {
        let new = self.within_bounds(id, weight);
        let id = id as usize;
        if self.averaged {
            self.lag[id] += self.steps as f64 * (new - self.weights[id]);
        }
        self.weights[id] = new;
    }

    /// `w += scale · x`, x at the pace of each coordinate.
    pub fn add(&mut self, ids: &[u32], values: &[f64], scale: f64) {
        for (&id, &value) in ids.iter().zip(values) {
            self.set(id, self.weights[id as usize] + scale * (self.pace(id) * value));
        }
    }

    /// Ends a step: the weights as they stand enter the average once.
    pub fn end_step(&mut self) {
        self.steps += 1;
    }

    /// Mean of the weights after each step since [`restart_average`](Self::restart_average).
    pub fn average(&self) -> Vec<f64> {
        if self.steps == 0 || !self.averaged {
            return self.weights.clone();
        }
        let steps = self.steps as f64;
        self.weights.iter().zip(&self.lag).map(|(weight, lag)| weight - lag / steps).collect()
    }

    /// Gives weight `i` the id `places[i]` among `features`; ids that nobody has are new, with
    /// weight zero and without bounds.
    pub fn rearrange(&mut self, places: &[u32], features: usize) {
        rearrange(&mut self.weights, places, features, 0.0);
        rearrange(&mut self.lag, places, features, 0.0);
        if !self.paces.is_empty() {
            rearrange(&mut self.paces, places, features, 1.0);
        }
        if !self.lower.is_empty() {
            rearrange(&mut self.lower, places, features, f64::NEG_INFINITY);
            rearrange(&mut self.upper, places, features, f64::INFINITY);
        }
    }

    /// Makes room for features that are new: weight zero, without bounds.
    pub fn grow(&mut self, features: usize) {
        debug_assert!(features >= self.weights.len());
        self.weights.resize(features, 0.0);
        self.lag.resize(features, 0.0);
        if !self.paces.is_empty() {
            self.paces.resize(features, 1.0);
        }
        if !self.lower.is_empty() {
            self.lower.resize(features, f64::NEG_INFINITY);
            self.upper.resize(features, f64::INFINITY);
        }
    }

    /// Forgets the features from `features` on.
    pub fn truncate(&mut self, features: usize) {
        self.weights.truncate(features);
        self.lag.truncate(features);
        self.paces.truncate(features);
        self.lower.truncate(features);
        self.upper.truncate(features);
    }

    pub fn restart_average(&mut self) {
        self.lag.fill(0.0);
        self.steps = 0;
    }

    /// What a checkpoint needs to go on with the average: the lag and the number of steps.
    pub fn average_state(&self) -> (&[f64], u64) {
        (&self.lag, self.steps)
    }

    pub fn restore_average(&mut self, lag: Vec<f64>, steps: u64) {
        assert_eq!(lag.len(), self.weights.len());
        self.lag = lag;
        self.steps = steps;
    }
}

/// Moves entry `i` to `places[i]` among `length`; entries that nobody takes are `new`.
pub fn rearrange<T: Clone>(entries: &mut Vec<T>, places: &[u32], length: usize, new: T) {
    assert_eq!(entries.len(), places.len());
    if places.iter().enumerate().all(|(old, &place)| old as u32 == place) {
        entries.resize(length, new);
        return;
    }
    let mut moved = vec![new; length];
    for (entry, &place) in entries.drain(..).zip(places) {
        moved[place as usize] = entry;
    }
    *entries = moved;
}

#[cfg(test)]
mod tests {
    use super::Model;

    #[test]
    fn rearranged_weights_keep_their_average_and_bounds() {
        let mut model = Model::new(vec![1.0, 2.0]).bounded(vec![0.0, 0.0], vec![1.0, 9.0]);
        model.add(&[1], &[1.0], 1.0);
        model.end_step();
        model.rearrange(&[2, 0], 4);
        assert_eq!(model.weights(), [3.0, 0.0, 1.0, 0.0]);
        model.add(&[1, 2], &[4.0, 1.0], 1.0);
        model.end_step();
        assert_eq!(model.weights(), [3.0, 4.0, 1.0, 0.0]);
        assert_eq!(model.average(), [3.0, 2.0, 1.0, 0.0]);
    }

    #[test]
    fn a_grown_model_averages_what_is_new_from_the_first_step() {
        let mut model = Model::new(vec![1.0]).bounded(vec![0.0], vec![1.0]);
        model.end_step();
        model.grow(2);
        model.add(&[0, 1], &[1.0, 3.0], 1.0);
        model.end_step();
        assert_eq!(model.weights(), [1.0, 3.0]);
        assert_eq!(model.average(), [1.0, 1.5]);
    }

    #[test]
    fn the_lazy_average_is_the_mean_of_the_weights_after_each_step() {
        let mut model = Model::new(vec![1.0, 0.0]);
        let mut sum = [0.0, 0.0];
        for step in 0..5 {
            if step % 2 == 0 {
                model.add(&[1], &[1.0], f64::from(step));
            }
            model.end_step();
            sum[0] += model.weights()[0];
            sum[1] += model.weights()[1];
        }
        let average = model.average();
        assert!((average[0] - sum[0] / 5.0).abs() < 1e-12);
        assert!((average[1] - sum[1] / 5.0).abs() < 1e-12);
    }

    #[test]
    fn a_restored_average_goes_on_and_a_restarted_one_forgets() {
        let mut model = Model::new(vec![0.0; 2]);
        for step in 1..4 {
            model.add(&[0], &[1.0], f64::from(step));
            model.end_step();
        }
        assert!(model.is_averaged());
        assert_eq!(model.average(), [10.0 / 3.0, 0.0]);
        let (lag, steps) = model.average_state();
        let mut other = Model::new(model.weights().to_vec());
        other.restore_average(lag.to_vec(), steps);
        for each in [&mut model, &mut other] {
            each.add(&[1], &[1.0], 4.0);
            each.end_step();
            assert_eq!(each.average(), [4.0, 1.0]);
        }
        model.restart_average();
        assert_eq!(model.average(), [6.0, 4.0]);
        model.add(&[0], &[1.0], 1.0);
        model.end_step();
        assert_eq!(model.average(), [7.0, 4.0]);
    }

    #[test]
    fn without_an_average_there_are_only_the_weights() {
        let mut model = Model::new(vec![1.0]).without_average();
        model.end_step();
        model.add(&[0], &[1.0], 1.0);
        model.end_step();
        assert!(!model.is_averaged());
        assert_eq!(model.average(), [2.0]);
        assert_eq!(model.average_state().0, [0.0]);
    }

    #[test]
    fn bounds_hold_and_equal_bounds_fix() {
        let mut model = Model::new(vec![0.5, 2.0]).bounded(vec![0.0, 1.0], vec![1.0, 1.0]);
        assert!(model.is_fixed(1) && !model.is_fixed(0));
        model.add(&[0, 1], &[1.0, 1.0], 10.0);
        assert_eq!(model.weights(), [1.0, 1.0]);
    }
}
