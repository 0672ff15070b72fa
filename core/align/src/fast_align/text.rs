//! Parallel text in memory, words as numbers.

use std::path::Path;

use tunesmith_text::{Error, Lines, Names, Result, Steps, Watch, utf8};

#[derive(Debug, Default)]
struct Side {
    words: Vec<u32>,
    ends: Vec<usize>,
    names: usize,
}

impl Side {
    fn words(&self, at: usize) -> &[u32] {
        &self.words[at.checked_sub(1).map_or(0, |last| self.ends[last])..self.ends[at]]
    }
}

/// Sentence pairs. Those that cannot be aligned are empty on both sides.
#[derive(Debug, Default)]
pub struct Text {
    sides: [Side; 2],
    /// Pairs with an empty side.
    pub empty: u64,
    /// Pairs with a side of too many words.
    pub long: u64,
}

impl Text {
    /// Reads two files line by line; words are what spaces and tabs separate. Refuses files of
    /// different lengths and text that is not UTF-8.
    pub fn read(source: &Path, target: &Path, max_words: usize, watch: &Watch) -> Result<Self> {
        watch.enter("reading", 0);
        let mut files = [Lines::open(source)?, Lines::open(target)?];
        let mut names = [Names::default(), Names::default()];
        let mut text = Text::default();
        let mut steps = Steps::new(watch);
        loop {
            let [first, second] = &mut files;
            let (Some(one), Some(two)) = (first.next()?, second.next()?) else { break };
            let mut counts = [0, 0];
            let before = [text.sides[0].words.len(), text.sides[1].words.len()];
            for (at, line) in [one, two].into_iter().enumerate() {
                let side = &mut text.sides[at];
                let words = utf8(line, "", 0)
                    .map_err(|error| {
                        let file = if at == 0 { source } else { target };
                        error.at(file.display().to_string(), Some(side.ends.len() as u64 + 1))
                    })?
                    .split([' ', '\t'])
                    .filter(|word| !word.is_empty());
                for word in words {
                    counts[at] += 1;
                    // Beyond the limit words are only counted.
                    if counts[at] <= max_words {
                        side.words.push(names[at].intern(word));
                    }
                }
            }
            let (empty, long) = (counts.contains(&0), counts.iter().any(|&n| n > max_words));
            text.empty += u64::from(empty);
            text.long += u64::from(long && !empty);
            for (side, before) in text.sides.iter_mut().zip(before) {
                if empty || long {
                    side.words.truncate(before);
                }
                side.ends.push(side.words.len());
            }
            steps.one()?;
        }
        same_length(&mut files)?;
        for (side, names) in text.sides.iter_mut().zip(&names) {
            side.names = names.len();
        }
        Ok(text)
    }

    pub fn len(&self) -> usize {
        self.sides[0].ends.len()
    }

    /// The words of a pair.
    pub fn pair(&self, at: usize) -> (&[u32], &[u32]) {
        (self.sides[0].words(at), self.sides[1].words(at))
    }

    /// How many different source and target words there are.
    pub fn names(&self) -> (usize, usize) {
        (self.sides[0].names, self.sides[1].names)
    }

    /// How many source words there are in all.
    pub fn source_words(&self) -> usize {
        self.sides[0].words.len()
    }
}

/// The loop stopped at the end of the shorter file, perhaps with one more line of the other.
fn same_length(files: &mut [Lines; 2]) -> Result<()> {
    for file in files.iter_mut() {
        while file.next()?.is_some() {}
    }
    let [one, two] = &*files;
    let (short, long) = if one.line() <= two.line() { (one, two) } else { (two, one) };
    if short.line() == long.line() {
        return Ok(());
    }
    let message = format!("has {} lines, but {} has {}", short.line(), long.file(), long.line());
    Err(Error::new(message)
        .at(short.file(), Some(short.line()))
        .remedy("give one line per sentence in both files"))
}
