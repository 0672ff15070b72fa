//! Links inside a rule as bytes: one each where both sides are short.

use tunesmith_align::Link;

use crate::code::{put, take};

/// Sides up to this length leave four bits for a position.
const SHORT: usize = 16;

/// Appends links that are sorted by target, then source.
pub fn put_links(links: &[Link], source: usize, target: usize, out: &mut Vec<u8>) {
    put(links.len() as u32, out);
    for &(at, to) in links {
        if source <= SHORT && target <= SHORT {
            out.push((to << 4 | at) as u8);
        } else {
            put(u32::from(to), out);
            put(u32::from(at), out);
        }
    }
}

/// Takes links of a rule with sides of these lengths off the front; gives their bytes.
pub fn take_links<'a>(bytes: &mut &'a [u8], source: usize, target: usize) -> Option<&'a [u8]> {
    let whole = *bytes;
    let count = take(bytes)?;
    if source <= SHORT && target <= SHORT {
        *bytes = bytes.get(count as usize..)?;
    } else {
        for _ in 0..count {
            take(bytes)?;
            take(bytes)?;
        }
    }
    Some(&whole[..whole.len() - bytes.len()])
}

/// The links that [`put_links`] wrote.
pub fn links(mut bytes: &[u8], source: usize, target: usize) -> impl Iterator<Item = Link> + '_ {
    let short = source <= SHORT && target <= SHORT;
    let mut left = take(&mut bytes).unwrap_or(0);
    std::iter::from_fn(move || {
        left = left.checked_sub(1)?;
        if short {
            let (&link, rest) = bytes.split_first()?;
            bytes = rest;
            Some((u16::from(link & 15), u16::from(link >> 4)))
        } else {
            let to = take(&mut bytes)?;
            Some((take(&mut bytes)? as u16, to as u16))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_sides_come_back() {
        for (source, target) in [(16, 16), (17, 3), (300, 400)] {
            let written = [(0, 0), (source as u16 - 1, 0), (2, target as u16 - 1)];
            let mut out = Vec::new();
            put_links(&written, source, target, &mut out);
            out.push(9);
            let mut rest = &out[..];
            let coded = take_links(&mut rest, source, target).unwrap();
            assert_eq!(rest, [9]);
            assert_eq!(links(coded, source, target).collect::<Vec<_>>(), written);
            assert!(take_links(&mut &out[..2], source, target).is_none());
        }
    }
}
