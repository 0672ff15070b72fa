//! Weights, found by the key of a feature's name.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

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
        self.0 = spread(key);
    }
}

/// Tables look at the first bits of a number, or at both ends; 61 bits of a key are random.
#[inline]
fn spread(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub type KeyMap<V> = std::collections::HashMap<u64, V, BuildHasherDefault<AsIs>>;

/// Weights by name.
///
/// Weights and keys lie together in one table, at most half of it full, so that a look-up touches
/// one line of memory. Most look-ups are for features without a weight: of those a table of bits,
/// small enough to stay close to the processor, turns nearly all away.
///
/// Weights may lie [over](Weights::over) others that they share: a few that differ, for one
/// sentence, over millions that do not.
#[derive(Debug, Clone)]
pub struct Weights {
    slots: Box<[Slot]>,
    /// Set for each key that has a slot, [`BITS`] of them for each slot.
    marks: Box<[u64]>,
    /// How many bits of a spread key do not say where its slot is.
    shift: u32,
    /// Slots that have a key.
    taken: usize,
    /// The weights of keys that have no slot here; none weigh nothing.
    base: Option<Arc<Weights>>,
}

/// Aligned, so that a slot never lies on two lines.
#[derive(Debug, Clone, Copy)]
#[repr(align(16))]
struct Slot {
    key: u64,
    weight: f64,
}

/// A power of two.
const BITS: u32 = 4;

/// Keys have 61 bits.
const VACANT: Slot = Slot { key: u64::MAX, weight: 0.0 };

impl Default for Weights {
    fn default() -> Self {
        Weights::with_bits(1)
    }
}

impl Weights {
    /// The last weight of a name counts.
    pub fn new<'a>(named: impl IntoIterator<Item = (&'a str, f64)>) -> Weights {
        let mut weights = Weights::default();
        named.into_iter().for_each(|(name, weight)| weights.set(Piece::of(name).key(), weight));
        weights
    }

    fn with_bits(bits: u32) -> Weights {
        let marks = (BITS << bits).div_ceil(u64::BITS) as usize;
        Weights {
            slots: vec![VACANT; 1 << bits].into(),
            marks: vec![0; marks].into(),
            shift: u64::BITS - bits,
            taken: 0,
            base: None,
        }
    }

    /// The weights of `base`, except for those that are given; nothing of `base` is copied.
    pub fn over<'a>(
        base: Arc<Weights>,
        changes: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Weights {
        let mut weights = Weights { base: Some(base), ..Weights::default() };
        changes.into_iter().for_each(|(name, weight)| weights.set(Piece::of(name).key(), weight));
        weights
    }

    /// The word of a key's mark, and the mark in it.
    #[inline]
    fn mark(&self, key: u64) -> (usize, u64) {
        let at = spread(key) >> (self.shift - BITS.ilog2());
        ((at / u64::from(u64::BITS)) as usize, 1 << (at % u64::from(u64::BITS)))
    }

    #[inline]
    pub fn of_key(&self, key: u64) -> f64 {
        let (word, mark) = self.mark(key);
        if self.marks[word] & mark != 0 {
            let slot = &self.slots[self.find(key)];
            if slot.key == key {
                return slot.weight;
            }
        }
        self.base.as_ref().map_or(0.0, |base| base.of_key(key))
    }

    pub fn of(&self, name: &str) -> f64 {
        self.of_key(Piece::of(name).key())
    }

    /// The sum of weighted features, given as keys and values.
    pub fn total(&self, features: &[(u64, f32)]) -> f64 {
        features.iter().map(|&(key, value)| self.of_key(key) * f64::from(value)).sum()
    }

    /// Changes a weight.
    pub fn set(&mut self, key: u64, weight: f64) {
        let at = self.find(key);
        if self.slots[at].key == key {
            self.slots[at].weight = weight;
        } else if weight != 0.0 || self.base.is_some() {
            self.slots[at] = Slot { key, weight };
            let (word, mark) = self.mark(key);
            self.marks[word] |= mark;
            self.taken += 1;
            if 2 * self.taken > self.slots.len() {
                self.grow();
            }
        }
    }

    /// Twice the room; weights that are zero by now are dropped, unless they hide others.
    fn grow(&mut self) {
        let mut larger = Weights::with_bits(u64::BITS - self.shift + 1);
        larger.base = self.base.take();
        let taken = self.slots.iter().filter(|slot| slot.key != VACANT.key);
        taken.for_each(|slot| larger.set(slot.key, slot.weight));
        *self = larger;
    }

    /// The number of weights that are not zero.
    pub fn len(&self) -> usize {
        let own = self.slots.iter().filter(|slot| slot.weight != 0.0).count();
        let Some(base) = &self.base else { return own };
        let taken = self.slots.iter().filter(|slot| slot.key != VACANT.key);
        own + base.len() - taken.filter(|slot| base.of_key(slot.key) != 0.0).count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slot of a key, or the vacant one where it would be.
    #[inline]
    fn find(&self, key: u64) -> usize {
        let mut at = (spread(key) >> self.shift) as usize;
        while self.slots[at].key != key && self.slots[at].key != VACANT.key {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn weights_are_found_by_name(
            named in prop::collection::vec(("[a-c]{0,3}", -2..3i8), 0..60),
            others in prop::collection::vec("[a-d]{0,3}", 0..20),
        ) {
            let named: Vec<(&str, f64)> =
                named.iter().map(|(name, weight)| (name.as_str(), f64::from(*weight))).collect();
            let weights = Weights::new(named.iter().copied());
            let expected: HashMap<&str, f64> = named.into_iter().collect();
            for name in expected.keys().copied().chain(others.iter().map(String::as_str)) {
                prop_assert_eq!(weights.of(name), expected.get(name).copied().unwrap_or(0.0));
            }
            let nonzero = expected.values().filter(|&&weight| weight != 0.0).count();
            prop_assert_eq!((weights.len(), weights.is_empty()), (nonzero, nonzero == 0));
        }

        #[test]
        fn weights_over_others_are_those_with_the_changes_made(
            named in prop::collection::vec(("[a-c]{0,3}", -2..3i8), 0..60),
            changes in prop::collection::vec(("[a-d]{0,3}", -2..3i8), 0..40),
            others in prop::collection::vec("[a-e]{0,3}", 0..20),
        ) {
            fn of(all: &[(String, i8)]) -> Vec<(&str, f64)> {
                all.iter().map(|(name, weight)| (name.as_str(), f64::from(*weight))).collect()
            }
            let base = Arc::new(Weights::new(of(&named)));
            let over = Weights::over(Arc::clone(&base), of(&changes));
            let copied = Weights::new(of(&named).into_iter().chain(of(&changes)));
            let names = of(&named).into_iter().chain(of(&changes)).map(|(name, _)| name);
            for name in names.chain(others.iter().map(String::as_str)) {
                prop_assert_eq!(over.of(name), copied.of(name));
            }
            prop_assert_eq!(over.len(), copied.len());
        }

        #[test]
        fn weights_changed_one_by_one_are_those_set_at_once(
            changes in prop::collection::vec(("[a-c]{0,3}", -2..3i8), 0..200),
        ) {
            let mut weights = Weights::default();
            let mut expected: HashMap<&str, f64> = HashMap::new();
            for (name, weight) in &changes {
                weights.set(Piece::of(name).key(), f64::from(*weight));
                expected.insert(name, f64::from(*weight));
            }
            for (name, weight) in expected {
                prop_assert_eq!(weights.of(name), weight);
            }
        }
    }
}
