//! Grammars of cdec.

use std::path::Path;

use tunesmith_align::parse;
use tunesmith_text::{AtomicWriter, Error, Lines, Names, Number, Result, number, utf8};

use super::build::{Builder, Imported};
use super::general::general;
use super::walk::write_lines;
use crate::code::Symbol;
use crate::score::{Column, Scale};
use crate::table::{Kind, Table};

/// The rules that string phrases together, which belong to every hierarchical grammar.
pub const GLUE: &str = "[S] ||| [X,1] ||| [X,1] ||| Glue=0\n\
                        [S] ||| [S,1] [X,2] ||| [S,1] [X,2] ||| Glue=1\n";

/// Writes `[X] ||| source ||| target ||| features ||| links`. Probabilities become negative
/// decimal logarithms, as cdec has them.
///
/// Words that look like symbols of the grammar, in brackets or with three bars, are escaped as
/// `&#91;`, `&#93;` and `&#124;`.
pub fn export_cdec(table: &Table, path: &Path) -> Result<()> {
    let mut out = AtomicWriter::create(path)?;
    let columns: Vec<(String, Scale)> = table
        .columns()
        .iter()
        .map(|column| (column.name.replace([' ', '='], "_"), column.scale))
        .collect();
    write_lines(table, &mut out, |source, entry, line| {
        line.push_str("[X] |||");
        for &symbol in source {
            put(symbol, |id| table.source_word(id), line);
        }
        line.push_str(" |||");
        entry.target().for_each(|symbol| put(symbol, |id| table.target_word(id), line));
        line.push_str(" |||");
        for ((name, scale), &score) in columns.iter().zip(entry.scores) {
            line.push(' ');
            line.push_str(name);
            line.push('=');
            let score = f64::from(score);
            let cost = || if score > 0.0 { (1.0 / score).log10() } else { 99.0 };
            general(if *scale == Scale::Probability { cost() } else { score }, line);
        }
        line.push_str(" |||");
        for (at, to) in entry.links() {
            line.push_str(&format!(" {at}-{to}"));
        }
    })?;
    out.finish()
}

fn put<'t>(symbol: Symbol, spelling: impl Fn(u32) -> Option<&'t str>, line: &mut String) {
    line.push(' ');
    match symbol {
        Symbol::Gap(number) => line.push_str(&format!("[X,{number}]")),
        Symbol::Word(id) => {
            let word = spelling(id).unwrap_or_default();
            if word.starts_with('[') && word.ends_with(']') || word.contains("|||") {
                let safe = word.replace('[', "&#91;").replace(']', "&#93;").replace('|', "&#124;");
                line.push_str(&safe);
            } else {
                line.push_str(word);
            }
        }
    }
}

/// Whether these are the sides of one of the rules that string phrases together: gaps in the same
/// order, which may lack their numbers or, on the target side, their names.
fn is_glue(source: &str, target: &str) -> bool {
    let is_gap = |symbol: &str, (name, number): (&str, usize)| {
        let known = [format!("[{name}]"), format!("[{name},{number}]"), format!("[{number}]")];
        known.iter().position(|known| known == symbol)
    };
    [&["X"][..], &["S", "X"]].iter().any(|names| {
        let gaps = || names.iter().copied().zip(1..);
        let is_side = |side: &str, forms: usize| {
            side.split_ascii_whitespace().count() == names.len()
                && (side.split_ascii_whitespace().zip(gaps()))
                    .all(|(symbol, gap)| is_gap(symbol, gap).is_some_and(|form| form < forms))
        };
        is_side(source, 2) && is_side(target, 3)
    })
}

/// Reads a grammar with the one nonterminal X into a table at `out`. A feature that a rule lacks
/// is zero; glue rules are left out and counted. Refuses other nonterminals and more than two
/// gaps.
pub fn import_cdec(grammar: &Path, out: &Path) -> Result<Imported> {
    let mut lines = Lines::open(grammar)?;
    let mut builder = Builder::default();
    let mut names = Names::default();
    loop {
        let number = lines.line() + 1;
        let file = lines.file().to_owned();
        let Some(bytes) = lines.next()? else { break };
        let line = utf8(bytes, &file, number)?;
        let bad = |message: String| {
            Error::new(message)
                .at(&file, Some(number))
                .remedy("give rules such as [X] ||| the [X,1] ||| das [X,1] ||| Count=1 ||| 0-0")
        };
        let fields: Vec<&str> = line.split("|||").map(str::trim).collect();
        if fields.len() < 4 {
            return Err(bad(format!("{} fields instead of four or five", fields.len())));
        }
        match fields[0] {
            "[X]" => {}
            "[S]" if is_glue(fields[1], fields[2]) => {
                builder.imported.left_out += 1;
                continue;
            }
            "[S]" => {
                return Err(Error::new("a rule for [S] that is not glue")
                    .at(&file, Some(number))
                    .remedy("of [S] only [S] ||| [X,1] and [S] ||| [S,1] [X,2] are known"));
            }
            other => return Err(bad(format!("the nonterminal {other} is neither [X] nor [S]"))),
        }
        let mut gaps: Vec<u32> = Vec::new();
        let mut source = Vec::new();
        for word in fields[1].split_ascii_whitespace() {
            source.push(match gap(word).map_err(&bad)? {
                Some(index) => {
                    gaps.push(index.unwrap_or(gaps.len() as u32 + 1));
                    gaps.len() as u32
                }
                None => builder.source(word),
            });
        }
        let mut target = Vec::new();
        let mut used = 0;
        for word in fields[2].split_ascii_whitespace() {
            target.push(match gap(word).map_err(&bad)? {
                Some(index) => {
                    let index = index.unwrap_or(used + 1);
                    used += 1;
                    let place = gaps.iter().position(|&known| known == index);
                    place.ok_or_else(|| bad(format!("{word} is not on the source side")))? as u32
                        + 1
                }
                None => builder.target(word),
            });
        }
        if source.is_empty() || target.is_empty() {
            return Err(bad("an empty side".to_owned()));
        }
        let twice = gaps.len() == 2 && gaps[0] == gaps[1];
        if gaps.len() > 2 || used as usize != gaps.len() || twice {
            return Err(bad("not the same one or two gaps on both sides".to_owned()));
        }
        let mut scores = Vec::new();
        for token in fields[3].split_ascii_whitespace() {
            let pair = token.rsplit_once('=').map(|(name, value)| (name, self::value(value)));
            match pair {
                Some((name, Some(value))) if !name.is_empty() => {
                    scores.push((names.intern(name), value));
                }
                _ => return Err(bad(format!("{token:?} is not a feature with a finite value"))),
            }
        }
        let field = fields.get(4).copied().unwrap_or_default();
        let mut links =
            parse(field.as_bytes(), Some((source.len(), target.len()))).map_err(&bad)?;
        builder.add(&source, &target, &mut links, scores);
    }
    let columns = names.iter().map(|name| Column::new(name, Scale::Value)).collect();
    builder.finish(out, Kind::Hiero, columns, |_, _| {})
}

fn value(token: &str) -> Option<f32> {
    match number(token.as_bytes()) {
        Number::Finite(value) => Some(value as f32),
        _ => None,
    }
}

/// Whether a token is a gap, and with which number.
fn gap(token: &str) -> std::result::Result<Option<Option<u32>>, String> {
    let Some(inside) = token.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return Ok(None);
    };
    let (label, index) = match inside.split_once(',') {
        Some((label, index)) => (label, Some(index)),
        None if inside.bytes().all(|byte| byte.is_ascii_digit()) => ("X", Some(inside)),
        None => (inside, None),
    };
    let index = index.map(str::parse::<u32>).transpose().ok();
    match (label, index) {
        ("X", Some(index)) => Ok(Some(index)),
        _ => Err(format!("{token} is not [X], [X,1] or [X,2]")),
    }
}
