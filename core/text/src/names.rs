//! Feature names and their ids.

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// Names in order of first appearance; a name's id is its position.
#[derive(Debug, Clone, Default)]
pub struct Names {
    set: IndexSet<Box<str>, FxBuildHasher>,
}

impl Names {
    /// The id of `name`, given a new one if it has none yet.
    pub fn intern(&mut self, name: &str) -> u32 {
        match self.set.get_index_of(name) {
            Some(id) => id as u32,
            None => {
                assert!(self.set.len() < u32::MAX as usize, "more than 2^32 feature names");
                self.set.insert_full(name.into()).0 as u32
            }
        }
    }

    pub fn id(&self, name: &str) -> Option<u32> {
        self.set.get_index_of(name).map(|id| id as u32)
    }

    pub fn name(&self, id: u32) -> Option<&str> {
        self.set.get_index(id as usize).map(AsRef::as_ref)
    }

    pub fn len(&self) -> usize {
        self.set.len()
    }

    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.set.iter().map(AsRef::as_ref)
    }
}
