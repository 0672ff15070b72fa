//! A `|||` list, line by line, into pools.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;
use tunesmith_space::{Hypothesis, Pools, PoolsBuilder};
use tunesmith_text::{Error, Lines, Names, Number, Result, number, utf8};

use crate::Format;
use crate::features::{FeatureParser, quoted};
use crate::fields::{Fault, split, swapped};

const BLANK_LINE: &str = "blank line";

/// Ids may leave out so many sentences in all; a larger gap is a damaged id, not a list of
/// sentences without hypotheses.
const MISSING: u64 = 1_000_000;

#[derive(Debug, Clone, Default)]
pub struct Options {
    pub format: Format,
    /// Leave out bad lines and count them, instead of stopping at the first.
    pub skip_bad: bool,
    /// Keep hypotheses without text, instead of taking them for bad lines.
    pub keep_blank: bool,
    /// The first field is a label, not a number: a list is a run of lines with one label.
    pub keyed: bool,
    /// The id of the first sentence.
    pub first_id: u64,
    /// How many sentences there are; lists missing at the end are then empty ones.
    pub sentences: Option<usize>,
    /// Features to be taken as columns.
    pub columns: Vec<String>,
    /// More columns: files with one number per line of the list.
    pub column_files: Vec<(String, PathBuf)>,
    /// More features: files with one number per line of the list.
    pub feature_files: Vec<(String, PathBuf)>,
}

/// Lines left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    pub reason: &'static str,
    pub count: u64,
    /// The first of them.
    pub first: Error,
}

/// Reads a list, whole or a number of sentences at a time. Sentences whose id does not occur get
/// an empty list; a list once left cannot be taken up again.
pub struct Reader {
    options: Options,
    file: String,
    lines: Lines,
    parser: Parser,
    progress: Progress,
    names: Names,
    /// A line that belongs to the next call of `read`.
    held: Option<Held>,
    skips: Vec<Skip>,
    ended: bool,
}

impl Reader {
    /// Opens a list and its column files.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        Reader::new(Lines::open(path)?, options)
    }

    pub fn new(lines: Lines, options: Options) -> Result<Self> {
        let mut columns = Names::default();
        options.columns.iter().for_each(|name| {
            columns.intern(name);
        });
        let features = FeatureParser::new(options.format, columns.clone());
        for (name, _) in &options.column_files {
            columns.intern(name);
        }
        let mut names = Names::default();
        for (name, _) in &options.feature_files {
            names.intern(name);
        }
        if columns.len() < options.columns.len() + options.column_files.len()
            || names.len() < options.feature_files.len()
            || names.iter().any(|name| columns.id(name).is_some())
        {
            return Err(Error::new("a column or a feature is asked for twice")
                .remedy("give every column and every file another name"));
        }
        let files = options.column_files.iter().chain(&options.feature_files);
        let sidecars = files.map(|(_, path)| Lines::open(path)).collect::<Result<Vec<_>>>()?;
        Ok(Reader {
            file: lines.file().to_owned(),
            lines,
            parser: Parser { features, sidecars, cells: Vec::new(), separators: Vec::new() },
            progress: Progress::default(),
            names,
            held: None,
            skips: Vec::new(),
            ended: false,
            options,
        })
    }

    /// The next `limit` sentences, or all that remain; `None` after the last. Feature ids are the
    /// same in all parts; a later part may know more of them. Refuses a list without hypotheses.
    pub fn read(&mut self, limit: Option<usize>) -> Result<Option<Pools>> {
        if self.ended {
            return Ok(None);
        }
        let mut builder = PoolsBuilder::default();
        builder.names = std::mem::take(&mut self.names);
        let files = self.options.column_files.iter().map(|(name, _)| name);
        for name in self.options.columns.iter().chain(files) {
            builder.columns.intern(name);
        }
        let outcome = self.fill(&mut builder, limit.unwrap_or(usize::MAX).max(1));
        self.ended |= outcome.is_err();
        outcome?;
        if !self.ended {
            self.names = builder.names.clone();
        }
        Ok((builder.sentences() > 0).then(|| builder.finish()))
    }

    /// What was left out so far, by reason, in order of first occurrence.
    pub fn skipped(&self) -> &[Skip] {
        &self.skips
    }

    /// Uncompressed bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.lines.bytes()
    }

    /// Fills the builder until it has `room` sentences, or to the end.
    fn fill(&mut self, builder: &mut PoolsBuilder, room: usize) -> Result<()> {
        let Reader { options, file, lines, parser, progress, held, skips, .. } = self;
        if let Some(last) = held.take()
            && !progress.place(builder, room, &last.parsed(), options.keyed)
        {
            *held = Some(last);
            return Ok(());
        }
        loop {
            let at = lines.line() + 1;
            let Some(bytes) = lines.next()? else { break };
            let blank = bytes.iter().all(u8::is_ascii_whitespace);
            // Column files go along with every line, also with one that turns out bad.
            let columns = if blank { Ok(()) } else { parser.columns()? };
            let outcome =
                columns.and_then(|()| parser.parse(bytes, options, progress, &mut builder.names));
            match outcome {
                Ok(parsed) => {
                    if !progress.place(builder, room, &parsed, options.keyed) {
                        *held = Some(Held::new(&parsed));
                        return Ok(());
                    }
                }
                Err(fault) => {
                    let reason = fault.reason;
                    let error = fault.error(file, at);
                    // A blank line holds nothing that could be lost.
                    if !options.skip_bad && reason != BLANK_LINE {
                        return Err(error);
                    }
                    match skips.iter_mut().find(|skip| skip.reason == reason) {
                        Some(skip) => skip.count += 1,
                        None => skips.push(Skip { reason, count: 1, first: error }),
                    }
                }
            }
        }
        if progress.hypotheses == 0 {
            return Err(empty(file, lines.line(), skips));
        }
        parser.finish(file)?;
        let expected = options.sentences.unwrap_or(0) as u64;
        while progress.opened < expected {
            if builder.sentences() == room {
                return Ok(());
            }
            builder.sentence(None);
            progress.opened += 1;
        }
        self.ended = true;
        Ok(())
    }
}

fn empty(file: &str, lines: u64, skips: &[Skip]) -> Error {
    let message = match skips.first() {
        None => "no hypotheses: the file is empty".to_owned(),
        Some(skip) => {
            format!("no hypotheses: all {lines} lines were left out, first: {}", skip.first)
        }
    };
    Error::new(message).at(file, None).remedy("check that the program that makes the list ran")
}

/// A hypothesis as its line gives it.
struct Parsed<'a> {
    /// Counted from zero; nothing where lists have keys.
    sentence: u64,
    key: &'a str,
    hypothesis: Hypothesis<'a>,
}

struct Parser {
    features: FeatureParser,
    sidecars: Vec<Lines>,
    /// The numbers of the column and feature files for this line.
    cells: Vec<f64>,
    separators: Vec<usize>,
}

impl Parser {
    fn parse<'a>(
        &'a mut self,
        bytes: &'a [u8],
        options: &Options,
        progress: &Progress,
        names: &mut Names,
    ) -> std::result::Result<Parsed<'a>, Fault> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(Fault::new(BLANK_LINE, "the line is blank", "take it out"));
        }
        let line = utf8(bytes, "", 0).map_err(|error| {
            Fault::new(
                "invalid UTF-8",
                error.message,
                "convert the file to UTF-8, for instance with iconv",
            )
        })?;
        let fields = split(bytes, options.format, &mut self.separators)?;
        let key = &line[fields.id.clone()];
        let sentence = if options.keyed { 0 } else { sentence(key, options)? };
        if key.is_empty() {
            return Err(Fault::new("missing fields", "the id is empty", "give every line an id"));
        }
        let text = &line[fields.text.clone()];
        if text.is_empty() && !options.keep_blank {
            return Err(Fault::new(
                "blank hypothesis",
                "the hypothesis has no text",
                "take the line out, or use --skip-bad or --keep-blank",
            ));
        }
        let score = finite(&bytes[fields.score.clone()], "score")
            .map_err(|fault| swapped(bytes, &fields, options.format).unwrap_or(fault))?;
        progress.admit(sentence, key, options)?;
        // Last of all, so that a line that is refused leaves no names behind.
        self.features.parse(&line[fields.features.clone()], names)?;
        let (cells, values) = self.cells.split_at(options.column_files.len());
        self.features.cells.extend_from_slice(cells);
        for (id, &value) in values.iter().enumerate() {
            if self.features.features.iter().any(|&(other, _)| other == id as u32) {
                return Err(Fault::new(
                    "a feature twice",
                    format!("the list already has feature {}", options.feature_files[id].0),
                    "give the file another name",
                ));
            }
            self.features.features.push((id as u32, value as f32));
        }
        Ok(Parsed {
            sentence,
            key,
            hypothesis: Hypothesis {
                dense: &[],
                text,
                features: &self.features.features,
                score: Some(score),
                extra: &line[fields.extra],
                columns: &self.features.cells,
            },
        })
    }

    /// Takes one number from every column and feature file.
    fn columns(&mut self) -> Result<std::result::Result<(), Fault>> {
        self.cells.clear();
        let mut outcome = Ok(());
        for lines in &mut self.sidecars {
            let at = lines.line() + 1;
            let Some(bytes) = lines.next()? else {
                return Err(Error::new(format!(
                    "the file ends after {} lines, the list does not",
                    at - 1
                ))
                .at(lines.file(), Some(at))
                .remedy("give one number per line of the list"));
            };
            match finite(bytes.trim_ascii(), "value") {
                Ok(value) => self.cells.push(value),
                Err(mut fault) => {
                    fault.place = Some((lines.file().to_owned(), at));
                    // The other files must go on by a line too.
                    outcome = Err(fault);
                }
            }
        }
        Ok(outcome)
    }

    /// Nothing may be left in a column file when the list ends.
    fn finish(&mut self, list: &str) -> Result<()> {
        for lines in &mut self.sidecars {
            let count = lines.line();
            while let Some(bytes) = lines.next()? {
                if !bytes.trim_ascii().is_empty() {
                    return Err(Error::new(format!(
                        "the file goes on after {count} lines, where {list} ends"
                    ))
                    .at(lines.file(), Some(lines.line()))
                    .remedy("give one number per line of the list"));
                }
            }
        }
        Ok(())
    }
}

fn sentence(id: &str, options: &Options) -> std::result::Result<u64, Fault> {
    let digits = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let Some(id) = digits.then(|| id.parse::<u64>().ok()).flatten() else {
        return Err(Fault::new(
            "text where a number should be",
            format!("the id {} is not a number", quoted(id.as_bytes())),
            "number the sentences from 0, or read the ids as keys with --keyed",
        ));
    };
    id.checked_sub(options.first_id).ok_or_else(|| {
        Fault::new(
            "ids out of order",
            format!("id {id} is below the first id {}", options.first_id),
            "number the sentences from the first id",
        )
    })
}

fn finite(token: &[u8], what: &str) -> std::result::Result<f64, Fault> {
    match number(token) {
        Number::Finite(value) if (value as f32).is_finite() => Ok(value),
        Number::Finite(_) | Number::Infinite => Err(Fault::new(
            "NaN or infinity",
            format!("the {what} {} is not a finite number", quoted(token)),
            "give every hypothesis a finite value",
        )),
        Number::Text => Err(Fault::new(
            "text where a number should be",
            format!("the {what} {} is not a number", quoted(token)),
            "give every hypothesis a number",
        )),
    }
}

/// Which lists were opened, which is open.
#[derive(Debug, Default)]
struct Progress {
    opened: u64,
    missing: u64,
    hypotheses: u64,
    key: Option<String>,
    keys: FxHashSet<String>,
}

impl Progress {
    /// Refuses a hypothesis whose list was left, or whose id cannot be meant.
    fn admit(&self, sentence: u64, key: &str, options: &Options) -> std::result::Result<(), Fault> {
        const SORT: &str = "bring the lines of a sentence together and sentences in order, \
                            for instance with sort -s -n -k1,1";
        if options.keyed {
            if self.key.as_deref() != Some(key) && self.keys.contains(key) {
                let message = format!("the list of {} was already left", quoted(key.as_bytes()));
                return Err(Fault::new(
                    "ids out of order",
                    message,
                    "bring the lines of a key together",
                ));
            }
            return Ok(());
        }
        if sentence < self.opened.saturating_sub(1) {
            let message = format!("id {key} comes after the list of a later sentence began");
            return Err(Fault::new("ids out of order", message, SORT));
        }
        if let Some(count) = options.sentences
            && sentence >= count as u64
        {
            let message = format!("id {key} is past the last of {count} sentences");
            return Err(Fault::new("ids out of order", message, "check the number of sentences"));
        }
        if self.missing.saturating_add(sentence.saturating_sub(self.opened)) > MISSING {
            let message = format!("id {key} leaves out more than a million sentences");
            return Err(Fault::new("ids out of order", message, "check the ids"));
        }
        Ok(())
    }

    /// Adds a hypothesis to its list, opening it and any missing ones before it. False, and
    /// nothing added, when the builder has no room for one more sentence.
    fn place(
        &mut self,
        builder: &mut PoolsBuilder,
        room: usize,
        parsed: &Parsed<'_>,
        keyed: bool,
    ) -> bool {
        if keyed && self.key.as_deref() != Some(parsed.key) {
            if builder.sentences() == room {
                return false;
            }
            builder.sentence(Some(parsed.key));
            self.opened += 1;
            self.keys.insert(parsed.key.to_owned());
            self.key = Some(parsed.key.to_owned());
        }
        while !keyed && self.opened <= parsed.sentence {
            if builder.sentences() == room {
                return false;
            }
            builder.sentence(None);
            self.missing += u64::from(self.opened < parsed.sentence);
            self.opened += 1;
        }
        self.hypotheses += 1;
        builder.push(parsed.hypothesis.clone());
        true
    }
}

/// What [`Parsed`] borrows, kept.
struct Held {
    sentence: u64,
    key: String,
    text: String,
    extra: String,
    score: Option<f64>,
    features: Vec<(u32, f32)>,
    cells: Vec<f64>,
}

impl Held {
    fn new(parsed: &Parsed<'_>) -> Self {
        Held {
            sentence: parsed.sentence,
            key: parsed.key.to_owned(),
            text: parsed.hypothesis.text.to_owned(),
            extra: parsed.hypothesis.extra.to_owned(),
            score: parsed.hypothesis.score,
            features: parsed.hypothesis.features.to_vec(),
            cells: parsed.hypothesis.columns.to_vec(),
        }
    }

    fn parsed(&self) -> Parsed<'_> {
        Parsed {
            sentence: self.sentence,
            key: &self.key,
            hypothesis: Hypothesis {
                dense: &[],
                text: &self.text,
                features: &self.features,
                score: self.score,
                extra: &self.extra,
                columns: &self.cells,
            },
        }
    }
}
