//! Weights, found by the key of a feature's name.

use std::hash::{BuildHasherDefault, Hasher};

use tunesmith_text::Piece;

/// Keys are hashes already.
#[derive(Debug, Default, Clone, Copy)]
pub struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are 64-bit numbers")
    }

    fn write_u64(&mut self, key: u64) {
        // The map looks at both ends of the number; 61 bits of the key are random.
        self.0 = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

pub type KeyMap<V> = std::collections::HashMap<u64, V, BuildHasherDefault<AsIs>>;

/// Weights by name; those that are zero are not kept.
#[derive(Debug, Clone, Default)]
pub struct Weights {
    values: KeyMap<f64>,
}

impl Weights {
    pub fn new<'a>(named: impl IntoIterator<Item = (&'a str, f64)>) -> Weights {
        let kept = named.into_iter().filter(|&(_, weight)| weight != 0.0);
        Weights { values: kept.map(|(name, weight)| (Piece::of(name).key(), weight)).collect() }
    }

    #[inline]
    pub fn of_key(&self, key: u64) -> f64 {
        self.values.get(&key).copied().unwrap_or(0.0)
    }

    pub fn of(&self, name: &str) -> f64 {
        self.of_key(Piece::of(name).key())
    }

    /// The number of weights that are not zero.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}
