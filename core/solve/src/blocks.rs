//! Fixed blocks of a corpus. Sums are taken within each block, then over the blocks in their order:
//! they are the same to the bit for any number of threads, and of workers that share the blocks.

/// Most blocks that a corpus has: as many workers can have a part in it.
pub const MOST: usize = 256;

/// The blocks of some sentences, which may be part of a larger corpus.
#[derive(Debug, Clone)]
pub struct Blocks {
    /// Where each block ends.
    ends: Vec<usize>,
    /// The number of each sentence in the larger corpus.
    numbers: Vec<u32>,
    /// The block of each sentence.
    of: Vec<u32>,
}

impl Blocks {
    /// `ends` are in order, the last is that of the sentences; nothing if they are not.
    pub fn new(ends: Vec<usize>, numbers: Vec<u32>) -> Option<Self> {
        let in_order = ends.windows(2).all(|pair| pair[0] <= pair[1]);
        if !in_order || ends.last().copied().unwrap_or(0) != numbers.len() {
            return None;
        }
        let starts = [0].into_iter().chain(ends.iter().copied());
        let of = starts
            .zip(&ends)
            .enumerate()
            .flat_map(|(block, (start, &end))| (start..end).map(move |_| block as u32))
            .collect();
        Some(Blocks { ends, numbers, of })
    }

    /// All sentences of a corpus.
    pub fn whole(sentences: usize) -> Self {
        let count = sentences.min(MOST);
        let ends = (1..=count).map(|block| (block * sentences).div_ceil(count)).collect();
        Blocks::new(ends, (0..sentences as u32).collect()).expect("the last block ends the corpus")
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of sentences.
    pub fn sentences(&self) -> usize {
        self.numbers.len()
    }

    /// The sentences of a block.
    pub fn range(&self, block: usize) -> std::ops::Range<usize> {
        block.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[block]
    }

    /// The block of a sentence.
    pub fn of(&self, sentence: usize) -> usize {
        self.of[sentence] as usize
    }

    /// The number of a sentence in the larger corpus.
    pub fn number(&self, sentence: usize) -> u32 {
        self.numbers[sentence]
    }
}

/// The sum of rows, one for each block, in their order.
pub fn fold(rows: &[f64], width: usize) -> Vec<f64> {
    let mut total = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        total.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    total
}

/// Sparse sums, one for each block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sparse {
    /// Where the entries of each block begin, and where the last end.
    pub starts: Vec<usize>,
    pub ids: Vec<u32>,
    pub values: Vec<f64>,
}

impl Sparse {
    /// Entries of blocks in their order.
    pub fn collect(parts: impl IntoIterator<Item = Vec<(u32, f64)>>) -> Self {
        let mut all = Sparse { starts: vec![0], ..Sparse::default() };
        for part in parts {
            all.ids.extend(part.iter().map(|entry| entry.0));
            all.values.extend(part.iter().map(|entry| entry.1));
            all.starts.push(all.ids.len());
        }
        all
    }

    /// The sum of the blocks in their order.
    pub fn sum(&self, features: usize) -> Vec<f64> {
        let mut total = vec![0.0; features];
        for (&id, value) in self.ids.iter().zip(&self.values) {
            total[id as usize] += value;
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::{Blocks, MOST, Sparse, fold};

    #[test]
    fn blocks_of_a_whole_are_about_as_large() {
        for sentences in [0, 1, 12, MOST, MOST + 1, 1000, 10_000] {
            let blocks = Blocks::whole(sentences);
            assert_eq!(blocks.len(), sentences.min(MOST));
            let sizes: Vec<usize> =
                (0..blocks.len()).map(|block| blocks.range(block).len()).collect();
            assert_eq!(sizes.iter().sum::<usize>(), sentences);
            let least = sizes.iter().min().copied().unwrap_or(0);
            assert!(sizes.iter().all(|&size| size <= least + 1), "{sizes:?}");
            for sentence in 0..sentences {
                assert!(blocks.range(blocks.of(sentence)).contains(&sentence));
            }
        }
    }

    #[test]
    fn ends_that_do_not_fit_are_refused() {
        assert!(Blocks::new(vec![2, 1], vec![0]).is_none());
        assert!(Blocks::new(vec![1], vec![0, 1]).is_none());
        assert!(Blocks::new(vec![], vec![]).is_some_and(|blocks| blocks.is_empty()));
        let some = Blocks::new(vec![0, 2], vec![5, 9]).expect("these fit");
        assert_eq!((some.of(0), some.number(1), some.range(0).len()), (1, 9, 0));
    }

    #[test]
    fn sums_go_from_the_first_block_to_the_last() {
        assert_eq!(fold(&[1e16, 1.0, -1e16, 1.0], 1), [1.0]);
        let sparse = Sparse::collect([vec![(1, 1e16)], vec![], vec![(1, 1.0), (0, 2.0)]]);
        assert_eq!(sparse.starts, [0, 1, 1, 3]);
        assert_eq!(sparse.sum(2), [2.0, 1e16]);
    }
}
