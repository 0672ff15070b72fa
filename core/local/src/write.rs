//! Writing a file of examples: lists as they come, the directory at the end.

use std::path::Path;

use tunesmith_metric::Table;
use tunesmith_space::Pools;
use tunesmith_text::{AtomicWriter, Error, Names, Result};

use crate::layout::{MAGIC, PARTS, Part, Trailer};
use crate::list::ListWriter;
use crate::segment::Segment;

/// One example without its list.
#[derive(Debug, Clone, Copy)]
pub struct Example<'e> {
    /// Larger than that of the example before.
    pub id: u64,
    pub source: &'e str,
    pub references: &'e [String],
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub examples: u64,
    pub bytes: u64,
    pub checksum: u32,
}

/// Writes a file, which appears when it is [finished](Self::finish).
pub struct SegmentWriter {
    out: AtomicWriter,
    parts: [Vec<u8>; PARTS],
    lists: ListWriter,
    vocabulary: Names,
    frequencies: Vec<u32>,
    /// The last example that a word occurred in, counted from one.
    seen: Vec<u64>,
    words: u64,
    references: u64,
    texts: u64,
    last: Option<u64>,
    trailer: Trailer,
    buffer: Vec<u8>,
}

impl SegmentWriter {
    /// A new file for lists with so many statistics per hypothesis.
    pub fn create(path: &Path, width: usize) -> Result<Self> {
        let mut out = AtomicWriter::create(path)?;
        out.write_all(MAGIC)?;
        let lists = MAGIC.len() as u64;
        Ok(SegmentWriter {
            out,
            parts: Default::default(),
            lists: ListWriter::default(),
            vocabulary: Names::default(),
            frequencies: Vec::new(),
            seen: Vec::new(),
            words: 0,
            references: 0,
            texts: 0,
            last: None,
            trailer: Trailer { width: width as u32, lists, ..Trailer::default() },
            buffer: Vec::new(),
        })
    }

    fn put(&mut self, part: Part, bytes: &[u8]) {
        self.parts[part as usize].extend_from_slice(bytes);
    }

    /// Adds an example with a list of `pools`, of which all hypotheses have these statistics and
    /// gains.
    pub fn push(
        &mut self,
        example: Example<'_>,
        pools: &Pools,
        worth: Option<(&Table, &[f64])>,
        sentence: usize,
    ) -> Result<()> {
        self.buffer.clear();
        self.lists.write(pools, worth, sentence, &mut self.buffer)?;
        self.trailer.hypotheses += pools.list(sentence).len() as u64;
        self.add(example)
    }

    /// Adds an example of another file, which has these words and names of features.
    pub fn copy(
        &mut self,
        from: &Segment,
        place: usize,
        vocabulary: &[&str],
        names: &[&str],
    ) -> Result<()> {
        let (list, bytes) = from.list(place)?;
        self.buffer.clear();
        self.lists.copy(bytes, &list, |id| names[id as usize], &mut self.buffer);
        self.trailer.hypotheses += list.hypotheses as u64;
        let source: Vec<&str> = from.source(place).map(|word| vocabulary[word as usize]).collect();
        let references: Vec<String> =
            from.references(place).into_iter().map(str::to_owned).collect();
        let source = source.join(" ");
        self.add(Example { id: from.id(place), source: &source, references: &references })
    }

    fn add(&mut self, example: Example<'_>) -> Result<()> {
        if self.last.is_some_and(|last| last >= example.id) {
            return Err(Error::new(format!("the id {} is out of order", example.id))
                .remedy("give ids in ascending order, each once"));
        }
        self.last = Some(example.id);
        self.trailer.examples += 1;
        self.put(Part::Ids, &example.id.to_le_bytes());
        for word in example.source.split_whitespace() {
            let id = self.vocabulary.intern(word);
            if id as usize == self.frequencies.len() {
                self.frequencies.push(0);
                self.seen.push(0);
            }
            if std::mem::replace(&mut self.seen[id as usize], self.trailer.examples)
                != self.trailer.examples
            {
                self.frequencies[id as usize] += 1;
            }
            self.put(Part::Words, &id.to_le_bytes());
            self.words += 1;
        }
        self.references += example.references.len() as u64;
        let (words, references) = (narrow(self.words)?, narrow(self.references)?);
        self.put(Part::SourceEnds, &words);
        self.put(Part::ReferenceEnds, &references);
        for reference in example.references {
            self.put(Part::Texts, reference.as_bytes());
            self.texts += reference.len() as u64;
            let end = self.texts.to_le_bytes();
            self.put(Part::TextEnds, &end);
        }
        let sum = crc32fast::hash(&self.buffer).to_le_bytes();
        self.put(Part::ListSums, &sum);
        self.out.write_all(&self.buffer)?;
        self.trailer.lists += self.buffer.len() as u64;
        let end = self.trailer.lists.to_le_bytes();
        self.put(Part::ListEnds, &end);
        Ok(())
    }

    /// Makes the file appear, complete and on disk.
    pub fn finish(mut self) -> Result<Written> {
        let mut pack = |ends: Part, texts: Part, names: &Names| -> Result<()> {
            for name in names.iter() {
                self.parts[texts as usize].extend_from_slice(name.as_bytes());
                let end = narrow(self.parts[texts as usize].len() as u64)?;
                self.parts[ends as usize].extend_from_slice(&end);
            }
            Ok(())
        };
        pack(Part::VocabularyEnds, Part::Vocabulary, &self.vocabulary)?;
        pack(Part::NameEnds, Part::Names, &self.lists.names)?;
        for count in &self.frequencies {
            self.parts[Part::Frequencies as usize].extend(count.to_le_bytes());
        }
        let mut sum = crc32fast::Hasher::new();
        for (part, size) in self.parts.iter().zip(&mut self.trailer.parts) {
            sum.update(part);
            self.out.write_all(part)?;
            *size = part.len() as u64;
        }
        self.trailer.checksum = sum.finalize();
        self.out.write_all(&self.trailer.write())?;
        self.out.finish()?;
        Ok(Written {
            examples: self.trailer.examples,
            bytes: self.trailer.lists
                + self.trailer.parts.iter().sum::<u64>()
                + Trailer::SIZE as u64,
            checksum: self.trailer.checksum,
        })
    }
}

fn narrow(end: u64) -> Result<[u8; 4]> {
    u32::try_from(end).map(u32::to_le_bytes).map_err(|_| {
        Error::new("more text than one file of examples holds").remedy("use smaller segments")
    })
}
