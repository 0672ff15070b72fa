//! The words of a model in mapped memory: from letters to id and back.

use tunesmith_text::{Error, Names, Result};

use crate::hash::{letters, place};
use crate::line::{Line, bytes, bytes_mut, lines_for, numbers, numbers_mut, prefetch};

/// Ids of a bucket, each with 32 bits of the hash of its word.
const SLOTS: usize = 8;

/// Where the three parts of a vocabulary lie.
#[derive(Clone, Copy, Debug)]
pub struct Vocabulary<'a> {
    /// Buckets of eight pairs (fingerprint, id + 1); zero is empty.
    table: &'a [Line],
    /// The end of each word in the letters.
    ends: &'a [u32],
    letters: &'a [u8],
}

/// The three parts, ready to be written.
pub struct Parts {
    pub table: Vec<Line>,
    pub ends: Vec<Line>,
    pub letters: Vec<Line>,
}

impl<'a> Vocabulary<'a> {
    /// Refuses ends that do not fit the letters, and letters that are no words.
    pub fn new(
        table: &'a [Line],
        ends: &'a [Line],
        text: &'a [Line],
        words: usize,
    ) -> std::result::Result<Self, &'static str> {
        let ends = numbers(ends).get(..words).ok_or("too few words")?;
        let size = ends.last().map_or(0, |&end| end as usize);
        let letters = bytes(text).get(..size).ok_or("the words are cut off")?;
        if ends.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err("the words are out of order");
        }
        let whole = std::str::from_utf8(letters).map_err(|_| "the words are not UTF-8")?;
        if ends.iter().any(|&end| !whole.is_char_boundary(end as usize)) {
            return Err("a word ends inside a letter");
        }
        Ok(Vocabulary { table, ends, letters })
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline(always)]
    fn slice(&self, id: usize) -> Option<&'a [u8]> {
        let end = *self.ends.get(id)? as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        self.letters.get(start..end)
    }

    pub fn word(&self, id: u32) -> Option<&'a str> {
        // Checked when the vocabulary was made.
        self.slice(id as usize).and_then(|word| std::str::from_utf8(word).ok())
    }

    #[inline]
    pub fn id(&self, word: &[u8]) -> Option<u32> {
        self.hashed(letters(word), word)
    }

    /// Asks for the bucket of a word that will be looked up soon.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        prefetch(self.table, place(hash, self.table.len()));
    }

    #[inline(always)]
    pub fn hashed(&self, hash: u64, word: &[u8]) -> Option<u32> {
        let wanted = hash as u32;
        let mut bucket = place(hash, self.table.len());
        for _ in 0..self.table.len() {
            let line = &self.table[bucket];
            for slot in 0..SLOTS {
                let next = line.0[2 * slot + 1];
                if next == 0 {
                    return None;
                }
                let id = next - 1;
                if line.0[2 * slot] == wanted && self.slice(id as usize) == Some(word) {
                    return Some(id);
                }
            }
            bucket = if bucket + 1 == self.table.len() { 0 } else { bucket + 1 };
        }
        None
    }
}

/// Lays a vocabulary out.
pub fn lay_out(words: &Names) -> Result<Parts> {
    let size: usize = words.iter().map(str::len).sum();
    if u32::try_from(size).is_err() {
        return Err(Error::new(format!("the words have {size} letters together"))
            .remedy("limit the vocabulary: 4 GiB are possible"));
    }
    // At most five of eight slots are used, so that few searches leave their line.
    let mut table = vec![Line::ZERO; (words.len() * 8).div_ceil(SLOTS * 5).max(1)];
    let mut ends = vec![Line::ZERO; lines_for(words.len() * 4)];
    let mut text = vec![Line::ZERO; lines_for(size)];
    let mut end = 0;
    for (id, word) in words.iter().enumerate() {
        bytes_mut(&mut text)[end..end + word.len()].copy_from_slice(word.as_bytes());
        end += word.len();
        numbers_mut(&mut ends)[id] = end as u32;
        let hash = letters(word.as_bytes());
        let mut bucket = place(hash, table.len());
        let slot = loop {
            if let Some(slot) = (0..SLOTS).find(|slot| table[bucket].0[2 * slot + 1] == 0) {
                break slot;
            }
            bucket = (bucket + 1) % table.len();
        };
        table[bucket].0[2 * slot] = hash as u32;
        table[bucket].0[2 * slot + 1] = id as u32 + 1;
    }
    Ok(Parts { table, ends, letters: text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_ids_belong_together() {
        let mut names = Names::default();
        for number in 0..10_000u32 {
            names.intern(&format!("{}é{number}", "x".repeat(number as usize % 20)));
        }
        let parts = lay_out(&names).unwrap();
        let words =
            Vocabulary::new(&parts.table, &parts.ends, &parts.letters, names.len()).unwrap();
        for (id, word) in names.iter().enumerate() {
            assert_eq!(words.id(word.as_bytes()), Some(id as u32));
            assert_eq!(words.word(id as u32), Some(word));
            assert_eq!(words.id(format!("{word}x").as_bytes()), None);
        }
        assert_eq!(words.word(10_000), None);
        assert!(Vocabulary::new(&parts.table, &parts.ends, &parts.letters[1..], 10_000).is_err());
        assert!(Vocabulary::new(&parts.table, &parts.ends[1..], &parts.letters, 10_000).is_err());
    }
}
