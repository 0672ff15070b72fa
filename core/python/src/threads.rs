//! Thread pools by size: results never depend on which one runs a call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Runs `work` without the interpreter lock on `threads` threads (0: one per core).
pub fn run<T: Send>(
    py: Python<'_>,
    threads: usize,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    static POOLS: OnceLock<Mutex<HashMap<usize, Arc<ThreadPool>>>> = OnceLock::new();
    let pools = POOLS.get_or_init(Mutex::default);
    let pool = {
        let mut pools = pools.lock().map_err(|_| PyRuntimeError::new_err("a worker panicked"))?;
        match pools.get(&threads) {
            Some(pool) => Arc::clone(pool),
            None => {
                let pool = ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
                let pool = Arc::new(pool);
                pools.insert(threads, Arc::clone(&pool));
                pool
            }
        }
    };
    Ok(py.detach(|| pool.install(work)))
}
