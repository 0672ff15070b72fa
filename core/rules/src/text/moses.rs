//! Phrase tables and reordering tables of Moses.

use std::path::Path;

use rustc_hash::FxHashMap;
use tunesmith_align::parse;
use tunesmith_text::{AtomicWriter, Error, Lines, Number, Result, number, utf8};

use super::build::{Builder, Imported};
use super::general::general;
use super::walk::write_lines;
use crate::code::Symbol;
use crate::score::{
    COUNT_COLUMNS, Column, ORIENTATION_SMOOTHING, PHRASE_COLUMNS, Scale, orientation_columns,
};
use crate::table::{Kind, Table};

/// Writes `source ||| target ||| scores ||| links ||| counts ||| |||`, sorted as Moses sorts.
///
/// A bar inside a word, which would end the field or the factor, becomes `&#124;`.
pub fn export_phrases(table: &Table, path: &Path) -> Result<()> {
    let scores = columns(table, &PHRASE_COLUMNS, path).or_else(|error| {
        // Tables imported with other scores go out as they came in.
        let own: Vec<usize> = (0..table.columns().len())
            .filter(|&at| table.columns()[at].name.starts_with("score"))
            .collect();
        if own.is_empty() { Err(error) } else { Ok(own) }
    })?;
    let counts = columns(table, &COUNT_COLUMNS, path).unwrap_or_default();
    let mut out = AtomicWriter::create(path)?;
    write_lines(table, &mut out, |source, entry, line| {
        sides(table, source, entry.target(), line);
        numbers(&scores, entry.scores, line);
        line.push_str(" |||");
        for (at, to) in entry.links() {
            line.push_str(&format!(" {at}-{to}"));
        }
        line.push_str(" |||");
        numbers(&counts, entry.scores, line);
        line.push_str(" ||| |||");
    })?;
    out.finish()
}

/// Writes `source ||| target ||| six probabilities` of one model, `word` or `block`.
pub fn export_reordering(table: &Table, model: &str, path: &Path) -> Result<()> {
    let names: Vec<String> = orientation_columns(model, false).map(|column| column.name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let scores = columns(table, &names, path)?;
    let count = columns(table, &COUNT_COLUMNS[2..], path).ok().map(|found| found[0]);
    let mut out = AtomicWriter::create(path)?;
    write_lines(table, &mut out, |source, entry, line| {
        sides(table, source, entry.target(), line);
        for &column in &scores {
            line.push(' ');
            let times = count.map_or(0.0, |count| entry.scores[count]);
            general(smoothed(entry.scores[column], times), line);
        }
    })?;
    out.finish()
}

/// The fraction that a stored probability came from, whose digits go further, where it came from
/// a count out of `times`.
fn smoothed(probability: f32, times: f32) -> f64 {
    let total = f64::from(times) + 3.0 * ORIENTATION_SMOOTHING;
    let count = (f64::from(probability) * total - ORIENTATION_SMOOTHING).round();
    let exact = (count + ORIENTATION_SMOOTHING) / total;
    if exact as f32 == probability { exact } else { probability.into() }
}

fn columns(table: &Table, names: &[&str], path: &Path) -> Result<Vec<usize>> {
    let place = |name: &&str| {
        table.columns().iter().position(|column| column.name == *name).ok_or_else(|| {
            Error::new(format!("the table has no column {name}"))
                .at(path.display().to_string(), None)
                .remedy("make the table with what is to be written")
        })
    };
    names.iter().map(place).collect()
}

fn sides(
    table: &Table,
    source: &[Symbol],
    target: impl Iterator<Item = Symbol>,
    line: &mut String,
) {
    let put = |symbol: Symbol, word: Option<&str>, line: &mut String| {
        match symbol {
            Symbol::Gap(number) => line.push_str(&format!("[X][X,{number}]")),
            Symbol::Word(_) => escape(word.unwrap_or_default(), line),
        }
        line.push(' ');
    };
    let id = |symbol: Symbol| match symbol {
        Symbol::Word(id) => id,
        Symbol::Gap(_) => u32::MAX,
    };
    source.iter().for_each(|&symbol| put(symbol, table.source_word(id(symbol)), line));
    line.push_str("||| ");
    target.for_each(|symbol| put(symbol, table.target_word(id(symbol)), line));
    line.push_str("|||");
}

fn escape(word: &str, line: &mut String) {
    if word.contains('|') {
        line.push_str(&word.replace('|', "&#124;"));
    } else {
        line.push_str(word);
    }
}

fn numbers(columns: &[usize], scores: &[f32], line: &mut String) {
    for &column in columns {
        line.push(' ');
        general(scores.get(column).copied().unwrap_or(0.0).into(), line);
    }
}

/// Reads a phrase table, and a reordering table where there is one, into a table at `out`. Words
/// stay as they are written. Refuses lines without source, target and the same number of scores
/// everywhere, sparse features, factors, and hierarchical rules; phrase pairs that the reordering
/// table lacks get probabilities of one, as in Moses.
pub fn import_moses(phrases: &Path, reordering: Option<&Path>, out: &Path) -> Result<Imported> {
    let mut lines = Lines::open(phrases)?;
    let mut builder = Builder::default();
    let mut keys: FxHashMap<Vec<u8>, u32> = FxHashMap::default();
    // Of each row the first with the same sides, where orientations are read.
    let mut firsts = Vec::new();
    let (mut width, mut counted) = (0, false);
    let mut is_labelled = true;
    let (mut source, mut target) = (Vec::new(), Vec::new());
    loop {
        let number = lines.line() + 1;
        let file = lines.file().to_owned();
        let Some(bytes) = lines.next()? else { break };
        let line = utf8(bytes, &file, number)?;
        let bad = |message: String| {
            Error::new(message)
                .at(&file, Some(number))
                .remedy("give a phrase table: source ||| target ||| scores ||| links ||| counts")
        };
        let fields: Vec<&str> = line.split("|||").collect();
        if fields.len() < 3 {
            return Err(bad(format!("{} fields instead of three or more", fields.len())));
        }
        source.clear();
        target.clear();
        source.extend(words(fields[0]).map(|word| builder.source(word)));
        target.extend(words(fields[1]).map(|word| builder.target(word)));
        if source.is_empty() || target.is_empty() {
            return Err(bad("an empty side".to_owned()));
        }
        refuse_others(&fields).map_err(|error| error.at(&file, Some(number)))?;
        is_labelled &=
            [fields[0], fields[1]].iter().all(|side| words(side).last().is_some_and(is_label));
        let mut scores = values(fields[2]).map_err(&bad)?;
        let counts = values(fields.get(4).unwrap_or(&"")).map_err(&bad)?;
        if builder.len() == 0 {
            width = scores.len();
            counted = counts.len() == COUNT_COLUMNS.len();
        }
        if scores.len() != width || width == 0 {
            return Err(bad(format!("{} scores, but {width} before", scores.len())));
        }
        if counted {
            scores.extend(counts.iter().take(COUNT_COLUMNS.len()));
        }
        let field = fields.get(3).unwrap_or(&"");
        let mut links =
            parse(field.as_bytes(), Some((source.len(), target.len()))).map_err(&bad)?;
        let row = builder.len() as u32;
        let key = builder.add(&source, &target, &mut links, (0..).zip(scores));
        if reordering.is_some() {
            firsts.push(*keys.entry(key).or_insert(row) as usize);
        }
    }
    if is_labelled && builder.len() > 0 {
        return Err(hierarchical().at(lines.file(), Some(1)));
    }
    let mut columns: Vec<Column> = match width {
        4 => PHRASE_COLUMNS.map(|name| Column::new(name, Scale::Probability)).into(),
        _ => (1..=width).map(|n| Column::new(format!("score{n}"), Scale::Probability)).collect(),
    };
    if counted {
        columns.extend(COUNT_COLUMNS.map(|name| Column::new(name, Scale::Count)));
    }
    let start = columns.len();
    let orientations = match reordering {
        Some(path) => {
            columns.extend(orientation_columns("word", false));
            read_reordering(path, &builder, &keys)?
        }
        None => Vec::new(),
    };
    drop(keys);
    let is_missing = |first: &&usize| orientations[**first][0].is_nan();
    builder.imported.missing = firsts.iter().filter(is_missing).count() as u64;
    builder.finish(out, Kind::Phrase, columns, |row, scores| {
        if let Some(&first) = firsts.get(row) {
            let six = orientations[first];
            let six = if six[0].is_nan() { [1.0; 6] } else { six };
            scores[start..start + 6].copy_from_slice(&six);
        }
    })
}

/// Refuses what a phrase table of Moses may have and would be read as something else.
fn refuse_others(fields: &[&str]) -> Result<()> {
    for word in fields[..2].iter().flat_map(|side| words(side)) {
        // A gap has the labels of both sides: [X][X].
        let is_gap = word.split_once("][").is_some_and(|(one, other)| {
            is_label(&format!("{one}]")) && is_label(&format!("[{other}"))
        });
        if is_gap {
            return Err(hierarchical());
        }
        if word.contains('|') {
            return Err(Error::new(format!("{word:?} has factors, which are not supported"))
                .remedy("give a table of plain words, in which a bar is written &#124;"));
        }
    }
    match fields.get(5).map(|field| field.trim()) {
        None | Some("") => Ok(()),
        Some(sparse) => {
            Err(Error::new(format!("the sparse features {sparse:?} are not supported"))
                .remedy("leave the sixth field empty, and take the weights of these features out"))
        }
    }
}

/// Whether a word is a label in brackets.
fn is_label(word: &str) -> bool {
    let inside = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
    inside.is_some_and(|label| !label.is_empty() && !label.contains(['[', ']']))
}

fn hierarchical() -> Error {
    Error::new("hierarchical rules, not phrases").remedy(
        "train such a model with tunesmith train --kind hiero, or give the rules as a grammar of \
         cdec with --cdec-grammar",
    )
}

fn read_reordering(
    path: &Path,
    builder: &Builder,
    keys: &FxHashMap<Vec<u8>, u32>,
) -> Result<Vec<[f32; 6]>> {
    let mut rows = vec![[f32::NAN; 6]; builder.len()];
    let mut lines = Lines::open(path)?;
    let mut key = Vec::new();
    loop {
        let number = lines.line() + 1;
        let file = lines.file().to_owned();
        let Some(bytes) = lines.next()? else { return Ok(rows) };
        let line = utf8(bytes, &file, number)?;
        let bad = |message: String| {
            Error::new(message)
                .at(&file, Some(number))
                .remedy("give a table of msd-bidirectional-fe: source ||| target ||| six scores")
        };
        let fields: Vec<&str> = line.split("|||").collect();
        let [source, target, scores] = fields[..] else {
            return Err(bad(format!("{} fields instead of three", fields.len())));
        };
        let six: [f32; 6] = values(scores)
            .map_err(&bad)?
            .try_into()
            .map_err(|other: Vec<f32>| bad(format!("{} scores instead of six", other.len())))?;
        key.clear();
        if builder.known(source, target, &mut key).is_some()
            && let Some(&row) = keys.get(&key)
        {
            rows[row as usize] = six;
        }
    }
}

fn words(field: &str) -> impl Iterator<Item = &str> {
    field.split([' ', '\t']).filter(|word| !word.is_empty())
}

fn values(field: &str) -> std::result::Result<Vec<f32>, String> {
    words(field)
        .map(|token| match number(token.as_bytes()) {
            Number::Finite(value) if value >= 0.0 => Ok(value as f32),
            Number::Finite(value) => Err(format!("{value} is no probability")),
            _ => Err(format!("{token:?} is not a finite number")),
        })
        .collect()
}
