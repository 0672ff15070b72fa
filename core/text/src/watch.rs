//! How far long work is, seen from another thread that may also stop it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{Error, Result};

/// Progress, and a way to stop.
#[derive(Debug, Default)]
pub struct Watch {
    stage: Mutex<&'static str>,
    done: AtomicU64,
    total: AtomicU64,
    stopped: AtomicBool,
}

/// What a watch shows: what is being done, how much of it is done, and how much there is (0 where
/// nobody knows).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub stage: &'static str,
    pub done: u64,
    pub total: u64,
}

impl Watch {
    /// Begins with something else, of which there is `total`.
    pub fn enter(&self, stage: &'static str, total: u64) {
        if let Ok(mut now) = self.stage.lock() {
            *now = stage;
            self.done.store(0, Ordering::Relaxed);
            self.total.store(total, Ordering::Relaxed);
        }
    }

    /// Counts work done; an error when it is to stop.
    pub fn step(&self, count: u64) -> Result<()> {
        self.done.fetch_add(count, Ordering::Relaxed);
        if self.is_stopped() {
            return Err(Error::new("the work was stopped"));
        }
        Ok(())
    }

    pub fn seen(&self) -> Progress {
        let stage = self.stage.lock().map_or("", |stage| *stage);
        let value = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Progress { stage, done: value(&self.done), total: value(&self.total) }
    }

    /// Whether the work is to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Makes the work end with an error soon.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// Reports to a watch now and then.
pub struct Steps<'a> {
    watch: &'a Watch,
    count: u64,
}

const EVERY: u64 = 1 << 12;

impl<'a> Steps<'a> {
    pub fn new(watch: &'a Watch) -> Self {
        Steps { watch, count: 0 }
    }

    #[inline]
    pub fn one(&mut self) -> Result<()> {
        self.count += 1;
        if self.count == EVERY {
            self.count = 0;
            return self.watch.step(EVERY);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_seen_and_stopped() {
        let watch = Watch::default();
        watch.enter("counting", 10_000);
        let mut steps = Steps::new(&watch);
        (0..5_000).try_for_each(|_| steps.one()).unwrap();
        assert_eq!(watch.seen(), Progress { stage: "counting", done: EVERY, total: 10_000 });
        watch.stop();
        assert!((0..5_000).try_for_each(|_| steps.one()).is_err());
    }
}
