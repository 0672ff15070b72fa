//! Lists made on many threads and put together in order.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::PoolsBuilder;

/// What was made, and what waits for something that comes before it.
struct Made<'b, R> {
    all: &'b mut PoolsBuilder,
    results: Vec<R>,
    waiting: BTreeMap<usize, (PoolsBuilder, R)>,
    /// Builders that were emptied: their room is used again.
    spare: Vec<PoolsBuilder>,
}

impl<R> Made<'_, R> {
    /// Adds what was made of an item, if it is its turn; returns an empty builder.
    fn hand_in(&mut self, item: usize, list: PoolsBuilder, result: R) -> PoolsBuilder {
        self.waiting.insert(item, (list, result));
        while let Some((mut list, result)) = self.waiting.remove(&self.results.len()) {
            self.all.append(&list);
            self.results.push(result);
            list.clear();
            self.spare.push(list);
        }
        self.spare.pop().unwrap_or_default()
    }
}

impl PoolsBuilder {
    /// Adds the lists that `make` makes of items on all threads, in the order of the items;
    /// returns what it returned.
    ///
    /// Items are begun in order, so few lists wait: each is added soon after it was made, while it
    /// is still in the cache, and little memory is used besides that of the result.
    pub fn gather<T: Sync, R: Send>(
        &mut self,
        items: &[T],
        make: impl Fn(&T, &mut PoolsBuilder) -> R + Sync,
    ) -> Vec<R> {
        let begun = AtomicUsize::new(0);
        let made = Mutex::new(Made {
            all: self,
            results: Vec::with_capacity(items.len()),
            waiting: BTreeMap::new(),
            spare: Vec::new(),
        });
        let work = || {
            let mut list = PoolsBuilder::default();
            loop {
                let number = begun.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(number) else { break };
                let result = make(item, &mut list);
                let mut made = made.lock().expect("no thread has panicked here");
                list = made.hand_in(number, list, result);
            }
        };
        rayon::scope(|scope| {
            for _ in 0..rayon::current_num_threads().min(items.len()) {
                scope.spawn(|_| work());
            }
        });
        made.into_inner().expect("no thread has panicked here").results
    }
}
