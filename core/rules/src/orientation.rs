//! Whether a phrase continues its neighbour, swaps with it, or stands apart.

use crate::blocks::{Block, Grid};

/// The place of a phrase relative to the one before or after it on the target side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orientation {
    Monotone,
    Swap,
    /// Apart, and left of the phrase before it; of the phrase after it, which lies to the left.
    Left,
    /// Apart, and to the right likewise.
    Right,
}

impl Orientation {
    fn new(monotone: bool, swap: bool, right: bool) -> Self {
        match (monotone, swap) {
            (true, false) => Orientation::Monotone,
            (false, true) => Orientation::Swap,
            _ if right => Orientation::Right,
            _ => Orientation::Left,
        }
    }
}

/// To the previous and to the next phrase.
pub type Pair = (Orientation, Orientation);

/// By the link of the word diagonally before and after the phrase.
pub fn by_word(grid: &Grid<'_>, block: Block) -> Pair {
    let corners = Corners::new(block);
    let linked = |corner: (isize, isize)| grid.linked(corner.0, corner.1);
    let ((first, last), (start, end)) = (block.source, block.target);
    // The nearest linked word on the target side decides; a sentence begins at the left.
    let is_linked = |row: &usize| grid.sources(*row).next().is_some();
    let before = (0..start).rev().find(is_linked);
    let after = (end + 1..grid.sentence.target.len()).find(is_linked);
    let follows = before.is_none_or(|row| grid.sources(row).any(|source| source < first));
    let goes_on = after.is_none_or(|row| grid.sources(row).any(|source| source > last));
    (
        Orientation::new(linked(corners.before), linked(corners.before_swapped), follows),
        Orientation::new(linked(corners.after), linked(corners.after_swapped), goes_on),
    )
}

/// The cells that touch a block at its corners.
struct Corners {
    before: (isize, isize),
    before_swapped: (isize, isize),
    after: (isize, isize),
    after_swapped: (isize, isize),
}

impl Corners {
    fn new(block: Block) -> Self {
        let (first, last) = (block.source.0 as isize, block.source.1 as isize);
        let (start, end) = (block.target.0 as isize, block.target.1 as isize);
        Corners {
            before: (first - 1, start - 1),
            before_swapped: (last + 1, start - 1),
            after: (last + 1, end + 1),
            after_swapped: (first - 1, end + 1),
        }
    }
}

/// The corners of all blocks of a sentence, of any size: Galley & Manning's (2008) hierarchical
/// phrases, which a phrase may continue or swap with as a whole.
pub struct Hierarchy {
    width: usize,
    /// Where blocks end, source first: bottom right in a matrix with the target going down.
    last_last: Vec<u64>,
    first_last: Vec<u64>,
    first_first: Vec<u64>,
    last_first: Vec<u64>,
}

impl Hierarchy {
    pub fn new(grid: &Grid<'_>) -> Self {
        let width = grid.sentence.source.len();
        let words = (width * grid.sentence.target.len()).div_ceil(64);
        let empty = || vec![0; words];
        let mut corners = Hierarchy {
            width,
            last_last: empty(),
            first_last: empty(),
            first_first: empty(),
            last_first: empty(),
        };
        grid.blocks((usize::MAX, usize::MAX), false, |block| {
            let ((first, last), (start, end)) = (block.source, block.target);
            set(&mut corners.last_last, end * width + last);
            set(&mut corners.first_last, end * width + first);
            set(&mut corners.first_first, start * width + first);
            set(&mut corners.last_first, start * width + last);
        });
        corners
    }

    /// By the word or by any block that touches the corner.
    pub fn orient(&self, grid: &Grid<'_>, block: Block) -> Pair {
        let corners = Corners::new(block);
        let decide = |word: Orientation, monotone: bool, swap: bool| match word {
            Orientation::Monotone => word,
            _ if monotone => Orientation::Monotone,
            _ if swap => Orientation::Swap,
            _ => word,
        };
        let (previous, next) = by_word(grid, block);
        (
            decide(
                previous,
                self.has(&self.last_last, corners.before),
                self.has(&self.first_last, corners.before_swapped),
            ),
            decide(
                next,
                self.has(&self.first_first, corners.after),
                self.has(&self.last_first, corners.after_swapped),
            ),
        )
    }

    fn has(&self, corners: &[u64], (source, target): (isize, isize)) -> bool {
        let (Ok(source), Ok(target)) = (usize::try_from(source), usize::try_from(target)) else {
            return false;
        };
        let bit = target * self.width + source;
        source < self.width && corners.get(bit / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }
}

fn set(bits: &mut [u64], bit: usize) {
    bits[bit / 64] |= 1 << (bit % 64);
}

#[cfg(test)]
mod tests {
    use Orientation::{Left, Monotone, Right, Swap};

    use super::*;
    use crate::bitext::Sentence;

    #[test]
    fn a_swapped_pair_of_words_is_monotone_as_a_whole() {
        // Source 0 1 2, target 0 1 2; 0 and 1 change places, 2 stays.
        let words = [3; 3];
        let links = [(1, 0), (0, 1), (2, 2)];
        let grid = Grid::new(Sentence { source: &words, target: &words, links: &links });
        let hierarchy = Hierarchy::new(&grid);
        let word = |at: usize, to: usize| Block { source: (at, at), target: (to, to) };
        assert_eq!(by_word(&grid, word(1, 0)), (Right, Swap));
        assert_eq!(by_word(&grid, word(0, 1)), (Swap, Right));
        // Word 2 follows the block of both, whose last word is not linked to its neighbour.
        assert_eq!(by_word(&grid, word(2, 2)), (Right, Monotone));
        assert_eq!(hierarchy.orient(&grid, word(2, 2)), (Monotone, Monotone));
        assert_eq!(hierarchy.orient(&grid, word(0, 1)), (Swap, Right));
        let whole = Block { source: (0, 2), target: (0, 2) };
        assert_eq!(by_word(&grid, whole), (Monotone, Monotone));
    }

    #[test]
    fn a_phrase_that_stands_apart_lies_left_or_right() {
        // Source 0 1 2 3 is said in the order 1 3 0 2; the target word between 3 and 0 has no link.
        let (source, target) = ([3; 4], [3; 5]);
        let links = [(1, 0), (3, 1), (0, 3), (2, 4)];
        let grid = Grid::new(Sentence { source: &source, target: &target, links: &links });
        let word = |at: usize, to: usize| Block { source: (at, at), target: (to, to) };
        assert_eq!(by_word(&grid, word(1, 0)), (Right, Right));
        assert_eq!(by_word(&grid, word(3, 1)), (Right, Left));
        assert_eq!(by_word(&grid, word(0, 3)), (Left, Right));
        assert_eq!(by_word(&grid, word(2, 4)), (Right, Right));
    }
}
