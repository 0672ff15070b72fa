//! Records in partitions, in memory as long as it lasts and then on disk.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tunesmith_text::{Error, Result};

/// Bytes that a writer gathers for one partition before handing them over.
const SEGMENT: usize = 1 << 16;

enum Segment {
    Memory(Vec<u8>),
    Disk { offset: u64, length: usize },
}

/// Partitions that many threads write to. The order of what they write is not kept: readers sort.
pub struct Store {
    partitions: Vec<Mutex<Vec<Segment>>>,
    /// What may stay in memory, shared with the other stores of a run.
    budget: std::sync::Arc<Budget>,
}

/// Memory for records, and the one file that takes the rest.
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
    file: Mutex<Option<File>>,
    end: AtomicU64,
}

impl Budget {
    pub fn new(limit: usize) -> Self {
        Budget { limit, used: AtomicUsize::new(0), file: Mutex::new(None), end: AtomicU64::new(0) }
    }

    /// Bytes that went to disk.
    pub fn spilled(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    fn keep(&self, bytes: Vec<u8>) -> Result<Segment> {
        let length = bytes.len();
        if self.used.fetch_add(length, Ordering::Relaxed) + length <= self.limit {
            return Ok(Segment::Memory(bytes));
        }
        self.used.fetch_sub(length, Ordering::Relaxed);
        let mut slot = self.file.lock().map_err(|_| Error::new("a worker panicked"))?;
        let file = match &mut *slot {
            Some(file) => file,
            none => none.insert(tempfile::tempfile().map_err(|error| failed(&error))?),
        };
        let offset = self.end.fetch_add(length as u64, Ordering::Relaxed);
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.write_all(&bytes))
            .map_err(|error| failed(&error))?;
        Ok(Segment::Disk { offset, length })
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let slot = self.file.lock().map_err(|_| Error::new("a worker panicked"))?;
        let Some(file) = &*slot else { return Err(Error::new("nothing was written to disk")) };
        read_at(file, offset, out).map_err(|error| failed(&error))
    }
}

/// Reads from a place of a file that many threads may read from.
#[cfg(unix)]
pub fn read_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(windows)]
pub fn read_at(file: &File, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
    while !out.is_empty() {
        let count = std::os::windows::fs::FileExt::seek_read(file, out, offset)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out = &mut out[count..];
        offset += count as u64;
    }
    Ok(())
}

fn failed(error: &io::Error) -> Error {
    let folder = std::env::temp_dir();
    Error::io(folder.display().to_string(), None, error)
        .remedy("set TMPDIR to a folder with more space, or raise the memory limit")
}

impl Store {
    pub fn new(partitions: usize, budget: std::sync::Arc<Budget>) -> Self {
        Store { partitions: (0..partitions).map(|_| Mutex::default()).collect(), budget }
    }

    pub fn partitions(&self) -> usize {
        self.partitions.len()
    }

    pub fn writer(&self) -> Writer<'_> {
        Writer { store: self, open: vec![Vec::new(); self.partitions.len()] }
    }

    /// Adds bytes that are whole records.
    pub fn add(&self, partition: usize, bytes: Vec<u8>) -> Result<()> {
        let segment = self.budget.keep(bytes)?;
        let mut segments =
            self.partitions[partition].lock().map_err(|_| Error::new("a worker panicked"))?;
        segments.push(segment);
        Ok(())
    }

    /// Takes a whole partition out, as one stretch of bytes.
    pub fn take(&self, partition: usize) -> Result<Vec<u8>> {
        let segments = std::mem::take(
            &mut *self.partitions[partition].lock().map_err(|_| Error::new("a worker panicked"))?,
        );
        let length = |segment: &Segment| match segment {
            Segment::Memory(bytes) => bytes.len(),
            Segment::Disk { length, .. } => *length,
        };
        let mut whole = Vec::with_capacity(segments.iter().map(length).sum());
        for segment in segments {
            match segment {
                Segment::Memory(bytes) => {
                    self.budget.used.fetch_sub(bytes.len(), Ordering::Relaxed);
                    whole.extend_from_slice(&bytes);
                }
                Segment::Disk { offset, length } => {
                    let start = whole.len();
                    whole.resize(start + length, 0);
                    self.budget.read(offset, &mut whole[start..])?;
                }
            }
        }
        Ok(whole)
    }
}

/// One thread's end of a store; what it holds is lost unless it is finished.
pub struct Writer<'s> {
    store: &'s Store,
    open: Vec<Vec<u8>>,
}

impl Writer<'_> {
    pub fn partitions(&self) -> usize {
        self.open.len()
    }

    /// The bytes gathered for a partition: append whole records, then call [`Self::full`].
    pub fn open(&mut self, partition: usize) -> &mut Vec<u8> {
        let open = &mut self.open[partition];
        if open.capacity() == 0 {
            open.reserve_exact(SEGMENT + SEGMENT / 16);
        }
        open
    }

    /// Hands the bytes of a partition over once there are enough.
    pub fn full(&mut self, partition: usize) -> Result<()> {
        if self.open[partition].len() < SEGMENT {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.open[partition]);
        self.store.add(partition, bytes)
    }

    pub fn finish(self) -> Result<()> {
        for (partition, mut bytes) in self.open.into_iter().enumerate() {
            if !bytes.is_empty() {
                bytes.shrink_to_fit();
                self.store.add(partition, bytes)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_is_written_comes_back_from_memory_and_disk() {
        for limit in [0, 100_000, usize::MAX] {
            let budget = Arc::new(Budget::new(limit));
            let store = Store::new(3, Arc::clone(&budget));
            for part in 0..4u8 {
                let mut writer = store.writer();
                for round in 0..90_000usize {
                    writer.open(round % 3).push(part);
                    writer.full(round % 3).unwrap();
                }
                writer.finish().unwrap();
            }
            for partition in 0..3 {
                let bytes = store.take(partition).unwrap();
                assert_eq!(bytes.len(), 120_000);
                assert_eq!(bytes.iter().filter(|&&byte| byte == 2).count(), 30_000);
                assert!(store.take(partition).unwrap().is_empty());
            }
            assert_eq!(budget.spilled() == 0, limit == usize::MAX);
            assert_eq!(budget.used.load(Ordering::Relaxed), 0);
        }
    }
}
