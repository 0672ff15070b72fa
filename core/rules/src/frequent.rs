//! The most frequent word pairs of aligned text, and the words that most often have no link.

use std::cmp::Reverse;
use std::path::Path;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tunesmith_text::{AtomicWriter, Error, Lines, Result, utf8};

use crate::bitext::{Corpus, Sentence};
use crate::code::FIRST_WORD;

/// Words with their counts, the most frequent first; words of the same count by their own
/// frequency.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frequent {
    /// Linked words, source first.
    pub pairs: Vec<(String, String, u64)>,
    /// Source words without a link.
    pub source: Vec<(String, u64)>,
    /// Target words without a link.
    pub target: Vec<(String, u64)>,
}

#[derive(Default)]
struct Counts {
    pairs: FxHashMap<(u32, u32), u64>,
    source: FxHashMap<u32, u64>,
    target: FxHashMap<u32, u64>,
}

impl Counts {
    fn with(mut self, sentence: Sentence<'_>) -> Counts {
        for &(from, to) in sentence.links {
            let pair = (sentence.source[usize::from(from)], sentence.target[usize::from(to)]);
            *self.pairs.entry(pair).or_default() += 1;
        }
        free(sentence.source, sentence.links.iter().map(|link| link.0), &mut self.source);
        free(sentence.target, sentence.links.iter().map(|link| link.1), &mut self.target);
        self
    }

    fn and(mut self, other: Counts) -> Counts {
        other.pairs.into_iter().for_each(|(key, n)| *self.pairs.entry(key).or_default() += n);
        other.source.into_iter().for_each(|(key, n)| *self.source.entry(key).or_default() += n);
        other.target.into_iter().for_each(|(key, n)| *self.target.entry(key).or_default() += n);
        self
    }
}

/// Counts the words at other places than those.
fn free(words: &[u32], places: impl Iterator<Item = u16>, counts: &mut FxHashMap<u32, u64>) {
    let mut linked = vec![false; words.len()];
    places.for_each(|place| linked[usize::from(place)] = true);
    for (word, _) in words.iter().zip(linked).filter(|(_, linked)| !linked) {
        *counts.entry(*word).or_default() += 1;
    }
}

/// The `limit` largest counts; smaller ids, which are of more frequent words, first.
fn top<K: Copy + Ord>(counts: FxHashMap<K, u64>, limit: usize) -> impl Iterator<Item = (K, u64)> {
    let mut list: Vec<(K, u64)> = counts.into_iter().collect();
    list.sort_unstable_by_key(|&(key, count)| (Reverse(count), key));
    list.into_iter().take(limit)
}

impl Frequent {
    /// Counts all sentences and keeps so many pairs, and so many words of each side.
    pub fn count(corpus: &Corpus, pairs: usize, words: usize) -> Frequent {
        let counts = (0..corpus.len())
            .into_par_iter()
            .with_min_len(1024)
            .fold(Counts::default, |counts, at| counts.with(corpus.sentence(at)))
            .reduce(Counts::default, Counts::and);
        let source = |code: u32| corpus.source.word(code - FIRST_WORD).unwrap_or_default().into();
        let target = |code: u32| corpus.target.word(code - FIRST_WORD).unwrap_or_default().into();
        Frequent {
            pairs: top(counts.pairs, pairs)
                .map(|((from, to), count)| (source(from), target(to), count))
                .collect(),
            source: top(counts.source, words).map(|(code, count)| (source(code), count)).collect(),
            target: top(counts.target, words).map(|(code, count)| (target(code), count)).collect(),
        }
    }

    /// Writes lines of tabs: `pair das the 17`, `source ja 3`, `target of 5`.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let mut out = AtomicWriter::create(path)?;
        for (from, to, count) in &self.pairs {
            out.write_all(format!("pair\t{from}\t{to}\t{count}\n").as_bytes())?;
        }
        for (side, words) in [("source", &self.source), ("target", &self.target)] {
            for (word, count) in words {
                out.write_all(format!("{side}\t{word}\t{count}\n").as_bytes())?;
            }
        }
        out.finish()
    }

    /// Reads what [`write`](Self::write) writes; refuses all else.
    pub fn read(path: impl AsRef<Path>) -> Result<Frequent> {
        let mut lines = Lines::open(path)?;
        let file = lines.file().to_owned();
        let mut frequent = Frequent::default();
        let mut line = 0;
        while let Some(bytes) = lines.next()? {
            line += 1;
            let text = utf8(bytes, &file, line)?;
            frequent.take(text).ok_or_else(|| {
                Error::new(format!("{text:?} is no count of a pair or of a word without a link"))
                    .at(&file, Some(line))
                    .remedy("make the file again from the aligned text")
            })?;
        }
        Ok(frequent)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let parts: Vec<&str> = line.split('\t').collect();
        let count = parts.last()?.parse().ok()?;
        match parts[..] {
            ["pair", from, to, _] => self.pairs.push((from.into(), to.into(), count)),
            ["source", word, _] => self.source.push((word.into(), count)),
            ["target", word, _] => self.target.push((word.into(), count)),
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitext::Reading;
    use crate::bitext::tests::corpus;

    #[test]
    fn pairs_and_words_without_links_are_counted() {
        let source = "das haus ja\ndas haus\nein haus\n";
        let target = "the house\nthe house of\na house\n";
        let links = "0-0 1-1\n0-0 1-1\n0-0 1-1\n";
        let corpus = corpus(source, target, links, &Reading::default()).unwrap();
        let frequent = Frequent::count(&corpus, 2, 5);
        let pair = |from: &str, to: &str, count| (from.to_owned(), to.to_owned(), count);
        assert_eq!(frequent.pairs, [pair("haus", "house", 3), pair("das", "the", 2)]);
        assert_eq!(frequent.source, [("ja".to_owned(), 1)]);
        assert_eq!(frequent.target, [("of".to_owned(), 1)]);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("frequent.txt");
        frequent.write(&path).unwrap();
        assert_eq!(Frequent::read(&path).unwrap(), frequent);
        for bad in ["pair\ta\t1\n", "source\ta\tb\n", "\n", "other\ta\t1\n"] {
            std::fs::write(&path, format!("source\ta\t1\n{bad}")).unwrap();
            let error = Frequent::read(&path).unwrap_err();
            assert!(error.line == Some(2) && error.remedy.is_some(), "{error}");
        }
    }
}
