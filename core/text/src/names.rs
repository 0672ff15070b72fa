//! Feature names and their ids.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// Names in order of first appearance; a name's id is its position.
///
/// All names share one buffer: a million of them cost their letters and some twenty bytes each.
#[derive(Debug, Clone, Default)]
pub struct Names {
    letters: String,
    ends: Vec<usize>,
    table: HashTable<Entry>,
}

/// The hash goes along, so that growing the table need not look at the names again.
#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u32,
    id: u32,
}

fn fold(name: &str) -> u32 {
    let hash = FxBuildHasher.hash_one(name);
    (hash ^ (hash >> 32)) as u32
}

/// The table wants good bits at both ends.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Names {
    /// The id of `name`, given a new one if it has none yet.
    pub fn intern(&mut self, name: &str) -> u32 {
        let hash = fold(name);
        if let Some(id) = self.find(hash, name) {
            return id;
        }
        assert!(self.ends.len() < u32::MAX as usize, "more than 2^32 feature names");
        let id = self.ends.len() as u32;
        self.letters.push_str(name);
        self.ends.push(self.letters.len());
        self.table.insert_unique(spread(hash), Entry { hash, id }, |entry| spread(entry.hash));
        id
    }

    /// Forgets the names from id `len` on, as if they had never been seen.
    pub fn truncate(&mut self, len: usize) {
        for id in (len..self.len()).rev() {
            let hash = fold(self.name(id as u32).unwrap_or_default());
            let own = |entry: &Entry| entry.id == id as u32;
            if let Ok(entry) = self.table.find_entry(spread(hash), own) {
                entry.remove();
            }
            self.ends.pop();
            self.letters.truncate(self.ends.last().copied().unwrap_or(0));
        }
    }

    pub fn id(&self, name: &str) -> Option<u32> {
        self.find(fold(name), name)
    }

    pub fn name(&self, id: u32) -> Option<&str> {
        let end = *self.ends.get(id as usize)?;
        let start = (id as usize).checked_sub(1).map_or(0, |last| self.ends[last]);
        Some(&self.letters[start..end])
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|id| self.name(id).unwrap_or_default())
    }

    fn find(&self, hash: u32, name: &str) -> Option<u32> {
        let same = |entry: &Entry| entry.hash == hash && self.name(entry.id) == Some(name);
        self.table.find(spread(hash), same).map(|entry| entry.id)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn many_names_keep_their_ids() {
        let mut names = Names::default();
        for number in 0..100_000u32 {
            assert_eq!(names.intern(&format!("feature {number}")), number);
        }
        assert_eq!(names.intern("feature 77"), 77);
        assert_eq!(names.id("feature 99999"), Some(99_999));
        assert_eq!(names.id("feature"), None);
        assert_eq!(names.name(100_000), None);
        assert_eq!(names.len(), 100_000);
        names.truncate(50);
        assert_eq!((names.len(), names.id("feature 50"), names.name(50)), (50, None, None));
        assert_eq!((names.id("feature 49"), names.intern("new")), (Some(49), 50));
    }

    proptest! {
        #[test]
        fn ids_are_places_of_first_appearance(list in proptest::collection::vec(".{0,3}", 0..60)) {
            let mut names = Names::default();
            let mut expected: HashMap<&str, u32> = HashMap::new();
            for name in &list {
                let next = expected.len() as u32;
                let id = *expected.entry(name).or_insert(next);
                prop_assert_eq!(names.intern(name), id);
            }
            prop_assert_eq!(names.len(), expected.len());
            for (id, name) in names.iter().enumerate() {
                prop_assert_eq!(names.id(name), Some(id as u32));
                prop_assert_eq!(expected[name], id as u32);
            }
        }
    }
}
