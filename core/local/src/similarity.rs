//! The similarity of sentences: λ · (1 - edit distance / longer length) + (1 - λ) · tf-idf cosine.
//!
//! The idf of a word is ln((1 + N) / (1 + n)) + 1, where n of N examples have it at this moment: it
//! follows every example that is added or removed.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use rapidfuzz::distance::levenshtein::BatchComparator;
use rayon::prelude::*;

use crate::examples::{Place, State};

/// λ of the paper.
const EDITS: f64 = 0.1;
/// Similarities that agree so far are equal: the order of sums must not decide.
const DIGITS: f64 = 1e12;
/// Fewer examples than this are not worth several threads.
const MANY: usize = 20_000;

/// A sentence that examples are compared with.
pub struct Query {
    /// The sentence in words of the common vocabulary; unknown words have numbers of their own.
    words: Vec<u32>,
    /// Distinct known words, ascending: tf-idf of the sentence, and how often it has them.
    known: Vec<(u32, f64, usize)>,
    norm: f64,
    /// One more than the logarithm of all examples and one.
    base: f64,
    edits: BatchComparator<u32>,
}

/// An example on its way, with what its similarity cannot exceed.
struct Bounded {
    bound: f64,
    cosine: f64,
    id: u64,
    place: Place,
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Bounded {}

impl PartialOrd for Bounded {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bounded {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound).then_with(|| other.id.cmp(&self.id))
    }
}

impl Query {
    pub fn new(state: &State, sentence: &str) -> Query {
        let base = (1.0 + state.places.len() as f64).ln() + 1.0;
        let mut strange: Vec<&str> = Vec::new();
        let words: Vec<u32> = sentence
            .split_whitespace()
            .map(|word| {
                state.vocabulary.id(word).unwrap_or_else(|| {
                    let at = strange.iter().position(|&other| other == word);
                    u32::MAX
                        - at.unwrap_or_else(|| {
                            strange.push(word);
                            strange.len() - 1
                        }) as u32
                })
            })
            .collect();
        let mut sorted = words.clone();
        sorted.sort_unstable();
        let (mut known, mut squares) = (Vec::new(), 0.0);
        for same in sorted.chunk_by(|one, other| one == other) {
            let logarithm = state.logarithms.get(same[0] as usize);
            let weight = same.len() as f64 * (base - logarithm.copied().unwrap_or(0.0));
            squares += weight * weight;
            if logarithm.is_some() {
                known.push((same[0], weight, same.len()));
            }
        }
        let edits = BatchComparator::new(words.iter().copied());
        Query { words, known, norm: squares.sqrt(), base, edits }
    }

    /// Distinct known words with what they contribute to the product with a sentence that has them
    /// once.
    pub fn terms(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        let share =
            |&(word, weight, count): &(u32, f64, usize)| (word, weight * weight / count as f64);
        self.known.iter().map(share)
    }

    /// The cosine of an example's tf-idf and that of the sentence, 0 if they share no word; and how
    /// many words they share.
    fn cosine(&self, state: &State, source: &mut [u32]) -> (f64, usize) {
        source.sort_unstable();
        let (mut product, mut squares, mut shared) = (0.0, 0.0, 0);
        let mut known = self.known.iter().peekable();
        for same in source.chunk_by(|one, other| one == other) {
            let weight = same.len() as f64 * (self.base - state.logarithms[same[0] as usize]);
            squares += weight * weight;
            while known.next_if(|&&(word, ..)| word < same[0]).is_some() {}
            if let Some(&&(word, own, count)) = known.peek()
                && word == same[0]
            {
                product += weight * own;
                shared += count.min(same.len());
            }
        }
        (if product == 0.0 { 0.0 } else { product / (squares.sqrt() * self.norm) }, shared)
    }

    fn combined(cosine: f64, edits: usize, longer: usize) -> f64 {
        let similarity = EDITS * (1.0 - edits as f64 / longer as f64) + (1.0 - EDITS) * cosine;
        (similarity * DIGITS).round() / DIGITS
    }

    fn bounded(&self, state: &State, place: Place, source: &mut Vec<u32>) -> Option<Bounded> {
        source.clear();
        source.extend(state.source(place));
        let (cosine, shared) = self.cosine(state, source);
        if cosine == 0.0 {
            return None;
        }
        // Whatever the order of words: those of the longer one that the other has not are edits.
        let longer = self.words.len().max(source.len());
        let bound = Query::combined(cosine, longer - shared, longer);
        let id = state.held(place).segment.id(place.at as usize);
        Some(Bounded { bound, cosine, id, place })
    }

    /// The `k` most similar examples, best first, then by id. Examples that share no word with the
    /// sentence are never among them.
    pub fn best(
        &mut self,
        state: &State,
        places: impl Iterator<Item = Place>,
        k: usize,
        leave_out: bool,
    ) -> Vec<(u64, f64, Place)> {
        if self.known.is_empty() || k == 0 {
            return Vec::new();
        }
        let places: Vec<Place> = places.collect();
        let bounded: Vec<Bounded> = if places.len() < MANY {
            let mut source = Vec::new();
            places.iter().filter_map(|&place| self.bounded(state, place, &mut source)).collect()
        } else {
            let make = |source: &mut Vec<u32>, &place: &Place| self.bounded(state, place, source);
            places.par_iter().map_init(Vec::new, make).flatten_iter().collect()
        };
        // In the order of the bounds: once they are below what was found, the rest is.
        let mut waiting = BinaryHeap::from(bounded);
        let mut found: Vec<(u64, f64, Place)> = Vec::with_capacity(k.min(waiting.len()) + 1);
        while let Some(next) = waiting.pop() {
            if found.len() == k && found.last().is_some_and(|&(_, worst, _)| next.bound < worst) {
                break;
            }
            let source = state.source(next.place);
            if leave_out && source.clone().eq(self.words.iter().copied()) {
                continue;
            }
            let longer = self.words.len().max(source.len());
            let edits = self.edits.distance(source);
            let similarity = Query::combined(next.cosine, edits, longer);
            let before = |&(id, other, _): &(u64, f64, Place)| {
                other > similarity || (other == similarity && id < next.id)
            };
            let at = found.partition_point(before);
            if at < k {
                found.insert(at, (next.id, similarity, next.place));
                found.truncate(k);
            }
        }
        found
    }
}
