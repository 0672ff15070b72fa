//! Writing a table in one pass, source side by source side.

use std::path::Path;

use tunesmith_text::{AtomicWriter, Error, Result};

use super::layout::{HEAD, Kind, MAGIC, SECTIONS, Trailer, VERSION};
use crate::score::Column;
use crate::vocabulary::Vocabulary;

/// Bytes that are gathered before they are written.
const BUFFER: usize = 1 << 16;

/// The nodes of one level of the trie, in order.
#[derive(Default)]
struct Level {
    symbols: Vec<u32>,
    blocks: Vec<u64>,
    children: Vec<u32>,
}

impl Level {
    fn push(&mut self, symbol: u32) {
        self.symbols.push(symbol);
        self.blocks.push(0);
        self.children.push(0);
    }
}

/// Takes blocks in the order of their source sides; only the trie stays in memory.
pub struct TableWriter {
    out: AtomicWriter,
    file: String,
    position: u64,
    checksum: crc32fast::Hasher,
    kind: Kind,
    columns: Vec<Column>,
    levels: Vec<Level>,
    last: Vec<u32>,
    sources: u64,
    entries: u64,
}

impl TableWriter {
    pub fn create(path: &Path, kind: Kind, columns: Vec<Column>) -> Result<Self> {
        let mut writer = TableWriter {
            out: AtomicWriter::create(path)?,
            file: path.display().to_string(),
            position: 0,
            checksum: crc32fast::Hasher::new(),
            kind,
            columns,
            levels: vec![Level::default()],
            last: Vec::new(),
            sources: 0,
            entries: 0,
        };
        writer.levels[0].push(0);
        let mut head = MAGIC.to_vec();
        head.extend(VERSION.to_le_bytes());
        head.resize(HEAD, 0);
        writer.put(&head)?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.checksum.update(bytes);
        self.position += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn align(&mut self, to: u64) -> Result<()> {
        let missing = (to - self.position % to) % to;
        self.put(&[0; 8][..missing as usize])
    }

    /// Appends the entries of one source side: scores row by row, then for each entry its target
    /// side with the end and its links. Sides come sorted, each once.
    pub fn add(&mut self, source: &[u32], count: u32, scores: &[f32], bodies: &[u8]) -> Result<()> {
        let known = source.iter().zip(&self.last).take_while(|(new, old)| new == old).count();
        let sorted = source.get(known) > self.last.get(known);
        if !sorted || scores.len() != count as usize * self.columns.len() {
            return Err(Error::new("rules out of order").at(&self.file, None));
        }
        self.align(4)?;
        for (depth, &symbol) in source.iter().enumerate().skip(known) {
            if self.levels.len() <= depth + 1 {
                self.levels.push(Level::default());
            }
            if let Some(children) = self.levels[depth].children.last_mut() {
                *children += 1;
            }
            self.levels[depth + 1].push(symbol);
        }
        if let Some(block) = self.levels[source.len()].blocks.last_mut() {
            *block = self.position;
        }
        self.last.clear();
        self.last.extend_from_slice(source);
        self.sources += 1;
        self.entries += u64::from(count);
        let mut head = count.to_le_bytes().to_vec();
        head.extend(scores.iter().flat_map(|score| score.to_le_bytes()));
        self.put(&head)?;
        self.put(bodies)
    }

    /// Writes a section; returns where it is and how long.
    fn section<const N: usize>(
        &mut self,
        values: impl Iterator<Item = [u8; N]>,
    ) -> Result<(u64, u64)> {
        self.align(8)?;
        let start = self.position;
        let mut buffer = Vec::with_capacity(BUFFER);
        for value in values {
            buffer.extend(value);
            if buffer.len() >= BUFFER {
                self.put(&buffer)?;
                buffer.clear();
            }
        }
        self.put(&buffer)?;
        Ok((start, self.position - start))
    }

    /// Writes trie and words, and makes the file appear; returns the numbers of source sides and
    /// entries.
    pub fn finish(mut self, source: &Vocabulary, target: &Vocabulary) -> Result<(u64, u64)> {
        let nodes: usize = self.levels.iter().map(|level| level.symbols.len()).sum();
        if u32::try_from(nodes).is_err() {
            return Err(Error::new("more than 2^32 prefixes of source sides")
                .at(&self.file, None)
                .remedy("leave out rules that were seen once"));
        }
        let levels = std::mem::take(&mut self.levels);
        let mut next = 1u32;
        let children = levels.iter().flat_map(|level| &level.children).map(|count| {
            next += count;
            next
        });
        let children = [1].into_iter().chain(children).map(u32::to_le_bytes);
        let symbols = levels.iter().flat_map(|level| &level.symbols).map(|code| code.to_le_bytes());
        let blocks = levels.iter().flat_map(|level| &level.blocks).map(|place| place.to_le_bytes());
        // Number by number: a second copy of the trie would be the largest thing in memory.
        let mut places =
            vec![self.section(symbols)?, self.section(children)?, self.section(blocks)?];
        drop(levels);
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|column| format!("{}\t{}\n", column.name, column.scale.name()))
            .collect();
        let bytes = |bytes: Vec<u8>| bytes.into_iter().map(|byte| [byte]);
        places.push(self.section(bytes(columns.concat().into_bytes()))?);
        for part in vocabulary(source).into_iter().chain(vocabulary(target)) {
            places.push(self.section(bytes(part))?);
        }
        let mut sections = [(0, 0); SECTIONS];
        sections.copy_from_slice(&places);
        self.align(8)?;
        let trailer = Trailer {
            kind: self.kind,
            nodes: nodes as u64,
            sources: self.sources,
            entries: self.entries,
            sections,
            checksum: self.checksum.finalize(),
        };
        self.out.write_all(&trailer.bytes())?;
        self.out.finish()?;
        Ok((self.sources, self.entries))
    }
}

fn vocabulary(vocabulary: &Vocabulary) -> [Vec<u8>; 3] {
    let mut letters = Vec::new();
    let mut ends = Vec::new();
    for word in vocabulary.iter() {
        letters.extend_from_slice(word.as_bytes());
        ends.extend((letters.len() as u32).to_le_bytes());
    }
    let mut order: Vec<(&str, u32)> = vocabulary.iter().zip(0..).collect();
    order.sort_unstable();
    let order = order.iter().flat_map(|(_, id)| id.to_le_bytes()).collect();
    [ends, order, letters]
}
