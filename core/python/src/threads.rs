//! Thread pools by size: results never depend on which one runs a call.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Pools that no call uses at the moment, by the number of their threads.
static IDLE: Mutex<Option<HashMap<usize, Vec<ThreadPool>>>> = Mutex::new(None);

/// The pool with one thread per core. All calls that want every core share it: with a pool each,
/// two of them would run twice as many threads as there are cores.
static WHOLE: Mutex<Option<Arc<ThreadPool>>> = Mutex::new(None);

/// Runs `work` without the interpreter lock on `threads` threads (0: one per core).
pub fn run<T: Send>(
    py: Python<'_>,
    threads: usize,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let pool = Pool::of(threads)?;
    Ok(py.detach(|| pool.install(work)))
}

/// The threads of one call.
///
/// A call that names a number has its threads to itself. Callers that want one thread each, as the
/// workers of a service do, would otherwise wait for each other on the same thread.
pub enum Pool {
    Whole(Arc<ThreadPool>),
    /// Idle again when this is dropped, after a panic too.
    Own(Option<ThreadPool>, usize),
}

impl Pool {
    pub fn of(threads: usize) -> PyResult<Pool> {
        if threads == 0 {
            let mut whole = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
            let pool = match &*whole {
                Some(pool) => pool,
                None => whole.insert(Arc::new(made(0)?)),
            };
            return Ok(Pool::Whole(Arc::clone(pool)));
        }
        let idle = {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            idle.get_or_insert_default().get_mut(&threads).and_then(Vec::pop)
        };
        let pool = match idle {
            Some(pool) => pool,
            None => made(threads)?,
        };
        Ok(Pool::Own(Some(pool), threads))
    }
}

impl Deref for Pool {
    type Target = ThreadPool;

    fn deref(&self) -> &ThreadPool {
        match self {
            Pool::Whole(pool) => pool,
            Pool::Own(pool, _) => pool.as_ref().expect("it is there until this is dropped"),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Pool::Own(pool, threads) = self {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            let same = idle.get_or_insert_default().entry(*threads).or_default();
            same.extend(pool.take());
        }
    }
}

fn made(threads: usize) -> PyResult<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
