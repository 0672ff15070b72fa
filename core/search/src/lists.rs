//! Lists of translations, read off what a search left. Features are found only for edges that the
//! translations use, once for each, and target sides are spelled once.

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
        let mut reader = Reader::new(skeleton, collected.names.len());
        let features = self.features(collected);
        let mut best = skeleton.best(scores, unique).wanting(k);
        for _ in 0..k {
            let Some(number) = best.advance() else { break };
            let (text, dense, sparse) = reader.read(&best, number, &features, collected);
            let score = best.choice(number).score;
            see(Listed { text, score, dense, sparse, best: &best, number });
        }
    }
}

const NONE: u32 = u32::MAX;

/// Reads strings and features off derivations.
struct Reader<'s> {
    skeleton: &'s Skeleton,
    /// Of each edge, once it was met.
    known: Vec<Known>,
    rows: EdgeRows<'s>,
    sides: Sides,
    /// The edges above the one at hand.
    open: Vec<Open>,
    text: String,
    sums: Vec<f64>,
    dense: Vec<f32>,
    rest: FeatureSum,
}

/// An edge whose target side is being read. Every tail has its gap in it.
struct Open {
    tails: [u32; 2],
    /// The next piece, and the end of the pieces.
    next: u32,
    end: u32,
    /// Words that follow what is below.
    words: (u32, u32),
}

impl<'s> Reader<'s> {
    fn new(skeleton: &'s Skeleton, dense: usize) -> Reader<'s> {
        Reader {
            skeleton,
            known: vec![Known { row: NONE, next: 0, end: 0 }; skeleton.edges().len()],
            rows: EdgeRows::new(skeleton, dense),
            sides: Sides::new(skeleton.rules()),
            open: Vec::new(),
            text: String::new(),
            sums: vec![0.0; dense],
            dense: vec![0.0; dense],
            rest: FeatureSum::default(),
        }
    }

    /// The string and the features, dense ones and others, of a derivation.
    fn read(
        &mut self,
        best: &Best<'_>,
        number: u32,
        features: &impl Features,
        collected: &mut Collected,
    ) -> (&str, &[f32], &[(u32, f32)]) {
        self.text.clear();
        self.sums.fill(0.0);
        self.begin(best.choice(number), features, collected);
        while let Some(open) = self.open.last_mut() {
            // A space is spelled before the words.
            let (from, to) = open.words;
            let space = u32::from(self.text.is_empty() && from < to);
            self.text.push_str(&self.sides.text[(from + space) as usize..to as usize]);
            if open.next == open.end {
                self.open.pop();
                continue;
            }
            let Piece { gap, words } = self.sides.pieces[open.next as usize];
            open.words = words;
            open.next += 1;
            if gap != NONE {
                let below = best.choice(open.tails[gap as usize]);
                self.begin(below, features, collected);
            }
        }
        self.dense.iter_mut().zip(&self.sums).for_each(|(value, &sum)| *value = sum as f32);
        (&self.text, &self.dense, self.rest.unsorted())
    }

    /// Goes down to an edge.
    #[inline]
    fn begin(&mut self, choice: Choice, features: &impl Features, collected: &mut Collected) {
        let mut known = self.known[choice.edge as usize];
        if known.row == NONE {
            known = self.learn(choice.edge, features, collected);
        }
        let own = self.rows.own.dense(known.row as usize);
        self.sums.iter_mut().zip(own).for_each(|(sum, &value)| *sum += f64::from(value));
        if self.rows.any_sparse {
            self.rest.extend(self.rows.sparse(choice.edge, known.row).copied());
        }
        let Known { next, end, .. } = known;
        self.open.push(Open { tails: choice.tails, next, end, words: (0, 0) });
    }

    #[cold]
    fn learn(&mut self, edge: u32, features: &impl Features, collected: &mut Collected) -> Known {
        let row = self.rows.find(edge, features, collected);
        let (next, end) = self.sides.of(self.skeleton.edges()[edge as usize].rule, self.skeleton);
        let known = Known { row: row as u32, next, end };
        self.known[edge as usize] = known;
        known
    }
}

/// Where the features of an edge are, and the pieces of its target side.
#[derive(Clone, Copy)]
struct Known {
    row: u32,
    next: u32,
    end: u32,
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

    /// Where the pieces of a rule begin and end.
    fn of(&mut self, rule: u32, skeleton: &Skeleton) -> (u32, u32) {
        if self.rules[rule as usize].0 == NONE {
            self.spell(rule, skeleton);
        }
        self.rules[rule as usize]
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
    /// Where each rule is among those of rules.
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
            rules: vec![NONE; skeleton.rules()],
            own: HalfRows { width: dense, ..HalfRows::default() },
            of_rules: HalfRows { width: dense, ..HalfRows::default() },
            any_sparse: false,
        }
    }

    /// Finds the features of an edge; returns their row.
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
        row
    }

    /// The sparse features of an edge that was found in a row; those of its rule come first.
    fn sparse(&self, edge: u32, row: u32) -> impl Iterator<Item = &(u32, f32)> {
        let rule = self.rules[self.skeleton.edges()[edge as usize].rule as usize];
        let own = self.own.sparse.get(row as usize);
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
