//! Reading a table: nothing is copied, nothing is trusted.

use std::fs::File;
use std::path::Path;

use rayon::prelude::*;
use tunesmith_align::Link;
use tunesmith_text::{Error, Mapped, Result};

use super::layout::{
    BLOCKS, CHILDREN, COLUMNS, Kind, SOURCE_WORDS, SYMBOLS, TARGET_WORDS, Trailer, long, word,
};
use crate::code::{Symbol, codes, take_side};
use crate::links::{links, take_links};
use crate::score::{Column, Scale};
use crate::store::read_at;

/// Bytes of the file that one thread checks at a time.
const PIECE: usize = 1 << 20;

/// A table of rules in memory-mapped form. A large file must not change while it is open; see
/// [`Mapped`].
pub struct Table {
    map: Mapped,
    trailer: Trailer,
    columns: Vec<Column>,
}

/// A prefix of source sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node {
    index: u32,
    depth: u32,
}

impl Node {
    /// The node that [`Self::index`] and [`Self::depth`] were taken from; any other pair leads to
    /// odd rules or none.
    pub fn new(index: u32, depth: u32) -> Node {
        Node { index, depth }
    }

    /// The number of symbols on the way here.
    pub fn depth(self) -> usize {
        self.depth as usize
    }

    /// A number below [`Table::nodes`].
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// One rule of a source side.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'t> {
    /// One number for each column.
    pub scores: &'t [f32],
    target: &'t [u8],
    links: &'t [u8],
    lengths: (usize, usize),
}

impl<'t> Entry<'t> {
    /// The number of symbols on the target side.
    pub fn target_length(&self) -> usize {
        self.lengths.1
    }

    pub fn target(&self) -> impl Iterator<Item = Symbol> + 't {
        codes(self.target).map(Symbol::from_code)
    }

    /// Links between places on the two sides, sorted by target, then source.
    pub fn links(&self) -> impl Iterator<Item = Link> + 't {
        links(self.links, self.lengths.0, self.lengths.1)
    }
}

impl Table {
    /// Opens a table after checking that it is whole: no part of a file that was cut short or
    /// changed is ever used. `verify` reads all of it for the checksum; without, only the outer
    /// structure is checked, and damage inside gives fewer or odd rules, never a crash.
    pub fn open(path: &Path, verify: bool) -> Result<Table> {
        let name = path.display().to_string();
        let failed = |error: std::io::Error| Error::io(&name, None, &error);
        let map = Mapped::open(path)?;
        let trailer = Trailer::read(&map, &name)?;
        let corrupt = |message: &str| {
            Error::new(message).at(&name, None).remedy("copy or make the file again")
        };
        let length = map.len() - Trailer::SIZE;
        let sum = |map: &Mapped| match map.file() {
            Some(file) => checksum(file, length).map_err(failed),
            None => Ok(crc32fast::hash(&map[..length])),
        };
        if verify && sum(&map)? != trailer.checksum {
            return Err(corrupt("is corrupt: its checksum differs"));
        }
        let mut table = Table { map, trailer, columns: Vec::new() };
        let columns = std::str::from_utf8(table.section(COLUMNS)).unwrap_or_default().lines();
        table.columns = columns
            .map(|line| {
                let (name, scale) = line.rsplit_once('\t')?;
                let scale = Scale::ALL.iter().find(|known| known.0 == scale)?.1;
                Some(Column::new(name, scale))
            })
            .collect::<Option<_>>()
            .ok_or_else(|| corrupt("is corrupt: no names of columns"))?;
        Ok(table)
    }

    pub fn kind(&self) -> Kind {
        self.trailer.kind
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The number of source sides.
    pub fn sources(&self) -> u64 {
        self.trailer.sources
    }

    /// The number of rules.
    pub fn entry_count(&self) -> u64 {
        self.trailer.entries
    }

    pub fn nodes(&self) -> usize {
        self.trailer.nodes as usize
    }

    /// The size of the file.
    pub fn bytes(&self) -> usize {
        self.map.len()
    }

    fn section(&self, number: usize) -> &[u8] {
        let (offset, length) = self.trailer.sections[number];
        &self.map[offset as usize..][..length as usize]
    }

    fn number(&self, section: usize, at: usize) -> Option<u32> {
        self.section(section).get(4 * at..4 * at + 4).map(|bytes| u32::from_le_bytes(word(bytes)))
    }

    pub fn root(&self) -> Node {
        Node { index: 0, depth: 0 }
    }

    fn range(&self, node: Node) -> std::ops::Range<usize> {
        let bound = |at| self.number(CHILDREN, at).unwrap_or(0) as usize;
        let (start, end) = (bound(node.index()), bound(node.index() + 1));
        // A damaged file must not lead in circles.
        if start <= node.index() || end > self.nodes() { 0..0 } else { start..end }
    }

    /// The node after one more symbol on the source side.
    pub fn child(&self, node: Node, symbol: Symbol) -> Option<Node> {
        // Ids behind the last are those of words that the table does not know; a damaged one may
        // have them all the same.
        if matches!(symbol, Symbol::Word(id) if id as usize >= self.source_words()) {
            return None;
        }
        let code = symbol.code();
        let range = self.range(node);
        let symbols = self.section(SYMBOLS).get(4 * range.start..4 * range.end)?;
        let (mut low, mut high) = (0, range.len());
        while low < high {
            let middle = (low + high) / 2;
            match u32::from_le_bytes(word(&symbols[4 * middle..])).cmp(&code) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let index = (range.start + middle) as u32;
                    return Some(Node { index, depth: node.depth + 1 });
                }
            }
        }
        None
    }

    /// All nodes one symbol further, in the order of symbols.
    pub fn children(&self, node: Node) -> impl Iterator<Item = (Symbol, Node)> + '_ {
        self.range(node).filter_map(move |index| {
            let code = self.number(SYMBOLS, index)?;
            let child = Node { index: index as u32, depth: node.depth + 1 };
            (code != 0).then(|| (Symbol::from_code(code), child))
        })
    }

    /// The rules whose source side ends at this node.
    pub fn entries(&self, node: Node) -> Entries<'_> {
        self.block(node).unwrap_or(Entries { scores: &[], bodies: &[], width: 1, source: 0 })
    }

    fn block(&self, node: Node) -> Option<Entries<'_>> {
        let at = self.section(BLOCKS).get(8 * node.index()..8 * node.index() + 8)?;
        let offset = u64::from_le_bytes(long(at)) as usize;
        let body = &self.map[..self.trailer.sections[0].0 as usize];
        let block = body.get(offset..).filter(|_| offset != 0)?;
        let count = u32::from_le_bytes(word(block)) as usize;
        let width = self.columns.len();
        let length = count.checked_mul(width)?.checked_mul(4)?;
        let scores = floats(block.get(4..)?.get(..length)?)?;
        let bodies = &block[4 + length..];
        Some(Entries { scores, bodies, width, source: node.depth() })
    }

    /// The rules with exactly this source side.
    pub fn lookup(&self, source: &[Symbol]) -> Entries<'_> {
        let end = source.iter().try_fold(self.root(), |node, &symbol| self.child(node, symbol));
        end.map_or(Entries { scores: &[], bodies: &[], width: 1, source: 0 }, |n| self.entries(n))
    }

    pub fn source_id(&self, word: &str) -> Option<u32> {
        self.find(SOURCE_WORDS, word)
    }

    pub fn target_id(&self, word: &str) -> Option<u32> {
        self.find(TARGET_WORDS, word)
    }

    pub fn source_word(&self, id: u32) -> Option<&str> {
        self.spelling(SOURCE_WORDS, id)
    }

    pub fn target_word(&self, id: u32) -> Option<&str> {
        self.spelling(TARGET_WORDS, id)
    }

    pub fn source_words(&self) -> usize {
        self.section(SOURCE_WORDS).len() / 4
    }

    pub fn target_words(&self) -> usize {
        self.section(TARGET_WORDS).len() / 4
    }

    fn spelling(&self, section: usize, id: u32) -> Option<&str> {
        let id = id as usize;
        let end = self.number(section, id)? as usize;
        let start = id.checked_sub(1).map_or(Some(0), |last| self.number(section, last))? as usize;
        std::str::from_utf8(self.section(section + 2).get(start..end)?).ok()
    }

    fn find(&self, section: usize, word: &str) -> Option<u32> {
        let (mut low, mut high) = (0, self.section(section).len() / 4);
        while low < high {
            let middle = (low + high) / 2;
            let id = self.number(section + 1, middle)?;
            match self.spelling(section, id)?.cmp(word) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(id),
            }
        }
        None
    }
}

/// The rules of one source side.
#[derive(Debug, Clone)]
pub struct Entries<'t> {
    scores: &'t [f32],
    bodies: &'t [u8],
    width: usize,
    source: usize,
}

impl<'t> Entries<'t> {
    /// The columns of the rule at a place, found without reading those before it.
    pub fn scores(&self, place: usize) -> Option<&'t [f32]> {
        self.scores.get(place * self.width..(place + 1) * self.width)
    }
}

impl<'t> Iterator for Entries<'t> {
    type Item = Entry<'t>;

    fn next(&mut self) -> Option<Entry<'t>> {
        if self.scores.is_empty() {
            return None;
        }
        let (scores, rest) = self.scores.split_at_checked(self.width)?;
        self.scores = rest;
        let (target, length) = take_side(&mut self.bodies)?;
        let links = take_links(&mut self.bodies, self.source, length)?;
        Some(Entry { scores, target, links, lengths: (self.source, length) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.scores.len() / self.width.max(1);
        (0, Some(count))
    }
}

/// Read and not looked at through the map, so that the pages do not count as memory of ours.
fn checksum(file: &File, length: usize) -> std::io::Result<u32> {
    let starts: Vec<usize> = (0..length).step_by(PIECE).collect();
    let pieces: Vec<crc32fast::Hasher> = starts
        .par_iter()
        .map_init(
            || vec![0; PIECE],
            |buffer, &start| {
                let piece = &mut buffer[..PIECE.min(length - start)];
                read_at(file, start as u64, piece)?;
                let mut hasher = crc32fast::Hasher::new();
                hasher.update(piece);
                Ok(hasher)
            },
        )
        .collect::<std::io::Result<_>>()?;
    let mut whole = crc32fast::Hasher::new();
    pieces.iter().for_each(|piece| whole.combine(piece));
    Ok(whole.finalize())
}

#[cfg(target_endian = "big")]
compile_error!("tables are little-endian and read in place");

/// Bytes as floats; `None` where they are not aligned.
fn floats(bytes: &[u8]) -> Option<&[f32]> {
    // SAFETY: every pattern of four bytes is a float.
    let (before, floats, after) = unsafe { bytes.align_to::<f32>() };
    (before.is_empty() && after.is_empty()).then_some(floats)
}
