//! Greedy search for the block moves that save edits.

use super::align::{Alignment, within_beam};
use crate::ngrams::UNKNOWN;

/// Longest block that is moved.
const LONGEST: usize = 10;
/// Furthest distance between a block and its match in the reference.
const FURTHEST: usize = 50;
/// Moves tried for one hypothesis and reference before the search gives up.
const MOST: usize = 1000;

/// One reference, ready to be edited into.
pub(super) struct Reference {
    words: Vec<u32>,
    /// Word -> its places, a bit each; empty for a reference too long for that.
    places: Vec<u64>,
}

/// A block of the hypothesis and the place it is put at.
#[derive(Debug, Clone, Copy)]
struct Move {
    start: usize,
    length: usize,
    target: usize,
}

impl Move {
    /// What follows the untouched beginning of the hypothesis, in three pieces of it.
    fn pieces(self, words: usize) -> (usize, [std::ops::Range<usize>; 3]) {
        let Move { start, length, target } = self;
        let end = start + length;
        if target < start {
            return (target, [start..end, target..start, end..words]);
        }
        // A target inside the block moves it on by as many words.
        let until = if target > end { target } else { (target + length).min(words) };
        (start, [end..until, start..end, until..words])
    }
}

/// A column of the bit-parallel edit distance (Myers 1999, Hyyrö 2003): vertical differences
/// and the cost of its last cell.
#[derive(Debug, Clone, Copy)]
struct Column {
    up: u64,
    down: u64,
    cost: usize,
}

impl Column {
    fn next(self, places: u64, last: u64) -> Self {
        let x = places | self.down;
        let diagonal = ((self.up.wrapping_add(x & self.up)) ^ self.up) | x;
        let less = self.up & diagonal;
        let more = self.down | !(self.up | diagonal);
        let cost = self.cost + usize::from(more & last != 0) - usize::from(less & last != 0);
        let more = more << 1 | 1;
        Column { up: less << 1 | !(more | diagonal), down: more & diagonal, cost }
    }
}

impl Reference {
    pub fn new(words: Vec<u32>, vocabulary: usize) -> Self {
        let mut places = Vec::new();
        if words.len() <= 64 {
            places.resize(vocabulary, 0);
            for (place, &word) in words.iter().enumerate() {
                places[word as usize] |= 1 << place;
            }
        }
        Reference { words, places }
    }

    /// Edits and shifts that turn a hypothesis into the reference, as few as a greedy search
    /// finds.
    pub fn edits(&self, hypothesis: &[u32]) -> usize {
        if self.words.is_empty() {
            return hypothesis.len();
        }
        let mut words = hypothesis.to_vec();
        let mut tried = 0;
        let mut shifts = 0;
        loop {
            let alignment = Alignment::new(&words, &self.words);
            let best = self.best_move(&words, &alignment, &mut tried);
            match best {
                Some(best) if tried < MOST => {
                    let (kept, pieces) = best.pieces(words.len());
                    let moved: Vec<u32> =
                        pieces.into_iter().flat_map(|piece| &words[piece]).copied().collect();
                    words.truncate(kept);
                    words.extend(moved);
                    shifts += 1;
                }
                _ => return shifts + alignment.distance,
            }
        }
    }

    /// The move that saves most, if any saves an edit; among equals the longest block, then the
    /// first block, then the first target. Counts the moves tried.
    fn best_move(&self, words: &[u32], alignment: &Alignment, tried: &mut usize) -> Option<Move> {
        if alignment.distance == 0 {
            return None;
        }
        let columns = self.columns(words);
        let mut best: Option<(usize, Move)> = None;
        for start in 0..words.len() {
            if words[start] == UNKNOWN {
                continue;
            }
            let from = start.saturating_sub(FURTHEST);
            let to = (start + FURTHEST + 1).min(self.words.len());
            for at in from..to {
                let longest = LONGEST.min(words.len() - start).min(self.words.len() - at);
                for length in 1..=longest {
                    if words[start + length - 1] != self.words[at + length - 1] {
                        break;
                    }
                    // Only a block that is wrong where it is, and missed where it should be.
                    if alignment.wrong[start + length] == alignment.wrong[start]
                        || alignment.missed[at + length] == alignment.missed[at]
                        || (start + 1..=start + length).contains(&alignment.behind[at])
                    {
                        continue;
                    }
                    let mut last = usize::MAX;
                    for offset in 0..=length {
                        let place = (at + offset).checked_sub(1);
                        let target = place.map_or(0, |place| alignment.behind[place]);
                        if target == last {
                            continue;
                        }
                        last = target;
                        let shift = Move { start, length, target };
                        let distance = self.distance(words, shift, alignment, &columns);
                        *tried += 1;
                        let better = best.is_none_or(|(least, found)| {
                            (distance, found.length, start, target)
                                < (least, length, found.start, found.target)
                        });
                        if better {
                            best = Some((distance, shift));
                        }
                    }
                    if *tried >= MOST {
                        return None;
                    }
                }
            }
        }
        best.filter(|&(distance, _)| distance < alignment.distance).map(|(_, shift)| shift)
    }

    /// The column after each number of words of the hypothesis.
    fn columns(&self, words: &[u32]) -> Vec<Column> {
        let mut columns = vec![Column { up: !0, down: 0, cost: self.words.len() }];
        if !self.places.is_empty() {
            columns.reserve(words.len());
            for &word in words {
                columns.push(self.next(columns[columns.len() - 1], word));
            }
        }
        columns
    }

    fn next(&self, column: Column, word: u32) -> Column {
        let places = self.places.get(word as usize).copied().unwrap_or(0);
        column.next(places, 1 << (self.words.len() - 1))
    }

    fn distance(
        &self,
        words: &[u32],
        shift: Move,
        alignment: &Alignment,
        columns: &[Column],
    ) -> usize {
        let (kept, pieces) = shift.pieces(words.len());
        if !self.places.is_empty() {
            let mut column = columns[kept];
            for piece in pieces.clone() {
                for &word in &words[piece] {
                    column = self.next(column, word);
                }
            }
            if within_beam(column.cost, words.len(), self.words.len()) {
                return column.cost;
            }
        }
        let moved = pieces.into_iter().flat_map(|piece| &words[piece]).copied();
        alignment.distance_of(kept, moved, &self.words)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_distance_after_a_move_is_that_of_the_moved_words(
            words in proptest::collection::vec(0u32..6, 1..90),
            reference in proptest::collection::vec(0u32..6, 1..90),
            places in any::<[proptest::sample::Index; 3]>(),
        ) {
            let start = places[0].index(words.len());
            let length = 1 + places[1].index(LONGEST.min(words.len() - start));
            let shift = Move { start, length, target: places[2].index(words.len() + 1) };
            let (kept, pieces) = shift.pieces(words.len());
            let mut moved = words[..kept].to_vec();
            pieces.into_iter().for_each(|piece| moved.extend(&words[piece]));
            prop_assert_eq!(moved.len(), words.len());

            let reference = Reference::new(reference, 6);
            let alignment = Alignment::new(&words, &reference.words);
            let found = reference.distance(&words, shift, &alignment, &reference.columns(&words));
            prop_assert_eq!(found, Alignment::new(&moved, &reference.words).distance);
        }
    }
}
