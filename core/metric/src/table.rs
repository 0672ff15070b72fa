//! Statistics of every hypothesis of a corpus, equal rows of a sentence kept once.

use std::ops::Range;

use rustc_hash::FxHashMap;

/// Distinct statistics rows per sentence, and which row each hypothesis has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    width: usize,
    /// First distinct row of each sentence, and the end.
    starts: Vec<usize>,
    rows: Vec<f64>,
    /// Hypothesis -> its row, counted from the sentence's first.
    of: Vec<u32>,
}

impl Table {
    /// From distinct rows: `starts` has the first row of each sentence and the number of all, `of`
    /// the row of each hypothesis, counted from its sentence's first.
    pub fn of_distinct(width: usize, starts: Vec<usize>, rows: Vec<f64>, of: Vec<u32>) -> Table {
        assert!(starts.first() == Some(&0) && starts.is_sorted());
        assert!(starts.last().map(|end| end * width) == Some(rows.len()));
        Table { width, starts, rows, of }
    }

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

    /// Where a sentence's distinct rows stand among all.
    pub fn range(&self, sentence: usize) -> Range<usize> {
        self.starts[sentence]..self.starts[sentence + 1]
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

    /// The statistics of some sentences, whose lists are `starts[i]..starts[i + 1]` here.
    pub fn subset(&self, sentences: &[usize], starts: &[usize]) -> Table {
        let mut part = Table { width: self.width, starts: vec![0], ..Table::default() };
        for &sentence in sentences {
            part.rows.extend_from_slice(self.rows(sentence));
            part.of.extend_from_slice(self.of(starts[sentence]..starts[sentence + 1]));
            part.starts.push(part.rows.len() / self.width);
        }
        part
    }

    /// The table of sentences whose lists were built apart.
    pub(crate) fn join(width: usize, lists: Vec<Rows>) -> Self {
        let mut table = Table { width, starts: vec![0], ..Table::default() };
        table.rows.reserve_exact(lists.iter().map(|list| list.rows.len()).sum());
        table.of.reserve_exact(lists.iter().map(|list| list.of.len()).sum());
        lists.into_iter().for_each(|list| table.push(&list));
        table
    }

    fn push(&mut self, list: &Rows) {
        self.rows.extend_from_slice(&list.rows);
        self.of.extend_from_slice(&list.of);
        self.starts.push(self.rows.len() / self.width);
    }
}

/// The distinct rows of one sentence.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    rows: Vec<f64>,
    of: Vec<u32>,
    seen: FxHashMap<Box<[u64]>, u32>,
    key: Vec<u64>,
}

impl Rows {
    /// Adds a hypothesis and returns its row number.
    pub fn push(&mut self, stats: &[f64]) -> u32 {
        self.key.clear();
        self.key.extend(stats.iter().map(|value| value.to_bits()));
        let row = match self.seen.get(self.key.as_slice()) {
            Some(&row) => row,
            None => {
                let row = self.seen.len() as u32;
                self.seen.insert(self.key.as_slice().into(), row);
                self.rows.extend_from_slice(stats);
                row
            }
        };
        self.of.push(row);
        row
    }

    /// Adds a hypothesis whose row is known.
    pub fn repeat(&mut self, row: u32) {
        self.of.push(row);
    }

    /// Gives up what only further rows need.
    pub fn shut(mut self) -> Self {
        self.seen = FxHashMap::default();
        self
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.of.clear();
        self.seen.clear();
    }
}

/// Builds a [`Table`], sentence by sentence.
#[derive(Debug)]
pub struct TableBuilder {
    table: Table,
    list: Rows,
}

impl TableBuilder {
    pub fn new(width: usize) -> Self {
        let table = Table { width, starts: vec![0], ..Table::default() };
        TableBuilder { table, list: Rows::default() }
    }

    /// Adds a hypothesis to the open sentence.
    pub fn push(&mut self, stats: &[f64]) {
        assert_eq!(stats.len(), self.table.width, "statistics of another metric");
        self.list.push(stats);
    }

    /// Closes the open sentence.
    pub fn close(&mut self) {
        self.table.push(&self.list);
        self.list.clear();
    }

    pub fn finish(self) -> Table {
        self.table
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_table_returns_what_was_pushed(
            lists in proptest::collection::vec(
                proptest::collection::vec([0u8..3, 0u8..2], 0..8), 0..6)
        ) {
            let mut builder = TableBuilder::new(2);
            for list in &lists {
                for row in list {
                    builder.push(&row.map(f64::from));
                }
                builder.close();
            }
            let table = builder.finish();
            prop_assert_eq!(table.sentences(), lists.len());
            let mut position = 0;
            for (sentence, list) in lists.iter().enumerate() {
                for row in list {
                    prop_assert_eq!(table.stats(sentence, position), row.map(f64::from));
                    position += 1;
                }
                prop_assert!(table.rows(sentence).len() <= 2 * list.len());
            }
            prop_assert_eq!(table.hypotheses(), position);
        }
    }
}
