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
    /// Ids of the [`Collected`] that was given, ascending.
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
            let mut features = one.features.to_vec();
            features.sort_unstable_by_key(|&(id, _)| id);
            found.push(Reading {
                text: one.text.to_owned(),
                score: one.score,
                features,
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
            if list.hypotheses() == 0 {
                // Lists are as long as they can be, most of the time, unless very much is asked
                // for, and their translations are much the same.
                list.reserve(k.min(1 << 10), one.features.len());
            }
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
    spelled: Spelled,
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
            spelled: Spelled::new(skeleton.rules()),
            places: Vec::new(),
            spans: Vec::with_capacity(skeleton.nodes()),
            text: String::with_capacity(32 * skeleton.nodes()),
            sums: Vec::with_capacity(dense * skeleton.nodes()),
            rest: FeatureSum::default(),
            unread: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// The string and the features of a derivation of the goal.
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
        while let Some(&number) = self.unread.last() {
            let choice = best.choice(number);
            let waiting = self.unread.len();
            let tails = choice.tails.into_iter().filter(|&tail| tail != Edge::NONE);
            self.unread.extend(tails.filter(|&tail| self.places[tail as usize] == NONE));
            if self.unread.len() > waiting {
                continue;
            }
            self.unread.pop();
            // A part may be there twice.
            if self.places[number as usize] == NONE {
                self.places[number as usize] = self.spans.len() as u32;
                self.part(&choice, features, collected);
            }
        }
        if self.rows.any_sparse {
            self.unread.push(goal);
            while let Some(number) = self.unread.pop() {
                let choice = best.choice(number);
                self.rest.extend(self.rows.sparse(choice.edge).copied());
                let tails = choice.tails.into_iter().rev();
                self.unread.extend(tails.filter(|&tail| tail != Edge::NONE));
            }
        }
        let dense = self.rows.own.width;
        let start = self.sums.len() - dense;
        self.entries.clear();
        self.entries.extend((0..).zip(self.sums[start..].iter().map(|&sum| sum as f32)));
        self.entries.extend_from_slice(self.rest.unsorted());
        // Nothing is made of derivations of the goal: the next may take its place.
        let span = self.spans.pop().unwrap_or_default();
        self.places[goal as usize] = NONE;
        self.sums.truncate(start);
        (self.text.get(span.0 as usize..).unwrap_or_default(), &self.entries)
    }

    /// Puts a part together from those below it.
    fn part(&mut self, choice: &Choice, features: &impl Features, collected: &mut Collected) {
        let row = self.rows.place(choice.edge, features, collected);
        let dense = self.rows.own.width;
        let places = choice.tails.map(|tail| self.places.get(tail as usize).copied());
        let sum = self.sums.len();
        let sums = |place: u32| place as usize * dense..(place as usize + 1) * dense;
        match places[0] {
            Some(place) => self.sums.extend_from_within(sums(place)),
            None => self.sums.resize(sum + dense, 0.0),
        }
        let (below, own) = self.sums.split_at_mut(sum);
        own.iter_mut()
            .zip(self.rows.own.dense(row))
            .for_each(|(own, &value)| *own += f64::from(value));
        if let Some(place) = places[1] {
            own.iter_mut().zip(&below[sums(place)]).for_each(|(own, below)| *own += below);
        }
        // What the last derivation of the goal left behind is overwritten.
        let start = self.spans.last().map_or(0, |span| span.1 as usize);
        self.text.truncate(start);
        let rule = self.skeleton.edges()[choice.edge as usize].rule;
        if self.spelled.rules[rule as usize].0 == NONE {
            self.spelled.spell(rule, self.skeleton);
        }
        let (from, to) = self.spelled.rules[rule as usize];
        for &Piece { gap, words } in &self.spelled.pieces[from as usize..to as usize] {
            if let Some(place) = gap.and_then(|gap| places[usize::from(gap)]) {
                let (from, to) = self.spans[place as usize];
                if self.text.len() > start && from < to {
                    self.text.push(' ');
                }
                self.text.extend_from_within(from as usize..to as usize);
            }
            let words = &self.spelled.text[words.0 as usize..words.1 as usize];
            if self.text.len() > start && !words.is_empty() {
                self.text.push(' ');
            }
            self.text.push_str(words);
        }
        self.spans.push((start as u32, self.text.len() as u32));
    }
}

/// Target sides of rules, spelled when they are asked for.
struct Spelled {
    text: String,
    pieces: Vec<Piece>,
    /// Where the pieces of each rule begin and end.
    rules: Vec<(u32, u32)>,
}

/// A gap, if there is one, and the words behind it.
#[derive(Clone, Copy, Default)]
struct Piece {
    gap: Option<u8>,
    /// Where they begin and end in the text.
    words: (u32, u32),
}

impl Spelled {
    fn new(rules: usize) -> Spelled {
        Spelled { text: String::new(), pieces: Vec::new(), rules: vec![(NONE, NONE); rules] }
    }

    fn spell(&mut self, rule: u32, skeleton: &Skeleton) {
        let first = self.pieces.len() as u32;
        let mut piece =
            Piece { gap: None, words: (self.text.len() as u32, self.text.len() as u32) };
        for symbol in skeleton.side(rule) {
            match symbol {
                Side::Word(word) => {
                    if piece.words.0 < piece.words.1 {
                        self.text.push(' ');
                    }
                    self.text.push_str(skeleton.word(word));
                    piece.words.1 = self.text.len() as u32;
                }
                Side::Gap(gap) => {
                    self.pieces.push(piece);
                    piece = Piece { gap: Some(gap as u8), words: (piece.words.1, piece.words.1) };
                }
            }
        }
        self.pieces.push(piece);
        self.rules[rule as usize] = (first, self.pieces.len() as u32);
    }
}

/// Features of edges, found when they are asked for.
struct EdgeRows<'s> {
    skeleton: &'s Skeleton,
    /// Where each edge is among the rows, and each rule among those of rules.
    edges: Vec<u32>,
    rules: Vec<u32>,
    /// All dense features, and what edges add to the sparse ones of their rules.
    own: HalfRows,
    of_rules: HalfRows,
    any_sparse: bool,
}

impl<'s> EdgeRows<'s> {
    fn new(skeleton: &'s Skeleton, dense: usize) -> EdgeRows<'s> {
        EdgeRows {
            skeleton,
            edges: vec![NONE; skeleton.edges().len()],
            rules: vec![NONE; skeleton.rules()],
            own: HalfRows { width: dense, ..HalfRows::default() },
            of_rules: HalfRows { width: dense, ..HalfRows::default() },
            any_sparse: false,
        }
    }

    /// Where the features of an edge are.
    fn place(&mut self, edge: u32, features: &impl Features, collected: &mut Collected) -> usize {
        match self.edges[edge as usize] {
            NONE => self.find(edge, features, collected),
            known => known as usize,
        }
    }

    fn find(&mut self, edge: u32, features: &impl Features, collected: &mut Collected) -> usize {
        let Edge { rule, label, .. } = self.skeleton.edges()[edge as usize];
        if self.rules[rule as usize] == NONE {
            features.rule(label, collected);
            self.rules[rule as usize] = self.of_rules.push(None, collected) as u32;
        }
        let rule = self.rules[rule as usize] as usize;
        features.own(label, collected);
        let row = self.own.push(Some(self.of_rules.dense(rule)), collected);
        let sparse = [self.own.sparse.get(row), self.of_rules.sparse.get(rule)];
        self.any_sparse |= sparse.iter().any(|row| !row.is_empty());
        self.edges[edge as usize] = row as u32;
        row
    }

    /// The sparse features of an edge that was found; those of its rule come first.
    fn sparse(&self, edge: u32) -> impl Iterator<Item = &(u32, f32)> {
        let rule = self.rules[self.skeleton.edges()[edge as usize].rule as usize];
        let own = self.own.sparse.get(self.edges[edge as usize] as usize);
        self.of_rules.sparse.get(rule as usize).iter().chain(own)
    }
}

/// Rows whose features with the first ids are never left out.
#[derive(Default)]
struct HalfRows {
    /// How many of them there are.
    width: usize,
    values: Vec<f32>,
    sparse: Rows,
}

impl HalfRows {
    fn dense(&self, row: usize) -> &[f32] {
        &self.values[row * self.width..(row + 1) * self.width]
    }

    /// Adds what was collected, to the dense values of `base` if there are any; returns its place.
    fn push(&mut self, base: Option<&[f32]>, collected: &mut Collected) -> usize {
        let row = self.sparse.ends.len();
        self.values.extend_from_slice(base.unwrap_or_default());
        self.values.resize((row + 1) * self.width, 0.0);
        let values = &mut self.values[row * self.width..];
        for (id, value) in collected.take() {
            match values.get_mut(id as usize) {
                Some(slot) => *slot += value,
                None => self.sparse.entries.push((id, value)),
            }
        }
        self.sparse.end()
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
