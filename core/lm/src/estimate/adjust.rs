//! Adjusted counts: how many different words stand before an n-gram, or, where none can, how often
//! it occurs.

use tunesmith_text::{Result, Steps, Watch};

use super::discount::Tally;
use super::sorter::{Sort, Stream};
use super::{BOS, EOS};
use crate::MAX_ORDER;

/// Set on the upper half of the count of an n-gram that is to be left out.
pub const PRUNED: u32 = 1 << 31;

/// What is left out.
pub struct Rules<'a> {
    pub order: usize,
    pub thresholds: &'a [u64],
    pub allowed: Option<&'a [bool]>,
}

impl Rules<'_> {
    fn prunes(&self, reversed: &[u32], occurrences: u64) -> bool {
        if reversed.len() == 1 && reversed[0] <= EOS {
            return false;
        }
        occurrences <= self.thresholds[reversed.len() - 1]
            || self
                .allowed
                .is_some_and(|allowed| reversed.iter().any(|&word| !allowed[word as usize]))
    }
}

/// The unigrams by id: adjusted count, and whether to leave the word out.
pub struct Adjusted {
    pub unigrams: Vec<(u64, bool)>,
    pub stats: Vec<Tally>,
}

/// An n-gram that may still meet more words to its left.
#[derive(Clone, Copy, Default)]
struct Open {
    adjusted: u64,
    occurrences: u64,
}

struct Adjusting<'a, 'b> {
    rules: &'a Rules<'b>,
    out: &'a mut [Box<dyn Sort>],
    result: Adjusted,
}

impl Adjusting<'_, '_> {
    /// Hands on an n-gram, its context first.
    fn emit(&mut self, reversed: &[u32], adjusted: u64, occurrences: u64) -> Result<()> {
        let pruned = self.rules.prunes(reversed, occurrences);
        self.result.stats[reversed.len() - 1].add(adjusted);
        let length = reversed.len();
        if length == 1 {
            self.result.unigrams[reversed[0] as usize] = (adjusted, pruned);
            return Ok(());
        }
        let mut record = [0; MAX_ORDER + 2];
        record[..length - 1].copy_from_slice(&reversed[1..]);
        record[length - 1] = reversed[0];
        record[length] = adjusted as u32;
        record[length + 1] = (adjusted >> 32) as u32 | if pruned { PRUNED } else { 0 };
        self.out[length - 2].push(&record[..length + 2])
    }
}

/// Reads n-grams of the highest order, last word first, and gives those of order two and above
/// with their adjusted counts to `out`. N-grams that begin with `<s>` keep their plain counts,
/// as do those of the highest order.
pub fn adjust(
    mut grams: Box<dyn Stream>,
    rules: &Rules<'_>,
    words: usize,
    out: &mut [Box<dyn Sort>],
    watch: &Watch,
) -> Result<Adjusted> {
    let order = rules.order;
    let mut steps = Steps::new(watch);
    let result =
        Adjusted { unigrams: vec![(0, false); words], stats: vec![Tally::default(); order] };
    let mut adjusting = Adjusting { rules, out, result };
    // <unk> and <s> never occur, but they are words of the model.
    adjusting.result.stats[0].add(0);
    adjusting.result.stats[0].add(0);

    let mut last = [u32::MAX; MAX_ORDER];
    let mut open = [Open::default(); MAX_ORDER];
    // N-grams of `last` that are open: all shorter than the highest order, up to its first <s>.
    let mut length = 0;
    let mut held = next_group(&mut *grams, order, None)?;
    while let Some((record, count, following)) = held {
        steps.one()?;
        let same = (0..length).take_while(|&at| last[at] == record[at]).count();
        for longer in (same..length).rev() {
            let Open { adjusted, occurrences } = open[longer];
            adjusting.emit(&last[..=longer], adjusted, occurrences)?;
        }
        for shorter in &mut open[..same] {
            shorter.occurrences += count;
        }
        if same > 0 {
            open[same - 1].adjusted += 1;
        }
        length = same;
        while length < order {
            let begins = record[length] == BOS;
            if length + 1 == order {
                adjusting.emit(&record[..order], count, count)?;
                break;
            }
            open[length] = Open { adjusted: if begins { count } else { 1 }, occurrences: count };
            length += 1;
            if begins {
                break;
            }
        }
        last = record;
        held = next_group(&mut *grams, order, following)?;
    }
    for longer in (0..length).rev() {
        let Open { adjusted, occurrences } = open[longer];
        adjusting.emit(&last[..=longer], adjusted, occurrences)?;
    }
    Ok(adjusting.result)
}

type Gram = [u32; MAX_ORDER];
type Held = Option<(Gram, u64)>;

/// The next n-gram with its whole count, and the one read behind it.
fn next_group(
    grams: &mut dyn Stream,
    order: usize,
    held: Held,
) -> Result<Option<(Gram, u64, Held)>> {
    let mut pull = || -> Result<Held> {
        Ok(grams.next()?.map(|record| {
            let mut gram = [0; MAX_ORDER];
            gram[..order].copy_from_slice(&record[..order]);
            (gram, u64::from(record[order]))
        }))
    };
    let first = match held {
        Some(held) => Some(held),
        None => pull()?,
    };
    let Some((gram, mut count)) = first else { return Ok(None) };
    loop {
        match pull()? {
            Some((next, more)) if next == gram => count += more,
            following => return Ok(Some((gram, count, following))),
        }
    }
}
