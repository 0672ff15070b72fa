//! Phrase pairs of a sentence as records: source, target, links, orientation.

use crate::bitext::Sentence;
use crate::blocks::Grid;
use crate::coded::Coded;
use crate::links::put_links;
use crate::orientation::{Hierarchy, Pair, by_word};

/// Which phrase pairs to extract.
#[derive(Debug, Clone)]
pub struct PhraseOptions {
    /// Words on either side at most.
    pub max_length: usize,
    /// Count orientations by word, as msd-bidirectional-fe.
    pub reordering: bool,
    /// Count orientations to blocks of any size as well.
    pub hierarchical_reordering: bool,
    /// Tell left from right where a block stands apart.
    pub reordering_sides: bool,
}

impl Default for PhraseOptions {
    fn default() -> Self {
        PhraseOptions {
            max_length: 7,
            reordering: true,
            hierarchical_reordering: false,
            reordering_sides: false,
        }
    }
}

/// Extracts from one sentence after another, keeping its buffers.
pub struct PhraseExtractor<'o> {
    options: &'o PhraseOptions,
    source: Coded,
    target: Coded,
    links: Vec<tunesmith_align::Link>,
    record: Vec<u8>,
}

impl<'o> PhraseExtractor<'o> {
    pub fn new(options: &'o PhraseOptions) -> Self {
        PhraseExtractor {
            options,
            source: Coded::default(),
            target: Coded::default(),
            links: Vec::new(),
            record: Vec::new(),
        }
    }

    /// Calls `emit` with the record of every phrase pair.
    pub fn extract(&mut self, sentence: Sentence<'_>, mut emit: impl FnMut(&[u8])) {
        let grid = Grid::new(sentence);
        let corners = self.options.hierarchical_reordering.then(|| Hierarchy::new(&grid));
        self.source.set(sentence.source);
        self.target.set(sentence.target);
        let (record, links) = (&mut self.record, &mut self.links);
        let limit = self.options.max_length;
        grid.blocks((limit, limit), false, |block| {
            let ((first, last), (start, end)) = (block.source, block.target);
            record.clear();
            record.extend_from_slice(self.source.span(first, last));
            record.push(0);
            record.extend_from_slice(self.target.span(start, end));
            record.push(0);
            links.clear();
            for target in start..=end {
                let to = (target - start) as u16;
                links.extend(grid.sources(target).map(|source| ((source - first) as u16, to)));
            }
            put_links(links, last - first + 1, end - start + 1, record);
            let mut orientation = 0;
            if self.options.reordering {
                orientation |= bits(by_word(&grid, block));
            }
            if let Some(corners) = &corners {
                orientation |= bits(corners.orient(&grid, block)) << 4;
            }
            record.push(orientation);
            emit(record);
        });
    }
}

fn bits(pair: Pair) -> u8 {
    pair.0 as u8 | (pair.1 as u8) << 2
}
