//! From an aligned corpus to a table: extract, count, score, write.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use tunesmith_text::{Result, Watch};

use crate::bitext::Corpus;
use crate::code::{FIRST_WORD, codes};
use crate::collect::{Extractor, Sorted, collect};
use crate::groups::{self, Counts, Entry, group, read_group};
use crate::hiero::{HieroExtractor, HieroOptions};
use crate::lexical::Lexicon;
use crate::phrases::{PhraseExtractor, PhraseOptions};
use crate::places::{core, count_places, find_places, put_wish, read_counts};
use crate::score::{HieroScorer, PhraseScorer, Rule, Scorer};
use crate::smoothing::{Discount, Smoothing};
use crate::store::{Budget, Store};
use crate::table::{Kind, TableWriter};
use crate::totals::{partition, put_share, read_totals, total};

/// How a table is made, whatever its rules are.
#[derive(Debug, Clone)]
pub struct Making {
    /// Bytes of records to keep in memory; what is more goes to a temporary file.
    pub memory: usize,
    /// Pairs seen less often are left out, after they have been counted.
    pub min_count: u64,
    /// The same for rules with gaps.
    pub min_gap_count: u64,
}

impl Default for Making {
    fn default() -> Self {
        Making { memory: 1 << 30, min_count: 1, min_gap_count: 1 }
    }
}

/// What was made.
#[derive(Debug, Clone)]
pub struct Made {
    /// Rules with their repetitions.
    pub instances: u64,
    /// Different rules, before any were left out.
    pub distinct: u64,
    pub sources: u64,
    pub entries: u64,
    /// Bytes that did not fit into memory.
    pub spilled: u64,
}

/// Extracts and scores phrase pairs.
pub fn phrase_table(
    corpus: &Corpus,
    lexicon: &Lexicon,
    options: &PhraseOptions,
    smoothing: Smoothing,
    making: &Making,
    path: &Path,
    watch: &Watch,
) -> Result<Made> {
    let make = || PhraseExtractor::new(options);
    let scorer = |counts: &Counts| PhraseScorer {
        lexicon,
        discount: Discount::new(smoothing, counts),
        options,
    };
    table(corpus, make, None, scorer, making, (path, watch))
}

/// Extracts and scores hierarchical rules.
pub fn hiero_table(
    corpus: &Corpus,
    lexicon: &Lexicon,
    options: &HieroOptions,
    making: &Making,
    path: &Path,
    watch: &Watch,
) -> Result<Made> {
    let make = || HieroExtractor::new(options);
    let scorer = |_: &Counts| HieroScorer { lexicon };
    table(corpus, make, Some(options), scorer, making, (path, watch))
}

fn table<E: Extractor, S: Scorer>(
    corpus: &Corpus,
    make: impl Fn() -> E + Sync,
    hiero: Option<&HieroOptions>,
    scorer: impl Fn(&Counts) -> S,
    making: &Making,
    (path, watch): (&Path, &Watch),
) -> Result<Made> {
    let (kind, counted) = match hiero {
        None => (Kind::Phrase, groups::Kind::Phrase),
        Some(_) => (Kind::Hiero, groups::Kind::Hiero),
    };
    let budget = Arc::new(Budget::new(making.memory));
    let records = collect(corpus, make, &budget, making.memory, watch)?;
    let parts = records.partitions();
    let new = || Store::new(parts, Arc::clone(&budget));
    let (grouped, shares, totals, wishes, places) = (new(), new(), new(), new(), new());
    watch.enter("counting", parts as u64);
    let counts = (0..parts)
        .into_par_iter()
        .map(|place| {
            let bytes = records.take(place)?;
            let mut writer = shares.writer();
            let mut outcome = Ok(());
            let (groups, counts) =
                group(&Sorted::new(&bytes), counted, |target, ordinal, count, weight| {
                    let to = partition(target, parts);
                    put_share(target, (place, ordinal), count, weight, writer.open(to));
                    if let Err(error) = writer.full(to) {
                        outcome = Err(error);
                    }
                });
            outcome?;
            writer.finish()?;
            if hiero.is_some() {
                wish(&groups, place, counted, &wishes)?;
            }
            grouped.add(place, groups)?;
            watch.step(1)?;
            Ok(counts)
        })
        .collect::<Result<Vec<_>>>()?
        .iter()
        .fold(Counts::default(), Counts::add);
    watch.enter("totals", parts as u64);
    total(&shares, &totals, watch)?;
    if let Some(options) = hiero {
        watch.enter("places", corpus.len() as u64);
        find_places(corpus, options, &wishes, watch)?;
        watch.enter("counting places", parts as u64);
        count_places(&wishes, &places, watch)?;
    }
    let scorer = scorer(&counts);
    let mut writer = TableWriter::create(path, kind, scorer.columns())?;
    watch.enter("scoring", parts as u64);
    // Some partitions at a time: scored side by side, written one after the other.
    let window = 2 * rayon::current_num_threads();
    for start in (0..parts).step_by(window) {
        let scored = (start..(start + window).min(parts))
            .into_par_iter()
            .map(|place| {
                let groups = grouped.take(place)?;
                let totals = read_totals(&totals.take(place)?);
                let places = read_counts(&places.take(place)?);
                Ok(score(&groups, (&totals, &places), counted, &scorer, making))
            })
            .collect::<Result<Vec<_>>>()?;
        for blocks in &scored {
            blocks.write(&mut writer)?;
            watch.step(1)?;
        }
    }
    let (sources, entries) = writer.finish(&corpus.source, &corpus.target)?;
    let (instances, distinct) = (counts.instances, counts.pairs);
    Ok(Made { instances, distinct, sources, entries, spilled: budget.spilled() })
}

/// Asks how often the words of each source side of a partition occur.
fn wish(mut groups: &[u8], place: usize, kind: groups::Kind, wishes: &Store) -> Result<()> {
    let mut writer = wishes.writer();
    let mut entry = Entry::default();
    let mut words = Vec::new();
    let mut ordinal = 0;
    while let Some((side, total)) = read_group(&mut groups) {
        core(side, &mut words);
        let to = partition(&words, wishes.partitions());
        put_wish(&words, (place, ordinal), writer.open(to));
        writer.full(to)?;
        ordinal += 1;
        for _ in 0..total.distinct {
            entry.read(&mut groups, kind, codes(side).count());
        }
    }
    writer.finish()
}

/// The scored rules of a partition, one block for each source side.
#[derive(Default)]
struct Blocks {
    sources: Vec<u32>,
    scores: Vec<f32>,
    bodies: Vec<u8>,
    /// Number of entries, and where the parts above end.
    ends: Vec<(u32, usize, usize, usize)>,
}

impl Blocks {
    fn write(&self, writer: &mut TableWriter) -> Result<()> {
        let mut last = (0, 0, 0);
        for &(count, source, score, body) in &self.ends {
            writer.add(
                &self.sources[last.0..source],
                count,
                &self.scores[last.1..score],
                &self.bodies[last.2..body],
            )?;
            last = (source, score, body);
        }
        Ok(())
    }
}

fn score(
    mut groups: &[u8],
    (totals, places): (&[groups::Total], &[u32]),
    kind: groups::Kind,
    scorer: &impl Scorer,
    making: &Making,
) -> Blocks {
    let mut blocks = Blocks::default();
    let mut entry = Entry::default();
    let mut targets = totals.iter();
    let mut places = places.iter().copied();
    while let Some((side, by_source)) = read_group(&mut groups) {
        let start = blocks.sources.len();
        let places = places.next().unwrap_or(0);
        blocks.sources.extend(codes(side));
        let gaps = blocks.sources[start..].iter().any(|&code| code < FIRST_WORD);
        let least =
            if gaps { making.min_gap_count.max(making.min_count) } else { making.min_count };
        let mut count = 0;
        for _ in 0..by_source.distinct {
            let source = &blocks.sources[start..];
            let read = entry.read(&mut groups, kind, source.len());
            let (Some(()), Some(&by_target)) = (read, targets.next()) else { return blocks };
            if entry.count < least {
                continue;
            }
            let rule = Rule { source, entry: &entry, by_source, by_target, places };
            scorer.score(&rule, &mut blocks.scores);
            blocks.bodies.extend_from_slice(&entry.target_bytes);
            blocks.bodies.extend_from_slice(&entry.link_bytes);
            count += 1;
        }
        if count == 0 {
            blocks.sources.truncate(start);
        } else {
            let ends = (blocks.sources.len(), blocks.scores.len(), blocks.bodies.len());
            blocks.ends.push((count, ends.0, ends.1, ends.2));
        }
    }
    blocks
}
