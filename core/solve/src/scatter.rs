//! Sparse sums: a dense scratch vector that remembers what was touched.

/// Adds up entries by id and gives them back as pairs, leaving itself empty again.
#[derive(Debug, Clone)]
pub struct Scatter {
    sums: Vec<f64>,
    touched: Vec<u32>,
}

impl Scatter {
    pub fn new(features: usize) -> Self {
        Scatter { sums: vec![0.0; features], touched: Vec::new() }
    }

    /// Adds to the sum of an id; ids past the end are nobody's.
    pub fn add(&mut self, id: u32, value: f64) {
        let Some(sum) = self.sums.get_mut(id as usize) else { return };
        if *sum == 0.0 {
            self.touched.push(id);
        }
        *sum += value;
    }

    /// The sums that are not zero, in the order in which their ids came.
    pub fn drain(&mut self) -> impl Iterator<Item = (u32, f64)> + '_ {
        // A sum that cancelled on the way is listed twice; its second turn finds nothing.
        let sums = &mut self.sums;
        self.touched.drain(..).filter_map(|id| {
            let sum = std::mem::take(&mut sums[id as usize]);
            (sum != 0.0).then_some((id, sum))
        })
    }
}
