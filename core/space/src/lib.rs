//! Search spaces: everything a sentence could become, with features and metric statistics.

mod block;
mod builder;
mod columns;
mod dense;
mod forest;
mod forests;
mod gather;
mod moments;
mod pools;
mod space;
mod texts;

pub use block::{Block, Bytes, Sparse};
pub use builder::{Hypothesis, PoolsBuilder};
pub use dense::argmax as argmax_with_gain;
pub use dense::expect;
pub use forest::{
    Agreement, Aim, Best, Choice, Derivation, Edge, Expected, FeatureSum, Forest, ForestBuilder,
    ForestSpace, Gram, GramSearch, Join, Marginals, ORDER, Reach, Reader, Rows, Side, Skeleton,
    SkeletonBuilder, Unfolded, Viterbi, counted,
};
pub use forests::{Forests, Prune};
pub use moments::Cells;
pub use pools::{Pools, Ready};
pub use space::{Among, PoolSpace, Space};
pub use texts::Texts;

/// The first position of the largest value, and that value; NaN never wins.
pub fn argmax(values: impl Iterator<Item = f64>) -> Option<(usize, f64)> {
    let mut best: Option<(usize, f64)> = None;
    for (position, value) in values.enumerate() {
        if best.is_none_or(|(_, top)| value > top || (top.is_nan() && !value.is_nan())) {
            best = Some((position, value));
        }
    }
    best
}
