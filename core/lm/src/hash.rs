//! Hashes that are part of the binary format and must never change within a version.

const FIRST: u64 = 0xa076_1d64_78bd_642f;
const NEXT: u64 = 0xe703_7ed1_a0b4_28db;
/// Keeps small ids away from the fixed points of multiplication.
const START: u64 = 0x8ebc_6af0_9c88_c6e3;

#[inline(always)]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

/// The hash of a unigram, from which those of longer n-grams grow to the left.
#[inline(always)]
pub fn first(seed: u64, word: u32) -> u64 {
    fold(START ^ seed << 32 ^ u64::from(word), FIRST)
}

/// The hash of the n-gram with `word` put before it.
#[inline(always)]
pub fn extend(hash: u64, word: u32) -> u64 {
    fold(hash ^ FIRST, NEXT ^ u64::from(word))
}

/// The hash of an n-gram given last word first.
pub fn of(seed: u64, reversed: &[u32]) -> u64 {
    let mut words = reversed.iter();
    let hash = words.next().map_or(seed, |&word| first(seed, word));
    words.fold(hash, |hash, &word| extend(hash, word))
}

/// A place among `count`, from the upper half of a hash.
#[inline(always)]
pub fn place(hash: u64, count: usize) -> usize {
    (((hash >> 32) * count as u64) >> 32) as usize
}

/// The hash of the letters of a word.
#[inline]
pub fn letters(word: &[u8]) -> u64 {
    let mut hash = FIRST ^ word.len() as u64;
    let mut rest = word;
    while let Some((chunk, tail)) = rest.split_first_chunk::<8>() {
        hash = fold(hash ^ u64::from_le_bytes(*chunk), NEXT);
        rest = tail;
    }
    let mut last = 0;
    for &byte in rest {
        last = last << 8 | u64::from(byte);
    }
    fold(fold(hash ^ last, NEXT) ^ last, FIRST)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn n_grams_of_small_ids_do_not_collide() {
        for seed in 0..3 {
            let mut seen = HashSet::new();
            for a in 0..60 {
                assert!(seen.insert(of(seed, &[a])));
                for b in 0..60 {
                    assert!(seen.insert(of(seed, &[a, b])));
                    for c in 0..60 {
                        assert!(seen.insert(of(seed, &[a, b, c])));
                    }
                }
            }
            // Either half alone must spread as well as chance would have it.
            for half in [
                seen.iter().map(|hash| *hash as u32).collect::<HashSet<_>>(),
                seen.iter().map(|hash| (hash >> 32) as u32).collect(),
            ] {
                assert!(seen.len() - half.len() < 30, "{}", seen.len() - half.len());
            }
        }
    }

    #[test]
    fn words_of_few_letters_do_not_collide() {
        let mut seen = HashSet::new();
        for length in 0..12 {
            for letter in 0..=255u8 {
                seen.insert(letters(&vec![letter; length]));
            }
        }
        assert_eq!(seen.len(), 11 * 256 + 1);
    }
}
