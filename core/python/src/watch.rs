//! Long work that can be watched and interrupted.

use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tunesmith_text::Watch;

use crate::threads;

/// How often progress is told and signals are looked at.
const TICK: Duration = Duration::from_millis(100);

/// Runs `work` on other threads, so that this one can answer to signals and tell `progress` what is
/// being done, how much of it is done and how much there is (0 if nobody knows).
pub fn watched<T: Send>(
    py: Python<'_>,
    watch: &Watch,
    progress: Option<Py<PyAny>>,
    threads: usize,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    std::thread::scope(|scope| {
        let (done, end) = channel();
        // Only what can be shared may be used without the interpreter lock.
        let end = Mutex::new(end);
        let worker = scope.spawn(move || {
            let value = Python::attach(|py| threads::run(py, threads, work));
            // The other side waits for this or for the end of the thread.
            let _ = done.send(());
            value
        });
        let mut interrupted = None;
        loop {
            let waited = py.detach(|| end.lock().ok().map(|end| end.recv_timeout(TICK)));
            if !matches!(waited, Some(Err(RecvTimeoutError::Timeout))) {
                break;
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
        }
        let value = py.detach(|| worker.join());
        match (interrupted, value) {
            (Some(error), _) => Err(error),
            (None, Ok(value)) => value,
            (None, Err(_)) => Err(PyRuntimeError::new_err("a worker panicked")),
        }
    })
}
