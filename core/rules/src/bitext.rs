//! Aligned parallel text in memory: words as codes, links by target.

use std::path::Path;

use tunesmith_align::{Link, parse_into};
use tunesmith_text::{Error, Lines, Names, Result, utf8};

use crate::code::FIRST_WORD;
use crate::vocabulary::Vocabulary;

/// What to do with sentences that cannot be used.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Longer sentences are left out.
    pub max_words: usize,
    /// Leave out sentences that are not UTF-8 or badly aligned, instead of stopping at the first.
    pub skip_bad: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Reading { max_words: 1000, skip_bad: false }
    }
}

/// Sentences left out for one reason, and the first of them.
#[derive(Debug, Clone)]
pub struct Skip {
    pub reason: &'static str,
    pub count: u64,
    pub first: Error,
}

#[derive(Debug, Default)]
struct Side {
    words: Vec<u32>,
    ends: Vec<usize>,
}

/// Sentence pairs with word alignment.
#[derive(Debug, Default)]
pub struct Corpus {
    pub source: Vocabulary,
    pub target: Vocabulary,
    sources: Side,
    targets: Side,
    links: Vec<Link>,
    link_ends: Vec<usize>,
    pub skips: Vec<Skip>,
}

/// One sentence pair; words are codes, links are sorted by target, then source.
#[derive(Debug, Clone, Copy)]
pub struct Sentence<'a> {
    pub source: &'a [u32],
    pub target: &'a [u32],
    pub links: &'a [Link],
}

impl Corpus {
    /// Reads text and alignment, line by line. Words are what spaces and tabs separate. Refuses
    /// files of different lengths, text that is not UTF-8 and links outside a sentence; sentences
    /// with an empty side or too many words are left out and counted.
    pub fn read(source: &Path, target: &Path, alignment: &Path, reading: &Reading) -> Result<Self> {
        let mut files = [Lines::open(source)?, Lines::open(target)?, Lines::open(alignment)?];
        let mut corpus = Corpus::default();
        let mut names = [Counted::default(), Counted::default()];
        let mut links = Vec::new();
        let mut words = [Vec::new(), Vec::new()];
        let [first, second, third] = &mut files;
        while let (Some(one), Some(two), Some(three)) =
            (first.next()?, second.next()?, third.next()?)
        {
            let outcome = split(one, "source", &mut words[0], reading)
                .map_err(|bad| (0, bad))
                .and_then(|()| split(two, "target", &mut words[1], reading).map_err(|bad| (1, bad)))
                .and_then(|()| {
                    parse_into(three, Some((words[0].len(), words[1].len())), &mut links)
                        .map_err(|message| (2, Bad::fatal("badly aligned", message)))
                });
            if let Err((file, bad)) = outcome {
                let place = [&*first, &*second, &*third][file];
                let error = place.error(bad.message).remedy(bad.remedy);
                if bad.fatal && !reading.skip_bad {
                    return Err(error);
                }
                corpus.skip(bad.reason, error);
                continue;
            }
            links.sort_unstable_by_key(|&(source, target)| (target, source));
            links.dedup();
            corpus.links.extend(&links);
            corpus.link_ends.push(corpus.links.len());
            for (side, (names, words)) in [&mut corpus.sources, &mut corpus.targets]
                .into_iter()
                .zip(names.iter_mut().zip(&words))
            {
                side.words.extend(words.iter().map(|word| names.count(word)));
                side.ends.push(side.words.len());
            }
        }
        same_length(&mut files)?;
        for (side, (vocabulary, names)) in [&mut corpus.sources, &mut corpus.targets]
            .into_iter()
            .zip([&mut corpus.source, &mut corpus.target].into_iter().zip(&names))
        {
            let renumbered;
            (*vocabulary, renumbered) = Vocabulary::by_count(&names.names, &names.counts);
            side.words.iter_mut().for_each(|word| *word = renumbered[*word as usize] + FIRST_WORD);
        }
        Ok(corpus)
    }

    pub fn len(&self) -> usize {
        self.link_ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.link_ends.is_empty()
    }

    pub fn sentence(&self, at: usize) -> Sentence<'_> {
        let start = |ends: &[usize]| at.checked_sub(1).map_or(0, |last| ends[last]);
        let side = |side: &'_ Side| start(&side.ends)..side.ends[at];
        Sentence {
            source: &self.sources.words[side(&self.sources)],
            target: &self.targets.words[side(&self.targets)],
            links: &self.links[start(&self.link_ends)..self.link_ends[at]],
        }
    }

    fn skip(&mut self, reason: &'static str, error: Error) {
        match self.skips.iter_mut().find(|skip| skip.reason == reason) {
            Some(skip) => skip.count += 1,
            None => self.skips.push(Skip { reason, count: 1, first: error }),
        }
    }
}

#[derive(Default)]
struct Counted {
    names: Names,
    counts: Vec<u64>,
}

impl Counted {
    fn count(&mut self, word: &str) -> u32 {
        let id = self.names.intern(word);
        if id as usize == self.counts.len() {
            self.counts.push(0);
        }
        self.counts[id as usize] += 1;
        id
    }
}

struct Bad {
    fatal: bool,
    reason: &'static str,
    message: String,
    remedy: &'static str,
}

impl Bad {
    fn fatal(reason: &'static str, message: String) -> Bad {
        let remedy = "align the text again, or have such sentences left out";
        Bad { fatal: true, reason, message, remedy }
    }
}

fn split(
    line: &[u8],
    side: &'static str,
    words: &mut Vec<String>,
    reading: &Reading,
) -> std::result::Result<(), Bad> {
    words.clear();
    let text = utf8(line, "", 0).map_err(|error| Bad {
        fatal: true,
        reason: "not UTF-8",
        message: error.message,
        remedy: "convert the file to UTF-8, or have such sentences left out",
    })?;
    let tokens = text.split([' ', '\t']).filter(|word| !word.is_empty());
    words.extend(tokens.map(str::to_owned));
    let skip = |reason, message, remedy| Err(Bad { fatal: false, reason, message, remedy });
    if words.is_empty() {
        return skip("an empty side", format!("the {side} side is empty"), "nothing is lost");
    }
    if words.len() > reading.max_words {
        let count = words.len();
        let message = format!("the {side} side has {count} words, more than {}", reading.max_words);
        return skip("too long", message, "split the sentence or raise the limit");
    }
    Ok(())
}

/// All three files must end together; the loop above stopped at the end of the shortest, having
/// taken one more line from those before it.
fn same_length(files: &mut [Lines; 3]) -> Result<()> {
    for file in files.iter_mut() {
        while file.next()?.is_some() {}
    }
    let short = files.iter().min_by_key(|file| file.line()).unwrap_or(&files[0]);
    let long = files.iter().max_by_key(|file| file.line()).unwrap_or(&files[0]);
    if short.line() == long.line() {
        return Ok(());
    }
    let message = format!("has {} lines, but {} has {}", short.line(), long.file(), long.line());
    Err(Error::new(message)
        .at(short.file(), Some(short.line()))
        .remedy("give source, target and alignment with one line for each sentence"))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;

    /// A corpus out of three texts.
    pub fn corpus(source: &str, target: &str, links: &str, reading: &Reading) -> Result<Corpus> {
        corpus_of(source.as_bytes(), target.as_bytes(), links.as_bytes(), reading)
    }

    pub fn corpus_of(
        source: &[u8],
        target: &[u8],
        links: &[u8],
        reading: &Reading,
    ) -> Result<Corpus> {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str, text: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        Corpus::read(&path("s", source), &path("t", target), &path("a", links), reading)
    }

    #[test]
    fn words_are_numbered_by_frequency() {
        let corpus = corpus("b a\nc a\n", "x\ny y\n", "1-0 0-0 0-0\n0-1\n", &Reading::default());
        let corpus = corpus.unwrap();
        assert_eq!(corpus.source.iter().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(corpus.target.iter().collect::<Vec<_>>(), ["y", "x"]);
        let first = corpus.sentence(0);
        assert_eq!((first.source, first.target), (&[4, 3][..], &[4][..]));
        assert_eq!(first.links, [(0, 0), (1, 0)]);
        assert_eq!(corpus.sentence(1).links, [(0, 1)]);
        assert_eq!(corpus.len(), 2);
    }

    #[test]
    fn files_of_different_lengths_are_refused() {
        for (source, target, links) in
            [("a\na\n", "x\n", "0-0\n"), ("a\n", "x\nx\n", "0-0\n"), ("a\n", "x\n", "\n\n")]
        {
            let error = corpus(source, target, links, &Reading::default()).unwrap_err();
            assert!(error.message.contains("has 1 lines"), "{error}");
            assert!(error.remedy.is_some());
        }
    }

    #[test]
    fn bad_sentences_stop_or_are_counted() {
        let long = vec!["a"; 50].join(" ");
        let source = format!("a\n\n{long}\nb\nb\n");
        let target = b"x\nx\nx\n\xff\nx\n";
        let links = b"0-0\n\n0-0\n0-0\n7-0\n";
        let run = |skip_bad| {
            let reading = Reading { max_words: 40, skip_bad };
            corpus_of(source.as_bytes(), target, links, &reading)
        };
        let error = run(false).unwrap_err();
        assert!(error.line == Some(4) && error.message.contains("UTF-8"), "{error}");
        let corpus = run(true).unwrap();
        assert_eq!(corpus.len(), 1);
        let reasons: Vec<_> = corpus.skips.iter().map(|skip| (skip.reason, skip.count)).collect();
        let expected =
            [("an empty side", 1), ("too long", 1), ("not UTF-8", 1), ("badly aligned", 1)];
        assert_eq!(reasons, expected);
        assert_eq!(corpus.skips[3].first.line, Some(5));
    }
}
