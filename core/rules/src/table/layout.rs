//! Where the parts of a table file are.
//!
//! ```text
//! magic, version | blocks of entries | sections | trailer
//! ```
//! A block belongs to one source side: the number of entries, their scores as 32-bit floats, one
//! row each, then target symbols and links of each as bytes. Nodes of the trie are numbered level
//! by level, so that the children of a node follow each other, sorted by symbol. All numbers are
//! little-endian; the trailer ends the file, so that a file cut short has none.

use tunesmith_text::{Error, Result};

pub const MAGIC: &[u8; 8] = b"tsmrules";
pub const VERSION: u32 = 1;
/// Magic, version and nothing yet.
pub const HEAD: usize = 16;
const END: &[u8; 8] = b"selurmst";

/// What the rules of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Phrase,
    Hiero,
}

/// The sections behind the blocks, in this order.
pub const SECTIONS: usize = 10;
pub const SYMBOLS: usize = 0;
pub const CHILDREN: usize = 1;
pub const BLOCKS: usize = 2;
pub const COLUMNS: usize = 3;
/// Three sections each: ends of words, words sorted by spelling, letters.
pub const SOURCE_WORDS: usize = 4;
pub const TARGET_WORDS: usize = 7;

/// What the end of the file says about the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailer {
    pub kind: Kind,
    pub nodes: u64,
    pub sources: u64,
    pub entries: u64,
    /// Offset and length of each section in bytes.
    pub sections: [(u64, u64); SECTIONS],
    /// Of everything before the trailer.
    pub checksum: u32,
}

impl Trailer {
    /// Kind, three counts, sections, two checksums and the magic.
    pub const SIZE: usize = 8 + 3 * 8 + SECTIONS * 16 + 8 + 8;

    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Trailer::SIZE);
        out.extend((self.kind as u64).to_le_bytes());
        for value in [self.nodes, self.sources, self.entries] {
            out.extend(value.to_le_bytes());
        }
        for (offset, length) in self.sections {
            out.extend(offset.to_le_bytes());
            out.extend(length.to_le_bytes());
        }
        out.extend(self.checksum.to_le_bytes());
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out.extend(END);
        out
    }

    /// Reads the trailer of a file and checks that all parts lie inside it and fit together.
    pub fn read(file: &[u8], name: &str) -> Result<Trailer> {
        let wrong =
            |message: &str, remedy: &str| Err(Error::new(message).at(name, None).remedy(remedy));
        if !file.starts_with(MAGIC) {
            return wrong("is not a table of rules", "make it with tunesmith train, or import it");
        }
        let version = file.get(8..12).map_or(0, |bytes| u32::from_le_bytes(word(bytes)));
        if version != VERSION {
            let message = format!("is a table of version {version}, not {VERSION}");
            return wrong(&message, "make the table again with this version");
        }
        let broken = || wrong("is truncated or corrupt", "copy or make the file again");
        let Some(start) = file.len().checked_sub(Trailer::SIZE).filter(|&start| start >= HEAD)
        else {
            return broken();
        };
        let bytes = &file[start..];
        let (checked, check) = bytes[..Trailer::SIZE - 8].split_at(Trailer::SIZE - 12);
        let sum = u32::from_le_bytes(word(check));
        if !bytes.ends_with(END) || crc32fast::hash(checked) != sum {
            return broken();
        }
        let long = |at: usize| u64::from_le_bytes(long(&bytes[at * 8..]));
        let kind = match long(0) {
            0 => Kind::Phrase,
            1 => Kind::Hiero,
            _ => return broken(),
        };
        let mut sections = [(0, 0); SECTIONS];
        for (number, section) in sections.iter_mut().enumerate() {
            *section = (long(4 + 2 * number), long(5 + 2 * number));
            let end = section.0.checked_add(section.1);
            if end.is_none_or(|end| end > start as u64) || !section.0.is_multiple_of(8) {
                return broken();
            }
        }
        let checksum = u32::from_le_bytes(word(&bytes[Trailer::SIZE - 16..]));
        let trailer = Trailer {
            kind,
            nodes: long(1),
            sources: long(2),
            entries: long(3),
            sections,
            checksum,
        };
        let sized = |section: usize, size: u64, more: u64| {
            (trailer.nodes.checked_add(more)).and_then(|count| count.checked_mul(size))
                == Some(sections[section].1)
        };
        let fits = sized(SYMBOLS, 4, 0) && sized(CHILDREN, 4, 1) && sized(BLOCKS, 8, 0);
        let words =
            |at: usize| sections[at].1 == sections[at + 1].1 && sections[at].1.is_multiple_of(4);
        if trailer.nodes == 0 || !fits || !words(SOURCE_WORDS) || !words(TARGET_WORDS) {
            return broken();
        }
        Ok(trailer)
    }
}

/// The first four bytes; zeros where there are fewer.
pub fn word(bytes: &[u8]) -> [u8; 4] {
    bytes.first_chunk().copied().unwrap_or_default()
}

/// The first eight bytes; zeros where there are fewer.
pub fn long(bytes: &[u8]) -> [u8; 8] {
    bytes.first_chunk().copied().unwrap_or_default()
}
