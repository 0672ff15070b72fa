//! Strings whose neighbours are not known yet: what still matters at their two ends.
//!
//! A word at the left end is scored with the words before it inside the string. While the n-gram
//! of all of them is in the model, and is the ending of a longer one, that score is preliminary.
//! Joining two strings looks at those words of the second only, in the context that the first
//! ends with (as Li and Khudanpur 2008 and Heafield 2011 do).

use crate::table::{self, CLOSED, Inner, Longest};
use crate::{MAX_ORDER, Model, State, hash};

/// The two ends of a string. Equal ones have equal futures; what they score is kept elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// The first words, whose scores may still change.
    words: [u32; MAX_ORDER - 1],
    /// Their log-probabilities so far.
    probs: [f32; MAX_ORDER - 1],
    open: u8,
    /// Whether the word behind them, if there is one, has a final score but for the backoffs of
    /// contexts that reach out of the string.
    closed: bool,
    right: State,
}

impl Ends {
    /// Those of the empty string.
    pub const EMPTY: Ends = Ends {
        words: [0; MAX_ORDER - 1],
        probs: [0.0; MAX_ORDER - 1],
        open: 0,
        closed: false,
        right: State::EMPTY,
    };

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.open == 0 && !self.closed
    }

    /// The first words, whose scores may still change.
    #[inline]
    pub fn left(&self) -> &[u32] {
        &self.words[..usize::from(self.open)]
    }

    /// The context of whatever follows.
    #[inline]
    pub fn right(&self) -> &State {
        &self.right
    }

    /// What the words of the left end score so far; they can gain no more than its negative, but
    /// for backoffs above one.
    #[inline]
    pub fn preliminary(&self) -> f32 {
        self.probs[..usize::from(self.open)].iter().sum()
    }

    /// Writes the ends in as few numbers as they take.
    pub fn pack(&self, out: &mut Vec<u32>) {
        let (left, right) = (usize::from(self.open), self.right.len());
        let lengths = u32::from(self.open) | u32::from(self.right.length) << 8;
        out.push(lengths | u32::from(self.closed) << 16);
        out.extend_from_slice(self.left());
        out.extend(self.probs[..left].iter().map(|prob| prob.to_bits()));
        out.extend_from_slice(self.right.words());
        out.extend(self.right.backoffs[..right].iter().map(|backoff| backoff.to_bits()));
    }

    /// Reads what [`pack`](Self::pack) wrote at the beginning of some numbers.
    #[inline]
    pub fn unpack(packed: &[u32]) -> Ends {
        let mut ends = Ends::EMPTY;
        let (open, right) = (packed[0] as u8, (packed[0] >> 8) as u8);
        let (left, length) = (usize::from(open), usize::from(right));
        (ends.open, ends.right.length, ends.closed) = (open, right, packed[0] >> 16 != 0);
        let (words, rest) = packed[1..].split_at(left);
        ends.words[..left].copy_from_slice(words);
        for (prob, &bits) in ends.probs.iter_mut().zip(&rest[..left]) {
            *prob = f32::from_bits(bits);
        }
        ends.right.words[..length].copy_from_slice(&rest[left..left + length]);
        for (backoff, &bits) in ends.right.backoffs.iter_mut().zip(&rest[left + length..][..length])
        {
            *backoff = f32::from_bits(bits);
        }
        ends
    }

    /// A hash of all that equality looks at.
    #[inline]
    pub fn key(&self) -> u64 {
        let start = u64::from(self.open) << 8 | u64::from(self.closed);
        let words = self.left().iter().chain(self.right.words());
        words.fold(start, |key, &word| hash::extend(key, word))
    }
}

impl PartialEq for Ends {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.closed == other.closed && self.left() == other.left() && self.right == other.right
    }
}

impl Eq for Ends {}

impl Model {
    /// The ends of a sentence that has just begun.
    pub fn begin_ends(&self) -> Ends {
        Ends { closed: true, right: self.begin(), ..Ends::EMPTY }
    }

    /// Puts a word behind a string; gives the word's log-probability so far.
    #[inline]
    pub fn append(&self, ends: &mut Ends, word: u32) -> f32 {
        let (scored, next) = self.score(&ends.right, word);
        if !ends.closed {
            ends.closed = !scored.open;
            if scored.open {
                ends.keep(self.clamp(word), scored.log10);
                ends.closed = next.len() != ends.right.len() + 1 || self.is_full(ends);
            }
        }
        ends.right = next;
        scored.log10
    }

    #[inline]
    fn is_full(&self, ends: &Ends) -> bool {
        usize::from(ends.open) + 1 >= self.order()
    }

    /// Puts a string behind another; gives what their log-probabilities change by.
    #[inline]
    pub fn join(&self, ends: &mut Ends, next: &Ends) -> f32 {
        if ends.is_empty() {
            *ends = *next;
            return 0.0;
        }
        let known = ends.right.len();
        let mut change = 0.0;
        let mut backoffs = ends.right.backoffs;
        // How many words of the context can matter for the word to come.
        let mut used = known;
        for (at, &word) in next.left().iter().enumerate() {
            if used == 0 {
                break;
            }
            let inside = next.left()[..at].iter().rev();
            let chain = inside.fold(hash::first(self.seed, word), |h, &w| hash::extend(h, w));
            let mut longer = self.extend(chain, at + 1, &ends.right.words[..used]);
            let prob = if longer.found == 0 { next.probs[at] } else { longer.prob };
            change += prob - next.probs[at];
            change += backoffs[longer.found..used].iter().sum::<f32>();
            if !ends.closed {
                ends.closed = !(longer.open && longer.found == known);
                if !ends.closed {
                    ends.keep(word, prob);
                    ends.closed = longer.context != known || self.is_full(ends);
                }
            }
            used = longer.context;
            std::mem::swap(&mut backoffs, &mut longer.backoffs);
        }
        if next.closed || used == 0 {
            // Only where all open words were looked at is there one behind them that backs off.
            change += backoffs[..used].iter().sum::<f32>();
            ends.closed |= next.closed || known == 0 || used == 0;
            ends.right = next.right;
        } else {
            let right = next.right;
            let length = right.len();
            let words = ends.right.words;
            ends.right = right;
            ends.right.words[length..length + used].copy_from_slice(&words[..used]);
            ends.right.backoffs[length..length + used].copy_from_slice(&backoffs[..used]);
            ends.right.length = (length + used) as u8;
        }
        change
    }

    /// Looks for n-grams that have some words before one of `length` words, whose hash is given.
    #[inline(always)]
    fn extend(&self, mut chain: u64, length: usize, before: &[u32]) -> Longer {
        let mut longer =
            Longer { found: 0, prob: 0.0, open: true, context: 0, backoffs: [0.0; MAX_ORDER - 1] };
        for (at, &word) in before.iter().enumerate() {
            chain = hash::extend(chain, word);
            let prob = if length + at + 1 == self.order() {
                longer.open = false;
                let Some(found) = table::find::<Longest>(self.longest, chain) else { break };
                table::prob::<Longest>(self.longest, found)
            } else {
                let Some(found) = table::find::<Inner>(self.inner, chain) else {
                    longer.open = false;
                    break;
                };
                let backoff = table::backoff(self.inner, found);
                longer.backoffs[at] = f32::from_bits(backoff);
                if backoff != CLOSED {
                    longer.context = at + 1;
                }
                let prob = table::prob::<Inner>(self.inner, found);
                longer.open = prob.extends();
                prob
            };
            longer.prob = prob.log10();
            longer.found = at + 1;
            if !longer.open {
                break;
            }
        }
        longer
    }
}

/// What was found when words were put before an n-gram.
struct Longer {
    /// How many words the longest one in the model has more.
    found: usize,
    prob: f32,
    /// Whether yet another word before them all could change the score.
    open: bool,
    /// How many of the words matter for what follows, and their backoffs.
    context: usize,
    backoffs: [f32; MAX_ORDER - 1],
}

impl Ends {
    #[inline]
    fn keep(&mut self, word: u32, prob: f32) {
        self.words[usize::from(self.open)] = word;
        self.probs[usize::from(self.open)] = prob;
        self.open += 1;
    }
}
