//! Phrase pairs that agree with the alignment of a sentence pair.

use crate::bitext::Sentence;

/// A phrase pair by its first and last words on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block {
    pub source: (usize, usize),
    pub target: (usize, usize),
}

/// Sums over the links of a sentence that make the check of a block a subtraction.
pub struct Grid<'a> {
    pub sentence: Sentence<'a>,
    /// Links before each source and each target word.
    by_source: Vec<usize>,
    by_target: Vec<usize>,
}

impl<'a> Grid<'a> {
    pub fn new(sentence: Sentence<'a>) -> Self {
        let mut by_source = vec![0; sentence.source.len() + 1];
        let mut by_target = vec![0; sentence.target.len() + 1];
        for &(source, target) in sentence.links {
            by_source[source as usize + 1] += 1;
            by_target[target as usize + 1] += 1;
        }
        for sums in [&mut by_source, &mut by_target] {
            for at in 1..sums.len() {
                sums[at] += sums[at - 1];
            }
        }
        Grid { sentence, by_source, by_target }
    }

    pub fn source_linked(&self, at: usize) -> bool {
        self.by_source[at + 1] > self.by_source[at]
    }

    /// The source words linked to a target word, in order.
    pub fn sources(&self, target: usize) -> impl Iterator<Item = usize> + 'a {
        let links = &self.sentence.links[self.by_target[target]..self.by_target[target + 1]];
        links.iter().map(|link| link.0 as usize)
    }

    /// Whether two words are linked; both places before and both after the sentence are.
    pub fn linked(&self, source: isize, target: isize) -> bool {
        let (sources, targets) =
            (self.sentence.source.len() as isize, self.sentence.target.len() as isize);
        if (source, target) == (-1, -1) || (source, target) == (sources, targets) {
            return true;
        }
        let inside = (0..sources).contains(&source) && (0..targets).contains(&target);
        inside && self.sources(target as usize).any(|at| at as isize == source)
    }

    /// Calls `visit` for every block within the limits: each has a link, and no link leaves it.
    /// Words without links at the edges may belong to a block or not, unless it is `tight`.
    pub fn blocks(&self, max: (usize, usize), tight: bool, mut visit: impl FnMut(Block)) {
        let sources = self.sentence.source.len();
        for start in 0..self.sentence.target.len() {
            let (mut low, mut high) = (usize::MAX, 0);
            for end in start..self.sentence.target.len().min(start.saturating_add(max.1)) {
                for source in self.sources(end) {
                    low = low.min(source);
                    high = high.max(source);
                }
                if low > high {
                    if tight {
                        break;
                    }
                    continue;
                }
                if high - low >= max.0 {
                    break;
                }
                // All links of the target words lie between low and high; are there any others?
                let inside = self.by_source[high + 1] - self.by_source[low];
                if inside != self.by_target[end + 1] - self.by_target[start] {
                    continue;
                }
                let target = (start, end);
                if tight {
                    if self.by_target[end + 1] > self.by_target[end] {
                        visit(Block { source: (low, high), target });
                    }
                    continue;
                }
                for first in (0..=low).rev() {
                    if high - first >= max.0 || (first < low && self.source_linked(first)) {
                        break;
                    }
                    for last in high..sources {
                        if last - first >= max.0 || (last > high && self.source_linked(last)) {
                            break;
                        }
                        visit(Block { source: (first, last), target });
                    }
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use tunesmith_align::Link;

    use super::*;

    /// Sentence lengths and links that fit them.
    pub fn sentences() -> impl Strategy<Value = (usize, usize, Vec<Link>)> {
        (1usize..8, 1usize..8).prop_flat_map(|(source, target)| {
            let link = (0..source as u16, 0..target as u16);
            proptest::collection::vec(link, 0..10).prop_map(move |mut links| {
                links.sort_unstable_by_key(|&(source, target)| (target, source));
                links.dedup();
                (source, target, links)
            })
        })
    }

    pub fn agrees(links: &[Link], block: Block) -> bool {
        let within = |at: u16, span: (usize, usize)| (span.0..=span.1).contains(&(at as usize));
        let mut any = false;
        links.iter().all(|&(source, target)| {
            let (one, other) = (within(source, block.source), within(target, block.target));
            any |= one && other;
            one == other
        }) && any
    }

    proptest! {
        #[test]
        fn exactly_the_blocks_that_agree(
            (source, target, links) in sentences(),
            max in (1usize..9, 1usize..9),
            tight in any::<bool>(),
        ) {
            let (words, others) = (vec![3; source], vec![3; target]);
            let sentence = Sentence { source: &words, target: &others, links: &links };
            let mut found = Vec::new();
            Grid::new(sentence).blocks(max, tight, |block| found.push(block));
            found.sort_unstable();
            let mut expected = Vec::new();
            let edge = |first: usize, last: usize, linked: &dyn Fn(usize) -> bool| {
                !tight || (linked(first) && linked(last))
            };
            for first in 0..source {
                for last in first..source.min(first + max.0) {
                    for start in 0..target {
                        for end in start..target.min(start + max.1) {
                            let block = Block { source: (first, last), target: (start, end) };
                            let on_source = |at| links.iter().any(|link| link.0 as usize == at);
                            let on_target = |at| links.iter().any(|link| link.1 as usize == at);
                            if agrees(&links, block)
                                && edge(first, last, &on_source)
                                && edge(start, end, &on_target)
                            {
                                expected.push(block);
                            }
                        }
                    }
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
