//! The n-grams of the references of a sentence, as a trie over token ids.

use rustc_hash::FxHashMap;

/// Token of a hypothesis that no reference has.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// Ids of the words of a sentence's references.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary(FxHashMap<Box<str>, u32>);

impl Vocabulary {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn intern(&mut self, word: &str) -> u32 {
        if let Some(&id) = self.0.get(word) {
            return id;
        }
        let id = self.0.len() as u32;
        self.0.insert(word.into(), id);
        id
    }

    /// The id of a word, [`UNKNOWN`] for one that was never interned.
    pub fn get(&self, word: &str) -> u32 {
        self.0.get(word).copied().unwrap_or(UNKNOWN)
    }
}

/// How often each n-gram up to an order may match: its highest count in any one reference.
#[derive(Debug)]
pub(crate) struct Ngrams {
    order: usize,
    /// (node, token) -> longer node; node 0 is the empty n-gram.
    longer: FxHashMap<u64, u32>,
    limits: Vec<u32>,
}

impl Ngrams {
    pub fn new(order: usize) -> Self {
        Ngrams { order, longer: FxHashMap::default(), limits: vec![0] }
    }

    /// Adds one reference.
    pub fn add(&mut self, tokens: &[u32]) {
        let mut counts = vec![0; self.limits.len()];
        for start in 0..tokens.len() {
            let mut node = 0;
            for &token in tokens[start..].iter().take(self.order) {
                let next = self.limits.len() as u32;
                node = *self.longer.entry(edge(node, token)).or_insert(next);
                if node == next {
                    self.limits.push(0);
                    counts.push(0);
                }
                counts[node as usize] += 1;
            }
        }
        for (limit, count) in self.limits.iter_mut().zip(counts) {
            *limit = count.max(*limit);
        }
    }

    /// Adds the clipped matches of a hypothesis, by order, to `out`.
    pub fn matches(&self, tokens: &[u32], out: &mut [f64]) {
        let mut left = self.limits.clone();
        for start in 0..tokens.len() {
            let mut node = 0;
            for (&token, out) in tokens[start..].iter().take(self.order).zip(out.iter_mut()) {
                // An n-gram that is nowhere in the references has no longer one there either.
                let Some(&next) = self.longer.get(&edge(node, token)) else { break };
                node = next;
                let left = &mut left[node as usize];
                if *left > 0 {
                    *left -= 1;
                    *out += 1.0;
                }
            }
        }
    }
}

/// The same n-grams numbered by length, for those who count them piece by piece.
#[derive(Debug)]
pub(crate) struct Numbered {
    /// Of the trie's nodes.
    numbers: Vec<u32>,
    nodes: Vec<u32>,
    pub limits: Vec<u8>,
    pub ends: Vec<usize>,
}

impl Ngrams {
    pub fn numbered(&self) -> Numbered {
        let mut lengths = vec![0; self.limits.len()];
        // A node is made after the one it lengthens.
        let mut edges: Vec<(u32, u32)> =
            self.longer.iter().map(|(&key, &node)| (node, (key >> 32) as u32)).collect();
        edges.sort_unstable();
        for &(node, shorter) in &edges {
            lengths[node as usize] = lengths[shorter as usize] + 1;
        }
        let mut nodes: Vec<u32> = (1..self.limits.len() as u32).collect();
        nodes.sort_by_key(|&node| lengths[node as usize]);
        let mut numbers = vec![u32::MAX; self.limits.len()];
        for (number, &node) in nodes.iter().enumerate() {
            numbers[node as usize] = number as u32;
        }
        let limit = |&node: &u32| self.limits[node as usize].min(u32::from(u8::MAX)) as u8;
        let end = |length: usize| nodes.partition_point(|&node| lengths[node as usize] <= length);
        let ends = (1..=self.order).map(end).collect();
        Numbered { limits: nodes.iter().map(limit).collect(), ends, numbers, nodes }
    }

    /// The longer n-gram, by numbers.
    pub fn lengthen(&self, numbered: &Numbered, gram: Option<u32>, token: u32) -> Option<u32> {
        let node = gram.map_or(0, |gram| numbered.nodes[gram as usize]);
        self.longer.get(&edge(node, token)).map(|&next| numbered.numbers[next as usize])
    }
}

fn edge(node: u32, token: u32) -> u64 {
    u64::from(node) << 32 | u64::from(token)
}

/// How many n-grams a sequence has.
pub(crate) fn total(length: usize, order: usize) -> f64 {
    (length + 1).saturating_sub(order) as f64
}
