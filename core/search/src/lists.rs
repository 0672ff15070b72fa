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
    /// Features that are never left out, and the others.
    dense: &'l [f32],
    sparse: &'l [(u32, f32)],
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
            let mut features: Vec<(u32, f32)> = (0..).zip(one.dense.iter().copied()).collect();
            features.extend_from_slice(one.sparse);
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

    /// Fills an empty builder with the list of [`best`](Self::best), as that of one sentence whose
    /// features are named by `collected`; with `links` the alignments are kept.
    pub fn list(
        &self,
        k: usize,
        unique: bool,
        links: bool,
        mut collected: Collected,
        list: &mut PoolsBuilder,
    ) {
        let (skeleton, scores) = self.skeleton();
        list.sentence(None);
        self.each(&skeleton, &scores, (k, unique), &mut collected, |one| {
            if list.hypotheses() == 0 {
                // Lists are as long as they can be, most of the time, unless very much is asked
                // for, and their translations are much the same.
                list.reserve(k.min(1 << 10), one.dense.len() + one.sparse.len());
            }
            let mut extra = String::new();
            if links {
                let links = self.links(&skeleton, &one.best.derivation(one.number));
                let pairs = links.iter().map(|(from, to)| format!("{from}-{to}"));
                extra = pairs.collect::<Vec<_>>().join(" ");
            }
            list.push(Hypothesis {
                text: one.text,
                dense: one.dense,
                features: one.sparse,
                score: Some(one.score),
                extra: &extra,
                ..Hypothesis::default()
            });
        });
        list.names = collected.names;
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
        let mut best = skeleton.best(scores, unique).wanting(k);
        for _ in 0..k {
            let Some(number) = best.advance() else { break };
            let (text, dense, sparse) = parts.read(&best, number, &features, collected);
            let score = best.choice(number).score;
            see(Listed { text, score, dense, sparse, best: &best, number });
        }
    }
}

const NONE: u32 = u32::MAX;
/// As many parts as lists of some hundred have.
const ROOM: usize = 1 << 11;

/// Strings and features of parts of translations.
struct Parts<'s> {
    skeleton: &'s Skeleton,
    rows: EdgeRows<'s>,
    sides: Sides,
    /// Where each part is among those that were read, by its number.
    places: Vec<u32>,
    /// Where the string of each begins in the text, and where it ends.
    spans: Vec<(u32, u32)>,
    text: String,
    /// The dense features of each.
    sums: Vec<f64>,
    unread: Vec<u32>,
    /// The features of the derivation of the goal that was read last.
    dense: Vec<f32>,
    rest: FeatureSum,
}

impl<'s> Parts<'s> {
    fn new(skeleton: &'s Skeleton, dense: usize) -> Parts<'s> {
        Parts {
            skeleton,
            rows: EdgeRows::new(skeleton, dense),
            sides: Sides::new(skeleton.rules()),
            // Growing costs more than the room.
            places: Vec::with_capacity(skeleton.nodes() + 2 * ROOM),
            spans: Vec::with_capacity(ROOM),
            text: String::with_capacity(32 * ROOM),
            sums: Vec::with_capacity(dense * ROOM),
            unread: Vec::new(),
            dense: Vec::with_capacity(dense),
            rest: FeatureSum::default(),
        }
    }

    /// The string and the features, dense ones and others, of a derivation of the goal.
    fn read(
        &mut self,
        best: &Best<'_>,
        goal: u32,
        features: &impl Features,
        collected: &mut Collected,
    ) -> (&str, &[f32], &[(u32, f32)]) {
        let size = self.places.len().max(goal as usize);
        self.places.resize(size, NONE);
        let choice = best.choice(goal);
        self.want(&choice);
        while let Some(&number) = self.unread.last() {
            let choice = best.choice(number);
            let waiting = self.unread.len();
            self.want(&choice);
            if self.unread.len() > waiting {
                continue;
            }
            self.unread.pop();
            // A part may be there twice.
            if self.places[number as usize] == NONE {
                self.places[number as usize] = self.spans.len() as u32;
                self.keep(&choice, features, collected);
            }
        }
        // Nothing is made of derivations of the goal: they are not kept.
        let row = self.rows.place(choice.edge, features, collected);
        self.total(&choice, row);
        if self.rows.any_sparse {
            self.unread.push(goal);
            while let Some(number) = self.unread.pop() {
                let choice = best.choice(number);
                self.rest.extend(self.rows.sparse(choice.edge).copied());
                let tails = choice.tails.into_iter().rev();
                self.unread.extend(tails.filter(|&tail| tail != Edge::NONE));
            }
        }
        let start = self.write(&choice);
        (self.text.get(start..).unwrap_or_default(), &self.dense, self.rest.unsorted())
    }

    /// The parts below that were not read.
    fn want(&mut self, choice: &Choice) {
        let tails = choice.tails.into_iter().filter(|&tail| tail != Edge::NONE);
        self.unread.extend(tails.filter(|&tail| self.places[tail as usize] == NONE));
    }

    fn places_of(&self, choice: &Choice) -> [Option<u32>; 2] {
        choice.tails.map(|tail| self.places.get(tail as usize).copied())
    }

    /// Sums up the dense features of a derivation of the goal.
    fn total(&mut self, choice: &Choice, row: usize) {
        let width = self.rows.own.width;
        let below = |place: u32| &self.sums[place as usize * width..][..width];
        let [first, second] = self.places_of(choice).map(|place| place.map(below));
        let own = self.rows.own.dense(row).iter().map(|&value| f64::from(value));
        self.dense.clear();
        match (first, second) {
            (Some(first), None) => {
                self.dense.extend(first.iter().zip(own).map(|(sum, own)| (sum + own) as f32));
            }
            (Some(first), Some(second)) => {
                let sums = first.iter().zip(own).zip(second);
                self.dense.extend(sums.map(|((first, own), second)| (first + own + second) as f32));
            }
            _ => self.dense.extend(own.map(|own| own as f32)),
        }
    }

    /// Puts a part together from those below it.
    fn keep(&mut self, choice: &Choice, features: &impl Features, collected: &mut Collected) {
        let row = self.rows.place(choice.edge, features, collected);
        let dense = self.rows.own.width;
        let sum = self.sums.len();
        let sums = |place: u32| place as usize * dense..(place as usize + 1) * dense;
        let [first, second] = self.places_of(choice);
        match first {
            Some(place) => self.sums.extend_from_within(sums(place)),
            None => self.sums.resize(sum + dense, 0.0),
        }
        let (below, own) = self.sums.split_at_mut(sum);
        own.iter_mut()
            .zip(self.rows.own.dense(row))
            .for_each(|(own, &value)| *own += f64::from(value));
        if let Some(place) = second {
            own.iter_mut().zip(&below[sums(place)]).for_each(|(own, below)| *own += below);
        }
        let start = self.write(choice);
        self.spans.push((start as u32, self.text.len() as u32));
    }

    /// Writes the string of a part behind those that are kept; returns where it begins.
    fn write(&mut self, choice: &Choice) -> usize {
        let start = self.spans.last().map_or(0, |span| span.1 as usize);
        self.text.truncate(start);
        let rule = self.skeleton.edges()[choice.edge as usize].rule;
        if self.sides.rules[rule as usize].0 == NONE {
            self.sides.spell(rule, self.skeleton);
        }
        let (from, to) = self.sides.rules[rule as usize];
        for &Piece { gap, words } in &self.sides.pieces[from as usize..to as usize] {
            if let Some(&tail) = choice.tails.get(gap as usize)
                && let Some(&place) = self.places.get(tail as usize)
            {
                let (from, to) = self.spans[place as usize];
                if self.text.len() > start && from < to {
                    self.text.push(' ');
                }
                self.text.extend_from_within(from as usize..to as usize);
            }
            // A space is spelled before the words.
            let space = u32::from(self.text.len() == start && words.0 < words.1);
            self.text.push_str(&self.sides.text[(words.0 + space) as usize..words.1 as usize]);
        }
        start
    }
}

/// Target sides of rules, spelled when they are asked for.
struct Sides {
    text: String,
    pieces: Vec<Piece>,
    /// Where the pieces of each rule begin and end.
    rules: Vec<(u32, u32)>,
}

/// A gap, or [`NONE`], and where the words behind it are in the text.
#[derive(Clone, Copy)]
struct Piece {
    gap: u32,
    words: (u32, u32),
}

impl Sides {
    fn new(rules: usize) -> Sides {
        Sides { text: String::new(), pieces: Vec::new(), rules: vec![(NONE, NONE); rules] }
    }

    fn spell(&mut self, rule: u32, skeleton: &Skeleton) {
        let first = self.pieces.len();
        for symbol in skeleton.side(rule) {
            let end = self.text.len() as u32;
            match symbol {
                Side::Gap(gap) => self.pieces.push(Piece { gap: gap as u32, words: (end, end) }),
                Side::Word(word) => {
                    if self.pieces.len() == first {
                        self.pieces.push(Piece { gap: NONE, words: (end, end) });
                    }
                    self.text.push(' ');
                    self.text.push_str(skeleton.word(word));
                    if let Some(piece) = self.pieces.last_mut() {
                        piece.words.1 = self.text.len() as u32;
                    }
                }
            }
        }
        self.rules[rule as usize] = (first as u32, self.pieces.len() as u32);
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
