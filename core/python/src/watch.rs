//! Long work that can be watched and interrupted.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tunesmith_text::Watch;

use crate::threads::Pool;

/// How often progress is told and signals are looked at.
const TICK: Duration = Duration::from_millis(100);

/// Runs `work` on other threads, so that this one can answer to signals and tell `progress` what is
/// being done, how much of it is done and how much there is (0 if nobody knows).
///
/// The other threads never wait for the interpreter lock: a short search would take longer for it
/// than for its work where another thread is busy in Python.
pub fn watched<T: Send>(
    py: Python<'_>,
    watch: &Watch,
    progress: Option<Py<PyAny>>,
    threads: usize,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let pool = Pool::of(threads)?;
    let (done, end) = channel();
    // Only what can be shared may be used without the interpreter lock.
    let end = Mutex::new(end);
    pool.in_place_scope(|scope| {
        scope.spawn(move |_| {
            // The other side waits for this; a panic must not keep it waiting.
            let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
        });
        let mut interrupted = None;
        let value = loop {
            let waited = py.detach(|| end.lock().ok().map(|end| end.recv_timeout(TICK)));
            match waited {
                Some(Ok(value)) => break value.ok(),
                Some(Err(RecvTimeoutError::Timeout)) => {}
                _ => break None,
            }
            if interrupted.is_some() {
                continue;
            }
            let told = py.check_signals().and_then(|()| match &progress {
                Some(progress) => {
                    let seen = watch.seen();
                    progress.call1(py, (seen.stage, seen.done, seen.total)).map(|_| ())
                }
                None => Ok(()),
            });
            if let Err(error) = told {
                watch.stop();
                interrupted = Some(error);
            }
        };
        match (interrupted, value) {
            (Some(error), _) => Err(error),
            (None, Some(value)) => Ok(value),
            (None, None) => Err(PyRuntimeError::new_err("a worker panicked")),
        }
    })
}
