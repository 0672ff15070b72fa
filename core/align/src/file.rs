//! Symmetrisation of whole files, line by line.

use std::path::Path;

use rayon::prelude::*;
use tunesmith_text::{AtomicWriter, Error, Lines, Result};

use crate::{Heuristic, format, parse, symmetrise};

/// Lines per batch: enough to keep threads busy, few enough to stay small in memory.
const BATCH: usize = 1 << 14;

/// Writes one alignment out of two files, both with the source position first; returns the number
/// of lines. With `texts`, source and target, positions must lie inside the sentences.
pub fn symmetrise_files(
    forward: &Path,
    backward: &Path,
    texts: Option<(&Path, &Path)>,
    heuristic: Heuristic,
    out: &Path,
) -> Result<u64> {
    let mut inputs = vec![Lines::open(forward)?, Lines::open(backward)?];
    if let Some((source, target)) = texts {
        inputs.extend([Lines::open(source)?, Lines::open(target)?]);
    }
    let names: Vec<String> = inputs.iter().map(|input| input.file().to_owned()).collect();
    let mut out = AtomicWriter::create(out)?;
    let mut done = 0;
    loop {
        let batches: Vec<_> = inputs.iter_mut().map(batch).collect::<Result<_>>()?;
        let count = batches[0].len();
        if let Some(odd) = batches.iter().position(|lines| lines.len() != count) {
            let line = done + count.min(batches[odd].len()) as u64;
            let short = if batches[odd].len() < count { odd } else { 0 };
            let other = if short == odd { 0 } else { odd };
            let message = format!("ends after {line} lines, but {} goes on", names[other]);
            return Err(Error::new(message)
                .at(&names[short], Some(line))
                .remedy("give files that were made from the same text"));
        }
        let lines: Vec<Vec<u8>> = (0..count)
            .into_par_iter()
            .map(|at| {
                let lengths = texts.map(|_| (words(&batches[2][at]), words(&batches[3][at])));
                let links = |file: usize| {
                    parse(&batches[file][at], lengths).map_err(|message| {
                        Error::new(message)
                            .at(&names[file], Some(done + at as u64 + 1))
                            .remedy("align the text again, or check that the files belong together")
                    })
                };
                let mut line = Vec::new();
                format(&symmetrise(&links(0)?, &links(1)?, heuristic), &mut line);
                line.push(b'\n');
                Ok(line)
            })
            .collect::<Result<_>>()?;
        lines.iter().try_for_each(|line| out.write_all(line))?;
        done += count as u64;
        if count < BATCH {
            out.finish()?;
            return Ok(done);
        }
    }
}

fn batch(lines: &mut Lines) -> Result<Vec<Vec<u8>>> {
    let mut batch = Vec::new();
    while batch.len() < BATCH {
        match lines.next()? {
            Some(line) => batch.push(line.to_vec()),
            None => break,
        }
    }
    Ok(batch)
}

fn words(line: &[u8]) -> usize {
    line.split(|&byte| byte == b' ' || byte == b'\t').filter(|word| !word.is_empty()).count()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_bad_line_is_named_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (forward, backward) = (path("f", "0-0\n1-1\n"), path("b", "0-0\n1-2\n"));
        let (source, target) = (path("s", "a\na b\n"), path("t", "c\nc d\n"));
        let out = folder.path().join("out");
        let run = |backward: &Path, texts| {
            symmetrise_files(&forward, backward, texts, Heuristic::Union, &out)
        };
        let error = run(&backward, Some((&source, &target))).unwrap_err();
        assert_eq!((error.line, error.file.as_deref()), (Some(2), backward.to_str()));
        assert!(!out.exists());
        let error = run(&path("short", "0-0\n"), None).unwrap_err();
        assert!(error.message.contains("ends after 1 lines"), "{error}");
        let error = run(&path("long", "0-0\n0-0\n0-0\n"), None).unwrap_err();
        assert!(error.message.contains("ends after 2 lines"), "{error}");
        assert_eq!(run(&backward, None).unwrap(), 2);
        assert_eq!(fs::read_to_string(&out).unwrap(), "0-0\n1-1 1-2\n");
    }
}
