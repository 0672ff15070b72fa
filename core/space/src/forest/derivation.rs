//! One derivation of a forest: its string and its features.

use super::{Forest, Side};

/// A tree of edges, from the goal down: each edge is followed by what builds its first tail, then
/// by what builds its second.
#[derive(Debug, Clone, PartialEq)]
pub struct Derivation {
    pub score: f64,
    pub edges: Vec<u32>,
}

impl Forest {
    /// The words of a derivation, in order.
    pub fn yielded(&self, derivation: &Derivation) -> Vec<u32> {
        let mut words = Vec::new();
        self.read(derivation, |word, _, _| words.push(word));
        words
    }

    /// Tells each word of a derivation, in order, with the place of its edge in the derivation and
    /// its place on the target side of that edge's rule.
    pub fn read(&self, derivation: &Derivation, mut see: impl FnMut(u32, usize, usize)) {
        let edges = &derivation.edges;
        // Where the tree in each gap of an edge begins: the first right behind the edge, the second
        // behind the first. Read backwards, every tree is complete before its edge is met.
        let mut gaps = vec![[0; 2]; edges.len()];
        let mut ends: Vec<usize> = Vec::new();
        for (place, &edge) in edges.iter().enumerate().rev() {
            let mut end = place + 1;
            for gap in gaps[place].iter_mut().take(self.edges[edge as usize].tails().count()) {
                *gap = end;
                end = ends.pop().expect("a derivation has a tree for every tail");
            }
            ends.push(end);
        }
        let side = |place: usize| self.side(self.edges[edges[place] as usize].rule).enumerate();
        let mut open = Vec::from_iter((!edges.is_empty()).then(|| (0, side(0))));
        while let Some((place, symbols)) = open.last_mut() {
            match symbols.next() {
                Some((symbol, Side::Word(word))) => see(word, *place, symbol),
                Some((_, Side::Gap(gap))) => {
                    let below = gaps[*place][gap];
                    open.push((below, side(below)));
                }
                None => drop(open.pop()),
            }
        }
    }

    /// The string of a derivation: its words with a space between them.
    pub fn text(&self, derivation: &Derivation) -> String {
        let mut text = String::new();
        let mut first = true;
        let mut push = |word: u32| {
            if !std::mem::take(&mut first) {
                text.push(' ');
            }
            text.push_str(self.word(word));
        };
        // From left to right there is nothing to lay out: each edge goes on where its tail ended.
        let side = |&edge: &u32| self.side(self.edges[edge as usize].rule);
        let goes_on = |edge: &u32| match self.edges[*edge as usize].tails().count() {
            0 => true,
            1 => side(edge).next() == Some(Side::Gap(0)),
            _ => false,
        };
        if derivation.edges.iter().all(goes_on) {
            for symbol in derivation.edges.iter().rev().flat_map(side) {
                if let Side::Word(word) = symbol {
                    push(word);
                }
            }
        } else {
            self.read(derivation, |word, _, _| push(word));
        }
        text
    }

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
        let mut entries = std::mem::take(&mut self.entries);
        entries.clear();
        entries.extend(self.drain().map(|(id, value)| (id, value as f32)));
        self.entries = entries;
        &self.entries
    }

    pub fn add_one(&mut self, id: u32, value: f32) {
        self.add((&[id], &[value]), 1.0);
    }

    pub(super) fn add(&mut self, (ids, values): (&[u32], &[f32]), factor: f64) {
        if let Some(&last) = ids.last()
            && last as usize >= self.sums.len()
        {
            self.sums.resize(last as usize + 1, 0.0);
        }
        for (&id, &value) in ids.iter().zip(values) {
            let sum = &mut self.sums[id as usize];
            if *sum == 0.0 {
                self.touched.push(id);
            }
            *sum += factor * f64::from(value);
        }
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.touched.sort_unstable();
        // An id whose sum came back to zero on the way was noted twice; its second turn finds
        // nothing.
        let sums = &mut self.sums;
        self.touched.drain(..).filter_map(|id| {
            let sum = std::mem::take(&mut sums[id as usize]);
            (sum != 0.0).then_some((id, sum))
        })
    }
}
