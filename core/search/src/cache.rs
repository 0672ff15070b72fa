//! Translations of source sides under some weights: scored once, kept for all sentences.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;
use tunesmith_rules::Node;

/// What a cache may hold.
pub trait Held {
    /// About how much memory it takes.
    fn bytes(&self) -> usize;
}

/// What was made lately, for all threads: tables may be larger than memory. Half of the room
/// belongs to what was asked for since the other half was full; that is forgotten when this one is.
pub struct Cache<T> {
    shards: Vec<Mutex<Shard<T>>>,
    /// Bytes of half a shard.
    room: usize,
}

struct Shard<T> {
    new: FxHashMap<u32, Arc<T>>,
    old: FxHashMap<u32, Arc<T>>,
    bytes: usize,
}

const SHARDS: usize = 16;

/// What is known whatever the weights are, for all decoders of a model that share it.
pub struct Kept<T>(Cache<T>);

/// Bytes of it.
const KEPT: usize = 256 << 20;

impl<T: Held> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept(Cache::new(KEPT))
    }
}

impl<T: Held> Kept<T> {
    pub(crate) fn get(&self, node: Node, make: impl FnOnce() -> T) -> Arc<T> {
        self.0.get(node, make)
    }
}

impl<T: Held> Cache<T> {
    /// For at most about so many bytes.
    pub fn new(bytes: usize) -> Cache<T> {
        let shard = || Shard { new: FxHashMap::default(), old: FxHashMap::default(), bytes: 0 };
        let shards = (0..SHARDS).map(|_| Mutex::new(shard())).collect();
        Cache { shards, room: bytes / SHARDS / 2 }
    }

    pub fn get(&self, node: Node, make: impl FnOnce() -> T) -> Arc<T> {
        let key = node.index() as u32;
        let shard = &self.shards[key as usize % SHARDS];
        let known = {
            let mut shard = shard.lock().expect("no panic while it is held");
            match shard.new.get(&key) {
                Some(found) => return found.clone(),
                None => shard.old.remove(&key),
            }
        };
        let held = known.unwrap_or_else(|| Arc::new(make()));
        let mut shard = shard.lock().expect("no panic while it is held");
        if shard.bytes > self.room {
            shard.old = std::mem::take(&mut shard.new);
            shard.bytes = 0;
        }
        shard.bytes += held.bytes();
        shard.new.insert(key, held.clone());
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Held for usize {
        fn bytes(&self) -> usize {
            100
        }
    }

    #[test]
    fn what_is_asked_for_again_is_kept_and_the_rest_forgotten() {
        let cache: Cache<usize> = Cache::new(2 * SHARDS * 1000);
        let node = |number: usize| Node::new((number * SHARDS) as u32, 1);
        let mut made = 0;
        for number in 0..100 {
            assert_eq!(*cache.get(node(number), || number), number);
            // The first is always wanted.
            cache.get(node(0), || {
                made += 1;
                0
            });
        }
        assert_eq!(made, 0);
        let shard = cache.shards[0].lock().unwrap();
        assert!(shard.new.len() + shard.old.len() < 30);
    }
}
