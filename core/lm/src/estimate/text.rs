//! Text in, n-grams of the highest order out.

use tunesmith_text::{Error, Lines, Names, Result, Steps, Watch, utf8};

use super::sorter::Sort;
use super::{BOS, EOS};
use crate::MAX_ORDER;
use crate::grams::{BEGIN, END, UNKNOWN};

/// What to do with `<s>`, `</s>` and `<unk>` in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symbols {
    #[default]
    Refuse,
    /// Take them as white space and count them.
    Skip,
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    pub sentences: u64,
    pub words: u64,
    /// Special words that were skipped.
    pub skipped: u64,
}

/// Reads sentences, one per line, and hands on every n-gram of order `order`, last word first and
/// with a count of one. Words stand between spaces, tabs, carriage returns and zero bytes.
pub fn count(
    texts: impl IntoIterator<Item = Result<Lines>>,
    order: usize,
    symbols: Symbols,
    names: &mut Names,
    out: &mut dyn Sort,
    watch: &Watch,
) -> Result<Read> {
    for special in [UNKNOWN, BEGIN, END] {
        names.intern(special);
    }
    let mut read = Read::default();
    let mut steps = Steps::new(watch);
    let mut record = [BOS; MAX_ORDER + 1];
    record[order] = 1;
    let mut push = |record: &mut [u32; MAX_ORDER + 1], word: u32| {
        record.copy_within(..order - 1, 1);
        record[0] = word;
        out.push(&record[..order + 1])
    };
    for text in texts {
        let mut lines = text?;
        let file = lines.file().to_owned();
        loop {
            let number = lines.line() + 1;
            let Some(line) = lines.next()? else { break };
            let line = utf8(line, &file, number)?;
            record[..order].fill(BOS);
            for word in line.split([' ', '\t', '\r', '\0']).filter(|word| !word.is_empty()) {
                let id = names.intern(word);
                if id <= EOS {
                    special(word, symbols).map_err(|error| error.at(&file, Some(number)))?;
                    read.skipped += 1;
                    continue;
                }
                push(&mut record, id)?;
                read.words += 1;
            }
            push(&mut record, EOS)?;
            read.sentences += 1;
            steps.one()?;
        }
    }
    if read.words == 0 {
        return Err(Error::new("the text has no words").remedy("give a text with sentences in it"));
    }
    Ok(read)
}

fn special(word: &str, symbols: Symbols) -> Result<()> {
    match symbols {
        Symbols::Skip => Ok(()),
        Symbols::Refuse => Err(Error::new(format!("the special word {word} in the text"))
            .remedy("remove it, or skip such words: --skip-symbols")),
    }
}
