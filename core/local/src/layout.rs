//! How a segment lies on disk.
//!
//! A mark, the lists one after the other, the sections of the directory, a trailer. All numbers are
//! little-endian. The trailer has a checksum of itself and one of the directory; the directory has
//! one of each list, so that opening a file does not read its lists.

use tunesmith_text::{Error, Result};

pub const MAGIC: &[u8; 8] = b"tunes-ex";
pub const VERSION: u32 = 2;

/// The sections of the directory, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// u64 per example, ascending.
    Ids,
    /// u32 per example: the end of its words in `Words`.
    SourceEnds,
    /// u32 per running word: its place in the vocabulary.
    Words,
    /// u32 per word of the vocabulary: the end of its letters in `Vocabulary`.
    VocabularyEnds,
    Vocabulary,
    /// u32 per word of the vocabulary: in how many sources it occurs.
    Frequencies,
    /// u32 per example: the end of its references in `TextEnds`.
    ReferenceEnds,
    /// u64 per reference: its end in `Texts`.
    TextEnds,
    Texts,
    /// u64 per example: the end of its list in the file.
    ListEnds,
    /// u32 per example: the checksum of its list.
    ListSums,
    /// u32 per feature: the end of its name in `Names`.
    NameEnds,
    Names,
}

pub const PARTS: usize = Part::Names as usize + 1;

/// What the trailer says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trailer {
    /// Statistics per hypothesis; 0 if there are none.
    pub width: u32,
    pub examples: u64,
    pub hypotheses: u64,
    /// Bytes before the directory.
    pub lists: u64,
    /// Bytes of each section.
    pub parts: [u64; PARTS],
    /// Of the directory.
    pub checksum: u32,
}

impl Trailer {
    pub const SIZE: usize = 4 + 4 + 8 * (3 + PARTS) + 4 + 4 + 8;

    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::SIZE);
        out.extend(VERSION.to_le_bytes());
        out.extend(self.width.to_le_bytes());
        for wide in [self.examples, self.hypotheses, self.lists].iter().chain(&self.parts) {
            out.extend(wide.to_le_bytes());
        }
        out.extend(self.checksum.to_le_bytes());
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out.extend(MAGIC);
        debug_assert_eq!(out.len(), Self::SIZE);
        out
    }

    /// The trailer of a whole file. Refuses one that was cut short, is of another version or
    /// contradicts itself.
    pub fn read(file: &[u8], name: &str) -> Result<Trailer> {
        let bad = |message: &str| {
            Err(Error::new(message)
                .at(name, None)
                .remedy("copy the file again, or build the index"))
        };
        if !file.starts_with(MAGIC) {
            return bad("is not a segment of examples");
        }
        let Some(start) = file.len().checked_sub(Self::SIZE) else { return bad("is truncated") };
        let bytes = &file[start..];
        if !bytes.ends_with(MAGIC) {
            return bad("is truncated: its end is missing");
        }
        let sum = Self::SIZE - 12;
        if crc32fast::hash(&bytes[..sum]).to_le_bytes() != bytes[sum..sum + 4] {
            return bad("is corrupt: the checksum of its trailer differs");
        }
        let word = |at: usize| u32::from_le_bytes(array(&bytes[at..at + 4]));
        let wide = |at: usize| u64::from_le_bytes(array(&bytes[8 + 8 * at..16 + 8 * at]));
        if word(0) != VERSION {
            let message = format!("is a segment of version {}, not {VERSION}", word(0));
            return Err(Error::new(message).at(name, None).remedy("build the index again"));
        }
        let trailer = Trailer {
            width: word(4),
            examples: wide(0),
            hypotheses: wide(1),
            lists: wide(2),
            parts: std::array::from_fn(|part| wide(3 + part)),
            checksum: word(sum - 4),
        };
        let size = trailer.parts.iter().try_fold(trailer.lists, |sum, &part| sum.checked_add(part));
        if size != Some(start as u64) || trailer.lists < MAGIC.len() as u64 {
            return bad("is corrupt: its parts do not fill it");
        }
        Ok(trailer)
    }
}

/// As many bytes as a number has.
pub fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("a slice of this length")
}

/// A number of a section of u32, if it has so many.
pub fn word(section: &[u8], at: usize) -> Option<u32> {
    section.get(4 * at..4 * at + 4).map(|bytes| u32::from_le_bytes(array(bytes)))
}

/// The same of u64.
pub fn wide(section: &[u8], at: usize) -> Option<u64> {
    section.get(8 * at..8 * at + 8).map(|bytes| u64::from_le_bytes(array(bytes)))
}

pub fn words(
    section: &[u8],
) -> impl ExactSizeIterator<Item = u32> + DoubleEndedIterator + Clone + '_ {
    section.chunks_exact(4).map(|bytes| u32::from_le_bytes(array(bytes)))
}

pub fn wides(section: &[u8]) -> impl ExactSizeIterator<Item = u64> + Clone + '_ {
    section.chunks_exact(8).map(|bytes| u64::from_le_bytes(array(bytes)))
}

pub fn floats(section: &[u8]) -> impl ExactSizeIterator<Item = f32> + Clone + '_ {
    section.chunks_exact(4).map(|bytes| f32::from_le_bytes(array(bytes)))
}

pub fn doubles(section: &[u8]) -> impl ExactSizeIterator<Item = f64> + Clone + '_ {
    section.chunks_exact(8).map(|bytes| f64::from_le_bytes(array(bytes)))
}
