//! One derivation of a forest: its string and its features.

use std::ops::Range;

use super::{Edge, Forest, Side, Skeleton};

/// A tree of edges, from the goal down: each edge is followed by what builds its first tail, then
/// by what builds its second.
#[derive(Debug, Clone, PartialEq)]
pub struct Derivation {
    pub score: f64,
    pub edges: Vec<u32>,
}

impl Skeleton {
    /// The words of a derivation, in order.
    pub fn yielded(&self, derivation: &Derivation) -> Vec<u32> {
        let mut words = Vec::new();
        self.read(derivation, |word, _, _| words.push(word));
        words
    }

    /// Tells each word of a derivation, in order, with the place of its edge in the derivation and
    /// its place on the target side of that edge's rule.
    pub fn read(&self, derivation: &Derivation, see: impl FnMut(u32, usize, usize)) {
        Reader::default().read(self, derivation, see);
    }

    /// The string of a derivation: its words with a space between them. For many of them, keep one
    /// [`Reader`].
    pub fn text(&self, derivation: &Derivation) -> String {
        let mut reader = Reader::default();
        reader.text(self, derivation);
        reader.text
    }
}

/// Reads derivations off; what it needs for one serves the next.
#[derive(Debug, Default)]
pub struct Reader {
    /// Where the tree in each gap of an edge begins.
    gaps: Vec<[u32; 2]>,
    ends: Vec<u32>,
    /// Edges whose target sides are begun: their places, and what is left of the sides.
    open: Vec<(u32, Range<u32>)>,
    text: String,
}

impl Reader {
    fn read(
        &mut self,
        skeleton: &Skeleton,
        derivation: &Derivation,
        mut see: impl FnMut(u32, usize, usize),
    ) {
        let edges = &derivation.edges;
        // The tree in the first gap begins right behind the edge, that in the second behind the
        // first. Read backwards, every tree is complete before its edge is met.
        self.gaps.clear();
        self.gaps.resize(edges.len(), [0; 2]);
        self.ends.clear();
        for (place, &edge) in edges.iter().enumerate().rev() {
            let mut end = place as u32 + 1;
            let tails = skeleton.edges[edge as usize].tails;
            for (gap, tail) in self.gaps[place].iter_mut().zip(tails) {
                if tail != Edge::NONE {
                    *gap = end;
                    end = self.ends.pop().expect("a derivation has a tree for every tail");
                }
            }
            self.ends.push(end);
        }
        let side =
            |place: u32| skeleton.side_range(skeleton.edges[edges[place as usize] as usize].rule);
        self.open.clear();
        self.open.extend((!edges.is_empty()).then(|| (0, side(0))));
        while let Some((place, symbols)) = self.open.last_mut() {
            let place = *place;
            match symbols.next() {
                Some(at) => match skeleton.symbol(at) {
                    Side::Word(word) => {
                        see(word, place as usize, (at - side(place).start) as usize)
                    }
                    Side::Gap(gap) => {
                        let below = self.gaps[place as usize][gap];
                        self.open.push((below, side(below)));
                    }
                },
                None => drop(self.open.pop()),
            }
        }
    }

    /// The string of a derivation.
    pub fn text(&mut self, skeleton: &Skeleton, derivation: &Derivation) -> &str {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let mut first = true;
        self.read(skeleton, derivation, |word, _, _| {
            if !std::mem::take(&mut first) {
                text.push(' ');
            }
            text.push_str(skeleton.word(word));
        });
        self.text = text;
        &self.text
    }
}

impl Forest {
    /// The features of a derivation. For many of them, keep one [`FeatureSum`].
    pub fn features(&self, derivation: &Derivation) -> Vec<(u32, f32)> {
        let mut sum = FeatureSum::default();
        sum.of(self, derivation);
        sum.entries
    }
}

/// Adds up features by id, at the cost of their entries; empty again after each sum.
#[derive(Debug, Default)]
pub struct FeatureSum {
    sums: Vec<f64>,
    touched: Vec<u32>,
    entries: Vec<(u32, f32)>,
}

impl FeatureSum {
    /// The features of a derivation, ids ascending, without zeros.
    pub fn of(&mut self, forest: &Forest, derivation: &Derivation) -> &[(u32, f32)] {
        for &edge in &derivation.edges {
            self.add(forest.rule(forest.edges[edge as usize].rule), 1.0);
            self.add(forest.own(edge as usize), 1.0);
        }
        self.total()
    }

    /// What was added since the last total, ids ascending, without zeros.
    pub fn total(&mut self) -> &[(u32, f32)] {
        self.touched.sort_unstable();
        self.unsorted()
    }

    /// The same, ids as they came.
    pub fn unsorted(&mut self) -> &[(u32, f32)] {
        let mut entries = std::mem::take(&mut self.entries);
        entries.clear();
        entries.extend(self.sums().map(|(id, value)| (id, value as f32)));
        self.entries = entries;
        &self.entries
    }

    /// Adds a row.
    pub fn extend(&mut self, row: impl IntoIterator<Item = (u32, f32)>) {
        row.into_iter().for_each(|(id, value)| self.add_one(id, f64::from(value)));
    }

    #[inline]
    fn add_one(&mut self, id: u32, value: f64) {
        if id as usize >= self.sums.len() {
            self.sums.resize(id as usize + 1, 0.0);
        }
        let sum = &mut self.sums[id as usize];
        if *sum == 0.0 {
            self.touched.push(id);
        }
        *sum += value;
    }

    pub(super) fn add(&mut self, (ids, values): (&[u32], &[f32]), factor: f64) {
        for (&id, &value) in ids.iter().zip(values) {
            self.add_one(id, factor * f64::from(value));
        }
    }

    /// What was added, ids ascending, without zeros; the next sum begins.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.touched.sort_unstable();
        self.sums()
    }

    fn sums(&mut self) -> impl Iterator<Item = (u32, f64)> + '_ {
        // An id whose sum came back to zero on the way was noted twice; its second turn finds
        // nothing.
        let sums = &mut self.sums;
        self.touched.drain(..).filter_map(|id| {
            let sum = std::mem::take(&mut sums[id as usize]);
            (sum != 0.0).then_some((id, sum))
        })
    }
}
