//! What a model remembers of the words so far.

use std::hash::{Hash, Hasher};

use crate::MAX_ORDER;

/// The context that matters for the next word: only words that can take part in an n-gram of the
/// model are kept, so that equal states have equal futures. Plain data; what lies behind
/// [`len`](State::len) takes no part in comparison.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// The last word first.
    pub(crate) words: [u32; MAX_ORDER - 1],
    /// The backoff of the context that ends with the first word, the first two, and so on.
    pub(crate) backoffs: [f32; MAX_ORDER - 1],
    pub(crate) length: u8,
}

impl State {
    /// No context at all: the next word may stand anywhere.
    pub const EMPTY: State =
        State { words: [0; MAX_ORDER - 1], backoffs: [0.0; MAX_ORDER - 1], length: 0 };

    /// How many words are remembered.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.length)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The remembered words, the last first.
    #[inline]
    pub fn words(&self) -> &[u32] {
        &self.words[..self.len()]
    }
}

impl PartialEq for State {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl Eq for State {}

impl PartialOrd for State {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for State {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.words().cmp(other.words())
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.words().hash(hasher);
    }
}
