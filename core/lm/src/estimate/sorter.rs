//! Sorting of records that need not fit into memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use rayon::slice::ParallelSliceMut;
use tunesmith_text::Result;

use super::spool::{Place, Run, Spool};

/// Runs that are merged at once.
const FAN: usize = 64;

/// Takes records in any order.
pub trait Sort: Send {
    fn push(&mut self, record: &[u32]) -> Result<()>;
    fn finish(self: Box<Self>) -> Result<Box<dyn Stream>>;
}

/// Gives records in ascending order.
pub trait Stream: Send {
    fn next(&mut self) -> Result<Option<&[u32]>>;
}

/// A sorter of records of `width` numbers that uses about `bytes` of memory. With `summing`, the
/// last number is a count, and records that differ only there may become one.
pub fn sorter(width: usize, bytes: usize, summing: bool, place: &Place) -> Box<dyn Sort> {
    match width {
        2 => Box::new(Sorter::<2>::new(bytes, summing, place)),
        3 => Box::new(Sorter::<3>::new(bytes, summing, place)),
        4 => Box::new(Sorter::<4>::new(bytes, summing, place)),
        5 => Box::new(Sorter::<5>::new(bytes, summing, place)),
        6 => Box::new(Sorter::<6>::new(bytes, summing, place)),
        7 => Box::new(Sorter::<7>::new(bytes, summing, place)),
        8 => Box::new(Sorter::<8>::new(bytes, summing, place)),
        _ => unreachable!("records of {width} numbers"),
    }
}

struct Sorter<const W: usize> {
    buffer: Vec<[u32; W]>,
    /// Records that may stay in memory.
    limit: usize,
    summing: bool,
    /// Sorted runs; those of one level hold about the same number of records.
    levels: Vec<Vec<Spool>>,
    place: Place,
}

impl<const W: usize> Sorter<W> {
    fn new(bytes: usize, summing: bool, place: &Place) -> Self {
        let limit = (bytes / size_of::<[u32; W]>()).max(16);
        Sorter { buffer: Vec::new(), limit, summing, levels: Vec::new(), place: place.clone() }
    }

    fn settle(&mut self) {
        self.buffer.par_sort_unstable();
        if self.summing {
            self.buffer.dedup_by(|next, kept| absorb(kept, next));
        }
    }

    fn make_room(&mut self) -> Result<()> {
        self.settle();
        // Few distinct records need no file, however often they come.
        if self.buffer.len() > self.limit / 2 {
            let mut run = self.place.spool(W, 0);
            for record in &self.buffer {
                run.push(record)?;
            }
            self.buffer.clear();
            self.keep(run, 0)?;
        }
        Ok(())
    }

    fn keep(&mut self, run: Spool, level: usize) -> Result<()> {
        if self.levels.len() == level {
            self.levels.push(Vec::new());
        }
        self.levels[level].push(run);
        if self.levels[level].len() < FAN {
            return Ok(());
        }
        let runs = std::mem::take(&mut self.levels[level]);
        let mut merge = Merge::<W>::new(runs, None, self.summing)?;
        let mut merged = self.place.spool(W, 0);
        while let Some(record) = merge.next()? {
            merged.push(record)?;
        }
        self.keep(merged, level + 1)
    }
}

impl<const W: usize> Sort for Sorter<W> {
    #[inline]
    fn push(&mut self, record: &[u32]) -> Result<()> {
        if self.buffer.len() == self.buffer.capacity() {
            if self.buffer.len() >= self.limit {
                self.make_room()?;
            } else {
                let more = self.buffer.len().max(1024).min(self.limit - self.buffer.len());
                self.buffer.reserve_exact(more);
            }
        }
        let mut own = [0; W];
        own.copy_from_slice(record);
        self.buffer.push(own);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Box<dyn Stream>> {
        self.settle();
        let runs: Vec<Spool> = self.levels.into_iter().flatten().collect();
        if runs.is_empty() {
            return Ok(Box::new(InMemory { records: self.buffer, at: 0 }));
        }
        Ok(Box::new(Merge::new(runs, Some(self.buffer), self.summing)?))
    }
}

/// Adds the count of `next` to `kept` if they are otherwise the same and the sum fits.
#[inline]
fn absorb<const W: usize>(kept: &mut [u32; W], next: &[u32; W]) -> bool {
    if kept[..W - 1] != next[..W - 1] {
        return false;
    }
    match kept[W - 1].checked_add(next[W - 1]) {
        Some(sum) => {
            kept[W - 1] = sum;
            true
        }
        None => false,
    }
}

struct InMemory<const W: usize> {
    records: Vec<[u32; W]>,
    at: usize,
}

impl<const W: usize> Stream for InMemory<W> {
    #[inline]
    fn next(&mut self) -> Result<Option<&[u32]>> {
        self.at += 1;
        Ok(self.records.get(self.at - 1).map(|record| &record[..]))
    }
}

enum Input<const W: usize> {
    Run(Run),
    Memory(std::vec::IntoIter<[u32; W]>),
}

impl<const W: usize> Input<W> {
    fn next(&mut self) -> Result<Option<[u32; W]>> {
        match self {
            Input::Run(run) => {
                let mut record = [0; W];
                Ok(run.next(&mut record)?.then_some(record))
            }
            Input::Memory(records) => Ok(records.next()),
        }
    }
}

struct Merge<const W: usize> {
    inputs: Vec<Input<W>>,
    heads: BinaryHeap<Reverse<([u32; W], usize)>>,
    record: [u32; W],
    summing: bool,
}

impl<const W: usize> Merge<W> {
    fn new(runs: Vec<Spool>, memory: Option<Vec<[u32; W]>>, summing: bool) -> Result<Self> {
        let mut inputs = Vec::with_capacity(runs.len() + 1);
        for run in runs {
            inputs.push(Input::Run(run.into_run()?));
        }
        inputs.extend(memory.map(|records| Input::Memory(records.into_iter())));
        let mut heads = BinaryHeap::with_capacity(inputs.len());
        for (at, input) in inputs.iter_mut().enumerate() {
            if let Some(record) = input.next()? {
                heads.push(Reverse((record, at)));
            }
        }
        Ok(Merge { inputs, heads, record: [0; W], summing })
    }

    fn pull(&mut self) -> Result<Option<[u32; W]>> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((record, at)) = *head;
        match self.inputs[at].next()? {
            Some(next) => *head = Reverse((next, at)),
            None => {
                PeekMut::pop(head);
            }
        }
        Ok(Some(record))
    }
}

impl<const W: usize> Stream for Merge<W> {
    fn next(&mut self) -> Result<Option<&[u32]>> {
        let Some(record) = self.pull()? else { return Ok(None) };
        self.record = record;
        while self.summing {
            match self.heads.peek() {
                Some(Reverse((next, _))) if absorb(&mut self.record, next) => {
                    self.pull()?;
                }
                _ => break,
            }
        }
        Ok(Some(&self.record))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorted(records: &[[u32; 3]], bytes: usize, summing: bool) -> Vec<Vec<u32>> {
        let mut sorter = sorter(3, bytes, summing, &Place::new(None));
        for record in records {
            sorter.push(record).unwrap();
        }
        let mut stream = sorter.finish().unwrap();
        let mut out = Vec::new();
        while let Some(record) = stream.next().unwrap() {
            out.push(record.to_vec());
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn little_memory_sorts_as_much_does(
            records in proptest::collection::vec([0..9u32, 0..9u32, 1..3u32], 0..3000),
        ) {
            let mut expected: Vec<_> = records.iter().map(|record| record.to_vec()).collect();
            expected.sort();
            prop_assert_eq!(&sorted(&records, 0, false), &expected);
            prop_assert_eq!(&sorted(&records, 1 << 20, false), &expected);
            prop_assert_eq!(sorted(&records, 0, true), sorted(&records, 1 << 20, true));
        }
    }

    #[test]
    fn counts_that_do_not_fit_stay_apart() {
        let records = [[1, 2, u32::MAX], [1, 2, 5], [0, 0, 1]];
        for bytes in [0, 1 << 20] {
            let total: u64 = sorted(&records, bytes, true)
                .iter()
                .filter(|record| record[0] == 1)
                .map(|record| u64::from(record[2]))
                .sum();
            assert_eq!(total, u64::from(u32::MAX) + 5);
        }
    }
}
