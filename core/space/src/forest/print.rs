//! Fingerprints of strings that can be put together.

use rustc_hash::FxHashMap;

use super::{Side, Skeleton};

const PRIME: u64 = (1 << 61) - 1;
const BASES: [u64; 2] = [0x0e3d_2c85_9b1f_4a67, 0x1b07_c5e1_64d9_3f2b];

/// A word string as the values of two polynomials modulo the prime 2⁶¹ - 1. Strings are joined by
/// moving the first up by the length of the second, so the print of a derivation costs one step for
/// each symbol of its last rule, however long the string. Different strings of n words have the
/// same print with a probability of about (n / 2⁶¹)².
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Print {
    values: [u64; 2],
    length: u32,
}

impl Print {
    pub const EMPTY: Print = Print { values: [0; 2], length: 0 };

    fn word(code: u64) -> Self {
        Print { values: [code; 2], length: 1 }
    }

    /// The string and a number as one number for tables.
    #[inline]
    pub fn mixed(self, number: u32) -> u64 {
        let key = (self.values[0] ^ u64::from(number) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Tables look at both ends.
        key ^ key >> 32
    }
}

/// Powers of the bases.
#[derive(Debug)]
struct Powers(Vec<[u64; 2]>);

impl Powers {
    #[inline]
    fn join(&self, first: Print, second: Print) -> Print {
        if first.length == 0 {
            return second;
        }
        let up = self.of(second.length);
        let lane = |lane: usize| fold(multiply(up[lane], first.values[lane]) + second.values[lane]);
        Print { values: [lane(0), lane(1)], length: first.length + second.length }
    }

    #[inline]
    fn of(&self, length: u32) -> [u64; 2] {
        match self.0.get(length as usize) {
            Some(&known) => known,
            None => self.far(length),
        }
    }

    /// Of a long string.
    #[cold]
    fn far(&self, length: u32) -> [u64; 2] {
        let last = self.0.len() as u32 - 1;
        let (one, two) = (self.of(last), self.of(length - last));
        [multiply(one[0], two[0]), multiply(one[1], two[1])]
    }
}

impl Default for Powers {
    fn default() -> Powers {
        const KNOWN: usize = 256;
        let next =
            |last: &[u64; 2]| Some([multiply(last[0], BASES[0]), multiply(last[1], BASES[1])]);
        Powers(std::iter::successors(Some([1; 2]), next).take(KNOWN).collect())
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
    powers: Powers,
}

impl Prints {
    pub fn new(forest: &Skeleton) -> Self {
        let mut codes: FxHashMap<&str, u64> = FxHashMap::default();
        let print = |word| {
            let next = codes.len() as u64 + 1;
            Print::word(*codes.entry(word).or_insert(next))
        };
        let words: Vec<Print> = forest.words.iter().map(print).collect();
        let mut prints = Prints {
            parts: Vec::with_capacity(2 * forest.rules()),
            ends: Vec::with_capacity(forest.rules()),
            powers: Powers::default(),
        };
        for rule in 0..forest.rules() as u32 {
            let mut joined = Print::EMPTY;
            for symbol in forest.side(rule) {
                match symbol {
                    Side::Word(word) => joined = prints.powers.join(joined, words[word as usize]),
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
            if words.length > 0 {
                print = self.powers.join(print, words);
            }
            if let Some(tail) = tail {
                print = self.powers.join(print, gap(usize::from(tail)));
            }
        }
        print
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(words: &[u64]) -> Print {
        let powers = Powers(Powers::default().0[..3].to_vec());
        words.iter().fold(Print::EMPTY, |print, &code| powers.join(print, Print::word(code)))
    }

    proptest! {
        #[test]
        fn a_print_does_not_depend_on_how_the_string_was_put_together(
            words in proptest::collection::vec(1u64..4, 0..9), cut in 0usize..9
        ) {
            let cut = cut.min(words.len());
            for known in [2, 4, 256] {
                let powers = Powers(Powers::default().0[..known].to_vec());
                let joined = powers.join(of(&words[..cut]), of(&words[cut..]));
                prop_assert_eq!(joined, of(&words));
            }
        }

        #[test]
        fn different_strings_have_different_prints(
            a in proptest::collection::vec(1u64..3, 0..6),
            b in proptest::collection::vec(1u64..3, 0..6),
        ) {
            prop_assert_eq!(of(&a) == of(&b), a == b);
        }
    }
}
