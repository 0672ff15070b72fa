//! Symbols of a rule as numbers, and numbers as bytes that sort as they do.

/// Ends a side; smaller than every symbol, so that a prefix sorts before what extends it.
pub const END: u32 = 0;
/// The code of the first word; `1` and `2` are the two gaps.
pub const FIRST_WORD: u32 = 3;

/// One symbol on a side of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symbol {
    /// The first or the second gap, counted from one in the order of the source side.
    Gap(u8),
    /// A word by its id in the vocabulary of its side.
    Word(u32),
}

impl Symbol {
    pub fn code(self) -> u32 {
        match self {
            Symbol::Gap(number) => u32::from(number),
            // No vocabulary is that large: what overflows is found nowhere.
            Symbol::Word(id) => id.saturating_add(FIRST_WORD),
        }
    }

    pub fn from_code(code: u32) -> Symbol {
        match code.checked_sub(FIRST_WORD) {
            Some(id) => Symbol::Word(id),
            None => Symbol::Gap(code as u8),
        }
    }
}

/// Appends a number so that the order of bytes is the order of numbers.
#[inline]
pub fn put(value: u32, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    match value {
        0..0x80 => out.push(value as u8),
        0x80..0x4000 => out.extend([0x80 | bytes[2], bytes[3]]),
        0x4000..0x20_0000 => out.extend([0xc0 | bytes[1], bytes[2], bytes[3]]),
        0x20_0000..0x1000_0000 => out.extend([0xe0 | bytes[0], bytes[1], bytes[2], bytes[3]]),
        _ => out.extend([0xf0, bytes[0], bytes[1], bytes[2], bytes[3]]),
    }
}

/// Takes a number off the front; `None` where the bytes end too early.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u32> {
    let (&first, rest) = bytes.split_first()?;
    let (length, start) = match first {
        0..0x80 => (0, u32::from(first)),
        0x80..0xc0 => (1, u32::from(first & 0x3f)),
        0xc0..0xe0 => (2, u32::from(first & 0x1f)),
        0xe0..0xf0 => (3, u32::from(first & 0x0f)),
        _ => (4, 0),
    };
    let tail = rest.get(..length)?;
    *bytes = &rest[length..];
    Some(tail.iter().fold(start, |value, &byte| value << 8 | u32::from(byte)))
}

/// Appends a number of any size, seven bits at a time.
pub fn put_long(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn take_long(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Takes the codes of one side with its end; gives them with the end and their number.
#[inline]
pub fn take_side<'a>(bytes: &mut &'a [u8]) -> Option<(&'a [u8], usize)> {
    let whole = *bytes;
    let mut count = 0;
    while take(bytes)? != END {
        count += 1;
    }
    Some((&whole[..whole.len() - bytes.len()], count))
}

/// The codes of one side, up to its end or the end of the bytes.
pub fn codes(mut bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    std::iter::from_fn(move || take(&mut bytes).filter(|&code| code != END))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number() -> impl Strategy<Value = u32> {
        prop_oneof![0..300u32, 0..70_000u32, any::<u32>()]
    }

    proptest! {
        #[test]
        fn bytes_sort_as_numbers(
            a in proptest::collection::vec(number(), 0..6),
            b in proptest::collection::vec(number(), 0..6),
        ) {
            let bytes = |list: &[u32]| {
                let mut out = Vec::new();
                list.iter().for_each(|&value| put(value, &mut out));
                out
            };
            prop_assert_eq!(bytes(&a).cmp(&bytes(&b)), a.cmp(&b));
            let coded = bytes(&a);
            let mut rest = &coded[..];
            for value in &a {
                prop_assert_eq!(take(&mut rest), Some(*value));
            }
            prop_assert!(rest.is_empty() && take(&mut rest).is_none());
        }

        #[test]
        fn long_numbers_come_back(value in any::<u64>()) {
            let mut out = Vec::new();
            put_long(value, &mut out);
            prop_assert_eq!(take_long(&mut &out[..]), Some(value));
            prop_assert_eq!(take_long(&mut &out[..out.len() - 1]), None);
        }
    }
}
