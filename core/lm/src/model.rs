//! A language model to be asked: the probability of a word after a state.

use std::path::Path;

use tunesmith_text::{Error, Lines, Result};

use crate::binary::{Image, is_binary};
use crate::build::build;
use crate::grams::Grams;
use crate::line::{Line, numbers};
use crate::table::{self, CLOSED, Inner, Longest, Prob};
use crate::vocabulary::Vocabulary;
use crate::{MAX_ORDER, State, arpa, hash};

/// What a model says about a word.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Scored {
    /// Log-probability to base ten, with backoffs.
    pub log10: f32,
    /// Words of the longest n-gram that was found.
    pub length: u8,
    /// Whether more context to the left could have changed the score; what a decoder that does
    /// not yet know its left context asks for.
    pub open: bool,
}

/// A model in memory or mapped from a file; may be shared between threads.
pub struct Model {
    unigrams: &'static [u32],
    pub(crate) inner: &'static [Line],
    pub(crate) longest: &'static [Line],
    pub(crate) vocabulary: Vocabulary<'static>,
    pub(crate) seed: u64,
    order: usize,
    begin: State,
    /// What the slices above borrow from; it stays where it is as long as the model lives.
    image: Image,
}

impl Model {
    /// Reads a binary or an ARPA file, told apart by their first bytes.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if is_binary(path) {
            return Model::new(Image::open(path)?)
                .map_err(|error| error.at(path.display().to_string(), None));
        }
        let grams = arpa::read(Lines::open(path)?)?;
        Model::from_grams(grams).map_err(|error| error.at(path.display().to_string(), None))
    }

    pub fn from_grams(grams: Grams) -> Result<Self> {
        Model::new(build(grams)?)
    }

    /// Writes the binary that [`load`](Model::load) maps.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.image.save(path.as_ref())
    }

    fn new(image: Image) -> Result<Self> {
        // SAFETY: the lines are on the heap or in a mapping owned by `image`, which does not move
        // them, gives no mutable access and is dropped together with the slices.
        let part = |which| unsafe {
            let lines: &[Line] = image.part(which);
            std::slice::from_raw_parts(lines.as_ptr(), lines.len())
        };
        let words = image.layout.counts[0];
        let vocabulary = Vocabulary::new(part(3), part(4), part(5), words).map_err(|message| {
            Error::new(format!("cannot be used as a language model: {message}"))
                .remedy("make it again with tunesmith lm binarize")
        })?;
        let mut model = Model {
            unigrams: &numbers(part(0))[..2 * words],
            inner: part(1),
            longest: part(2),
            vocabulary,
            seed: image.layout.seed,
            order: image.layout.order,
            begin: State::EMPTY,
            image,
        };
        let begin = model.image.layout.begin;
        if model.order > 1 {
            model.begin.words[0] = begin;
            model.begin.backoffs[0] = f32::from_bits(model.unigram(begin).1);
            model.begin.length = 1;
        }
        Ok(model)
    }

    pub fn order(&self) -> usize {
        self.order
    }

    /// N-grams of each order.
    pub fn counts(&self) -> &[usize] {
        &self.image.layout.counts[..self.order]
    }

    /// Size of the image in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self.image.lines())
    }

    /// The number of words, `<unk>`, `<s>` and `</s>` among them.
    pub fn vocabulary_len(&self) -> usize {
        self.vocabulary.len()
    }

    /// The id of a word; 0, that of `<unk>`, if the model does not know it.
    #[inline]
    pub fn id(&self, word: &str) -> u32 {
        self.vocabulary.id(word.as_bytes()).unwrap_or(0)
    }

    pub fn word(&self, id: u32) -> Option<&str> {
        self.vocabulary.word(id)
    }

    pub fn begin_id(&self) -> u32 {
        self.image.layout.begin
    }

    pub fn end_id(&self) -> u32 {
        self.image.layout.end
    }

    /// The state at the beginning of a sentence.
    #[inline]
    pub fn begin(&self) -> State {
        self.begin
    }

    /// The score of a word after a state, and the state behind it. Ids that the model does not
    /// have count as `<unk>`.
    #[inline]
    pub fn score(&self, state: &State, word: u32) -> (Scored, State) {
        let word = self.clamp(word);
        let mut hashes = [0; MAX_ORDER];
        let mut chain = hash::first(self.seed, word);
        for (&word, hash) in state.words().iter().zip(&mut hashes[1..]) {
            chain = hash::extend(chain, word);
            *hash = chain;
        }
        // All lines are on their way while the first is read.
        self.ask(&hashes, state.len());
        self.descend(state, word, |length| hashes[length])
    }

    /// The state after some words, given in their order, of which nothing else is known.
    pub fn state_of(&self, words: &[u32]) -> State {
        let kept = &words[words.len().saturating_sub(self.order - 1)..];
        kept.iter().fold(State::EMPTY, |state, &word| self.score(&state, word).1)
    }

    /// An id that is safe to use.
    #[inline(always)]
    pub(crate) fn clamp(&self, word: u32) -> u32 {
        if (word as usize) < self.vocabulary.len() { word } else { 0 }
    }

    #[inline(always)]
    fn unigram(&self, word: u32) -> (Prob, u32) {
        let at = 2 * word as usize;
        (Prob(self.unigrams[at]), self.unigrams[at + 1])
    }

    /// Looks for longer and longer n-grams that end with a clamped word; `hashes` gives the hash of the one with that many
    /// words of the state before the new word.
    #[inline(always)]
    pub(crate) fn descend(
        &self,
        state: &State,
        word: u32,
        mut hashes: impl FnMut(usize) -> u64,
    ) -> (Scored, State) {
        let (mut prob, backoff) = self.unigram(word);
        let mut next = State::EMPTY;
        next.words[0] = word;
        next.backoffs[0] = f32::from_bits(backoff);
        next.length = u8::from(backoff != CLOSED && self.order > 1);
        let mut length = 1;
        let mut open = prob.extends();
        let known = state.len().min(MAX_ORDER - 1);
        for at in 1..=known {
            next.words[at.min(MAX_ORDER - 2)] = state.words[at - 1];
            if !open {
                continue;
            }
            let hash = hashes(at);
            if at + 1 == self.order {
                open = false;
                if let Some(found) = table::find::<Longest>(self.longest, hash) {
                    prob = table::prob::<Longest>(self.longest, found);
                    length = at + 1;
                }
                break;
            }
            let Some(found) = table::find::<Inner>(self.inner, hash) else {
                open = false;
                continue;
            };
            prob = table::prob::<Inner>(self.inner, found);
            let backoff = table::backoff(self.inner, found);
            next.backoffs[at] = f32::from_bits(backoff);
            length = at + 1;
            if backoff != CLOSED {
                next.length = length as u8;
            }
            open = prob.extends();
        }
        let mut log10 = 0.0 + prob.log10();
        for backoff in &state.backoffs[(length - 1).min(known)..known] {
            log10 += backoff;
        }
        (Scored { log10, length: length as u8, open }, next)
    }
}
