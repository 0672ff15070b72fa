//! How far an estimate is, seen from another thread that may also stop it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use tunesmith_text::{Error, Result};

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Counting,
    Adjusting,
    Probabilities,
    Interpolating,
}

impl Stage {
    pub const ALL: [Stage; 4] =
        [Stage::Counting, Stage::Adjusting, Stage::Probabilities, Stage::Interpolating];

    pub fn name(self) -> &'static str {
        match self {
            Stage::Counting => "counting",
            Stage::Adjusting => "adjusting counts",
            Stage::Probabilities => "probabilities",
            Stage::Interpolating => "interpolating",
        }
    }
}

/// Progress, and a way to stop.
#[derive(Debug, Default)]
pub struct Watch {
    stage: AtomicU8,
    done: AtomicU64,
    stopped: AtomicBool,
}

impl Watch {
    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
        self.done.store(0, Ordering::Relaxed);
    }

    /// Counts work done: lines of text in the first stage, n-grams in the others.
    pub(crate) fn step(&self, count: u64) -> Result<()> {
        self.done.fetch_add(count, Ordering::Relaxed);
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::new("the estimate was stopped"));
        }
        Ok(())
    }

    pub fn stage(&self) -> Stage {
        Stage::ALL[usize::from(self.stage.load(Ordering::Relaxed))]
    }

    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Makes the estimate end with an error soon.
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
