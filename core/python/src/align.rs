//! Word alignments: made from text, and symmetrisation of links and of files.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tunesmith_align::{FastAlign, Heuristic, Link};
use tunesmith_text::Watch;

use crate::error::py_err;
use crate::threads;
use crate::watch::watched;

fn heuristic(name: &str) -> PyResult<Heuristic> {
    name.parse().map_err(|message: String| PyValueError::new_err(message))
}

/// The links of a line in Pharaoh format; `lengths` are the numbers of source and target words.
#[pyfunction]
#[pyo3(signature = (line, lengths=None))]
fn parse_links(line: &str, lengths: Option<(usize, usize)>) -> PyResult<Vec<Link>> {
    tunesmith_align::parse(line.as_bytes(), lengths)
        .map_err(|message| py_err(tunesmith_text::Error::new(message)))
}

/// One list of links out of two, both with the source position first.
#[pyfunction]
fn symmetrise(forward: Vec<Link>, backward: Vec<Link>, heuristic: &str) -> PyResult<Vec<Link>> {
    Ok(tunesmith_align::symmetrise(&forward, &backward, self::heuristic(heuristic)?))
}

/// One file out of two; the number of lines.
#[pyfunction]
#[pyo3(signature = (forward, backward, out, heuristic, *, texts=None, threads=0))]
fn symmetrise_files(
    py: Python<'_>,
    forward: PathBuf,
    backward: PathBuf,
    out: PathBuf,
    heuristic: &str,
    texts: Option<(PathBuf, PathBuf)>,
    threads: usize,
) -> PyResult<u64> {
    let heuristic = self::heuristic(heuristic)?;
    threads::run(py, threads, move || {
        let texts = texts.as_ref().map(|(source, target)| (source.as_path(), target.as_path()));
        tunesmith_align::symmetrise_files(&forward, &backward, texts, heuristic, &out)
    })?
    .map_err(py_err)
}

/// Aligns two files, both directions at once; what there was and the tensions of the diagonal.
/// `progress` is called with the stage, the work done in it and the whole of it.
#[pyfunction]
#[pyo3(signature = (source, target, forward, backward, *, iterations, alpha, null, tension,
                    max_words, threads=0, progress=None))]
#[allow(clippy::too_many_arguments)] // keywords of one call
fn fast_align(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    forward: PathBuf,
    backward: PathBuf,
    iterations: usize,
    alpha: f64,
    null: f64,
    tension: f64,
    max_words: usize,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u64, u64, u64, [f64; 2])> {
    let options = FastAlign { iterations, alpha, null, tension, max_words };
    let watch = Watch::default();
    let outcome = watched(py, &watch, progress, threads, || {
        tunesmith_align::fast_align((&source, &target), (&forward, &backward), &options, &watch)
    })?;
    let found = outcome.map_err(py_err)?;
    Ok((found.pairs, found.empty, found.long, found.tensions))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("HEURISTICS", Heuristic::ALL.map(|known| known.0).to_vec())?;
    module.add_function(wrap_pyfunction!(parse_links, module)?)?;
    module.add_function(wrap_pyfunction!(fast_align, module)?)?;
    module.add_function(wrap_pyfunction!(symmetrise, module)?)?;
    module.add_function(wrap_pyfunction!(symmetrise_files, module)?)?;
    Ok(())
}
