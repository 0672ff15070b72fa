//! Fixed blocks of sentences, and sums that come back for each of them.

use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tunesmith_solve::{Blocks, Sparse};

/// Where each block ends, and the number of each sentence in the whole corpus.
pub type GivenBlocks = (Vec<usize>, Vec<u32>);

/// Starts of blocks and their end, ids, values.
pub type Slopes<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>);

/// Blocks of so many sentences; those of a whole corpus unless others are given.
pub fn blocks_of(given: Option<GivenBlocks>, sentences: usize) -> PyResult<Blocks> {
    let Some((ends, numbers)) = given else { return Ok(Blocks::whole(sentences)) };
    let fits = numbers.len() == sentences;
    let blocks = fits.then(|| Blocks::new(ends, numbers)).flatten();
    blocks.ok_or_else(|| PyValueError::new_err("blocks of other sentences"))
}

/// Sparse sums as arrays.
pub fn slopes(py: Python<'_>, found: Sparse) -> Slopes<'_> {
    let starts: Vec<i64> = found.starts.into_iter().map(|start| start as i64).collect();
    (starts.into_pyarray(py), found.ids.into_pyarray(py), found.values.into_pyarray(py))
}
