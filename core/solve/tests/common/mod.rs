//! Small lists for tests: whole numbers as features, errors of ten words as statistics.

use std::sync::Arc;

use proptest::prelude::*;
use tunesmith_metric::{Metric, Ratio, TableBuilder};
use tunesmith_solve::ListCorpus;
use tunesmith_space::{Hypothesis, PoolsBuilder};

pub const ERRORS: Ratio = Ratio { scale: 100.0, higher: false };
pub const WORDS: f64 = 10.0;

/// (features, errors) of each hypothesis.
pub type List = Vec<([i8; 2], u8)>;

/// The gain of a hypothesis of a list by itself.
pub fn gain(errors: u8) -> f64 {
    ERRORS.gain(&[f64::from(errors), WORDS])
}

pub fn score(features: [i8; 2], weights: &[f64]) -> f64 {
    f64::from(features[0]) * weights[0] + f64::from(features[1]) * weights[1]
}

/// All hypotheses of a list have different texts.
pub fn corpus_of(lists: &[List]) -> ListCorpus {
    let mut builder = PoolsBuilder::default();
    let ids = [builder.names.intern("a"), builder.names.intern("b")];
    let mut table = TableBuilder::new(2);
    for list in lists {
        builder.sentence(None);
        for (place, (values, errors)) in list.iter().enumerate() {
            let features = values.map(f32::from);
            let features = [(ids[0], features[0]), (ids[1], features[1])];
            let text = place.to_string();
            builder.push(Hypothesis { text: &text, features: &features, ..Default::default() });
            table.push(&[f64::from(*errors), WORDS]);
        }
        table.close();
    }
    ListCorpus::new(Arc::new(builder.finish()), Arc::new(table.finish()))
}

pub fn hypotheses(most: usize) -> impl Strategy<Value = List> {
    proptest::collection::vec(([-4i8..5, -4i8..5], 0u8..11), 0..most)
}

/// Weights whose products with features are exact.
pub fn quarters() -> impl Strategy<Value = [f64; 2]> {
    [-8i8..9, -8i8..9].prop_map(|values| values.map(|value| f64::from(value) / 4.0))
}
