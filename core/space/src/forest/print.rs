//! Fingerprints of strings that can be put together.

use rustc_hash::FxHashMap;

use super::{Side, Skeleton};

/// Odd, so that no power of it is lost.
const BASE: u64 = 0x0e3d_2c85_9b1f_4a6b;

/// A word string as the value of a polynomial modulo 2⁶⁴ whose coefficients, the codes of the
/// words, are as good as drawn by chance. Strings are joined by moving the first up by the length
/// of the second, so the print of a derivation costs one step for each symbol of its last rule,
/// however long the string.
///
/// Two strings have the same print by chance only: with a probability of 2⁻⁶⁴ if some word is once
/// more in one of them, and of less than 2⁻⁵² if two words of a thousand changed places: among a
/// hundred thousand strings, once in a million lists. Only strings of hundreds of words that repeat
/// themselves at every scale (as the sequence of Thue and Morse does) come closer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Print {
    value: u64,
    /// The base to the power of the length.
    up: u64,
}

impl Print {
    pub const EMPTY: Print = Print { value: 0, up: 1 };

    /// The word with a number.
    fn word(number: u64) -> Self {
        let mut code = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        code = (code ^ code >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        code = (code ^ code >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Print { value: code ^ code >> 31, up: BASE }
    }

    #[inline]
    fn join(self, second: Print) -> Print {
        Print {
            value: self.value.wrapping_mul(second.up).wrapping_add(second.value),
            up: self.up.wrapping_mul(second.up),
        }
    }

    /// The string as one number whose bits are mixed, for tables.
    #[inline]
    pub fn key(self) -> u64 {
        let key = (self.value ^ self.up.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        key ^ key >> 32
    }
}

/// The target sides of all rules, words that stand together joined; words with one spelling have
/// one print.
pub(super) struct Prints {
    rules: Vec<Place>,
    /// Gaps, each with the words behind it.
    gaps: Vec<(u8, Print)>,
}

/// The words before the first gap of a target side, and where the gaps are.
#[derive(Clone, Copy)]
struct Place {
    before: Print,
    start: u32,
    end: u32,
}

impl Prints {
    pub fn new(forest: &Skeleton) -> Self {
        let mut codes: FxHashMap<&str, u64> = FxHashMap::default();
        let print = |word| {
            let next = codes.len() as u64;
            Print::word(*codes.entry(word).or_insert(next))
        };
        let words: Vec<Print> = forest.words.iter().map(print).collect();
        let rules = Vec::with_capacity(forest.rules());
        let mut prints = Prints { rules, gaps: Vec::with_capacity(forest.rules()) };
        for rule in 0..forest.rules() as u32 {
            let start = prints.gaps.len();
            let mut before = Print::EMPTY;
            for symbol in forest.side(rule) {
                match symbol {
                    Side::Gap(gap) => prints.gaps.push((gap as u8, Print::EMPTY)),
                    Side::Word(word) => {
                        let last = prints.gaps[start..].last_mut();
                        let last = last.map_or(&mut before, |(_, words)| words);
                        *last = last.join(words[word as usize]);
                    }
                }
            }
            let end = prints.gaps.len() as u32;
            prints.rules.push(Place { before, start: start as u32, end });
        }
        prints
    }

    /// The target side of a rule.
    #[inline]
    pub fn of(&self, rule: u32) -> Target<'_> {
        let Place { before, start, end } = self.rules[rule as usize];
        Target { before, gaps: &self.gaps[start as usize..end as usize] }
    }
}

/// A target side: the words before the first gap, and the gaps, each with the words behind it.
#[derive(Clone, Copy)]
pub(super) struct Target<'p> {
    before: Print,
    gaps: &'p [(u8, Print)],
}

impl Target<'_> {
    /// The print of what the rule makes of the strings in its gaps.
    #[inline]
    pub fn print(&self, gap: impl Fn(usize) -> Print) -> Print {
        let join = |print: Print, &(number, words): &(u8, Print)| {
            print.join(gap(usize::from(number))).join(words)
        };
        self.gaps.iter().fold(self.before, join)
    }
}

/// Keys that were seen, each with a number. All are forgotten at once, at no cost.
pub(super) struct Seen {
    /// A power of two. A key lies at the place that its upper bits give, or behind it.
    slots: Vec<Slot>,
    /// How many keys there is room for.
    left: usize,
    /// Slots that were filled at another time are empty.
    now: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    key: u64,
    number: u32,
    time: u32,
}

const EMPTY: Slot = Slot { key: 0, number: 0, time: 0 };

impl Default for Seen {
    fn default() -> Seen {
        Seen::with_slots(1 << 8)
    }
}

impl Seen {
    fn with_slots(slots: usize) -> Seen {
        Seen { slots: vec![EMPTY; slots], left: slots / 4 * 3, now: 1 }
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.slots.len() / 4 * 3 - self.left
    }

    pub fn clear(&mut self) {
        self.left = self.slots.len() / 4 * 3;
        self.now = self.now.wrapping_add(1);
        if self.now == 0 {
            self.slots.fill(EMPTY);
            self.now = 1;
        }
    }

    /// The number of a key, whose bits are mixed; if it was not seen, notes it with a new one.
    #[inline]
    pub fn note(&mut self, key: u64, number: u32) -> Option<u32> {
        let last = self.slots.len() - 1;
        let mut at = (key >> 32) as usize & last;
        while self.slots[at].time == self.now {
            if self.slots[at].key == key {
                return Some(self.slots[at].number);
            }
            at = (at + 1) & last;
        }
        self.slots[at] = Slot { key, number, time: self.now };
        self.left -= 1;
        if self.left == 0 {
            self.grow();
        }
        None
    }

    #[cold]
    fn grow(&mut self) {
        let mut grown = Seen::with_slots(4 * self.slots.len());
        for slot in self.slots.iter().filter(|slot| slot.time == self.now) {
            grown.note(slot.key, slot.number);
        }
        *self = grown;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(words: &[u64]) -> Print {
        words.iter().fold(Print::EMPTY, |print, &word| print.join(Print::word(word)))
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
        fn what_was_seen_is_known(steps in proptest::collection::vec((0u64..40, 0u8..9), 0..60)) {
            let mut seen = Seen::with_slots(4);
            let mut twin = std::collections::HashMap::new();
            for ((key, what), number) in steps.into_iter().zip(0..) {
                // Some that begin alike.
                let key = ((key % 8) << 32) | (key / 8);
                if what == 0 {
                    seen.clear();
                    twin.clear();
                }
                prop_assert_eq!(seen.note(key, number), twin.get(&key).copied());
                twin.entry(key).or_insert(number);
                prop_assert_eq!(seen.len(), twin.len());
            }
        }
    }
}
