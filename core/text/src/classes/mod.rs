//! Classes of words: read from a file, or found by exchange.

mod exchange;

use std::path::Path;

pub use exchange::Clustering;

use crate::{AtomicWriter, Error, Lines, Names, Result, utf8};

/// Words and their classes, as in the files of mkcls: a word, a tab, the name of its class.
#[derive(Debug, Clone, Default)]
pub struct Classes {
    words: Names,
    /// The class of each word.
    of: Vec<u32>,
    names: Names,
}

impl Classes {
    /// Refuses lines without one tab, and a word with two classes.
    pub fn read(path: impl AsRef<Path>) -> Result<Classes> {
        let mut lines = Lines::open(path)?;
        let mut classes = Classes::default();
        let file = lines.file().to_owned();
        let mut line = 0;
        while let Some(bytes) = lines.next()? {
            line += 1;
            let text = utf8(bytes, &file, line)?;
            let bad = |message: String, remedy| {
                Err(Error::new(message).at(&file, Some(line)).remedy(remedy))
            };
            let parts: Vec<&str> = text.split('\t').collect();
            let &[word, class] = &parts[..] else {
                let message = format!("{text:?} is not a word, a tab and a class");
                return bad(message, "write one word and its class on each line");
            };
            if word.is_empty() || class.is_empty() {
                return bad("a word or its class is empty".to_owned(), "remove the line");
            }
            if !classes.put(word, class) {
                let message = format!("{word:?} has a second class");
                return bad(message, "keep one line for each word");
            }
        }
        Ok(classes)
    }

    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let mut out = AtomicWriter::create(path)?;
        for (word, class) in self.iter() {
            let class = self.names.name(class).unwrap_or_default();
            out.write_all(format!("{word}\t{class}\n").as_bytes())?;
        }
        out.finish()
    }

    /// Gives a word its class; whether it had no other.
    pub fn put(&mut self, word: &str, class: &str) -> bool {
        let class = self.names.intern(class);
        let id = self.words.intern(word) as usize;
        if id == self.of.len() {
            self.of.push(class);
        }
        self.of[id] == class
    }

    pub fn of(&self, word: &str) -> Option<&str> {
        self.names.name(self.of[self.words.id(word)? as usize])
    }

    /// Words with the numbers of their classes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.words.iter().zip(self.of.iter().copied())
    }

    /// The names of the classes, by number.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter()
    }

    /// The number of words.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Classes> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("classes");
        fs::write(&path, text).unwrap();
        Classes::read(&path)
    }

    #[test]
    fn bad_lines_are_refused() {
        for (text, part) in
            [("a\t1\nb 2\n", "is not a word"), ("a\t1\n\t2\n", "empty"), ("a\t1\na\t2\n", "second")]
        {
            let error = read(text).unwrap_err();
            assert!(error.line == Some(2) && error.message.contains(part), "{error}");
            assert!(error.remedy.is_some());
        }
        assert_eq!(read("a\t1\na\t1\n").unwrap().len(), 1);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            words in proptest::collection::hash_map("[a-z~ü]{1,4}", "[A-Z0-9]{1,2}", 0..20),
        ) {
            let mut classes = Classes::default();
            for (word, class) in &words {
                prop_assert!(classes.put(word, class));
            }
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("classes");
            classes.write(&path).unwrap();
            let back = Classes::read(&path).unwrap();
            prop_assert_eq!(back.len(), words.len());
            for (word, class) in &words {
                prop_assert_eq!(back.of(word), Some(class.as_str()));
            }
        }
    }
}
