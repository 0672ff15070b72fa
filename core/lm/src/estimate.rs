//! Interpolated modified Kneser-Ney estimation from text of any size, by sorting.
//!
//! Four steps, each a pass over sorted streams that stay in memory as long as they fit and go to
//! temporary files when they do not, with the same result:
//!
//! 1. every n-gram of the highest order, sorted last word first, with its count;
//! 2. from those the adjusted counts of all orders, and the discounts;
//! 3. for each order, sorted by context: discounted probabilities and the weight of backing off;
//! 4. for each order, sorted last word first again: interpolation with the order below.

mod adjust;
mod discount;
mod initial;
mod interpolate;
mod result;
mod sorter;
mod spool;
mod text;

use std::path::PathBuf;

use rayon::prelude::*;
use tunesmith_text::{Error, Lines, Names, Result, Watch};

use crate::MAX_ORDER;
pub use discount::{Discounts, OrderStats};
pub use result::Estimated;
use sorter::sorter;
use spool::Place;
pub use text::Symbols;

const UNK: u32 = 0;
const BOS: u32 = 1;
const EOS: u32 = 2;

/// What to estimate, and with how much memory.
#[derive(Clone, Debug)]
pub struct Estimate {
    pub order: usize,
    /// N-grams of each order with this count or less are left out; the last value holds for all
    /// higher orders. Empty: nothing is left out.
    pub prune: Vec<u64>,
    /// Words to keep; n-grams with others are left out.
    pub vocabulary: Option<Vec<String>>,
    /// Bytes for sorting. The words themselves come on top.
    pub memory: usize,
    /// Where temporary files go; the system's place if none.
    pub folder: Option<PathBuf>,
    /// What to do with `<s>`, `</s>` and `<unk>` in the text.
    pub symbols: Symbols,
    /// Discounts for orders whose counts give none.
    pub fallback: Discounts,
}

impl Default for Estimate {
    fn default() -> Self {
        Estimate {
            order: 5,
            prune: Vec::new(),
            vocabulary: None,
            memory: 1 << 30,
            folder: None,
            symbols: Symbols::default(),
            fallback: Discounts::FALLBACK,
        }
    }
}

/// Estimates a model. The result depends on the texts and the options alone, not on memory or
/// threads.
pub fn estimate(
    texts: impl IntoIterator<Item = Result<Lines>>,
    options: &Estimate,
    watch: &Watch,
) -> Result<Estimated> {
    let order = options.order;
    if !(1..=MAX_ORDER).contains(&order) {
        return Err(Error::new(format!("a model of order {order}"))
            .remedy(format!("orders are 1 to {MAX_ORDER}")));
    }
    let thresholds = thresholds(&options.prune, order)?;
    let place = Place::new(options.folder.clone());
    // The first sort is gone when the third begins, the second when the results come in.
    let half = options.memory / 2;
    let share = |length: usize| half / 4 * 3 * (length + 2) / widths(order);

    watch.enter("counting", 0);
    let mut counts = sorter(order + 1, half, true, &place);
    let mut names = Names::default();
    let read = text::count(texts, order, options.symbols, &mut names, &mut *counts, watch)?;
    let allowed = options.vocabulary.as_ref().map(|words| allowed(words, &names));

    watch.enter("adjusting counts", 0);
    let mut sorters: Vec<_> =
        (2..=order).map(|length| sorter(length + 2, share(length), false, &place)).collect();
    let rules = adjust::Rules { order, thresholds: &thresholds, allowed: allowed.as_deref() };
    let adjusted = adjust::adjust(counts.finish()?, &rules, names.len(), &mut sorters, watch)?;
    let discounts: Vec<OrderStats> =
        adjusted.stats.iter().map(|stats| stats.discounts(options.fallback)).collect();

    watch.enter("probabilities", 0);
    let contexts_share = half / 4 / order;
    let parts: Vec<initial::Initial> = sorters
        .into_par_iter()
        .zip(2..order + 1)
        .map(|(sorter, length)| {
            let back = sorter_for(half, length, order, &place);
            let contexts = place.spool(length, contexts_share);
            initial::initial(
                sorter.finish()?,
                length,
                &discounts[length - 1],
                back,
                contexts,
                watch,
            )
        })
        .collect::<Result<_>>()?;

    watch.enter("interpolating", 0);
    let orders = interpolate::interpolate(
        &adjusted.unigrams,
        &discounts[0],
        parts,
        |length| place.spool(length + 2, share(length)),
        watch,
    )?;
    let counts = orders.iter().map(|spool| spool.len()).collect();
    Ok(Estimated { names, orders, counts, stats: discounts, read })
}

fn sorter_for(bytes: usize, length: usize, order: usize, place: &Place) -> Box<dyn sorter::Sort> {
    sorter(length + 2, bytes * (length + 2) / widths(order), false, place)
}

/// Numbers in one record of every order that is sorted.
fn widths(order: usize) -> usize {
    (1..=order).map(|length| length + 2).sum()
}

fn thresholds(given: &[u64], order: usize) -> Result<Vec<u64>> {
    if given.len() > order {
        return Err(Error::new(format!("{} pruning thresholds for order {order}", given.len()))
            .remedy("give at most one per order"));
    }
    if given.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(Error::new("pruning thresholds that fall").remedy(
            "give them in ascending order, as 0,0,1: shorter n-grams are needed by longer",
        ));
    }
    let last = given.last().copied().unwrap_or(0);
    Ok((0..order).map(|at| given.get(at).copied().unwrap_or(last)).collect())
}

/// For each word whether it is to be kept.
fn allowed(words: &[String], names: &Names) -> Vec<bool> {
    let mut allowed = vec![false; names.len()];
    for id in [UNK, BOS, EOS] {
        allowed[id as usize] = true;
    }
    for id in words.iter().filter_map(|word| names.id(word)) {
        allowed[id as usize] = true;
    }
    allowed
}
