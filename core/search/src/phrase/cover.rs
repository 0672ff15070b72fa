//! Which words of a sentence are translated.

use rustc_hash::FxHashMap;

use super::future::Future;

/// Sets of covered words, each kept once and known by a number; 0 is the empty one.
pub struct Covers {
    words: usize,
    /// Numbers of 64 bits that a set takes.
    width: usize,
    bits: Vec<u64>,
    facts: Vec<Facts>,
    known: FxHashMap<Box<[u64]>, u32>,
    /// What a set becomes with a span; asked for again and again.
    extended: FxHashMap<(u32, u16, u16), u32>,
    scratch: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Facts {
    first_gap: u16,
    future: f32,
}

impl Covers {
    pub fn new(words: usize, future: &Future) -> Covers {
        let width = words.div_ceil(64).max(1);
        let mut covers = Covers {
            words,
            width,
            bits: Vec::new(),
            facts: Vec::new(),
            known: FxHashMap::default(),
            extended: FxHashMap::default(),
            scratch: vec![0; width],
        };
        covers.intern(future);
        covers
    }

    /// The number of the set in `scratch`.
    fn intern(&mut self, future: &Future) -> u32 {
        if let Some(&id) = self.known.get(&self.scratch[..]) {
            return id;
        }
        let id = self.facts.len() as u32;
        self.bits.extend_from_slice(&self.scratch);
        self.known.insert(self.scratch.clone().into(), id);
        let gaps = self.gaps(id);
        let sum = gaps.iter().map(|gap| future.best(gap.start, gap.end)).sum();
        let first_gap = gaps.first().map_or(self.words, |gap| gap.start);
        self.facts.push(Facts { first_gap: first_gap as u16, future: sum });
        id
    }

    /// The set with the words of `start..end` as well.
    pub fn extend(&mut self, id: u32, start: usize, end: usize, future: &Future) -> u32 {
        let key = (id, start as u16, end as u16);
        if let Some(&known) = self.extended.get(&key) {
            return known;
        }
        let at = id as usize * self.width;
        self.scratch.copy_from_slice(&self.bits[at..at + self.width]);
        for word in start..end {
            self.scratch[word / 64] |= 1 << (word % 64);
        }
        let extended = self.intern(future);
        self.extended.insert(key, extended);
        extended
    }

    /// The words of a set, as bits.
    pub fn bits(&self, id: u32) -> &[u64] {
        &self.bits[id as usize * self.width..][..self.width]
    }

    /// The number of a set that has these bits, if it is known.
    pub fn find(&self, bits: &[u64]) -> Option<u32> {
        self.known.get(bits).copied()
    }

    #[inline]
    pub fn has(&self, id: u32, word: usize) -> bool {
        self.bits[id as usize * self.width + word / 64] >> (word % 64) & 1 == 1
    }

    /// The first word from `start` on that is covered or not, as asked.
    pub fn next(&self, id: u32, start: usize, covered: bool) -> Option<usize> {
        let flip = if covered { 0 } else { u64::MAX };
        let mut word = start;
        while word < self.words {
            let bits = (self.bits[id as usize * self.width + word / 64] ^ flip) >> (word % 64);
            if bits != 0 {
                return Some(word + bits.trailing_zeros() as usize).filter(|&at| at < self.words);
            }
            word = (word / 64 + 1) * 64;
        }
        None
    }

    #[inline]
    pub fn first_gap(&self, id: u32) -> usize {
        usize::from(self.facts[id as usize].first_gap)
    }

    /// The estimate for the words that are not covered.
    #[inline]
    pub fn future(&self, id: u32) -> f32 {
        self.facts[id as usize].future
    }

    /// The spans that are not covered, from left to right.
    pub fn gaps(&self, id: u32) -> Vec<std::ops::Range<usize>> {
        let mut gaps = Vec::new();
        let mut at = 0;
        while let Some(start) = self.next(id, at, false) {
            at = self.next(id, start, true).unwrap_or(self.words);
            gaps.push(start..at);
        }
        gaps
    }
}
