//! How often the words of a source side occur in the text, whether a rule comes of it or not.

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tunesmith_text::{Result, Watch};

use crate::bitext::Corpus;
use crate::code::{FIRST_WORD, codes, put, take, take_side};
use crate::hiero::HieroOptions;
use crate::store::{Store, Writer};
use crate::totals::partition;

/// Sentences that one thread takes at a time.
const CHUNK: usize = 512;

/// Writes one record for each place of each pattern of words that could be inside a rule: words
/// and gaps, with words at both ends.
pub fn find_places(
    corpus: &Corpus,
    options: &HieroOptions,
    into: &Store,
    watch: &Watch,
) -> Result<()> {
    let chunks: Vec<usize> = (0..corpus.len()).step_by(CHUNK).collect();
    chunks.par_iter().try_for_each(|&start| {
        let mut search =
            Search { options, writer: into.writer(), bytes: Vec::new(), outcome: Ok(()) };
        let end = (start + CHUNK).min(corpus.len());
        for at in start..end {
            let words = corpus.sentence(at).source;
            for first in 0..words.len() {
                let end = words.len().min(first + options.max_span);
                search.extend(&words[first..end], (0, 0));
            }
        }
        search.outcome?;
        search.writer.finish()?;
        watch.step((end - start) as u64)
    })
}

struct Search<'a> {
    options: &'a HieroOptions,
    writer: Writer<'a>,
    bytes: Vec<u8>,
    outcome: Result<()>,
}

impl Search<'_> {
    /// Takes the first of `words`, then goes on behind it, next to it or after gaps.
    fn extend(&mut self, words: &[u32], (symbols, gaps): (usize, usize)) {
        let length = self.bytes.len();
        put(words[0], &mut self.bytes);
        self.emit();
        let symbols = symbols + 1;
        if symbols < self.options.max_symbols && words.len() > 1 {
            self.extend(&words[1..], (symbols, gaps));
        }
        let most = if self.options.adjacent_gaps { 2 } else { 1 };
        for more in 1..=most.min(self.options.max_gaps - gaps) {
            if symbols + more >= self.options.max_symbols {
                break;
            }
            put((gaps + more) as u32, &mut self.bytes);
            let least = more * self.options.min_gap.max(1);
            for next in 1 + least..words.len() {
                self.extend(&words[next..], (symbols + more, gaps + more));
            }
        }
        self.bytes.truncate(length);
    }

    fn emit(&mut self) {
        self.bytes.push(0);
        let to = partition(&self.bytes, self.writer.partitions());
        let out = self.writer.open(to);
        out.extend_from_slice(&self.bytes);
        put(0, out);
        if let Err(error) = self.writer.full(to) {
            self.outcome = Err(error);
        }
        self.bytes.pop();
    }
}

/// The pattern of words inside a source side: gaps at its edges do not change where it occurs.
pub fn core(source: &[u8], out: &mut Vec<u8>) {
    let symbols: Vec<u32> = codes(source).collect();
    let word = |code: &u32| *code >= FIRST_WORD;
    let first = symbols.iter().position(word).unwrap_or(0);
    let end = symbols.iter().rposition(word).map_or(0, |last| last + 1);
    let mut gaps = 0;
    out.clear();
    for code in &symbols[first..end] {
        if word(code) {
            put(*code, out);
        } else {
            gaps += 1;
            put(gaps, out);
        }
    }
    out.push(0);
}

/// Appends the wish of a source side, given by its core, to be told how often it occurs.
pub fn put_wish(core: &[u8], (place, ordinal): (usize, u32), out: &mut Vec<u8>) {
    out.extend_from_slice(core);
    put(place as u32 + 1, out);
    put(ordinal, out);
}

/// Counts places and answers wishes; the result has a partition for each place of `back`.
pub fn count_places(records: &Store, back: &Store, watch: &Watch) -> Result<()> {
    (0..records.partitions()).into_par_iter().try_for_each(|partition| {
        let bytes = records.take(partition)?;
        // Most patterns are nobody's wish.
        let mut counts: FxHashMap<&[u8], u32> =
            read(&bytes).filter(|(_, wish)| wish.is_some()).map(|(core, _)| (core, 0)).collect();
        for (core, _) in read(&bytes).filter(|(_, wish)| wish.is_none()) {
            if let Some(count) = counts.get_mut(core) {
                *count += 1;
            }
        }
        let mut writer = back.writer();
        for (core, wish) in read(&bytes) {
            if let Some((place, ordinal)) = wish {
                let out = writer.open(place);
                put(ordinal, out);
                put(counts.get(core).copied().unwrap_or(0), out);
                writer.full(place)?;
            }
        }
        writer.finish()?;
        watch.step(1)
    })
}

type Wish = Option<(usize, u32)>;

fn read(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8], Wish)> {
    std::iter::from_fn(move || {
        let (core, _) = take_side(&mut bytes)?;
        match take(&mut bytes)? {
            0 => Some((core, None)),
            place => Some((core, Some((place as usize - 1, take(&mut bytes)?)))),
        }
    })
}

/// The answers that came back to one place, in the order of its source sides.
pub fn read_counts(mut bytes: &[u8]) -> Vec<u32> {
    let mut counts = Vec::new();
    while let (Some(ordinal), Some(count)) = (take(&mut bytes), take(&mut bytes)) {
        let ordinal = ordinal as usize;
        if counts.len() <= ordinal {
            counts.resize(ordinal + 1, 0);
        }
        counts[ordinal] = count;
    }
    counts
}
