//! From lists of n-grams to the image that queries read: tables, marks and missing n-grams.

use rustc_hash::FxHashSet;
use tunesmith_text::{Error, Result};

use crate::binary::{Image, Layout};
use crate::grams::{Grams, Order};
use crate::hash;
use crate::line::{Line, prefetch};
use crate::table::{self, CLOSED, Found, Inner, Longest, Prob};

/// Seeds to try before two n-grams that look alike must be the same.
const SEEDS: u64 = 4;
/// N-grams between asking for a line and using it.
const AHEAD: usize = 12;

/// Why a table could not be filled.
enum Fault {
    /// Two n-grams look alike under this seed.
    Alike { order: usize, at: usize },
    /// N-grams that others need, by order, last word first.
    Missing(Vec<FxHashSet<Vec<u32>>>),
}

/// The image of a model. N-grams that are missing between others, as some programs leave them
/// out when they prune, are put in with the probability they have by backing off.
pub fn build(grams: Grams) -> Result<Image> {
    let mut seed = 0;
    let mut blanks: Vec<Order> = vec![Order::default(); grams.order()];
    loop {
        match fill(&grams, &blanks, seed) {
            Ok((unigrams, inner, longest)) => {
                let layout = Layout::of(&grams, &blanks, seed);
                return Image::assemble(&layout, &grams.names, unigrams, inner, longest);
            }
            Err(Fault::Alike { order, at }) => {
                check_twice(&grams.orders[order - 1], order, at)
                    .map_err(|words| given_twice(&grams, &words, order))?;
                seed += 1;
                if seed == SEEDS {
                    return Err(Error::new("two n-grams cannot be told apart"));
                }
            }
            Err(Fault::Missing(missing)) => {
                for (length, found) in missing.into_iter().enumerate() {
                    let mut found: Vec<Vec<u32>> = found.into_iter().collect();
                    found.sort_unstable();
                    for words in found {
                        blanks[length].words.extend(words);
                        blanks[length].values.push((0.0, 0.0));
                    }
                }
            }
        }
    }
}

/// Refuses a list in which the n-gram at `at` stands a second time.
fn check_twice(list: &Order, order: usize, at: usize) -> std::result::Result<(), Vec<u32>> {
    let Some(words) = list.words.chunks_exact(order).nth(at) else { return Ok(()) };
    match list.words.chunks_exact(order).filter(|other| *other == words).count() {
        0 | 1 => Ok(()),
        _ => Err(words.to_vec()),
    }
}

fn given_twice(grams: &Grams, words: &[u32], order: usize) -> Error {
    Error::new(format!("the {order}-gram \"{}\" is given twice", grams.text(words)))
        .remedy("remove one of them")
}

struct Tables {
    seed: u64,
    order: usize,
    /// Log-probability and backoff, as in the other tables.
    unigrams: Vec<(Prob, u32)>,
    inner: Vec<Line>,
    longest: Vec<Line>,
}

type Filled = (Vec<(Prob, u32)>, Vec<Line>, Vec<Line>);

fn fill(grams: &Grams, blanks: &[Order], seed: u64) -> std::result::Result<Filled, Fault> {
    let order = grams.order();
    let size =
        |length: usize| grams.orders[length - 1].values.len() + blanks[length - 1].values.len();
    let inner: usize = (2..order).map(size).sum();
    let longest = if order > 1 { table::buckets::<Longest>(size(order)) } else { 0 };
    let mut tables = Tables {
        seed,
        order,
        unigrams: grams.orders[0].values.iter().map(|&(p, b)| (Prob::new(p), closed(b))).collect(),
        inner: vec![Line::ZERO; if order > 2 { table::buckets::<Inner>(inner) } else { 0 }],
        longest: vec![Line::ZERO; longest],
    };
    let mut missing = vec![FxHashSet::default(); order];
    for length in 2..=order {
        let lists = [&grams.orders[length - 1], &blanks[length - 1]];
        for (list, blank) in lists.into_iter().zip([false, true]) {
            let mut coming = list.words.chunks_exact(length).skip(AHEAD);
            for (at, (words, &value)) in
                list.words.chunks_exact(length).zip(&list.values).enumerate()
            {
                if let Some(words) = coming.next() {
                    tables.ask(words);
                }
                let (prob, backoff) = if blank { (tables.backed_off(words), 0.0) } else { value };
                tables
                    .insert(words, prob, closed(backoff))
                    .map_err(|_| Fault::Alike { order: length, at })?;
                tables.mark(words, &mut missing);
            }
        }
    }
    if missing.iter().any(|found| !found.is_empty()) {
        return Err(Fault::Missing(missing));
    }
    Ok((tables.unigrams, tables.inner, tables.longest))
}

/// A backoff before anything is known to follow: zero counts as none.
fn closed(backoff: f32) -> u32 {
    if backoff == 0.0 { CLOSED } else { backoff.to_bits() }
}

impl Tables {
    /// Asks for the lines that an n-gram will want.
    fn ask(&self, words: &[u32]) {
        let (ending, context) = (&words[..words.len() - 1], &words[1..]);
        let lines = if words.len() == self.order { &self.longest } else { &self.inner };
        prefetch(lines, hash::place(hash::of(self.seed, words), lines.len()));
        for shorter in [ending, context].into_iter().filter(|shorter| shorter.len() > 1) {
            prefetch(&self.inner, hash::place(hash::of(self.seed, shorter), self.inner.len()));
        }
    }

    fn insert(
        &mut self,
        words: &[u32],
        prob: f32,
        backoff: u32,
    ) -> std::result::Result<Found, Found> {
        let hash = hash::of(self.seed, words);
        if words.len() == self.order {
            table::insert::<Longest>(&mut self.longest, hash, Prob::new(prob), 0)
        } else {
            table::insert::<Inner>(&mut self.inner, hash, Prob::new(prob), backoff)
        }
    }

    /// Tells the n-gram's ending that something longer ends with it, and its context that
    /// something follows.
    fn mark(&mut self, words: &[u32], missing: &mut [FxHashSet<Vec<u32>>]) {
        let (ending, context) = (&words[..words.len() - 1], &words[1..]);
        if let [word] = *ending {
            let entry = &mut self.unigrams[word as usize];
            entry.0 = entry.0.mark();
            let entry = &mut self.unigrams[context[0] as usize];
            if entry.1 == CLOSED {
                entry.1 = 0;
            }
            return;
        }
        match table::find::<Inner>(&self.inner, hash::of(self.seed, ending)) {
            Some(found) => {
                let prob = table::prob::<Inner>(&self.inner, found).mark();
                table::set_prob::<Inner>(&mut self.inner, found, prob);
            }
            None => {
                missing[ending.len() - 1].insert(ending.to_vec());
            }
        }
        match table::find::<Inner>(&self.inner, hash::of(self.seed, context)) {
            Some(found) => {
                if table::backoff(&self.inner, found) == CLOSED {
                    table::set_backoff(&mut self.inner, found, 0);
                }
            }
            None => {
                missing[context.len() - 1].insert(context.to_vec());
            }
        }
    }

    /// The probability of an n-gram that is not in the model; shorter ones are all in their
    /// tables, or this attempt fails anyway.
    fn backed_off(&self, words: &[u32]) -> f32 {
        let (ending, context) = (&words[..words.len() - 1], &words[1..]);
        let value = |words: &[u32]| match *words {
            [word] => self.unigrams[word as usize],
            _ => match table::find::<Inner>(&self.inner, hash::of(self.seed, words)) {
                Some(found) => {
                    (table::prob::<Inner>(&self.inner, found), table::backoff(&self.inner, found))
                }
                None => (Prob(0), 0),
            },
        };
        (value(ending).0.log10() + f32::from_bits(value(context).1)).min(0.0)
    }
}
