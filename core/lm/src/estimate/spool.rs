//! Records written once and read in the same order, in memory or in a temporary file.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use tunesmith_text::{Error, Result};

/// Where temporary files are made. They have no name and vanish with the process.
#[derive(Clone, Debug)]
pub struct Place {
    folder: PathBuf,
}

const BUFFER: usize = 1 << 16;

impl Place {
    pub fn new(folder: Option<PathBuf>) -> Self {
        Place { folder: folder.unwrap_or_else(std::env::temp_dir) }
    }

    /// A spool of records of `width` numbers, of which `bytes` may stay in memory.
    pub fn spool(&self, width: usize, bytes: usize) -> Spool {
        Spool {
            width,
            limit: (bytes / 4).max(width),
            memory: Vec::new(),
            file: None,
            length: 0,
            place: self.clone(),
        }
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        let shown = self.folder.display().to_string();
        Error::new(format!("temporary files cannot be used: {error}"))
            .at(shown, None)
            .remedy("choose another folder for them, or allow more memory")
    }
}

/// Records of a fixed number of 32-bit numbers.
#[derive(Debug)]
pub struct Spool {
    width: usize,
    /// Numbers that may stay in memory.
    limit: usize,
    memory: Vec<u32>,
    file: Option<BufWriter<File>>,
    length: u64,
    place: Place,
}

impl Spool {
    pub fn len(&self) -> u64 {
        self.length
    }

    #[inline]
    pub fn push(&mut self, record: &[u32]) -> Result<()> {
        debug_assert_eq!(record.len(), self.width);
        self.length += 1;
        if self.file.is_none() && self.memory.len() + record.len() > self.limit {
            self.spill()?;
        }
        match &mut self.file {
            None => self.memory.extend_from_slice(record),
            Some(file) => write(file, record).map_err(|error| self.place.failed(&error))?,
        }
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        let failed = |error: std::io::Error| self.place.failed(&error);
        let file = tempfile::tempfile_in(&self.place.folder).map_err(failed)?;
        let mut file = BufWriter::with_capacity(BUFFER, file);
        for chunk in std::mem::take(&mut self.memory).chunks(1 << 12) {
            write(&mut file, chunk).map_err(failed)?;
        }
        self.file = Some(file);
        Ok(())
    }

    /// Reads from the start; to be called again for another reading.
    pub fn reader(&mut self) -> Result<Reader<'_>> {
        let records = match &mut self.file {
            None => Records::Memory(&self.memory),
            Some(file) => {
                let rewound = file.flush().and_then(|()| file.get_mut().seek(SeekFrom::Start(0)));
                rewound.map_err(|error| self.place.failed(&error))?;
                Records::File(BufReader::with_capacity(BUFFER, file.get_mut()))
            }
        };
        Ok(Reader {
            records,
            width: self.width,
            at: 0,
            left: self.length,
            record: vec![0; self.width],
            bytes: vec![0; self.width * 4],
            place: &self.place,
        })
    }

    /// Reads from the start, for good.
    pub fn into_run(mut self) -> Result<Run> {
        let failed = |error: std::io::Error| self.place.failed(&error);
        let file = match self.file.take() {
            None => None,
            Some(file) => {
                let mut file = file.into_inner().map_err(|error| failed(error.into_error()))?;
                file.seek(SeekFrom::Start(0)).map_err(failed)?;
                Some(BufReader::with_capacity(BUFFER, file))
            }
        };
        Ok(Run { file, bytes: vec![0; self.width * 4], spool: self, at: 0 })
    }
}

fn write(out: &mut impl Write, numbers: &[u32]) -> std::io::Result<()> {
    let mut bytes = [0; 1 << 14];
    for chunk in numbers.chunks(bytes.len() / 4) {
        for (place, number) in bytes.chunks_exact_mut(4).zip(chunk) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        out.write_all(&bytes[..chunk.len() * 4])?;
    }
    Ok(())
}

fn decode(bytes: &[u8], record: &mut [u32]) {
    for (number, bytes) in record.iter_mut().zip(bytes.chunks_exact(4)) {
        *number = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
}

enum Records<'a> {
    Memory(&'a [u32]),
    File(BufReader<&'a mut File>),
}

/// One reading of a spool.
pub struct Reader<'a> {
    records: Records<'a>,
    width: usize,
    at: usize,
    left: u64,
    record: Vec<u32>,
    bytes: Vec<u8>,
    place: &'a Place,
}

impl Reader<'_> {
    #[inline]
    pub fn next(&mut self) -> Result<Option<&[u32]>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        match &mut self.records {
            Records::Memory(memory) => {
                self.at += self.width;
                Ok(Some(&memory[self.at - self.width..self.at]))
            }
            Records::File(file) => {
                file.read_exact(&mut self.bytes).map_err(|error| self.place.failed(&error))?;
                decode(&self.bytes, &mut self.record);
                Ok(Some(&self.record))
            }
        }
    }
}

/// A spool that is being read for the last time.
pub struct Run {
    spool: Spool,
    file: Option<BufReader<File>>,
    bytes: Vec<u8>,
    at: u64,
}

impl Run {
    /// Reads the next record; false behind the last.
    pub fn next(&mut self, record: &mut [u32]) -> Result<bool> {
        if self.at == self.spool.length {
            return Ok(false);
        }
        match &mut self.file {
            None => {
                let start = self.at as usize * self.spool.width;
                record.copy_from_slice(&self.spool.memory[start..start + self.spool.width]);
            }
            Some(file) => {
                let read = file.read_exact(&mut self.bytes);
                read.map_err(|error| self.spool.place.failed(&error))?;
                decode(&self.bytes, record);
            }
        }
        self.at += 1;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_file_give_the_same_records() {
        for bytes in [0, 100, 1 << 20] {
            let mut spool = Place::new(None).spool(3, bytes);
            for number in 0..10_000u32 {
                spool.push(&[number, number / 2, !number]).unwrap();
            }
            assert_eq!(spool.file.is_some(), bytes < 1 << 20);
            for _ in 0..2 {
                let mut reader = spool.reader().unwrap();
                for number in 0..10_000u32 {
                    let record = reader.next().unwrap().unwrap();
                    assert_eq!(record, [number, number / 2, !number]);
                }
                assert!(reader.next().unwrap().is_none());
            }
            let mut run = spool.into_run().unwrap();
            let mut record = [0; 3];
            for number in 0..10_000u32 {
                assert!(run.next(&mut record).unwrap());
                assert_eq!(record, [number, number / 2, !number]);
            }
            assert!(!run.next(&mut record).unwrap());
        }
    }

    #[test]
    fn a_place_that_does_not_exist_is_named() {
        let mut spool = Place::new(Some("/no/such/place".into())).spool(1, 0);
        let error = (0..10).try_for_each(|number| spool.push(&[number])).unwrap_err();
        assert!(error.to_string().contains("/no/such/place"), "{error}");
        assert!(error.remedy.is_some());
    }
}
