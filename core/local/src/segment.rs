//! A file of examples, mapped: nothing is copied, nothing is trusted.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tunesmith_text::{Error, Mapped, Result};

use crate::layout::{PARTS, Part, Trailer, wide, wides, word, words};
use crate::list::List;

/// Examples of one file. A large file must not change while it is open; see [`Mapped`].
pub struct Segment {
    map: Mapped,
    trailer: Trailer,
    path: PathBuf,
    /// Where each part begins, and the last one ends.
    starts: [usize; PARTS + 1],
    /// What is known of each list: [`CHECKED`], and bits of the columns that are the same in all
    /// its rows.
    known: Vec<AtomicU64>,
}

/// The bit of lists whose checksum was looked at.
const CHECKED: u64 = 1 << 63;

impl AsRef<[u8]> for Segment {
    /// The whole file.
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

impl Segment {
    /// Opens a file after checking that it is whole. Lists are checked when they are first read.
    pub fn open(path: &Path) -> Result<Segment> {
        let name = path.display().to_string();
        let map = Mapped::open(path)?;
        let trailer = Trailer::read(&map, &name)?;
        let directory = &map[trailer.lists as usize..map.len() - Trailer::SIZE];
        if crc32fast::hash(directory) != trailer.checksum {
            return Err(corrupt(path, "its checksum differs"));
        }
        // A list is read whole, and lists of neighbours in similarity are not neighbours here.
        map.read_anywhere();
        let mut starts = [trailer.lists as usize; PARTS + 1];
        for (part, size) in trailer.parts.iter().enumerate() {
            starts[part + 1] = starts[part] + *size as usize;
        }
        let path = path.to_owned();
        let mut segment = Segment { map, trailer, path, starts, known: Vec::new() };
        if !segment.is_sound() {
            return Err(corrupt(&segment.path, "its parts contradict each other"));
        }
        segment.known.resize_with(segment.len(), AtomicU64::default);
        Ok(segment)
    }

    /// Whether every part of the directory has the size that others say, and points inside.
    fn is_sound(&self) -> bool {
        let (len, part) = (self.trailer.examples as usize, |part| self.part(part));
        let sized = |which: Part, count: usize, size: usize| {
            count.checked_mul(size) == Some(part(which).len())
        };
        let (vocabulary, names) = (part(Part::VocabularyEnds).len() / 4, self.features());
        let references = part(Part::TextEnds).len() / 8;
        let ends = |which: Part, end: usize| {
            let all = words(part(which));
            all.is_sorted() && words(part(which)).last().map_or(0, |last| last as usize) == end
        };
        let wide_ends = |which: Part, start: u64, end: usize| {
            let all = wides(part(which));
            all.clone().next().is_none_or(|first| first >= start)
                && all.is_sorted()
                && wides(part(which)).last().unwrap_or(start) == end as u64
        };
        let text = |which: Part, mut ends: Box<dyn Iterator<Item = usize> + '_>| {
            let text = std::str::from_utf8(part(which));
            text.is_ok_and(|text| ends.all(|end| text.is_char_boundary(end)))
        };
        let narrow = |which: Part| Box::new(words(part(which)).map(|end| end as usize));
        let broad = |which: Part| Box::new(wides(part(which)).map(|end| end as usize));
        sized(Part::Ids, len, 8)
            && wides(part(Part::Ids)).is_sorted_by(|one, other| one < other)
            && sized(Part::SourceEnds, len, 4)
            && part(Part::Words).len() % 4 == 0
            && ends(Part::SourceEnds, part(Part::Words).len() / 4)
            && words(part(Part::Words)).all(|word| (word as usize) < vocabulary)
            && sized(Part::VocabularyEnds, vocabulary, 4)
            && ends(Part::VocabularyEnds, part(Part::Vocabulary).len())
            && text(Part::Vocabulary, narrow(Part::VocabularyEnds))
            && sized(Part::Frequencies, vocabulary, 4)
            && sized(Part::ReferenceEnds, len, 4)
            && ends(Part::ReferenceEnds, references)
            && sized(Part::TextEnds, references, 8)
            && wide_ends(Part::TextEnds, 0, part(Part::Texts).len())
            && text(Part::Texts, broad(Part::TextEnds))
            && sized(Part::ListEnds, len, 8)
            && wide_ends(
                Part::ListEnds,
                crate::layout::MAGIC.len() as u64,
                self.trailer.lists as usize,
            )
            && sized(Part::ListSums, len, 4)
            && sized(Part::NameEnds, names, 4)
            && ends(Part::NameEnds, part(Part::Names).len())
            && text(Part::Names, narrow(Part::NameEnds))
    }

    fn part(&self, part: Part) -> &[u8] {
        &self.map[self.starts[part as usize]..self.starts[part as usize + 1]]
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn len(&self) -> usize {
        self.trailer.examples as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn hypotheses(&self) -> u64 {
        self.trailer.hypotheses
    }

    /// Statistics per hypothesis, 0 if there are none.
    pub fn width(&self) -> usize {
        self.trailer.width as usize
    }

    /// The size of the file.
    pub fn bytes(&self) -> usize {
        self.map.len()
    }

    /// The checksum of the directory, which has those of the lists.
    pub fn checksum(&self) -> u32 {
        self.trailer.checksum
    }

    pub fn ids(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        wides(self.part(Part::Ids))
    }

    pub fn id(&self, place: usize) -> u64 {
        wide(self.part(Part::Ids), place).unwrap_or_default()
    }

    /// The words of the vocabulary, each once.
    pub fn vocabulary(&self) -> impl Iterator<Item = &str> {
        texts(self.part(Part::Vocabulary), words(self.part(Part::VocabularyEnds)))
    }

    /// A word of the vocabulary.
    pub fn word(&self, at: usize) -> &str {
        let ends = self.part(Part::VocabularyEnds);
        let start = if at == 0 { 0 } else { word(ends, at - 1).unwrap_or_default() as usize };
        let end = word(ends, at).unwrap_or_default() as usize;
        std::str::from_utf8(&self.part(Part::Vocabulary)[start..end]).unwrap_or_default()
    }

    /// In how many sources each word of the vocabulary occurs.
    pub fn frequencies(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        words(self.part(Part::Frequencies))
    }

    /// The source of an example as places in the vocabulary.
    pub fn source(
        &self,
        place: usize,
    ) -> impl ExactSizeIterator<Item = u32> + DoubleEndedIterator + Clone + '_ {
        let ends = self.part(Part::SourceEnds);
        let start = if place == 0 { 0 } else { word(ends, place - 1).unwrap_or_default() as usize };
        let end = word(ends, place).unwrap_or_default() as usize;
        words(&self.part(Part::Words)[4 * start..4 * end])
    }

    pub fn references(&self, place: usize) -> Vec<&str> {
        let ends = self.part(Part::ReferenceEnds);
        let start = if place == 0 { 0 } else { word(ends, place - 1).unwrap_or_default() as usize };
        let end = word(ends, place).unwrap_or_default() as usize;
        let (texts, ends) = (self.part(Part::Texts), self.part(Part::TextEnds));
        let at = |reference: usize| wide(ends, reference).unwrap_or_default() as usize;
        (start..end)
            .map(|reference| {
                let start = if reference == 0 { 0 } else { at(reference - 1) };
                std::str::from_utf8(&texts[start..at(reference)]).unwrap_or_default()
            })
            .collect()
    }

    /// The number of features.
    pub fn features(&self) -> usize {
        self.part(Part::NameEnds).len() / 4
    }

    /// The names of features.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        texts(self.part(Part::Names), words(self.part(Part::NameEnds)))
    }

    /// Where the list of an example begins in the file.
    pub fn list_start(&self, place: usize) -> usize {
        match place {
            0 => crate::layout::MAGIC.len(),
            _ => wide(self.part(Part::ListEnds), place - 1).unwrap_or_default() as usize,
        }
    }

    /// The list of an example, and its bytes. Refuses a damaged one.
    pub fn list(&self, place: usize) -> Result<(List<'_>, &[u8])> {
        let end = wide(self.part(Part::ListEnds), place).unwrap_or_default() as usize;
        let bytes = &self.map[self.list_start(place)..end];
        let was_sound = self.known[place].load(Ordering::Relaxed) & CHECKED != 0;
        if !was_sound && Some(crc32fast::hash(bytes)) != word(self.part(Part::ListSums), place) {
            return Err(self.damaged(place));
        }
        let list = List::read(bytes, self.width(), self.features(), was_sound)
            .ok_or_else(|| self.damaged(place))?;
        if !was_sound {
            let known = CHECKED | (list.constant() & !CHECKED);
            self.known[place].store(known, Ordering::Relaxed);
        }
        Ok((list, bytes))
    }

    /// Whether a column of a list is the same in all rows: of the first 63 columns, once the list
    /// was read. It teaches nothing.
    pub fn is_constant(&self, place: usize, column: usize) -> bool {
        column < 63 && self.known[place].load(Ordering::Relaxed) & (1 << column) != 0
    }

    /// The error for a list that cannot be read.
    pub fn damaged(&self, place: usize) -> Error {
        corrupt(&self.path, &format!("the list of example {} is damaged", self.id(place)))
    }
}

fn corrupt(path: &Path, what: &str) -> Error {
    Error::new(format!("is corrupt: {what}"))
        .at(path.display().to_string(), None)
        .remedy("copy the file again, or build the index again")
}

/// Texts with these ends.
fn texts(bytes: &[u8], ends: impl Iterator<Item = u32>) -> impl Iterator<Item = &str> {
    ends.scan(0, move |start, end| {
        let text = &bytes[std::mem::replace(start, end as usize)..end as usize];
        Some(std::str::from_utf8(text).unwrap_or_default())
    })
}
