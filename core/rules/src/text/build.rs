//! Rules from text, gathered in memory and written as a table.

use std::path::Path;

use rustc_hash::FxHashSet;
use tunesmith_align::Link;
use tunesmith_text::{Names, Result};

use crate::code::{FIRST_WORD, codes, put, take_side};
use crate::links::put_links;
use crate::score::Column;
use crate::table::{Kind, TableWriter};

/// What an import found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    pub sources: u64,
    pub entries: u64,
    /// Rules that had come before with the same sides and scores.
    pub repeated: u64,
    /// Rules of another kind, such as glue.
    pub left_out: u64,
    /// Rules that a second file said nothing about.
    pub missing: u64,
}

struct Row {
    start: usize,
    /// Where the target side starts and the links end.
    middle: usize,
    end: usize,
    scores: usize,
}

/// Takes rules in any order.
#[derive(Default)]
pub struct Builder {
    source: Names,
    target: Names,
    bytes: Vec<u8>,
    rows: Vec<Row>,
    scores: Vec<(u32, f32)>,
    pub imported: Imported,
}

impl Builder {
    /// The code of a word, given a new one if it has none yet.
    pub fn source(&mut self, word: &str) -> u32 {
        self.source.intern(word) + FIRST_WORD
    }

    pub fn target(&mut self, word: &str) -> u32 {
        self.target.intern(word) + FIRST_WORD
    }

    /// The codes of known words; `None` where a side has others.
    pub fn known(&self, source: &str, target: &str, out: &mut Vec<u8>) -> Option<()> {
        for (names, side) in [(&self.source, source), (&self.target, target)] {
            for word in side.split([' ', '\t']).filter(|word| !word.is_empty()) {
                put(names.id(word)? + FIRST_WORD, out);
            }
            out.push(0);
        }
        Some(())
    }

    /// Adds a rule with scores by column; returns the bytes of both sides, which are its key.
    pub fn add(
        &mut self,
        source: &[u32],
        target: &[u32],
        links: &mut [Link],
        scores: impl IntoIterator<Item = (u32, f32)>,
    ) -> Vec<u8> {
        let start = self.bytes.len();
        source.iter().for_each(|&code| put(code, &mut self.bytes));
        self.bytes.push(0);
        let middle = self.bytes.len();
        target.iter().for_each(|&code| put(code, &mut self.bytes));
        self.bytes.push(0);
        let key = self.bytes[start..].to_vec();
        links.sort_unstable_by_key(|&(source, target)| (target, source));
        put_links(links, source.len(), target.len(), &mut self.bytes);
        self.scores.extend(scores);
        let end = self.bytes.len();
        self.rows.push(Row { start, middle, end, scores: self.scores.len() });
        key
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Writes the table. `more` gives further scores of a rule by its number.
    pub fn finish(
        mut self,
        path: &Path,
        kind: Kind,
        columns: Vec<Column>,
        more: impl Fn(usize, &mut [f32]),
    ) -> Result<Imported> {
        let width = columns.len();
        let mut writer = TableWriter::create(path, kind, columns)?;
        let source = |row: usize| &self.bytes[self.rows[row].start..self.rows[row].middle];
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(|&a, &b| source(a).cmp(source(b)));
        // A target side that comes again with other scores is a rule of its own.
        let mut seen: FxHashSet<(&[u8], Vec<u32>)> = FxHashSet::default();
        for group in order.chunk_by(|&a, &b| source(a) == source(b)) {
            seen.clear();
            let mut scores = Vec::new();
            let mut bodies = Vec::new();
            let mut count = 0;
            for &at in group {
                let row = &self.rows[at];
                let body = &self.bytes[row.middle..row.end];
                let target = take_side(&mut &*body).map_or(body, |side| side.0);
                let start = scores.len();
                scores.resize(start + width, 0.0);
                let first = at.checked_sub(1).map_or(0, |last| self.rows[last].scores);
                for &(column, score) in &self.scores[first..row.scores] {
                    scores[start + column as usize] = score;
                }
                more(at, &mut scores[start..]);
                let bits = scores[start..].iter().map(|score| score.to_bits()).collect();
                if !seen.insert((target, bits)) {
                    self.imported.repeated += 1;
                    scores.truncate(start);
                    continue;
                }
                bodies.extend_from_slice(body);
                count += 1;
            }
            let codes: Vec<u32> = codes(source(group[0])).collect();
            writer.add(&codes, count, &scores, &bodies)?;
        }
        (self.imported.sources, self.imported.entries) =
            writer.finish(&self.source.into(), &self.target.into())?;
        Ok(self.imported)
    }
}
