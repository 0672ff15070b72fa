//! One list column by column, for learners that look at a few lists many times. The values may stay
//! where they lie, in a file that is mapped.

use std::fmt;
use std::sync::Arc;

use crate::Pools;
use crate::dense;

/// Bytes that several lists may lie in.
pub type Bytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A list of hypotheses with features and gains.
pub struct Block {
    /// What each hypothesis is worth.
    pub gains: Vec<f64>,
    /// Features that all hypotheses have, each with the number of its column.
    columns: Vec<(u32, u32)>,
    bytes: Bytes,
    /// Where the columns begin in the bytes: numbers of 32 bits, little-endian.
    start: usize,
    /// Further features of some hypotheses.
    sparse: Sparse,
}

impl fmt::Debug for Block {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Block of {} hypotheses, {} columns", self.len(), self.columns.len())
    }
}

/// Features that not all hypotheses have, hypothesis by hypothesis. No feature has a column, too.
#[derive(Debug, Default)]
pub struct Sparse {
    /// The end of each hypothesis; empty if there are none.
    pub ends: Vec<usize>,
    pub ids: Vec<u32>,
    pub values: Vec<f32>,
}

impl Sparse {
    fn of(&self, hypothesis: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        let end = self.ends.get(hypothesis).copied().unwrap_or(0);
        let start = if hypothesis == 0 || end == 0 { 0 } else { self.ends[hypothesis - 1] };
        let values = self.values[start..end].iter().map(|&value| f64::from(value));
        self.ids[start..end].iter().copied().zip(values)
    }
}

impl Block {
    /// A list whose columns begin at a place in some bytes. Panics if they are not all there.
    pub fn new(
        gains: Vec<f64>,
        columns: Vec<(u32, u32)>,
        bytes: Bytes,
        start: usize,
        sparse: Sparse,
    ) -> Block {
        let end = columns.iter().map(|&(_, at)| at as usize + 1).max().unwrap_or(0);
        assert!((*bytes).as_ref().len() >= start + 4 * gains.len() * end);
        assert!(sparse.ends.is_empty() || sparse.ends.len() == gains.len());
        assert!(sparse.ids.len() == sparse.values.len());
        Block { gains, columns, bytes, start, sparse }
    }

    /// A copy of a list of `pools`.
    pub fn of(pools: &Pools, list: usize, gains: Vec<f64>) -> Block {
        let range = pools.list(list);
        let (mut columns, mut bytes, mut sparse) = (Vec::new(), Vec::new(), Sparse::default());
        if pools.uniform(list) && !range.is_empty() {
            for (at, &id) in pools.features(range.start).0.iter().enumerate() {
                let values = range.clone().map(|one| pools.features(one).1[at]);
                bytes.extend(values.flat_map(f32::to_le_bytes));
                columns.push((id, at as u32));
            }
        } else {
            for hypothesis in range {
                let (ids, values) = pools.features(hypothesis);
                sparse.ids.extend_from_slice(ids);
                sparse.values.extend_from_slice(values);
                sparse.ends.push(sparse.ids.len());
            }
        }
        Block::new(gains, columns, Arc::new(bytes), 0, sparse)
    }

    /// The number of hypotheses.
    pub fn len(&self) -> usize {
        self.gains.len()
    }

    pub fn is_empty(&self) -> bool {
        self.gains.is_empty()
    }

    fn values(&self) -> &[[u8; 4]] {
        (*self.bytes).as_ref()[self.start..].as_chunks().0
    }

    /// The features that have columns, with these.
    fn dense(&self) -> impl Iterator<Item = (u32, &[[u8; 4]])> {
        let (values, height) = (self.values(), self.len());
        self.columns.iter().map(move |&(id, at)| (id, &values[at as usize * height..][..height]))
    }

    /// Scores of the hypotheses. Ids past the end of `weights` weigh nothing.
    pub fn dot(&self, weights: &[f64], room: &mut Vec<f64>, out: &mut Vec<f64>) {
        let weight = |id: u32| weights.get(id as usize).copied().unwrap_or(0.0);
        room.clear();
        room.extend(self.columns.iter().map(|&(id, _)| weight(id)));
        out.clear();
        out.resize(self.len(), 0.0);
        dense::combine(self.values(), &self.columns, room, out);
        for (hypothesis, score) in out.iter_mut().enumerate().take(self.sparse.ends.len()) {
            let sum = self.sparse.of(hypothesis).map(|(id, value)| weight(id) * value);
            *score += sum.sum::<f64>();
        }
    }

    /// Adds the features of the hypotheses, each times its factor, to `sums`, by id.
    pub fn weigh(&self, factors: &[f64], room: &mut Vec<f64>, sums: &mut [f64]) {
        room.clear();
        room.resize(self.columns.len(), 0.0);
        dense::weigh_columns(self.values(), &self.columns, factors, room);
        self.columns.iter().zip(&*room).for_each(|(&(id, _), sum)| sums[id as usize] += sum);
        for (hypothesis, &factor) in factors.iter().enumerate().take(self.sparse.ends.len()) {
            self.sparse.of(hypothesis).for_each(|(id, value)| sums[id as usize] += factor * value);
        }
    }

    /// What a hypothesis has more of each feature than another, by ascending id, zeros left out.
    pub fn difference(&self, one: usize, other: usize) -> Vec<(u32, f64)> {
        let value = |bytes: [u8; 4]| f64::from(f32::from_le_bytes(bytes));
        let dense = self.dense();
        let mut found: Vec<(u32, f64)> =
            dense.map(|(id, column)| (id, value(column[one]) - value(column[other]))).collect();
        found.extend(self.sparse.of(one));
        found.extend(self.sparse.of(other).map(|(id, value)| (id, -value)));
        found.sort_by_key(|&(id, _)| id);
        found.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                first.1 += later.1;
            }
            same
        });
        found.retain(|&(_, value)| value != 0.0);
        found
    }

    /// Shows the variance of each feature that varies.
    pub fn variances(&self, mut show: impl FnMut(u32, f64)) {
        let count = self.len() as f64;
        // Around one of the values, so that large ones do not cancel out.
        let mut tell = |id: u32, missing: f64, values: &mut dyn Iterator<Item = f64>| {
            let Some(first) = values.next() else { return };
            let (mut sum, mut squares) = (-missing * first, missing * first * first);
            for value in values {
                sum += value - first;
                squares += (value - first) * (value - first);
            }
            let variance = squares / count - (sum / count) * (sum / count);
            if variance > 1e-13 * squares {
                show(id, variance);
            }
        };
        for (id, column) in self.dense() {
            tell(id, 0.0, &mut column.iter().map(|&bytes| f64::from(f32::from_le_bytes(bytes))));
        }
        let mut all: Vec<(u32, f32)> =
            self.sparse.ids.iter().copied().zip(self.sparse.values.iter().copied()).collect();
        all.sort_by_key(|&(id, _)| id);
        for same in all.chunk_by(|one, other| one.0 == other.0) {
            let missing = count - same.len() as f64;
            tell(same[0].0, missing, &mut same.iter().map(|&(_, value)| f64::from(value)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Hypothesis, PoolsBuilder};

    const FEATURES: usize = 6;

    /// A list with some of the features in each row.
    fn list(rows: &[Vec<Option<i8>>]) -> Pools {
        let mut builder = PoolsBuilder::default();
        let ids: Vec<u32> =
            (0..FEATURES).map(|id| builder.names.intern(&format!("f{id}"))).collect();
        builder.sentence(None);
        for row in rows {
            let features: Vec<(u32, f32)> = ids
                .iter()
                .zip(row)
                .filter_map(|(&id, value)| Some((id, f32::from((*value)?) / 3.0)))
                .collect();
            builder.push(Hypothesis { features: &features, ..Default::default() });
        }
        builder.finish()
    }

    /// The same list with columns for the features that all have, among other bytes.
    fn divided(pools: &Pools) -> Block {
        let range = pools.list(0);
        let value = |one: usize, id: u32| {
            let (ids, values) = pools.features(one);
            ids.iter().position(|&other| other == id).map(|at| values[at])
        };
        let (common, others): (Vec<u32>, Vec<u32>) =
            (0..FEATURES as u32).partition(|&id| range.clone().all(|one| value(one, id).is_some()));
        let mut bytes = vec![7; 3];
        for &id in &common {
            let column = range.clone().filter_map(|one| value(one, id));
            bytes.extend(column.flat_map(f32::to_le_bytes));
        }
        bytes.push(9);
        let mut sparse = Sparse::default();
        for one in range.clone() {
            for &id in &others {
                if let Some(value) = value(one, id) {
                    sparse.ids.push(id);
                    sparse.values.push(value);
                }
            }
            sparse.ends.push(sparse.ids.len());
        }
        // In another order.
        let columns = common.iter().enumerate().map(|(at, &id)| (id, at as u32)).rev().collect();
        Block::new(vec![0.0; range.len()], columns, Arc::new(bytes), 3, sparse)
    }

    fn near(one: &[f64], other: &[f64]) -> bool {
        one.len() == other.len()
            && one.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-9 * (1.0 + a.abs()))
    }

    proptest! {
        #[test]
        fn a_block_is_the_list_that_it_is_made_of(
            rows in prop::collection::vec(
                prop::collection::vec(prop::option::weighted(0.8, -9..9i8), FEATURES), 1..30),
            weights in prop::collection::vec(-2.0..2.0f64, FEATURES),
            factors in prop::collection::vec(-2.0..2.0f64, 30),
            full in any::<bool>(),
        ) {
            let rows: Vec<Vec<Option<i8>>> = rows.into_iter()
                .map(|row| row.into_iter().map(|v| v.or(full.then_some(1))).collect()).collect();
            let pools = list(&rows);
            let factors = &factors[..rows.len()];
            let mut wanted = (Vec::new(), vec![0.0; FEATURES]);
            pools.dot(0, &weights, &mut wanted.0);
            pools.weigh(0, factors, &mut wanted.1);
            for block in [Block::of(&pools, 0, vec![0.0; rows.len()]), divided(&pools)] {
                let (mut room, mut scores, mut sums) = (Vec::new(), Vec::new(), vec![0.0; FEATURES]);
                block.dot(&weights, &mut room, &mut scores);
                block.weigh(factors, &mut room, &mut sums);
                prop_assert!(near(&scores, &wanted.0), "{:?} {:?}", scores, wanted.0);
                prop_assert!(near(&sums, &wanted.1), "{:?} {:?}", sums, wanted.1);
                let value = |row: &[Option<i8>], id: usize| {
                    row[id].map_or(0.0, |value| f64::from(f32::from(value) / 3.0))
                };
                let last = rows.len() - 1;
                let mut difference = vec![0.0; FEATURES];
                let found = block.difference(0, last);
                prop_assert!(found.is_sorted_by(|a, b| a.0 < b.0));
                found.iter().for_each(|&(id, value)| difference[id as usize] = value);
                let own: Vec<f64> =
                    (0..FEATURES).map(|id| value(&rows[0], id) - value(&rows[last], id)).collect();
                prop_assert!(near(&difference, &own), "{:?} {:?}", difference, own);
                let mut variances = vec![0.0; FEATURES];
                block.variances(|id, variance| variances[id as usize] = variance);
                let count = rows.len() as f64;
                let own: Vec<f64> = (0..FEATURES).map(|id| {
                    let mean = rows.iter().map(|row| value(row, id)).sum::<f64>() / count;
                    rows.iter().map(|row| (value(row, id) - mean).powi(2)).sum::<f64>() / count
                }).collect();
                prop_assert!(near(&variances, &own), "{:?} {:?}", variances, own);
            }
        }
    }
}
