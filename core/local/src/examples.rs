//! All examples of an index: several files, what was removed, and how often words occur.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rustc_hash::{FxHashMap, FxHashSet};
use tunesmith_metric::Table;
use tunesmith_space::{Block, Pools};
use tunesmith_text::{Error, Names, Result};

use crate::segment::Segment;
use crate::similarity::Query;
use crate::write::{SegmentWriter, Written};

/// Where an example is: the number of its file, and its place there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub slot: u32,
    pub at: u32,
}

/// A file with what others need to know of it.
pub(crate) struct Held {
    /// Shared with those who use its lists where they lie.
    pub segment: Arc<Segment>,
    /// Its words in the common vocabulary.
    pub words: Vec<u32>,
    /// Its features among the common names.
    pub features: Vec<u32>,
    pub dead: Vec<bool>,
}

impl Held {
    /// Distinct words of an example in the common vocabulary.
    fn distinct(&self, at: usize) -> Vec<u32> {
        let mut words: Vec<u32> =
            self.segment.source(at).map(|word| self.words[word as usize]).collect();
        words.sort_unstable();
        words.dedup();
        words
    }
}

#[derive(Default)]
pub(crate) struct State {
    /// Files by number; a number is not used again.
    slots: Vec<Option<Held>>,
    /// The examples that are not removed.
    pub places: FxHashMap<u64, Place>,
    pub vocabulary: Names,
    /// Of each word: in how many sources it occurs, and the logarithm of one more.
    frequencies: Vec<u32>,
    pub logarithms: Vec<f64>,
    pub features: Names,
}

impl State {
    pub fn held(&self, place: Place) -> &Held {
        self.slots[place.slot as usize].as_ref().expect("places are those of open files")
    }

    /// Places of all examples, file by file.
    pub fn all(&self) -> impl Iterator<Item = Place> + '_ {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(slot, held)| Some((slot, held.as_ref()?))).flat_map(|(slot, held)| {
            let alive = held.dead.iter().enumerate().filter(|&(_, dead)| !dead);
            alive.map(move |(at, _)| Place { slot: slot as u32, at: at as u32 })
        })
    }

    /// The source of an example in words of the common vocabulary.
    pub fn source(
        &self,
        place: Place,
    ) -> impl ExactSizeIterator<Item = u32> + DoubleEndedIterator + Clone + '_ {
        let held = self.held(place);
        held.segment.source(place.at as usize).map(|word| held.words[word as usize])
    }

    fn text(&self, place: Place) -> String {
        let words: Vec<&str> =
            self.source(place).map(|word| self.vocabulary.name(word).unwrap_or_default()).collect();
        words.join(" ")
    }

    fn counted(&mut self, word: u32, change: i64) {
        let count = &mut self.frequencies[word as usize];
        *count = (i64::from(*count) + change).max(0) as u32;
        self.logarithms[word as usize] = (f64::from(*count) + 1.0).ln();
    }

    /// A file with its words and features in the common numbers.
    fn hold(&mut self, segment: Segment) -> Held {
        let words: Vec<u32> =
            segment.vocabulary().map(|word| self.vocabulary.intern(word)).collect();
        self.frequencies.resize(self.vocabulary.len(), 0);
        self.logarithms.resize(self.vocabulary.len(), 0.0);
        let features = segment.names().map(|name| self.features.intern(name)).collect();
        let dead = vec![false; segment.len()];
        Held { segment: Arc::new(segment), words, features, dead }
    }

    fn find(&self, path: &Path) -> Result<u32> {
        let is =
            |held: &Option<Held>| held.as_ref().is_some_and(|held| held.segment.path() == path);
        match self.slots.iter().position(is) {
            Some(slot) => Ok(slot as u32),
            None => Err(Error::new("is not open").at(path.display().to_string(), None)),
        }
    }
}

/// One neighbour of a sentence. Its texts are there even if it is removed meanwhile.
pub struct Found {
    pub id: u64,
    pub similarity: f64,
    segment: Arc<Segment>,
    at: usize,
}

impl Found {
    pub fn source(&self) -> String {
        let words: Vec<&str> =
            self.segment.source(self.at).map(|word| self.segment.word(word as usize)).collect();
        words.join(" ")
    }

    pub fn references(&self) -> Vec<String> {
        owned(self.segment.references(self.at))
    }
}

/// Lists of some examples.
pub struct Lists {
    pub pools: Pools,
    /// Statistics, where all lists have them.
    pub table: Option<Table>,
    /// Empty unless texts are asked for.
    pub sources: Vec<String>,
    pub references: Vec<Vec<String>>,
}

/// The size of an open file.
#[derive(Debug, Clone, PartialEq)]
pub struct Size {
    pub path: String,
    pub examples: usize,
    pub removed: usize,
    pub hypotheses: u64,
    pub bytes: usize,
}

/// Examples that may be searched and changed from several threads.
#[derive(Default)]
pub struct Examples {
    state: RwLock<State>,
}

impl Examples {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the examples of a file, except those that were removed. Refuses a damaged file, an id
    /// that another file has, and removed ids that this one does not have.
    pub fn add(&self, path: &Path, checksum: u32, removed: &[u64]) -> Result<()> {
        let name = path.display().to_string();
        let wrong = |message: String| {
            Err(Error::new(message).at(&name, None).remedy("build the index again"))
        };
        let segment = Segment::open(path)?;
        if segment.checksum() != checksum {
            return wrong("is not the file that the index was made with".to_owned());
        }
        let removed: FxHashSet<u64> = removed.iter().copied().collect();
        let mut state = self.write();
        let dead: Vec<bool> = segment.ids().map(|id| removed.contains(&id)).collect();
        if dead.iter().filter(|&&dead| dead).count() != removed.len() {
            return wrong("removed examples are not in this file".to_owned());
        }
        let twice =
            segment.ids().zip(&dead).find(|(id, dead)| !**dead && state.places.contains_key(id));
        if let Some((id, _)) = twice {
            return wrong(format!("the example {id} is in another file, too"));
        }
        if !(distinct(segment.vocabulary()) && distinct(segment.names())) {
            return wrong("is corrupt: it has a word or a feature twice".to_owned());
        }
        let counts: Vec<u32> = segment.frequencies().collect();
        let mut held = state.hold(segment);
        held.dead = dead;
        for (&word, &count) in held.words.iter().zip(&counts) {
            state.counted(word, i64::from(count));
        }
        let slot = state.slots.len() as u32;
        for at in 0..held.segment.len() {
            if held.dead[at] {
                held.distinct(at).into_iter().for_each(|word| state.counted(word, -1));
            } else {
                state.places.insert(held.segment.id(at), Place { slot, at: at as u32 });
            }
        }
        state.slots.push(Some(held));
        Ok(())
    }

    /// The file of each example, nothing where there is no such example.
    pub fn files(&self, ids: &[u64]) -> Vec<Option<String>> {
        let state = self.read();
        let file = |place: &Place| state.held(*place).segment.path().display().to_string();
        ids.iter().map(|id| state.places.get(id).map(file)).collect()
    }

    /// Removes examples; returns how many there were.
    pub fn remove(&self, ids: &[u64]) -> usize {
        let mut state = self.write();
        let mut count = 0;
        for id in ids {
            let Some(place) = state.places.remove(id) else { continue };
            let words = state.held(place).distinct(place.at as usize);
            words.into_iter().for_each(|word| state.counted(word, -1));
            let held = state.slots[place.slot as usize].as_mut();
            held.expect("places are those of open files").dead[place.at as usize] = true;
            count += 1;
        }
        count
    }

    /// Writes the examples of some files into a new one, without those that were removed.
    pub fn merge(&self, files: &[&Path], path: &Path) -> Result<Written> {
        let state = self.read();
        let slots = files.iter().map(|file| state.find(file)).collect::<Result<Vec<_>>>()?;
        let mut texts: FxHashMap<u32, (Vec<&str>, Vec<&str>)> = FxHashMap::default();
        let mut alive: Vec<(u64, Place)> = Vec::new();
        let mut width = 0;
        for &slot in &slots {
            let held = state.held(Place { slot, at: 0 });
            width = held.segment.width();
            texts.insert(
                slot,
                (held.segment.vocabulary().collect(), held.segment.names().collect()),
            );
            let places = held.segment.ids().enumerate().filter(|&(at, _)| !held.dead[at]);
            alive.extend(places.map(|(at, id)| (id, Place { slot, at: at as u32 })));
        }
        alive.sort_unstable_by_key(|&(id, _)| id);
        let mut out = SegmentWriter::create(path, width)?;
        for (_, place) in alive {
            let (vocabulary, names) = &texts[&place.slot];
            out.copy(&state.held(place).segment, place.at as usize, vocabulary, names)?;
        }
        out.finish()
    }

    /// Takes a file that [`Self::merge`] made in place of those that it was made of.
    pub fn replace(&self, files: &[&Path], path: &Path) -> Result<()> {
        let segment = Segment::open(path)?;
        let mut state = self.write();
        let slots = files.iter().map(|file| state.find(file)).collect::<Result<Vec<_>>>()?;
        let alive = |&slot: &u32| {
            let held = state.held(Place { slot, at: 0 });
            held.dead.iter().filter(|&&dead| !dead).count()
        };
        let same = slots.iter().map(alive).sum::<usize>() == segment.len()
            && segment
                .ids()
                .all(|id| state.places.get(&id).is_some_and(|place| slots.contains(&place.slot)));
        if !same {
            return Err(Error::new("does not have the examples of the files it replaces")
                .at(path.display().to_string(), None));
        }
        let held = state.hold(segment);
        let slot = state.slots.len() as u32;
        for (at, id) in held.segment.ids().enumerate() {
            state.places.insert(id, Place { slot, at: at as u32 });
        }
        state.slots.push(Some(held));
        slots.iter().for_each(|&slot| state.slots[slot as usize] = None);
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.read().places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids of all examples, ascending.
    pub fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.read().places.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    pub fn sizes(&self) -> Vec<Size> {
        let state = self.read();
        let size = |held: &Held| Size {
            path: held.segment.path().display().to_string(),
            examples: held.segment.len(),
            removed: held.dead.iter().filter(|&&dead| dead).count(),
            hypotheses: held.segment.hypotheses(),
            bytes: held.segment.bytes(),
        };
        state.slots.iter().flatten().map(size).collect()
    }

    /// Numbers of words and of features.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.read();
        let words = state.frequencies.iter().filter(|&&count| count > 0).count();
        (words, state.features.len())
    }

    /// The distinct words of a sentence that examples have, those that matter most first, each
    /// with its weight (term frequency times idf squared) and the share of examples that have it.
    pub fn terms(&self, sentence: &str) -> Vec<(String, f64, f64)> {
        let state = self.read();
        let query = Query::new(&state, sentence);
        let known = query.terms().filter(|&(word, _)| state.frequencies[word as usize] > 0);
        let mut terms: Vec<(String, f64, f64)> = known
            .map(|(word, weight)| {
                let share = f64::from(state.frequencies[word as usize]) / state.places.len() as f64;
                (state.vocabulary.name(word).unwrap_or_default().to_owned(), weight, share)
            })
            .collect();
        terms.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        terms
    }

    /// The `k` examples most similar to a sentence, best first, then by id: of all examples, or of
    /// the candidates among them. With `leave_out`, the sentence itself is none of them.
    pub fn near(
        &self,
        sentence: &str,
        k: usize,
        candidates: Option<&[u64]>,
        leave_out: bool,
    ) -> Vec<Found> {
        let state = self.read();
        let mut query = Query::new(&state, sentence);
        let best = match candidates {
            Some(ids) => {
                let places = ids.iter().filter_map(|id| state.places.get(id).copied());
                query.best(&state, places, k, leave_out)
            }
            None => query.best(&state, state.all(), k, leave_out),
        };
        best.into_iter()
            .map(|(id, similarity, place)| Found {
                id,
                similarity,
                segment: state.held(place).segment.clone(),
                at: place.at as usize,
            })
            .collect()
    }

    /// The lists of some examples, in the given order, with texts, sources and references if asked
    /// for. Nothing if one of them is not there; refuses damaged ones.
    pub fn lists(&self, ids: &[u64], texts: bool) -> Result<Option<Lists>> {
        let state = self.read();
        let places: Option<Vec<Place>> =
            ids.iter().map(|id| state.places.get(id).copied()).collect();
        let Some(places) = places else { return Ok(None) };
        let (pools, table) = crate::ready::lists(&state, &places, texts)?;
        let (mut sources, mut references) = (Vec::new(), Vec::new());
        if texts {
            let own = |&place: &Place| state.held(place).segment.references(place.at as usize);
            references.extend(places.iter().map(|place| owned(own(place))));
            sources.extend(places.iter().map(|&place| state.text(place)));
        }
        Ok(Some(Lists { pools, table, sources, references }))
    }

    /// The lists of some examples with their gains, in the given order, where they lie on disk; and
    /// the names of their features. Nothing if one of them is not there; refuses damaged ones, and
    /// those without statistics.
    pub fn blocks(&self, ids: &[u64]) -> Result<Option<(Names, Vec<Block>)>> {
        let state = self.read();
        let places: Option<Vec<Place>> =
            ids.iter().map(|id| state.places.get(id).copied()).collect();
        places.map(|places| crate::ready::blocks(&state, &places)).transpose()
    }

    /// Sources of some examples, in the given order; nothing if one is not there.
    pub fn sources(&self, ids: &[u64]) -> Option<Vec<String>> {
        let state = self.read();
        ids.iter().map(|id| state.places.get(id).map(|&place| state.text(place))).collect()
    }
}

fn distinct<'t>(mut texts: impl Iterator<Item = &'t str>) -> bool {
    let mut seen = FxHashSet::default();
    texts.all(|text| seen.insert(text))
}

fn owned(texts: Vec<&str>) -> Vec<String> {
    texts.into_iter().map(str::to_owned).collect()
}
