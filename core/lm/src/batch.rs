//! Many queries at once: the tables' lines are asked for before they are needed.

use rayon::prelude::*;

use crate::hash::place;
use crate::line::prefetch;
use crate::sentence::words;
use crate::{MAX_ORDER, Model, Scored, State, hash};

/// Words between asking for a line and reading it.
const AHEAD: usize = 8;
/// Sentences that one thread takes at a time.
const CHUNK: usize = 256;

/// Sentences as ids, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    ids: Vec<u32>,
    /// Where each sentence ends.
    ends: Vec<usize>,
}

impl Batch {
    pub fn clear(&mut self) {
        self.ids.clear();
        self.ends.clear();
    }

    /// The ids of all sentences.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Where each sentence ends among the ids.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// Adds a sentence; ids that the model does not have count as `<unk>`.
    pub fn push(&mut self, model: &Model, ids: &[u32]) {
        self.ids.extend(ids.iter().map(|&id| model.clamp(id)));
        self.ends.push(self.ids.len());
    }

    /// Adds the words of a line, and the end of the sentence if `end`.
    pub fn push_text(&mut self, model: &Model, line: &[u8], end: bool) {
        const WINDOW: usize = 16;
        let mut waiting: [(u64, &[u8]); WINDOW] = [(0, b""); WINDOW];
        let mut count = 0;
        for word in words(line) {
            if count >= WINDOW {
                let (hash, word) = waiting[count % WINDOW];
                self.ids.push(model.vocabulary.hashed(hash, word).unwrap_or(0));
            }
            let hash = hash::letters(word);
            model.vocabulary.prefetch(hash);
            waiting[count % WINDOW] = (hash, word);
            count += 1;
        }
        for at in count.saturating_sub(WINDOW)..count {
            let (hash, word) = waiting[at % WINDOW];
            self.ids.push(model.vocabulary.hashed(hash, word).unwrap_or(0));
        }
        if end {
            self.ids.push(model.end_id());
        }
        self.ends.push(self.ids.len());
    }
}

impl Model {
    /// Scores the words of all sentences in turn, each sentence from the beginning of one, or
    /// with `begin` false from no context; `take` gets each word's place among the ids.
    pub fn score_batch(&self, batch: &Batch, begin: bool, take: impl FnMut(usize, Scored)) {
        self.score_range(batch, 0..batch.ends.len(), begin, take);
    }

    /// The sums of the log-probabilities of each sentence, computed on all threads of the pool.
    pub fn score_sentences(&self, batch: &Batch, begin: bool) -> Vec<f64> {
        let count = batch.ends.len();
        let chunks: Vec<_> =
            (0..count).step_by(CHUNK).map(|from| from..(from + CHUNK).min(count)).collect();
        let sums = chunks.into_par_iter().map(|range| {
            let mut sums = vec![0.0; range.len()];
            let mut at = range.start;
            let first = at;
            self.score_range(batch, range, begin, |place, scored| {
                while place >= batch.ends[at] {
                    at += 1;
                }
                sums[at - first] += f64::from(scored.log10);
            });
            sums
        });
        sums.flatten_iter().collect()
    }

    /// Scores many words after one state.
    pub fn score_words(
        &self,
        state: &State,
        words: &[u32],
        mut take: impl FnMut(usize, Scored, State),
    ) {
        let mut ring = [[0u64; MAX_ORDER]; AHEAD];
        let prepare = |ring: &mut [[u64; MAX_ORDER]; AHEAD], at: usize| {
            let mut chain = hash::first(self.seed, self.clamp(words[at]));
            for (&word, slot) in state.words().iter().zip(&mut ring[at % AHEAD][1..]) {
                chain = hash::extend(chain, word);
                *slot = chain;
            }
            self.ask(&ring[at % AHEAD], state.len());
        };
        for at in 0..words.len().min(AHEAD) {
            prepare(&mut ring, at);
        }
        for (at, &word) in words.iter().enumerate() {
            let hashes = ring[at % AHEAD];
            let (scored, next) = self.descend(state, self.clamp(word), |length| hashes[length]);
            take(at, scored, next);
            if at + AHEAD < words.len() {
                prepare(&mut ring, at + AHEAD);
            }
        }
    }

    fn score_range(
        &self,
        batch: &Batch,
        sentences: std::ops::Range<usize>,
        begin: bool,
        mut take: impl FnMut(usize, Scored),
    ) {
        if sentences.is_empty() {
            return;
        }
        let from = if sentences.start == 0 { 0 } else { batch.ends[sentences.start - 1] };
        let ids = &batch.ids[..batch.ends[sentences.end - 1]];
        let mut ring = [[0u64; MAX_ORDER]; AHEAD];
        let mut ahead = Ahead {
            model: self,
            ids,
            begin,
            ends: &batch.ends,
            sentence: sentences.start,
            start: from,
        };
        for at in from..ids.len().min(from + AHEAD) {
            ahead.prepare(at, &mut ring[at % AHEAD]);
        }
        let mut place = from;
        for &end in &batch.ends[sentences] {
            let mut state = if begin { self.begin() } else { State::EMPTY };
            for (at, &word) in ids.iter().enumerate().take(end).skip(place) {
                let hashes = &mut ring[at % AHEAD];
                let (scored, next) = self.descend(&state, word, |length| hashes[length]);
                take(at, scored);
                state = next;
                if at + AHEAD < ids.len() {
                    ahead.prepare(at + AHEAD, hashes);
                }
            }
            place = end;
        }
    }

    /// Asks for the lines of the n-grams with up to `known` words of context.
    #[inline(always)]
    pub(crate) fn ask(&self, hashes: &[u64; MAX_ORDER], known: usize) {
        for (length, &hash) in hashes.iter().enumerate().take(known + 1).skip(1) {
            let lines = if length + 1 == self.order() { self.longest } else { self.inner };
            prefetch(lines, place(hash, lines.len()));
        }
    }
}

/// Runs before the scoring and computes hashes.
struct Ahead<'a> {
    model: &'a Model,
    ids: &'a [u32],
    ends: &'a [usize],
    begin: bool,
    /// The sentence of the word prepared last, and where it starts.
    sentence: usize,
    start: usize,
}

impl Ahead<'_> {
    #[inline(always)]
    fn prepare(&mut self, at: usize, hashes: &mut [u64; MAX_ORDER]) {
        while at >= self.ends[self.sentence] {
            self.start = self.ends[self.sentence];
            self.sentence += 1;
        }
        let inside = at - self.start;
        let longest = self.model.order() - 1;
        let mut chain = hash::first(self.model.seed, self.ids[at]);
        let mut known = longest.min(inside);
        for (hash, &word) in hashes[1..=known].iter_mut().zip(self.ids[..at].iter().rev()) {
            chain = hash::extend(chain, word);
            *hash = chain;
        }
        if self.begin && inside < longest {
            known += 1;
            hashes[known] = hash::extend(chain, self.model.begin_id());
        }
        self.model.ask(hashes, known);
    }
}
