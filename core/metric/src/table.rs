//! Statistics of every hypothesis of a corpus, equal rows of a sentence kept once.

use std::ops::Range;

use rustc_hash::FxHashMap;

/// Distinct statistics rows per sentence, and which row each hypothesis has.
#[derive(Debug, Clone, Default)]
pub struct Table {
    width: usize,
    /// First distinct row of each sentence, and the end.
    starts: Vec<usize>,
    rows: Vec<f64>,
    /// Hypothesis -> its row, counted from the sentence's first.
    of: Vec<u32>,
}

impl Table {
    pub fn width(&self) -> usize {
        self.width
    }

    pub fn sentences(&self) -> usize {
        self.starts.len() - 1
    }

    pub fn hypotheses(&self) -> usize {
        self.of.len()
    }

    pub fn distinct(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// The distinct rows of a sentence, one after the other.
    pub fn rows(&self, sentence: usize) -> &[f64] {
        &self.rows[self.starts[sentence] * self.width..self.starts[sentence + 1] * self.width]
    }

    /// Row numbers of the hypotheses in `list` (positions in the whole corpus).
    pub fn of(&self, list: Range<usize>) -> &[u32] {
        &self.of[list]
    }

    /// The statistics of one hypothesis of a sentence.
    pub fn stats(&self, sentence: usize, hypothesis: usize) -> &[f64] {
        let row = self.starts[sentence] + self.of[hypothesis] as usize;
        &self.rows[row * self.width..(row + 1) * self.width]
    }
}

/// Builds a [`Table`], sentence by sentence.
#[derive(Debug)]
pub struct TableBuilder {
    table: Table,
    seen: FxHashMap<Vec<u64>, u32>,
}

impl TableBuilder {
    pub fn new(width: usize) -> Self {
        let table = Table { width, starts: vec![0], ..Table::default() };
        TableBuilder { table, seen: FxHashMap::default() }
    }

    /// Adds a hypothesis to the open sentence.
    pub fn push(&mut self, stats: &[f64]) {
        assert_eq!(stats.len(), self.table.width, "statistics of another metric");
        let key: Vec<u64> = stats.iter().map(|value| value.to_bits()).collect();
        let next = self.seen.len() as u32;
        let row = *self.seen.entry(key).or_insert(next);
        if row == next {
            self.table.rows.extend_from_slice(stats);
        }
        self.table.of.push(row);
    }

    /// Closes the open sentence.
    pub fn close(&mut self) {
        let last = self.table.starts[self.table.starts.len() - 1];
        self.table.starts.push(last + self.seen.len());
        self.seen.clear();
    }

    pub fn finish(self) -> Table {
        self.table
    }
}
