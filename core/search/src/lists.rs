//! Lists of translations, read off what a search left. Features are found only for edges that the
//! translations use, once for each; strings and sums are put together from those of the parts that
//! translations share.

use tunesmith_space::{Best, Choice, Edge, FeatureSum, Hypothesis, PoolsBuilder, Side, Skeleton};

use crate::features::Collected;
use crate::outcome::{Features, Translated};

/// A translation as a person sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub text: String,
    pub score: f64,
    /// Ids of the [`Collected`] that was given.
    pub features: Vec<(u32, f32)>,
    /// Labels of the edges, from the goal down.
    pub steps: Vec<u32>,
    /// Links between words of the two sentences.
    pub links: Vec<(u32, u32)>,
}

/// A translation on its way into a list.
struct Listed<'l> {
    text: &'l str,
    score: f64,
    features: &'l [(u32, f32)],
    best: &'l Best<'l>,
    number: u32,
}

impl Translated<'_> {
    /// The `k` best translations, best first; `unique` by string or not. Features that `collected`
    /// has names for beforehand are never left out.
    pub fn best(&self, k: usize, unique: bool, collected: &mut Collected) -> Vec<Reading> {
        let (skeleton, scores) = self.skeleton();
        let mut found = Vec::new();
        self.each(&skeleton, &scores, (k, unique), collected, |one| {
            let derivation = one.best.derivation(one.number);
            let edges = derivation.edges.iter();
            found.push(Reading {
                text: one.text.to_owned(),
                score: one.score,
                features: one.features.to_vec(),
                steps: edges.map(|&edge| skeleton.edges()[edge as usize].label).collect(),
                links: self.links(&skeleton, &derivation),
            });
        });
        found
    }

    /// The list of [`best`](Self::best) as that of a sentence whose features are named by
    /// `collected`; with `links` the alignments are kept.
    pub fn list(
        &self,
        k: usize,
        unique: bool,
        links: bool,
        mut collected: Collected,
    ) -> PoolsBuilder {
        let (skeleton, scores) = self.skeleton();
        let mut list = PoolsBuilder::default();
        list.sentence(None);
        self.each(&skeleton, &scores, (k, unique), &mut collected, |one| {
            let mut extra = String::new();
            if links {
                let links = self.links(&skeleton, &one.best.derivation(one.number));
                let pairs = links.iter().map(|(from, to)| format!("{from}-{to}"));
                extra = pairs.collect::<Vec<_>>().join(" ");
            }
            list.push(Hypothesis {
                text: one.text,
                features: one.features,
                score: Some(one.score),
                extra: &extra,
                ..Hypothesis::default()
            });
        });
        list.names = collected.names;
        list
    }

    fn each(
        &self,
        skeleton: &Skeleton,
        scores: &[f64],
        (k, unique): (usize, bool),
        collected: &mut Collected,
        mut see: impl FnMut(Listed<'_>),
    ) {
        let mut parts = Parts::new(skeleton, collected.names.len());
        let features = self.features(collected);
        let mut best = skeleton.best(scores, unique);
        for _ in 0..k {
            let Some(number) = best.advance() else { break };
            let (text, features) = parts.read(&best, number, &features, collected);
            let score = best.choice(number).score;
            see(Listed { text, score, features, best: &best, number });
        }
    }
}

const NONE: u32 = u32::MAX;

/// Strings and features of parts of translations.
struct Parts<'s> {
    skeleton: &'s Skeleton,
    rows: EdgeRows<'s>,
    /// Where each part is among those that were read, by its number.
    places: Vec<u32>,
    /// Where the string of each begins in the text, and where it ends.
    spans: Vec<(u32, u32)>,
    text: String,
    /// The dense features of each.
    sums: Vec<f64>,
    rest: FeatureSum,
    unread: Vec<u32>,
    entries: Vec<(u32, f32)>,
}

impl<'s> Parts<'s> {
    fn new(skeleton: &'s Skeleton, dense: usize) -> Parts<'s> {
        Parts {
            skeleton,
            rows: EdgeRows::new(skeleton, dense),
            places: Vec::new(),
            spans: Vec::with_capacity(skeleton.nodes()),
            text: String::with_capacity(32 * skeleton.nodes()),
            sums: Vec::with_capacity(dense * skeleton.nodes()),
            rest: FeatureSum::default(),
            unread: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// The string and the features, ids ascending, of a derivation of the goal.
    fn read(
        &mut self,
        best: &Best<'_>,
        goal: u32,
        features: &impl Features,
        collected: &mut Collected,
    ) -> (&str, &[(u32, f32)]) {
        let size = self.places.len().max(goal as usize + 1);
        self.places.resize(size, NONE);
        self.unread.push(goal);
        let mut at = 0;
        while let Some(&number) = self.unread.get(at) {
            let tails = best.choice(number).tails.into_iter().filter(|&tail| tail != Edge::NONE);
            self.unread.extend(tails.filter(|&tail| self.places[tail as usize] == NONE));
            at += 1;
        }
        // What is below has lower numbers; a part may be there twice.
        self.unread.sort_unstable();
        let mut unread = std::mem::take(&mut self.unread);
        for number in unread.drain(..) {
            if self.places[number as usize] == NONE {
                self.places[number as usize] = self.spans.len() as u32;
                self.part(&best.choice(number), features, collected);
            }
        }
        self.unread = unread;
        if self.rows.any_sparse {
            for edge in best.derivation(goal).edges {
                let row = self.rows.place(edge, features, collected);
                let sparse = self.rows.sparse.get(row);
                sparse.iter().for_each(|&(id, value)| self.rest.add_one(id, value));
            }
        }
        let dense = self.rows.dense;
        let start = self.sums.len() - dense;
        self.entries.clear();
        self.entries.extend((0..).zip(self.sums[start..].iter().map(|&sum| sum as f32)));
        self.entries.extend_from_slice(self.rest.total());
        // Nothing is made of derivations of the goal: the next may take its place.
        let span = self.spans.pop().unwrap_or_default();
        self.places[goal as usize] = NONE;
        self.sums.truncate(start);
        (self.text.get(span.0 as usize..).unwrap_or_default(), &self.entries)
    }

    /// Puts a part together from those below it.
    fn part(&mut self, choice: &Choice, features: &impl Features, collected: &mut Collected) {
        let row = self.rows.place(choice.edge, features, collected);
        let dense = self.rows.dense;
        let sum = self.sums.len();
        let values = &self.rows.values[row * dense..(row + 1) * dense];
        self.sums.extend(values.iter().map(|&value| f64::from(value)));
        let places = choice.tails.map(|tail| self.places.get(tail as usize).copied());
        for place in places.into_iter().flatten() {
            let (below, own) = self.sums.split_at_mut(sum);
            let below = &below[place as usize * dense..][..dense];
            own.iter_mut().zip(below).for_each(|(own, below)| *own += below);
        }
        // What the last derivation of the goal left behind is overwritten.
        let start = self.spans.last().map_or(0, |span| span.1 as usize);
        self.text.truncate(start);
        for symbol in self.skeleton.side(self.skeleton.edges()[choice.edge as usize].rule) {
            let before = self.text.len();
            if before > start {
                self.text.push(' ');
            }
            match symbol {
                Side::Word(word) => self.text.push_str(self.skeleton.word(word)),
                Side::Gap(gap) => {
                    let place = places[gap].expect("a part for every gap");
                    let (from, to) = self.spans[place as usize];
                    if from == to {
                        self.text.truncate(before);
                    }
                    self.text.extend_from_within(from as usize..to as usize);
                }
            }
        }
        self.spans.push((start as u32, self.text.len() as u32));
    }
}

/// Rows one behind the other: there are very many, and short ones.
#[derive(Default)]
struct Rows {
    entries: Vec<(u32, f32)>,
    ends: Vec<u32>,
}

impl Rows {
    fn get(&self, row: usize) -> &[(u32, f32)] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.entries[start as usize..self.ends[row] as usize]
    }

    /// Ends the row whose entries were added last, and returns its number.
    fn end(&mut self) -> usize {
        self.ends.push(self.entries.len() as u32);
        self.ends.len() - 1
    }
}

/// Features of edges, found when they are asked for.
struct EdgeRows<'s> {
    skeleton: &'s Skeleton,
    /// How many features are never left out: those with the first ids.
    dense: usize,
    /// Where each edge is among the rows.
    places: Vec<u32>,
    /// What the dense features of each row are.
    values: Vec<f32>,
    /// The others of each row.
    sparse: Rows,
    any_sparse: bool,
    /// What rules have, and where each rule is among them.
    rules: Rows,
    rule_places: Vec<u32>,
}

impl<'s> EdgeRows<'s> {
    fn new(skeleton: &'s Skeleton, dense: usize) -> EdgeRows<'s> {
        EdgeRows {
            skeleton,
            dense,
            places: vec![NONE; skeleton.edges().len()],
            values: Vec::new(),
            sparse: Rows::default(),
            any_sparse: false,
            rules: Rows::default(),
            rule_places: vec![NONE; skeleton.rules()],
        }
    }

    /// Where the features of an edge are.
    fn place(&mut self, edge: u32, features: &impl Features, collected: &mut Collected) -> usize {
        match self.places[edge as usize] {
            NONE => self.find(edge, features, collected),
            known => known as usize,
        }
    }

    fn find(&mut self, edge: u32, features: &impl Features, collected: &mut Collected) -> usize {
        let found = self.skeleton.edges()[edge as usize];
        let rule = &mut self.rule_places[found.rule as usize];
        if *rule == NONE {
            features.rule(found.label, collected);
            self.rules.entries.extend(collected.take());
            *rule = self.rules.end() as u32;
        }
        let rule = self.rules.get(*rule as usize);
        rule.iter().for_each(|&(id, value)| collected.put(id, value));
        features.own(found.label, collected);
        let row = self.sparse.ends.len();
        self.values.resize((row + 1) * self.dense, 0.0);
        let values = &mut self.values[row * self.dense..];
        let before = self.sparse.entries.len();
        for (id, value) in collected.take() {
            match values.get_mut(id as usize) {
                Some(slot) => *slot = value,
                None => self.sparse.entries.push((id, value)),
            }
        }
        self.any_sparse |= self.sparse.entries.len() > before;
        self.sparse.end();
        self.places[edge as usize] = row as u32;
        row
    }
}
