//! Sparse rows: ids and values of features.

/// Rows of (id, value), ids in ascending order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    ends: Vec<u32>,
    ids: Vec<u32>,
    values: Vec<f32>,
}

impl Rows {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn range(&self, row: usize) -> std::ops::Range<usize> {
        let start = row.checked_sub(1).map_or(0, |last| self.ends[last]);
        start as usize..self.ends[row] as usize
    }

    pub fn get(&self, row: usize) -> (&[u32], &[f32]) {
        let range = self.range(row);
        (&self.ids[range.clone()], &self.values[range])
    }

    /// Adds a row; ids must be distinct, zeros are left out.
    pub fn push(&mut self, entries: impl IntoIterator<Item = (u32, f32)>) {
        let start = self.ids.len();
        for (id, value) in entries {
            if value != 0.0 {
                self.ids.push(id);
                self.values.push(value);
            }
        }
        self.ends.push(self.ids.len() as u32);
        self.sort(start..self.ids.len());
    }

    fn sort(&mut self, range: std::ops::Range<usize>) {
        if self.ids[range.clone()].is_sorted() {
            return;
        }
        let (ids, values) = (&mut self.ids[range.clone()], &mut self.values[range]);
        let mut pairs: Vec<(u32, f32)> = ids.iter().copied().zip(values.iter().copied()).collect();
        pairs.sort_unstable_by_key(|&(id, _)| id);
        for ((id, value), pair) in ids.iter_mut().zip(values).zip(pairs) {
            (*id, *value) = pair;
        }
    }

    /// The product of a row with weights; ids past their end weigh nothing.
    pub fn dot(&self, row: usize, weights: &[f64]) -> f64 {
        let (ids, values) = self.get(row);
        let product = |(&id, &value): (&u32, &f32)| {
            weights.get(id as usize).copied().unwrap_or(0.0) * f64::from(value)
        };
        ids.iter().zip(values).map(product).sum()
    }

    /// Gives every feature the id that `map` has for it.
    pub fn rename(&mut self, map: &[u32]) {
        self.ids.iter_mut().for_each(|id| *id = map[*id as usize]);
        for row in 0..self.len() {
            self.sort(self.range(row));
        }
    }

    pub fn heap_bytes(&self) -> usize {
        (self.ends.capacity() + self.ids.capacity() + self.values.capacity()) * 4
    }
}
