//! The translations of a source phrase under some weights: scored and sorted once, kept for all
//! sentences.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, RwLock};

use rustc_hash::{FxHashMap, FxHasher};
use tunesmith_lm::State;
use tunesmith_rules::{Node, Symbol};

use super::decoder::Weighted;
use super::model::{Model, Score};
use crate::ModelWords;
use crate::features::{Neighbour, Orientation, Rule, Total};

/// One translation of a source phrase.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its place among the entries of the source phrase.
    pub entry: u32,
    /// Words: a range of [`Targets::words`] and [`Targets::inner`].
    pub start: u32,
    pub length: u32,
    /// All that does not depend on what surrounds it.
    pub score: f32,
    /// `score` and what the language model says of the words by themselves.
    pub estimate: f32,
    /// By orientation to the previous phrase.
    pub previous: [f32; 3],
    /// By orientation to the next phrase.
    pub next: [f32; 3],
    /// The features behind `previous` and `next`, before they are weighted.
    pub orders: [f32; 6],
    /// Equal for phrases whose features of the next phrase's orientation are equal, whatever the
    /// weights.
    pub class: u64,
    /// The language model's state after the words by themselves.
    pub state: State,
}

/// The best translations of a source phrase, best estimate first.
#[derive(Debug, Default)]
pub struct Targets {
    pub list: Vec<Target>,
    /// Ids of the table.
    pub words: Vec<u32>,
    /// The same as ids of the language model.
    pub lm: Vec<u32>,
    /// For each word the language model's score (to base ten) of it and those behind it, nothing
    /// known of what comes before.
    pub inner: Vec<f32>,
}

impl Targets {
    /// The best `limit` translations in the table (all if 0) whose words are `wanted`.
    pub fn of_node(
        model: &Model,
        weighted: &Weighted,
        source: &[Symbol],
        node: Node,
        limit: usize,
        wanted: impl Fn(&[u32]) -> bool,
    ) -> Targets {
        let mut ids = Vec::new();
        let mut targets = Targets::default();
        let words = ModelWords::new(&model.table, &model.lexicon);
        let (mut target, mut links) = (Vec::new(), Vec::new());
        for (place, entry) in model.table.entries(node).enumerate() {
            target.clear();
            target.extend(entry.target());
            ids.clear();
            ids.extend(words_of(&target));
            if !wanted(&ids) {
                continue;
            }
            links.clear();
            links.extend(entry.links());
            let rule = Rule {
                source,
                target: &target,
                links: &links,
                scores: entry.scores,
                words: &words,
            };
            targets.add(model, weighted, &rule, place as u32, |word| model.lexicon.lm_id(word));
        }
        targets.keep(limit);
        targets
    }

    /// Adds a translation; one without scores is not from the table.
    pub fn add(
        &mut self,
        model: &Model,
        weighted: &Weighted,
        rule: &Rule<'_>,
        entry: u32,
        lm_id: impl Fn(u32) -> u32,
    ) {
        let start = self.words.len();
        self.words.extend(words_of(rule.target));
        let length = self.words.len() - start;
        let mut state = State::EMPTY;
        self.lm.extend(self.words[start..].iter().map(|&word| lm_id(word)));
        for &word in &self.lm[start..] {
            let (scored, next) = model.lm.score(&state, word);
            self.inner.push(scored.log10);
            state = next;
        }
        for at in (start + 1..start + length).rev() {
            self.inner[at - 1] += self.inner[at];
        }
        let mut total = Total { weights: &weighted.named, sum: 0.0 };
        model.extras.rule.iter().for_each(|feature| feature.find(rule, &mut total));
        let mut score = total.sum as f32 + weighted.phrase + weighted.word * length as f32;
        let mut orders = [[0.0; 3]; 2];
        let mut raw = [0.0; 6];
        let mut class = FxHasher::default();
        if !rule.scores.is_empty() {
            for (&weight, (_, column)) in weighted.scores.iter().zip(&model.dense.scores) {
                if weight != 0.0 {
                    score += weight * column.of(rule.scores);
                }
            }
            if let Some(reordering) = &model.dense.reordering {
                for (number, &column) in reordering.columns.iter().enumerate() {
                    raw[number] = Score::Log(column).of(rule.scores);
                    orders[number / 3][number % 3] = weighted.reordering[number] * raw[number];
                    if number >= 3 {
                        rule.scores[column].to_bits().hash(&mut class);
                    }
                }
            }
        }
        for (side, row) in Neighbour::ALL.into_iter().zip(&mut orders) {
            for (lies, order) in Orientation::ALL.into_iter().zip(row) {
                let mut total = Total { weights: &weighted.named, sum: 0.0 };
                model.extras.order.iter().for_each(|f| f.find(rule, side, lies, &mut total));
                *order += total.sum as f32;
            }
        }
        if !model.extras.order.is_empty() {
            (rule.source, rule.target).hash(&mut class);
        }
        let inner = if length == 0 { 0.0 } else { self.inner[start] };
        self.list.push(Target {
            entry,
            start: start as u32,
            length: length as u32,
            score,
            estimate: score + weighted.lm * inner,
            previous: orders[0],
            next: orders[1],
            orders: raw,
            class: class.finish(),
            state,
        });
    }

    /// Sorts, keeps the best `limit` (all if 0) and forgets the words of the others.
    fn keep(&mut self, limit: usize) {
        self.list.sort_by(|a, b| b.estimate.total_cmp(&a.estimate).then(a.entry.cmp(&b.entry)));
        if limit > 0 {
            self.list.truncate(limit);
        }
        let old = std::mem::take(self);
        for mut target in old.list {
            let range = target.start as usize..(target.start + target.length) as usize;
            target.start = self.words.len() as u32;
            self.words.extend_from_slice(&old.words[range.clone()]);
            self.lm.extend_from_slice(&old.lm[range.clone()]);
            self.inner.extend_from_slice(&old.inner[range]);
            self.list.push(target);
        }
    }

    pub fn words(&self, target: &Target) -> &[u32] {
        &self.words[target.start as usize..][..target.length as usize]
    }
}

fn words_of(side: &[Symbol]) -> impl Iterator<Item = u32> + '_ {
    side.iter().filter_map(|&symbol| match symbol {
        Symbol::Word(word) => Some(word),
        Symbol::Gap(_) => None,
    })
}

/// What has been made so far. Cleared when it grows beyond a limit: tables may be larger than
/// memory.
pub struct Cache {
    shards: Vec<RwLock<FxHashMap<u32, Arc<Targets>>>>,
    limit: usize,
}

const SHARDS: usize = 64;

impl Cache {
    /// For at most about `limit` source phrases.
    pub fn new(limit: usize) -> Cache {
        let shards = (0..SHARDS).map(|_| RwLock::default()).collect();
        Cache { shards, limit: limit.div_ceil(SHARDS) }
    }

    pub fn get(&self, node: Node, make: impl FnOnce() -> Targets) -> Arc<Targets> {
        let key = node.index() as u32;
        let shard = &self.shards[key as usize % SHARDS];
        if let Some(found) = shard.read().expect("no panic while writing").get(&key) {
            return found.clone();
        }
        let made = Arc::new(make());
        let mut shard = shard.write().expect("no panic while writing");
        if shard.len() >= self.limit {
            shard.clear();
        }
        shard.entry(key).or_insert(made).clone()
    }
}
