//! Fingerprints of strings that can be put together.

use rustc_hash::FxHashMap;

use super::{Side, Skeleton};

const PRIME: u64 = (1 << 61) - 1;
const BASE: u64 = 0x0e3d_2c85_9b1f_4a67;

/// A word string as the value of a polynomial modulo the prime 2⁶¹ - 1. Strings are joined by
/// moving the first up by the length of the second, so the print of a derivation costs one step for
/// each symbol of its last rule, however long the string. Different strings of n words have the
/// same print with a probability of about n / 2⁶¹: among a hundred thousand of them, once in ten
/// million lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Print {
    value: u64,
    /// The base to the power of the length.
    up: u64,
}

impl Print {
    pub const EMPTY: Print = Print { value: 0, up: 1 };

    fn word(code: u64) -> Self {
        Print { value: code, up: BASE }
    }

    #[inline]
    fn join(self, second: Print) -> Print {
        Print {
            value: fold(multiply(self.value, second.up) + second.value),
            up: multiply(self.up, second.up),
        }
    }

    /// The string at a node as one number, for tables.
    #[inline]
    pub fn at(self, node: u32) -> u64 {
        // The last word stands at the low end: the node must not be added there.
        let node = u64::from(node).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let key = (self.value ^ self.up.rotate_left(32)).wrapping_add(node);
        let key = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Tables look at both ends.
        key ^ key >> 32
    }
}

#[inline]
fn fold(value: u64) -> u64 {
    value.min(value.wrapping_sub(PRIME))
}

#[inline]
fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    fold((product as u64 & PRIME) + (product >> 61) as u64)
}

/// The target sides of all rules, words that stand together joined; words with one spelling have
/// one print.
pub(super) struct Prints {
    /// A gap, if there is one, and the words behind it.
    parts: Vec<(Option<u8>, Print)>,
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
        let mut prints = Prints {
            parts: Vec::with_capacity(2 * forest.rules()),
            ends: Vec::with_capacity(forest.rules()),
        };
        for rule in 0..forest.rules() as u32 {
            let mut part = (None, Print::EMPTY);
            for symbol in forest.side(rule) {
                match symbol {
                    Side::Word(word) => part.1 = part.1.join(words[word as usize]),
                    Side::Gap(gap) => {
                        let before = std::mem::replace(&mut part, (Some(gap as u8), Print::EMPTY));
                        prints.parts.extend((before != (None, Print::EMPTY)).then_some(before));
                    }
                }
            }
            prints.parts.push(part);
            prints.ends.push(prints.parts.len() as u32);
        }
        prints
    }

    /// The print of what a rule makes of the strings in its gaps.
    #[inline]
    pub fn of(&self, rule: u32, gap: impl Fn(usize) -> Print) -> Print {
        let start = (rule as usize).checked_sub(1).map_or(0, |last| self.ends[last]) as usize;
        let mut print = Print::EMPTY;
        for (number, &(tail, words)) in
            self.parts[start..self.ends[rule as usize] as usize].iter().enumerate()
        {
            print = match tail {
                None => words,
                Some(tail) if number == 0 => gap(usize::from(tail)).join(words),
                Some(tail) => print.join(gap(usize::from(tail))).join(words),
            };
        }
        print
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(words: &[u64]) -> Print {
        words.iter().fold(Print::EMPTY, |print, &code| print.join(Print::word(code)))
    }

    proptest! {
        #[test]
        fn a_print_does_not_depend_on_how_the_string_was_put_together(
            words in proptest::collection::vec(1u64..4, 0..9), cut in 0usize..9
        ) {
            let cut = cut.min(words.len());
            prop_assert_eq!(of(&words[..cut]).join(of(&words[cut..])), of(&words));
        }

        #[test]
        fn different_strings_have_different_prints(
            a in proptest::collection::vec(1u64..3, 0..6),
            b in proptest::collection::vec(1u64..3, 0..6),
        ) {
            prop_assert_eq!(of(&a) == of(&b), a == b);
        }

        #[test]
        fn products_stay_below_the_prime(a in 0..PRIME, b in 0..PRIME) {
            let product = u128::from(a) * u128::from(b) % u128::from(PRIME);
            prop_assert_eq!(u128::from(multiply(a, b)), product);
        }
    }
}
