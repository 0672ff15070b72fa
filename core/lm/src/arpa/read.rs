//! Reading ARPA with all that occurs in the wild: other line ends, spaces for tabs, backoffs left
//! out, -99 for zero, text before `\data\`.

use tunesmith_text::{Error, Lines, Number, Result, number, utf8};

use crate::MAX_ORDER;
use crate::grams::Grams;

/// What a line is, in the order in which lines may come.
enum Line<'a> {
    Blank,
    Data,
    Count(&'a [u8]),
    Section(usize),
    End,
    Other(&'a [u8]),
}

fn classify(line: &[u8]) -> Line<'_> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Line::Blank;
    }
    if let Some(name) = line.strip_prefix(b"\\") {
        if name.eq_ignore_ascii_case(b"data\\") {
            return Line::Data;
        }
        if name.eq_ignore_ascii_case(b"end\\") {
            return Line::End;
        }
        let digits = name.strip_suffix(b"-grams:").or_else(|| name.strip_suffix(b"-gram:"));
        if let Some(order) = digits.and_then(whole) {
            return Line::Section(order as usize);
        }
    }
    match line.strip_prefix(b"ngram") {
        Some(rest) if rest.first().is_some_and(u8::is_ascii_whitespace) => Line::Count(rest),
        _ => Line::Other(line),
    }
}

fn whole(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text.trim_ascii()).ok()?.parse().ok()
}

fn show(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let short: String = text.chars().take(60).collect();
    format!("{short:?}")
}

/// Reads a whole file. Refuses what is no finite log-probability of at most zero, sections that are
/// missing or of another size than announced, and a file without its end.
pub fn read(mut lines: Lines) -> Result<Grams> {
    let file = lines.file().to_owned();
    let mut reading = Reading::default();
    loop {
        let number = lines.line() + 1;
        let Some(line) = lines.next()? else { break };
        match reading.take(line, &file, number) {
            Ok(true) => return reading.finish().map_err(|error| error.at(&file, Some(number))),
            Ok(false) => {}
            Err(error) => return Err(error.at(&file, Some(number))),
        }
    }
    match lines.line() {
        0 => Err(Error::new("is empty").at(&file, None).remedy("make the file again")),
        last => Err(reading.cut_off().at(&file, Some(last))),
    }
}

#[derive(Default)]
struct Reading {
    data: bool,
    counts: Vec<u64>,
    grams: Option<Grams>,
    /// The order of the section, and n-grams seen in it.
    section: usize,
    seen: u64,
    words: Vec<u32>,
}

impl Reading {
    /// Takes one line; true at the end.
    fn take(&mut self, line: &[u8], file: &str, number: u64) -> Result<bool> {
        if !self.data {
            return self.before(line).map(|()| false);
        }
        // Nearly every line is an n-gram, and none of those begins like anything else.
        if self.section > 0 && line.first().is_some_and(|&byte| byte == b'-' || byte == b'0') {
            return self.gram(line, file, number).map(|()| false);
        }
        match classify(line) {
            Line::Blank => {}
            Line::Data => return Err(Error::new("a second \\data\\").remedy("remove one of them")),
            Line::Count(rest) if self.section == 0 => self.count(rest)?,
            Line::Section(order) => {
                self.close(order)?;
                self.open(order)?;
            }
            Line::End => {
                self.close(self.counts.len() + 1)?;
                return Ok(true);
            }
            Line::Count(line) | Line::Other(line) if self.section == 0 => {
                return Err(Error::new(format!("{} where n-gram counts should be", show(line)))
                    .remedy("write lines such as ngram 1=1000 behind \\data\\"));
            }
            Line::Count(_) | Line::Other(_) => self.gram(line, file, number)?,
        }
        Ok(false)
    }

    fn before(&mut self, line: &[u8]) -> Result<()> {
        match classify(line) {
            Line::Data => self.data = true,
            Line::Section(_) | Line::End => {
                return Err(Error::new("the \\data\\ section is missing")
                    .remedy("put it before the n-grams, with their counts"));
            }
            Line::Other(line) if line == b"iARPA" => {
                return Err(Error::new("is IRSTLM's iARPA, not ARPA")
                    .remedy("convert it with compile-lm --text yes"));
            }
            Line::Other(line) if line.starts_with(b"mmap lm http://kheafield.com") => {
                return Err(Error::new("is a binary of KenLM").remedy("give the ARPA file instead"));
            }
            Line::Other(line) if line.starts_with(b"blmt") => {
                return Err(Error::new("is a binary of IRSTLM")
                    .remedy("convert it with compile-lm --text yes"));
            }
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, rest: &[u8]) -> Result<()> {
        let wanted = self.counts.len() as u64 + 1;
        let equals = rest.iter().position(|&byte| byte == b'=');
        let pair = equals.and_then(|at| Some((whole(&rest[..at])?, whole(&rest[at + 1..])?)));
        match pair {
            Some((order, count)) if order == wanted => self.counts.push(count),
            Some((order, _)) => {
                return Err(Error::new(format!("the count of {order}-grams comes out of order"))
                    .remedy("give the counts of 1-grams, 2-grams and so on"));
            }
            None => {
                return Err(Error::new(format!("{} is no count", show(rest)))
                    .remedy("write lines such as ngram 1=1000 behind \\data\\"));
            }
        }
        if self.counts.len() > MAX_ORDER {
            return Err(Error::new(format!("an order above {MAX_ORDER}"))
                .remedy("use a model of lower order"));
        }
        Ok(())
    }

    /// Ends the current section; sections up to `next` that announce nothing may be left out.
    fn close(&mut self, next: usize) -> Result<()> {
        let announced = |order: usize| self.counts.get(order - 1).copied().unwrap_or(0);
        if self.section > 0 && self.seen != announced(self.section) {
            return Err(Error::new(format!(
                "the section \\{}-grams: has {} n-grams, \\data\\ says {}",
                self.section,
                self.seen,
                announced(self.section)
            ))
            .remedy("make the file again, or correct the count"));
        }
        if let Some(order) = (self.section + 1..next).find(|&order| announced(order) > 0) {
            return Err(Error::new(format!("the section \\{order}-grams: is missing"))
                .remedy("make the file again"));
        }
        Ok(())
    }

    fn open(&mut self, order: usize) -> Result<()> {
        if self.counts.is_empty() {
            return Err(Error::new("\\data\\ has no counts")
                .remedy("write lines such as ngram 1=1000 behind \\data\\"));
        }
        if order <= self.section || order > self.counts.len() {
            return Err(Error::new(format!("an unexpected section \\{order}-grams:"))
                .remedy("give each order that \\data\\ announces once, in ascending order"));
        }
        if self.section <= 1 && order > 1 {
            self.marks()?;
        }
        let counts = &self.counts;
        let grams = self.grams.get_or_insert_with(|| Grams::new(counts.len()));
        // The count is a claim, so it is not trusted with any amount of memory.
        let room = self.counts[order - 1].min(1 << 20) as usize;
        grams.orders[order - 1].words.reserve(room * order);
        grams.orders[order - 1].values.reserve(room);
        self.section = order;
        self.seen = 0;
        Ok(())
    }

    fn marks(&mut self) -> Result<()> {
        match &mut self.grams {
            Some(grams) => grams.find_marks(),
            None => {
                Err(Error::new("the section \\1-grams: is missing").remedy("make the file again"))
            }
        }
    }

    fn gram(&mut self, line: &[u8], file: &str, number: u64) -> Result<()> {
        let (order, highest) = (self.section, self.counts.len());
        let grams = match &mut self.grams {
            Some(grams) => grams,
            None => return Err(Error::new("an n-gram outside of any section")),
        };
        let mut fields = line
            .split(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
            .filter(|field| !field.is_empty());
        let Some(first) = fields.next() else { return Ok(()) };
        if self.seen == self.counts[order - 1] {
            return Err(Error::new(format!(
                "more {order}-grams than the {} that \\data\\ announces, or no header before the \
                 next section",
                self.counts[order - 1]
            ))
            .remedy("make the file again, or correct the count"));
        }
        let prob = log10(first, "log-probability")?;
        if prob > 0.0 {
            return Err(Error::new(format!("the log-probability {prob} is positive"))
                .remedy("make the model again: a probability cannot exceed one"));
        }
        let short =
            || Error::new(format!("fewer than {order} words")).remedy("the line may have been cut");
        let mut unigram = None;
        if order == 1 {
            unigram = Some(fields.next().ok_or_else(short)?);
        } else {
            self.words.clear();
            for _ in 0..order {
                let word = fields.next().ok_or_else(short)?;
                self.words.push(lookup(grams, word)?);
            }
        }
        let backoff = fields.next().map_or(Ok(0.0), |field| log10(field, "backoff"))?;
        if let Some(more) = fields.next() {
            return Err(Error::new(format!("{} behind the backoff", show(more)))
                .remedy(format!("a {order}-gram has {order} words and at most two numbers")));
        }
        if order == highest && backoff != 0.0 {
            return Err(Error::new(format!(
                "the backoff {backoff} for an n-gram of the highest order"
            ))
            .remedy("leave it out: nothing longer can back off to it"));
        }
        match unigram {
            Some(word) => grams.push_word(utf8(word, file, number)?, prob, backoff)?,
            None => {
                let list = &mut grams.orders[order - 1];
                list.words.extend(self.words.iter().rev());
                list.values.push((prob, backoff));
            }
        }
        self.seen += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<Grams> {
        self.marks()?;
        self.grams.ok_or_else(|| Error::new("no n-grams"))
    }

    fn cut_off(&self) -> Error {
        if !self.data {
            return Error::new("no \\data\\ section: this is no ARPA file")
                .remedy("give an ARPA file or a binary made by tunesmith lm binarize");
        }
        Error::new("the file ends without \\end\\: it is truncated").remedy("make the file again")
    }
}

fn lookup(grams: &Grams, word: &[u8]) -> Result<u32> {
    if word == b"<UNK>" {
        return Ok(0);
    }
    std::str::from_utf8(word).ok().and_then(|word| grams.names.id(word)).ok_or_else(|| {
        Error::new(format!("the word {} is not among the 1-grams", show(word)))
            .remedy("every word of an n-gram needs a 1-gram")
    })
}

fn log10(field: &[u8], what: &str) -> Result<f32> {
    match number(field) {
        Number::Finite(value) if (value as f32).is_finite() => Ok(value as f32),
        Number::Finite(_) | Number::Infinite => {
            Err(Error::new(format!("the {what} {} is not a finite number", show(field)))
                .remedy("write -99 for the logarithm of zero"))
        }
        Number::Text => Err(Error::new(format!("{} is not a number, so no {what}", show(field)))
            .remedy("an n-gram is a log-probability, words and a backoff")),
    }
}
