//! Fingerprints of strings that can be put together.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;

use super::{Side, Skeleton};

const PRIME: u64 = (1 << 61) - 1;
const BASES: [u64; 2] = [0x0e3d_2c85_9b1f_4a67, 0x1b07_c5e1_64d9_3f2b];

/// A word string as two affine maps `x -> scale·x + shift` modulo the prime 2⁶¹ - 1. To join two
/// strings is to compose their maps, so the print of a derivation costs one step for each symbol of
/// its last rule, however long the string. Different strings of n words have the same print with a
/// probability of about (n / 2⁶¹)².
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Print {
    scale: [u64; 2],
    shift: [u64; 2],
}

impl Print {
    pub const EMPTY: Print = Print { scale: [1; 2], shift: [0; 2] };

    fn word(code: u64) -> Self {
        Print { scale: BASES, shift: [code; 2] }
    }

    #[inline]
    pub fn then(self, next: Print) -> Print {
        if self == Print::EMPTY {
            return next;
        }
        if next == Print::EMPTY {
            return self;
        }
        let lane = |lane: usize| {
            let scale = multiply(next.scale[lane], self.scale[lane]);
            (scale, fold(multiply(next.scale[lane], self.shift[lane]) + next.shift[lane]))
        };
        let (one, two) = (lane(0), lane(1));
        Print { scale: [one.0, two.0], shift: [one.1, two.1] }
    }
}

impl Hash for Print {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.shift[0]);
    }
}

fn fold(value: u64) -> u64 {
    if value >= PRIME { value - PRIME } else { value }
}

fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    fold((product as u64 & PRIME) + (product >> 61) as u64)
}

/// The target sides of all rules, words that stand together joined; words with one spelling have
/// one print.
pub(super) struct Prints {
    /// Words, and the gap behind them if there is one.
    parts: Vec<(Print, Option<u8>)>,
    /// Where the parts of each rule end.
    ends: Vec<u32>,
}

impl Prints {
    pub fn new(forest: &Skeleton) -> Self {
        let mut codes: FxHashMap<&str, u64> = FxHashMap::default();
        let print = |word| {
            let next = codes.len() as u64 + 1;
            Print::word(*codes.entry(word).or_insert(next))
        };
        let words: Vec<Print> = forest.words.iter().map(print).collect();
        let mut prints = Prints { parts: Vec::new(), ends: Vec::with_capacity(forest.rules()) };
        for rule in 0..forest.rules() as u32 {
            let mut joined = Print::EMPTY;
            for symbol in forest.side(rule) {
                match symbol {
                    Side::Word(word) => joined = joined.then(words[word as usize]),
                    Side::Gap(gap) => {
                        prints.parts.push((joined, Some(gap as u8)));
                        joined = Print::EMPTY;
                    }
                }
            }
            if joined != Print::EMPTY {
                prints.parts.push((joined, None));
            }
            prints.ends.push(prints.parts.len() as u32);
        }
        prints
    }

    /// The print of what an edge makes of the strings in its gaps.
    pub fn edge(&self, forest: &Skeleton, edge: usize, gap: impl Fn(usize) -> Print) -> Print {
        let rule = forest.edges[edge].rule as usize;
        let start = rule.checked_sub(1).map_or(0, |last| self.ends[last]) as usize;
        let mut print = Print::EMPTY;
        for &(words, tail) in &self.parts[start..self.ends[rule] as usize] {
            print = print.then(words);
            if let Some(tail) = tail {
                print = print.then(gap(usize::from(tail)));
            }
        }
        print
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_print_does_not_depend_on_how_the_string_was_put_together(
            words in proptest::collection::vec(1u64..4, 0..9), cut in 0usize..9
        ) {
            let of = |words: &[u64]| {
                words.iter().fold(Print::EMPTY, |print, &code| print.then(Print::word(code)))
            };
            let cut = cut.min(words.len());
            prop_assert_eq!(of(&words[..cut]).then(of(&words[cut..])), of(&words));
        }

        #[test]
        fn different_strings_have_different_prints(
            a in proptest::collection::vec(1u64..3, 0..6),
            b in proptest::collection::vec(1u64..3, 0..6),
        ) {
            let of = |words: &[u64]| {
                words.iter().fold(Print::EMPTY, |print, &code| print.then(Print::word(code)))
            };
            prop_assert_eq!(of(&a) == of(&b), a == b);
        }
    }
}
