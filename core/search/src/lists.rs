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
        collected.keep_apart(reader.dense.len());
        let mut best = skeleton.best(scores, unique).wanting(k);
        for _ in 0..k {
            let Some(number) = best.advance() else { break };
            let (text, dense, sparse) = reader.read(&best, number, &features, collected);
            let score = best.choice(number).score;
            see(Listed { text, score, dense, sparse, best: &best, number });
        }
        collected.keep_apart(0);
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
    /// What is left to be read, the next at the end.
    ahead: Vec<Ahead>,
    text: String,
    /// Rows of the edges that were read.
    used: Vec<u32>,
    dense: Vec<f32>,
    rest: FeatureSum,
}

enum Ahead {
    /// A derivation by its number.
    Below(u32),
    /// Where words are in the text of the sides.
    Words((u32, u32)),
}

impl<'s> Reader<'s> {
    fn new(skeleton: &'s Skeleton, dense: usize) -> Reader<'s> {
        Reader {
            skeleton,
            known: vec![Known { row: NONE, pieces: (0, 0) }; skeleton.edges().len()],
            rows: EdgeRows::new(skeleton, dense),
            sides: Sides::new(skeleton.rules()),
            ahead: Vec::new(),
            text: String::new(),
            used: Vec::new(),
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
        self.used.clear();
        let mut next = Some(Ahead::Below(number));
        while let Some(ahead) = next {
            next = match ahead {
                Ahead::Words(words) => {
                    self.spell(words);
                    self.ahead.pop()
                }
                Ahead::Below(number) => {
                    let Choice { edge, tails, .. } = best.choice(number);
                    let mut known = self.known[edge as usize];
                    if known.row == NONE {
                        known = self.learn(edge, features, collected);
                    }
                    self.used.push(known.row);
                    if self.rows.any_sparse {
                        self.rest.extend(self.rows.sparse(edge, known.row).copied());
                    }
                    self.go_on(known.pieces, tails)
                }
            };
        }
        self.rows.own.sum(&self.used, &mut self.dense);
        (&self.text, &self.dense, self.rest.unsorted())
    }

    fn spell(&mut self, (from, to): (u32, u32)) {
        // A space is spelled before the words.
        let space = usize::from(self.text.is_empty() && from < to);
        self.text.push_str(&self.sides.text[from as usize + space..to as usize]);
    }

    /// Puts what a target side is made of ahead, but for what comes first, which is returned.
    fn go_on(&mut self, (from, to): (u32, u32), tails: [u32; 2]) -> Option<Ahead> {
        let [first, others @ ..] = &self.sides.pieces[from as usize..to as usize] else {
            return self.ahead.pop();
        };
        for piece in others.iter().rev() {
            self.ahead.push(Ahead::Words(piece.words));
            self.ahead.push(Ahead::Below(tails[piece.gap as usize]));
        }
        // Every tail has its gap; words may come before the first.
        match tails.get(first.gap as usize) {
            Some(&tail) => {
                self.ahead.push(Ahead::Words(first.words));
                Some(Ahead::Below(tail))
            }
            None => Some(Ahead::Words(first.words)),
        }
    }

    #[cold]
    fn learn(&mut self, edge: u32, features: &impl Features, collected: &mut Collected) -> Known {
        let row = self.rows.find(edge, features, collected);
        let pieces = self.sides.of(self.skeleton.edges()[edge as usize].rule, self.skeleton);
        let known = Known { row: row as u32, pieces };
        self.known[edge as usize] = known;
        known
    }
}

/// The row of the features of an edge, and where the pieces of its target side begin and end.
#[derive(Clone, Copy)]
struct Known {
    row: u32,
    pieces: (u32, u32),
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
            own: HalfRows::new(dense),
            of_rules: HalfRows::new(dense),
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
struct HalfRows {
    /// How many of them there are, and how much room they have in each row.
    width: usize,
    stride: usize,
    values: Vec<f32>,
    sparse: Rows,
}

/// Values that are summed up together.
const LANES: usize = 8;

impl HalfRows {
    fn new(width: usize) -> HalfRows {
        let stride = width.next_multiple_of(LANES);
        HalfRows { width, stride, values: Vec::new(), sparse: Rows::default() }
    }

    fn dense(&self, row: usize) -> &[f32] {
        &self.values[row * self.stride..(row + 1) * self.stride]
    }

    /// Sums up the dense values of some rows.
    fn sum(&self, rows: &[u32], sums: &mut [f32]) {
        for (lanes, sums) in (0..).step_by(LANES).zip(sums.chunks_mut(LANES)) {
            let mut exact = [0.0_f64; LANES];
            for &row in rows {
                let values = &self.values[row as usize * self.stride + lanes..][..LANES];
                exact.iter_mut().zip(values).for_each(|(sum, &value)| *sum += f64::from(value));
            }
            sums.iter_mut().zip(exact).for_each(|(sum, exact)| *sum = exact as f32);
        }
    }

    /// Adds what was collected, to the dense values of `base` if there are any; returns its place.
    fn push(&mut self, base: Option<&[f32]>, collected: &mut Collected) -> usize {
        let row = self.sparse.ends.len();
        self.values.extend_from_slice(base.unwrap_or_default());
        self.values.resize((row + 1) * self.stride, 0.0);
        let values = &mut self.values[row * self.stride..][..self.width];
        collected.add_to(values, &mut self.sparse.entries);
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
