//! Which rules match where: the table's trie is walked along the sentence, over words and over
//! spans that have been built already.

use std::ops::Range;

use tunesmith_rules::{Node, Symbol, Table};

/// A source side in a sentence; spans of gaps in its order, empty where there is none.
#[derive(Debug, Clone, Copy)]
pub struct Match {
    pub node: Node,
    pub gaps: [(u32, u32); 2],
}

/// The beginning of a source side.
#[derive(Clone, Copy)]
struct Item {
    at: Match,
    gaps: u8,
}

/// Walks from one start; the ends are asked for from left to right.
pub struct Walk<'s> {
    table: &'s Table,
    words: &'s [u32],
    start: usize,
    /// What ends at each place behind the start.
    items: Vec<Vec<Item>>,
    /// The same one gap further, whatever the gap will span.
    waiting: Vec<Vec<Item>>,
}

impl<'s> Walk<'s> {
    /// For starts from right to left, the buffers are used again.
    pub fn new(table: &'s Table, words: &'s [u32]) -> Walk<'s> {
        Walk { table, words, start: 0, items: Vec::new(), waiting: Vec::new() }
    }

    /// Begins at a place, for ends up to `limit` words further.
    pub fn begin(&mut self, start: usize, limit: usize) {
        self.start = start;
        self.items.resize_with(self.items.len().max(limit + 1), Vec::new);
        self.waiting.resize_with(self.waiting.len().max(limit + 1), Vec::new);
        self.items.iter_mut().chain(&mut self.waiting).for_each(Vec::clear);
        let root = Match { node: self.table.root(), gaps: [(0, 0); 2] };
        self.put(0, Item { at: root, gaps: 0 });
    }

    fn put(&mut self, length: usize, item: Item) {
        let gap = Symbol::Gap(item.gaps + 1);
        if item.gaps < 2
            && let Some(node) = self.table.child(item.at.node, gap)
        {
            let mut next = item;
            next.at.node = node;
            next.gaps += 1;
            self.waiting[length].push(next);
        }
        self.items[length].push(item);
    }

    /// All source sides that end before `end`, but for a single gap; `built` says which spans can
    /// be under a gap.
    pub fn advance(
        &mut self,
        end: usize,
        built: impl Fn(Range<usize>) -> bool,
        mut found: impl FnMut(Match),
    ) {
        let length = end - self.start;
        for before in 1..length {
            if built(self.start + before..end) {
                self.fill(before, length);
            }
        }
        let word = Symbol::Word(self.words[end - 1]);
        for number in 0..self.items[length - 1].len() {
            let mut item = self.items[length - 1][number];
            if let Some(node) = self.table.child(item.at.node, word) {
                item.at.node = node;
                self.put(length, item);
            }
        }
        self.items[length].iter().for_each(|item| found(item.at));
    }

    /// Says that the whole of the start to `end` has been built.
    pub fn built(&mut self, end: usize) {
        self.fill(0, end - self.start);
    }

    /// Lets the gaps that begin after `before` words end after `length`.
    fn fill(&mut self, before: usize, length: usize) {
        for number in 0..self.waiting[before].len() {
            let mut item = self.waiting[before][number];
            item.at.gaps[usize::from(item.gaps) - 1] =
                ((self.start + before) as u32, (self.start + length) as u32);
            self.put(length, item);
        }
    }
}
