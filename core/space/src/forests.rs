//! The forests of a corpus: one for each sentence, with common names of features.

use std::path::Path;

use rayon::prelude::*;
use tunesmith_text::{AtomicWriter, Error, Names, Result, read_packed};

use crate::builder::{Hypothesis, PoolsBuilder};
use crate::forest::{Decoder, Derivation, Encoder, FeatureSum, Forest, Reader};
use crate::pools::Pools;

const MAGIC: &[u8; 8] = b"tsforest";
const VERSION: u32 = 1;

/// Forests of sentences in order. One without nodes has no derivation.
#[derive(Debug, Clone, Default)]
pub struct Forests {
    pub names: Names,
    pub forests: Vec<Forest>,
}

/// How forests are made smaller.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Prune {
    /// The most that derivations may score less than the best.
    pub beam: Option<f64>,
    /// The least posterior of an edge.
    pub posterior: Option<f64>,
    /// Edges for each word of the best string.
    pub density: Option<f64>,
}

impl Forests {
    /// Every list as a forest of whole hypotheses.
    pub fn of_lists(pools: &Pools) -> Forests {
        let list = |sentence: usize| {
            let hypotheses = pools.list(sentence);
            Forest::of_list(hypotheses.map(|at| (pools.text(at), pools.features(at))))
        };
        Forests { names: pools.names.clone(), forests: (0..pools.sentences()).map(list).collect() }
    }

    /// Adds forests of further sentences; their features get the ids that their names have here.
    pub fn append(&mut self, other: Forests) {
        let map: Vec<u32> = other.names.iter().map(|name| self.names.intern(name)).collect();
        let renamed = map.iter().enumerate().any(|(old, &new)| old as u32 != new);
        for mut forest in other.forests {
            if renamed {
                forest.rename(&map);
            }
            self.forests.push(forest);
        }
    }

    /// The same sentences from several searches: the union of their forests.
    pub fn merge(parts: Vec<Forests>) -> Forests {
        let sentences = parts.iter().map(|part| part.forests.len()).max().unwrap_or(0);
        let mut named = Forests::default();
        let lengths: Vec<usize> = parts.iter().map(|part| part.forests.len()).collect();
        parts.into_iter().for_each(|part| named.append(part));
        let starts = lengths.iter().scan(0, |start, length| {
            let own = *start;
            *start += length;
            Some((own, *length))
        });
        let starts: Vec<(usize, usize)> = starts.collect();
        let union = |sentence: usize| {
            let present = starts.iter().filter(|(_, length)| sentence < *length);
            Forest::union(present.map(|(start, _)| &named.forests[start + sentence]))
        };
        let forests = (0..sentences).into_par_iter().map(union).collect();
        Forests { names: named.names, forests }
    }

    /// The best derivation of each sentence.
    pub fn best(&self, weights: &[f64]) -> Vec<Option<Derivation>> {
        self.forests.par_iter().map(|forest| forest.viterbi(&forest.scores(weights))).collect()
    }

    /// The `k` best of each sentence as lists, best first; `unique` by string or not.
    pub fn lists(&self, weights: &[f64], k: usize, unique: bool) -> Pools {
        self.read(|forest| {
            forest.best(&forest.scores(weights), unique).wanting(k).take(k).collect()
        })
    }

    /// The `k` best strings of each sentence as lists, in the order of its edges: hypotheses of a
    /// forest of a list stand as they stood there.
    pub fn lists_by_edges(&self, weights: &[f64], k: usize) -> Pools {
        self.read(|forest| {
            let mut best: Vec<_> =
                forest.best(&forest.scores(weights), true).wanting(k).take(k).collect();
            best.sort_by(|a, b| a.edges.cmp(&b.edges));
            best
        })
    }

    fn read(&self, chosen: impl Fn(&Forest) -> Vec<Derivation> + Sync) -> Pools {
        let list = |forest: &Forest, list: &mut PoolsBuilder| {
            let (mut reader, mut sum) = (Reader::default(), FeatureSum::default());
            list.sentence(None);
            for one in chosen(forest) {
                list.push(Hypothesis {
                    text: reader.text(forest, &one),
                    features: sum.of(forest, &one),
                    score: Some(one.score),
                    ..Hypothesis::default()
                });
            }
        };
        let mut builder = PoolsBuilder::default();
        builder.gather(&self.forests, list);
        builder.names = self.names.clone();
        builder.finish()
    }

    /// The chosen sentences, in the given order.
    pub fn subset(&self, sentences: &[usize]) -> Forests {
        let forests = sentences.iter().map(|&sentence| self.forests[sentence].clone()).collect();
        Forests { names: self.names.clone(), forests }
    }

    /// Each forest pruned by whatever is given, one after the other.
    pub fn prune(&self, weights: &[f64], prune: Prune) -> Forests {
        let prune = |forest: &Forest| {
            let mut left = forest.clone();
            if let Some(beam) = prune.beam {
                left = left.prune_by_score(&left.scores(weights), beam);
            }
            if let Some(least) = prune.posterior {
                left = left.prune_by_posterior(&left.scores(weights), least);
            }
            if let Some(density) = prune.density {
                left = left.prune_by_density(&left.scores(weights), density);
            }
            left
        };
        Forests { names: self.names.clone(), forests: self.forests.par_iter().map(prune).collect() }
    }

    pub fn heap_bytes(&self) -> usize {
        self.forests.iter().map(Forest::heap_bytes).sum()
    }

    /// The forests as bytes, as a file has them.
    pub fn encoded(&self) -> Vec<u8> {
        let mut words = Names::default();
        let mut body = Encoder::default();
        for forest in &self.forests {
            body.forest(forest, |word| words.intern(word));
        }
        let mut out = Encoder::default();
        out.bytes.extend_from_slice(MAGIC);
        out.bytes.extend(VERSION.to_le_bytes());
        out.names(&self.names);
        out.names(&words);
        out.number(self.forests.len() as u64);
        out.bytes.append(&mut body.bytes);
        let checksum = crc32fast::hash(&out.bytes);
        out.bytes.extend(checksum.to_le_bytes());
        out.bytes
    }

    /// Writes the file whole or not at all; `.gz` and `.zst` are compressed.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let mut file = AtomicWriter::create(path)?;
        file.write_all(&self.encoded())?;
        file.finish()
    }

    /// Reads what [`save`](Self::save) wrote. Refuses files of another kind or version, and any
    /// that are cut short or damaged; nothing of such a file is used.
    pub fn load(path: impl AsRef<Path>) -> Result<Forests> {
        let path = path.as_ref();
        Forests::decoded(&read_packed(path)?, &path.display().to_string())
    }

    /// Reads the bytes that [`encoded`](Self::encoded) gave; `name` is what errors call them.
    pub fn decoded(bytes: &[u8], name: &str) -> Result<Forests> {
        let wrong = |message: &str, remedy: &str| Error::new(message).at(name, None).remedy(remedy);
        if !bytes.starts_with(MAGIC) {
            return Err(wrong("is not a file of forests", "write one with Forests.save"));
        }
        let version = bytes.get(8..12).and_then(|part| part.try_into().ok());
        let version = version.map_or(0, u32::from_le_bytes);
        if version != VERSION {
            let message = format!("holds forests of version {version}, not {VERSION}");
            return Err(wrong(&message, "make the file again with this version"));
        }
        let broken = || wrong("is truncated or corrupt", "copy or make the file again");
        let (checked, sum) = bytes.split_last_chunk::<4>().ok_or_else(broken)?;
        if checked.len() < 12 || crc32fast::hash(checked) != u32::from_le_bytes(*sum) {
            return Err(broken());
        }
        Forests::decode(&checked[12..]).ok_or_else(broken)
    }

    fn decode(bytes: &[u8]) -> Option<Forests> {
        let mut body = Decoder::new(bytes);
        let (names, words) = (body.names()?, body.names()?);
        let count = body.count()?;
        let forests: Vec<Forest> =
            (0..count).map(|_| body.forest(names.len(), &words)).collect::<Option<_>>()?;
        body.is_empty().then_some(Forests { names, forests })
    }
}
