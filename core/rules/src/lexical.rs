//! Word translation probabilities from aligned text, with NULL for words without a link.

use std::path::Path;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tunesmith_text::{AtomicWriter, Result};

use crate::bitext::Corpus;
use crate::code::FIRST_WORD;

/// Stands for no word at all, on either side.
pub const NULL: u32 = 0;
const CHUNK: usize = 1024;

/// Relative frequencies of linked words in both directions; words are codes.
#[derive(Debug, Default)]
pub struct Lexicon {
    pairs: FxHashMap<u64, (f64, f64)>,
}

/// How probabilities are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    Exact,
    /// To seven decimals, as in the text files between the steps of Moses; never below 1e-7.
    SevenDecimals,
}

fn key(source: u32, target: u32) -> u64 {
    u64::from(source) << 32 | u64::from(target)
}

impl Lexicon {
    pub fn estimate(corpus: &Corpus, precision: Precision) -> Lexicon {
        let chunks: Vec<usize> = (0..corpus.len()).step_by(CHUNK).collect();
        let pairs = chunks
            .par_iter()
            .map(|&start| count(corpus, start..(start + CHUNK).min(corpus.len())))
            .reduce(FxHashMap::default, |mut into, from| {
                from.into_iter().for_each(|(key, count)| *into.entry(key).or_default() += count);
                into
            });
        let mut sources: FxHashMap<u32, u64> = FxHashMap::default();
        let mut targets: FxHashMap<u32, u64> = FxHashMap::default();
        for (&key, &count) in &pairs {
            *sources.entry((key >> 32) as u32).or_default() += count;
            *targets.entry(key as u32).or_default() += count;
        }
        let share = |count: u64, total: u64| match precision {
            Precision::Exact => count as f64 / total as f64,
            Precision::SevenDecimals => seven(count as f64 / total as f64),
        };
        let pairs = pairs
            .into_iter()
            .map(|(key, count)| {
                let inverse = share(count, targets[&(key as u32)]);
                let direct = share(count, sources[&((key >> 32) as u32)]);
                (key, (inverse, direct))
            })
            .collect();
        Lexicon { pairs }
    }

    /// p(source | target); `None` for words that were never linked.
    pub fn inverse(&self, source: u32, target: u32) -> Option<f64> {
        self.both(source, target).map(|pair| pair.0)
    }

    /// p(target | source); `None` for words that were never linked.
    pub fn direct(&self, source: u32, target: u32) -> Option<f64> {
        self.both(source, target).map(|pair| pair.1)
    }

    /// p(source | target) and p(target | source).
    pub fn both(&self, source: u32, target: u32) -> Option<(f64, f64)> {
        self.pairs.get(&key(source, target)).copied()
    }

    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Writes both tables as Moses does: `inverse` has lines `source target p(source | target)`,
    /// `direct` has `target source p(target | source)`; sorted, where Moses has no order.
    pub fn write(&self, corpus: &Corpus, inverse: &Path, direct: &Path) -> Result<()> {
        let mut order: Vec<(&str, &str, (f64, f64))> = self
            .pairs
            .iter()
            .map(|(&key, &values)| {
                let word = |code: u32, side: &'_ crate::Vocabulary| -> Option<u32> {
                    code.checked_sub(FIRST_WORD).filter(|&id| (id as usize) < side.len())
                };
                let source = word((key >> 32) as u32, &corpus.source);
                let target = word(key as u32, &corpus.target);
                (
                    source.and_then(|id| corpus.source.word(id)).unwrap_or("NULL"),
                    target.and_then(|id| corpus.target.word(id)).unwrap_or("NULL"),
                    values,
                )
            })
            .collect();
        order.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        let mut out = AtomicWriter::create(inverse)?;
        for (source, target, (probability, _)) in &order {
            out.write_all(format!("{source} {target} {probability:.7}\n").as_bytes())?;
        }
        out.finish()?;
        let mut out = AtomicWriter::create(direct)?;
        for (source, target, (_, probability)) in &order {
            out.write_all(format!("{target} {source} {probability:.7}\n").as_bytes())?;
        }
        out.finish()
    }
}

fn seven(probability: f64) -> f64 {
    // Through text, because that is how the digits came about.
    format!("{probability:.7}").parse::<f64>().unwrap_or(probability).max(1e-7)
}

fn count(corpus: &Corpus, range: std::ops::Range<usize>) -> FxHashMap<u64, u64> {
    let mut pairs: FxHashMap<u64, u64> = FxHashMap::default();
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for at in range {
        let sentence = corpus.sentence(at);
        sources.clear();
        sources.resize(sentence.source.len(), false);
        targets.clear();
        targets.resize(sentence.target.len(), false);
        for &(source, target) in sentence.links {
            let (source, target) = (source as usize, target as usize);
            sources[source] = true;
            targets[target] = true;
            *pairs.entry(key(sentence.source[source], sentence.target[target])).or_default() += 1;
        }
        for (word, _) in sentence.source.iter().zip(&sources).filter(|pair| !pair.1) {
            *pairs.entry(key(*word, NULL)).or_default() += 1;
        }
        for (word, _) in sentence.target.iter().zip(&targets).filter(|pair| !pair.1) {
            *pairs.entry(key(NULL, *word)).or_default() += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bitext::Reading;
    use crate::bitext::tests::corpus;

    #[test]
    fn frequencies_with_null() {
        let corpus = corpus("a b\na\n", "x y\nx\n", "0-0\n0-0\n", &Reading::default()).unwrap();
        let word = |side: &crate::Vocabulary, word| side.id(word).unwrap() + FIRST_WORD;
        let lexicon = Lexicon::estimate(&corpus, Precision::Exact);
        let (a, b) = (word(&corpus.source, "a"), word(&corpus.source, "b"));
        let (x, y) = (word(&corpus.target, "x"), word(&corpus.target, "y"));
        assert_eq!(lexicon.direct(a, x), Some(1.0));
        assert_eq!(lexicon.inverse(b, NULL), Some(1.0));
        assert_eq!(lexicon.direct(NULL, y), Some(1.0));
        assert_eq!(lexicon.direct(a, y), None);
        assert_eq!(lexicon.len(), 3);
        assert_eq!(seven(1.0 / 3.0), 0.3333333);
        assert_eq!(seven(1e-9), 1e-7);
    }
}
