//! Hash tables of one cache line per bucket: a look-up reads one line, seldom a second.
//!
//! A bucket of inner n-grams holds five fingerprints of 32 bits, five log-probabilities, five
//! backoffs, and six more bits for each fingerprint. A bucket of longest n-grams holds seven
//! fingerprints, seven log-probabilities and nine more bits each. Together with its bucket an entry
//! is told apart by far more bits than its fingerprint has: an n-gram that is not in the model is
//! mistaken for another about once in 10^10 look-ups. N-grams of the model itself are never
//! mistaken: the builder sees to that by its choice of the seed.

use crate::hash::place;
use crate::line::Line;

/// The sign of a stored log-probability says that a longer n-gram ends with this one.
const EXTENDS: u32 = 1 << 31;
/// A backoff of zero for an n-gram that is the context of nothing.
pub const CLOSED: u32 = 1 << 31;

/// A log-probability of at most zero, whose sign is used for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prob(pub u32);

impl Prob {
    pub fn new(log10: f32) -> Self {
        Prob(log10.to_bits() & !EXTENDS)
    }

    #[inline(always)]
    pub fn log10(self) -> f32 {
        f32::from_bits(self.0 | EXTENDS)
    }

    /// Whether a longer n-gram ends with this one.
    #[inline(always)]
    pub fn extends(self) -> bool {
        self.0 & EXTENDS != 0
    }

    pub fn mark(self) -> Self {
        Prob(self.0 | EXTENDS)
    }
}

/// What the shape of a bucket decides.
pub trait Shape {
    const SLOTS: usize;
    const TAG_BITS: u32;
    const BACKOFFS: bool;

    fn tags(line: &Line) -> u64;
    fn set_tags(line: &mut Line, tags: u64);

    /// Set when an entry that belongs here had to go on to the next bucket.
    const OVERFLOW: u64;
}

/// N-grams between the shortest and the longest.
pub struct Inner;

impl Shape for Inner {
    const SLOTS: usize = 5;
    const TAG_BITS: u32 = 6;
    const BACKOFFS: bool = true;
    const OVERFLOW: u64 = 1 << 31;

    #[inline(always)]
    fn tags(line: &Line) -> u64 {
        u64::from(line.0[15])
    }

    fn set_tags(line: &mut Line, tags: u64) {
        line.0[15] = tags as u32;
    }
}

/// N-grams of the highest order.
pub struct Longest;

impl Shape for Longest {
    const SLOTS: usize = 7;
    const TAG_BITS: u32 = 9;
    const BACKOFFS: bool = false;
    const OVERFLOW: u64 = 1 << 63;

    #[inline(always)]
    fn tags(line: &Line) -> u64 {
        line.wide(7)
    }

    fn set_tags(line: &mut Line, tags: u64) {
        line.set_wide(7, tags);
    }
}

/// Zero marks an empty slot.
#[inline(always)]
fn fingerprint(hash: u64) -> u32 {
    (hash as u32).max(1)
}

#[inline(always)]
fn tag<S: Shape>(hash: u64) -> u64 {
    (hash >> 32) & ((1 << S::TAG_BITS) - 1)
}

/// Where an entry lies: its bucket and its slot.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub bucket: usize,
    pub slot: usize,
}

/// Looks an n-gram up.
#[inline(always)]
pub fn find<S: Shape>(lines: &[Line], hash: u64) -> Option<Found> {
    let wanted = fingerprint(hash);
    let mut bucket = place(hash, lines.len());
    // A sound table ends the search long before; the bound keeps any other from going on for ever.
    for _ in 0..lines.len() {
        let line = &lines[bucket];
        let mut matches = 0u32;
        for slot in 0..S::SLOTS {
            matches |= u32::from(line.0[slot] == wanted) << slot;
        }
        let tags = S::tags(line);
        while matches != 0 {
            let slot = matches.trailing_zeros() as usize;
            let there = (tags >> (slot as u32 * S::TAG_BITS)) & ((1 << S::TAG_BITS) - 1);
            if there == tag::<S>(hash) {
                return Some(Found { bucket, slot });
            }
            matches &= matches - 1;
        }
        if tags & S::OVERFLOW == 0 {
            return None;
        }
        bucket = if bucket + 1 == lines.len() { 0 } else { bucket + 1 };
    }
    None
}

#[inline(always)]
pub fn prob<S: Shape>(lines: &[Line], at: Found) -> Prob {
    Prob(lines[at.bucket].0[S::SLOTS + at.slot])
}

/// The bits of the backoff of an inner n-gram.
#[inline(always)]
pub fn backoff(lines: &[Line], at: Found) -> u32 {
    lines[at.bucket].0[2 * Inner::SLOTS + at.slot]
}

pub fn set_prob<S: Shape>(lines: &mut [Line], at: Found, prob: Prob) {
    lines[at.bucket].0[S::SLOTS + at.slot] = prob.0;
}

pub fn set_backoff(lines: &mut [Line], at: Found, bits: u32) {
    lines[at.bucket].0[2 * Inner::SLOTS + at.slot] = bits;
}

/// Buckets for `count` entries: three of four slots are used.
pub fn buckets<S: Shape>(count: usize) -> usize {
    (count * 4).div_ceil(S::SLOTS * 3).max(1)
}

/// Puts an entry in; an n-gram that looks like one already there gives that one back as an error.
pub fn insert<S: Shape>(
    lines: &mut [Line],
    hash: u64,
    prob: Prob,
    backoff: u32,
) -> Result<Found, Found> {
    if let Some(found) = find::<S>(lines, hash) {
        return Err(found);
    }
    let mut bucket = place(hash, lines.len());
    loop {
        let line = &mut lines[bucket];
        let mut tags = S::tags(line);
        if let Some(slot) = (0..S::SLOTS).find(|&slot| line.0[slot] == 0) {
            line.0[slot] = fingerprint(hash);
            line.0[S::SLOTS + slot] = prob.0;
            if S::BACKOFFS {
                line.0[2 * S::SLOTS + slot] = backoff;
            }
            tags |= tag::<S>(hash) << (slot as u32 * S::TAG_BITS);
            S::set_tags(line, tags);
            return Ok(Found { bucket, slot });
        }
        S::set_tags(line, tags | S::OVERFLOW);
        bucket = (bucket + 1) % lines.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash;

    fn round<S: Shape>(count: u32) {
        let mut lines = vec![Line::ZERO; buckets::<S>(count as usize)];
        for word in 0..count {
            let prob = Prob::new(-(word as f32));
            insert::<S>(&mut lines, hash::of(1, &[word, 7]), prob, word).unwrap();
        }
        for word in 0..count {
            let found = find::<S>(&lines, hash::of(1, &[word, 7])).unwrap();
            assert_eq!(prob::<S>(&lines, found).log10(), -(word as f32));
            if S::BACKOFFS {
                assert_eq!(backoff(&lines, found), word);
            }
            assert!(find::<S>(&lines, hash::of(1, &[word, 8])).is_none());
            assert!(insert::<S>(&mut lines, hash::of(1, &[word, 7]), Prob(0), 0).is_err());
        }
    }

    #[test]
    fn what_was_put_in_is_found_and_nothing_else() {
        for count in [0, 1, 4, 100, 100_000] {
            round::<Inner>(count);
            round::<Longest>(count);
        }
    }

    #[test]
    fn a_table_of_rubbish_ends_the_search() {
        let lines = vec![Line([u32::MAX; 16]); 9];
        assert!(find::<Inner>(&lines, 12).is_none());
        assert!(find::<Longest>(&lines, 12).is_none());
    }

    #[test]
    fn a_probability_keeps_its_value_when_marked() {
        let prob = Prob::new(-1.5);
        assert!(!prob.extends() && prob.mark().extends());
        assert_eq!(prob.mark().log10(), -1.5);
        assert_eq!(Prob::new(0.0).log10(), 0.0);
    }
}
